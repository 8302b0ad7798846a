"""Spreadsheets: what no other format has, and values as the sheets show them. The rest is in test_office_table.py."""

from __future__ import annotations

import datetime
from io import BytesIO
from typing import Any

import pytest
from openpyxl import Workbook
from openpyxl.chart import BarChart, Reference
from openpyxl.comments import Comment
from openpyxl.worksheet.table import Table

from ragistry.readers.blocks import ReadDocument
from ragistry.readers.sheets import column_name
from tests.readers.office_builder import (
    Part,
    book_file,
    book_part,
    cells,
    odf_file,
    read,
    sheet,
)
from tests.visits import check_linear


def saved(book: Workbook) -> bytes:
    stream = BytesIO()
    book.save(stream)
    return stream.getvalue()


def raw_book(rows: str, strings: str = "", after: str = "", **links: Part) -> bytes:
    """A workbook with one sheet of these rows as XML. ``links``: of the sheet."""
    return book_file(
        {"One": sheet(rows, after, **links)},
        strings=book_part("sharedStrings", strings),
        styles=book_part("styles", '<cellXfs><xf/><xf numFmtId="10"/></cellXfs>'),
        person=Part("person", '<personList><person id="{1}" displayName="Ann Lee"/></personList>'),
    )


def text_of(document: ReadDocument, sheet: str | None = None) -> str:
    return "\n\n".join(block.text for block in document.blocks if sheet is None or block.place.sheet == sheet)


def lines_of(document: ReadDocument) -> list[str]:
    return text_of(document).splitlines()


def test_values_are_shown_as_the_sheet_shows_them() -> None:
    book = Workbook()
    sheet = book.active
    sheet.title = "Prices"
    values: list[tuple[Any, str, str]] = [
        (0.425, "0.0%", "42.5%"),
        (1234567, "00000000", "01234567"),
        (datetime.time(14, 30), "h:mm", "14:30"),
        (datetime.date(2024, 5, 29), "yyyy-mm-dd", "2024-05-29"),
        (datetime.datetime(2024, 5, 29, 14, 30), "dd.mm.yyyy hh:mm", "29.05.2024 14:30"),
        (datetime.timedelta(hours=36), "[h]:mm", "36:00"),
        (1234567.5, "#,##0.00", "1,234,567.50"),
        (12.5, '#,##0.00\\ "€"', "12.50 €"),
        (True, "General", "TRUE"),
        ("#N/A", "General", "#N/A"),
        ("007", "@", "007"),
        (3.25, "General", "3.25"),
        ("a | b\nc", "General", "a \\| b c"),
    ]
    sheet.append(["name", "value"])
    for number, (value, code, _) in enumerate(values):
        sheet.append([f"row{number}", value])
        sheet.cell(number + 2, 2).number_format = code
    lines = lines_of(read(saved(book), ".xlsx"))
    assert lines[0] == "## Prices"
    assert lines[2:4] == ["| name | value |", "| --- | --- |"]
    assert lines[4:] == [f"| row{number} | {text} |" for number, (_, _, text) in enumerate(values)]


def test_sheets_are_named_and_hidden_ones_are_marked() -> None:
    book = Workbook()
    book.active["B3"], book.active["C4"] = "left", "right"
    book.create_sheet("Draft").append(["secret", "value"])
    book["Draft"].sheet_state = "hidden"
    document = read(saved(book), ".xlsx")
    assert "## Draft (hidden)" in text_of(document, "Draft")
    assert "| secret | value |" in text_of(document, "Draft")
    assert [block.place.cells for block in document.blocks] == ["", "B3:C4", "", "A1:B1"]


def test_tables_of_a_sheet_have_their_own_headers() -> None:
    book = Workbook()
    for row in [["Report of May"], [], ["oak", "elm"], [1, 2], [], [3, 4], [], ["ash", "fir"], [5, 6]]:
        book.active.append(row)
    tables = [(block.place.cells, block.text) for block in read(saved(book), ".xlsx").blocks[1:]]
    assert tables == [
        ("A1", "Report of May"),
        ("A3:B6", "| oak | elm |\n| --- | --- |\n| 1 | 2 |\n| 3 | 4 |"),
        ("A8:B9", "| ash | fir |\n| --- | --- |\n| 5 | 6 |"),
    ]


def test_formulas_without_a_value_are_shown_and_reported() -> None:
    book = Workbook()
    book.active.append([1, 2, "=A1+B1"])
    book.active.append([1, 2, "=A2+B2"])
    document = read(saved(book), ".xlsx")
    assert "| 1 | 2 | =A2+B2 |" in text_of(document)
    assert "2, the first in C1 of 'Sheet'" in document.warnings[0]
    stored = raw_book('<row r="1"><c r="A1"><f>1+1</f><v>2</v></c><c r="B1" t="str"><f>A1</f><v></v></c></row>')
    assert (lines_of(read(stored, ".xlsx"))[-1], read(stored, ".xlsx").warnings) == ("2", [])


def test_comments_in_threads_replace_those_of_older_programs() -> None:
    threads = (
        '<ThreadedComments><threadedComment ref="A1" personId="{1}" id="{2}"><text>First word</text></threadedComment>'
        '<threadedComment ref="A1" personId="{1}" id="{3}" parentId="{2}"><text>Last word</text></threadedComment>'
        "</ThreadedComments>"
    )
    legacy = (
        '<authors><author>tc=1</author></authors><commentList><comment ref="A1" authorId="0">'
        "<text><t>[Threaded comment] Your version</t></text></comment></commentList>"
    )
    links = {"threads": Part("threadedComment", threads), "legacy": book_part("comments", legacy)}
    document = read(raw_book(cells("1"), **links), ".xlsx")
    comments = [block.text for block in document.blocks if block.place.kind == "comment"]
    assert comments == ["[Comment on A1 by Ann Lee: First word]", "[Reply on A1 by Ann Lee: Last word]"]
    assert document.lost == {}


def test_comments_charts_and_tables_of_openpyxl_are_read() -> None:
    book = Workbook()
    for row in [["month", "rain"], ["May", 3], ["June", 4]]:
        book.active.append(row)
    chart = BarChart()
    chart.title, chart.x_axis.title, chart.y_axis.title = "Wet months", "Month", "Millimetres"
    chart.add_data(Reference(book.active, 2, 1, 2, 3), titles_from_data=True)
    book.active.add_chart(chart, "E2")
    book.active.add_table(Table(displayName="Rainfall", ref="A1:B3"))
    book.active["B1"].comment = Comment("Bob:\nWhy so low?", "Bob")
    document = read(saved(book), ".xlsx")
    assert [(block.text, block.place.cells, block.place.kind) for block in document.blocks[1:]] == [
        ("[Table Rainfall: A1:B3]", "", ""),
        ("| month | rain |\n| --- | --- |\n| May | 3 |\n| June | 4 |", "A1:B3", ""),
        ("Chart: Wet months. Axes: Month, Millimetres", "", "chart"),
        ("[Comment on B1 by Bob: Why so low?]", "B1", "comment"),
    ]
    assert document.lost == {}


def test_cells_of_opendocument_are_repeated_and_shown_as_they_are() -> None:
    rows = (
        '<table:table-row><table:table-cell office:value-type="string"><text:p>a<text:s text:c="2"/>b | <text:span>c'
        '</text:span></text:p></table:table-cell><table:table-cell office:value-type="percentage" office:value="0.425">'
        "<text:p>42.5%</text:p></table:table-cell></table:table-row>"
        '<table:table-row table:number-rows-repeated="2"><table:table-cell table:number-columns-repeated="2" '
        'office:value-type="float" office:value="7"><text:p>7</text:p></table:table-cell>'
        '<table:table-cell table:number-columns-repeated="16382"/></table:table-row>'
        '<table:table-row table:number-rows-repeated="1048570"><table:table-cell/>'
        '</table:table-row><table:table-row><table:table-cell table:formula="of:=[.A1]"/></table:table-row>'
    )
    hidden = '<style:style style:name="h"><style:table-properties table:display="false"/></style:style>'
    table = f'<table:table table:name="Rain" table:style-name="h">{rows}</table:table>'
    document = read(odf_file("spreadsheet", table, hidden), ".ods")
    assert text_of(document).startswith(
        "## Rain (hidden)\n\n| a b \\| c | 42.5% |\n| --- | --- |\n| 7 | 7 |\n| 7 | 7 |"
    )
    assert "=[.A1]" in text_of(document)
    assert "1, the first in A1048574 of 'Rain'" in document.warnings[0]
    assert document.lost == {}


UNKNOWN = "<text:sheet-name>???</text:sheet-name>"
PAGES = "<text:page-number>1</text:page-number> / <text:page-count>99</text:page-count>"
PAGE_STYLES = f"""<style:master-page style:name="Default"><style:header><text:p>{UNKNOWN}</text:p></style:header>
<style:footer><text:p>Page {PAGES}</text:p></style:footer></style:master-page>
<style:master-page style:name="Report"><style:header><style:region-left><text:p>{UNKNOWN} (<text:title>???</text:title>)
</text:p></style:region-left><style:region-right><text:p><text:date>2020-01-02</text:date></text:p></style:region-right>
</style:header></style:master-page>
<style:master-page style:name="Oak"><style:header><style:region-left><text:p>Draft <text:s/>of {UNKNOWN}</text:p>
</style:region-left><style:region-center><text:p>Seite {PAGES}</text:p></style:region-center><style:region-right>
<text:p><text:title>Oak prices</text:title> <text:date text:fixed="true">2 May</text:date></text:p></style:region-right>
</style:header><style:header-left style:display="false"><text:p>Left</text:p></style:header-left>
<style:footer><text:p>Oak Ltd</text:p></style:footer></style:master-page>"""


@pytest.mark.parametrize(
    ("master", "margins"),
    [
        ("Default", []),
        ("Report", []),
        ("Oak", [("header", "Draft of Oak prices 2 May"), ("footer", "Oak Ltd")]),
        ("", []),
    ],
)
def test_pages_of_opendocument_have_headers_and_footers(master: str, margins: list[tuple[str, str]]) -> None:
    style = f'<style:style style:name="m" style:master-page-name="{master}"/>'
    table = '<table:table table:name="{}" table:style-name="m"/>'
    content = odf_file("spreadsheet", table.format("A") + table.format("B"), style, PAGE_STYLES)
    document = read(content, ".ods")
    found = [(block.place.kind, block.text) for block in document.blocks if not block.text.startswith("##")]
    assert found == margins
    assert document.lost == {}


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("&LOak Ltd&CPage &P of &N", "Oak Ltd"),
        ("&P Confidential", "Confidential"),
        ("&CSeite &P", ""),
        ("&C2024 / &P", "2024 /"),
        ('&L&"Arial,Bold"&12Oak && Elm&R&D', "Oak & Elm"),
    ],
)
def test_headers_of_a_sheet_have_no_numbers_of_pages(code: str, text: str) -> None:
    after = f"<headerFooter><oddHeader>{code.replace('&', '&amp;')}</oddHeader></headerFooter>"
    document = read(raw_book("", after=after), ".xlsx")
    assert [block.text for block in document.blocks if block.place.kind == "header"] == [text] * bool(text)


def test_prompts_forms_and_formulas_of_opendocument_are_read() -> None:
    message = '<table:help-message table:title="Rain"><text:p>in millimetres</text:p></table:help-message>'
    prompts = f"<table:content-validations><table:content-validation>{message}</table:content-validation>"
    forms = '<office:forms><form:form><form:text form:id="c" form:label="Name" form:current-value="Zoë"/></form:form>'
    shapes = '<draw:control draw:control="c"/>'
    for number in range(3):
        shapes += f'<draw:frame><draw:object xlink:href="./Object {number}"/></draw:frame>'
    table = f'<table:table table:name="A">{forms}</office:forms><table:shapes>{shapes}</table:shapes></table:table>'
    math = '<math xmlns="http://www.w3.org/1998/Math/MathML"><mi>rain</mi></math>'
    content = f"{prompts}</table:content-validations>{table}"
    document = read(odf_file("spreadsheet", content, **{"Object 2/content.xml": math}), ".ods")
    assert text_of(document) == "## A\n\nName: Zoë\n\nrain\n\n[Prompt: Rain\nin millimetres]"
    assert (document.lost, document.warnings) == ({}, [])


def test_empty_columns_and_rows_cost_nothing() -> None:
    empty = '<c r="A1" s="1"/>' * 16_384
    data = raw_book(f'<row r="1">{empty}</row><row r="1048576"><c r="XFD1048576"><v>5</v></c></row>')
    assert [block.place.cells for block in read(data, ".xlsx").blocks] == ["", "XFD1048576"]
    apart = [f'<row r="{row}"><c r="{column_name(row)}{row}"><v>{row}</v></c></row>' for row in range(1, 3_001)]
    text = text_of(read(raw_book("".join(apart)), ".xlsx"))
    assert "- B2: 2" in text
    assert len(text) < 100_000


def test_rows_of_a_sheet_are_read_in_linear_steps() -> None:
    words = "".join(f"<si><t>word{number}</t></si>" for number in range(9))

    def read_rows(count: int) -> None:
        rows = (
            f'<row r="{row}"><c r="A{row}" t="s"><v>{row % 9}</v></c><c r="B{row}" s="1"><v>0.{row}</v></c></row>'
            for row in range(1, count + 1)
        )
        document = read(raw_book("".join(rows), words), ".xlsx")
        assert len(lines_of(document)) == count + 3
        assert document.lost == {}

    check_linear(read_rows, 500)


def test_damaged_books_are_read_as_far_as_possible() -> None:
    row = '<row r="1"><c r="A1" t="s"><v>99</v></c><c r="B1" t="s"><v>0</v></c><c r="C1"><v>x</v></c></row>'
    document = read(raw_book(row, "<si><t>oak</t></si>"), ".xlsx")
    assert "| oak | x |" in text_of(document)
    assert "1, the first in A1 of 'One'" in document.warnings[0]
    assert document.lost == {}

    broken = read(raw_book('<row r="1"><c r="A1"><v>7</v></c></row><row><c'), ".xlsx")
    assert text_of(broken) == "## One\n\n7"
    assert "xl/worksheets/worksheet1.xml" in broken.warnings[0]
