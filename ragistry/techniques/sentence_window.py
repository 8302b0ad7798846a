"""Find small chunks and return each with its neighbours."""

from __future__ import annotations

from pydantic import Field

from ragistry.config.numbers import Whole
from ragistry.config.parse import Configuration, parse_config
from ragistry.protocols import DocumentStore, Technique
from ragistry.techniques.built_in import TechniqueConfig
from ragistry.techniques.folding import retrieve_filled
from ragistry.techniques.neighbours import fetch_for, widened
from ragistry.types import Document, Where


class SentenceWindowTechnique:
    """Sentence window: joins each hit of the base with ``window`` chunks before and after it.

    After LlamaIndex's technique of that name. Small units are found more precisely: Chen et al., "Dense X Retrieval:
    What Retrieval Granularity Should We Use?", 2023. It is made for chunks of one or two sentences: ingest with a small
    ``chunk_size`` (200, without overlap). Each chunk is used once, by the best hit whose window has it
    (`neighbours.widened` describes a document).
    """

    class Config(TechniqueConfig):
        window: Whole = Field(default=1, ge=0, le=100, description="number of chunks added on each side of a hit")

    def __init__(self, config: Configuration, *, base: Technique, store: DocumentStore) -> None:
        self.config = parse_config(self.Config, config, type(self).__name__)
        self.base = base
        self.store = store

    def retrieve(self, query: str, *, top_k: int | None = None, where: Where | None = None) -> list[Document]:
        wanted = self.config.checked_limit(query, top_k)
        return retrieve_filled(
            lambda number: self.base.retrieve(query, top_k=number, where=where),
            lambda hits: widened(self.store, hits, reach=self.config.window, top_k=wanted, where=where, choose=_all),
            wanted,
            first=fetch_for(wanted),
        )


def _all(chunks: list[Document], _at: int) -> list[Document]:
    return chunks
