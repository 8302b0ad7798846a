"""Real servers for the tests of archives: what is in them, and configurations that point to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import chromadb
from chromadb.config import Settings

from ragistry.config.archive_settings import ArchiveSettings
from ragistry.testing.chroma_server import chroma_server
from ragistry.testing.hashed import hashed_embedding
from ragistry.testing.openai_server import OpenAIServer
from ragistry.tools.archives import RagArchiveConfig

MODEL = "sentence-transformers/all-MiniLM-L6-v2"
HEATING = (
    "The expansion vessel of the heating was replaced in January 2025.",
    "The boiler pressure is 1.8 bar after the service.",
    "The chimney sweep measured the exhaust of the burner.",
)
ROOF = (
    "The roof tiles on the north side are cracked.",
    "The gutter above the entrance leaks when it rains.",
    "Snow guards were fitted along the ridge of the roof.",
)


def settings(tei: str, **others: Any) -> ArchiveSettings:
    return ArchiveSettings.model_validate({"tei_url": tei, **others})


@dataclass(frozen=True)
class ArchiveServers:
    """A Chroma server and a server of embeddings."""

    chroma: str
    tei: OpenAIServer
    client: Any

    def settings(self, **others: Any) -> ArchiveSettings:
        return settings(self.tei.url, chromadb_url=self.chroma, **others)

    def archive(self, name: str, texts: Sequence[str] = (), **others: Any) -> RagArchiveConfig:
        """The configuration of a new archive that holds the texts as chunks."""
        collection = others.pop("collection_name", None) or f"c{uuid4().hex}"
        self.fill(collection, texts, space=others.pop("space", "cosine"), layer=others.pop("stored_layer", "chunk"))
        known = {"embedding_model": self.tei.model, "chromadb_url": self.chroma, "tei_url": self.tei.url}
        return RagArchiveConfig.model_validate({"name": name, "collection_name": collection, **known, **others})

    def fill(
        self, collection: str, texts: Sequence[str], *, space: str = "cosine", layer: str = "chunk", client: Any = None
    ) -> None:
        rows = (client or self.client).get_or_create_collection(
            collection, configuration={"hnsw": {"space": space}}, embedding_function=None
        )
        if texts:
            rows.add(
                ids=[f"{layer}-{index}" for index in range(len(texts))],
                embeddings=[hashed_embedding(text, self.tei.dimension) for text in texts],
                documents=list(texts),
                metadatas=[
                    {"layer": layer, "source": f"{layer}s.pdf", "page": index + 1} for index in range(len(texts))
                ],
            )


@contextmanager
def archive_servers(path: Path) -> Iterator[ArchiveServers]:
    """Run both until the block ends."""
    with chroma_server(path) as chroma, OpenAIServer(MODEL) as tei:
        url = f"http://{chroma.host}:{chroma.port}"
        with full_client(url) as client:
            yield ArchiveServers(url, tei, client)


@contextmanager
def full_client(chroma: str, **place: str) -> Iterator[Any]:
    """ChromaDB's own client, to write with."""
    host, port = chroma.removeprefix("http://").split(":")
    client = chromadb.HttpClient(host, int(port), settings=Settings(anonymized_telemetry=False), **place)
    try:
        yield client
    finally:
        client._server._session.close()
        client._admin_client._server._session.close()
