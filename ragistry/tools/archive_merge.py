"""The passages of several archives as one ranking."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace
from typing import NamedTuple

from ragistry.tools.archive_collection import Hit
from ragistry.types import Document
from ragistry.utils.fusion import reciprocal_rank_fusion
from ragistry.utils.ids import content_id


class Found(NamedTuple):
    """What one archive found; distances of the same ``group``, a model and a space, may be compared."""

    group: Hashable
    hits: list[Hit]


def merged(found: Iterable[Found], top_k: int) -> list[Document]:
    """The best ``top_k`` passages: by distance within a group, by rank (reciprocal rank fusion) across groups.

    A text that was found several times is there once, as its nearest hit; a document's id is that of its text. Hits
    without text are left out.
    """
    groups: dict[Hashable, list[Hit]] = {}
    for group, hits in found:
        groups.setdefault(group, []).extend(hits)
    rankings = [_by_distance(hits) for hits in groups.values()]
    if len(rankings) == 1:
        return rankings[0][:top_k]
    return reciprocal_rank_fusion(rankings, top_k=top_k, stage="archives")


def _by_distance(hits: Iterable[Hit]) -> list[Document]:
    named = [
        (hit.distance, content_id(hit.document.content), hit.document) for hit in hits if hit.document.content.strip()
    ]
    best: dict[str, Document] = {}
    for _, identity, document in sorted(named, key=lambda item: item[:2]):
        best.setdefault(identity, replace(document, id=identity))
    return list(best.values())
