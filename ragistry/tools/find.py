"""The tool ``search``, as research connectors call it: passages by id, with the lines that answer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ragistry.presentation import excerpt_line, excerpt_of
from ragistry.tools.fetch import json_text, title_of, url_of
from ragistry.tools.reach import Reach
from ragistry.tools.search import SearchArguments, found_within
from ragistry.tools.tool import Tool
from ragistry.types import Document

RESULTS = 10
"""Maximum number of results."""
EXCERPT = 300
"""Maximum number of characters of a result's excerpt."""
EXCERPT_SOURCE = 8_000
"""Number of characters of a passage in which the excerpt is searched."""


@dataclass(frozen=True, slots=True)
class FoundPassage:
    """A result of the tool ``search``: the lines that answer, and their place in the source."""

    id: str
    title: str
    url: str
    text: str
    place: dict[str, Any]


@dataclass(frozen=True, slots=True)
class FoundPassages:
    """The answer of the tool ``search``."""

    results: list[FoundPassage]


def find(reach: Reach, asked: SearchArguments) -> FoundPassages:
    """Search the collections in reach, without documents outside of collections. Raises `CallError`."""
    documents = found_within(reach, asked).documents
    if not all(map(reach.holds, documents)):
        inside = replace(asked, where={"collection": {"$in": reach.stored_names()}})
        documents = found_within(reach, inside).documents
    return FoundPassages([_result(reach, asked.query, one) for one in documents[:RESULTS]])


def _result(reach: Reach, query: str, document: Document) -> FoundPassage:
    passage = replace(document, content=document.content[:EXCERPT_SOURCE])
    lines = excerpt_of(passage, query, reach.library.reading.language, EXCERPT)
    title = title_of(document, lines.place)
    return FoundPassage(document.id, title, url_of(document), excerpt_line(lines), dict(lines.place))


SEARCH = Tool(
    "search",
    "Find passages",
    "Search the document library and list passages by id, title and url, with the lines that answer. "
    "Read one with fetch.",
    SearchArguments,
    FoundPassages,
    find,
    json_text,
    ("query", "previous"),
)
