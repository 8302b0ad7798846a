"""Fuse the rankings of several techniques into one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from math import fsum, inf
from operator import mul
from typing import Any, cast

from pydantic import Field, field_validator

from ragistry.config.numbers import Number, Whole
from ragistry.config.problems import Configuration, parse_config
from ragistry.errors import InvalidConfigError
from ragistry.models.adapt import is_built_in
from ragistry.models.known import fit_line
from ragistry.protocols import DocumentStore, FitStore, Technique
from ragistry.techniques.built_in import TechniqueConfig
from ragistry.techniques.classes import Complaint
from ragistry.techniques.fusion import (
    Fusion,
    Identity,
    distinct,
    fused,
    fused_in_parts,
    merged,
    prominences,
    scores_of,
    spreads_of,
    whole_parts,
)
from ragistry.trace import OpenStage, stage
from ragistry.types import TOP_K_LIMIT, Document, Fit, Ranking, StageScore, Where, ranked
from ragistry.utils.where import Condition, normalise

ATTEMPTS = 3
"""Number of attempts to rank by all bases in one version of the store, while it is written."""


class HybridTechnique:
    """Fusion: joins the results of several bases, such as vectors and words, into one ranking.

    By scores in standard deviations (``dbsf``, the default): Mazzeschi, "Distribution-Based Score Fusion", 2023. By
    scores scaled to [0, 1] within each base (``min_max``): Lee, "Analyses of Multiple Evidence Combination", 1997. By
    rank (``rrf``): Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank
    Learning Methods", 2009.

    With ``gate``, the weight of a base is multiplied by how far its best score stands out for this query
    (`techniques.fusion.prominences`). This reduces a weak base: vectors of a model that does not know the language, or
    words that are in every document. It is computed for each query, so it suits a library with an English and a German
    collection. The weight of vectors whose embedder hardly knows the texts is then reduced for the whole library
    (`types.Fit`). The trace shows the weight of each base.

    The scores of the bases are in ``scores`` of a document. Its own score is 0 or more by ``dbsf``, 0 to 1 by
    ``min_max``, and small by ``rrf`` (with ``k: 60`` and two bases at most 2/61). Results that need more than ``fetch``
    candidates of a base come after the others, with scores below theirs. The bases run one after the other: a word
    search takes less time than starting a second thread. The texts of candidates that are not returned are not read.
    """

    class Config(TechniqueConfig):
        read_if = (("k", "fusion", "rrf"),)
        fusion: Fusion = Field(
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

    def __init__(
        self, config: Configuration, *, bases: Sequence[Technique], store: DocumentStore | None = None
    ) -> None:
        self.config = parse_config(self.Config, config, type(self).__name__)
        self.bases = bases
        if not bases:
            raise InvalidConfigError(f"{type(self).__name__}: bases is empty; list at least one technique")
        for [key], said in self.mistakes(self.config.model_dump(), bases):
            raise InvalidConfigError(f"{type(self).__name__}: {key}: {said}")
        weights = self.config.weights or [1.0] * len(bases)
        self._asked = [base for base, weight in zip(bases, weights, strict=True) if weight]
        self._weights = [weight for weight in weights if weight]
        self._store = cast("FitStore", store) if "fit" in getattr(store, "abilities", ()) else None
        self.can_rank = all(is_built_in(base) and getattr(base, "can_rank", False) for base in self._asked)

    @staticmethod
    def mistakes(config: Mapping[str, Any], bases: Sequence[Any]) -> Iterator[Complaint]:
        """Find weights that do not fit the bases."""
        weights = config.get("weights")
        if isinstance(weights, list) and bases and len(weights) != len(bases):
            yield ("weights",), f"must have one weight for each of the {len(bases)} bases, got {weights!r}"

    def retrieve(self, query: str, *, top_k: int | None = None, where: Where | None = None) -> list[Document]:
        wanted = self.config.checked_limit(query, top_k)
        where = normalise(where)
        for _ in range(ATTEMPTS if self.can_rank else 0):
            ranking = self._ranked(query, wanted, where)
            if ranking is not None and (read := ranking.read(list(ranking.scores))) is not None:
                documents = [
                    Document(one.content, one.metadata, ranking.scores[key], one.id, ranking.stage_scores(key))
                    for key, one in read.items()
                ]
                return ranked(documents)[:wanted]
        depth = whole_parts(wanted, self.config.fetch)
        found = under_present_names([base.retrieve(query, top_k=depth, where=where) for base in self._asked])
        with stage("fuse", fusion=self.config.fusion) as this:
            known = [distinct(ranking) for ranking in found]
            kinds = [documents[0].scores[-1].kind if documents and documents[0].scores else "" for documents in found]
            fit = self._store.fit() if self._store is not None else None
            values = self._fused([scores_of(documents) for documents in known], kinds, fit, wanted, this)
            best = sorted(values, key=lambda identity: (-values[identity], identity))[:wanted]
            this.documents_out = len(best)
            return [
                merged(identity, known, StageScore("hybrid", self.config.fusion, values[identity])) for identity in best
            ]

    def rank(self, query: str, top_k: int, where: Condition | None) -> Ranking | None:
        """Rank as `retrieve` does, without reading texts; None if a base cannot. The arguments were checked."""
        if (ranking := self._ranked(query, top_k, where)) is None:
            return None
        scores = ranking.scores
        numbers = Counter(scores.values())
        equal = [key for key, score in scores.items() if numbers[score] > 1]
        if (places := ranking.places(equal) if equal else {}) is None:
            return None
        by_id = iter(sorted(equal, key=lambda key: (-scores[key], places[key].id)))
        best = (next(by_id) if numbers[score] > 1 else key for key, score in scores.items())
        return replace(ranking, scores={key: scores[key] for key in islice(best, top_k)})

    def _ranked(self, query: str, wanted: int, where: Condition | None) -> Ranking | None:
        """Return the best keys and those with the score of the last, equal ones in any order.

        None if a base did not rank, or the store changed between two of them. `Ranking.read` reads for all bases.
        """
        depth, rankings = whole_parts(wanted, self.config.fetch), list[Ranking]()
        for base in self._asked:
            ranking = base.rank(query, depth, where)  # type: ignore[attr-defined]
            if ranking is None or (rankings and ranking.snapshot != rankings[0].snapshot):
                return None
            rankings.append(ranking)
        with stage("fuse", fusion=self.config.fusion) as this:
            kinds = [ranking.kind for ranking in rankings]
            values = self._fused([ranking.scores for ranking in rankings], kinds, rankings[0].fit, wanted, this)
            best = sorted(values, key=values.__getitem__, reverse=True)
            last = values[best[wanted - 1]] if len(best) > wanted else -inf
            scores = {key: value for key in best if (value := values[key]) >= last}
            this.documents_out = min(wanted, len(scores))
        return replace(rankings[0], scores=scores, stage="hybrid", kind=self.config.fusion, parts=tuple(rankings))

    def _fused(
        self,
        rankings: Sequence[Mapping[Identity, float]],
        kinds: Sequence[str],
        fit: Fit | None,
        wanted: int,
        this: OpenStage,
    ) -> dict[Identity, float]:
        """Fuse the scores of the bases; ``kinds``: those of their scores, ``fit``: how well vectors know the texts."""
        this.documents_in = sum(map(len, rankings))
        weights, fusion = self._weights, self.config.fusion
        is_gated = self.config.gate and len(rankings) > 1

        def fuse(part: Sequence[Mapping[Identity, float]]) -> dict[Identity, float]:
            nonlocal weights
            spreads = spreads_of(part) if is_gated or fusion == "dbsf" else None
            if is_gated and spreads is not None and "gate" not in this.detail:  # the first part decides for all
                weights = gated(weights, prominence := prominences(part, spreads))
                if "cosine" in kinds and fit is not None:
                    pairs = zip(weights, kinds, strict=True)
                    weights = [weight * fit.weight if kind == "cosine" else weight for weight, kind in pairs]
                    this.detail["fit"] = fit_line(fit) or round(fit.score, 2)
                this.detail["gate"] = [
                    {
                        "base": getattr(base, "name", type(base).__name__),
                        "weight": round(weight / fsum(weights), 2),
                        "prominence": round(one, 1),
                    }
                    for base, weight, one in zip(self._asked, weights, prominence, strict=True)
                ]
            return fused(part, fusion, weights=weights, k=self.config.k, spreads=spreads)

        return fused_in_parts(rankings, self.config.fetch, wanted, fuse)


def gated(weights: Sequence[float], prominence: Sequence[float]) -> list[float]:
    """Multiply the weights by the prominences, scaled to the same sum; unchanged without documents."""
    products = list(map(mul, weights, prominence))
    return [product * fsum(weights) / fsum(products) for product in products] if any(products) else list(weights)


def under_present_names(rankings: Sequence[Sequence[Document]]) -> Sequence[Sequence[Document]]:
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


def _one_place_twice(rankings: Sequence[Sequence[Document]]) -> bool:
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
