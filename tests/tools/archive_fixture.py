"""The servers that all tests of archives share: a plugin of pytest's, for tests in several folders."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ragistry.testing.openai_server import OpenAIServer
from tests.chroma_server import ChromaServer
from tests.tools.archive_servers import MODEL, ArchiveServers, full_client


@pytest.fixture(scope="session")
def servers(chroma: ChromaServer) -> Iterator[ArchiveServers]:
    """The Chroma server of this process and a server of embeddings; each test has collections of its own."""
    url = chroma.url
    with OpenAIServer(MODEL) as tei, full_client(url) as client:
        yield ArchiveServers(url, tei, client)
