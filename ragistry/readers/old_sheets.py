"""Read workbooks in the old format and the binary one (.xls, .xlsb), and what programs export under these names."""

from __future__ import annotations

from io import BytesIO

from python_calamine import load_workbook

from ragistry.readers import html_page, sheets
from ragistry.readers.blocks import Block, ReadDocument
from ragistry.readers.encoding import decode
from ragistry.readers.number_formats import general
from ragistry.readers.office_package import OLE, clean, markdown_cell


def read(data: bytes, suffix: str) -> ReadDocument:
    """Read a workbook (.xls, .xlt, .xlsb), a web page or a text."""
    if data.startswith(b"PK") and b"xl/workbook.bin" not in data:
        return sheets.read(data, suffix)
    if not data.startswith((OLE, b"PK")):
        text = decode(data).text
        is_page = text.lstrip().startswith("<")
        return html_page.read(data, suffix) if is_page else ReadDocument([Block(text.replace("\r\n", "\n"))])
    document, book = ReadDocument(), load_workbook(BytesIO(data))
    for entry in book.sheets_metadata:
        rows = book.get_sheet_by_name(entry.name).to_python(skip_empty_area=False)
        cells = [
            sheets.Cell(row, column, text, isinstance(value, str))
            for row, values in enumerate(rows, 1)
            for column, value in enumerate(values, 1)
            if (text := markdown_cell(clean(_shown(value))))
        ]
        document.blocks += sheets.sheet_blocks(sheets.Sheet(clean(entry.name), "Hidden" in str(entry.visible), cells))
    return document


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    return general(value) if isinstance(value, float) else str(value)
