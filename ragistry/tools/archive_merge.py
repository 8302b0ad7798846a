"""The passages of several archives as one ranking."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace
from typing import NamedTuple

from ragistry.library.remote.collection import Hit
from ragistry.types import Document, ScoreKind, StageScore, ranked
from ragistry.utils.ids import content_id

STAGE = "archives"
K = 60
"""Of reciprocal rank fusion, as in the paper."""


class Found(NamedTuple):
    """What one archive found, by a ``model`` that its vectors come from, in its ``space``."""

    model: Hashable
    space: ScoreKind
    hits: list[Hit]


def merged(found: Iterable[Found], top_k: int) -> list[Document]:
    """The best ``top_k`` passages: by distance within a model and space, by cosine across the spaces of a model.

    Across models, and where vectors that are not of unit length keep a model's cosines unknown, by rank (reciprocal
    rank fusion). A text that was found several times is there once, at its best place: copies are no votes. A
    document's id is that of its text; ``scores`` say by what it was ranked.
    """
    models: dict[Hashable, list[Found]] = {}
    for one in found:
        models.setdefault(one.model, []).append(one)
    rankings = [ranking for of_model in models.values() for ranking in _rankings(of_model)]
    return rankings[0][:top_k] if len(rankings) == 1 else _by_best_rank(rankings)[:top_k]


def _rankings(found: list[Found]) -> list[list[Document]]:
    """What was found by one model: one ranking where all can be compared, else one for each space."""
    spaces: dict[ScoreKind, list[Hit]] = {}
    for _, space, hits in found:
        spaces.setdefault(space, []).extend(hits)
    cosines = [(hit, hit.cosine) for hits in spaces.values() for hit in hits if hit.cosine is not None]
    if len(spaces) > 1 and len(cosines) == sum(map(len, spaces.values())):
        return [_once((-cosine, _scored(hit.document, "cosine", cosine)) for hit, cosine in cosines)]
    return [_once((hit.distance, hit.document) for hit in hits) for hits in spaces.values()]


def _once(found: Iterable[tuple[float, Document]]) -> list[Document]:
    """The documents in the order of their distances, each text once."""
    named = [(distance, content_id(document.content), document) for distance, document in found]
    best: dict[str, Document] = {}
    for _, identity, document in sorted(named, key=lambda item: item[:2]):
        best.setdefault(identity, replace(document, id=identity))
    return list(best.values())


def _by_best_rank(rankings: Iterable[list[Document]]) -> list[Document]:
    best: dict[str, tuple[int, Document]] = {}
    for ranking in rankings:
        for rank, document in enumerate(ranking, 1):
            if document.id not in best or rank < best[document.id][0]:
                best[document.id] = rank, document
    return ranked(_scored(document, "rrf", 1 / (K + rank)) for rank, document in best.values())


def _scored(document: Document, kind: ScoreKind, value: float) -> Document:
    score = min(1.0, max(0.0, value))
    return replace(document, score=score, scores=(*document.scores, StageScore(STAGE, kind, score)))
