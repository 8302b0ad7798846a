"""Read workbooks in the old format and the binary one (.xls, .xlsb), and what programs export under these names."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO, StringIO

import xlrd
from python_calamine import load_workbook

from ragistry.readers import html_page
from ragistry.readers.blocks import Block, ReadDocument
from ragistry.readers.encoding import decode
from ragistry.readers.number_formats import BUILT_IN, format_number, general
from ragistry.readers.office_package import OLE, clean, markdown_cell
from ragistry.readers.sheets import Cell, Sheet, column_name, comment_block, sheet_blocks
from ragistry.readers.sheets import read as read_xlsx

_STREAMS = (OLE, b"\t\0", b"\t\2", b"\t\4", b"\t\b")
"""How an old workbook begins: in a compound file, or those of Excel 2 to 5 by themselves."""


def read(data: bytes, suffix: str) -> ReadDocument:
    """Read a workbook (.xls, .xlt, .xlsb), a web page or a text."""
    if data.startswith(_STREAMS):
        sheets = _old(data)
    elif b"xl/workbook.bin" in data:
        sheets = _binary(data)
    elif data.startswith(b"PK"):
        return read_xlsx(data, suffix)
    elif (text := decode(data).text).lstrip().startswith("<"):
        return html_page.read(data, suffix)
    else:
        return ReadDocument([Block(text.replace("\r\n", "\n"))])
    return ReadDocument([block for sheet in sheets for block in sheet_blocks(sheet)])


def _old(data: bytes) -> Iterator[Sheet]:
    book = xlrd.open_workbook(file_contents=data, formatting_info=True, ragged_rows=True, logfile=StringIO())
    for table in book.sheets():
        sheet = Sheet(clean(table.name), table.visibility > 0)
        for row in range(table.nrows):
            for column, cell in enumerate(table.row(row), 1):
                value, is_text = cell.value, cell.ctype == xlrd.XL_CELL_TEXT
                if cell.ctype == xlrd.XL_CELL_BOOLEAN:
                    value = "TRUE" if value else "FALSE"
                elif cell.ctype == xlrd.XL_CELL_ERROR:
                    value = xlrd.error_text_from_code[value]
                elif value != "" and not is_text:
                    key = book.xf_list[cell.xf_index].format_key
                    code = BUILT_IN[key] if 9 <= key <= 22 else book.format_map[key].format_str
                    value = format_number(value, code, date1904=book.datemode > 0)
                if text := markdown_cell(clean(value)):
                    sheet.cells.append(Cell(row + 1, column, text, is_text))
        for (row, column), note in sorted(table.cell_note_map.items()):
            text = note.text.removeprefix(f"{note.author}:")
            sheet.after.append(comment_block(sheet.name, f"{column_name(column + 1)}{row + 1}", note.author, text))
        yield sheet


def _binary(data: bytes) -> Iterator[Sheet]:
    book = load_workbook(BytesIO(data))
    for entry in book.sheets_metadata:
        sheet = Sheet(clean(entry.name), "Hidden" in str(entry.visible))
        for row, values in enumerate(book.get_sheet_by_name(entry.name).to_python(skip_empty_area=False), 1):
            for column, value in enumerate(values, 1):
                text = str(value).upper() if isinstance(value, bool) else str(value)
                text = general(value) if type(value) is float else markdown_cell(clean(text))
                if text:
                    sheet.cells.append(Cell(row, column, text, isinstance(value, str)))
        yield sheet
