"""Read spreadsheets: every sheet as a Markdown table, with values as the sheet shows them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from lxml import etree

from ragistry.readers.blocks import Block, Kind, Place, ReadDocument, UnreadableFileError
from ragistry.readers.drawing import body_text, chart_blocks, chart_lines, diagram_blocks, shape_text
from ragistry.readers.number_formats import BUILT_IN, GENERAL, format_number, format_text
from ragistry.readers.office_package import (
    EMBEDDED,
    Package,
    attribute,
    clean,
    heading,
    local,
    markdown_cell,
    markdown_table,
    plain_markdown,
)
from ragistry.readers.page_numbers import is_page_number
from ragistry.readers.word_processing import comment_label, joined_address, link

MOST_CELLS = 4_000_000
"""Cells with a value in all sheets of a file."""
SPARSE = 20
"""A table with more than this many cells per value is written as a list instead."""
SMALL_TABLE = 10_000
"""A table of at most this many cells is written as a table in any case."""

_CELL = re.compile(r"([A-Za-z]{1,3})(\d{1,7})$")
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")
_HEADER_CODE = re.compile(r'&(?:"[^"]*"|K[0-9A-Fa-f+-]{6}|\d+|[LCR]|[A-Za-z])')
_HYPERLINK = re.compile(r'HYPERLINK\(((?:"[^"]*"|[^",;])*)')
_PIECE = re.compile(r'"([^"]*)"|[^"&\s]+')
_LEGACY_NOTICE = "[Threaded comment]"


class Cell(NamedTuple):
    """A cell with a value. ``row`` and ``column`` count from 1. ``text`` has no pipes that divide a table."""

    row: int
    column: int
    text: str
    is_text: bool


@dataclass(slots=True)
class Sheet:
    """What a sheet holds besides its name: cells by rows, and blocks that follow the table."""

    name: str
    hidden: bool = False
    cells: list[Cell] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    after: list[Block] = field(default_factory=list)


@dataclass(slots=True)
class Faults:
    """How many cells have a fault, and where the first is."""

    count: int = 0
    first: str = ""

    def add(self, where: str) -> None:
        """Count a cell."""
        self.count += 1
        self.first = self.first or where


def read(data: bytes, suffix: str) -> ReadDocument:  # noqa: ARG001, one reader for all suffixes
    """Read a workbook (.xlsx, .xlsm). Raises `UnreadableFileError`."""
    return _Workbook(Package(data)).read()


def sheet_blocks(sheet: Sheet) -> Iterator[Block]:
    """Yield the heading of a sheet, its tables, and what belongs to it otherwise."""
    place = Place(sheet=sheet.name)
    yield Block(heading(f"{sheet.name}{' (hidden)' if sheet.hidden else ''}"), place)
    for line in sheet.before:
        yield Block(line, place)
    for rows in _tables(sheet.cells):
        yield from _table_blocks(rows, sheet.name)
    yield from sheet.after


def column_name(column: int) -> str:
    """Return the letters of a column: 1 is A, 28 is AB."""
    name = ""
    while column:
        column, rest = divmod(column - 1, 26)
        name = chr(65 + rest) + name
    return name


def cell_position(reference: str) -> tuple[int, int] | None:
    """Return row and column of a reference such as ``AB12``; None for other text."""
    found = _CELL.match(reference)
    return (int(found[2]), _column_number(found[1].upper())) if found else None


@lru_cache(maxsize=20_000)
def _column_number(name: str) -> int:
    column = 0
    for letter in name:
        column = column * 26 + ord(letter) - 64
    return column


def formula_address(code: str) -> str:
    """Return the address in a formula such as ``HYPERLINK("https://e.org/" & A2, "a")``, with ``…`` for a reference."""
    found = _HYPERLINK.search(code)
    pieces = _PIECE.findall(found[1]) if found else []
    return markdown_cell("".join(piece or "…" for piece in pieces)) if any(pieces) else ""


def formula_warning(formulas: Faults) -> str:
    """Say how many formulas have no stored value, and where the first is."""
    return (
        f"formulas without a stored value: {formulas.count:,}, the first in {formulas.first}; they are in the text as "
        "formulas; open the file in its program and save it to store the values"
    )


def comment_block(sheet: str, cell: str, author: str, text: str, *, word: str = "Comment") -> Block:
    """Return a comment on a cell as a block."""
    line = plain_markdown(f"[{comment_label(author, f'{word} on {cell}')}: {text.strip()}]")
    return Block(line, Place(sheet=sheet, cells=cell, kind="comment"))


_Row = list[Cell]


def _tables(cells: Sequence[Cell]) -> Iterator[list[_Row]]:
    """Yield the tables of a sheet, as rows with values.

    Empty rows divide two tables if the second has other columns, or begins with a row of texts above numbers.
    """
    groups: list[list[_Row]] = []
    last = -1
    for cell in cells:
        if cell.row != last:
            if cell.row != last + 1 or not groups:
                groups.append([])
            groups[-1].append([])
            last = cell.row
        groups[-1][-1].append(cell)
    table: list[_Row] = []
    columns: set[int] = set()
    for group in groups:
        own = {cell.column for row in group for cell in row}
        if table and (not own <= columns or _has_header(group)):
            yield table
            table, columns = [], set()
        table += group
        columns |= own
    if table:
        yield table


def _has_header(rows: list[_Row]) -> bool:
    head, *rest = rows
    numbers = {cell.column for row in rest for cell in row if not cell.is_text}
    return len(head) > 1 and all(cell.is_text for cell in head) and any(cell.column in numbers for cell in head)


def _table_blocks(rows: list[_Row], sheet: str) -> Iterator[Block]:
    """Yield a table; rows of one cell above the header are paragraphs, and so is a single cell."""
    start = next((at for at, row in enumerate(rows) if len(row) > 1), int(len(rows) == 1))
    for row in rows[:start]:
        text = row[0].text.replace("\\|", "|").replace("\\<", "<")
        yield Block(plain_markdown(text), Place(sheet=sheet, cells=_reference(row[0])))
    rows = rows[start:]
    if not rows:
        return
    columns = sorted({cell.column for row in rows for cell in row})
    first = f"{column_name(columns[0])}{rows[0][0].row}"
    last = f"{column_name(columns[-1])}{rows[-1][0].row}"
    place = Place(sheet=sheet, cells=first if first == last else f"{first}:{last}")
    count = sum(map(len, rows))
    if len(rows) * len(columns) > max(SMALL_TABLE, SPARSE * count):
        lines = [f"- {_reference(cell)}: {cell.text}" for row in rows for cell in row]
        yield Block("\n".join(lines), place)
        return
    texts = ({cell.column: cell.text for cell in row} for row in rows)
    yield Block(markdown_table([[row.get(column, "") for column in columns] for row in texts]), place)


def _reference(cell: Cell) -> str:
    return f"{column_name(cell.column)}{cell.row}"


class _Workbook:
    """A workbook of Office Open XML."""

    def __init__(self, package: Package) -> None:
        self.package = package
        self.name, self.root = package.open_main("xl/workbook.xml", "workbook")
        setting = self.root.find("{*}workbookPr")
        self.date1904 = setting is not None and setting.get("date1904") in ("1", "true")
        self.strings = self._read_strings()
        self.formats = self._read_formats()
        self.people = self._read_people()
        self._number = lru_cache(maxsize=100_000)(self._format)  # dates and prices are often equal
        self.formulas, self.bad_strings = Faults(), Faults()
        self.embedded = self.cell_count = 0
        self._links: dict[tuple[int, int], str] = {}  # addresses by row and column of a sheet
        self.headers: set[str] = set()

    def read(self) -> ReadDocument:
        document = ReadDocument(info=self.package.info())
        for number, entry in enumerate(self.root.iterfind("{*}sheets/{*}sheet"), start=1):
            name = clean(entry.get("name") or f"Sheet {number}")
            part = self.package.part(self.name, attribute(entry, "id"))
            sheet = Sheet(name, hidden=entry.get("state") in ("hidden", "veryHidden"))
            if not part:
                document.warnings.append(f"the sheet {name!r} is not in the file")
            else:
                self._read_sheet(sheet, part)
            document.blocks += sheet_blocks(sheet)
        document.warnings += self._warnings()
        document.warnings += self.package.warnings(self.embedded)
        return document

    def _read_strings(self) -> list[str]:
        parts = self.package.related(self.name, "sharedStrings")[-1:]
        strings = (one for part in parts for one in self.package.elements(part, ("{*}si",)))
        return [markdown_cell(clean(_string(one))) for one in strings]

    def _read_formats(self) -> dict[str | None, str]:
        """Return the format codes by the numbers of the styles of cells."""
        codes, numbers = dict(BUILT_IN), list[str]()
        for _, root in self.package.roots(self.name, "styles"):
            for one in root.iterfind("{*}numFmts/{*}numFmt"):
                if (number := one.get("numFmtId") or "").isdecimal():
                    codes[int(number)] = one.get("formatCode") or GENERAL
            numbers = [one.get("numFmtId") or "0" for one in root.iterfind("{*}cellXfs/{*}xf")]
        formats = (codes.get(int(number), GENERAL) if number.isdecimal() else GENERAL for number in numbers)
        return {str(style): code for style, code in enumerate(formats)}

    def _read_people(self) -> dict[str, str]:
        people = (one for _, root in self.package.roots(self.name, "person") for one in root.iter("{*}person"))
        return {one.get("id") or "": one.get("displayName") or "" for one in people}

    def _read_sheet(self, sheet: Sheet, part: str) -> None:
        extras: list[Block] = []
        sheet.cells = self._cells(part, sheet.name, extras)
        for _, table in self.package.roots(part, "table"):
            name = table.get("displayName") or table.get("name") or ""
            sheet.before.append(plain_markdown(f"[Table {name}: {table.get('ref') or ''}]"))
        for name, drawing in self.package.roots(part, "drawing"):
            sheet.after += drawing_blocks(self.package, name, drawing, sheet.name)
        self.embedded += len(self.package.related(part, *EMBEDDED))
        sheet.after += self._comments(sheet.name, part)
        sheet.after += dict.fromkeys(extras)

    def _cells(self, part: str, sheet: str, extras: list[Block]) -> list[Cell]:
        """Return the cells with values; prompts, headers and footers are added to ``extras``."""
        cells: list[Cell] = []
        masters: dict[str, str] = {}
        last_row = 0
        self._links.clear()
        for element in self.package.elements(part, ("{*}row", "{*}hyperlink", "{*}headerFooter", "{*}dataValidation")):
            if local(element) == "hyperlink":
                position = cell_position((element.get("ref") or "").partition(":")[0])
                relation = self.package.relations(part).get(attribute(element, "id"))
                if position and relation and relation.external:
                    self._links[position] = markdown_cell(joined_address(relation.target, element.get("location")))
                continue
            if local(element) == "headerFooter":
                extras += _header_blocks(element, sheet, self.headers)
                continue
            if local(element) == "dataValidation":
                extras += prompt_blocks(map(element.get, ("promptTitle", "prompt", "errorTitle", "error")), sheet)
                continue
            number = element.get("r") or ""
            last_row = int(number) if number.isdecimal() else last_row + 1
            last_column = 0
            for one in element:
                position = cell_position(one.get("r") or "")
                last_column = position[1] if position else last_column + 1
                if len(one) and (found := self._value(one, masters, sheet, last_row, last_column)):
                    cells.append(Cell(last_row, last_column, *found))
            if self.cell_count + len(cells) > MOST_CELLS:
                raise UnreadableFileError(f"has more than {MOST_CELLS:,} cells with values; split it")
        if self._links:
            cells = [one._replace(text=link(one.text, self._links.get(one[:2], ""))) for one in cells]
        self.cell_count += len(cells)
        return sorted(cells, key=lambda cell: cell[:2])  # fast if they are in order

    def _value(
        self, cell: etree._Element, masters: dict[str, str], sheet: str, row: int, column: int
    ) -> tuple[str, bool] | None:
        """Return the text of a cell, and whether it is text rather than a number; None for an empty cell."""
        kind, value, formula, inline = cell.get("t") or "n", None, None, ""
        for child in cell:
            tag = child.tag
            if tag.endswith("}v"):
                value = child.text or ""
            elif tag.endswith("}f"):
                formula = child
            elif tag.endswith("}is"):
                inline = _string(child)
        if formula is not None:
            text = formula.text or ""
            if shared := formula.get("si"):
                text = masters.setdefault(shared, text) or text
            if not value and not inline and kind != "str":  # a text of no characters is a value
                self.formulas.add(f"{column_name(column)}{row} of {sheet!r}")
                return markdown_cell(clean(f"={text}")), True
            if url := formula_address(text):
                self._links[row, column] = url
        if kind == "inlineStr":
            text, is_text = inline or value or "", True
        elif value is None:
            return None
        elif kind == "s":
            text = self._shared(value, sheet, row, column)
            text = format_text(text, self.formats.get(cell.get("s"), GENERAL))
            return (text, True) if text else None
        elif kind == "n":
            text = self._number(value, cell.get("s"))
            return (text, False) if text else None
        elif kind == "b":
            text, is_text = {"1": "TRUE", "0": "FALSE"}.get(value, value), False
        elif kind == "d":
            text, is_text = value.removesuffix("T00:00:00").replace("T", " "), False
        else:  # the text of a formula, or an error
            text, is_text = _unescaped(value), kind != "e"
        if is_text:
            text = format_text(text, self.formats.get(cell.get("s"), GENERAL))
        text = markdown_cell(clean(text))
        return (text, is_text) if text else None

    def _shared(self, value: str, sheet: str, row: int, column: int) -> str:
        if value.isdecimal() and int(value) < len(self.strings):
            return self.strings[int(value)]
        self.bad_strings.add(f"{column_name(column)}{row} of {sheet!r}")
        return ""

    def _format(self, value: str, style: str | None) -> str:
        code = self.formats.get(style, GENERAL)
        if code == GENERAL and value.isdecimal() and len(value) < 16:
            return value
        try:
            return markdown_cell(format_number(float(value), code, date1904=self.date1904))
        except ValueError:
            return markdown_cell(clean(value))

    def _comments(self, sheet: str, part: str) -> list[Block]:
        """Return the comments on a sheet and their replies, in the order of the cells."""
        cells: set[str] = set()
        found: list[Block] = []
        for _, root in self.package.roots(part, "threadedComment"):
            for one in root.iter("{*}threadedComment"):
                cell, text = one.get("ref") or "", clean(one.findtext("{*}text") or "")
                cells.add(cell)
                if text.strip():
                    author = self.people.get(one.get("personId") or "", "")
                    word = "Reply" if one.get("parentId") else "Comment"
                    found.append(comment_block(sheet, cell, author, text, word=word))
        for _, root in self.package.roots(part, "comments"):
            authors = [clean(one.text or "") for one in root.iter("{*}author")]
            for one in root.iter("{*}comment"):
                cell, body = one.get("ref") or "", one.find("{*}text")
                text = "" if body is None else clean(_string(body))
                number = one.get("authorId") or ""
                author = authors[int(number)] if number.isdecimal() and int(number) < len(authors) else ""
                author = "" if author.startswith("tc={") else author
                if not text.strip() or (cell in cells and text.startswith(_LEGACY_NOTICE)):
                    continue
                if author:
                    text = text.strip().removeprefix(f"{author}:")
                found.append(comment_block(sheet, cell, author, text))
        return sorted(found, key=lambda block: cell_position(block.place.cells) or (0, 0))

    def _warnings(self) -> Iterator[str]:
        if self.formulas.count:
            yield formula_warning(self.formulas)
        if self.bad_strings.count:
            yield (
                f"cells that refer to a text that is not in the file: {self.bad_strings.count:,}, the first "
                f"in {self.bad_strings.first}"
            )


def drawing_blocks(package: Package, part: str, root: etree._Element, sheet: str) -> Iterator[Block]:
    """Yield the texts, charts, diagrams and alternative texts of a drawing on a sheet."""
    place = Place(sheet=sheet)
    for element in root.iter("{*}*"):
        if any(local(above) == "Fallback" for above in element.iterancestors()):
            continue
        match local(element):
            case "cNvPr":
                if text := shape_text(element):
                    yield Block(text, place)
            case "txBody":
                if text := body_text(element, "\n\n"):
                    yield Block(plain_markdown(text), place)
            case "chart":
                yield from chart_blocks(package, package.part(part, attribute(element, "id")), place, chart_lines)
            case "relIds":
                yield from diagram_blocks(package, package.part(part, attribute(element, "dm")), place)


def prompt_blocks(texts: Iterable[str | None], sheet: str) -> Iterator[Block]:
    """Yield what the sheet says to people who fill in a cell."""
    text = "\n".join(dict.fromkeys(_unescaped(text).strip() for text in texts if text))
    if text:
        yield Block(plain_markdown(clean(f"[Prompt: {text}]")), Place(sheet=sheet, kind="form"))


def _header_blocks(element: etree._Element, sheet: str, seen: set[str]) -> Iterator[Block]:
    """Yield the texts above and below a printed sheet; a text that a sheet before has is not repeated."""
    for one in element:
        code = one.text or ""
        sections = []
        for section in re.split("&[LCR]", code.replace("&&", "\0")):
            line = _HEADER_CODE.sub(" ", section)
            if not ("&P" in section and is_page_number(_HEADER_CODE.sub(" ", re.sub("&[PN]", "1", section)))):
                sections.append(line.replace("\0", "&"))
        text = " ".join(" ".join(sections).split())
        if text and text not in seen:
            seen.add(text)
            kind: Kind = "header" if local(one).endswith("Header") else "footer"
            yield Block(plain_markdown(clean(text)), Place(sheet=sheet, kind=kind))


def _string(element: etree._Element) -> str:
    """Return the text of a shared or inline string, without the readings of characters."""
    if len(element) == 1 and element[0].tag.endswith("}t"):
        return _unescaped(element[0].text or "")
    parts = (one.text or "" for one in element.iterfind(".//{*}t") if local(one.getparent()) != "rPh")
    return _unescaped("".join(parts))


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text) if "_x" in text else text
