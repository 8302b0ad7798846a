"""A server that speaks as Ollama does, and a client of it that waits next to nothing between its attempts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ragistry.ollama.client import OllamaClient
from ragistry.testing.ollama_server import OllamaServer

EMBEDDER = "nomic-embed-text"
TALKER = "llama3.2"


@pytest.fixture
def server() -> Iterator[OllamaServer]:
    with OllamaServer(context_length=64) as running:
        yield running


@pytest.fixture
def client(server: OllamaServer) -> Iterator[OllamaClient]:
    with OllamaClient(server.url, timeout=10) as made:
        yield made
