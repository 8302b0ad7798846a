"""The places of the lines of a chunk: page, sheet, part, headings, and line of the file.

A chunk has the place of its first text as metadata. If other lines of it are in other places, such as the short
sections of a page, ``places`` in its metadata lists them as JSON: ``[{"start": 0, "section": "Needs", "line": 3}, …]``,
where ``start`` is an offset into the text of the chunk.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import takewhile
from typing import Any

from ragistry.types import Document

KEYS = ("page", "page_label", "sheet", "part", "chapter", "heading_context", "section", "line")
"""The metadata that name a place. ``line``: number of a line of the file, from 1."""
PLACES = "places"

Place = dict[str, Any]


def place_at(document: Document, offset: int) -> Place:
    """Return the place of the line at an offset of the document's content."""
    first, *others = places_in(document.metadata)
    start, place = [first, *takewhile(lambda one: one[0] <= offset, others)][-1]
    if type(line := place.get("line")) is int:
        place = place | {"line": line + document.content.count("\n", start, offset)}
    return place


def places_in(metadata: Mapping[str, Any]) -> list[tuple[int, Place]]:
    """Return the places of a chunk, each with the offset at which it begins, in order."""
    stored, found = metadata.get(PLACES), []
    if isinstance(stored, str) and stored.startswith('[{"start":'):  # else a key of this name that is not ours
        with suppress(ValueError, TypeError, KeyError):
            found = [(int(one["start"]), {key: one[key] for key in KEYS if key in one}) for one in json.loads(stored)]
    return found or [(0, {key: metadata[key] for key in KEYS if key in metadata})]


def places_metadata(places: Sequence[tuple[int, Place]]) -> str:
    """Return the value of ``places`` in the metadata."""
    return json.dumps([{"start": start, **place} for start, place in places], ensure_ascii=False, separators=(",", ":"))


def joined_places(pieces: Iterable[tuple[int, Document, int, int]]) -> dict[str, Any]:
    """Return the metadata for the places of a text that is made of pieces of documents.

    Args:
        pieces: For each piece its offset in the text, its document, and its start and end in the document's content.
    """
    found: list[tuple[int, Place]] = []
    for at, document, start, end in pieces:
        inside = [one for one, _ in places_in(document.metadata) if start < one < end]
        found += [(at + one - start, place_at(document, one)) for one in (start, *inside)]
    if not any(place for _, place in found):
        return {}
    line = {"line": found[0][1]["line"]} if "line" in found[0][1] else {}
    return line | {PLACES: places_metadata(found)}
