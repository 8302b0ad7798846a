"""Read OpenDocument texts and presentations (.odt, .odp) as Markdown from the XML parts of the file.

The text that odfdo writes has no headers, footers, fields, shapes, charts and formulas, and its Markdown none of a
presentation; with its elements the same walk would be needed. The parts are therefore read with lxml, which opens
nothing outside of the file.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, ClassVar

from ragistry.readers.blocks import REPAIR, Block, Place, ReadDocument, UnreadableFileError
from ragistry.readers.formulas import mathml_formula
from ragistry.readers.odf_parts import (
    CHART,
    DC,
    DRAW,
    FORM,
    MATH,
    OFFICE,
    PRESENTATION,
    STYLE,
    SVG,
    TABLE,
    TEXT,
    URN,
    XLINK,
    XML_ID,
    OpenDocument,
    Styles,
)  # fmt: skip
from ragistry.readers.office_package import picture_text, properties, whole_number
from ragistry.readers.office_text import LIST_END, Element, Line, OfficeText, Paragraph, Table
from ragistry.readers.word_processing import FORMULA_EDGE, count_item, finish_text, link, table_markdown

MOST_REPEATED = 100
"""Repetitions of a cell with text, and cells of a row with its repetitions, that are written."""
MOST_COLUMNS = 2_000
MOST_BLANKS = 100

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
_PARAGRAPHS = TEXT + "p", TEXT + "h"
_STYLE_NAME, _CLASS = TEXT + "style-name", PRESENTATION + "class"
_BREAKS = {TEXT + "tab": "\t", TEXT + "line-break": "\n"}


def read(data: bytes, suffix: str) -> ReadDocument:
    """Read an OpenDocument text or presentation.

    Args:
        data: Content of the file.
        suffix: ``.odt`` or ``.odp``.

    Raises:
        UnreadableFileError: The file is broken, encrypted or neither a text nor a presentation.
    """
    package = OpenDocument(data)
    content = package.xml("content.xml")
    if "content.xml" in package.damaged:
        raise UnreadableFileError(f"has broken XML in content.xml; {REPAIR}")
    body = None if content is None else content.find(OFFICE + "body")
    if body is None:
        raise UnreadableFileError(f"is not a {suffix or '.odt'} document; {REPAIR}")
    try:
        reader = OpenText(package, content)
        reader.read(body)
    except RecursionError as error:
        raise UnreadableFileError(f"has elements that are nested too deeply; {REPAIR}") from error
    info = properties(package.xml("meta.xml"))
    return ReadDocument(reader.blocks, info, warnings=package.warnings(reader.embedded))


# --- The text ---


class OpenText(OfficeText):
    """Walk through a document in reading order."""

    ruby_tags = (TEXT + "ruby-base", TEXT + "ruby-text")
    inline_tags: ClassVar[dict[str, Callable[[Any, Element, Line], None]]] = {}
    """What reads the elements within a paragraph that have more than text."""

    def __init__(self, package: OpenDocument, content: Element) -> None:
        super().__init__()
        self._package = package
        self._objects: set[str] = set()  # each is read once
        self.embedded = 0  # files of other programs
        self._styles = Styles([package.xml("styles.xml"), content])
        self._hidden = False  # whether the style of the text around hides it
        self._forms = {
            key: control
            for control in content.iter(FORM + "*")
            for key in (control.get(FORM + "id"), control.get(XML_ID))
            if key
        }
        self._chapters: dict[int, int] = {}
        self._ended: dict[str, dict[int, int]] = {}  # numbers at the end of lists, by style and by identifier
        self._note_count = {"footnote": 0, "endnote": 0}
        self._repeated: set[str] = set()  # headers and footers of slides

    def read(self, body: Element) -> None:
        """Fill the blocks."""
        presentation = body.find(OFFICE + "presentation")
        if presentation is not None:
            self._slides(presentation)
            return
        for kind in ("header", "footer"):
            tags = [STYLE + kind + end for end in ("", "-first", "-left")]
            parts = self._package.masters(*tags)
            self.write_margins(kind, (part for part in parts if part.get(STYLE + "display") != "false"))
        self.write(body)
        self.flush()

    def _slides(self, presentation: Element) -> None:
        tags = STYLE + "master-page", STYLE + "handout-master", PRESENTATION + "notes"
        for master in self._package.masters(*tags):
            for shape in master.iterchildren(*_SHAPES):
                kind = shape.get(_CLASS)
                if kind in _MARGIN_CLASSES:
                    self._add_margin([shape], kind)
                elif not kind and shape.get(PRESENTATION + "placeholder") != "true":
                    self.place = Place(kind="header")
                    self.write([shape])
                    self.flush()
        self.place = Place()
        for declared in presentation.iterchildren(*(PRESENTATION + kind + "-decl" for kind in _MARGIN_CLASSES)):
            kind = declared.tag.removeprefix(PRESENTATION).removesuffix("-decl")
            if kind != "date-time" or declared.get(PRESENTATION + "source") == "fixed":
                self._add_margin(finish_text([_SPACES.sub(" ", declared.text or "")]), kind)
        for at, slide in enumerate(presentation.iterchildren(DRAW + "page"), 1):
            self.place = Place(page=at)
            self.blocks.append(Block("", self.place))
            titles = [frame for frame in slide.iterchildren() if frame.get(_CLASS) == "title"]
            title = " ".join(filter(None, map(self.flat, titles)))
            self.emit(f"## {title or f'Slide {at}'}")
            self.flush()
            self.write([shape for shape in slide if shape not in titles])
            self.flush()
            for notes in slide.iterchildren(PRESENTATION + "notes"):
                frames = [frame for frame in notes if frame.get(_CLASS) not in _MARGIN_CLASSES]
                if text := " ".join(filter(None, map(self.flat, frames))):
                    self.emit(f"[Notes: {text}]", "note")
                self.flush()
                for frame in notes:
                    if frame not in frames:
                        self._add_margin([frame], frame.get(_CLASS))

    def _add_margin(self, content: str | list[Element], kind: str) -> None:
        """Add a header or footer of slides, notes or handouts, once."""
        outer = self.place
        self.place = replace(outer, kind="header" if kind == "header" else "footer")
        text = content if isinstance(content, str) else self.flat(content)
        if text not in self._repeated:
            self._repeated.add(text)
            self.emit(text)
        self.flush()
        self.place = outer

    # Blocks

    def items(self, parent: Iterable[Element]) -> Iterator[Paragraph | Table]:
        """Yield the paragraphs and tables in an element."""
        for child in parent:
            tag = child.tag
            if tag in _PARAGRAPHS:
                yield self._paragraph(child)
            elif tag == TEXT + "list":
                yield from self._list_items(child)
                yield LIST_END
            elif tag == TABLE + "table":
                yield Table(_described(child, TABLE), [*self._rows(child)])
            elif (handle := self.inline_tags.get(tag)) is not None:
                line = Line()
                handle(self, child, line)
                yield Paragraph(self.finished(line), line.after)
            elif tag not in _OMITTED and not self._is_hidden(child):
                yield from self.items(child)

    def _chapter(self, element: Element, level: int) -> str:
        """Count a heading and return its number."""
        is_counted = element.tag == TEXT + "h" and element.get(TEXT + "is-list-header") != "true"
        if not is_counted or element.find(TEXT + "number") is not None:  # the number is in the text
            return ""
        return count_item(self._styles.outline, level, self._chapters)

    def _list_items(
        self, element: Element, depth: int = 1, style: str = "", counts: dict[int, int] | None = None
    ) -> Iterator[Paragraph | Table]:
        style = element.get(_STYLE_NAME) or style
        if not style:
            first = next(element.iter(*_PARAGRAPHS), None)
            style = "" if first is None else self._styles.list_name(first.get(_STYLE_NAME, ""))
        levels = self._styles.lists.get(style, {})
        if counts is None:
            counts = {}
            if element.get(TEXT + "continue-numbering") == "true":
                counts = dict(self._ended.get(f"style {style}", {}))
            if other := element.get(TEXT + "continue-list"):
                counts = dict(self._ended.get(f"list {other}", counts))
        for item in element.iterchildren(TEXT + "list-item", TEXT + "list-header"):
            label = ""
            if item.tag == TEXT + "list-item" and _has_text(item):
                start = whole_number(item.get(TEXT + "start-value"), -1)
                label = count_item(levels, depth, counts, start if start >= 0 else None)
                label = label if depth in levels else "-"
            for part in item:
                if part.tag == TEXT + "list":
                    yield from self._list_items(part, depth + 1, style, counts)
                elif part.tag in _PARAGRAPHS:
                    yield self._paragraph(part, label, depth)
                    label = ""
                elif part.tag != TEXT + "number":
                    yield from self.items([part])
        if depth == 1:
            self._ended[f"style {style}"] = counts
            if name := element.get(XML_ID):
                self._ended[f"list {name}"] = counts

    def _rows(self, parent: Element) -> Iterator[list[str]]:
        for child in parent:
            tag = child.tag
            if tag == TABLE + "table-row":
                row = self._row(child)
                if any(row):
                    most = max(1, MOST_REPEATED // sum(map(bool, row)))
                    for _ in range(whole_number(child.get(TABLE + "number-rows-repeated"), 1, most)):
                        yield row
            elif tag == TABLE + "title" or tag == TABLE + "desc":
                continue
            elif tag not in _OMITTED:
                yield from self._rows(child)

    def _row(self, row: Element) -> list[str]:
        texts: list[str] = []
        for cell in row.iterchildren(TABLE + "table-cell", TABLE + "covered-table-cell"):
            text = self.flat(cell)
            count = whole_number(
                cell.get(TABLE + "number-columns-repeated"), 1, MOST_REPEATED if text else MOST_COLUMNS
            )
            if len(texts) < MOST_COLUMNS or text:
                texts += [text] * max(count, 1)
        return texts

    # Paragraphs

    def _paragraph(self, element: Element, label: str = "", depth: int = 0) -> Paragraph:
        line = Line()
        style = element.get(_STYLE_NAME, "")
        if not self._is_hidden(element):
            outer, self._hidden = self._hidden, bool(self._styles.hides(style))
            self.inline(element, line)
            self._hidden = outer
        text, level = self.finished(line), self._styles.level(style)
        if element.tag == TEXT + "h":
            level = max(1, whole_number(element.get(TEXT + "outline-level"), 1, 10))
        if level and text and not label and not self.place.kind:
            label = self._chapter(element, level)
        return Paragraph(text, line.after, level, label, depth)

    def inline(self, parent: Element, line: Line) -> None:
        """Add what is within a paragraph to its line."""
        self._text(parent.text, line)
        for child in parent:
            tag = child.tag
            if (handle := self.inline_tags.get(tag)) is not None:
                handle(self, child, line)
            elif tag in _BREAKS:
                line.parts.append(_BREAKS[tag])
            elif tag in _PARAGRAPHS or tag in (TEXT + "list", TABLE + "table"):
                line.after.append([child])
            elif tag not in _OMITTED and not self._is_hidden(child):
                self.inline(child, line)
            self._text(child.tail, line)

    def _is_hidden(self, element: Element) -> bool:
        shown = element.get(TEXT + "is-hidden")
        is_hidden = element.get(TEXT + "display") == "none" or shown == "true"
        return bool(is_hidden or (element.tag == TEXT + "hidden-text" and shown != "false"))

    def _text(self, text: str | None, line: Line) -> None:
        if text and not self._hidden:
            text = _SPACES.sub(" ", text)
            if text[0] == " " and line.parts and line.parts[-1].endswith(" "):
                text = text[1:]
            line.parts.append(text)

    def _span(self, element: Element, line: Line) -> None:
        style = element.get(_STYLE_NAME, "")
        before = len(line.parts)
        hides = self._styles.hides(style)
        outer, self._hidden = self._hidden, self._hidden if hides is None else hides
        self.inline(element, line)
        self._hidden = outer
        line.raise_number(before, self._styles.positions.get(style, ""))

    def _blanks(self, element: Element, line: Line) -> None:
        line.parts.append(" " * whole_number(element.get(TEXT + "c"), 1, MOST_BLANKS))

    def _link(self, element: Element, line: Line) -> None:
        start, followers = len(line.parts), len(line.after)
        self.inline(element, line)
        if len(line.after) > followers and not "".join(line.parts[start:]):
            line.parts.append("Link")
        line.make_link(start, element.get(XLINK + "href", ""))

    def _number(self, element: Element, line: Line) -> None:
        line.parts.append(f"{''.join(element.itertext())}\t")

    def _page_number(self, element: Element, line: Line) -> None:
        line.has_page_field = True
        if not (element.text or "").startswith("<"):  # "<number>" on a master
            self.inline(element, line)

    def _note(self, element: Element, _line: Line) -> None:
        kind = "endnote" if element.get(TEXT + "note-class") == "endnote" else "footnote"
        self._note_count[kind] += 1
        citation = (element.findtext(TEXT + "note-citation") or "").strip()
        body = element.find(TEXT + "note-body")
        if body is not None:
            self.add_note(citation or str(self._note_count[kind]), body)

    def _comment(self, element: Element, _line: Line) -> None:
        self.add_comment(element.findtext(DC + "creator"), element)

    # Frames, shapes and objects

    def _frame(self, element: Element, line: Line) -> None:
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
                if child.tag in self.inline_tags:
                    self.inline_tags[child.tag](self, child, line)
            return
        line.after.append([child for child in element if child not in objects])

    def _object(self, element: Element, line: Line) -> None:
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

    def _embedded(self, root: Element, line: Line) -> None:
        if root.tag == MATH:
            line.parts += [FORMULA_EDGE, " ".join(mathml_formula(root).split()), FORMULA_EDGE]
            return
        chart = next(root.iter(CHART + "chart"), None)
        if chart is None:
            body = next(root.iter(OFFICE + "body"), None)
            if body is not None:
                line.after.append(body)
            return
        titles = [self.flat(item) for item in chart.iter(CHART + "title", CHART + "subtitle")]
        named = [title for title in titles if title]
        rows = [row for table in chart.iterchildren(TABLE + "table") for row in self._rows(table)]
        head = f"Chart: {'. '.join(named)}" if named else "Chart"
        line.after.append(
            Block("\n\n".join(filter(None, [head, table_markdown(rows)])), replace(self.place, kind="chart"))
        )

    def _control(self, element: Element, line: Line) -> None:
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
_SHAPES = frozenset(
    DRAW + name
    for name in (
        *("frame", "custom-shape", "rect", "line", "polyline", "polygon", "regular-polygon", "path", "circle"),
        *("ellipse", "connector", "caption", "measure", "g", "page-thumbnail"),
    )
) | {f"{{{URN}dr3d:1.0}}scene"}
OpenText.inline_tags = {
    TEXT + "span": OpenText._span,
    TEXT + "s": OpenText._blanks,
    TEXT + "a": OpenText._link,
    DRAW + "a": OpenText._link,
    TEXT + "ruby": OpenText.ruby,
    TEXT + "note": OpenText._note,
    TEXT + "number": OpenText._number,
    TEXT + "page-number": OpenText._page_number,
    TEXT + "page-count": OpenText._page_number,
    OFFICE + "annotation": OpenText._comment,
    DRAW + "control": OpenText._control,
    **dict.fromkeys(_SHAPES, OpenText._frame),
}


def _described(element: Element, space: str) -> str:
    """Return the title and the description of a drawing or a table."""
    return picture_text(element.findtext(space + "title"), element.findtext(space + "desc"))


def _has_text(item: Element) -> bool:
    """Return whether an item has a paragraph of its own; an item with only a list in it has no number."""
    return any(part.tag in _PARAGRAPHS or part.tag == TABLE + "table" for part in item)
