"""Spreadsheets become Markdown tables with the values that the sheets show."""

from __future__ import annotations

import datetime
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook
from openpyxl.chart import BarChart, Reference
from openpyxl.comments import Comment
from openpyxl.worksheet.table import Table

from ragistry.readers.blocks import ReadDocument, UnreadableFileError
from ragistry.readers.ods import read as read_ods
from ragistry.readers.sheets import column_name, read
from tests.messages import check_message
from tests.visits import check_linear

OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
PHRASES = [f"planted{number:02d} phrase{number:02d}" for number in range(20)]


def saved(book: Workbook) -> bytes:
    stream = BytesIO()
    book.save(stream)
    return stream.getvalue()


def changed(data: bytes, change: Callable[[str, bytes], bytes | None], **more: str) -> bytes:
    """A package with other parts; a part for which ``change`` returns None is left out."""
    stream = BytesIO()
    with zipfile.ZipFile(BytesIO(data)) as old, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            if (part := change(name, old.read(name))) is not None:
                new.writestr(name, part)
        for name, text in more.items():
            new.writestr(name, text)
    return stream.getvalue()


def relations(*entries: tuple[str, str, str]) -> str:
    lines = [f'<Relationship Id="{one}" Type="{OFFICE}/{kind}" Target="{target}"/>' for one, kind, target in entries]
    return f'<Relationships xmlns="{PACKAGE}">{"".join(lines)}</Relationships>'


def raw_book(rows: str, strings: str = "", after: str = "", **more: str) -> bytes:
    """A workbook with one sheet of these rows as XML."""
    parts = {
        "_rels/.rels": relations(("rId1", "officeDocument", "xl/workbook.xml")),
        "xl/_rels/workbook.xml.rels": relations(
            ("rId1", "worksheet", "worksheets/sheet1.xml"),
            ("rId2", "sharedStrings", "sharedStrings.xml"),
            ("rId3", "styles", "styles.xml"),
            ("rId4", "person", "persons/person.xml"),
        ),
        "xl/workbook.xml": (
            f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets><sheet name="One" sheetId="1" r:id="rId1"/></sheets>'
            "</workbook>"
        ),
        "xl/worksheets/sheet1.xml": (
            f'<worksheet xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheetData>{rows}</sheetData>{after}</worksheet>'
        ),
        "xl/sharedStrings.xml": f'<sst xmlns="{MAIN}">{strings}</sst>',
        "xl/styles.xml": f'<styleSheet xmlns="{MAIN}"><cellXfs><xf/><xf numFmtId="10"/></cellXfs></styleSheet>',
        "xl/persons/person.xml": '<personList><person id="{1}" displayName="Ann Lee"/></personList>',
    }
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in (parts | more).items():
            archive.writestr(name, text)
    return stream.getvalue()


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
    book.properties.title, book.properties.creator, book.properties.keywords = "Costs", "Ann", "oak, elm"
    document = read(saved(book), ".xlsx")
    assert "## Draft (hidden)" in text_of(document, "Draft")
    assert "| secret | value |" in text_of(document, "Draft")
    assert [block.place.cells for block in document.blocks] == ["", "B3:C4", "", "A1:B1"]
    assert {key: document.info[key] for key in ("Title", "Author", "Keywords")} == {
        "Title": "Costs",
        "Author": "Ann",
        "Keywords": "oak, elm",
    }
    assert document.info["Created"].startswith("20")


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


def test_merged_cells_have_their_text_once() -> None:
    book = Workbook()
    book.active["A1"], book.active["A2"], book.active["B2"], book.active["C2"] = "Rain in 2024", "May", 1, 2
    book.active["B1"], book.active["C1"] = "north", "south"
    book.active.merge_cells("B1:C1")
    assert "| Rain in 2024 | north |  |" in lines_of(read(saved(book), ".xlsx"))


def test_formulas_without_a_value_are_shown_and_reported() -> None:
    book = Workbook()
    book.active.append([1, 2, "=A1+B1"])
    book.active.append([1, 2, "=A2+B2"])
    document = read(saved(book), ".xlsx")
    assert "| 1 | 2 | =A2+B2 |" in text_of(document)
    assert "2, the first in C1 of 'Sheet'" in document.warnings[0]
    stored = raw_book('<row r="1"><c r="A1"><f>1+1</f><v>2</v></c><c r="B1" t="str"><f>A1</f><v></v></c></row>')
    assert (lines_of(read(stored, ".xlsx"))[-1], read(stored, ".xlsx").warnings) == ("2", [])


def test_comments_of_both_formats_have_their_author_and_cell() -> None:
    book = Workbook()
    book.active.append(["a", "b"])
    book.active["B1"].comment = Comment("Bob:\nWhy so low?", "Bob")
    document = read(saved(book), ".xlsx")
    [comment] = [block for block in document.blocks if block.place.kind == "comment"]
    assert (comment.text, comment.place.cells) == ("[Comment on B1 by Bob: Why so low?]", "B1")
    assert document.lost == {}

    threads = (
        '<ThreadedComments><threadedComment ref="A1" personId="{1}" id="{2}"><text>First word</text></threadedComment>'
        '<threadedComment ref="A1" personId="{1}" id="{3}" parentId="{2}"><text>Last word</text></threadedComment>'
        "</ThreadedComments>"
    )
    legacy = (
        f'<comments xmlns="{MAIN}"><authors><author>tc=1</author></authors><commentList><comment ref="A1" authorId="0">'
        "<text><t>[Threaded comment] Your version</t></text></comment></commentList></comments>"
    )
    own = relations(("rId1", "threadedComment", "../threads.xml"), ("rId2", "comments", "../comments1.xml"))
    parts = {"xl/worksheets/_rels/sheet1.xml.rels": own, "xl/threads.xml": threads, "xl/comments1.xml": legacy}
    document = read(raw_book('<row><c r="A1"><v>1</v></c></row>', **parts), ".xlsx")
    comments = [block.text for block in document.blocks if block.place.kind == "comment"]
    assert comments == ["[Comment on A1 by Ann Lee: First word]", "[Reply on A1 by Ann Lee: Last word]"]
    assert document.lost == {}


def test_charts_tables_and_text_boxes_are_named() -> None:
    book = Workbook()
    for row in [["month", "rain"], ["May", 3], ["June", 4]]:
        book.active.append(row)
    chart = BarChart()
    chart.title, chart.x_axis.title, chart.y_axis.title = "Wet months", "Month", "Millimetres"
    chart.add_data(Reference(book.active, 2, 1, 2, 3), titles_from_data=True)
    book.active.add_chart(chart, "E2")
    book.active.add_table(Table(displayName="Rainfall", ref="A1:B3"))

    def with_text_box(name: str, data: bytes) -> bytes:
        if name != "xl/drawings/drawing1.xml":
            return data
        box = (
            b'<oneCellAnchor><sp xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"><nvSpPr>'
            b'<cNvPr id="9" name="Box" title="Crate" descr="A box of oak"/></nvSpPr><txBody>'
            b"<a:p><a:r><a:t>In the b</a:t></a:r><a:r>"
            b"<a:t>ox</a:t></a:r></a:p></txBody></sp></oneCellAnchor>"
        )
        return data.replace(b"</wsDr>", box + b"</wsDr>")

    document = read(changed(saved(book), with_text_box), ".xlsx")
    text = text_of(document)
    for wanted in ("Chart: Wet months. Axes: Month, Millimetres", "In the box", "[Picture: Crate: A box of oak]"):
        assert wanted in text
    assert "[Table Rainfall: A1:B3]" in text
    assert document.lost == {}


KINDS = ["cells", "inline strings", "comments", "text boxes", "chart titles", "hidden sheets"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_phrase_is_on_its_sheet(kind: str) -> None:
    document = read(planted(kind), ".xlsx")
    for number, phrase in enumerate(PHRASES):
        assert phrase in text_of(document, f"Sheet{number}"), kind
    assert document.lost == {}


def planted(kind: str) -> bytes:
    book = Workbook()
    book.remove(book.active)
    for number, phrase in enumerate(PHRASES):
        sheet = book.create_sheet(f"Sheet{number}")
        sheet.append(["a", 1])
        if kind in ("cells", "hidden sheets", "inline strings"):
            sheet["D9"] = phrase
        if kind == "hidden sheets" and number:
            sheet.sheet_state = "hidden"
        if kind == "comments":
            sheet["A1"].comment = Comment(phrase, "Ann")
        if kind in ("chart titles", "text boxes"):
            chart = BarChart()
            chart.title = phrase
            chart.add_data(Reference(sheet, 2, 1, 2, 1))
            sheet.add_chart(chart, "E2")
    data = saved(book)
    if kind == "text boxes":  # the text of the chart's title as that of a shape

        def moved(name: str, part: bytes) -> bytes:
            if not name.startswith("xl/drawings/drawing"):
                return part.replace(b"phrase", b"title") if name.startswith("xl/charts/") else part
            phrase = PHRASES[int(name.removeprefix("xl/drawings/drawing").removesuffix(".xml")) - 1]
            shape = (
                '<a xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"><txBody><a:p><a:r><a:t>'
                f"{phrase}</a:t></a:r></a:p></txBody></a></wsDr>"
            )
            return part.replace(b"</wsDr>", shape.encode())

        data = changed(data, moved)
    if kind == "inline strings":

        def inline(name: str, part: bytes) -> bytes:
            for number, phrase in enumerate(PHRASES):
                if name == f"xl/worksheets/sheet{number + 1}.xml":
                    cell = f'<row r="12"><c r="C12" t="inlineStr"><is><r><t>{phrase}</t></r></is></c></row></sheetData>'
                    part = part.replace(b"</sheetData>", cell.encode())
            return part.replace(b"planted", b"shared") if name.endswith("sharedStrings.xml") else part

        data = changed(data, inline)
    return data


def ods(content: str, **more: str) -> bytes:
    names = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{of}:1.0"'
        for name, of in (
            *(("office", "office"), ("text", "text"), ("table", "table"), ("draw", "drawing"), ("style", "style")),
            *(("chart", "chart"), ("svg", "svg-compatible"), ("meta", "meta")),
        )
    )
    names += ' xmlns:xlink="http://www.w3.org/1999/xlink" xmlns:dc="http://purl.org/dc/elements/1.1/"'
    hidden = '<style:style style:name="h"><style:table-properties table:display="false"/></style:style>'
    parts = {
        "content.xml": (
            f"<office:document-content {names}><office:automatic-styles>{hidden}</office:automatic-styles><office:body>"
            f"<office:spreadsheet>{content}</office:spreadsheet></office:body></office:document-content>"
        ),
        **{name: text.replace("NAMES", names) for name, text in more.items()},
    }
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return stream.getvalue()


def test_a_sheet_of_opendocument_is_read() -> None:
    annotation = "<office:annotation><dc:creator>Ann</dc:creator><text:p>Too low</text:p></office:annotation>"
    rows = (
        '<table:table-row><table:table-cell office:value-type="string"><text:p>a<text:s text:c="2"/>b | <text:span>c'
        '</text:span></text:p></table:table-cell><table:table-cell office:value-type="percentage" office:value="0.425">'
        f"{annotation}<text:p>42.5%</text:p></table:table-cell></table:table-row>"
        '<table:table-row table:number-rows-repeated="2"><table:table-cell table:number-columns-repeated="2" '
        'office:value-type="float" office:value="7"><text:p>7</text:p></table:table-cell>'
        '<table:table-cell table:number-columns-repeated="16382"/></table:table-row>'
        '<table:table-row table:number-rows-repeated="1048570"><table:table-cell/>'
        '</table:table-row><table:table-row><table:table-cell table:formula="of:=[.A1]"/></table:table-row>'
    )
    shapes = (
        "<table:shapes><draw:frame><draw:text-box><text:p>In a box</text:p></draw:text-box><svg:desc>An oak</svg:desc>"
        '</draw:frame><draw:frame><draw:object xlink:href="./Object 1"/></draw:frame></table:shapes>'
    )
    chart = (
        "<office:document-content NAMES><office:body><office:chart><chart:chart><chart:title><text:p>Wet</text:p>"
        "</chart:title><chart:axis><chart:title><text:p>Month</text:p></chart:title></chart:axis></chart:chart>"
        "</office:chart></office:body></office:document-content>"
    )
    meta = (
        "<office:document-meta NAMES><office:meta><dc:title>Costs</dc:title><meta:creation-date>2024-05-29T10:00:00"
        "</meta:creation-date></office:meta></office:document-meta>"
    )
    table = f'<table:table table:name="Rain" table:style-name="h">{shapes}{rows}</table:table>'
    document = read_ods(ods(table, **{"Object 1/content.xml": chart, "meta.xml": meta}), ".ods")
    assert text_of(document).startswith(
        "## Rain (hidden)\n\n| a b \\| c | 42.5% |\n| --- | --- |\n| 7 | 7 |\n| 7 | 7 |"
    )
    for wanted in ("[Comment on B1 by Ann: Too low]", "In a box", "[Picture: An oak]", "Chart: Wet. Axes: Month"):
        assert wanted in text_of(document, "Rain")
    assert "=[.A1]" in text_of(document)
    assert "1, the first in A1048574 of 'Rain'" in document.warnings[0]
    assert document.info == {"Title": "Costs", "Created": "2024-05-29T10:00:00"}
    assert document.lost == {}


def test_every_phrase_is_on_its_sheet_of_opendocument() -> None:
    places = {
        "cells": '<table:table-row><table:table-cell office:value-type="string"><text:p>{}</text:p></table:table-cell>'
        "</table:table-row>",
        "comments": "<table:table-row><table:table-cell><office:annotation><text:p>{}</text:p></office:annotation>"
        "</table:table-cell></table:table-row>",
        "shapes of cells": "<table:table-row><table:table-cell><draw:rect><text:p>{}</text:p></draw:rect>"
        "</table:table-cell></table:table-row>",
        "titles": "<table:shapes><draw:frame><svg:title>{}</svg:title><svg:desc>Rain</svg:desc></draw:frame>"
        "</table:shapes>",
        "boxes": "<table:shapes><draw:custom-shape><text:p>{}</text:p></draw:custom-shape></table:shapes>",
    }
    for form in places.values():
        tables = [
            f'<table:table table:name="S{number}">{form.format(phrase)}</table:table>'
            for number, phrase in enumerate(PHRASES)
        ]
        document = read_ods(ods("".join(tables)), ".ods")
        assert all(phrase in text_of(document, f"S{number}") for number, phrase in enumerate(PHRASES))
        assert document.lost == {}


UNKNOWN = "<text:sheet-name>???</text:sheet-name>"
PAGES = "<text:page-number>1</text:page-number> / <text:page-count>99</text:page-count>"
PAGE_STYLES = f"""<office:document-styles NAMES><office:master-styles>
<style:master-page style:name="Default"><style:header><text:p>{UNKNOWN}</text:p></style:header>
<style:footer><text:p>Page {PAGES}</text:p></style:footer></style:master-page>
<style:master-page style:name="Report"><style:header><style:region-left><text:p>{UNKNOWN} (<text:title>???</text:title>)
</text:p></style:region-left><style:region-right><text:p><text:date>2020-01-02</text:date></text:p></style:region-right>
</style:header></style:master-page>
<style:master-page style:name="Oak"><style:header><style:region-left><text:p>Draft <text:s/>of {UNKNOWN}</text:p>
</style:region-left><style:region-center><text:p>Seite {PAGES}</text:p></style:region-center><style:region-right>
<text:p><text:title>Oak prices</text:title> <text:date text:fixed="true">2 May</text:date></text:p></style:region-right>
</style:header><style:header-left style:display="false"><text:p>Left</text:p></style:header-left>
<style:footer><text:p>Oak Ltd</text:p></style:footer></style:master-page></office:master-styles>
</office:document-styles>"""


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
    content = ods(table.format("A") + table.format("B"), **{"styles.xml": PAGE_STYLES})

    def styled(name: str, part: bytes) -> bytes:
        return part.replace(b"<office:automatic-styles>", b"<office:automatic-styles>" + style.encode(), 1)

    document = read_ods(changed(content, styled), ".ods")
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


def test_prompts_of_cells_are_read_once() -> None:
    prompt = '<dataValidation promptTitle="Rain" prompt="in millimetres" error="a number"/>'
    after = f"<dataValidations>{prompt * 3}<dataValidation/></dataValidations>"
    assert text_of(read(raw_book("", after=after), ".xlsx")) == "## One\n\n[Prompt: Rain\nin millimetres\na number]"
    message = '<table:help-message table:title="Rain"><text:p>in millimetres</text:p></table:help-message>'
    validation = f"<table:content-validation>{message}</table:content-validation>"
    content = f"<table:content-validations>{validation}</table:content-validations>"
    document = read_ods(ods(f'{content}<table:table table:name="A"/>'), ".ods")
    assert (text_of(document), document.lost) == ("## A\n\n[Prompt: Rain\nin millimetres]", {})


def test_objects_and_forms_of_opendocument_are_read_or_counted() -> None:
    form = 'xmlns:form="urn:oasis:names:tc:opendocument:xmlns:form:1.0"'
    forms = f'<office:forms {form}><form:form><form:text form:id="c" form:label="Name" form:current-value="Zoë"/>'
    shapes = '<draw:control draw:control="c"/>'
    for number in range(4):
        shapes += f'<draw:frame><draw:object xlink:href="./Object {number}"/></draw:frame>'
    table = f'<table:table table:name="A">{forms}</form:form></office:forms><table:shapes>{shapes}</table:shapes>'
    letter = "<office:document-content NAMES><office:body><office:text/></office:body></office:document-content>"
    math = '<math xmlns="http://www.w3.org/1998/Math/MathML"><mi>rain</mi></math>'
    parts = {"Object 0": "a program's own", "Object 1/content.xml": letter, "Object 2/content.xml": math}
    document = read_ods(ods(f"{table}</table:table>", **parts), ".ods")
    assert text_of(document) == "## A\n\nName: Zoë\n\nrain"
    [warning] = document.warnings
    check_message(warning, "2")


def test_embedded_files_of_a_workbook_are_counted() -> None:
    links = relations(("a", "package", "../embeddings/a.docx"), ("b", "oleObject", "../embeddings/b.bin"))
    document = read(raw_book("", **{"xl/worksheets/_rels/sheet1.xml.rels": links}), ".xlsx")
    check_message(document.warnings[0], "2")


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
    assert "xl/worksheets/sheet1.xml" in broken.warnings[0]

    missing = changed(raw_book(row), lambda name, part: None if "sheet1" in name else part)
    assert any("xl/worksheets/sheet1.xml" in line for line in read(missing, ".xlsx").warnings)


@pytest.mark.parametrize("suffix", [".xlsx", ".ods"])
def test_other_files_are_refused(suffix: str) -> None:
    ole = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
    whole = raw_book("") if suffix == ".xlsx" else ods("")
    encrypted = "EncryptedPackage".encode("utf-16-le")
    for data in (b"", b"PK\x03\x04garbage", whole[:300], ole + bytes(100), ole + bytes(100) + encrypted):
        with pytest.raises(UnreadableFileError) as failure:
            read(data, suffix)
        assert ("encrypted" in str(failure.value)) == (encrypted in data)


def test_entities_are_not_resolved(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("hidden words", encoding="utf-8")
    entity = f'<!DOCTYPE x [<!ENTITY e SYSTEM "file://{tmp_path}/secret"><!ENTITY b "bomb">]>'
    strings = f'{entity}<sst xmlns="{MAIN}"><si><t>safe &e;&b;</t></si></sst>'
    row = '<row><c t="s"><v>0</v></c></row>'
    document = read(raw_book(row, **{"xl/sharedStrings.xml": strings}), ".xlsx")
    assert "hidden words" not in text_of(document)


def test_shared_files_give_no_false_alarm(shared_office: Path) -> None:
    for path in sorted(shared_office.glob("*.xlsx")):
        document = read(path.read_bytes(), ".xlsx")
        assert (document.lost, document.warnings) == ({}, []), path.name
    document = read((shared_office / "comments.xlsx").read_bytes(), ".xlsx")
    assert "[Comment on A1 by John Reviewer: Why Python specifically?]" in text_of(document)
    assert "[Reply on F7 by Marcus Sterling (MS): I never thought it would be so low]" in text_of(document)
