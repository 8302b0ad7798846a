"""Presentations: what no other format has. What they share is in test_office_table.py."""

from __future__ import annotations

import re
from io import BytesIO
from typing import Any

from pptx import Presentation
from pptx.chart.data import CategoryChartData, XyChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches

from ragistry.readers.blocks import ReadDocument
from tests.readers.office_builder import (
    URL,
    Part,
    ap,
    deck_file,
    graphic,
    part,
    read,
    slide,
    sp,
)

BOX = Inches(1), Inches(1), Inches(4), Inches(1)
Deck = Any


def deck_of(titles: list[str]) -> Deck:
    deck = Presentation()
    for title in titles:
        deck.slides.add_slide(deck.slide_layouts[5]).shapes.title.text = title
    return deck


def saved(deck: Deck) -> bytes:
    stream = BytesIO()
    deck.save(stream)
    return stream.getvalue()


def text_of(document: ReadDocument, page: int | None = None, kind: str | None = None) -> str:
    return "\n\n".join(
        block.text
        for block in document.blocks
        if (page is None or block.place.page == page) and (kind is None or block.place.kind == kind)
    )


TABLE = graphic(f"<a:tbl><a:tr><a:tc><a:txBody>{ap('PHRASE')}</a:txBody></a:tc></a:tr></a:tbl>")


def test_comments_with_replies_have_their_authors() -> None:
    main = 'xmlns:p188="http://schemas.microsoft.com/office/powerpoint/2018/8/main"'
    comments = (
        f'<p188:cm {main} authorId="{{A}}"><p188:replyLst><p188:reply authorId="{{B}}"><p188:txBody>{ap("Sand")}'
        f"</p188:txBody></p188:reply></p188:replyLst><p188:txBody>{ap('Soil')}</p188:txBody></p188:cm>"
    )
    authors = Part("authors", '<a><author id="{A}" name="Bob"/><author id="{B}" name="Cy"/></a>')
    document = read(deck_file([slide("", comments=part("comments", comments))], authors=authors), ".pptx")
    assert text_of(document, 1, "comment") == "[Comment by Bob: Soil]\n\n[Reply by Cy: Sand]"
    assert document.lost == {}


def test_slides_and_notes_follow_the_presentation_and_not_the_names_of_files() -> None:
    deck = deck_of(["First", "Second", "Third", "Gone"])
    for number in (1, 2):
        deck.slides[number].notes_slide.notes_text_frame.text = f"Note of {number}"
    entries = deck.slides._sldIdLst
    gone, first = entries[3], entries[0]
    entries.remove(gone)
    entries.remove(first)
    entries.append(first)
    deck.slides[0]._element.set("show", "0")
    document = read(saved(deck), ".pptx")
    assert re.findall("## .*", text_of(document)) == ["## Second", "## Third", "## First"]
    assert [text_of(document, page, "note") for page in (1, 2, 3)] == ["Notes: Note of 1", "Notes: Note of 2", ""]
    assert document.warnings == ["slides that are in the file and not in the presentation were not read: 1"]
    assert document.lost == {}


def test_charts_are_tables() -> None:
    deck = deck_of(["Rain"])
    data = CategoryChartData(number_format="0%")
    data.categories = ["May", "June"]
    data.add_series("north | south", (0.25, 0.5))
    data.add_series("east", (None, 1))
    deck.slides[0].shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, *BOX, data)
    points = XyChartData()
    for name, x in (("oak", 1), ("elm", 2)):
        points.add_series(name).add_data_point(x, 7)
    deck.slides[0].shapes.add_chart(XL_CHART_TYPE.XY_SCATTER, *BOX, points)
    document = read(saved(deck), ".pptx")
    text = text_of(document, kind="chart")
    assert "|  | north \\| south | east |\n| --- | --- | --- |\n| May | 25% |  |\n| June | 50% | 100% |" in text
    assert "|  | oak |\n| --- | --- |\n| 1 | 7 |\n\n|  | elm |\n| --- | --- |\n| 2 | 7 |" in text
    assert document.lost == {}


def test_a_chart_without_data_is_left_out() -> None:
    deck = deck_of(["Rain"])
    data = CategoryChartData()
    data.categories = []
    deck.slides[0].shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, *BOX, data)
    assert text_of(read(saved(deck), ".pptx")) == "## Rain"


def test_lists_have_their_marks_and_numbers() -> None:
    numbered = '<a:buAutoNum type="arabicPeriod" startAt="3"/>'
    lines = [
        ap("three", numbered),
        ap("a", '<a:buAutoNum type="alphaLcParenR"/>', 1),
        ap("b", '<a:buAutoNum type="alphaLcParenR"/>', 1),
        ap("four", numbered),
        ap("# plain"),
        ap("fourth", '<a:buAutoNum type="romanUcPeriod" startAt="4"/>'),
    ]
    text = text_of(read(deck_file([slide(sp(ap("List"), "title") + sp("".join(lines)))]), ".pptx"))
    assert text == "## List\n\n3. three\n    - a) a\n    - b) b\n4. four\n\n\\# plain\n\n- IV. fourth"


def test_body_placeholders_have_the_bullets_of_their_layout() -> None:
    deck = Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.shapes.title.text, slide.placeholders[1].text = "Trees", "oak\nelm"
    cover = deck.slides.add_slide(deck.slide_layouts[0])
    cover.shapes.title.text, cover.placeholders[1].text = "Cover", "subtitle\nmore"
    document = read(saved(deck), ".pptx")
    assert text_of(document, 1) == "## Trees\n\n- oak\n- elm"
    assert text_of(document, 2) == "## Cover\n\nsubtitle\n\nmore"


def test_numbers_of_slides_and_dates_of_today_are_not_read() -> None:
    number = '<a:p><a:fld type="slidenum"><a:t>1</a:t></a:fld></a:p>'
    today = '<a:p><a:fld type="datetime1"><a:t>1 May</a:t></a:fld></a:p>'
    document = read(deck_file([slide(sp(ap("One"), "title") + sp(number, "sldNum") + sp(today, "dt"))]), ".pptx")
    assert [block.text for block in document.blocks] == ["## One"]


def test_masters_show_their_own_text_once() -> None:
    def shown(words: str, kind: str, tag: str, **links: Part) -> Part:
        box, prompt = sp(ap(f"{words} box")), sp(ap(f"{words} prompt"), "ftr")
        return slide(box + TABLE.replace("PHRASE", f"{words} table") + prompt, kind, tag, **links)

    master = shown("Oak Ltd", "slideMaster", "sldMaster")
    layout = slide("", "slideLayout", "sldLayout", master=master)
    of_notes = shown("Oak internal", "notesMaster", "notesMaster")
    slides = [
        slide(
            sp(ap(title), "title"),
            layout=layout,
            notes=slide(sp(ap(f"say {title}"), "body"), "notesSlide", "notes", master=of_notes),
        )
        for title in ("One", "Two")
    ]
    handout = slide(sp(ap("Oak handout"), "hdr"), "handoutMaster", "handoutMaster")
    document = read(deck_file(slides, handout=handout), ".pptx")
    assert [(block.text, block.place.page, block.place.kind) for block in document.blocks] == [
        ("## One", 1, ""),
        ("Notes: say One", 1, "note"),
        ("Oak internal box", 1, "footer"),
        ("| Oak internal table |\n| --- |", 1, "footer"),
        ("Oak Ltd box", 1, "footer"),
        ("| Oak Ltd table |\n| --- |", 1, "footer"),
        ("## Two", 2, ""),
        ("Notes: say Two", 2, "note"),
        ("Oak handout", None, "header"),
    ]
    assert document.lost == {}


def test_slides_without_a_title_have_a_heading_and_empty_ones_a_place() -> None:
    slides = [slide(sp(ap(text))) for text in ("A first line", "", "long " * 40)]
    blocks = read(deck_file(slides), ".pptx").blocks
    assert [(block.place.page, block.text[:12]) for block in blocks] == [
        (1, "## A first l"),
        (2, ""),
        (3, "## Slide 3"),
        (3, "long long lo"),
    ]


def test_the_link_of_a_title_is_read() -> None:
    title = sp(ap("Soil").replace("<a:t>", '<a:rPr><a:hlinkClick r:id="web"/></a:rPr><a:t>'), "title")
    assert text_of(read(deck_file([slide(title)]), ".pptx")) == f"## [Soil]({URL})"


def test_printed_numbers_may_begin_later() -> None:
    blocks = read(deck_file([slide(sp(ap("One"), "title"))], numbers='firstSlideNum="5"'), ".pptx").blocks
    assert [(block.place.page, block.place.label) for block in blocks] == [(1, "5")]


def test_missing_slides_keep_their_numbers() -> None:
    slides = [slide(sp(ap("One"), "title")), Part("slide", target="slides/none.xml"), slide(sp(ap("Three"), "title"))]
    document = read(deck_file(slides), ".pptx")
    assert [(block.text, block.place.page) for block in document.blocks] == [("## One", 1), ("", 2), ("## Three", 3)]
    assert "slides without content in the file: 2" in document.warnings[0]


def test_relations_may_lead_to_nothing() -> None:
    chart = graphic('<c:chart r:id="gone"/>')
    lost = read(deck_file([slide(chart, gone=Part("chart", target="charts/none.xml"))]), ".pptx")
    assert any("ppt/slides/charts/none.xml" in line for line in lost.warnings)
    assert read(deck_file([slide(chart)]), ".pptx").warnings == []
