"""Search several queries with one base and fuse the rankings by rank."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pydantic import Field

from ragistry.config.numbers import Whole
from ragistry.techniques.fusion import fused_documents, whole_parts
from ragistry.techniques.hybrid import under_present_names
from ragistry.techniques.prompting import PromptedConfig, PromptedTechnique, flat
from ragistry.trace import stage
from ragistry.types import TOP_K_LIMIT, Document, Where


class QueryFusionConfig(PromptedConfig):
    """The settings of every technique that searches several queries."""

    fetch: Whole = Field(default=50, ge=1, le=TOP_K_LIMIT, description="number of candidates for each query")
    k: Whole = Field(default=60, ge=0, description="a larger value gives the first ranks less weight")


class QueryFusionTechnique(PromptedTechnique):
    """A technique that searches the queries that a generator writes."""

    config: QueryFusionConfig

    def search_all(self, queries: Sequence[str], top_k: int, where: Where | None) -> list[list[Document]]:
        """Search each query with the base, in sequence; fetch enough for ``top_k`` fused results."""
        fetch = whole_parts(top_k, self.config.fetch)
        return [self.base.retrieve(query, top_k=fetch, where=where) for query in queries]

    def fuse(self, rankings: Sequence[Sequence[Document]], name: str, top_k: int) -> list[Document]:
        """Fuse the rankings of several queries; ``name`` is the stage in the documents' scores."""
        return fuse_queries(rankings, name, k=self.config.k, top_k=top_k, fetch=self.config.fetch)


def new_queries(written: Iterable[str], known: Iterable[str], most: int) -> list[str]:
    """Select the first ``most`` written queries that are not empty, not ``known`` and not duplicates."""
    seen, found = {_key(query) for query in ("", *known)}, []
    for query in written:
        if _key(query) not in seen:
            seen.add(_key(query))
            found.append(flat(query))
    return found[:most]


def fuse_queries(
    rankings: Sequence[Sequence[Document]], name: str, *, k: int, top_k: int, fetch: int = TOP_K_LIMIT
) -> list[Document]:
    """Fuse the rankings of several queries over one store."""
    return fuse_by_rank(under_present_names(rankings), name, k=k, top_k=top_k, fetch=fetch)


def fuse_by_rank(
    rankings: Sequence[Sequence[Document]], name: str, *, k: int = 60, top_k: int, fetch: int = TOP_K_LIMIT
) -> list[Document]:
    """Fuse rankings by rank, as a stage: scores of two queries or two stores are not comparable."""
    with stage("fuse", fusion="rrf") as this:
        this.documents_in = sum(map(len, rankings))
        documents = fused_documents(rankings, "rrf", k=k, top_k=top_k, fetch=fetch, stage=name)
        this.documents_out = len(documents)
    return documents


def _key(query: str) -> str:
    """Return a key that different spellings of one question share."""
    return flat(query.casefold()).rstrip("?.! ")
