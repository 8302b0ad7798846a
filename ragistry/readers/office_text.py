"""Write the text of an office document: paragraphs, headings, lists, tables, notes, comments, headers and footers.

A format says what its elements are: `OfficeText.items` makes paragraphs and tables of them. How these become blocks, or
one line in a cell of a table, is the same for all formats.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ragistry.readers.blocks import Block, Kind, Place
from ragistry.readers.page_numbers import is_page_number
from ragistry.readers.word_processing import (
    FORMULA_EDGE,
    ListLines,
    comment_label,
    finish_text,
    link,
    raised,
    table_markdown,
    without_breaks,
)

Element = Any  # lxml has no type hints


class Line:
    """The text of a paragraph so far, and what follows it."""

    __slots__ = ("after", "has_page_field", "parts")

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.after: list[Any] = []  # blocks, and the elements of text boxes
        self.has_page_field = False

    def make_link(self, start: int, url: str) -> None:
        """Make a link of the pieces from a number on, with blanks for tabs and line breaks."""
        if url:
            text = "".join(self.parts[start:]).replace("\t", " ").replace(FORMULA_EDGE, "")
            self.parts[start:] = [link(without_breaks(text), url)]

    def raise_number(self, start: int, position: str) -> None:
        """Raise or lower the last piece if it is a number and the only one from a number on."""
        if len(self.parts) == start + 1:
            self.parts[start] = raised(self.parts[start], position)


@dataclass(slots=True)
class Paragraph:
    """A paragraph.

    Attributes:
        text: Finished text; lines are divided by line breaks.
        after: Blocks that follow the paragraph, and elements of texts that do.
        level: Level of a heading; 0 for other paragraphs.
        label: Number, or ``-`` for a bullet.
        depth: How deep it is in lists.
    """

    text: str
    after: list[Any] = field(default_factory=list)
    level: int = 0
    label: str = ""
    depth: int = 0


LIST_END = Paragraph("")
"""Divides two lists that follow each other."""


class Table(NamedTuple):
    """The rows of a table as finished texts; or the only cell of a frame, which is read as text around it is."""

    title: str
    rows: list[list[str]]
    frame: Element | None = None


class OfficeText:
    """Write a document in reading order. A subclass has the reader of a format."""

    ruby_tags = ("", "")
    """The names of the elements with the base of a ruby text and with its reading."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.place = Place()
        self._notes: deque[tuple[str, Element]] = deque()  # with their labels
        self._comments: deque[tuple[str, Element]] = deque()
        self._list = ListLines()
        self._later: list[Block] = []

    def items(self, parent: Iterable[Element]) -> Iterator[Paragraph | Table]:
        """Yield the paragraphs and tables in an element."""
        raise NotImplementedError

    def inline(self, parent: Iterable[Element], line: Line) -> None:
        """Add what is within a paragraph to its line."""
        raise NotImplementedError

    # Blocks

    def write(self, parent: Iterable[Element]) -> None:
        """Write what is in an element as blocks."""
        for item in self.items(parent):
            if isinstance(item, Table):
                self._write_table(item)
            elif item is LIST_END:
                self.emit(self._list.take())
            else:
                self._write_paragraph(item)

    def write_margins(self, kind: Kind, stories: Iterable[Element]) -> None:
        """Write headers or footers, equal ones once."""
        seen = set()
        self.place = Place(kind=kind)
        for story in stories:
            before, self.blocks = self.blocks, []
            self.write(story)
            self.flush()
            text = "\n".join(block.text for block in self.blocks)
            self.blocks = before if text in seen else before + self.blocks
            seen.add(text)
        self.place = Place()

    def emit(self, text: str, kind: Kind | None = None) -> None:
        """Add a block at the present place, or of another kind there."""
        if text:
            self.blocks.append(Block(text, self.place if kind is None else replace(self.place, kind=kind)))

    def flush(self) -> None:
        """End the list, and add what belongs after the paragraph or table that was just read."""
        self.emit(self._list.take())
        self._flush_later()

    def add_note(self, label: str, element: Element) -> None:
        """Write a note after the present paragraph or table."""
        self._notes.append((f"Note {label}".strip(), element))

    def add_comment(self, author: str | None, element: Element) -> None:
        """Write a comment after the present paragraph or table, and after its notes."""
        self._comments.append((comment_label(author or ""), element))

    def _flush_later(self) -> None:
        while self._later or self._notes or self._comments:
            self.emit(self._list.take())
            self.blocks += self._later
            self._later = []
            if waiting := self._notes or self._comments:
                kind: Kind = "note" if self._notes else "comment"
                label, element = waiting.popleft()
                if text := self.flat(element):
                    self.emit(f"[{label}: {text}]", kind)

    def _write_paragraph(self, paragraph: Paragraph) -> None:
        text, label = paragraph.text, paragraph.label
        is_heading = paragraph.level and not self.place.kind
        if text and label and not is_heading:
            self._list.add(paragraph.depth, label, text)
        elif text:
            self.emit(self._list.take())
            if is_heading:
                number = f"{label} " if label not in ("", "-") else ""
                text = f"{'#' * min(paragraph.level, 6)} {number}{without_breaks(text).lstrip(chr(92))}"
            self.emit(text)
        for item in paragraph.after:
            self.emit(self._list.take())
            if isinstance(item, Block):
                self.blocks.append(item)
            else:
                self.write(item)
        self._flush_later()

    def _write_table(self, table: Table) -> None:
        self.emit(self._list.take())
        self.emit(_title(table))
        if table.frame is not None:
            self.write(table.frame)
        else:
            self.emit(table_markdown(table.rows))
        self.flush()

    # One line

    def flat(self, parent: Iterable[Element]) -> str:
        """Return the text of paragraphs and tables in one line; charts and the like follow the block around them."""
        return " ".join(filter(None, self._pieces(parent)))

    def _pieces(self, parent: Iterable[Element]) -> Iterator[str]:
        for item in self.items(parent):
            if isinstance(item, Table):
                yield _title(item)
                for row in item.rows:
                    yield from row
                if item.frame is not None:
                    yield self.flat(item.frame)
                continue
            yield without_breaks(f"{item.label} {item.text}" if item.label and item.text else item.text)
            yield from self.following(item.after)

    def following(self, after: list[Any]) -> Iterator[str]:
        """Yield the texts that follow a paragraph, each in one line; blocks follow the block around it."""
        for item in after:
            if isinstance(item, Block):
                self._later.append(item)
            else:
                yield self.flat(item)

    # Within a paragraph

    def finished(self, line: Line) -> str:
        """Return the text of a line; a header or footer that is only the number of a page is left out."""
        text = finish_text(line.parts)
        is_margin = line.has_page_field and self.place.kind in ("header", "footer")
        return "" if is_margin and is_page_number(text) else text

    def ruby(self, element: Element, line: Line) -> None:
        """Add a text with its reading in parentheses."""
        for tag, form in zip(self.ruby_tags, ("{}", "({})"), strict=True):
            start = len(line.parts)
            for part in element.iterchildren(tag):
                self.inline(part, line)
            if text := "".join(line.parts[start:]):
                line.parts[start:] = [form.format(text)]


def _title(table: Table) -> str:
    return finish_text([f"[Table: {table.title}]"]) if table.title else ""
