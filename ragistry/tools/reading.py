"""Tools that read the texts of sources: find lines, read lines, list headings, list sources.

`line` counts the lines of the extracted text, for every format. `place` has the page, slide or sheet, and the line of
the file where there is one.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from hashlib import sha256
from time import thread_time
from typing import Any

from ragistry.chunking.places import place_at
from ragistry.chunking.table_headers import LIMIT, row_header
from ragistry.errors import InvalidFilterError
from ragistry.readers.markdown import outline as outline_of
from ragistry.tools.failures import CallError
from ragistry.tools.line_patterns import LINE_CHARACTERS, LinePattern
from ragistry.tools.reach import Reach
from ragistry.tools.source_lines import Lines, chunk_before, lines_of
from ragistry.tools.tokens import cut_to_tokens, estimated_tokens
from ragistry.trace import collect
from ragistry.types import SourceInfo, Where
from ragistry.utils.custom_metadata import listed_metadata
from ragistry.utils.ids import composed
from ragistry.utils.quoting import visible, visible_line
from ragistry.utils.where import matches, normalise
from ragistry.utils.wording import did_you_mean, listed, numbered

SECONDS = 2.0
"""Processor time after which a page of `grep` ends."""
CHUNKS_AT_ONCE = 2_000
"""Number of chunks whose texts are searched before their lines are built."""
NARROWED = 1_000
"""Maximum number of passages with a word that narrow a search."""
NAMED = 5
Name = tuple[str, str]
"""Collection and name of a source in the store."""

_COLLECTION = "Only this collection."
TOKENS = {"description": "Maximum tokens of the answer.", "ge": 200, "le": 50_000}
_CURSOR = {"description": "Only to continue: the cursor of the last answer, with all other arguments unchanged."}
_SOURCE = {"description": "Name of a source, as results show it."}


@dataclass(frozen=True, slots=True)
class GrepRequest:
    """Find the lines of the library's texts that contain a pattern.

    Attributes:
        pattern: A literal, or a regular expression with ``regex``.
        words: The pattern must stand between ends of words.
        regex: The pattern is a regular expression in the syntax of Rust, without look-around and back references.
        ignore_case: Ignore the case of letters.
        collection: Search only this collection.
        source: Search only sources of this name, which may have ``*`` and ``?``.
        where: Condition on metadata.
        context: Number of lines before and after each line.
        count: Only count the lines of each source.
        sources_only: Only list the sources with a line.
        max_tokens: Maximum size of the answer.
        cursor: Continues an answer.
    """

    pattern: str = field(metadata={"description": "The text to find, exactly as it is written."})
    words: bool = field(default=False, metadata={"description": "Whole words only.", "short": "-w"})
    regex: bool = field(
        default=False, metadata={"description": "The pattern is a regular expression (RE2 syntax).", "short": "-e"}
    )
    ignore_case: bool = field(default=False, metadata={"description": "Ignore case.", "short": "-i"})
    collection: str | None = field(default=None, metadata={"description": _COLLECTION, "short": "-c"})
    source: str | None = field(default=None, metadata={"description": "Only sources of this name; * and ? allowed."})
    where: Where | None = field(default=None, metadata={"description": 'Condition on metadata: {"page": {"$gte": 3}}.'})
    context: int = field(
        default=0, metadata={"description": "Lines around each match.", "short": "-C", "ge": 0, "le": 20}
    )
    count: bool = field(default=False, metadata={"description": "Only count lines."})
    sources_only: bool = field(default=False, metadata={"description": "Only list sources.", "short": "-l"})
    max_tokens: int = field(default=4_000, metadata=TOKENS)
    cursor: str | None = field(default=None, metadata=_CURSOR)


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of the extracted text.

    Attributes:
        line: Its number, from 1.
        text: Its text, or the part around the match of a long line.
        place: Its place.
        match: False for a line around a match.
        column: The character of the line, from 1, at which the match begins; `read` continues a long line there.
        table_header: The header row of the table in which a line of `grep` lies.
    """

    line: int
    text: str
    place: Mapping[str, Any]
    match: bool = True
    column: int = 1
    table_header: str = ""


@dataclass(slots=True)
class SourceMatches:
    """The lines that were found in a source; ``matches`` counts them."""

    collection: str
    source: str
    matches: int = 0
    lines: list[SourceLine] = field(default_factory=list)


@dataclass(slots=True)
class GrepAnswer:
    """Lines in the order of collection, source and line.

    Attributes:
        sources: The sources with their lines.
        chunks_read: Number of chunks that were read, also for earlier pages.
        chunks: Number of chunks in reach.
        has_more: Whether the search has not reached the end.
        cursor: Continues the search; empty at the end.
        notes: What was left out, and sources that changed since the page before.
    """

    sources: list[SourceMatches] = field(default_factory=list)
    chunks_read: int = 0
    chunks: int = 0
    has_more: bool = False
    cursor: str = ""
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """Read lines of a source.

    Attributes:
        source: Name of the source.
        collection: Its collection, if several have a source of this name.
        line: First line, counted from 1.
        lines: Number of lines.
        place: A place where to begin, such as ``{"page": 3}``, ``{"sheet": "Costs"}`` or the place of a result.
        before: Number of lines before ``line`` or ``place`` that are read too.
        column: First character of the first line, to continue a long line.
        max_tokens: Maximum size of the answer.
    """

    source: str = field(metadata=_SOURCE)
    collection: str | None = field(default=None, metadata={"description": _COLLECTION, "short": "-c"})
    line: int | None = field(default=None, metadata={"description": "First line, from 1.", "short": "-l", "ge": 1})
    lines: int = field(default=100, metadata={"description": "Number of lines.", "short": "-n", "ge": 1, "le": 10_000})
    place: dict[str, Any] | None = field(
        default=None,
        metadata={"description": 'Begin here instead: {"page": 3}, {"sheet": "Q1"}, or a result\'s place.'},
    )
    before: int = field(default=0, metadata={"description": "Also lines before.", "short": "-B", "ge": 0, "le": 1_000})
    column: int = field(default=1, metadata={"description": "First character, to continue a long line.", "ge": 1})
    max_tokens: int = field(default=4_000, metadata=TOKENS)


@dataclass(frozen=True, slots=True)
class ReadAnswer:
    """Lines of a source.

    Attributes:
        collection: The collection.
        source: The source.
        lines: The lines.
        next_line: The line with which to continue; None at the end.
        next_column: The character of that line.
        notes: What was left out.
    """

    collection: str
    source: str
    lines: list[SourceLine]
    next_line: int | None = None
    next_column: int = 1
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class OutlineRequest:
    """List the headings, pages, slides, sheets and chapters of a source with their lines.

    Attributes:
        source: Name of the source.
        collection: Its collection, if several have a source of this name.
        line: List what begins at this line or later.
        max_tokens: Maximum size of the answer.
    """

    source: str = field(metadata=_SOURCE)
    collection: str | None = field(default=None, metadata={"description": _COLLECTION, "short": "-c"})
    line: int = field(default=1, metadata={"description": "Begin at this line.", "ge": 1})
    max_tokens: int = field(default=4_000, metadata=TOKENS)


@dataclass(frozen=True, slots=True)
class OutlineEntry:
    """A heading, page, sheet, chapter or part. ``level``: that of a heading, otherwise 0."""

    line: int
    kind: str
    title: str
    level: int = 0


@dataclass(frozen=True, slots=True)
class OutlineAnswer:
    """The outline of a source. ``lines``: number of its lines. ``next_line`` continues it; None at the end."""

    collection: str
    source: str
    entries: list[OutlineEntry]
    lines: int
    next_line: int | None = None


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
    collection: str | None = field(default=None, metadata={"description": _COLLECTION, "short": "-c"})
    where: Where | None = field(default=None, metadata={"description": 'Condition on metadata: {"year": 2026}.'})
    max_tokens: int = field(default=4_000, metadata=TOKENS)
    cursor: str | None = field(default=None, metadata=_CURSOR)


@dataclass(frozen=True, slots=True)
class ListedSource:
    """A source with its number of chunks and the metadata that people have set."""

    collection: str
    source: str
    chunks: int
    metadata: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SourcesAnswer:
    """Sources by collection and name; ``total`` counts those of all pages."""

    sources: list[ListedSource]
    total: int
    has_more: bool = False
    cursor: str = ""


@dataclass(frozen=True, slots=True)
class _Position:
    """Where a search continues: a source, and in it a line and the chunk in which the line begins."""

    collection: str = ""
    source: str = ""
    line: int = 1
    chunk: int = 0
    line_feeds: int = 0
    hash: str = ""
    read: int = 0
    version: str = ""
    time: float = 0.0


def grep(reach: Reach, request: GrepRequest) -> GrepAnswer:
    """Find lines. Raises `CallError`."""
    if sum(map(bool, (request.context, request.count, request.sources_only))) > 1:
        raise CallError("give one of context, count and sources_only")
    end = thread_time() + SECONDS
    pattern = LinePattern(request)
    condition = _condition(reach, request.where)
    all_sources = sources_in(reach, request.collection, request.source)
    answer = GrepAnswer(chunks=sum(info.chunks for _, info in all_sources))
    version = _hash(*((info.collection, info.source_file, info.source_hash, info.chunks) for _, info in all_sources))
    arguments = _hash(replace(request, cursor=None, max_tokens=0))
    at = _read_position(request.cursor, arguments) if request.cursor else _Position()
    if at.version and at.version != version:
        answer.notes += _changes(at, all_sources)
    newest = max((info.ingested_at for _, info in all_sources), default=0.0)
    sources = _narrowed(reach, request, all_sources)
    answer.chunks_read = at.read
    page = _GrepPage(request, answer, pattern, condition, end)
    rest = [one for one in all_sources if (one[0], one[1].source_file) >= (at.collection, at.source)]
    for name, info, may_match in _with_hints(reach, pattern, rest, sources, end):
        is_here = (name, info.source_file) == (at.collection, at.source) and info.source_hash == at.hash
        if not (may_match or is_here):
            answer.chunks_read += info.chunks
            continue
        start = at if is_here else _Position(name, info.source_file)
        stop = page.search(reach, name, info, start)
        if stop is not None:
            stop = replace(stop, hash=info.source_hash, read=answer.chunks_read, version=version, time=newest)
            answer.has_more, answer.cursor = True, _write_position(stop, arguments)
            answer.notes.append(f"{answer.chunks_read:,} of {numbered(answer.chunks, 'chunk[|s]')} read")
            break
    return answer


def _with_hints(
    reach: Reach,
    pattern: LinePattern,
    known: Sequence[tuple[str, SourceInfo]],
    narrowed: set[tuple[str, str]] | None,
    end: float,
) -> Iterator[tuple[str, SourceInfo, bool]]:
    """Yield sources, and whether a line of each may match; its lines need not be built if the whole text does not."""
    texts_of: Callable[[Sequence[Name]], dict[Name, str]] = getattr(reach.library.store, "texts", lambda _: {})
    group, chunks, most = list[tuple[str, SourceInfo]](), 0, CHUNKS_AT_ONCE // 16
    for one in [*known, None]:
        if one is not None and chunks < most:
            group.append(one)
            chunks += one[1].chunks
            continue
        names = [(info.collection, info.source_file) for _, info in group if info.chunks <= CHUNKS_AT_ONCE]
        names = names if narrowed is None else [name for name in names if name in narrowed]
        texts = texts_of(names) if thread_time() < end else {}
        for name, info in group:
            key = (info.collection, info.source_file)
            text = texts.get(key)
            if narrowed is not None and key not in narrowed:
                yield name, info, False
            else:
                yield name, info, text is None or thread_time() > end or pattern.may_match(text)
        group, chunks, most = ([one], one[1].chunks, min(2 * most, CHUNKS_AT_ONCE)) if one else ([], 0, 0)


class _GrepPage:
    """The lines of one page, within its limits of time and tokens."""

    def __init__(
        self,
        request: GrepRequest,
        answer: GrepAnswer,
        pattern: LinePattern,
        condition: Where | None,
        end: float,
    ) -> None:
        self._request, self._answer, self._pattern, self._condition = request, answer, pattern, condition
        self._room = request.max_tokens
        self._end = end
        self._has_read = False
        self._only_counts = request.count or request.sources_only

    def search(self, reach: Reach, name: str, info: SourceInfo, start: _Position) -> _Position | None:
        """Add the lines of a source. Return where to continue if a limit was reached."""
        found = SourceMatches(name, info.source_file)
        context = 0 if self._only_counts else self._request.context
        before: deque[tuple[Lines, int]] = deque(maxlen=context or None) if context else deque(maxlen=0)
        after, stop, added = 0, None, False
        for lines in lines_of(reach.library.store, info, start.chunk, start.line_feeds):
            if self._has_read and thread_time() > self._end:
                return _Position(name, info.source_file, max(start.line, lines.first), lines.chunk, lines.line_feeds)
            self._has_read = True
            for number, text in enumerate(lines.texts, lines.first):
                is_match = number >= start.line and self._pattern.test(text) and self._meets(lines, number)
                if number < start.line or not (is_match or after):
                    before.append((lines, number))
                    continue
                shown = [*before, (lines, number)] if is_match else [(lines, number)]
                if not self._add(found, shown, is_match):
                    stop = _Position(name, info.source_file, number, lines.chunk, lines.line_feeds)
                    break
                if not added:
                    added = True
                    self._answer.sources.append(found)
                before.clear()
                after = context if is_match else after - 1
                if self._request.sources_only:
                    self._answer.chunks_read += info.chunks - lines.chunk
                    return None
            if stop is not None:
                return stop
            self._answer.chunks_read += lines.read
        return None

    def _meets(self, lines: Lines, number: int) -> bool:
        return self._condition is None or matches(self._condition, lines.chunk_at(lines.offset(number))[0].metadata)

    def _add(self, found: SourceMatches, shown: Sequence[tuple[Lines, int]], is_match: bool) -> bool:
        """Add a line and those before it; False if there is no room for them."""
        if self._only_counts:
            cost = 0 if found.matches else estimated_tokens(found.source) + 20
        else:
            new = [self._line(lines, number, is_match and number == shown[-1][1]) for lines, number in shown]
            cost = sum(estimated_tokens(one.text + one.table_header) + 10 + 8 * len(one.place) for one in new)
            cost += 0 if found.lines else estimated_tokens(found.source) + 20
        if cost > self._room and self._answer.sources:
            return False
        self._room -= cost
        if not self._only_counts:
            found.lines += new
        found.matches += is_match
        return True

    def _line(self, lines: Lines, number: int, is_match: bool) -> SourceLine:
        line = lines.texts[number - lines.first]
        text, begin, end = visible(line), 1, 1
        if is_match:
            begin, end = (len(visible(f"{line[:at]}|")) for at in self._pattern.span(line))
        if len(text) > LINE_CHARACTERS:
            last = len(text) - LINE_CHARACTERS
            start = max(0, min(last, (begin + end - LINE_CHARACTERS) // 2 - 1))
            text = "…" * (start > 0) + text[start : start + LINE_CHARACTERS] + "…" * (start < last)
        at = lines.chunk_at(lines.offset(number))
        return SourceLine(number, text, place_at(*at), is_match, begin, visible_line(row_header(*at), LIMIT))


def read(reach: Reach, request: ReadRequest) -> ReadAnswer:
    """Read lines. Raises `CallError`."""
    if request.line is not None and request.place is not None:
        raise CallError("give line or place, not both")
    name, info = find_source(reach, request.source, request.collection)
    first = request.line or 1
    if request.place is not None:
        first = _line_of_place(reach, info, request.place)
    start = max(1, first - request.before)
    stop, room, last = first + request.lines, request.max_tokens, 0
    found: list[SourceLine] = []
    place: Mapping[str, Any] | None = None
    store = reach.library.store
    for lines in lines_of(store, info, *chunk_before(store, info, start)):
        offset = 0
        for number, text in enumerate(lines.texts, lines.first):
            last, at = number, offset
            offset += len(text) + 1
            if number < start:
                continue
            if number >= stop:
                return ReadAnswer(name, info.source_file, found, number)
            begin = request.column - 1 if number == start else 0
            here = lines.place_at(at)
            shown = visible(text)[begin:]
            place = here if here != place else {}
            cost = estimated_tokens(shown) + 4 + 8 * len(place)
            if cost > room and found:
                note = f"cut at {request.max_tokens:,} tokens; continue with line {number}"
                return ReadAnswer(name, info.source_file, found, number, notes=[note])
            if cost > room:
                part = cut_to_tokens(shown, room)
                column = begin + len(part) + 1
                note = f"line {number} is cut; continue with line {number}, column {column}"
                cut = [SourceLine(number, part, here)]
                return ReadAnswer(name, info.source_file, cut, number, column, [note])
            found.append(SourceLine(number, shown, place))
            room, place = room - cost, here
    if not found:
        raise CallError(f"{info.source_file!r} has {numbered(last, 'line[|s]')}, so there is no line {start}")
    return ReadAnswer(name, info.source_file, found)


def outline(reach: Reach, request: OutlineRequest) -> OutlineAnswer:
    """List what a source consists of. Raises `CallError`."""
    name, info = find_source(reach, request.source, request.collection)
    entries, total, is_markdown, texts = list[OutlineEntry](), 0, False, list[str]()
    last: dict[str, Any] = {}
    for lines in lines_of(reach.library.store, info):
        for line, place in lines.places():
            for kind in ("part", "chapter", "sheet", "page"):
                if place.get(kind) not in (None, last.get(kind)):
                    entries.append(OutlineEntry(line, kind, visible_line(place[kind], 200)))
            last = place
        is_markdown |= any("section" in piece.chunk.metadata for _, piece in lines.pieces)
        texts += lines.texts
        total = lines.first + len(lines.texts) - 1
    if is_markdown:
        text, reached, line = "\n".join(texts), 0, 1
        for section in outline_of(text).sections:
            line, reached = line + text.count("\n", reached, section.start), section.start
            if section.title:
                entries.append(OutlineEntry(line, "heading", visible_line(section.title, 200), section.level))
    entries.sort(key=lambda one: (one.line, one.level))
    room, found = request.max_tokens, list[OutlineEntry]()
    for entry in entries:
        if entry.line >= request.line:
            room -= estimated_tokens(entry.title) + 12
            if room < 0 and found:
                return OutlineAnswer(name, info.source_file, found, total, entry.line)
            found.append(entry)
    return OutlineAnswer(name, info.source_file, found, total)


def sources(reach: Reach, request: SourcesRequest) -> SourcesAnswer:
    """List sources. Raises `CallError`."""
    found = selected_sources(reach, request)
    arguments = _hash(replace(request, cursor=None, max_tokens=0))
    at = _read_position(request.cursor, arguments) if request.cursor else _Position()
    room, page = request.max_tokens, list[ListedSource]()
    for name, info in found:
        if (name, info.source_file) < (at.collection, at.source):
            continue
        metadata = listed_metadata(info.metadata)
        room -= estimated_tokens(info.source_file + json.dumps(metadata, default=str)) + 20
        if room < 0 and page:
            return SourcesAnswer(page, len(found), True, _write_position(_Position(name, info.source_file), arguments))
        page.append(ListedSource(name, info.source_file, info.chunks, metadata))
    return SourcesAnswer(page, len(found))


def selected_sources(reach: Reach, request: SourcesRequest) -> list[tuple[str, SourceInfo]]:
    """Return the sources that a request selects, on all pages, with the names of their collections."""
    condition = _condition(reach, request.where)
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
    if collection is not None and collection not in names:
        raise CallError(
            f"no collection {collection[:100]!r}{did_you_mean(collection[:100], names)}; use {listed(names)}"
        )
    current = reach.library.scope.current_names().current
    found = []
    for info in reach.library.store.sources():
        name = current.get(info.collection)
        if name not in names or collection not in (None, name):
            continue
        if pattern is None or fnmatchcase(composed(info.source_file), composed(pattern)):
            found.append((name, info))
    return sorted(found, key=lambda one: (one[0], one[1].source_file))


def _condition(reach: Reach, where: Where | None) -> Where | None:
    if not where:
        return None
    try:
        return reach.library.scope.current_names().joined(None, normalise(where))
    except InvalidFilterError as error:
        raise CallError(f"where: {error}") from error


def _narrowed(
    reach: Reach, request: GrepRequest, known: Sequence[tuple[str, SourceInfo]]
) -> set[tuple[str, str]] | None:
    """Return the sources that have every inner word of a literal, by the index of words; None if that is unknown.

    A line may be divided between chunks, so sources are compared, not chunks. Only words of plain letters between
    blanks are whole words of the text for certain.
    """
    store = reach.library.store
    if request.regex or "text" not in store.abilities or len(known) < 2:
        return None
    inner = request.pattern.split(" ")
    inner = inner if request.words else inner[1:-1]
    sources: set[tuple[str, str]] | None = None
    for word in {word for word in inner if 3 <= len(word) <= 30 and word.isascii() and word.isalpha()}:
        with collect() as trace:
            found = store.search_text(word, NARROWED, every=True)
        if len(found) == NARROWED or any(stage.degraded for stage in trace.stages()):
            continue  # there may be more
        named = {(one.metadata.get("collection", ""), one.metadata.get("source_file", "")) for one in found}
        sources = named if sources is None else sources & named
    return sources


def _line_of_place(reach: Reach, info: SourceInfo, place: Mapping[str, Any]) -> int:
    """Return the first line at a place. Raises `CallError` if there is none."""
    seen: dict[str, list[Any]] = {key: [] for key in place}
    for lines in lines_of(reach.library.store, info):
        offset = 0
        for number, text in enumerate(lines.texts, lines.first):
            here = lines.place_at(offset)
            if all(here.get(key) == value for key, value in place.items()):
                return number
            for key, values in seen.items():
                if key in here and (not values or values[-1] != here[key]):
                    values.append(here[key])
            offset += len(text) + 1
    wanted = visible_line(json.dumps(place, ensure_ascii=False, default=str), 200)
    has = [f"{key} {_shown_range(values)}" for key, values in seen.items() if values]
    raise CallError(
        f"{info.source_file!r} has no place {wanted}; {'it has ' + ', '.join(has) if has else 'read by line'}"
    )


def _shown_range(values: list[Any]) -> str:
    first, last = visible_line(values[0], 60), visible_line(values[-1], 60)
    return first if first == last else f"{first} to {last}"


def _changes(at: _Position, sources: Sequence[tuple[str, SourceInfo]]) -> list[str]:
    """Name the sources that were replaced since the page before."""
    new = [info.source_file for _, info in sources if info.ingested_at > at.time]
    here = next((info for name, info in sources if (name, info.source_file) == (at.collection, at.source)), None)
    if at.source and (here is None or here.source_hash != at.hash) and at.source not in new:
        new.insert(0, at.source)
    shown = ", ".join(visible_line(name, 200) for name in new[:NAMED]) + (" …" if new[NAMED:] else "")
    return [
        f"changed since the last page: {shown or 'sources were removed'}; search again without cursor for all lines"
    ]


def _hash(*values: object) -> str:
    return sha256(repr(values).encode(errors="surrogatepass")).hexdigest()[:16]


def _write_position(at: _Position, arguments: str) -> str:
    values = [getattr(at, name) for name in _Position.__slots__]
    return urlsafe_b64encode(json.dumps([arguments, *values]).encode()).decode().rstrip("=")


def _read_position(cursor: str, arguments: str) -> _Position:
    """Read a cursor. A forged one gives access to nothing more: it only says where a search within limits begins."""
    try:
        first, *values = json.loads(urlsafe_b64decode(cursor[:10_000] + "=="))
        at = _Position(*values)
        if not all(isinstance(getattr(at, name), kind) for name, kind in _KINDS.items()) or at.chunk < 0 or at.line < 1:
            raise TypeError("not a position")
    except (ValueError, TypeError) as error:
        raise CallError(
            f"{cursor[:60]!r} is not a cursor; copy the cursor of the last answer, or leave it out"
        ) from error
    if first != arguments:
        raise CallError("the cursor belongs to other arguments; keep them, or leave out the cursor")
    return at


_KINDS: dict[str, Any] = {
    **dict.fromkeys(("collection", "source", "hash", "version"), str),
    **dict.fromkeys(("line", "chunk", "line_feeds", "read"), int),
    "time": (int, float),
}
