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

from ragistry.utils.documents.formats import MARKDOWN_EXTS, OFFICE_EXTS
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
_BLANK_LINES = re.compile(r"\n(?:[^\S\n]*\n)+")
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


class Block(NamedTuple):
    """One block of a passage.

    Attributes:
        kind: Kind of the block.
        text: Its text, in one line except for code.
        styles: Styles of parts of the text.
        depth: Depth of a list item, from 0, or level of a heading; `HEADER_ROW` for a row of a table that began before.
        marker: Bullet or number of a list item, such as ``2.``; empty if the block continues an item.
    """

    kind: Kind
    text: str
    styles: tuple[Style, ...] = ()
    depth: int = 0
    marker: str = ""


def blocks_of(text: str, metadata: Mapping[str, Any]) -> list[Block]:
    """Split a passage into blocks without invisible characters; the file name tells whether it is Markdown."""
    text = visible(text)
    name = str(metadata.get("source_file") or metadata.get("file_path") or metadata.get("source") or "")
    if PurePath(name).suffix.lower() in MARKDOWN and (blocks := list(_of_markdown(text))):
        return blocks
    return list(_of_lines(text))  # also for Markdown without visible text, such as link definitions


def line_of(text: str) -> Block:
    """Parse one line of Markdown, without invisible characters; HTML tags are plain text."""
    [token] = _parser(html=False).parseInline(visible(text))
    return Block("paragraph", *_inline(token.children or []))


# Markdown


@cache
def _parser(*, html: bool = True) -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": html}).enable(["table", "strikethrough"])


def _of_markdown(text: str) -> Iterator[Block]:
    counters: list[int | None] = []  # of each open list: the next number, or None for bullets
    marker, kind, level, quotes = "", "", 0, 0
    cells: list[Block] | None = None
    text = _SHORTCODE.sub("", text)
    if rows := _ROWS.match(text):
        columns = rows[0].count("|") - 1
        text = f"|{' |' * columns}\n|{' - |' * columns}\n{text}"
    for token in _parser().parse(text):
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
                cells = []
            case "tr_close":
                if cells and any(cell.text for cell in cells):
                    yield _row(cells)
                cells = None
            case "fence" | "code_block":
                if token.content.strip():
                    yield Block("code", token.content.rstrip(), depth=len(counters))
            case "html_block":
                words = " ".join(unescape(_TAG.sub(" ", token.content)).split())
                if words:
                    yield Block("paragraph", words)
            case "inline":
                words, styles = _inline(token.children or [])
                if quotes and (note := _ADMONITION.match(words)):
                    words, styles = f"{note[1].capitalize()}: {words[note.end() :]}", ()
                if cells is not None:
                    cells.append(Block("row", words, styles))
                elif words:
                    if kind == "heading":
                        yield Block("heading", words, styles, level)
                    elif counters:
                        yield Block("item", words, styles, len(counters) - 1, marker)
                        marker = ""
                    else:
                        yield Block("quote" if quotes else "paragraph", words, styles)


def _inline(children: Sequence[Token]) -> tuple[str, tuple[Style, ...]]:
    """Return the text of a line and its styles; of a link its text, of an image its description."""
    text, styles = "", []
    open_at: dict[str, list[int]] = {"strong": [], "emphasis": []}
    for token in children:
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
    return text.rstrip(), tuple(style for style in styles if style.start < style.end)


def _row(cells: Sequence[Block]) -> Block:
    text, styles = "", []
    for number, cell in enumerate(cells):
        text += BETWEEN_CELLS if number else ""
        styles += [Style(len(text) + start, len(text) + end, name) for start, end, name in cell.styles]
        text += cell.text
    return Block("row", text, tuple(styles))


# Lines of PDFs and plain texts


def _of_lines(text: str) -> Iterator[Block]:
    for paragraph in _BLANK_LINES.split(text.strip("\n")):
        lines = paragraph.split("\n")
        if len(lines) > 1 and sum(bool(_CODE_LINE.match(line)) for line in lines) > len(lines) / 2:
            yield Block("code", paragraph.rstrip())
        else:
            yield from _reflowed([" ".join(line.split()) for line in lines if line.strip()])


def _reflowed(lines: Sequence[str]) -> Iterator[Block]:
    """Join lines to paragraphs and list items, each in one line."""
    longest = max(map(len, lines), default=0)
    text, marker = "", ""
    for before, line in zip(["", *lines], lines, strict=False):
        item = _ITEM.match(line)
        ends = len(before) < SHORT * longest and (line[0].isupper() or line[0].isdigit())
        if text and (item or ends):
            yield _paragraph(text, marker)
            text, marker = "", ""
        if item:
            text, marker = line[item.end() :], item["marker"]
        else:
            text = f"{text}{line}" if not text or _HYPHENATED.search(text) else f"{text} {line}"
    if text:
        yield _paragraph(text, marker)


def _paragraph(text: str, marker: str) -> Block:
    if not marker:
        return Block("paragraph", text)
    return Block("item", text, marker=marker if marker[-1] in ".)" else BULLET)
