"""A forked child does not share the connections of its parent, on which it would read answers that are not its own."""

from __future__ import annotations

import os

import pytest

from tests.stores.scripts import run

FORKED = """
import os, signal, warnings
from ragistry.ollama.client import OllamaClient
from ragistry.testing.ollama_server import OllamaServer
warnings.simplefilter("ignore", DeprecationWarning)  # that a process with threads forks
with OllamaServer() as server, OllamaClient(server.url) as client:
    before = client.embed("text", "nomic-embed-text")
    if (child := os.fork()) == 0:
        signal.alarm(10)
        print(client.embed("text", "nomic-embed-text") == before, flush=True)
        client.close()
        os._exit(0)
    print(os.waitpid(child, 0)[1], server.connections, flush=True)
    print(client.embed("text", "nomic-embed-text") == before, server.connections)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_has_connections_of_its_own() -> None:
    assert run(FORKED).splitlines() == ["True", "0 2", "True 2"]
