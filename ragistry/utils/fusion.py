"""Several rankings of the same documents as one, without ever comparing scores of different kinds.

By rank, or by scores that are first brought to one range within each ranking. Sums are exactly rounded, so a tie is a
tie whatever the order of the rankings, and ids decide it. What only rankings of weight 0 have is left out. What is
given is not changed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import fsum, isfinite

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
    """The documents of all rankings, scored by the sum of ``weight / (k + rank)``, ranks from 1.

    Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning Methods",
    2009. Scores are small: with weights of 1 (the default) at most ``len(rankings) / (k + 1)``. ``k``: 0 or more;
    the larger, the less the first ranks count.
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
    """The documents of all rankings, scored by the weighted mean of their scores, 0 to 1.

    The scores of each ranking are first scaled to [0, 1], its lowest to 0 and its highest to 1; where all are equal,
    each is 1. A document that a ranking does not have gets 0 from it. Lee, "Analyses of Multiple Evidence
    Combination", 1997; Bruch, Gai and Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval", 2023.
    Raises `TechniqueError` for a score that is not finite.
    """
    found = [_distinct(ranking) for ranking in rankings]
    total = len(found) if weights is None else fsum(weights)
    means = {identity: value / total for identity, value in _sums(map(_scaled, found), weights).items()}
    return _best(found, means, top_k, stage, "min_max")


def _distinct(ranking: Ranking) -> dict[str, Document]:
    """The documents by id, or by what they say where they have none; of a repetition the first."""
    found: dict[str, Document] = {}
    for document in ranking:
        found.setdefault(document.id or content_id(document.content), document)
    return found


def _scaled(documents: Mapping[str, Document]) -> dict[str, float]:
    scores = {identity: document.score for identity, document in documents.items()}
    strange = next((score for score in scores.values() if not isfinite(score)), None)
    if strange is not None:
        raise TechniqueError(f"a score to be fused is {strange!r}, not a finite number; fuse by rank, which needs none")
    low, high = min(scores.values(), default=0.0), max(scores.values(), default=0.0)
    if low == high:
        return dict.fromkeys(scores, 1.0)
    return {identity: (score - low) / (high - low) for identity, score in scores.items()}


def _sums(shares: Iterable[Mapping[str, float]], weights: Sequence[float] | None) -> dict[str, float]:
    """What each document gets from all rankings together; a ranking of weight 0 gives nothing, nor its documents."""
    parts: defaultdict[str, list[float]] = defaultdict(list)
    shares = list(shares)
    for share, weight in zip(shares, [1.0] * len(shares) if weights is None else weights, strict=True):
        for identity, value in share.items() if weight else ():
            parts[identity].append(weight * value)
    return {identity: fsum(part) for identity, part in parts.items()}


def _best(
    found: Sequence[Mapping[str, Document]], values: Mapping[str, float], top_k: int | None, stage: str, kind: ScoreKind
) -> list[Document]:
    """The documents of the highest values; content and metadata are those of the first ranking that has it."""
    best = sorted(values, key=lambda identity: (-values[identity], identity))[:top_k]
    return [_merged(identity, found, StageScore(stage, kind, values[identity])) for identity in best]


def _merged(identity: str, found: Sequence[Mapping[str, Document]], score: StageScore) -> Document:
    same = [documents[identity] for documents in found if identity in documents]
    scores = [earlier for document in same for earlier in document.scores]
    return Document(same[0].content, dict(same[0].metadata), score.value, identity, (*scores, score))
