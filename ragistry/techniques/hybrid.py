"""Fuse the rankings of several techniques into one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from math import fsum
from typing import Any, Literal

from pydantic import Field, field_validator

from ragistry.config.numbers import Number, Whole
from ragistry.config.parse import Configuration, parse_config
from ragistry.errors import InvalidConfigError
from ragistry.protocols import Technique
from ragistry.techniques.built_in import TechniqueConfig
from ragistry.techniques.fusion import Ranking, dbsf, min_max_fusion, prominences, reciprocal_rank_fusion
from ragistry.trace import stage
from ragistry.types import TOP_K_LIMIT, Document, Where


class HybridTechnique:
    """Fusion: joins the results of several bases, such as vectors and words, into one ranking.

    By scores in standard deviations (``dbsf``, the default): Mazzeschi, "Distribution-Based Score Fusion", 2023. By
    scores scaled to [0, 1] within each base (``min_max``): Lee, "Analyses of Multiple Evidence Combination", 1997. By
    rank (``rrf``): Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank
    Learning Methods", 2009.

    With ``gate``, the weight of a base is multiplied by how far its best score stands out for this query
    (`techniques.fusion.prominences`). This reduces a weak base: vectors of a model that does not know the language, or
    words that are in every document. It is computed for each query, so it suits a library with an English and a German
    collection. The trace shows the weight of each base.

    The scores of the bases are in ``scores`` of a document. Its own score is 0 or more by ``dbsf``, 0 to 1 by
    ``min_max``, and small by ``rrf`` (with ``k: 60`` and two bases at most 2/61). The bases run one after the other: a
    word search takes less time than starting a second thread.
    """

    class Config(TechniqueConfig):
        fusion: Literal["dbsf", "rrf", "min_max"] = Field(
            default="dbsf",
            description="dbsf: scores in standard deviations; rrf: ranks; min_max: scores scaled to [0, 1]",
        )
        gate: bool = Field(
            default=True, description="give a base less weight if its best score stands out little from its others"
        )
        k: Whole = Field(default=60, ge=0, description="rrf: a larger value gives the first ranks less weight")
        weights: list[Number] | None = Field(
            default=None, description="one weight per base; 0 leaves a base out; default: equal weights"
        )
        fetch: Whole = Field(default=100, ge=1, le=TOP_K_LIMIT, description="number of candidates taken from each base")

        @field_validator("weights")
        @classmethod
        def _can_be_summed(cls, weights: list[float] | None) -> list[float] | None:
            if weights is not None and not (all(0 <= weight <= 1e6 for weight in weights) and any(weights)):
                raise ValueError(f"must be numbers from 0 to 1,000,000, at least one above 0, got {weights!r}")
            return weights

    def __init__(self, config: Configuration, *, bases: Sequence[Technique]) -> None:
        self.config = parse_config(self.Config, config, type(self).__name__)
        self.bases = bases
        if not bases:
            raise InvalidConfigError(f"{type(self).__name__}: bases is empty; list at least one technique")
        for key, said in self.disagreements(self.config.model_dump(), bases).items():
            raise InvalidConfigError(f"{type(self).__name__}: {key}: {said}")

    @staticmethod
    def disagreements(config: Mapping[str, Any], bases: Sequence[Any]) -> dict[str, str]:
        """Return the settings that do not fit the bases, by key; called before the technique is built."""
        weights = config.get("weights")
        if weights is None or len(weights) == len(bases):
            return {}
        return {"weights": f"must have one weight for each of the {len(bases)} bases, got {weights!r}"}

    def retrieve(self, query: str, *, top_k: int | None = None, where: Where | None = None) -> list[Document]:
        wanted = self.config.checked_limit(query, top_k)
        fetch = max(wanted, self.config.fetch)
        weights = self.config.weights or [1.0] * len(self.bases)
        asked = [(base, weight) for base, weight in zip(self.bases, weights, strict=True) if weight]
        rankings = [base.retrieve(query, top_k=fetch, where=where) for base, _ in asked]
        with stage("fuse", fusion=self.config.fusion) as this:
            this.documents_in = sum(map(len, rankings))
            shares = [weight for _, weight in asked]
            if self.config.gate and len(asked) > 1:
                prominence = prominences(rankings)
                shares = gated(shares, prominence)
                names = [getattr(base, "name", type(base).__name__) for base, _ in asked]
                this.detail["gate"] = [
                    {"base": name, "weight": round(share / fsum(shares), 2), "prominence": round(one, 1)}
                    for name, share, one in zip(names, shares, prominence, strict=True)
                ]
            documents = self._fuse(under_present_names(rankings), shares, wanted)
            this.documents_out = len(documents)
        return documents

    def _fuse(self, rankings: Sequence[Ranking], weights: Sequence[float], wanted: int) -> list[Document]:
        if self.config.fusion == "rrf":
            return reciprocal_rank_fusion(rankings, k=self.config.k, weights=weights, top_k=wanted, stage="hybrid")
        fuse = dbsf if self.config.fusion == "dbsf" else min_max_fusion
        return fuse(rankings, weights=weights, top_k=wanted, stage="hybrid")


def gated(weights: Sequence[float], prominence: Sequence[float]) -> list[float]:
    """Multiply the weights by the prominences, scaled to the same sum; unchanged without documents."""
    products = [weight * one for weight, one in zip(weights, prominence, strict=True)]
    return [product * fsum(weights) / fsum(products) for product in products] if any(products) else list(weights)


def under_present_names(rankings: Sequence[Ranking]) -> Sequence[Ranking]:
    """Give a chunk that moved to another collection between two searches the same id in all rankings.

    A collection may be renamed, or a source moved, between the searches of two bases; the later search has the right
    id. Copies of a text in several collections do not change: a single search returns both.
    """
    if not _one_place_twice(rankings):
        return rankings
    last_seen = {_place(document): document for ranking in rankings for document in ranking}
    copied = {place for ranking in rankings for place, times in Counter(map(_place, ranking)).items() if times > 1}
    return [
        [
            document if (place := _place(document)) in copied else _under_name_of(last_seen[place], document)
            for document in ranking
        ]
        for ranking in rankings
    ]


def _one_place_twice(rankings: Sequence[Ranking]) -> bool:
    """Return whether two results are the same part of a file under different ids: rare, and a cheap test."""
    ids: dict[Hashable, str] = {}
    for ranking in rankings:
        for document in ranking:
            source, index = document.metadata.get("source_file"), document.metadata.get("chunk_index")
            named = isinstance(source, str) and isinstance(index, int)  # other chunks may have lists there
            if named and ids.setdefault((source, index), document.id) != document.id:
                return True
    return False


def _place(document: Document) -> Hashable:
    """Identify a chunk by values that it keeps in another collection; without a source, by its text and id."""
    source = tuple(document.metadata.get(key) for key in ("source_file", "source_hash", "chunk_index"))
    named = all(isinstance(value, str | int) for value in source)
    return (document.content, *(source if named else (document.id,)))


def _under_name_of(seen: Document, document: Document) -> Document:
    return document if seen.id == document.id else replace(document, id=seen.id, metadata=seen.metadata)
