"""Old and binary workbooks, written by hand, show what the same workbook shows as xlsx."""

from __future__ import annotations

import struct
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from openpyxl import Workbook

from ragistry.errors import ExtractionError
from ragistry.readers.blocks import ReadDocument
from ragistry.readers.extract import extract
from ragistry.readers.old_sheets import read
from ragistry.readers.sheets import read as read_xlsx
from tests.readers.outlook_files import compound_file

FORMATS = [
    "General",
    "0.0%",
    '"$"#,##0.00',
    "dd.mm.yyyy",
    "yyyy-mm-dd hh:mm",
    "[h]:mm",
    "mmmm",
    '0" kg"',
    "0.00;(0.00)",
]
ERRORS = {7: "#DIV/0!", 42: "#N/A", 23: "#REF!"}
CELLS: list[tuple[int, int, Any, int]] = [
    *((0, 0, "part", 0), (0, 1, "amount", 0), (1, 0, "boiler | pump", 0), (1, 1, 0.456, 1), (2, 1, -1234.5, 2)),
    *((3, 1, 45356.0, 3), (4, 1, 45356.604166666664, 4), (5, 1, 1.5, 5), (6, 1, 45356.0, 6), (7, 1, 12.0, 7)),
    *((8, 1, -5.5, 8), (9, 1, True, 0), (10, 1, False, 0), (12, 0, "after a gap", 0), (13, 1, 0.1 + 0.2, 0)),
    *((14, 1, 59.0, 3), (15, 1, -1.0, 3), (16, 0, "Größe “5 €”", 0)),
]
SHEETS = [("Budget 2024", 0, CELLS), ("Secret", 1, [(3, 2, "hidden words", 0)]), ("Empty", 0, [])]


def record(kind: int, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return struct.pack("<HH", kind, len(body)) + body


def text16(text: str) -> bytes:
    return struct.pack("<HB", len(text), 1) + text.encode("utf-16-le")


def old_cell(row: int, column: int, value: Any, style: int) -> bytes:
    head = struct.pack("<HHH", row, column, style)
    if isinstance(value, str):
        return record(0x204, head, text16(value))
    if isinstance(value, bool):
        return record(0x205, head, bytes([value, 0]))
    if isinstance(value, int):
        return record(0x205, head, bytes([value, 1]))
    return record(0x203, head, struct.pack("<d", value))


def comment(row: int, column: int, author: str, text: str) -> bytes:
    shape = record(0x5D, struct.pack("<HHHHH", 0x15, 0x12, 0x19, 1, 0), bytes(12), bytes(4))
    size = record(0x1B6, bytes(10), struct.pack("<HH", len(text), 8), bytes(4))
    runs = record(0x3C, b"\1", text.encode("utf-16-le")) + record(0x3C, bytes(8))
    return shape + size + runs + record(0x1C, struct.pack("<HHHH", row, column, 0, 1), text16(author))


def xls(sheets: list[Any], *, days: int = 0, more: bytes = b"", mark: bytes = b"") -> bytes:
    bof, eof = (lambda kind: record(0x809, struct.pack("<HHHHII", 0x600, kind, 0, 0, 0, 0))), record(0x0A)
    head = bof(5) + mark + record(0x22, struct.pack("<H", days))
    head += b"".join(record(0x41E, struct.pack("<H", 170 + at), text16(code)) for at, code in enumerate(FORMATS))
    head += b"".join(record(0xE0, struct.pack("<HH", 0, 170 + at), bytes(16)) for at in range(len(FORMATS)))
    at = len(head) + sum(12 + 2 * len(name) for name, *_ in sheets) + len(eof)
    bodies = b""
    for name, state, cells in sheets:
        short = bytes([len(name), 1]) + name.encode("utf-16-le")
        head += record(0x85, struct.pack("<IBB", at + len(bodies), state, 0), short)
        bodies += bof(16) + b"".join(old_cell(*cell) for cell in cells) + more + eof
    return compound_file({"Workbook": head + eof + bodies})


def binary_record(kind: int, *parts: bytes) -> bytes:
    body = b"".join(parts)
    size = bytes([len(body) & 127 | 128, len(body) >> 7]) if len(body) > 127 else bytes([len(body)])
    return (bytes([kind & 127 | 128, kind >> 7]) if kind > 127 else bytes([kind])) + size + body


def text32(text: str) -> bytes:
    return struct.pack("<I", len(text)) + text.encode("utf-16-le")


def binary_cell(column: int, value: Any, style: int) -> bytes:
    head = struct.pack("<II", column, style)
    if isinstance(value, str):
        return binary_record(6, head, text32(value))
    if isinstance(value, bool):
        return binary_record(4, head, bytes([value]))
    return binary_record(5, head, struct.pack("<d", value))


def xlsb(sheets: list[Any], *, days: int = 0) -> bytes:
    package = "http://schemas.openxmlformats.org/package/2006"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    codes = enumerate(FORMATS)
    styles = b"".join(binary_record(44, struct.pack("<H", 170 + at), text32(code)) for at, code in codes)
    used = b"".join(binary_record(47, struct.pack("<HH", 0, 170 + at), bytes(12)) for at in range(len(FORMATS)))
    styles = binary_record(615, struct.pack("<I", len(FORMATS))) + styles + binary_record(616)
    styles += binary_record(617, struct.pack("<I", len(FORMATS))) + used + binary_record(618)
    relations = f'<Relationship Id="s" Type="{office}/styles" Target="styles.bin"/>'
    file, book = BytesIO(), binary_record(153, struct.pack("<II", days, 0), text32(""))
    book += binary_record(143)
    with ZipFile(file, "w") as archive:
        archive.writestr("[Content_Types].xml", f'<Types xmlns="{package}/content-types"/>')
        for at, (name, state, cells) in enumerate(sheets):
            book += binary_record(156, struct.pack("<II", state, at + 1), text32(f"r{at}"), text32(name))
            relations += f'<Relationship Id="r{at}" Type="{office}/worksheet" Target="worksheets/sheet{at}.bin"/>'
            sheet = binary_record(129) + binary_record(148, struct.pack("<IIII", 0, 20, 0, 3)) + binary_record(145)
            for row in sorted({row for row, *_ in cells}):
                sheet += binary_record(0, struct.pack("<I", row), bytes(13))
                sheet += b"".join(binary_cell(*cell[1:]) for cell in cells if cell[0] == row)
            archive.writestr(f"xl/worksheets/sheet{at}.bin", sheet + binary_record(146) + binary_record(130))
        archive.writestr("xl/workbook.bin", binary_record(131) + book + binary_record(144) + binary_record(132))
        archive.writestr("xl/styles.bin", binary_record(278) + styles + binary_record(279))
        archive.writestr(
            "xl/_rels/workbook.bin.rels", f'<Relationships xmlns="{package}/relationships">{relations}</Relationships>'
        )
    return file.getvalue()


def xlsx(sheets: list[Any], *, days: int = 0) -> bytes:
    book = Workbook()
    book.remove(book.active)
    for name, state, cells in sheets:
        sheet = book.create_sheet(name)
        sheet.sheet_state = "hidden" if state else "visible"
        for row, column, value, style in cells:
            cell = sheet.cell(row + 1, column + 1, ERRORS.get(value, value) if type(value) is int else value)
            cell.number_format = FORMATS[style]
    if days:
        from openpyxl.utils.datetime import CALENDAR_MAC_1904

        book.epoch = CALENDAR_MAC_1904
    file = BytesIO()
    book.save(file)
    return file.getvalue()


def shown(document: ReadDocument) -> list[tuple[str, str, str]]:
    return [(block.place.sheet, block.place.cells, block.text) for block in document.blocks]


@pytest.mark.parametrize("days", [0, 1])
def test_old_workbook_shows_what_it_shows_as_xlsx(days: int) -> None:
    more = [("Errors", 2, [(at, 0, code, 0) for at, code in enumerate(ERRORS)])]
    found = read(xls(SHEETS + more, days=days), ".xls")
    assert shown(found) == shown(read_xlsx(xlsx(SHEETS + more, days=days), ".xlsx"))
    assert "| boiler \\| pump | 45.6% |" in found.blocks[1].text


def test_binary_workbook_shows_the_same_texts_and_plain_values() -> None:
    found = shown(read(xlsb(SHEETS), ".xlsb"))
    expected = shown(read_xlsx(xlsx(SHEETS), ".xlsx"))
    assert [block[:2] for block in found] == [block[:2] for block in expected]
    assert [block for block in found if block[0] != "Budget 2024"] == [
        one for one in expected if one[0] != "Budget 2024"
    ]
    for value in (
        "boiler \\| pump | 0.456",
        "-1234.5",
        "2024-03-05 14:30:00",
        "| TRUE |",
        "after a gap",
        "Größe “5 €”",
    ):
        assert value in "".join(text for *_, text in found)
    assert "2028-03-06" in shown(read(xlsb(SHEETS, days=1), ".xlsb"))[1][2]


def test_comments_of_an_old_workbook_are_read() -> None:
    document = read(xls(SHEETS[:1], more=comment(1, 1, "Ann", "Ann:\nAsk the plumber")), ".xls")
    [block] = [block for block in document.blocks if block.place.kind == "comment"]
    assert (block.text, block.place.cells) == ("[Comment on B2 by Ann: Ask the plumber]", "B2")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"<table><tr><td>mail<td>ma\xf1ana</table>", "| mail | mañana |"),
        ("<table><tr><td>mail<td>mañana</table>".encode("utf-16"), "| mail | mañana |"),
        (b"\tAmount\r\nQ1\t5\r\n", "\tAmount\nQ1\t5"),
        (xlsx(SHEETS), "45.6%"),
        (xls(SHEETS), "45.6%"),
        (xlsb(SHEETS), "0.456"),
    ],
)
@pytest.mark.parametrize("suffix", [".xls", ".xlsb"])
def test_content_tells_how_a_workbook_is_read(data: bytes, words: str, suffix: str, tmp_path: Path) -> None:
    (tmp_path / f"export{suffix}").write_bytes(data)
    assert words in extract(tmp_path / f"export{suffix}").text


FAR = xlsb([("Far", 0, [(0, 0, "start", 0), (1_048_575, 16_383, "end", 0)])])


@pytest.mark.parametrize(
    "data",
    [xls(SHEETS)[:700], xls(SHEETS, mark=record(0x2F, bytes(6))), xlsb(SHEETS)[:-30], bytes(600), b"PK\3\4 junk", FAR],
)
def test_workbook_that_cannot_be_read_is_refused_in_one_line(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "budget.xls").write_bytes(data)
    with pytest.raises(ExtractionError, match=r"^\S*budget.xls[^\n]+$"):
        extract(tmp_path / "budget.xls")
