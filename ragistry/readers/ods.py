"""Read spreadsheets of OpenDocument (.ods)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ragistry.readers.blocks import REPAIR, Block, Kind, Place, ReadDocument, UnreadableFileError
from ragistry.readers.drawing import chart_line
from ragistry.readers.odf import OpenText
from ragistry.readers.odf_parts import CHART, DC, DRAW, MATH, OFFICE, STYLE, TABLE, TEXT, URN, OpenDocument
from ragistry.readers.office_package import clean, markdown_cell, plain_markdown, properties, whole_number
from ragistry.readers.office_text import Element, Line
from ragistry.readers.sheets import (
    MOST_CELLS,
    Cell,
    Faults,
    Sheet,
    column_name,
    comment_block,
    formula_address,
    formula_warning,
    prompt_blocks,
    sheet_blocks,
)
from ragistry.readers.word_processing import finish_text, link

MOST_REPEATS = 1_000
"""Repetitions of a cell with a value, and cells of a row with its repetitions, that are in the text."""

_PARAGRAPH, _ANNOTATION = TEXT + "p", OFFICE + "annotation"
_TYPE, _FORMULA, _REPEATS = OFFICE + "value-type", TABLE + "formula", TABLE + "number-columns-repeated"
_CELLS = TABLE + "table-cell", TABLE + "covered-table-cell"
_GROUPS = TABLE + "table-row-group", TABLE + "table-rows", TABLE + "table-header-rows"
_VALUES = [f"{OFFICE}{name}value" for name in ("", "date-", "time-", "boolean-", "string-")]
_CHANGING = [TEXT + name for name in ("page-number", "page-count", "sheet-name", "date", "time")]
_KNOWN = [TEXT + name for name in ("title", "file-name")]
_SHAPES = DRAW, f"{{{URN}dr3d:1.0}}"


def read(data: bytes, suffix: str) -> ReadDocument:  # noqa: ARG001, one reader for one suffix
    """Read a spreadsheet of OpenDocument. Raises `UnreadableFileError`."""
    package = OpenDocument(data)
    content = package.xml("content.xml")
    body = None if content is None else content.find(f"{OFFICE}body/{OFFICE}spreadsheet")
    if body is None:
        raise UnreadableFileError(f"is not a spreadsheet; {REPAIR}")
    reader = _Reader(package, content)
    reader.read(body)
    warnings = [*reader.warnings(), *package.warnings(reader.embedded)]
    return ReadDocument(reader.blocks, properties(package.xml("meta.xml")), warnings=warnings)


class _Reader(OpenText):
    """Read cells as tables, and drawings, headers and footers as the text that they are."""

    def __init__(self, package: OpenDocument, content: Element) -> None:
        super().__init__(package, content)
        self._tables = {
            one.get(STYLE + "name"): one for one in content.iterfind(f"{OFFICE}automatic-styles/{STYLE}style")
        }
        self._pages = {one.get(STYLE + "name"): one for one in package.masters(STYLE + "master-page")}
        self._cells = 0
        self._formulas = Faults()
        self._shortened = False

    def read(self, body: Element) -> None:
        """Fill the blocks."""
        names: dict[str, list[str]] = {}
        for one in body.iterfind(f"{TABLE}database-ranges/{TABLE}database-range"):
            name, target = one.get(TABLE + "name", ""), one.get(TABLE + "target-range-address", "")
            if not name.startswith("__"):
                names.setdefault(target.split(".")[0].strip("'$"), []).append(
                    plain_markdown(f"[Table {name}: {target}]")
                )
        seen: set[str] = set()
        for number, table in enumerate(body.iterfind(TABLE + "table"), start=1):
            style = self._tables.get(table.get(TABLE + "style-name"))
            shown = None if style is None else style.find(STYLE + "table-properties")
            sheet = Sheet(
                clean(table.get(TABLE + "name") or f"Sheet {number}"),
                hidden=shown is not None and shown.get(TABLE + "display") == "false",
            )
            sheet.before = names.get(sheet.name, [])
            self.place = Place(sheet=sheet.name)
            self._read_cells(table, sheet)
            sheet.after += self._blocks_of(table.iterfind(TABLE + "shapes"))
            for block in self._margins("" if style is None else style.get(STYLE + "master-page-name", "")):
                if block.text not in seen:
                    seen.add(block.text)
                    sheet.after.append(block)
            self.blocks += sheet_blocks(sheet)
        for one in body.iterfind(f"{TABLE}content-validations/*/*"):
            self.blocks += prompt_blocks([one.get(TABLE + "title"), self._lines(one)], "")

    def warnings(self) -> Iterator[str]:
        """Yield the warnings of all tables."""
        if self._formulas.count:
            yield formula_warning(self._formulas)
        if self._shortened:
            yield f"of rows or cells that are repeated, {MOST_REPEATS:,} cells are in the text"

    def _read_cells(self, table: Element, sheet: Sheet) -> None:
        number = 1
        for row in _rows(table):
            repeats = max(1, whole_number(row.get(TABLE + "number-rows-repeated"), 1))
            cells = list(self._row_cells(row, number, sheet))
            copies = min(repeats, max(1, MOST_REPEATS // len(cells))) if cells else 0
            for copy in range(copies):
                sheet.cells += [cell._replace(row=number + copy) for cell in cells]
            self._shortened |= bool(cells and repeats > copies)
            number += repeats
            if self._cells + len(sheet.cells) > MOST_CELLS:
                raise UnreadableFileError(f"has more than {MOST_CELLS:,} cells with values; split it")
        self._cells += len(sheet.cells)

    def _row_cells(self, row: Element, number: int, sheet: Sheet) -> Iterator[Cell]:
        column = 1
        for cell in row.iterchildren(*_CELLS):
            repeats = max(1, whole_number(cell.get(_REPEATS), 1))
            name = f"{column_name(column)}{number}"
            text, is_text = self._value(cell, f"{name} of {sheet.name!r}")
            for one in cell:
                if one.tag == _ANNOTATION:
                    if comment := self._lines(one):
                        author = clean(one.findtext(DC + "creator") or "")
                        sheet.after.append(comment_block(sheet.name, name, author, comment))
                elif one.tag != _PARAGRAPH and one.tag.startswith(_SHAPES):
                    sheet.after += self._blocks_of([one])
            if text:
                self._shortened |= repeats > MOST_REPEATS
                for copy in range(min(repeats, MOST_REPEATS)):
                    yield Cell(number, column + copy, text, is_text)
            column += repeats

    def _value(self, cell: Element, where: str) -> tuple[str, bool]:
        """Return the text that the cell shows, and whether it is text rather than a number."""
        kind, formula = cell.get(_TYPE, ""), cell.get(_FORMULA, "")
        text = self._lines(cell)
        if not text:
            text = clean(next(filter(None, map(cell.get, _VALUES)), ""))
            if formula and not kind and not text:
                self._formulas.add(where)
                text = clean(formula.partition(":")[2] or formula)
        text = markdown_cell(text)
        return link(text, formula_address(formula)) if formula else text, kind in ("", "string")

    def _lines(self, parent: Element) -> str:
        """Return the paragraphs of a cell, a comment or a prompt as they are."""
        lines = []
        for paragraph in parent.iterchildren(_PARAGRAPH):
            line = Line()
            self.inline(paragraph, line)
            lines += ["".join(line.parts).strip(), *self.following(line.after)]
        return clean("\n".join(filter(None, lines)))

    def _blocks_of(self, parent: Iterable[Element]) -> list[Block]:
        outer, self.blocks = self.blocks, []
        self.write(parent)
        self.flush()
        outer, self.blocks = self.blocks, outer
        return outer

    def _margins(self, page: str) -> Iterator[Block]:
        """Yield the header and the footer of a page style, without numbers of pages and other values that change."""
        outer = self.place
        for part in self._pages.get(page or "Default", ()):
            kind: Kind = "header" if part.tag.startswith(STYLE + "header") else "footer"
            if part.tag.startswith(STYLE + kind) and part.get(STYLE + "display") != "false":
                self.place = replace(outer, kind=kind)
                if text := " ".join(self.flat(part).split()):
                    yield Block(text, self.place)
        self.place = outer

    def _field(self, element: Element, line: Line) -> None:
        """Add a field; in a header or footer none that changes with the page, the sheet or the day, or is not known."""
        is_fixed = element.tag in _KNOWN or element.get(TEXT + "fixed") == "true"
        if self.place.kind in ("header", "footer") and (element.text == "???" or not is_fixed):
            line.has_page_field = True
        else:
            self.inline(element, line)

    def _control(self, element: Element, line: Line) -> None:
        own = Line()
        super()._control(element, own)
        if text := finish_text(own.parts):
            line.after.append(Block(text, replace(self.place, kind="form")))

    def _embedded(self, root: Element, line: Line) -> None:
        chart = next(root.iter(CHART + "chart"), None)
        if root.tag == MATH:
            super()._embedded(root, line)
        elif chart is None:
            self.embedded += 1
        elif text := self._chart_text(chart):
            line.after.append(Block(text, replace(self.place, kind="chart")))

    def _chart_text(self, chart: Element) -> str:
        """Return the titles of a chart and of its axes, and the names of its series."""
        title, others = "", []
        for one in chart.iter(CHART + "title", CHART + "subtitle", CHART + "footer"):
            text = self.flat(one)
            if one.tag == CHART + "title" and one.getparent() is chart:
                title = text
            elif text:
                others.append(text)
        head = next(chart.iter(TABLE + "table-header-rows"), ())
        return chart_line(title, others, [*filter(None, map(self.flat, head))])


_Reader.inline_tags = OpenText.inline_tags | {
    DRAW + "control": _Reader._control,
    **dict.fromkeys([*_CHANGING, *_KNOWN], _Reader._field),
}


def _rows(table: Element) -> Iterator[Element]:
    """Yield the rows of a table, also those in groups."""
    for element in table:
        if element.tag == TABLE + "table-row":
            yield element
        elif element.tag in _GROUPS:
            yield from _rows(element)
