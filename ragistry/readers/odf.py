"""Read OpenDocument texts and presentations (.odt, .odp) as Markdown from the XML parts of the file.

The text that odfdo writes has no headers, footers, fields, shapes, charts and formulas, and its Markdown none of a
presentation; with its elements the same walk would be needed. The parts are therefore read with lxml, which opens
nothing outside of the file.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from ragistry.readers.blocks import REPAIR, Block, Kind, Place, ReadDocument, UnreadableFileError
from ragistry.readers.formulas import mathml_formula
from ragistry.readers.office_package import Package, picture_text, properties
from ragistry.readers.page_numbers import is_page_number
from ragistry.readers.word_processing import (
    FORMULA_EDGE,
    ListLines,
    finish_text,
    format_number,
    link,
    raised,
    table_markdown,
    without_breaks,
)

MOST_REPEATED = 100
"""Repetitions of a cell with text, and cells of a row with its repetitions, that are written."""
MOST_COLUMNS = 2_000
MOST_BLANKS = 100

Element = Any  # lxml has no type hints

_URN = "urn:oasis:names:tc:opendocument:xmlns:"
OFFICE, TEXT, TABLE, DRAW, STYLE, SVG, FORM, CHART, PRESENTATION = (
    f"{{{_URN}{name}:1.0}}"
    for name in ("office", "text", "table", "drawing", "style", "svg-compatible", "form", "chart", "presentation")
)
LOEXT = "{urn:org:documentfoundation:names:experimental:office:xmlns:loext:1.0}"
XLINK = "{http://www.w3.org/1999/xlink}"
DC = "{http://purl.org/dc/elements/1.1/}"
MATH = "{http://www.w3.org/1998/Math/MathML}math"
XML_ID = "{http://www.w3.org/XML/1998/namespace}id"

_SPACES = re.compile(r"[ \t\r\n]+")
_OMITTED = frozenset(
    {TEXT + "tracked-changes", TEXT + "script", TEXT + "note-citation", TEXT + "label", OFFICE + "forms"}
    | {OFFICE + name for name in ("scripts", "event-listeners", "annotation-end", "binary-data")}
    | {PRESENTATION + name for name in ("settings", "notes", "header-decl", "footer-decl", "date-time-decl")}
    | {PRESENTATION + name for name in ("header", "footer", "date-time")}
    | {SVG + "title", SVG + "desc", STYLE + "style", TABLE + "calculation-settings"}
    | {f"{TEXT}{name}-source" for name in ("table-of-content", "illustration-index", "table-index", "object-index")}
    | {f"{TEXT}{name}-source" for name in ("user-index", "alphabetical-index", "bibliography")}
)
_ANIMATION = "{urn:oasis:names:tc:opendocument:xmlns:animation:1.0}"


def read(data: bytes, suffix: str) -> ReadDocument:
    """Read an OpenDocument text or presentation.

    Args:
        data: Content of the file.
        suffix: ``.odt`` or ``.odp``.

    Raises:
        UnreadableFileError: The file is broken, encrypted or neither a text nor a presentation.
    """
    package = _Package(data)
    if package.is_encrypted():
        raise UnreadableFileError("is encrypted; open it with its password and save it without one")
    content = package.xml("content.xml") if "content.xml" in package.names else None
    if "content.xml" in package.damaged:
        raise UnreadableFileError(f"has broken XML in content.xml; {REPAIR}")
    body = None if content is None else content.find(OFFICE + "body")
    if body is None:
        raise UnreadableFileError(f"is not a {suffix or '.odt'} document; {REPAIR}")
    try:
        reader = _Reader(package, content)
        reader.read(body)
    except RecursionError as error:
        raise UnreadableFileError(f"has elements that are nested too deeply; {REPAIR}") from error
    info = properties(package.xml("meta.xml") if "meta.xml" in package.names else None)
    return ReadDocument(reader.blocks, info, warnings=package.warnings(reader.embedded))


class _Package(Package):
    """The parts of the file."""

    def xml(self, name: str) -> Element | None:
        """Return the root element of a part, or None without one."""
        return super().xml(name) if name.casefold() in self.names else None

    def is_encrypted(self) -> bool:
        """Return whether the list of parts says how they are encrypted."""
        manifest = self.xml("META-INF/manifest.xml")
        return manifest is not None and next(manifest.iter("{*}encryption-data"), None) is not None


def _number(text: str | None, default: int, most: int = 10**9) -> int:
    try:
        return min(int(text or ""), most)
    except ValueError:
        return default


# --- Styles ---


class _Level(NamedTuple):
    style: str
    """Format of the number; ``bullet`` for a sign."""
    prefix: str
    suffix: str
    shown: int
    start: int


_FORMATS = {"1": "decimal", "a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman", "": "none"}


def _levels(style: Element) -> dict[int, _Level]:
    levels = {}
    for item in style:
        at = _number(item.get(TEXT + "level"), 0)
        if item.tag in (TEXT + "list-level-style-number", TEXT + "outline-level-style"):
            name = _FORMATS.get(item.get(STYLE + "num-format", ""), "decimal")
            prefix, suffix = item.get(STYLE + "num-prefix", ""), item.get(STYLE + "num-suffix", "")
            shown = _number(item.get(TEXT + "display-levels"), 1, 10)
            levels[at] = _Level(name, prefix, suffix, shown, _number(item.get(TEXT + "start-value"), 1))
        elif at:
            levels[at] = _Level("bullet", "", "", 1, 1)
    return levels


def _position(text: str) -> str:
    """Return ``super`` or ``sub`` for the start of a ``text-position``, which may be a share of the height."""
    if text.endswith("%"):
        return "sub" if text.startswith("-") else "" if text == "0%" else "super"
    return text


_AUTOMATIC = re.compile(r"P\d+")
"""Names of styles that an office program makes when a paragraph differs from its style."""


class _Styles:
    """The styles of the document that change what is read."""

    def __init__(self, roots: Iterable[Element | None]) -> None:
        self.lists: dict[str, dict[int, _Level]] = {}
        self.outline: dict[int, _Level] = {}
        self._parents: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._list_names: dict[str, str] = {}
        self.positions: dict[str, str] = {}
        self._displays: dict[str, str] = {}
        for root in roots:
            for style in () if root is None else root.iter(STYLE + "style"):
                self._add(style)
            for style in () if root is None else root.iter(TEXT + "list-style"):
                self.lists[style.get(STYLE + "name", "")] = _levels(style)
            for style in () if root is None else root.iter(TEXT + "outline-style"):
                self.outline = _levels(style)

    def _add(self, style: Element) -> None:
        name = style.get(STYLE + "name", "")
        family = style.get(STYLE + "family")
        if family not in ("paragraph", "text"):
            return
        shown = style.find(STYLE + "text-properties")
        if shown is not None:
            if position := shown.get(STYLE + "text-position"):
                self.positions[name] = _position(position.split()[0])
            if display := shown.get(TEXT + "display"):
                self._displays[name] = display
        self._parents[name] = style.get(STYLE + "parent-style-name", "")
        if family == "paragraph":
            self._names[name] = style.get(STYLE + "display-name", name)
            if list_name := style.get(STYLE + "list-style-name"):
                self._list_names[name] = list_name

    def _line(self, name: str) -> Iterator[str]:
        seen = set()
        while name and name not in seen:
            seen.add(name)
            yield name
            name = self._parents.get(name, "")

    def hides(self, name: str) -> bool | None:
        """Return whether a style hides text; None if neither it nor one that it is based on says so."""
        if not self._displays:
            return None
        display = next((self._displays[above] for above in self._line(name) if above in self._displays), None)
        return None if display is None else display == "none"

    def level(self, name: str) -> int:
        """Return the level of a heading in a paragraph style; 0 for other paragraphs."""
        for above in [name, self._parents.get(name, "")] if _AUTOMATIC.fullmatch(name) else [name]:
            shown = self._names.get(above, above).replace("_20_", " ")
            if match := re.fullmatch(r"Heading ([1-9])", shown):
                return int(match[1])
            if shown == "Title":
                return 1
        return 0

    def list_name(self, name: str) -> str:
        """Return the name of the list style of a paragraph style."""
        return next((self._list_names[above] for above in self._line(name) if above in self._list_names), "")


def _label(levels: dict[int, _Level], depth: int, counts: dict[int, int]) -> str:
    """Return the number of an item on a level from 1; ``-`` for a bullet."""
    level = levels.get(depth)
    if level is None or level.style == "bullet":
        return "-"
    numbers = []
    for at in range(max(1, depth - level.shown + 1), depth + 1):
        other = levels.get(at)
        if other is not None and other.style not in ("bullet", "none"):
            numbers.append(format_number(counts.get(at, other.start), other.style))
    if level.style == "none":
        return (level.prefix + level.suffix).strip()
    return f"{level.prefix}{'.'.join(filter(None, numbers))}{level.suffix}".strip()


# --- The text ---


class _Line:
    """The text of a paragraph so far, and what follows it."""

    __slots__ = ("after", "parts")

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.after: list[Any] = []  # elements of text boxes, and blocks


class _Reader:
    """Walk through the document in reading order."""

    def __init__(self, package: _Package, content: Element) -> None:
        self.blocks: list[Block] = []
        self._package = package
        self._objects: set[str] = set()  # each is read once
        self.embedded = 0  # files of other programs
        self._styles_root = package.xml("styles.xml")
        self._styles = _Styles([self._styles_root, content])
        self.positions = self._styles.positions
        self._hidden = False  # whether the style of the text around hides it
        self._forms = {
            key: control
            for control in content.iter()
            if isinstance(control.tag, str) and control.tag.startswith(FORM)
            for key in (control.get(FORM + "id"), control.get(XML_ID))
            if key
        }
        self._kind: Kind = ""
        self._page: int | None = None
        self._list = ListLines()
        self._later: list[Block] = []
        self._waiting: list[tuple[str, Kind, Element]] = []
        self._outline: dict[int, int] = {}
        self._ended: dict[str, dict[int, int]] = {}  # numbers at the end of lists, by style and by identifier
        self._notes = {"footnote": 0, "endnote": 0}
        self._repeated: set[str] = set()  # headers and footers of slides
        self._page_field = False

    def read(self, body: Element) -> None:
        """Fill the blocks."""
        presentation = body.find(OFFICE + "presentation")
        if presentation is None:
            self._margins()
            self._children(body)
            self._flush()
            return
        self._slides(presentation)

    def _margins(self) -> None:
        """Headers and footers of the pages, once each."""
        masters = None if self._styles_root is None else self._styles_root.find(OFFICE + "master-styles")
        for kind in ("header", "footer"):
            seen = set()
            tags = [STYLE + kind + end for end in ("", "-first", "-left")]
            for part in () if masters is None else masters.iter(*tags):
                if part.get(STYLE + "display") == "false":
                    continue
                before, self.blocks, self._kind = self.blocks, [], kind
                self._children(part)
                self._flush()
                text = "\n".join(block.text for block in self.blocks)
                self.blocks = before + ([] if text in seen else self.blocks)
                seen.add(text)
        self._kind = ""

    def _slides(self, presentation: Element) -> None:
        masters = None if self._styles_root is None else self._styles_root.find(OFFICE + "master-styles")
        tags = STYLE + "master-page", STYLE + "handout-master", PRESENTATION + "notes"
        for master in () if masters is None else masters.iter(*tags):
            for shape in master.iterchildren(*_SHAPES):
                if shape.get(PRESENTATION + "class") in _MARGIN_CLASSES:
                    self._add_margin([shape], shape.get(PRESENTATION + "class"))
                elif not shape.get(PRESENTATION + "class") and shape.get(PRESENTATION + "placeholder") != "true":
                    self._kind = "header"
                    self._children([shape])
                    self._flush()
                    self._kind = ""
        for declared in presentation.iterchildren(*(PRESENTATION + kind + "-decl" for kind in _MARGIN_CLASSES)):
            kind = declared.tag.removeprefix(PRESENTATION).removesuffix("-decl")
            if kind != "date-time" or declared.get(PRESENTATION + "source") == "fixed":
                self._add_margin(finish_text([_SPACES.sub(" ", declared.text or "")]), kind)
        for at, slide in enumerate(presentation.iterchildren(DRAW + "page"), 1):
            self._page = at
            self.blocks.append(Block("", Place(page=at)))
            titles = [frame for frame in slide.iterchildren() if frame.get(PRESENTATION + "class") == "title"]
            title = " ".join(filter(None, map(self._flat, titles)))
            self._emit(f"## {title or f'Slide {at}'}")
            self._flush()
            self._children([shape for shape in slide if shape not in titles])
            self._flush()
            for notes in slide.iterchildren(PRESENTATION + "notes"):
                frames = [frame for frame in notes if frame.get(PRESENTATION + "class") not in _MARGIN_CLASSES]
                if text := " ".join(filter(None, map(self._flat, frames))):
                    self._emit(f"[Notes: {text}]", "note")
                self._flush()
                for frame in notes:
                    if frame not in frames:
                        self._add_margin([frame], frame.get(PRESENTATION + "class"))
        self._page = None

    def _add_margin(self, content: str | list[Element], kind: str) -> None:
        """Add a header or footer of slides, notes or handouts, once."""
        outer, self._kind = self._kind, "header" if kind == "header" else "footer"
        text = content if isinstance(content, str) else self._flat(content)
        if text not in self._repeated:
            self._repeated.add(text)
            self._emit(text)
        self._flush()
        self._kind = outer

    # Blocks

    def _place(self, kind: Kind | None = None) -> Place:
        return Place(page=self._page, kind=self._kind if kind is None else kind)

    def _emit(self, text: str, kind: Kind | None = None) -> None:
        if text:
            self.blocks.append(Block(text, self._place(kind)))

    def _flush(self) -> None:
        """End the list, and add what belongs after the paragraph or table that was just read."""
        self._emit(self._list.take())
        self._flush_later()

    def _flush_later(self) -> None:
        while self._later or self._waiting:
            self._emit(self._list.take())
            self.blocks += self._later
            self._later = []
            waiting, self._waiting = self._waiting, []
            for label, kind, element in sorted(waiting, key=lambda item: item[1] == "comment"):
                if text := self._flat(element):
                    self._emit(f"[{label}: {text}]", kind)

    def _children(self, parent: Iterable[Element]) -> None:
        for child in parent:
            tag = child.tag
            if tag in (TEXT + "p", TEXT + "h"):
                self._add_paragraph(child)
            elif tag == TEXT + "list":
                self._add_list(child)
                self._emit(self._list.take())
            elif tag == TABLE + "table":
                self._add_table(child)
            elif tag == TEXT + "numbered-paragraph":
                self._children(child)
            elif tag in _INLINE:
                line = _Line()
                _INLINE[tag](self, child, line)
                self._add(finish_text(line.parts), line.after)
            elif tag not in _OMITTED and not self._is_hidden(child) and not tag.startswith(_ANIMATION):
                self._children(child)

    def _add(self, text: str, after: list[Any], mark: str = "", item: tuple[int, str] | None = None) -> None:
        if text and item is not None:
            self._list.add(*item, text)
        elif text:
            self._emit(self._list.take())
            self._emit(f"{mark}{without_breaks(text).lstrip(chr(92))}" if mark else text)
        for follower in after:
            self._emit(self._list.take())
            if isinstance(follower, Block):
                self.blocks.append(follower)
            else:
                self._children(follower)
        if self._later or self._waiting:
            self._flush_later()

    def _add_paragraph(self, element: Element, item: tuple[int, str] | None = None) -> None:
        text, after = self._paragraph(element)
        level = self._heading_level(element)
        if not level or self._kind or not text:
            self._add(text, after, "", item)
            return
        label = self._chapter(element, level) if item is None else item[1]
        self._add(text, after, f"{'#' * min(level, 6)} {f'{label} ' if label not in ('', '-') else ''}")

    def _heading_level(self, element: Element) -> int:
        if element.tag == TEXT + "h":
            return max(1, _number(element.get(TEXT + "outline-level"), 1, 10))
        return self._styles.level(element.get(TEXT + "style-name", ""))

    def _chapter(self, element: Element, level: int) -> str:
        """Count a heading and return its number."""
        if element.tag != TEXT + "h" or element.get(TEXT + "is-list-header") == "true":
            return ""
        number = element.find(TEXT + "number")
        if number is not None:
            return ""  # it is in the text
        levels = self._styles.outline
        start = levels[level].start if level in levels else 1
        self._outline[level] = self._outline.get(level, start - 1) + 1
        for deeper in [at for at in self._outline if at > level]:
            del self._outline[deeper]
        label = _label(levels, level, self._outline) if level in levels else ""
        return "" if label == "-" else label

    def _add_list(
        self, element: Element, depth: int = 1, style: str = "", counts: dict[int, int] | None = None
    ) -> None:
        for at, label, part in self._items(element, depth, style, counts):
            if part.tag in (TEXT + "p", TEXT + "h"):
                self._add_paragraph(part, (at, label) if label else None)
            else:
                self._children([part])

    def _items(
        self, element: Element, depth: int = 1, style: str = "", counts: dict[int, int] | None = None
    ) -> Iterator[tuple[int, str, Element]]:
        """Yield the paragraphs and tables of a list with the depth and the number of their item."""
        style = element.get(TEXT + "style-name") or style
        if not style:
            first = next(element.iter(TEXT + "p", TEXT + "h"), None)
            style = "" if first is None else self._styles.list_name(first.get(TEXT + "style-name", ""))
        levels = self._styles.lists.get(style, {})
        if counts is None:
            counts = {}
            if element.get(TEXT + "continue-numbering") == "true":
                counts = dict(self._ended.get(f"style {style}", {}))
            if other := element.get(TEXT + "continue-list"):
                counts = dict(self._ended.get(f"list {other}", counts))
        for item in element:
            if item.tag not in (TEXT + "list-item", TEXT + "list-header"):
                continue
            label = ""
            if item.tag == TEXT + "list-item" and _has_text(item):
                start = levels[depth].start if depth in levels else 1
                counts[depth] = _number(item.get(TEXT + "start-value"), counts.get(depth, start - 1) + 1)
                for deeper in [at for at in counts if at > depth]:
                    del counts[deeper]
                label = _label(levels, depth, counts)
            for part in item:
                if part.tag == TEXT + "list":
                    yield from self._items(part, depth + 1, style, counts)
                elif part.tag != TEXT + "number" and part.tag not in _OMITTED:
                    yield depth, label, part
                    label = "" if part.tag in (TEXT + "p", TEXT + "h") else label
        if depth == 1:
            self._ended[f"style {style}"] = counts
            if name := element.get(XML_ID):
                self._ended[f"list {name}"] = counts

    def _add_table(self, table: Element) -> None:
        self._emit(self._list.take())
        if text := _described(table, TABLE):
            self._emit(finish_text([f"[Table: {text}]"]))
        self._emit(table_markdown([*self._rows(table)]))
        self._flush()

    def _rows(self, parent: Element) -> Iterator[list[str]]:
        for child in parent:
            tag = child.tag
            if tag == TABLE + "table-row":
                row = self._row(child)
                if any(row):
                    most = max(1, MOST_REPEATED // sum(map(bool, row)))
                    for _ in range(_number(child.get(TABLE + "number-rows-repeated"), 1, most)):
                        yield row
            elif tag == TABLE + "title" or tag == TABLE + "desc":
                continue
            elif tag not in _OMITTED:
                yield from self._rows(child)

    def _row(self, row: Element) -> list[str]:
        texts: list[str] = []
        for cell in row.iterchildren(TABLE + "table-cell", TABLE + "covered-table-cell"):
            text = self._flat(cell)
            count = _number(cell.get(TABLE + "number-columns-repeated"), 1, MOST_REPEATED if text else MOST_COLUMNS)
            if len(texts) < MOST_COLUMNS or text:
                texts += [text] * max(count, 1)
        return texts

    def _flat(self, parent: Iterable[Element]) -> str:
        return " ".join(filter(None, self._pieces(parent)))

    def _pieces(self, parent: Iterable[Element]) -> Iterator[str]:
        """Yield the text of paragraphs and tables in one line; charts and the like follow the block around them."""
        for child in parent:
            tag = child.tag
            if tag in (TEXT + "p", TEXT + "h"):
                text, after = self._paragraph(child)
                yield without_breaks(text)
                yield from self._followers(after)
            elif tag == TEXT + "list":
                for _, label, part in self._items(child):
                    text = self._flat([part])
                    yield f"{label} {text}" if label and text else text
            elif tag == TABLE + "table":
                if text := _described(child, TABLE):
                    yield without_breaks(finish_text([f"[Table: {text}]"]))
                for row in self._rows(child):
                    yield from row
            elif tag in _INLINE:
                line = _Line()
                _INLINE[tag](self, child, line)
                yield without_breaks(finish_text(line.parts))
                yield from self._followers(line.after)
            elif tag not in _OMITTED and tag not in _ABOUT_COMMENTS and not self._is_hidden(child):
                yield from self._pieces(child)

    def _followers(self, after: list[Any]) -> Iterator[str]:
        for item in after:
            if isinstance(item, Block):
                self._later.append(item)
            else:
                yield self._flat(item)

    # Paragraphs

    def _paragraph(self, element: Element) -> tuple[str, list[Any]]:
        line = _Line()
        self._page_field = False
        if not self._is_hidden(element):
            outer, self._hidden = self._hidden, bool(self._styles.hides(element.get(TEXT + "style-name", "")))
            self._inline(element, line)
            self._hidden = outer
        text = finish_text(line.parts)
        if self._page_field and self._kind in ("header", "footer") and is_page_number(text):
            text = ""
        return text, line.after

    def _inline(self, element: Element, line: _Line) -> None:
        self._text(element.text, line)
        for child in element:
            tag = child.tag
            if (handle := _INLINE.get(tag)) is not None:
                handle(self, child, line)
            elif tag in (TEXT + "p", TEXT + "h", TEXT + "list", TABLE + "table"):
                line.after.append([child])
            elif tag not in _OMITTED and not self._is_hidden(child):
                self._inline(child, line)
            self._text(child.tail, line)

    def _is_hidden(self, element: Element) -> bool:
        shown = element.get(TEXT + "is-hidden")
        is_hidden = element.get(TEXT + "display") == "none" or shown == "true"
        return bool(is_hidden or (element.tag == TEXT + "hidden-text" and shown != "false"))

    def _text(self, text: str | None, line: _Line) -> None:
        if text and not self._hidden:
            text = _SPACES.sub(" ", text)
            if text[0] == " " and line.parts and line.parts[-1].endswith(" "):
                text = text[1:]
            line.parts.append(text)

    def _span(self, element: Element, line: _Line) -> None:
        style = element.get(TEXT + "style-name", "")
        before = len(line.parts)
        hides = self._styles.hides(style)
        outer, self._hidden = self._hidden, self._hidden if hides is None else hides
        self._inline(element, line)
        self._hidden = outer
        if style in self.positions and len(line.parts) == before + 1:
            line.parts[before] = raised(line.parts[before], self.positions[style])

    def _blanks(self, element: Element, line: _Line) -> None:
        line.parts.append(" " * _number(element.get(TEXT + "c"), 1, MOST_BLANKS))

    def _tab(self, _element: Element, line: _Line) -> None:
        line.parts.append("\t")

    def _break(self, _element: Element, line: _Line) -> None:
        line.parts.append("\n")

    def _link(self, element: Element, line: _Line) -> None:
        inner = _Line()
        self._inline(element, inner)
        line.after += inner.after
        text = "".join(inner.parts).replace("\t", " ").replace("\n", " ")
        line.parts.append(link(text or "Link" * bool(inner.after), element.get(XLINK + "href", "")))

    def _number(self, element: Element, line: _Line) -> None:
        line.parts.append(f"{''.join(element.itertext())}\t")

    def _page_number(self, element: Element, line: _Line) -> None:
        self._page_field = True
        if not (element.text or "").startswith("<"):  # "<number>" on a master
            self._inline(element, line)

    def _ruby(self, element: Element, line: _Line) -> None:
        for name, form in ((TEXT + "ruby-base", "{}"), (TEXT + "ruby-text", "({})")):
            inner = _Line()
            for part in element.iterchildren(name):
                self._inline(part, inner)
            line.parts.append(form.format("".join(inner.parts)) if inner.parts else "")

    def _note(self, element: Element, _line: _Line) -> None:
        kind = "endnote" if element.get(TEXT + "note-class") == "endnote" else "footnote"
        self._notes[kind] += 1
        citation = (element.findtext(TEXT + "note-citation") or "").strip()
        body = element.find(TEXT + "note-body")
        if body is not None:
            self._waiting.append((f"Note {citation or self._notes[kind]}", "note", body))

    def _comment(self, element: Element, _line: _Line) -> None:
        author = (element.findtext(DC + "creator") or "").strip()
        self._waiting.append((f"Comment by {author}" if author else "Comment", "comment", element))

    # Frames, shapes and objects

    def _frame(self, element: Element, line: _Line) -> None:
        """Read a frame or shape: its text follows the paragraph, and its alternative text replaces it."""
        described = [_described(element, SVG)]
        described += [_described(area, SVG) for areas in element.iterchildren(DRAW + "image-map") for area in areas]
        objects = [child for child in element if child.tag in (DRAW + "object", DRAW + "object-ole")]
        for child in objects:
            self._object(child, line)
        line.parts += [f"\t[Picture: {text}]\t" for text in described if text]
        for click in element.iterfind("{*}event-listeners/{*}event-listener"):
            line.parts += ["\t", link("Link", click.get(XLINK + "href", "#")), "\t"]
        if element.tag == DRAW + "g":
            for child in element:
                if child.tag in _INLINE:
                    _INLINE[child.tag](self, child, line)
            return
        line.after.append([child for child in element if child not in objects])

    def _object(self, element: Element, line: _Line) -> None:
        inside = next((child for child in element if isinstance(child.tag, str)), None)
        if inside is not None:
            self._embedded(inside, line)
            return
        href = element.get(XLINK + "href", "")
        folder = posixpath.normpath(href.removeprefix("./"))
        name = f"{folder}/content.xml"
        if not href or ":" in href or name in self._objects:
            return
        self._objects.add(name)
        root = self._package.xml(name)
        if root is not None:
            self._embedded(root, line)
        elif folder.casefold() in self._package.names:
            self.embedded += 1

    def _embedded(self, root: Element, line: _Line) -> None:
        if root.tag == MATH:
            line.parts += [FORMULA_EDGE, " ".join(mathml_formula(root).split()), FORMULA_EDGE]
            return
        chart = next(root.iter(CHART + "chart"), None)
        if chart is None:
            body = next(root.iter(OFFICE + "body"), None)
            if body is not None:
                line.after.append(body)
            return
        titles = [self._flat(item) for item in chart.iter(CHART + "title", CHART + "subtitle")]
        named = [title for title in titles if title]
        rows = [row for table in chart.iterchildren(TABLE + "table") for row in self._rows(table)]
        head = f"Chart: {'. '.join(named)}" if named else "Chart"
        line.after.append(Block("\n\n".join(filter(None, [head, table_markdown(rows)])), self._place("chart")))

    def _control(self, element: Element, line: _Line) -> None:
        """Add a field of a form, with its label."""
        control = self._forms.get(element.get(DRAW + "control", ""))
        if control is None:
            return
        kind = control.tag.removeprefix(FORM)
        text = " ".join((control.get(FORM + "label") or control.get(FORM + "title") or "").split())
        if kind in ("checkbox", "radio"):
            state = control.get(FORM + "current-state") or control.get(FORM + "state") or ""
            selected = state == "checked" or control.get(FORM + "current-selected") == "true"
            text = f"{'☒' if selected else '☐'} {text}"
        else:
            value = control.get(FORM + "current-value") or control.get(FORM + "value") or ""
            chosen = [item.get(FORM + "label", "") for item in control if item.get(FORM + "current-selected") == "true"]
            values = [value, *chosen, *(" ".join(item.itertext()) for item in control.iterchildren(TEXT + "p"))]
            text = ": ".join(filter(None, [text, ", ".join(filter(None, values))]))
        line.parts.append(f"\t{text}\t")


_MARGIN_CLASSES = {"header", "footer", "date-time", "page-number", "page"}
_ABOUT_COMMENTS = {DC + "creator", DC + "date", f"{{{_URN}meta:1.0}}date-string", LOEXT + "sender-initials"}
_ABOUT_COMMENTS |= {f"{{{_URN}meta:1.0}}creator-initials"}
_SHAPES = frozenset(
    DRAW + name
    for name in (
        *("frame", "custom-shape", "rect", "line", "polyline", "polygon", "regular-polygon", "path", "circle"),
        *("ellipse", "connector", "caption", "measure", "g", "page-thumbnail"),
    )
) | {f"{{{_URN}dr3d:1.0}}scene"}
_INLINE: dict[str, Callable[[_Reader, Element, _Line], None]] = {
    TEXT + "span": _Reader._span,
    TEXT + "s": _Reader._blanks,
    TEXT + "tab": _Reader._tab,
    TEXT + "line-break": _Reader._break,
    TEXT + "a": _Reader._link,
    DRAW + "a": _Reader._link,
    TEXT + "ruby": _Reader._ruby,
    TEXT + "note": _Reader._note,
    TEXT + "number": _Reader._number,
    TEXT + "page-number": _Reader._page_number,
    TEXT + "page-count": _Reader._page_number,
    OFFICE + "annotation": _Reader._comment,
    DRAW + "control": _Reader._control,
    **dict.fromkeys(_SHAPES, _Reader._frame),
}


def _described(element: Element, space: str) -> str:
    """Return the title and the description of a drawing or a table."""
    return picture_text(element.findtext(space + "title"), element.findtext(space + "desc"))


def _has_text(item: Element) -> bool:
    """Return whether an item has a paragraph of its own; an item with only a list in it has no number."""
    return any(part.tag in (TEXT + "p", TEXT + "h", TABLE + "table") for part in item)
