"""Search several queries with one base and fuse the rankings by rank."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ragistry.protocols import Technique
from ragistry.techniques.hybrid import under_present_names
from ragistry.techniques.prompting import flat
from ragistry.trace import stage
from ragistry.types import Document, Where
from ragistry.utils.fusion import Ranking, reciprocal_rank_fusion


def new_queries(written: Iterable[str], known: Iterable[str], most: int) -> list[str]:
    """The first ``most`` queries of a model that are not empty, not ``known``, and not duplicates."""
    seen, found = {_key(query) for query in ("", *known)}, []
    for query in written:
        if _key(query) not in seen:
            seen.add(_key(query))
            found.append(flat(query))
    return found[:most]


def search_all(base: Technique, queries: Sequence[str], fetch: int, where: Where | None) -> list[Ranking]:
    """The results of the base for each query, in sequence."""
    return [base.retrieve(query, top_k=fetch, where=where) for query in queries]


def fused(rankings: Sequence[Ranking], name: str, *, k: int, top_k: int) -> list[Document]:
    """Fuse the rankings of several queries by rank, because scores of two queries are not comparable."""
    with stage("fuse", fusion="rrf") as this:
        this.documents_in = sum(map(len, rankings))
        documents = reciprocal_rank_fusion(under_present_names(rankings), k=k, top_k=top_k, stage=name)
        this.documents_out = len(documents)
    return documents


def _key(query: str) -> str:
    """A key that different spellings of one question share."""
    return flat(query.casefold()).rstrip("?.! ")
