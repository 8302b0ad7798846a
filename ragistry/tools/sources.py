"""The tool ``sources``: list the sources of the library, and find one by its name."""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

from ragistry.errors import InvalidFilterError
from ragistry.library.ingest.report import folder_line
from ragistry.library.unsearchable import unsearchable_from
from ragistry.tools.cursor import mark_of, read_cursor, write_cursor
from ragistry.tools.failures import CallError
from ragistry.tools.reach import Reach
from ragistry.tools.tokens import estimated_tokens
from ragistry.tools.tool import COLLECTION, CURSOR, TOKENS, Tool
from ragistry.types import SourceInfo, Where
from ragistry.utils.ids import composed
from ragistry.utils.metadata import listed_metadata, shown_metadata
from ragistry.utils.quoting import visible_line
from ragistry.utils.where import matches, normalise
from ragistry.utils.wording import did_you_mean, listed, numbered

FOLDERS = 20
"""Number of folders of which an answer says what they left out."""


@dataclass(frozen=True, slots=True)
class SourcesRequest:
    """List sources.

    Attributes:
        name: Only sources of this name, which may have ``*`` and ``?``.
        collection: List only this collection.
        where: Condition on the metadata that all chunks of a source share.
        max_tokens: Maximum size of the answer.
        cursor: Continues an answer.
    """

    name: str | None = field(default=None, metadata={"description": "Only this name; * and ? allowed."})
    collection: str | None = field(default=None, metadata=COLLECTION)
    where: Where | None = field(default=None, metadata={"description": 'Condition on metadata: {"year": 2026}.'})
    max_tokens: int = field(default=4_000, metadata=TOKENS)
    cursor: str | None = field(default=None, metadata=CURSOR)


@dataclass(frozen=True, slots=True)
class ListedSource:
    """A source with its number of chunks and the metadata that people have set.

    ``unsearchable``: why a part of it is not searchable, or the whole file, which then has no chunk; empty if all is.
    """

    collection: str
    source: str
    chunks: int
    metadata: Mapping[str, Any]
    unsearchable: str = ""


@dataclass(frozen=True, slots=True)
class SourcesAnswer:
    """Sources, and files that are not searchable, by collection and name.

    ``total``, ``unsearchable``: numbers of the sources and of these files of all pages. ``left_out``: what the first
    folders left out, on the first page of a list of all names.
    """

    sources: list[ListedSource]
    total: int
    unsearchable: int = 0
    has_more: bool = False
    cursor: str = ""
    left_out: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Position:
    """The source with which a list continues."""

    collection: str = ""
    source: str = ""


def sources(reach: Reach, request: SourcesRequest) -> SourcesAnswer:
    """List sources. Raises `CallError`."""
    found = selected_sources(reach, request)
    names = {(name, info.source_file): info for name, info in found}
    missing = dict(_unsearchable(reach, request, names))
    rows = sorted(names.keys() | missing.keys())
    mark = mark_of(replace(request, cursor=None, max_tokens=0))
    at = read_cursor(request.cursor, _Position, mark)
    left_out = [] if at.source or request.name or request.where else _left_out(reach, request.collection)
    room, page = request.max_tokens - estimated_tokens("\n".join(left_out)), list[ListedSource]()
    for name, source in rows:
        if (name, source) < (at.collection, at.source):
            continue
        info, why = names.get((name, source)), missing.get((name, source), "")
        metadata = listed_metadata(info.metadata) if info else {}
        room -= estimated_tokens(source + why + json.dumps(metadata, default=str)) + 20
        if room < 0 and page:
            cursor = write_cursor(_Position(name, source), mark)
            return SourcesAnswer(page, len(found), len(missing), True, cursor, left_out)
        page.append(ListedSource(name, source, info.chunks if info else 0, metadata, why))
    return SourcesAnswer(page, len(found), len(missing), left_out=left_out)


def _left_out(reach: Reach, collection: str | None) -> list[str]:
    """Return a line for each of the first folders in reach; a limited tool gets no paths."""
    keeps = "unsearchable" in reach.library.store.abilities
    folders = reach.library.ingested_folders(collection) if keeps else []
    allowed = [one for one in folders if one.collection in reach.names()]
    return [folder_line(one, "a folder" if reach.limited else "") for one in allowed[:FOLDERS]]


def _unsearchable(
    reach: Reach, request: SourcesRequest, selected: Container[tuple[str, str]]
) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield the files that are not searchable by collection and name, with the reason; for a limited tool its kind."""
    if "unsearchable" in reach.library.store.abilities:
        for _, one in unsearchable_from(reach.library.scope, None, request.collection, reach.names()):
            name = one.collection, one.source_file
            if name in selected or (not request.where and _is_named(one.source_file, request.name)):
                yield name, one.kind if reach.limited else f"{one.kind}: {one.reason}"


def selected_sources(reach: Reach, request: SourcesRequest) -> list[tuple[str, SourceInfo]]:
    """Return the sources that a request selects, on all pages, with the names of their collections."""
    condition = stored_condition(reach, request.where)
    return [
        (name, info)
        for name, info in sources_in(reach, request.collection, request.name)
        if condition is None
        or matches(condition, {**info.metadata, "collection": info.collection, "source_file": info.source_file})
    ]


def find_source(reach: Reach, source: str, collection: str | None) -> tuple[str, SourceInfo]:
    """Return the collection and the source of a name: the whole name, or its end from a folder on.

    Raises:
        CallError: There is no such source, or several collections have one.
    """
    known = sources_in(reach, collection, None)
    found = [one for one in known if one[1].source_file == source]
    found = found or named_sources(known, source)
    if len(found) == 1:
        return found[0]
    shown = visible_line(source, 200)
    if found:
        names = listed(f"{name}: {visible_line(one.source_file, 200)}" for name, one in found)
        raise CallError(f"several sources are called {shown!r} ({names}); write the whole name, or the collection")
    suggestion = did_you_mean(source[:200], [info.source_file for _, info in known])
    raise CallError(f"no source {shown!r}{suggestion}; list the sources to see their names")


def named_sources(known: Sequence[tuple[str, SourceInfo]], name: str) -> list[tuple[str, SourceInfo]]:
    """Return the sources of a name, in composed or decomposed form; without any, those whose names end with it."""
    name = composed(name)
    names = [(composed(one[1].source_file), one) for one in known]
    return [one for own, one in names if own == name] or [one for own, one in names if own.endswith(f"/{name}")]


def sources_in(reach: Reach, collection: str | None, pattern: str | None) -> list[tuple[str, SourceInfo]]:
    """Return the sources in reach with the current names of their collections, in order."""
    names = reach.names()
    reach.check_collection(collection)
    current = reach.library.scope.current_names().current
    found = []
    for info in reach.library.store.sources():
        name = current.get(info.collection)
        if name not in names or collection not in (None, name):
            continue
        if _is_named(info.source_file, pattern):
            found.append((name, info))
    return sorted(found, key=lambda one: (one[0], one[1].source_file))


def _is_named(source: str, pattern: str | None) -> bool:
    return pattern is None or fnmatchcase(composed(source), composed(pattern))


def stored_condition(reach: Reach, where: Where | None) -> Where | None:
    """Return a condition with the names and dates of the store. Raises `CallError` if it is invalid."""
    if not where:
        return None
    try:
        return reach.library.scope.current_names().joined(None, normalise(where))
    except InvalidFilterError as error:
        raise CallError(f"where: {error}") from error


def sources_text(found: SourcesAnswer) -> str:
    """Write a list of sources."""
    missing = f", {numbered(found.unsearchable, 'file[|s]')} not searchable" if found.unsearchable else ""
    lines = [f"{numbered(found.total, 'source[|s]')}{missing}"]
    for one in found.sources:
        metadata = f" {{{visible_line(shown_metadata(one.metadata), 200)}}}" if one.metadata else ""
        why = f" (not searchable: {visible_line(one.unsearchable)})" if one.unsearchable else ""
        lines.append(f"  {visible_line(one.source)} [{one.collection}]{metadata}{why}")
    lines += (f"  {line}" for line in found.left_out)
    if found.cursor:
        lines.append(f'[To continue, call again with the same arguments and cursor "{found.cursor}".]')
    return "\n".join(lines)


SOURCES = Tool(
    "sources",
    "List sources",
    "List the sources of the library by name and metadata, and files that are not searchable.",
    SourcesRequest,
    SourcesAnswer,
    sources,
    sources_text,
)
