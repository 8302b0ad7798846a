"""Web pages as Markdown, as a reader sees them.

libxml2 parses them. Its events, unlike its trees, have no limit of depth, and their time grows with the page alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from html import unescape

from lxml import etree

from ragistry.readers.blocks import Block, ReadDocument, words_of
from ragistry.readers.encoding import decode
from ragistry.readers.office_package import markdown_table
from ragistry.readers.word_processing import link

DEEPEST = 2_000
"""Open elements of a page at a time. libxml2 looks for the start of each end tag among all of them."""
CHUNK = 20_000
"""Characters that the parser gets at a time."""
DEEPEST_LIST, DEEPEST_TABLE, MOST_FILLERS = 20, 20, 10_000
"""Lists and tables inside each other that are shown as such, and empty cells below cells of several rows."""
_META_NAMES = {"author": "Author", "keywords": "Keywords", "date": "Created"}
_UNSEEN = frozenset({"script", "style", "template", "noscript", "head", "annotation", "annotation-xml"})
_INLINE = frozenset(
    {
        *("a", "abbr", "acronym", "b", "bdi", "bdo", "big", "button", "cite", "code", "data", "del", "dfn", "em"),
        *("font", "i", "img", "input", "ins", "kbd", "label", "link", "mark", "math", "meta", "meter", "nobr"),
        *("optgroup", "option", "output", "param", "picture", "progress", "q", "rb", "rp", "rt", "ruby", "s", "samp"),
        *("select", "small", "source", "span", "strike", "strong", "sub", "sup", "svg", "textarea", "time", "tt"),
        *("u", "var", "wbr"),
    }
)
"""Elements that do not end a line. Inside of `_DRAWN`, none does."""
_DRAWN = frozenset({"math", "svg"})
_VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
)
_MARKS = {
    **dict.fromkeys(("b", "strong"), "**"),
    **dict.fromkeys(("i", "em", "cite", "dfn", "var"), "*"),
    **dict.fromkeys(("s", "strike", "del"), "~~"),
    **dict.fromkeys(("code", "kbd", "samp", "tt"), "`"),
}
_HIDDEN_STYLE = re.compile(r"\b(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE)
_LANGUAGE = re.compile(r"\blang(?:uage)?-([\w+#-]+)")
_STRUCTURAL = re.compile(r"^(?=#{1,6}\s|[=-]+\s*$)", re.MULTILINE)
_MARKUP = re.compile(r"<!--.*?(?:-->|\Z)|<(script|style)\b.*?(?:</\1\s*>|\Z)|<[^<>]*>", re.DOTALL | re.IGNORECASE)
_BREAK = "\ue000"
"""Stands for a line break until the white space of a text is joined."""
_UP = str.maketrans("0123456789+-=()n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿ")
_DOWN = str.maketrans("0123456789+-=()", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎")


def read(data: bytes, suffix: str) -> ReadDocument:  # noqa: ARG001, one reader for all suffixes
    """Read a web page."""
    decoded = decode(data)
    page = read_page(decoded.text)
    page.warnings[:0] = filter(None, [decoded.warning])
    return page


def to_markdown(page: str) -> str:
    """Convert the body of a page to Markdown."""
    [block] = read_page(page).blocks
    return block.text


def read_page(page: str) -> ReadDocument:
    """Convert a page to one block of Markdown; one that is nested too deeply to its text without markup."""
    reader = _PageReader()
    parser = etree.HTMLParser(target=reader, encoding="utf-8", recover=True, huge_tree=True)
    try:
        # A page without an element, such as an empty one, is an error for lxml, which calls no event.
        with suppress(etree.LxmlError):
            for start in range(0, len(page), CHUNK):  # an exception of the target ends the parser after a chunk only
                parser.feed(page[start : start + CHUNK].encode(errors="replace"))
            parser.close()
    except _TooDeepError:
        warning = (
            f"more than {DEEPEST:,} of its elements are open at once, so its text was read without headings and tables"
        )
        return ReadDocument([Block(unescape(_MARKUP.sub(" ", page)))], warnings=[warning])
    reader.flush()
    hidden = words_of(" ".join(reader.hidden_text)).total()
    text = "".join(part for block in reader.blocks for part in block).strip("\n")
    title = " ".join("".join(reader.title).split())
    info = {"Title": title, **reader.info} if title else reader.info
    return ReadDocument([Block(text)], info, {"hidden elements": hidden} if hidden else {})


class _TooDeepError(Exception):
    """The page has too many open elements."""


@dataclass(slots=True)
class _Level:
    """A list item or a quotation: what its first line and its other lines begin with."""

    first: str
    rest: str


@dataclass(slots=True)
class _List:
    """An open list: the number of its next item, if it counts them, and whether it has none yet."""

    number: int | None
    is_new: bool = True


@dataclass(slots=True)
class _Table:
    """An open table: its rows of cells of blocks, and what is around it."""

    outer: list[tuple[str, str]]
    levels: list[_Level]
    is_layout: bool
    has_header: bool = False
    rows: list[list[list[tuple[str, str]]]] = field(default_factory=list)
    below: dict[int, int] = field(default_factory=dict)
    """Number of rows that each column still shares with a cell above."""


class _PageReader:
    """Turns the events of a page into blocks: pairs of what separates it from the block before, and its text."""

    def __init__(self) -> None:
        self.blocks: list[tuple[str, str]] = []
        self.info: dict[str, str] = {}
        self.title: list[str] = []
        self.hidden_text: list[str] = []
        self._open: list[str] = []
        self._parts: list[str] = []
        self._spans: list[tuple[int, str, str]] = []  # where a mark, link or raised text begins in the parts
        self._unseen = self._hidden = self._drawn = self._pre = 0  # the depth at which each began
        self._in_title = self._first_option = False
        self._language = ""
        self._levels: list[_Level] = []
        self._lists: list[_List] = []
        self._tables: list[_Table] = []
        self._fillers = MOST_FILLERS
        self._separator = "\n\n"
        self._heading = 0

    def close(self) -> None:
        """End of the page; lxml asks for this method."""

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._open.append(tag)
        depth = len(self._open)
        if depth > DEEPEST:
            raise _TooDeepError
        if self._unseen or self._hidden:
            self._in_title = tag == "title"
            if tag == "meta" and (key := _META_NAMES.get(attributes.get("name", "").lower())):
                self.info.setdefault(key, " ".join(attributes.get("content", "").split()))
            return
        style = attributes.get("style", "")
        if tag in _UNSEEN:
            self._unseen = depth
        elif tag not in _VOID and ("hidden" in attributes or (style and _HIDDEN_STYLE.search(style))):
            self._hidden = depth
        elif self._drawn:
            self._parts.append(" ")
        elif tag in _INLINE:
            self._start_inline(tag, attributes, depth)
        elif tag == "br":
            self._parts.append("\n" if self._pre else _BREAK)
        else:
            self.flush()
            self._start_block(tag, attributes, depth)

    def data(self, text: str) -> None:
        if self._hidden:
            self.hidden_text.append(text)
        elif self._in_title:
            self.title.append(text)
        elif not self._unseen:
            self._parts.append(text)

    def end(self, tag: str) -> None:
        depth = len(self._open)
        self._open.pop()
        self._in_title = False
        if self._unseen or self._hidden:
            self._unseen = self._unseen if self._unseen != depth else 0
            self._hidden = self._hidden if self._hidden != depth else 0
        elif self._drawn:
            if self._drawn == depth:
                self._drawn = 0
                self._parts.append(" ")
        elif tag in _INLINE:
            self._end_inline(tag)
        elif tag != "br":
            self.flush()
            self._end_block(tag, depth)

    def _start_inline(self, tag: str, attributes: Mapping[str, str], depth: int) -> None:
        shown = ""
        if tag == "img":
            shown = attributes.get("alt", "").strip() or attributes.get("title", "").strip()
            shown = f"[Picture: {shown}]" if shown else ""
        elif tag == "input":
            shown = _field(attributes)
        elif tag in _DRAWN:
            shown = f" {attributes.get('alttext', '')} "
            if shown.strip():
                self._unseen = depth
            else:
                self._drawn = depth
        elif tag == "optgroup":
            shown = f" {attributes.get('label', '')}: "
        elif tag == "option":
            shown = "" if self._first_option else "; "
            shown += "☒ " if "selected" in attributes else ""
            shown += attributes.get("label") or (attributes.get("value", "") if "datalist" in self._open[-2:] else "")
            self._first_option = False
        elif tag in ("select", "textarea", "button"):
            shown, self._first_option = " ", True
        elif tag == "q":
            shown = "“"
        elif tag == "code" and self._pre and not self._language:
            self._language = _language(attributes)
        self._parts += [shown] if shown else []
        href = attributes.get("href", "").strip()
        if self._pre or any(one[1] == tag for one in self._spans):
            return  # the mark of an inner element says nothing new
        if tag == "a":
            self._spans.append((len(self._parts), tag, href))
        elif tag in ("abbr", "acronym") and (title := attributes.get("title", "").strip()):
            self._spans.append((len(self._parts), tag, title))
        elif tag in _MARKS or tag in ("sub", "sup"):
            self._spans.append((len(self._parts), tag, ""))

    def _end_inline(self, tag: str) -> None:
        if tag == "q":
            self._parts.append("”")
        elif tag in ("select", "textarea", "button"):
            self._parts.append(" ")
        if not self._spans or self._spans[-1][1] != tag:
            return
        begin, _, value = self._spans.pop()
        raw = "".join(self._parts[begin:])
        text = raw.strip()
        if not text:
            return
        before, _, after = raw.partition(text)
        raised = any(one[1] in ("sub", "sup") for one in self._spans)
        if tag in ("sub", "sup"):
            text = _raised(text, up=tag == "sup")
        elif raised:
            pass
        elif tag == "a":
            text = link(text.replace(_BREAK, " "), value)
        elif tag in ("abbr", "acronym"):
            text = f"{text} ({value})"
        elif _BREAK not in text:
            text = f"{_MARKS[tag]}{text}{_MARKS[tag]}"
        self._parts[begin:] = [before, text, after]

    def _start_block(self, tag: str, attributes: Mapping[str, str], depth: int) -> None:
        match tag:
            case "h1" | "h2" | "h3" | "h4" | "h5" | "h6":
                self._heading = int(tag[1])
            case "pre" if not self._pre:
                self._pre = depth
                self._language = _language(attributes)
            case "ul" | "ol" | "menu" | "dir":
                start = attributes.get("start", "").strip()
                number = int(start) if start.isdecimal() and len(start) < 10 else 1
                self._lists.append(_List(number if tag == "ol" else None))
            case "li":
                self._start_item()
            case "blockquote":
                self._levels.append(_Level("> ", "> ") if len(self._levels) < DEEPEST_LIST else _Level("", ""))
            case "dd":
                self._separator = "\n"
            case "table":
                is_layout = attributes.get("role") in ("presentation", "none")
                self._tables.append(_Table(self.blocks, self._levels, is_layout))
                self._levels = []
            case "tr" if self._tables:
                self._tables[-1].rows.append([])
            case "td" | "th" if self._tables:
                self._start_cell(tag, attributes)
            case "datalist":
                self._first_option = True
            case "area":
                self._parts.append(attributes.get("alt", ""))

    def _end_block(self, tag: str, depth: int) -> None:
        match tag:
            case "h1" | "h2" | "h3" | "h4" | "h5" | "h6":
                self._heading = 0
            case "pre" if self._pre == depth:
                self._pre = 0
            case "ul" | "ol" | "menu" | "dir" if self._lists:
                self._lists.pop()
            case "li" | "blockquote" if self._levels:
                self._levels.pop()
            case "td" | "th" if self._tables:
                self.blocks = self._tables[-1].outer
            case "table" if self._tables:
                self._end_table(self._tables.pop())

    def _start_item(self) -> None:
        items = self._lists[-1] if self._lists else _List(None)
        mark = "- " if items.number is None else f"{items.number}. "
        if not items.is_new or len(self._lists) > 1:
            self._separator = "\n"
        items.is_new = False
        items.number = None if items.number is None else items.number + 1
        deep = len(self._levels) >= DEEPEST_LIST
        self._levels.append(_Level("", "") if deep else _Level(mark, " " * len(mark)))

    def _start_cell(self, tag: str, attributes: Mapping[str, str]) -> None:
        table = self._tables[-1]
        if not table.rows:
            table.rows.append([])
        row = table.rows[-1]
        while table.below.get(len(row), 0) > 0 and self._fillers > 0:
            table.below[len(row)] -= 1
            self._fillers -= 1
            row.append([])
        table.has_header |= tag == "th"
        rows = attributes.get("rowspan", "")
        if rows.isdecimal() and int(rows[:9]) > 1:
            table.below[len(row)] = int(rows[:9]) - 1
        self.blocks = []
        row.append(self.blocks)

    def _end_table(self, table: _Table) -> None:
        self.blocks, self._levels = table.outer, table.levels
        rows = [row for row in table.rows if any(row)]
        if not rows:
            return
        width = max(map(len, rows))
        inner = len(self._tables)
        if inner and (inner > DEEPEST_TABLE or any(one.has_header for one in self._tables)):
            text = "; ".join(", ".join(filter(None, (_cell(cell) for cell in row))) for row in rows)
            self._add(text)
        elif table.is_layout or width == 1 or (not table.has_header and _has_structure(rows)):
            for row in rows:
                for cell in row:
                    for self._separator, text in cell:
                        self._add(text)
        else:
            self._add(markdown_table([[_cell(cell).replace("|", "\\|") for cell in row] for row in rows]))

    def flush(self) -> None:
        """End the block that was begun."""
        raw = "".join(self._parts)
        self._parts, self._spans = [], []
        if self._pre:
            if raw.strip():
                self._add(fenced(raw.strip("\n").rstrip(), self._language))
            return
        lines = [" ".join(line.split()) for line in raw.split(_BREAK)]
        text = "\n".join(lines).strip("\n")
        if not text:
            return
        if self._heading:
            self._add(f"{'#' * self._heading} {' '.join(text.split())}")
        else:
            self._add(_STRUCTURAL.sub(r"\\", text))

    def _add(self, text: str) -> None:
        separator, self._separator = self._separator, "\n\n"
        first = "".join(level.first for level in self._levels)
        rest = "".join(level.rest for level in self._levels)
        for level in self._levels:
            level.first = level.rest
        self.blocks.append((separator, first + text.replace("\n", f"\n{rest}")))


def fenced(code: str, language: str) -> str:
    """Return code as a block of Markdown."""
    fence = "````" if "```" in code else "```"
    return f"{fence}{language}\n{code}\n{fence}"


def _cell(blocks: list[tuple[str, str]]) -> str:
    return " ".join(" ".join(text for _, text in blocks).split())


def _has_structure(rows: list[list[list[tuple[str, str]]]]) -> bool:
    """Return whether a cell has headings, code or a table: then the table only arranges them."""
    return any(text.startswith(("#", "```", "| ")) for row in rows for cell in row for _, text in cell)


def _language(attributes: Mapping[str, str]) -> str:
    found = _LANGUAGE.search(attributes.get("class", ""))
    return found[1] if found else ""


def _field(attributes: Mapping[str, str]) -> str:
    """Return what a field of a form shows."""
    kind = attributes.get("type", "text").lower()
    if kind in ("hidden", "password"):
        return ""
    if kind in ("checkbox", "radio"):
        return " ☒ " if "checked" in attributes else " ☐ "
    shown = attributes.get("value") or attributes.get("placeholder") or attributes.get("alt") or ""
    return f" {shown} "


def _raised(text: str, *, up: bool) -> str:
    """``10<sup>6</sup>`` reads 10⁶; without such a character, ``x^(ab)``."""
    shifted = text.translate(_UP if up else _DOWN)
    if shifted != text and not any(char in text for char in shifted):
        return shifted
    if text.isalpha() and len(text) > 1:
        return text  # a word or an ending, such as that of "4th"
    mark = "^" if up else "_"
    return f"{mark}{text}" if len(text) == 1 else f"{mark}({text})"
