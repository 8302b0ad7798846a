"""Whole office files: what one format has and the others lack. What they share is in test_office_table.py."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from docx import Document
from openpyxl import Workbook
from openpyxl.chart import BarChart, Reference
from openpyxl.comments import Comment
from openpyxl.worksheet.table import Table
from pptx import Presentation
from pptx.chart.data import CategoryChartData, XyChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches

from ragistry.readers.blocks import ReadDocument
from ragistry.readers.sheets import column_name
from tests.readers.office_builder import (
    NAMES,
    URL,
    WORD_STYLES,
    Part,
    ap,
    book_file,
    book_part,
    cells,
    changed,
    deck_file,
    docx,
    drawing,
    frame,
    graphic,
    item,
    odf_content,
    odf_file,
    odf_table,
    ooxml,
    p,
    part,
    read,
    run,
    sheet,
    slide,
    sp,
    text_of,
    word_file,
    wp,
)  # fmt: skip
from tests.visits import check_linear, steps


class File(NamedTuple):
    """A file, and its text or its blocks with their places; ``said``: its warning."""

    suffix: str
    data: bytes | Callable[[], Any]
    expected: str | list[tuple[str, str]]
    said: str = ""
    lost: Mapping[str, int] = {}


def saved(document: Any) -> bytes:
    stream = BytesIO()
    document.save(stream)
    return stream.getvalue()


def blocks_of(document: ReadDocument) -> list[tuple[str, str]]:
    """The blocks with what their places say, without the name of the sheet."""
    named = [(block.text, block.place) for block in document.blocks]
    return [(text, " ".join(filter(None, (at.kind, str(at.page or ""), at.label, at.cells)))) for text, at in named]


# --- Documents of Word ---

NUMBERED = item(3, 0, "Soil", "Chapter") + item(2, 0, "one") + item(2, 1, "sub") + item(2, 1, "sub")
NUMBERED += item(2, 0, "two") + item(3, 1, "Sand", "Chapter") + item(4, 0, "again") + item(3, 0, "Water", "Chapter")
NOTES = {"footnote": (99, 5), "comment": (98, 6), "endnote": (4, 4)}
"""Numbers of references and of what they refer to."""
MARKS = "".join(f'<w:r><w:{kind}Reference w:id="{at}"/></w:r>' for kind, (at, _) in NOTES.items())
NOTE_PARTS = [part(f"{kind}s", f'<w:{kind} w:id="{at}">{wp(run(kind))}</w:{kind}>') for kind, (_, at) in NOTES.items()]
BEGIN = '<w:r><w:fldChar w:fldCharType="begin"/></w:r>'
GONE = drawing('<c:chart r:id="gone"/>') + drawing('<c:chart r:id="none"/>')
INSERTED = Part("aFChunk", "<html><body>five words are in here</body></html>")
OTHER_MAIN = ooxml(
    "word",
    Part(
        "other2",
        f"<w:document {NAMES}><w:body>{wp(run('Text'), 'Chapter')}</w:body></w:document>",
        {"styles": part("styles", WORD_STYLES)},
    ),
)


def styled_document() -> Any:
    document = Document()
    document.add_heading("Roots", 2)
    document.add_paragraph("Sand", style="List Bullet")
    return document


def strict(name: str, xml: str) -> str:
    """The names of the strict format, but for those of the package."""
    xml = re.sub(r"schemas\.openxmlformats\.org/(\w+)/2006/(?=main|math|rel)", r"purl.oclc.org/ooxml/\1/", xml)
    return xml.replace("purl.oclc.org/ooxml/package/", "schemas.openxmlformats.org/package/2006/")


FILES = {
    "numbers of lists and headings": File(".docx", docx(["a"], NUMBERED),
         "# 1 Soil\n\n1. one\n   - a) sub\n   - b) sub\n2. two\n\n# 1.1 Sand\n\n1. again\n\n# 2 Water"),
    "styles of python-docx": File(".docx", styled_document, "## Roots\n\n- Sand"),
    "notes without a reference, and roman numbers": File(".docx", word_file(wp(run("Text") + MARKS), *NOTE_PARTS),
         "Text\n\n[Note i: endnote]\n\n[Note: footnote]\n\n[Comment: comment]"),
    "a field without an end": File(".docx", word_file(wp(BEGIN) + wp(run("Text")) + wp(run("More"))), "Text\n\nMore"),
    "relations to nothing": File(".docx",
         word_file(wp(run("Text") + GONE), gone=Part("chart", target="/charts/chart9.xml")), "Text",
         "charts/chart9.xml"),
    "deep content controls": File(".docx",
         word_file("<w:sdt><w:sdtContent>" * 120 + wp(run("Text")) + "</w:sdtContent></w:sdt>" * 120), "Text"),
    "another name of the main part": File(".docm", OTHER_MAIN, "# Text"),
    "strict names": File(".docx", changed(OTHER_MAIN, strict), "# Text"),
    "an inserted file": File(".docx", word_file(f'<w:altChunk r:id="chunk"/>{wp(run("Text"))}', chunk=INSERTED), "Text",
         "an inserted file is not read; open and save the document in Word to include it", {"inserted files": 5}),
}  # fmt: skip

# --- Texts and presentations of OpenDocument ---

LEVEL = '<text:outline-level-style text:level="{0}" style:num-format="1" text:display-levels="{0}"/>'
OAK, BARK = '<text:h text:outline-level="1">Oak</text:h>', '<text:h text:outline-level="2">Bark</text:h>'
EMPTY_MARGINS = (  # what programs write on every master
    frame("<presentation:header/>", "header")
    + frame("<presentation:date-time/>", "date-time")
    + frame("<presentation:footer>&lt;footer&gt;</presentation:footer>", "footer")
    + frame("<text:page-number>&lt;number&gt;</text:page-number>", "page-number")
    + frame("Slide <text:page-number>&lt;number&gt;</text:page-number>", "page-number")
)
NOTED = frame("Oak notes", "header") + frame("of 3 May", "footer") + frame("Say it", "notes")
NOTED_SLIDE = f"<draw:page><presentation:notes>{NOTED}</presentation:notes></draw:page>"
DECLARED = (
    '<presentation:footer-decl presentation:name="f">Oak Ltd</presentation:footer-decl>'
    '<presentation:date-time-decl presentation:source="fixed">4 May</presentation:date-time-decl>'
    '<presentation:date-time-decl presentation:source="current-date">today</presentation:date-time-decl>'
)
PROMPT = frame("Click to edit", "title", 'presentation:placeholder="true"')
MASTERS = (
    f"<style:handout-master>{EMPTY_MARGINS}{frame('Oak handout', 'header')}</style:handout-master>"
    f"<style:master-page>{EMPTY_MARGINS}{frame('Oak slides', 'footer')}{PROMPT}{frame('Oak box')}"
    f"<presentation:notes>{EMPTY_MARGINS}{frame('Oak slides', 'footer')}</presentation:notes></style:master-page>"
)
FILES |= {
    "numbers of headings in tables": File(".odt", odf_file("text", OAK + odf_table([BARK]) + BARK + OAK,
         f"<text:outline-style>{LEVEL.format(1)}{LEVEL.format(2)}</text:outline-style>"),
         "# 1 Oak\n\n| 1.1 Bark |\n| --- |\n\n## 1.2 Bark\n\n# 2 Oak"),
    "what masters, notes and handouts show": File(".odp",
         odf_file("presentation", DECLARED + NOTED_SLIDE * 2, pages=MASTERS), [("Oak handout", "header"),
         ("Oak slides", "footer"), ("Oak box", "header"), ("Oak Ltd", "footer"), ("4 May", "footer"), ("", "1"),
         ("## Slide 1", "1"), ("[Notes: Say it]", "note 1"), ("Oak notes", "header 1"), ("of 3 May", "footer 1"),
         ("", "2"), ("## Slide 2", "2"), ("[Notes: Say it]", "note 2")]),
}  # fmt: skip

# --- Presentations ---

BOX = Inches(1), Inches(1), Inches(4), Inches(1)
TITLED = slide(sp(ap("One"), "title"))
CLICKED = sp(ap("Soil").replace("<a:t>", '<a:rPr><a:hlinkClick r:id="web"/></a:rPr><a:t>'), "title")
NUMBER, LETTER = '<a:buAutoNum type="arabicPeriod" startAt="3"/>', '<a:buAutoNum type="alphaLcParenR"/>'
ROMAN = '<a:buAutoNum type="romanUcPeriod" startAt="4"/>'
LISTED = ap("three", NUMBER) + ap("a", LETTER, 1) + ap("b", LETTER, 1) + ap("four", NUMBER) + ap("# plain")
LISTED += ap("fourth", ROMAN)
SLIDE_NUMBER = sp('<a:p><a:fld type="slidenum"><a:t>1</a:t></a:fld></a:p>', "sldNum")
TODAY = sp('<a:p><a:fld type="datetime1"><a:t>1 May</a:t></a:fld></a:p>', "dt")
OFFICE_2018 = 'xmlns:p188="http://schemas.microsoft.com/office/powerpoint/2018/8/main"'
REPLIED = (
    f'<p188:cm {OFFICE_2018} authorId="{{A}}"><p188:replyLst><p188:reply authorId="{{B}}"><p188:txBody>{ap("Sand")}'
    f"</p188:txBody></p188:reply></p188:replyLst><p188:txBody>{ap('Soil')}</p188:txBody></p188:cm>"
)
AUTHORS = Part("authors", '<a><author id="{A}" name="Bob"/><author id="{B}" name="Cy"/></a>')
CHART = graphic('<c:chart r:id="gone"/>')


def deck_of(*titles: str) -> Any:
    deck: Any = Presentation()
    for title in titles:
        deck.slides.add_slide(deck.slide_layouts[5]).shapes.title.text = title
    return deck


def reordered_deck() -> Any:
    """A deck of which one slide is left out and another was moved to the end."""
    deck = deck_of("First", "Second", "Third", "Gone")
    for number in (1, 2):
        deck.slides[number].notes_slide.notes_text_frame.text = f"Note of {number}"
    entries = deck.slides._sldIdLst
    gone, first = entries[3], entries[0]
    entries.remove(gone)
    entries.remove(first)
    entries.append(first)
    deck.slides[0]._element.set("show", "0")
    return deck


def charts() -> Any:
    deck, data, points, empty = (
        deck_of("Rain"),
        CategoryChartData(number_format="0%"),
        XyChartData(),
        CategoryChartData(),
    )
    data.categories, empty.categories = ["May", "June"], []
    data.add_series("north | south", (0.25, 0.5))
    data.add_series("east", (None, 1))
    for name, x in (("oak", 1), ("elm", 2)):
        points.add_series(name).add_data_point(x, 7)
    shapes = deck.slides[0].shapes
    for kind, one in (("COLUMN_CLUSTERED", data), ("XY_SCATTER", points), ("COLUMN_CLUSTERED", empty)):
        shapes.add_chart(getattr(XL_CHART_TYPE, kind), *BOX, one)
    return deck


def placeholders() -> Any:
    deck: Any = Presentation()
    for layout, title, text in ((1, "Trees", "oak\nelm"), (0, "Cover", "subtitle\nmore")):
        shapes = deck.slides.add_slide(deck.slide_layouts[layout])
        shapes.shapes.title.text, shapes.placeholders[1].text = title, text
    return deck


def mastered_deck() -> bytes:
    table = graphic(f"<a:tbl><a:tr><a:tc><a:txBody>{ap('PHRASE')}</a:txBody></a:tc></a:tr></a:tbl>")

    def shown(words: str, kind: str, tag: str) -> Part:
        box, prompt = sp(ap(f"{words} box")), sp(ap(f"{words} prompt"), "ftr")
        return slide(box + table.replace("PHRASE", f"{words} table") + prompt, kind, tag)

    layout = slide("", "slideLayout", "sldLayout", master=shown("Oak Ltd", "slideMaster", "sldMaster"))
    of_notes = shown("Oak internal", "notesMaster", "notesMaster")
    slides = []
    for title in ("One", "Two"):
        notes = slide(sp(ap(f"say {title}"), "body"), "notesSlide", "notes", master=of_notes)
        slides.append(slide(sp(ap(title), "title"), layout=layout, notes=notes))
    return deck_file(slides, handout=slide(sp(ap("Oak handout"), "hdr"), "handoutMaster", "handoutMaster"))


FILES |= {
    "comments with replies": File(".pptx", deck_file([slide("", comments=part("comments", REPLIED))], authors=AUTHORS),
         [("## Slide 1", "1"), ("[Comment by Bob: Soil]", "comment 1"), ("[Reply by Cy: Sand]", "comment 1")]),
    "slides in the order of the presentation": File(".pptx", reordered_deck, [("## Second", "1"),
         ("Notes: Note of 1", "note 1"), ("## Third", "2"), ("Notes: Note of 2", "note 2"), ("## First", "3")],
         "slides that are in the file and not in the presentation were not read: 1"),
    "charts": File(".pptx", charts, [("## Rain", "1"),
         ("Chart\n\n|  | north \\| south | east |\n| --- | --- | --- |\n| May | 25% |  |\n| June | 50% | 100% |",
         "chart 1"),
         ("Chart\n\n|  | oak |\n| --- | --- |\n| 1 | 7 |\n\n|  | elm |\n| --- | --- |\n| 2 | 7 |", "chart 1")]),
    "marks and numbers of lists": File(".pptx", deck_file([slide(sp(ap("List"), "title") + sp(LISTED))]),
         "## List\n\n3. three\n    - a) a\n    - b) b\n4. four\n\n\\# plain\n\n- IV. fourth"),
    "bullets of the layout": File(".pptx", placeholders, "## Trees\n\n- oak\n- elm\n\n## Cover\n\nsubtitle\n\nmore"),
    "numbers of slides and dates of today": File(
         ".pptx", deck_file([slide(sp(ap("One"), "title") + SLIDE_NUMBER + TODAY)]), "## One"),
    "the text of masters": File(".pptx", mastered_deck(), [("## One", "1"), ("Notes: say One", "note 1"),
         ("Oak internal box", "footer 1"), ("| Oak internal table |\n| --- |", "footer 1"), ("Oak Ltd box", "footer 1"),
         ("| Oak Ltd table |\n| --- |", "footer 1"), ("## Two", "2"), ("Notes: say Two", "note 2"),
         ("Oak handout", "header")]),
    "slides without a title": File(".pptx",
         deck_file([slide(sp(ap(text))) for text in ("A first line", "", "long " * 40)]),
         [("## A first line", "1"), ("", "2"), ("## Slide 3", "3"), ("long " * 39 + "long", "3")]),
    "the link of a title": File(".pptx", deck_file([slide(CLICKED)]), f"## [Soil]({URL})"),
    "printed numbers that begin later": File(
         ".pptx", deck_file([TITLED], numbers='firstSlideNum="5"'), [("## One", "1 5")]),
    "missing slides": File(".pptx", deck_file([TITLED, Part("slide", target="slides/none.xml"), TITLED]),
         [("## One", "1"), ("", "2"), ("## One", "3")], "slides without content in the file: 2"),
    "a chart that the file lacks": File(".pptx",
         deck_file([slide(CHART, gone=Part("chart", target="charts/none.xml"))]), [("", "1")],
         "ppt/slides/charts/none.xml"),
    "a relation to nothing": File(".pptx", deck_file([slide(CHART)]), [("", "1")]),
}  # fmt: skip

# --- Sheets ---


def raw_book(rows: str, strings: str = "", after: str = "", **links: Part) -> bytes:
    """A workbook with one sheet of these rows as XML. ``links``: of the sheet."""
    return book_file(
        {"One": sheet(rows, after, **links)},
        strings=book_part("sharedStrings", strings),
        styles=book_part("styles", '<cellXfs><xf/><xf numFmtId="10"/></cellXfs>'),
        person=Part("person", '<personList><person id="{1}" displayName="Ann Lee"/></personList>'),
    )


def book_of(*rows: list[Any], title: str = "Sheet") -> Any:
    book: Any = Workbook()
    book.active.title = title
    for row in rows:
        book.active.append(row)
    return book


VALUES: list[tuple[Any, str, str]] = [
    (0.425, "0.0%", "42.5%"),
    (datetime.time(14, 30), "h:mm", "14:30"),
    (datetime.date(2024, 5, 29), "yyyy-mm-dd", "2024-05-29"),
    (datetime.datetime(2024, 5, 29, 14, 30), "dd.mm.yyyy hh:mm", "29.05.2024 14:30"),
    (datetime.timedelta(hours=36), "[h]:mm", "36:00"),
    (12.5, '#,##0.00\\ "€"', "12.50 €"),
    (True, "General", "TRUE"),
    ("#N/A", "General", "#N/A"),
    ("007", "@", "007"),
    (3.25, "General", "3.25"),
    ("a | b\nc", "General", "a \\| b c"),
]


def values() -> Any:
    book = book_of(["name", "value"], title="Prices")
    for number, (value, code, _) in enumerate(VALUES, 2):
        book.active.append(["row", value])
        book.active.cell(number, 2).number_format = code
    return book


def hidden_sheet() -> Any:
    book = book_of()
    book.active["B3"], book.active["C4"] = "left", "right"
    book.create_sheet("Draft").append(["secret", "value"])
    book["Draft"].sheet_state = "hidden"
    return book


def made_book() -> Any:
    """A workbook with a chart, a table and a comment of openpyxl."""
    book, chart = book_of(["month", "rain"], ["May", 3], ["June", 4]), BarChart()
    chart.title, chart.x_axis.title, chart.y_axis.title = "Wet months", "Month", "Millimetres"
    chart.add_data(Reference(book.active, 2, 1, 2, 3), titles_from_data=True)
    book.active.add_chart(chart, "E2")
    book.active.add_table(Table(displayName="Rainfall", ref="A1:B3"))
    book.active["B1"].comment = Comment("Bob:\nWhy so low?", "Bob")
    return book


THREADS = Part(
    "threadedComment",
    '<ThreadedComments><threadedComment ref="A1" personId="{1}" id="{2}"><text>First word</text></threadedComment>'
    '<threadedComment ref="A1" personId="{1}" id="{3}" parentId="{2}"><text>Last word</text></threadedComment>'
    "</ThreadedComments>",
)
LEGACY = book_part(
    "comments",
    '<authors><author>tc=1</author></authors><commentList><comment ref="A1" authorId="0">'
    "<text><t>[Threaded comment] Your version</t></text></comment></commentList>",
)
REPEATED = (
    '<table:table-row><table:table-cell office:value-type="string"><text:p>a<text:s text:c="2"/>b | <text:span>c'
    '</text:span></text:p></table:table-cell><table:table-cell office:value-type="percentage" office:value="0.425">'
    "<text:p>42.5%</text:p></table:table-cell></table:table-row>"
    '<table:table-row table:number-rows-repeated="2"><table:table-cell table:number-columns-repeated="2" '
    'office:value-type="float" office:value="7"><text:p>7</text:p></table:table-cell>'
    '<table:table-cell table:number-columns-repeated="16382"/></table:table-row>'
    '<table:table-row table:number-rows-repeated="1048570"><table:table-cell/>'
    '</table:table-row><table:table-row><table:table-cell table:formula="of:=[.A1]"/></table:table-row>'
)
HIDDEN_TABLE = '<style:style style:name="h"><style:table-properties table:display="false"/></style:style>'
PROMPTS = (
    "<table:content-validations><table:content-validation>"
    '<table:help-message table:title="Rain"><text:p>in millimetres</text:p></table:help-message>'
    "</table:content-validation></table:content-validations>"
)
FORM = '<office:forms><form:form><form:text form:id="c" form:label="Name" form:current-value="Zoë"/></form:form>'
OBJECTS = "".join(f'<draw:frame><draw:object xlink:href="./Object {at}"/></draw:frame>' for at in range(3))
SHAPES = f'<table:shapes><draw:control draw:control="c"/>{OBJECTS}</table:shapes>'
MATH = '<math xmlns="http://www.w3.org/1998/Math/MathML"><mi>rain</mi></math>'
FILES |= {
    "values as a sheet shows them": File(".xlsx", values,
         "\n".join(["## Prices\n\n| name | value |\n| --- | --- |", *(f"| row | {text} |" for _, _, text in VALUES)])),
    "names of sheets, and hidden ones": File(".xlsx", hidden_sheet, [("## Sheet", ""),
         ("| left |  |\n| --- | --- |\n|  | right |", "B3:C4"), ("## Draft (hidden)", ""),
         ("| secret | value |\n| --- | --- |", "A1:B1")]),
    "tables of a sheet": File(".xlsx",
         lambda: book_of(["Report of May"], [], ["oak", "elm"], [1, 2], [], [3, 4], [], ["ash", "fir"], [5, 6]), [
         ("## Sheet", ""), ("Report of May", "A1"), ("| oak | elm |\n| --- | --- |\n| 1 | 2 |\n| 3 | 4 |", "A3:B6"),
         ("| ash | fir |\n| --- | --- |\n| 5 | 6 |", "A8:B9")]),
    "formulas without a value": File(".xlsx", lambda: book_of([1, 2, "=A1+B1"], [1, 2, "=A2+B2"]),
         "## Sheet\n\n| 1 | 2 | =A1+B1 |\n| --- | --- | --- |\n| 1 | 2 | =A2+B2 |", "2, the first in C1 of 'Sheet'"),
    "formulas with a value": File(".xlsx",
         raw_book('<row r="1"><c r="A1"><f>1+1</f><v>2</v></c><c r="B1" t="str"><f>A1</f><v></v></c></row>'),
         "## One\n\n2"),
    "comments in threads replace those of older programs": File(".xlsx",
         raw_book(cells("1"), threads=THREADS, legacy=LEGACY), [("## One", ""), ("1", "A1"),
         ("[Comment on A1 by Ann Lee: First word]", "comment A1"),
         ("[Reply on A1 by Ann Lee: Last word]", "comment A1")]),
    "comments, charts and tables of openpyxl": File(".xlsx", made_book, [("## Sheet", ""),
         ("[Table Rainfall: A1:B3]", ""), ("| month | rain |\n| --- | --- |\n| May | 3 |\n| June | 4 |", "A1:B3"),
         ("Chart: Wet months. Axes: Month, Millimetres", "chart"),
         ("[Comment on B1 by Bob: Why so low?]", "comment B1")]),
    "repeated cells of OpenDocument": File(".ods", odf_file("spreadsheet",
         f'<table:table table:name="Rain" table:style-name="h">{REPEATED}</table:table>', HIDDEN_TABLE),
         "## Rain (hidden)\n\n| a b \\| c | 42.5% |\n| --- | --- |\n| 7 | 7 |\n| 7 | 7 |\n| =[.A1] |  |",
         "1, the first in A1048574 of 'Rain'"),
    "prompts, forms and formulas of OpenDocument": File(".ods", odf_file("spreadsheet",
         f'{PROMPTS}<table:table table:name="A">{FORM}</office:forms>{SHAPES}</table:table>',
         **{"Object 2/content.xml": MATH}), "## A\n\nName: Zoë\n\nrain\n\n[Prompt: Rain\nin millimetres]"),
    "cells that refer to nothing": File(".xlsx", raw_book(
         '<row r="1"><c r="A1" t="s"><v>99</v></c><c r="B1" t="s"><v>0</v></c><c r="C1"><v>x</v></c></row>',
         "<si><t>oak</t></si>"), "## One\n\n| oak | x |\n| --- | --- |", "1, the first in A1 of 'One'"),
    "a sheet that is cut off": File(".xlsx", raw_book('<row r="1"><c r="A1"><v>7</v></c></row><row><c'), "## One\n\n7",
         "xl/worksheets/worksheet1.xml"),
    "a cell in the last corner": File(".xlsx", raw_book(
         '<row r="1">' + '<c r="A1" s="1"/>' * 16_384 + '</row><row r="1048576"><c r="XFD1048576"><v>5</v></c></row>'),
         [("## One", ""), ("5", "XFD1048576")]),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_what_one_format_has_is_read(name: str) -> None:
    file = FILES[name]
    made = file.data if isinstance(file.data, bytes) else file.data()
    document = read(made if isinstance(made, bytes) else saved(made), file.suffix)
    found = text_of(document) if isinstance(file.expected, str) else blocks_of(document)
    assert found == file.expected
    assert (document.lost, bool(document.warnings)) == (file.lost, bool(file.said))
    assert file.said in " ".join(document.warnings)


# --- Text that its style hides ---

VANISH, SHOW = "<w:vanish/>", '<w:vanish w:val="0"/>'


def word_style(kind: str, name: str, vanish: str = "", based: str = "") -> str:
    above = f'<w:basedOn w:val="{based}"/>' if based else ""
    return f'<w:style w:type="{kind}" w:styleId="{name}">{above}<w:rPr>{vanish}</w:rPr></w:style>'


WORD_HIDING = (
    word_style("character", "Hides", VANISH)
    + word_style("character", "HidesToo", based="Hides")
    + word_style("character", "Shows", SHOW, "Hides")
    + word_style("paragraph", "Hidden", VANISH)
    + word_style("paragraph", "HiddenToo", based="Hidden")
    + word_style("paragraph", "Shown", SHOW, "Hidden")
)
HIDDEN_RUNS = [
    # style of the paragraph, style of the run, the run itself, hidden by default: whether the text is visible
    ("Hidden", "", "", False, False),
    ("Hidden", "", SHOW, False, True),
    ("HiddenToo", "", '<w:vanish w:val="off"/>', False, True),
    ("HiddenToo", "", "", False, False),
    ("Shown", "", "", False, True),
    ("Shown", "", VANISH, False, False),
    ("", "Hides", SHOW, False, True),
    ("", "HidesToo", "", False, False),
    ("", "Shows", "", False, True),
    ("Hidden", "Hides", "", False, True),
    ("HiddenToo", "HidesToo", "", False, True),
    ("Hidden", "Shows", "", False, False),
    ("", "", "", True, False),
    ("Hidden", "Hides", "", True, False),
    ("", "", SHOW, True, True),
]


@pytest.mark.parametrize(("style", "run_style", "own", "by_default", "visible"), HIDDEN_RUNS)
def test_a_run_is_hidden_by_itself_or_by_one_of_its_styles(
    style: str, run_style: str, own: str, by_default: bool, visible: bool
) -> None:
    default = f"<w:docDefaults><w:rPrDefault><w:rPr>{VANISH}</w:rPr></w:rPrDefault></w:docDefaults>" * by_default
    named = f'<w:rStyle w:val="{run_style}"/>' if run_style else ""
    body = wp(run("cedar planted here", named + own), style)
    document = read(word_file(body, part("styles", default + WORD_HIDING)), ".docx")
    assert (text_of(document), document.lost) == ("cedar planted here" * visible, {})


def odf_style(name: str, parent: str = "", shown: str = "", family: str = "paragraph") -> str:
    above = f'style:parent-style-name="{parent}"' if parent else ""
    display = f'<style:text-properties text:display="{shown}"/>' if shown else ""
    return f'<style:style style:name="{name}" style:family="{family}" {above}>{display}</style:style>'


ODF_HIDING = (
    odf_style("H", shown="none")
    + odf_style("P1", "H")
    + odf_style("P2", "P1", "true")
    + odf_style("S", shown="true", family="text")
    + odf_style("T1", "N", family="text")
    + odf_style("N", shown="none", family="text")
)


@pytest.mark.parametrize(
    ("style", "span", "visible"),
    [
        ("H", "", False),
        ("P1", "", False),
        ("P2", "", True),
        ("H", "S", True),
        ("P1", "S", True),
        ("P1", "other", False),
        ("", "T1", False),
        ("P2", "N", False),
    ],
)
def test_text_is_hidden_by_the_nearest_style(style: str, span: str, visible: bool) -> None:
    body = p("Text") + p(f'<text:span text:style-name="{span}">cedar planted here</text:span>', style)
    document = read(odf_file("text", body, ODF_HIDING), ".odt")
    assert (text_of(document), document.lost) == ("Text" + "\n\ncedar planted here" * visible, {})


# --- Headers and footers, of which the number of the page is left out ---


def word_footer(text: str) -> bytes:
    before, _, after = text.partition("3")
    number = f'<w:fldSimple w:instr=" PAGE ">{run("3")}</w:fldSimple>'
    return word_file(wp(run("Page 3")), part("footer", wp(run(before) + number + run(after))))


def sheet_header(code: str) -> bytes:
    return raw_book("", after=f"<headerFooter><oddHeader>{code.replace('&', '&amp;')}</oddHeader></headerFooter>")


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


def sheet_pages(master: str) -> bytes:
    style = f'<style:style style:name="m" style:master-page-name="{master}"/>'
    table = '<table:table table:name="{}" table:style-name="m"/>'
    return odf_file("spreadsheet", table.format("A") + table.format("B"), style, PAGE_STYLES)


MARGINS: list[tuple[Callable[[str], bytes], str, list[str]]] = [
    *((word_footer, text, []) for text in ("- 3 -", "Seite 3 von 12", "A-3")),
    *((word_footer, text, [text]) for text in ("2024 - 3", "4711 / 3", "Civil 3", "III - 3", "Exhibit 3")),
    (sheet_header, "&LOak Ltd&CPage &P of &N", ["Oak Ltd"]),
    (sheet_header, "&P Confidential", ["Confidential"]),
    (sheet_header, "&CSeite &P", []),
    (sheet_header, "&C2024 / &P", ["2024 /"]),
    (sheet_header, '&L&"Arial,Bold"&12Oak && Elm&R&D', ["Oak & Elm"]),
    *((sheet_pages, master, []) for master in ("Default", "Report", "")),
    (sheet_pages, "Oak", ["Draft of Oak prices 2 May", "Oak Ltd"]),
]


@pytest.mark.parametrize(("make", "text", "expected"), MARGINS)
def test_only_the_number_of_the_page_is_left_out_of_margins(
    make: Callable[[str], bytes], text: str, expected: list[str]
) -> None:
    document = read(make(text), {word_footer: ".docx", sheet_header: ".xlsx", sheet_pages: ".ods"}[make])
    assert [block.text for block in document.blocks if block.place.kind in ("header", "footer")] == expected
    assert [block.text for block in document.blocks if block.text == "Page 3"] == ["Page 3"] * (make is word_footer)
    assert document.lost == {}


# --- What a file costs, and where it leads ---


def test_comments_without_a_reference_are_read_in_linear_steps() -> None:
    def read_comments(count: int) -> None:
        comment = f'<w:comment w:id="NUMBER">{wp(run("PHRASE"))}</w:comment>'
        document = read(docx(["why"] * count, wp(run("Text")), comments=comment), ".docx")
        assert (len(document.blocks), document.lost) == (2 * count, {})

    check_linear(read_comments, 200)


def test_rows_of_a_sheet_are_read_in_linear_steps() -> None:
    words = "".join(f"<si><t>word{number}</t></si>" for number in range(9))

    def read_rows(count: int) -> None:
        rows = (
            f'<row r="{row}"><c r="A{row}" t="s"><v>{row % 9}</v></c><c r="B{row}" s="1"><v>0.{row}</v></c></row>'
            for row in range(1, count + 1)
        )
        document = read(raw_book("".join(rows), words), ".xlsx")
        assert (len(text_of(document).splitlines()), document.lost) == (count + 3, {})

    check_linear(read_rows, 500)


def test_empty_columns_and_repeated_rows_cost_nothing() -> None:
    cell = f"<table:table-cell>{p('a')}</table:table-cell>"

    def read_table(repeats: int) -> None:
        cells = f'{cell}<table:table-cell table:number-columns-repeated="{repeats}"/>{cell}</table:table-row>'
        rows = f'<table:table-row>{cells}<table:table-row table:number-rows-repeated="{repeats}">{cells}'
        document = read(odf_file("text", f"<table:table>{rows}</table:table>"), ".odt")
        assert text_of(document).startswith("| a | a |\n| --- | --- |\n| a | a |")
        assert document.lost == {}

    assert steps(read_table, 1_048_576) == steps(read_table, 16_384)


def test_cells_apart_from_each_other_make_no_large_table() -> None:
    apart = [f'<row r="{row}"><c r="{column_name(row)}{row}"><v>{row}</v></c></row>' for row in range(1, 3_001)]
    text = text_of(read(raw_book("".join(apart)), ".xlsx"))
    assert "- B2: 2" in text
    assert len(text) < 100_000


def test_objects_may_lead_to_nothing_outside_or_to_themselves(tmp_path: Path) -> None:
    (tmp_path / "content.xml").write_text("secret", encoding="utf-8")
    hrefs = ("./Gone", "../../etc", "https://e.org/a", tmp_path.as_uri(), "./Object 1")
    frames = "".join(f'<draw:frame><draw:object xlink:href="{href}"/></draw:frame>' for href in hrefs)
    inner = odf_content("text", p(f"Inner {frames}"))
    document = read(odf_file("text", p(f"Text {frames}"), **{"Object 1/content.xml": inner}), ".odt")
    assert text_of(document) == "Text\n\nInner"
