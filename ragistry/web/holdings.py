"""What the library holds, as the pages show it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from ragistry.library.service import DocumentService
from ragistry.types import SourceInfo


@dataclass(frozen=True, slots=True)
class Holding:
    """A collection, its sources in order, and how many chunks they have."""

    name: str
    display_name: str
    description: str
    sources: tuple[SourceInfo, ...]
    chunks: int


Holdings = tuple[Holding, ...]
"""Every collection, in the order of documents.yaml."""


def holdings(library: DocumentService) -> Holdings:
    """Read once for all pages: a store may have to look at every chunk to list its sources."""
    sources: dict[str, list[SourceInfo]] = defaultdict(list)
    for info in library.sources():
        sources[info.collection].append(info)
    return tuple(
        Holding(
            entry.name,
            entry.display_name or entry.name,
            entry.description,
            tuple(sources[entry.name]),
            sum(info.chunks for info in sources[entry.name]),
        )
        for entry in library.collections.entries()
    )
