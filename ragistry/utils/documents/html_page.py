"""Web pages as Markdown.

kreuzberg converts them. What it drops or changes is rewritten before: formulas, raised and lowered digits, tables in
cells of tables.
"""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser

from kreuzberg import ExtractionConfig, extract_bytes_sync

from ragistry.utils.documents.blocks import Block, ReadDocument, missing_words
from ragistry.utils.documents.encoding import decode

_HEAD = re.compile(r"<head\b.*?</head\s*>|<!--.*?-->", re.DOTALL | re.IGNORECASE)
_TITLE = re.compile(r"<title\b[^>]*>(.*?)</title", re.DOTALL | re.IGNORECASE)
_META = re.compile(r"<meta\b[^>]*>", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"""\b(name|property|content)\s*=\s*("[^"]*"|'[^']*'|[^\s>]+)""", re.IGNORECASE)
_MATH = re.compile(r"<math\b([^>]*)>(.*?)</math\s*>", re.DOTALL | re.IGNORECASE)
_ALTTEXT = re.compile(r"""\balttext\s*=\s*("[^"]*"|'[^']*')""", re.IGNORECASE)
_ANNOTATION = re.compile(r"<annotation\b.*?</annotation\s*>", re.DOTALL | re.IGNORECASE)
_RAISED = re.compile(r"<(su[pb])\b[^>]*>((?:[^<]|<(?!/?su[pb]\b))*)</\1\s*>", re.IGNORECASE)
_TAG = re.compile(r"<[^>]*>")
_CELL_TABLE = re.compile(r"<(/?)(table|tr|td|th|thead|tbody|tfoot|caption|colgroup|col)\b[^>]*>", re.IGNORECASE)
_ENDS = {"tr": "; ", "td": ", ", "th": ", "}
_UP = str.maketrans("0123456789+-=()n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿ")
_DOWN = str.maketrans("0123456789+-=()", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎")
_META_NAMES = {"author": "Author", "description": "Subject", "keywords": "Keywords", "date": "Created"}


def read(data: bytes, suffix: str) -> ReadDocument:  # noqa: ARG001, one reader for all suffixes
    """Read a web page."""
    page = decode(data).text
    found = _TITLE.search(page)
    info = {"Title": unescape(found[1]).strip()} if found else {}
    for tag in _META.findall(page[:200_000]):
        values = {name.lower(): value.strip("\"'") for name, value in _ATTRIBUTE.findall(tag)}
        key = _META_NAMES.get(values.get("name", "").lower())
        if key and values.get("content"):
            info.setdefault(key, unescape(values["content"]))
    text = to_markdown(page)
    missing = missing_words([visible_text(page)], text)
    return ReadDocument([Block(text)], info, {"words": missing} if missing else {})


def to_markdown(page: str) -> str:
    """Convert the body of a page to Markdown."""
    body = _HEAD.sub("", page)
    body = _MATH.sub(_formula, body)
    body = _RAISED.sub(_raised, body)
    body = _without_inner_tables(body)
    config = ExtractionConfig(output_format="markdown", use_cache=False)
    return str(extract_bytes_sync(body.encode(errors="replace"), "text/html", config=config).content)


def _formula(found: re.Match[str]) -> str:
    alternative = _ALTTEXT.search(found[1])
    text = alternative[1][1:-1] if alternative else _TAG.sub(" ", _ANNOTATION.sub("", found[2]))
    return f" {' '.join(text.split())} "


def _raised(found: re.Match[str]) -> str:
    """``10<sup>6</sup>`` reads 10⁶; without such a character, ``x^(ab)``."""
    inner = _TAG.sub("", found[2]).strip()
    up = found[1].lower() == "sup"
    shifted = inner.translate(_UP if up else _DOWN)
    if not inner or (shifted != inner and not any(char in inner for char in shifted)):
        return shifted
    if inner.isalpha() and len(inner) > 1:
        return found[0]  # a word or an ending, such as that of "4th"
    mark = "^" if up else "_"
    return f"{mark}{inner}" if len(inner) == 1 else f"{mark}({inner})"


def _without_inner_tables(page: str) -> str:
    """Replace the tags of tables within tables by breaks, because a cell of a Markdown table cannot hold a table."""
    depth, parts, end = 0, [], 0
    for tag in _CELL_TABLE.finditer(page):
        is_table, closes = tag[2].lower() == "table", bool(tag[1])
        if is_table and not closes:
            depth += 1
        if depth > 1:
            mark = _ENDS.get(tag[2].lower(), " ") if closes else " "
            parts += [page[end : tag.start()], mark]
            end = tag.end()
        if is_table and closes:
            depth = max(0, depth - 1)
    return "".join([*parts, page[end:]])


class _Visible(HTMLParser):
    """Collects the text that a browser shows."""

    HIDDEN = frozenset(
        {"script", "style", "head", "title", "template", "noscript", "svg", "math", "select", "textarea"}
    )

    INLINE = frozenset(
        {"a", "abbr", "b", "bdi", "code", "em", "font", "i", "mark", "s", "small", "span", "strong", "sub"}
    )
    INLINE |= {"sup", "u", "wbr"}

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        self._hidden += tag in self.HIDDEN
        if tag not in self.INLINE:
            self.parts.append(" ")

    def handle_endtag(self, tag: str) -> None:
        self._hidden = max(0, self._hidden - (tag in self.HIDDEN))
        if tag not in self.INLINE:
            self.parts.append(" ")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.parts.append(data)


def visible_text(page: str) -> str:
    """Return the text that a browser shows, without markup."""
    parser = _Visible()
    parser.feed(_RAISED.sub(_raised, _MATH.sub(" ", _HEAD.sub("", page))))
    parser.close()
    return "".join(parser.parts)
