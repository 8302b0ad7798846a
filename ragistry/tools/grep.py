"""The tool ``grep``: the lines of the texts that contain a pattern."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from time import thread_time

from ragistry.chunking.joined import Lines, lines_of
from ragistry.chunking.places import place_at
from ragistry.chunking.table_headers import LIMIT, row_header
from ragistry.tools.cursor import mark_of, read_cursor, write_cursor
from ragistry.tools.failures import CallError
from ragistry.tools.line_patterns import LINE_CHARACTERS, LinePattern
from ragistry.tools.reach import Reach
from ragistry.tools.read import SourceLine, numbered_lines
from ragistry.tools.result_text import QUOTED
from ragistry.tools.sources import sources_in, stored_condition
from ragistry.tools.tokens import estimated_tokens
from ragistry.tools.tool import COLLECTION, CURSOR, TOKENS, Tool
from ragistry.trace import collect
from ragistry.types import SourceInfo, Where
from ragistry.utils.quoting import visible, visible_line
from ragistry.utils.where import matches
from ragistry.utils.wording import numbered

SECONDS = 2.0
"""Processor time after which a page of `grep` ends."""
CHUNKS_AT_ONCE = 2_000
"""Number of chunks whose texts are searched before their lines are built."""
NARROWED = 1_000
"""Maximum number of passages with a word that narrow a search."""
NAMED = 5
"""Maximum number of changed sources that are named."""
Name = tuple[str, str]
"""Collection and name of a source in the store."""


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
    collection: str | None = field(default=None, metadata=COLLECTION)
    source: str | None = field(default=None, metadata={"description": "Only sources of this name; * and ? allowed."})
    where: Where | None = field(default=None, metadata={"description": 'Condition on metadata: {"page": {"$gte": 3}}.'})
    context: int = field(
        default=0, metadata={"description": "Lines around each match.", "short": "-C", "ge": 0, "le": 20}
    )
    count: bool = field(default=False, metadata={"description": "Only count lines."})
    sources_only: bool = field(default=False, metadata={"description": "Only list sources.", "short": "-l"})
    max_tokens: int = field(default=4_000, metadata=TOKENS)
    cursor: str | None = field(default=None, metadata=CURSOR)


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
class _Position:
    """Where a search continues: a source, and in it a line and the chunk in which the line begins."""

    collection: str = ""
    source: str = ""
    line: int = field(default=1, metadata={"ge": 1})
    chunk: int = field(default=0, metadata={"ge": 0})
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
    condition = stored_condition(reach, request.where)
    all_sources = sources_in(reach, request.collection, request.source)
    answer = GrepAnswer(chunks=sum(info.chunks for _, info in all_sources))
    version = mark_of(*((info.collection, info.source_file, info.source_hash, info.chunks) for _, info in all_sources))
    mark = mark_of(replace(request, cursor=None, max_tokens=0))
    at = read_cursor(request.cursor, _Position, mark)
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
            answer.has_more, answer.cursor = True, write_cursor(stop, mark)
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
        self, request: GrepRequest, answer: GrepAnswer, pattern: LinePattern, condition: Where | None, end: float
    ) -> None:
        self._request, self._answer, self._pattern, self._condition = request, answer, pattern, condition
        self._room, self._end = request.max_tokens, end
        self._has_read = False
        self._only_counts = request.count or request.sources_only

    def search(self, reach: Reach, name: str, info: SourceInfo, start: _Position) -> _Position | None:
        """Add the lines of a source. Return where to continue if a limit was reached."""
        found = SourceMatches(name, info.source_file)
        context = 0 if self._only_counts else self._request.context
        before = deque[tuple[Lines, int]](maxlen=context)
        after = 0
        for lines in lines_of(reach.library.store, info, start.chunk, start.line_feeds):
            if self._has_read and thread_time() > self._end:
                return _Position(name, info.source_file, max(start.line, lines.first), lines.chunk, lines.line_feeds)
            self._has_read = True
            for number, text in enumerate(lines.texts, lines.first):
                is_match = number >= start.line and self._pattern.test(text)
                if is_match and self._condition is not None:
                    is_match = matches(self._condition, lines.chunk_at(lines.offset(number))[0].metadata)
                if number < start.line or not (is_match or after):
                    before.append((lines, number))
                    continue
                shown = [*before, (lines, number)] if is_match else [(lines, number)]
                is_first = not found.matches
                if not self._add(found, shown, is_match):
                    return _Position(name, info.source_file, number, lines.chunk, lines.line_feeds)
                if is_first:
                    self._answer.sources.append(found)
                before.clear()
                after = context if is_match else after - 1
                if self._request.sources_only:
                    self._answer.chunks_read += info.chunks - lines.chunk
                    return None
            self._answer.chunks_read += lines.read
        return None

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


def grep_text(found: GrepAnswer) -> str:
    """Write found lines, grouped by source."""
    parts = []
    for one in found.sources:
        head = f"{visible_line(one.source)} [{one.collection}]" + (f": {one.matches}" if one.matches else "")
        parts.append("\n".join([head, *numbered_lines(one.lines)]))
    parts = parts or ["No line matches." if not found.has_more else "No line matches so far."]
    parts += [f"[{note}]" for note in found.notes]
    if found.cursor:
        parts.append(f'[To continue, call again with the same arguments and cursor "{found.cursor}".]')
    return "\n\n".join([*parts, QUOTED])


GREP = Tool(
    "grep",
    "Find lines",
    "Find the lines of the documents that contain a pattern, exactly: names, numbers, codes, quotations. "
    "For questions use search_library.",
    GrepRequest,
    GrepAnswer,
    grep,
    grep_text,
)
