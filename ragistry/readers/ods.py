"""Read spreadsheets of OpenDocument (.ods)."""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree

from ragistry.readers.blocks import REPAIR, Block, Kind, Place, ReadDocument, UnreadableFileError
from ragistry.readers.formulas import mathml_formula
from ragistry.readers.office_package import (
    Package,
    attribute,
    clean,
    local,
    markdown_cell,
    picture_text,
    plain_markdown,
    properties,
)
from ragistry.readers.page_numbers import is_page_number
from ragistry.readers.sheets import (
    MOST_CELLS,
    Cell,
    Sheet,
    column_name,
    comment_block,
    formula_address,
    prompt_blocks,
    sheet_blocks,
)
from ragistry.readers.word_processing import link

CONTENT = "content.xml"
MOST_REPEATS = 1_000
"""Repetitions of a cell with a value, and cells of a row with its repetitions, that are in the text."""

_URN = "urn:oasis:names:tc:opendocument:xmlns:"
_FIELDS = {"page-number", "page-count", "sheet-name", "date", "time"}
_SVG = f"{{{_URN}svg-compatible:1.0}}"
_SHAPES = f"{{{_URN}drawing:1.0}}", f"{{{_URN}dr3d:1.0}}"


def read(data: bytes, suffix: str) -> ReadDocument:  # noqa: ARG001, one reader for one suffix
    """Read a spreadsheet of OpenDocument. Raises `UnreadableFileError`."""
    package = Package(data)
    if "meta-inf/manifest.xml" in package.names and b"encryption-data" in package.data("META-INF/manifest.xml"):
        raise UnreadableFileError("is encrypted; remove its password in the program that made it")
    root = package.xml(CONTENT)
    body = root.find("{*}body/{*}spreadsheet") if root is not None else None
    if root is None or body is None:
        raise UnreadableFileError(f"is not a spreadsheet; {REPAIR}")
    document = ReadDocument(info=properties(package.xml("meta.xml") if "meta.xml" in package.names else None))
    hidden = {
        attribute(style, "name")
        for style in root.iterfind("{*}automatic-styles/{*}style")
        if any(attribute(one, "display") == "false" for one in style.iterfind("{*}table-properties"))
    }
    masters = {
        attribute(style, "name"): attribute(style, "master-page-name")
        for style in root.iterfind("{*}automatic-styles/{*}style")
    }
    margins = _margins(package)
    seen: set[str] = set()
    reader = _Reader(package, document)
    prompts = [
        block
        for one in body.iterfind("{*}content-validations/*/*")
        for block in prompt_blocks([attribute(one, "title"), *map(_paragraph, one.iterfind("{*}p"))], "")
    ]
    for number, table in enumerate(body.iterfind("{*}table"), start=1):
        sheet = Sheet(clean(attribute(table, "name") or f"Sheet {number}"), attribute(table, "style-name") in hidden)
        sheet.before = [
            plain_markdown(f"[Table {attribute(one, 'name')}: {attribute(one, 'target-range-address')}]")
            for one in body.iterfind("{*}database-ranges/{*}database-range")
            if not attribute(one, "name").startswith("__")
            and attribute(one, "target-range-address").split(".")[0].strip("'$") == sheet.name
        ]
        reader.read_table(table, sheet)
        master = masters.get(attribute(table, "style-name")) or "Default"
        for kind, text in margins.get(master) or next(iter(margins.values()), []):
            if text not in seen:
                seen.add(text)
                sheet.after.append(Block(plain_markdown(text), Place(sheet=sheet.name, kind=kind)))
        document.blocks += sheet_blocks(sheet)
    document.blocks += prompts
    document.warnings += [*reader.warnings(), *package.warnings(reader.embedded)]
    return document


class _Reader:
    def __init__(self, package: Package, document: ReadDocument) -> None:
        self.package, self.document = package, document
        self.cells = self.formulas = self.embedded = 0
        self.first_formula = ""
        self.shortened = False
        self.controls: dict[str, etree._Element] = {}

    def read_table(self, table: etree._Element, sheet: Sheet) -> None:
        """Read the cells and the drawings of a table."""
        self.controls = {attribute(one, "id"): one for one in table.iterfind("{*}forms//*")}
        number = 1
        after: list[Block] = []
        for row in _rows(table):
            repeats = _repeats(row, "number-rows-repeated")
            cells = list(self._row_cells(row, number, sheet.name, after))
            copies = min(repeats, max(1, MOST_REPEATS // len(cells))) if cells else 0
            for copy in range(copies):
                sheet.cells += [cell._replace(row=number + copy) for cell in cells]
            self.shortened = self.shortened or bool(cells and repeats > copies)
            number += repeats
            if self.cells + len(sheet.cells) > MOST_CELLS:
                raise UnreadableFileError(f"has more than {MOST_CELLS:,} cells with values; split it")
        self.cells += len(sheet.cells)
        shapes = table.find("{*}shapes")
        sheet.after = [*after, *(self._shape_blocks(shapes, sheet.name) if shapes is not None else ())]

    def warnings(self) -> Iterator[str]:
        """Yield the warnings of all tables."""
        if self.formulas:
            yield (
                f"formulas without a stored value: {self.formulas:,}, the first in {self.first_formula}; they are in "
                "the text as formulas; open the file in its program and save it to store the values"
            )
        if self.shortened:
            yield f"of rows or cells that are repeated, {MOST_REPEATS:,} cells are in the text"

    def _row_cells(self, row: etree._Element, number: int, sheet: str, after: list[Block]) -> Iterator[Cell]:
        column = 1
        for cell in row:
            if local(cell) not in ("table-cell", "covered-table-cell"):
                continue
            repeats = _repeats(cell, "number-columns-repeated")
            name = f"{column_name(column)}{number}"
            text, is_text = self._value(cell, f"{name} of {sheet!r}")
            for one in cell:
                if local(one) == "annotation":
                    body = "\n".join(filter(None, map(_paragraph, one.iterfind("{*}p"))))
                    author = "".join(one.xpath("*[local-name()='creator']/text()"))
                    if body:
                        after.append(comment_block(sheet, name, clean(author), body))
                elif one.tag.startswith(_SHAPES):
                    after += self._shape_blocks(one, sheet)
            if text:
                self.shortened = self.shortened or repeats > MOST_REPEATS
                for copy in range(min(repeats, MOST_REPEATS)):
                    yield Cell(number, column + copy, text, is_text)
            column += repeats

    def _value(self, cell: etree._Element, where: str) -> tuple[str, bool]:
        """Return the text that the cell shows, and whether it is text rather than a number."""
        kind, formula = attribute(cell, "value-type"), attribute(cell, "formula")
        text = "\n".join(_paragraph(one) for one in cell if local(one) == "p")
        if not text.strip():
            stored = next(
                filter(
                    None, (attribute(cell, f"{name}value") for name in ("", "date-", "time-", "boolean-", "string-"))
                ),
                "",
            )
            if formula and not kind and not stored:
                self.formulas += 1
                self.first_formula = self.first_formula or where
                stored = formula.partition(":")[2] or formula
            text = stored
        return link(markdown_cell(clean(text)), formula_address(formula)), kind in ("", "string")

    def _control_text(self, shape: etree._Element) -> str:
        """Return the label and the value of a field of a form."""
        control = self.controls.get(attribute(shape, "control"))
        values = [] if control is None else [attribute(control, one) for one in ("label", "current-value")]
        return ": ".join(filter(None, values))

    def _shape_blocks(self, shapes: etree._Element, sheet: str) -> Iterator[Block]:
        """Yield the texts, charts, titles and descriptions of drawings."""
        for element in shapes.iter():
            if local(element) == "control" and (text := self._control_text(element)):
                yield Block(plain_markdown(text), Place(sheet=sheet, kind="form"))
            if text := picture_text(element.findtext(_SVG + "title"), element.findtext(_SVG + "desc")):
                yield Block(plain_markdown(f"[Picture: {text}]"), Place(sheet=sheet))
            match local(element):
                case "p":
                    above = {local(one) for one in element.iterancestors()}
                    if "annotation" not in above and (text := _paragraph(element)):
                        yield Block(plain_markdown(text), Place(sheet=sheet))
                case "object" | "object-ole":
                    part = attribute(element, "href").removeprefix("./").strip("/")
                    name = f"{part}/{CONTENT}"
                    root = self.package.xml(name) if name.casefold() in self.package.names else None
                    if root is not None and local(root) == "math":
                        yield Block(plain_markdown(mathml_formula(root)), Place(sheet=sheet))
                    elif root is not None and root.find("{*}body/{*}chart") is not None:
                        if text := _chart_lines(root):
                            yield Block(text, Place(sheet=sheet, kind="chart"))
                    elif part.casefold() in self.package.names or root is not None:
                        self.embedded += 1


def _margins(package: Package) -> dict[str, list[tuple[Kind, str]]]:
    """Return the headers and footers of each page style, without numbers of pages and other values that change."""
    root = package.xml("styles.xml") if "styles.xml" in package.names else None
    found: dict[str, list[tuple[Kind, str]]] = {}
    for master in root.iterfind("{*}master-styles/{*}master-page") if root is not None else ():
        texts = found.setdefault(attribute(master, "name"), [])
        for part in master:
            kind: Kind = "header" if local(part).startswith("header") else "footer"
            if not local(part).startswith(kind) or attribute(part, "display") == "false":
                continue
            lines = []
            for paragraph in part.iter("{*}p"):
                line = _paragraph(paragraph, fields=False)
                if not (is_page_number(_paragraph(paragraph)) and any(map(_is_field, paragraph.iter()))):
                    lines.append(line)
            if text := " ".join(" ".join(lines).split()):
                texts.append((kind, text))
    return found


def _is_field(element: etree._Element) -> bool:
    """Return whether the text of an element changes with the page, the sheet or the day, or is not known."""
    return (local(element) in _FIELDS and attribute(element, "fixed") != "true") or element.text == "???"


def _rows(table: etree._Element) -> Iterator[etree._Element]:
    """Yield the rows of a table, also those in groups."""
    for element in table:
        match local(element):
            case "table-row":
                yield element
            case "table-row-group" | "table-rows" | "table-header-rows":
                yield from _rows(element)


def _repeats(element: etree._Element, name: str) -> int:
    value = attribute(element, name)
    return max(1, int(value)) if value.isdecimal() and len(value) < 9 else 1


def _paragraph(element: etree._Element, *, fields: bool = True) -> str:
    """Return the text of a paragraph with its blanks, without what is anchored in it."""
    return clean("".join(_pieces(element, fields))).strip()


def _pieces(element: etree._Element, fields: bool) -> Iterator[str]:
    yield " ".join((element.text or "").split("\n"))
    for child in element:
        match local(child):
            case "s":
                count = attribute(child, "c")
                yield " " * (min(int(count), 100) if count.isdecimal() else 1)
            case "tab":
                yield "\t"
            case "line-break":
                yield "\n"
            case "a":
                yield link("".join(_pieces(child, fields)), attribute(child, "href"))
            case name if (
                name != "annotation" and not child.tag.startswith(_SHAPES) and (fields or not _is_field(child))
            ):
                yield from _pieces(child, fields)
        yield child.tail or ""


def _chart_lines(root: etree._Element) -> str:
    """Return the titles of a chart and of its axes, and the names of its series."""
    title, others = "", []
    for one in root.iter("{*}title", "{*}subtitle", "{*}footer"):
        text = " ".join(filter(None, map(_paragraph, one.iterfind("{*}p"))))
        if text and local(one) == "title" and local(one.getparent()) == "chart":
            title = text
        elif text:
            others.append(text)
    table = root.find(".//{*}table-header-rows")
    names = [_paragraph(one) for one in table.iter("{*}p")] if table is not None else []
    names = [name for name in names if name]
    if not (title or others or names):
        return ""
    parts = [f"Chart: {title}" if title else "Chart"]
    parts += [f"Axes: {', '.join(others)}"] * bool(others) + [f"Series: {', '.join(names)}"] * bool(names)
    return plain_markdown(". ".join(parts))
