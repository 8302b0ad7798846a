"""Fuse several rankings of the same documents without comparing scores of different kinds.

By rank (`reciprocal_rank_fusion`), or by scores scaled within each ranking (`min_max_fusion`, `dbsf`). `prominences`
computes weights of rankings. Sums are exactly rounded, so ties do not depend on the order of the rankings; ids break
them. Documents that only occur in rankings of weight 0 are left out. The input rankings are not changed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import fsum, isfinite, sqrt
from typing import NamedTuple

from ragistry.errors import TechniqueError
from ragistry.types import Document, ScoreKind, StageScore
from ragistry.utils.ids import content_id

Ranking = Sequence[Document]
"""Documents of one retrieval, best first."""


def reciprocal_rank_fusion(
    rankings: Sequence[Ranking],
    *,
    k: float = 60,
    weights: Sequence[float] | None = None,
    top_k: int | None = None,
    stage: str = "fusion",
) -> list[Document]:
    """Fuse rankings by the sum of ``weight / (k + rank)``, ranks from 1.

    Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning Methods",
    2009. Scores are small: with weights of 1 (the default) at most ``len(rankings) / (k + 1)``. ``k``: 0 or more;
    a larger value gives the first ranks less weight.
    """
    found = [_distinct(ranking) for ranking in rankings]
    shares = [{identity: 1 / (k + rank) for rank, identity in enumerate(documents, 1)} for documents in found]
    return _best(found, _sums(shares, weights), top_k, stage, "rrf")


def min_max_fusion(
    rankings: Sequence[Ranking],
    *,
    weights: Sequence[float] | None = None,
    top_k: int | None = None,
    stage: str = "fusion",
) -> list[Document]:
    """Fuse rankings by the weighted mean of their scaled scores, 0 to 1.

    The scores of each ranking are first scaled to [0, 1], its lowest to 0 and its highest to 1; if all are equal, each
    is 1. A document missing in a ranking gets 0 from it. Lee, "Analyses of Multiple Evidence Combination", 1997; Bruch,
    Gai and Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval", 2023. Raises `TechniqueError` for a score
    that is not finite.
    """
    found = [_distinct(ranking) for ranking in rankings]
    shares = [dict(zip(documents, scaled(_scores(documents.values())), strict=True)) for documents in found]
    return _best(found, _means(shares, weights), top_k, stage, "min_max")


def dbsf(
    rankings: Sequence[Ranking],
    *,
    weights: Sequence[float] | None = None,
    top_k: int | None = None,
    stage: str = "fusion",
) -> list[Document]:
    """Fuse rankings by the weighted mean of ``(score - lowest) / deviation``, 0 or more.

    ``lowest`` and ``deviation`` (standard) are those of the scores of one ranking; if all are equal, each document gets
    1. A document missing in a ranking gets 0 from it, like the lowest. A ranking shorter than the longest found nothing
    else, so its scores are padded with zeros: three documents with a rare word are then far above the rest.

    Mazzeschi, "Distribution-Based Score Fusion (DBSF), a new approach to Vector Search Ranking", 2023. It scales by
    the mean and three deviations on either side, so that a missing document gets less than any found one; with
    an English model on Chinese text this lost 2 more points of nDCG@10. Raises `TechniqueError` for a score that is
    not finite.
    """
    found = [_distinct(ranking) for ranking in rankings]
    shares = []
    for documents, spread in zip(found, _spreads([documents.values() for documents in found]), strict=True):
        low, deviation = spread.lowest, spread.deviation
        shares.append(
            {identity: (one.score - low) / deviation if deviation else 1.0 for identity, one in documents.items()}
        )
    return _best(found, _means(shares, weights), top_k, stage, "dbsf")


def prominences(rankings: Sequence[Ranking]) -> list[float]:
    """Compute how many standard deviations the best score of each ranking is above its mean.

    The scores of an embedder that does not know the language of a text are nearly equal, and so are those of words in
    every document. As weights of rankings, these figures need neither judgements nor a constant. 1 if all scores are
    equal, 0 for an empty ranking; short rankings are padded with zeros as in `dbsf`. Raises
    `TechniqueError` for a score that is not finite.
    """
    return [
        (spread.highest - spread.mean) / spread.deviation if spread.deviation else float(bool(ranking))
        for ranking, spread in zip(rankings, _spreads(rankings), strict=True)
    ]


def scaled(scores: Sequence[float]) -> list[float]:
    """Scale scores from 0 (lowest) to 1 (highest); all are 1 if they are equal."""
    low, high = min(scores, default=0.0), max(scores, default=0.0)
    return [(score - low) / (high - low) if high > low else 1.0 for score in scores]


def _distinct(ranking: Ranking) -> dict[str, Document]:
    """Map ids, or contents without an id, to documents; the first of duplicates is kept."""
    found: dict[str, Document] = {}
    for document in ranking:
        found.setdefault(document.id or content_id(document.content), document)
    return found


class _Spread(NamedTuple):
    """The distribution of a ranking's scores."""

    lowest: float
    highest: float
    mean: float
    deviation: float


def _spreads(rankings: Iterable[Collection[Document]]) -> list[_Spread]:
    """Compute the distribution of each ranking's scores, padded with zeros to the length of the longest."""
    lists = [_scores(ranking) for ranking in rankings]
    longest = max(map(len, lists), default=0)
    return [_spread([*scores, *[min([0.0, *scores])] * (longest - len(scores))] or [0.0]) for scores in lists]


def _spread(scores: Sequence[float]) -> _Spread:
    low, high, mean = min(scores), max(scores), fsum(scores) / len(scores)
    # rounding could give a small deviation for equal scores
    deviation = sqrt(fsum((score - mean) ** 2 for score in scores) / len(scores)) if high > low else 0.0
    return _Spread(low, high, mean, deviation)


def _scores(documents: Iterable[Document]) -> list[float]:
    scores = [document.score for document in documents]
    strange = next((score for score in scores if not isfinite(score)), None)
    if strange is not None:
        raise TechniqueError(
            f"a score to fuse is {strange!r}, not a finite number; fuse by rank (fusion: rrf, gate: false)"
        )
    return scores


def _means(shares: Iterable[Mapping[str, float]], weights: Sequence[float] | None) -> dict[str, float]:
    shares = list(shares)
    total = len(shares) if weights is None else fsum(weights)
    return {identity: value / total for identity, value in _sums(shares, weights).items()}


def _sums(shares: Iterable[Mapping[str, float]], weights: Sequence[float] | None) -> dict[str, float]:
    """Sum the shares of each document over all rankings, without rankings of weight 0."""
    parts: defaultdict[str, list[float]] = defaultdict(list)
    shares = list(shares)
    for share, weight in zip(shares, [1.0] * len(shares) if weights is None else weights, strict=True):
        for identity, value in share.items() if weight else ():
            parts[identity].append(weight * value)
    return {identity: fsum(part) for identity, part in parts.items()}


def _best(
    found: Sequence[Mapping[str, Document]], values: Mapping[str, float], top_k: int | None, stage: str, kind: ScoreKind
) -> list[Document]:
    """Return the documents with the highest values, with content and metadata of the first ranking that has them."""
    best = sorted(values, key=lambda identity: (-values[identity], identity))[:top_k]
    return [_merged(identity, found, StageScore(stage, kind, values[identity])) for identity in best]


def _merged(identity: str, found: Sequence[Mapping[str, Document]], score: StageScore) -> Document:
    same = [documents[identity] for documents in found if identity in documents]
    scores = [earlier for document in same for earlier in document.scores]
    return Document(same[0].content, dict(same[0].metadata), score.value, identity, (*scores, score))
