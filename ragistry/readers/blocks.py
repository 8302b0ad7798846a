"""What a reader makes of a document: blocks of Markdown, each with its place.

A reader is a function ``read(data: bytes, suffix: str) -> ReadDocument`` that runs in the process of `reader_worker`.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Kind = Literal["", "note", "comment", "header", "footer", "form", "annotation", "chart", "attachment"]

SEPARATOR = "\n\n"
"""The text between two blocks."""
REPAIR = "open it in the program that made it and save it again"
"""The remedy for a document that cannot be read."""
_REASONS: tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], str], ...] = (
    (MemoryError, "it needs more memory than there is"),
    (RecursionError, "it is nested too deeply"),
    (UnicodeError, "it has characters that its encoding does not allow"),
    ((EOFError, zlib.error, struct.error), "it is cut off or damaged"),
    (LookupError, "a part of it is missing"),
    (ArithmeticError, "a number in it is too large"),
    ((AssertionError, AttributeError, NotImplementedError, TypeError), "its parts do not match its format"),
)
_CODE = re.compile(r"\w\(|[\w.]+(?:Error|Exception)\b|NoneType|__|<\w|0x|^\S*$")
_WORD = re.compile(r"[^\W_]+")


class UnreadableFileError(Exception):
    """The file cannot be read. The message says why and what to do, and follows the file's name."""


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a block in its document.

    Attributes:
        page: Number of the page or slide, counted from 1; None for a document without pages.
        label: Number of the page as it is printed, if that differs from ``page``.
        sheet: Name of the sheet.
        cells: Range of cells, such as ``"A1:D20"``.
        chapter: Title of the chapter of a book.
        part: Name of a part of the document that is a document itself, such as an attachment.
        kind: What the block is besides the body of the document; empty for the body.
    """

    page: int | None = None
    label: str = ""
    sheet: str = ""
    cells: str = ""
    chapter: str = ""
    part: str = ""
    kind: Kind = ""


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, heading, list, table or code block as Markdown."""

    text: str
    place: Place = Place()


@dataclass(slots=True)
class ReadDocument:
    """The blocks of a document in reading order.

    Attributes:
        blocks: Blocks with text; a block without text only marks a page or sheet.
        info: ``Title``, ``Author``, ``Subject``, ``Keywords``, ``Created`` and ``Modified`` (ISO 8601), and ``Date``
            (as it is written), if known.
        lost: Number of words of each kind of content that the reader leaves out, such as ``{"hidden elements": 12}``.
        warnings: What a reader of the text should know, one line each.
        unread: What of the file was not read, such as attachments, one line each.
    """

    blocks: list[Block] = field(default_factory=list)
    info: dict[str, str] = field(default_factory=dict)
    lost: dict[str, int] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


def add_reports(document: ReadDocument, part: ReadDocument, name: str) -> None:
    """Add to a document what a part of it loses, leaves unread and warns about, under the name of the part."""
    for kind, count in part.lost.items():
        document.lost[kind] = document.lost.get(kind, 0) + count
    document.unread += [f"{name}: {line}" for line in part.unread]
    document.warnings += [f"{name}: {line}" for line in part.warnings]


def check_characters(characters: int, most: int) -> None:
    """Raise `UnreadableFileError` for a text that is longer than the limit."""
    if characters > most:
        raise UnreadableFileError(f"has more than {most:,} characters, the limit; split it or raise limits.characters")


def longest_text(size: int) -> int:
    """Return how many characters a text may have: repetitions in each other make millions of a few bytes."""
    return max(1_000_000, 200 * size)


def reason_of(error: BaseException) -> str:
    """Say why a document cannot be read, after an error that its reader did not expect, without names of code."""
    for kinds, reason in _REASONS:
        if isinstance(error, kinds):
            return reason
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    text = " ".join(said.split())[:200]
    return "its content is damaged" if _CODE.search(text) else text


def words_of(text: str) -> Counter[str]:
    """Count the words of a text, without case and punctuation."""
    return Counter(_WORD.findall(text.casefold()))


def with_notes(pages: Sequence[str], notes: Sequence[tuple[int, str]]) -> list[str]:
    """Return the pages of a PDF with their form fields and annotations at the end."""
    found = list(pages)
    for page, lines in notes:
        found[page - 1] = SEPARATOR.join(filter(None, (pages[page - 1], lines)))
    return found


def answer_of(document: ReadDocument) -> dict[str, Any]:
    """Return the document as JSON values: its ``text``, its ``places`` as ``[start, place]``, and the other fields."""
    parts: list[str] = []
    places: list[tuple[int, dict[str, Any]]] = []
    offset, last = 0, None
    for block in document.blocks:
        if block.place != last:
            last = block.place
            values = {name: value for name, value in asdict(block.place).items() if value}
            places.append((offset, values))
        if block.text.strip():
            parts.append(block.text.strip("\n"))
            offset += len(parts[-1]) + len(SEPARATOR)
    text = SEPARATOR.join(parts)
    return {
        "text": text,
        "places": [(min(start, len(text)), values) for start, values in places],
        "info": document.info,
        "lost": document.lost,
        "unread": document.unread,
        "warnings": document.warnings,
    }
