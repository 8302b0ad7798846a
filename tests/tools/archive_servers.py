"""Real servers for the tests of archives: what is in them, and configurations that point to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import chromadb
from chromadb.config import Settings

from ragistry.config.archives import ArchiveSettings
from ragistry.testing.hashed import hashed_embedding
from ragistry.testing.openai_server import OpenAIServer
from ragistry.tools.archive_search import ArchiveAnswer, ArchiveSearch
from ragistry.tools.archives import ChromaRagConfig, RagArchiveConfig, create_archive_search_tool

MODEL = "sentence-transformers/all-MiniLM-L6-v2"
QUERY = "expansion vessel of the heating"
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


@dataclass(frozen=True)
class ArchiveServers:
    """A Chroma server and a server of embeddings."""

    chroma: str
    tei: OpenAIServer
    client: Any

    def settings(self, **others: Any) -> ArchiveSettings:
        return ArchiveSettings.model_validate({"tei_url": self.tei.url, "chromadb_url": self.chroma, **others})

    def archive(self, name: str, texts: Sequence[str] = (), *, space: str = "cosine", **others: Any) -> Any:
        """The configuration of a new archive that has the texts as chunks."""
        collection = f"c{uuid4().hex}"
        self.fill(collection, texts, space=space)
        known = {"embedding_model": self.tei.model, "chromadb_url": self.chroma, "tei_url": self.tei.url}
        return RagArchiveConfig.model_validate({"name": name, "collection_name": collection, **known, **others})

    def fill(
        self, collection: str, texts: Sequence[str], *, space: str = "cosine", layer: str = "chunk", client: Any = None
    ) -> None:
        rows = (client or self.client).get_or_create_collection(
            collection, configuration={"hnsw": {"space": space}}, embedding_function=None
        )
        if texts:
            numbers = range(len(texts))
            rows.add(
                ids=[f"{layer}-{number}" for number in numbers],
                embeddings=[hashed_embedding(text, self.tei.dimension) for text in texts],
                documents=list(texts),
                metadatas=[{"layer": layer, "source": f"{layer}s.pdf", "page": number + 1} for number in numbers],
            )

    def search(
        self, *archives: RagArchiveConfig, query: str = QUERY, top_k: int = 20, **settings: Any
    ) -> ArchiveAnswer:
        """The answer of the archives to one query."""
        with closing(ArchiveSearch(ChromaRagConfig(archives=list(archives)), self.settings(**settings))) as search:
            return search.search(query, top_k)

    def tool(self, *archives: RagArchiveConfig, language: Any = None, **settings: Any) -> Any:
        config = ChromaRagConfig(archives=list(archives), language=language)
        return create_archive_search_tool(config, self.settings(**settings))


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
