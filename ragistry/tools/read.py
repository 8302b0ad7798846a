"""The tool ``read``: lines of a source, from a line or a place on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ragistry.chunking.joined import chunk_before, lines_of
from ragistry.presentation.hits import place_text
from ragistry.tools.failures import CallError
from ragistry.tools.line_patterns import LINE_CHARACTERS
from ragistry.tools.reach import Reach
from ragistry.tools.result_text import QUOTED
from ragistry.tools.sources import find_source
from ragistry.tools.tokens import cut_to_tokens, estimated_tokens
from ragistry.tools.tool import COLLECTION, SOURCE, TOKENS, Tool
from ragistry.types import SourceInfo
from ragistry.utils.quoting import visible, visible_line
from ragistry.utils.wording import numbered

PLACE = ("part", "sheet", "chapter", "page", "page_label")
"""The part of a place that stands behind lines with numbers."""


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

    source: str = field(metadata=SOURCE)
    collection: str | None = field(default=None, metadata=COLLECTION)
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
    has = []
    for key, values in seen.items():
        ends = dict.fromkeys(visible_line(value, 60) for value in values[:1] + values[-1:])
        has += [f"{key} {' to '.join(ends)}"] if ends else []
    raise CallError(
        f"{info.source_file!r} has no place {wanted}; {'it has ' + ', '.join(has) if has else 'read by line'}"
    )


def read_text(found: ReadAnswer) -> str:
    """Write the lines of a source."""
    head = f"{visible_line(found.source)} [{found.collection}]"
    lines = [head, *numbered_lines(found.lines), *(f"[{note}]" for note in found.notes)]
    if found.next_line is not None and not found.notes:
        lines.append(f"[more: line {found.next_line}]")
    return "\n".join([*lines, QUOTED])


def numbered_lines(lines: list[SourceLine]) -> list[str]:
    """Write lines as ``12: text``, those around a match as ``12- text``, each place and table header where it changes.

    The column of a long line says where its match begins.
    """
    written, place, header = [], "", ""
    for one in lines:
        if one.table_header not in ("", header):
            written.append(f"  columns: {one.table_header}")
        header = one.table_header or one.text
        here = place_text({key: one.place[key] for key in PLACE if key in one.place})
        told = [here] if here not in ("", place) else []
        if one.column > 1 and len(one.text) > LINE_CHARACTERS:
            told.append(f"column {one.column}")
        place = here or place
        written.append(
            f"  {one.line}{':' if one.match else '-'} {one.text}" + (f"  ({', '.join(told)})" if told else "")
        )
    return written


READ = Tool(
    "read",
    "Read lines",
    "Read lines of a source, from a line or a place that grep, outline or a search names.",
    ReadRequest,
    ReadAnswer,
    read,
    read_text,
)
