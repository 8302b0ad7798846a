"""Find the tables of a text, whose header rows the chunks that continue them carry."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ragistry.chunking.breadcrumb import TABLE_HEADER
from ragistry.readers.formats import suffix_of
from ragistry.types import Document

DELIMITERS = {".csv": ",;\t", ".tsv": "\t"}
LIMIT = 500
"""Most characters of a header row."""
WIDE = 3
"""Length of a character outside of ASCII, of which models make more tokens."""

_RULE = re.compile(r"^(?=[^\n-]*-)[ \t:-]*+\|[ \t|:-]*+$", re.MULTILINE)
_BLANK_LINE = re.compile(r"\n[ \t]*(?=\n|\Z)")
_LETTER = re.compile(r"[^\W\d_]")
_WORD = re.compile(r"\w")
_LONGEST_RECORD = 20_000


class TableRange(NamedTuple):
    """A table ``text[start:stop]`` below its header row, as offsets into the text."""

    start: int
    stop: int
    header: str


def markdown_tables(text: str, size: int) -> list[TableRange]:
    """Return the tables of a Markdown text. ``size``: most characters of a header."""
    return list(_markdown_tables(text, min(size, LIMIT))) if "|" in text else []


def _markdown_tables(text: str, size: int) -> Iterator[TableRange]:
    done = 0
    for rule in _RULE.finditer(text):
        above = rule.start() - 1
        if above < done:
            continue
        line = text[max(done, text.rfind("\n", done, above) + 1) : above].strip()
        if "|" not in line:
            continue
        blank = _BLANK_LINE.search(text, rule.end())
        done = blank.start() if blank else len(text)
        if header := _shortened(line, "|", size):
            yield TableRange(rule.start(), done, header)


def delimited_table(text: str, delimiters: str, size: int) -> list[TableRange]:
    """Return a text with one record per line as a table, unless its first record has no letters."""
    start = len(text) - len(text.lstrip())
    stop = text.find("\n", start)
    while 0 <= stop < start + _LONGEST_RECORD and text.count('"', start, stop) % 2:
        stop = text.find("\n", stop + 1)
    if not 0 <= stop < start + _LONGEST_RECORD:
        return []
    line = " ".join(text[start:stop].split())
    delimiter = max(delimiters, key=line.count)
    header = _shortened(line, delimiter, min(size, LIMIT))
    return [TableRange(stop, len(text), header)] if _LETTER.search(header) else []


def header_at(tables: Sequence[TableRange], start: int) -> str:
    """Return the header of the table in which a chunk starts; empty if it starts in none."""
    at = bisect_right(tables, start, key=lambda table: table.start) - 1
    return tables[at].header if at >= 0 and start < tables[at].stop else ""


def row_header(chunk: Document, offset: int) -> str:
    """Return the header row of the table in which a line of a chunk lies, by its offset; empty if it lies in none."""
    text, known = chunk.content, chunk.metadata
    above, delimiters = known.get(TABLE_HEADER), DELIMITERS.get(suffix_of(str(known.get("source_file"))), "")
    if above and (delimiters or not _BLANK_LINE.search(text, 0, max(0, offset - 1))):
        return str(above)
    is_first = delimiters and not known.get("chunk_index")
    return header_at(delimited_table(text, delimiters, LIMIT) if is_first else markdown_tables(text, LIMIT), offset)


def _shortened(line: str, delimiter: str, size: int) -> str:
    """Return the line, or as many of its cells as fit; empty for a line without words."""
    length = 0
    for at, character in enumerate(line):
        length += 1 if character < "\x80" else WIDE
        if length > size:
            end = line.rfind(delimiter, 0, at)
            line = line[: end + (delimiter == "|")].rstrip() if end > 0 else line[:at]
            break
    return line if _WORD.search(line) else ""
