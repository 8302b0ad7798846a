"""Split the text of a passage into blocks: headings, paragraphs, list items, quotations, code, table rows.

Markdown is parsed. The lines of a PDF or a plain text are joined to paragraphs. Code keeps its lines. A block contains
only plain text, even if the passage contains HTML.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from html import unescape
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ragistry.readers.formats import MARKDOWN_EXTS, OFFICE_EXTS
from ragistry.utils.quoting import visible

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

Kind = Literal["heading", "paragraph", "item", "quote", "code", "row"]
StyleName = Literal["strong", "emphasis", "code", "match"]

MARKDOWN = MARKDOWN_EXTS | OFFICE_EXTS
BULLET = "•"
BETWEEN_CELLS = " │ "
HEADER_ROW = 1
"""Depth of the header row of a table that began before the passage."""

_SHORTCODE = re.compile(r"\{\{[<%].*?[%>]\}\}", re.DOTALL)
_TAG = re.compile(r"<!--.*?-->|</?[a-zA-Z][^<>]*>", re.DOTALL)
_REFERENCE = re.compile(r"\[([^\[\]]+)\]\[[^\[\]]*\]")
"""A link with its target outside of the passage."""
_ADMONITION = re.compile(r"\[!(\w+)\]\s*")
_ROWS = re.compile(r" {0,3}\|[^\n]*\|[ \t]*(?:\n(?!(?=[^\n-]*-)[ \t:-]*\|[ \t|:-]*(?:\n|\Z))|\Z)")
"""The first row of a table without its header, as in a passage that continues a table."""
_PARAGRAPH = re.compile(r"^[^\S\n]*\S[^\n]*(?:\n[^\S\n]*\S[^\n]*)*", re.MULTILINE)
"""Lines up to the next blank one."""
_ITEM = re.compile(r"(?P<marker>[-*•◦▪–]|\(?\d{1,3}[.)]|\(?[a-z]\))\s+(?=\S)")  # noqa: RUF001 - includes a dash
_CODE_LINE = re.compile(r"(?: {4}|\t)\s*\S")
_HYPHENATED = re.compile(r"[^\W\d_]-$")
SHORT = 0.6
"""A line shorter than this share of the longest in its paragraph ends a paragraph if a capital or digit follows."""


class Style(NamedTuple):
    """The style of a part ``[start, end)`` of a block's text."""

    start: int
    end: int
    name: StyleName


class PassageBlock(NamedTuple):
    """One block of a passage.

    Attributes:
        kind: Kind of the block.
        text: Its text, in one line except for code.
        styles: Styles of parts of the text.
        depth: Depth of a list item, from 0, or level of a heading; `HEADER_ROW` for a row of a table that began before.
        marker: Bullet or number of a list item, such as ``2.``; empty if the block continues an item.
        lines: Offsets of the text, each with the line of the passage that begins there, counted from 0; empty if the
            block is not from the passage.
    """

    kind: Kind
    text: str
    styles: tuple[Style, ...] = ()
    depth: int = 0
    marker: str = ""
    lines: tuple[tuple[int, int], ...] = ()

    def line_at(self, offset: int) -> int:
        """Return the line of the passage that a character is from; -1 if unknown."""
        start, line = next((one for one in reversed(self.lines) if one[0] <= offset), (0, -1))
        return line + self.text.count("\n", start, offset) if self.lines else -1


def blocks_of(text: str, metadata: Mapping[str, Any]) -> list[PassageBlock]:
    """Split a passage into blocks without invisible characters; the file name tells whether it is Markdown."""
    text = visible(text)
    name = str(metadata.get("source_file") or metadata.get("file_path") or metadata.get("source") or "")
    if PurePath(name).suffix.lower() in MARKDOWN and (blocks := list(_of_markdown(text))):
        return blocks
    return list(_of_lines(text))  # also for Markdown without visible text, such as link definitions


def line_of(text: str) -> PassageBlock:
    """Parse one line of Markdown, without invisible characters; HTML tags are plain text."""
    [token] = _parser(html=False).parseInline(visible(text))
    text, styles, _ = _inline(token)
    return PassageBlock("paragraph", text, styles)


# Markdown


@cache
def _parser(*, html: bool = True) -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": html}).enable(["table", "strikethrough"])


def _of_markdown(text: str) -> Iterator[PassageBlock]:
    counters: list[int | None] = []  # of each open list: the next number, or None for bullets
    marker, kind, level, quotes = "", "", 0, 0
    cells: list[PassageBlock] | None = None
    row = 0
    text = _SHORTCODE.sub(lambda mark: "\n" * mark[0].count("\n"), text)
    added = 0  # lines before those of the passage
    if rows := _ROWS.match(text):
        columns = rows[0].count("|") - 1
        text = f"|{' |' * columns}\n|{' - |' * columns}\n{text}"
        added = 2
    for token in _parser().parse(text):
        line = token.map[0] - added if token.map else 0
        match token.type:
            case "bullet_list_open":
                counters.append(None)
            case "ordered_list_open":
                counters.append(int(token.attrs.get("start", 1)))
            case "bullet_list_close" | "ordered_list_close":
                counters.pop()
            case "list_item_open":
                number = counters[-1]
                marker = BULLET if number is None else f"{number}."
                counters[-1] = None if number is None else number + 1
            case "blockquote_open":
                quotes += 1
            case "blockquote_close":
                quotes -= 1
            case "heading_open":
                kind, level = "heading", int(token.tag[1:])
            case "heading_close":
                kind = ""
            case "tr_open":
                cells, row = [], line
            case "tr_close":
                if cells and any(cell.text for cell in cells):
                    yield _row(cells)._replace(lines=((0, row),))
                cells = None
            case "fence" | "code_block":
                if token.content.strip():
                    first = line + (token.type == "fence")
                    yield PassageBlock("code", token.content.rstrip(), depth=len(counters), lines=((0, first),))
            case "html_block":
                plain = unescape(_TAG.sub(lambda tag: " " + "\n" * tag[0].count("\n"), token.content))
                words, starts = "", []
                for number, part in enumerate(plain.split("\n")):
                    if part := " ".join(part.split()):
                        words += " " if words else ""
                        starts.append((len(words), number))
                        words += part
                if words:
                    yield PassageBlock("paragraph", words, lines=_from(line, starts))
            case "inline":
                words, styles, starts = _inline(token)
                if quotes and (note := _ADMONITION.match(words)):
                    name = f"{note[1].capitalize()}: "
                    starts = [(max(0, start - note.end() + len(name)), number) for start, number in starts]
                    words, styles = name + words[note.end() :], ()
                lines = _from(line, starts)
                if cells is not None:
                    cells.append(PassageBlock("row", words, styles))
                elif words:
                    if kind == "heading":
                        yield PassageBlock("heading", words, styles, level, lines=lines)
                    elif counters:
                        yield PassageBlock("item", words, styles, len(counters) - 1, marker, lines)
                        marker = ""
                    else:
                        yield PassageBlock("quote" if quotes else "paragraph", words, styles, lines=lines)


def _from(first: int, starts: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    return tuple((start, first + number) for start, number in starts)


def _inline(line: Token) -> tuple[str, tuple[Style, ...], list[tuple[int, int]]]:
    """Return the text of a line and its styles; of a link its text, of an image its description.

    Also return the offset of each line of the source with its number, from 0. A code span may contain line ends, which
    the parser replaces by blanks, so lines are counted in the source.
    """
    text, styles = "", []
    source, starts, at = line.content, [(0, 0)], 0
    open_at: dict[str, list[int]] = {"strong": [], "emphasis": []}
    for token in line.children or []:
        if "\n" in source and token.content and (span := _find(token.content, source, at)):
            number, at = source.count("\n", 0, span[0]), span[1]
            if number > starts[-1][1]:
                starts.append((len(text), number))
        name = {"strong": "strong", "em": "emphasis"}.get(token.type.removesuffix("_open").removesuffix("_close"))
        if name is not None and token.type.endswith("_open"):
            open_at[name].append(len(text))
        elif name is not None and open_at[name]:
            styles.append(Style(open_at[name].pop(), len(text), "strong" if name == "strong" else "emphasis"))
        elif token.type == "code_inline":
            styles.append(Style(len(text), len(text) + len(token.content), "code"))
            text += token.content
        elif token.type in ("text", "image"):
            text += _REFERENCE.sub(r"\1", token.content)
        elif token.type in ("softbreak", "hardbreak") or token.content.startswith("<br"):
            text += " "
    return text.rstrip(), tuple(style for style in styles if style.start < style.end), starts


def _find(words: str, source: str, at: int) -> tuple[int, int] | None:
    """Find words from ``at`` on, also if line ends separate them."""
    start = source.find(words, at)
    if start >= 0:
        return start, start + len(words)
    found = re.compile(r"\s+".join(map(re.escape, words.split()))).search(source, at)
    return found.span() if found else None


def _row(cells: Sequence[PassageBlock]) -> PassageBlock:
    text, styles = "", []
    for number, cell in enumerate(cells):
        text += BETWEEN_CELLS if number else ""
        styles += [Style(len(text) + start, len(text) + end, name) for start, end, name in cell.styles]
        text += cell.text
    return PassageBlock("row", text, tuple(styles))


# Lines of PDFs and plain texts


def _of_lines(text: str) -> Iterator[PassageBlock]:
    for paragraph in _PARAGRAPH.finditer(text):
        lines = paragraph[0].split("\n")
        first = text.count("\n", 0, paragraph.start())
        if len(lines) > 1 and sum(bool(_CODE_LINE.match(line)) for line in lines) > len(lines) / 2:
            yield PassageBlock("code", paragraph[0].rstrip(), lines=((0, first),))
        else:
            yield from _reflowed([(number, " ".join(line.split())) for number, line in enumerate(lines, first)])


def _reflowed(lines: Sequence[tuple[int, str]]) -> Iterator[PassageBlock]:
    """Join numbered lines to paragraphs and list items, each in one line."""
    longest = max(len(line) for _, line in lines)
    text, marker, before = "", "", ""
    starts: list[tuple[int, int]] = []
    for number, line in lines:
        item = _ITEM.match(line)
        ends = len(before) < SHORT * longest and (line[0].isupper() or line[0].isdigit())
        if text and (item or ends):
            yield _paragraph(text, marker, starts)
            text, marker, starts = "", "", []
        before = line
        if item:
            line, marker = line[item.end() :], item["marker"]
        elif text and not _HYPHENATED.search(text):
            text += " "
        starts.append((len(text), number))
        text += line
    if text:
        yield _paragraph(text, marker, starts)


def _paragraph(text: str, marker: str, starts: Sequence[tuple[int, int]]) -> PassageBlock:
    if not marker:
        return PassageBlock("paragraph", text, lines=tuple(starts))
    return PassageBlock("item", text, marker=marker if marker[-1] in ".)" else BULLET, lines=tuple(starts))
