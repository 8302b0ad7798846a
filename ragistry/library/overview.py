"""Collections and sources as mappings, for display."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from ragistry.config.files import CollectionEntry
from ragistry.types import SourceInfo


def collection_rows(entries: Sequence[CollectionEntry], sources: Iterable[SourceInfo]) -> list[dict[str, Any]]:
    """Each collection with the number of its sources and chunks."""
    counts = {entry.name: [0, 0] for entry in entries}
    for info in sources:
        count = counts.get(info.collection)
        if count is not None:  # else its collection was created while the sources were read
            count[0] += 1
            count[1] += info.chunks
    return [
        {
            "name": entry.name,
            "display_name": entry.display_name or entry.name,
            "description": entry.description,
            "source_count": counts[entry.name][0],
            "chunk_count": counts[entry.name][1],
        }
        for entry in entries
    ]


def source_row(info: SourceInfo) -> dict[str, Any]:
    """A source with the number of its chunks as ``chunk_count``."""
    fields = asdict(info)
    return {"source_file": fields.pop("source_file"), "chunk_count": fields.pop("chunks")} | fields
