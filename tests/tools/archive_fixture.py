"""The servers that all tests of archives share: a plugin of pytest's, so that they are started once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.tools.archive_servers import ArchiveServers, archive_servers


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ArchiveServers]:
    """A Chroma server and a server of embeddings; each test has collections of its own."""
    with archive_servers(tmp_path_factory.mktemp("archives")) as running:
        yield running
