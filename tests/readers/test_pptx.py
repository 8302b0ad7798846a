"""Presentations are read slide by slide, with all that a slide shows."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from lxml import etree
from pptx import Presentation
from pptx.chart.data import CategoryChartData, XyChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches

from ragistry.readers.blocks import ReadDocument, UnreadableFileError
from ragistry.readers.pptx import read

OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
NAMES = (
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
    'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" '
    f'xmlns:r="{OFFICE}" xmlns:dgm="http://schemas.openxmlformats.org/drawingml/2006/diagram" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" '
    'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
)
PHRASES = [f"planted{number:02d} phrase{number:02d}" for number in range(20)]
BOX = Inches(1), Inches(1), Inches(4), Inches(1)

Deck = Any
Slide = Any


def deck_of(titles: list[str]) -> Deck:
    deck = Presentation()
    for title in titles:
        deck.slides.add_slide(deck.slide_layouts[5]).shapes.title.text = title
    return deck


def saved(deck: Deck) -> bytes:
    stream = BytesIO()
    deck.save(stream)
    return stream.getvalue()


def changed(data: bytes, change: Callable[[str, str], str | None], more: dict[str, str] | None = None) -> bytes:
    """A package with other XML parts; a part for which ``change`` returns None is left out."""
    stream = BytesIO()
    with zipfile.ZipFile(BytesIO(data)) as old, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            part = old.read(name)
            if name.endswith((".xml", ".rels")):
                text = change(name, part.decode())
                if text is None:
                    continue
                part = text.encode()
            new.writestr(name, part)
        for name, text in (more or {}).items():
            new.writestr(name, text)
    return stream.getvalue()


def with_shape(data: bytes, number: int, xml: str, links: str = "", more: dict[str, str] | None = None) -> bytes:
    """A deck with further XML in the shapes of one slide, and further relations of it."""

    def change(name: str, text: str) -> str:
        if name == f"ppt/slides/slide{number}.xml":
            return text.replace("</p:spTree>", f"{xml}</p:spTree>")
        if name == f"ppt/slides/_rels/slide{number}.xml.rels":
            return text.replace("</Relationships>", f"{links}</Relationships>")
        return text

    return changed(data, change, more)


def link(identity: str, kind: str, target: str) -> str:
    return f'<Relationship Id="{identity}" Type="{OFFICE}/{kind}" Target="{target}"/>'


def text_of(document: ReadDocument, page: int | None = None, kind: str | None = None) -> str:
    return "\n\n".join(
        block.text
        for block in document.blocks
        if (page is None or block.place.page == page) and (kind is None or block.place.kind == kind)
    )


# Each puts a phrase on a slide; the slides of a deck have one each


def body(slide: Slide, phrase: str) -> None:
    slide.shapes.add_textbox(*BOX).text_frame.text = phrase


def title(slide: Slide, phrase: str) -> None:
    slide.shapes.title.text = phrase


def group(slide: Slide, phrase: str) -> None:
    slide.shapes.add_group_shape().shapes.add_group_shape().shapes.add_textbox(*BOX).text_frame.text = phrase


def table(slide: Slide, phrase: str) -> None:
    frame = slide.shapes.add_table(2, 3, *BOX).table
    frame.cell(1, 2).text = phrase
    frame.cell(0, 0).merge(frame.cell(0, 1))


def note(slide: Slide, phrase: str) -> None:
    slide.notes_slide.notes_text_frame.text = phrase


def picture(slide: Slide, phrase: str) -> None:
    slide.shapes.add_textbox(*BOX)._element.nvSpPr.cNvPr.set("descr", phrase)


def titled_picture(slide: Slide, phrase: str) -> None:
    properties = slide.shapes.add_group_shape()._element.nvGrpSpPr.cNvPr
    properties.set("title", phrase)
    properties.set("descr", "Rain")


def chart_of(slide: Slide, phrase: str, where: str) -> None:
    data = CategoryChartData()
    data.categories = [phrase if where == "category" else "May", "June"]
    data.add_series(phrase if where == "series" else "rain", (1.5, 2))
    chart = slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, *BOX, data).chart
    chart.has_title = True
    chart.chart_title.text_frame.text = phrase if where == "title" else "A title"
    chart.value_axis.has_title = True
    chart.value_axis.axis_title.text_frame.text = phrase if where == "axis" else "An axis"


def noted(inner: str) -> Callable[[Slide, str], None]:
    """Put a shape on the page of notes that is like this XML."""

    def add(slide: Slide, phrase: str) -> None:
        shapes = slide.notes_slide.shapes
        shapes._spTree.append(etree.fromstring(inner.replace("NAMES", NAMES).replace("PHRASE", phrase)))

    return add


SHAPE = (
    '<p:sp NAMES><p:nvSpPr><p:cNvPr id="9" name="a"/><p:cNvSpPr/><p:nvPr>{}</p:nvPr></p:nvSpPr><p:txBody><a:p><a:r>'
    "<a:t>PHRASE</a:t></a:r></a:p></p:txBody></p:sp>"
)
TABLE = (
    "<p:graphicFrame NAMES><a:graphic><a:graphicData><a:tbl><a:tr><a:tc><a:txBody><a:p><a:r><a:t>PHRASE</a:t></a:r>"
    "</a:p></a:txBody></a:tc></a:tr></a:tbl></a:graphicData></a:graphic></p:graphicFrame>"
)
PICTURE = '<p:pic NAMES><p:nvPicPr><p:cNvPr id="9" name="a" descr="PHRASE"/><p:cNvPicPr/><p:nvPr/></p:nvPicPr></p:pic>'
GROUP = SHAPE.replace("<p:sp NAMES>", "<p:grpSp NAMES><p:sp>") + "</p:grpSp>"
KINDS: dict[str, Callable[[Slide, str], None]] = {
    **{
        f"{name} of notes": noted(inner)
        for name, inner in {
            "tables": TABLE,
            "pictures": PICTURE,
            "boxes": SHAPE.format(""),
            "groups": GROUP.format(""),
            **{kind: SHAPE.format(f'<p:ph type="{kind}"/>') for kind in ("hdr", "ftr", "dt")},
        }.items()
    },
    "text boxes": body,
    "titles": title,
    "groups": group,
    "tables": table,
    "notes": note,
    "alternative texts": picture,
    "titles of pictures": titled_picture,
    "chart titles": lambda slide, phrase: chart_of(slide, phrase, "title"),
    "chart axes": lambda slide, phrase: chart_of(slide, phrase, "axis"),
    "chart categories": lambda slide, phrase: chart_of(slide, phrase, "category"),
    "chart series": lambda slide, phrase: chart_of(slide, phrase, "series"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_phrase_is_on_its_slide(kind: str) -> None:
    deck = deck_of([f"Slide of {number}" for number in range(20)])
    for slide, phrase in zip(deck.slides, PHRASES, strict=True):
        KINDS[kind](slide, phrase)
    document = read(saved(deck), ".pptx")
    for number, phrase in enumerate(PHRASES, start=1):
        assert phrase in text_of(document, number)
    assert document.lost == {}


def diagram(texts: list[str]) -> str:
    points = '<dgm:pt modelId="0" type="doc"/>' + "".join(
        f'<dgm:pt modelId="{number}"><dgm:t><a:bodyPr/><a:p><a:r><a:t>{text}</a:t></a:r></a:p></dgm:t></dgm:pt>'
        for number, text in enumerate(texts, start=1)
    )
    links = '<dgm:cxn modelId="90" srcId="0" destId="1" srcOrd="0"/>' + "".join(
        f'<dgm:cxn modelId="{90 + number}" srcId="1" destId="{number}" srcOrd="{99 - number}"/>'
        for number in range(2, len(texts) + 1)
    )
    return f"<dgm:dataModel {NAMES}><dgm:ptLst>{points}</dgm:ptLst><dgm:cxnLst>{links}</dgm:cxnLst></dgm:dataModel>"


def test_a_diagram_is_a_list() -> None:
    frame = f'<p:graphicFrame {NAMES}><a:graphic><dgm:relIds r:dm="rId9"/></a:graphic></p:graphicFrame>'
    data = with_shape(
        saved(deck_of(["Plan"])),
        1,
        frame,
        link("rId9", "diagramData", "../diagrams/data1.xml"),
        {"ppt/diagrams/data1.xml": diagram(["Trees", "Elm", "Oak", *PHRASES])},
    )
    document = read(data, ".pptx")
    assert all(phrase in text_of(document, 1) for phrase in PHRASES)
    assert "- Trees\n    - planted19 phrase19" in text_of(document)
    assert text_of(document).endswith("    - Oak\n    - Elm")
    assert document.lost == {}


def test_comments_of_both_formats_have_their_author() -> None:
    old = f'<p:cmLst {NAMES}><p:cm authorId="0"><p:text>{PHRASES[0]}</p:text></p:cm></p:cmLst>'
    new = (
        f'<p188:cmLst xmlns:p188="http://schemas.microsoft.com/office/powerpoint/2018/8/main" {NAMES}>'
        f'<p188:cm authorId="{{A}}"><p188:replyLst><p188:reply authorId="{{B}}"><p188:txBody><a:p><a:r><a:t>'
        f"{PHRASES[2]}</a:t></a:r></a:p></p188:txBody></p188:reply></p188:replyLst><p188:txBody><a:p><a:r><a:t>"
        f"{PHRASES[1]}</a:t></a:r></a:p></p188:txBody></p188:cm></p188:cmLst>"
    )
    data = with_shape(saved(deck_of(["One", "Two"])), 1, "", link("rId8", "comments", "../comments/comment1.xml"))
    data = with_shape(data, 2, "", link("rId8", "comments", "../comments/modern.xml"))

    def authors(name: str, text: str) -> str:
        if name != "ppt/_rels/presentation.xml.rels":
            return text
        links = link("rId80", "commentAuthors", "commentAuthors.xml") + link("rId81", "authors", "authors.xml")
        return text.replace("</Relationships>", f"{links}</Relationships>")

    more = {
        "ppt/comments/comment1.xml": old,
        "ppt/comments/modern.xml": new,
        "ppt/commentAuthors.xml": f'<p:cmAuthorLst {NAMES}><p:cmAuthor id="0" name="Ann"/></p:cmAuthorLst>',
        "ppt/authors.xml": '<a><author id="{A}" name="Bob"/><author id="{B}" name="Cy"/></a>',
    }
    document = read(changed(data, authors, more), ".pptx")
    assert text_of(document, 1, "comment") == f"[Comment by Ann: {PHRASES[0]}]"
    assert text_of(document, 2, "comment") == f"[Comment by Bob: {PHRASES[1]}]\n\n[Reply by Cy: {PHRASES[2]}]"
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


def test_tables_keep_their_shape() -> None:
    deck = deck_of(["Rain"])
    cells = deck.slides[0].shapes.add_table(3, 2, *BOX).table
    for at, text in enumerate(["month", "rain\nin mm", "May", "1 | 2", "June", "#3"]):
        cells.cell(at // 2, at % 2).text = text
    cells.cell(1, 0).merge(cells.cell(2, 0))
    text = text_of(read(saved(deck), ".pptx"))
    assert text.endswith("| month | rain in mm |\n| --- | --- |\n| May June | 1 \\| 2 |\n|  | #3 |")


def paragraph(text: str, mark: str = "", level: int = 0) -> str:
    return f'<a:p><a:pPr lvl="{level}">{mark}</a:pPr><a:r><a:t>{text}</a:t></a:r></a:p>'


def test_lists_have_their_marks_and_numbers() -> None:
    numbered = '<a:buAutoNum type="arabicPeriod" startAt="3"/>'
    lines = [
        paragraph("three", numbered),
        paragraph("a", '<a:buAutoNum type="alphaLcParenR"/>', 1),
        paragraph("b", '<a:buAutoNum type="alphaLcParenR"/>', 1),
        paragraph("four", numbered),
        paragraph("# plain"),
        paragraph("dot", '<a:buChar char="•"/>'),
        "<a:p><a:r><a:t>one</a:t></a:r><a:br/><a:r><a:t>two</a:t></a:r></a:p>",
        paragraph("fourth", '<a:buAutoNum type="romanUcPeriod" startAt="4"/>'),
    ]
    shape = f"<p:sp {NAMES}><p:nvSpPr/><p:txBody>{''.join(lines)}</p:txBody></p:sp>"
    text = text_of(read(with_shape(saved(deck_of(["List"])), 1, shape), ".pptx"))
    assert text == (
        "## List\n\n3. three\n    - a) a\n    - b) b\n4. four\n\n\\# plain\n\n- dot\n\none\ntwo\n\n- IV. fourth"
    )


def test_body_placeholders_have_the_bullets_of_their_layout() -> None:
    deck = Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.shapes.title.text, slide.placeholders[1].text = "Trees", "oak\nelm"
    cover = deck.slides.add_slide(deck.slide_layouts[0])
    cover.shapes.title.text, cover.placeholders[1].text = "Cover", "subtitle\nmore"
    document = read(saved(deck), ".pptx")
    assert text_of(document, 1) == "## Trees\n\n- oak\n- elm"
    assert text_of(document, 2) == "## Cover\n\nsubtitle\n\nmore"


def test_footers_are_read_once_and_numbers_of_slides_not() -> None:
    data = saved(deck_of(["One", "Two"]))
    for number in (1, 2):
        shapes = "".join(
            f'<p:sp {NAMES}><p:nvSpPr><p:nvPr><p:ph type="{kind}"/></p:nvPr></p:nvSpPr><p:txBody><a:p>{text}</a:p>'
            "</p:txBody></p:sp>"
            for kind, text in (
                ("ftr", "<a:r><a:t>Oak Ltd</a:t></a:r>"),
                ("sldNum", f'<a:fld type="slidenum"><a:t>{number}</a:t></a:fld>'),
                ("dt", '<a:fld type="datetime1"><a:t>1 May</a:t></a:fld>'),
            )
        )
        data = with_shape(data, number, shapes)
    document = read(data, ".pptx")
    assert [block.text for block in document.blocks] == ["## One", "Oak Ltd", "## Two"]
    assert document.blocks[1].place.kind == "footer"
    assert document.lost == {}


def test_masters_show_their_own_text_once() -> None:
    deck = deck_of(["One", "Two"])
    for number, slide in enumerate(deck.slides):
        note(slide, f"say {number}")
    master = deck.slide_masters[0].shapes._spTree
    for tree, words in ((master, "Oak Ltd"), (deck.notes_master.shapes._spTree, "Oak internal")):
        for inner in (SHAPE.format(""), TABLE, SHAPE.format('<p:ph type="ftr"/>')):
            kind = "prompt" if "<p:ph" in inner else "table" if inner == TABLE else "box"
            tree.append(etree.fromstring(inner.replace("NAMES", NAMES).replace("PHRASE", f"{words} {kind}")))
    handout = f"<p:handoutMaster {NAMES}><p:cSld><p:spTree>"
    handout += SHAPE.format('<p:ph type="hdr"/>').replace("NAMES", "").replace("PHRASE", "Oak handout")
    handout += "</p:spTree></p:cSld></p:handoutMaster>"

    def change(name: str, text: str) -> str:
        related = name == "ppt/_rels/presentation.xml.rels"
        added = link("hand", "handoutMaster", "handoutMasters/handoutMaster1.xml")
        return text.replace("</Relationships>", f"{added}</Relationships>") if related else text

    data = changed(saved(deck), change, {"ppt/handoutMasters/handoutMaster1.xml": handout})
    document = read(data, ".pptx")
    assert [(block.text, block.place.page, block.place.kind) for block in document.blocks] == [
        ("## One", 1, ""),
        ("Notes: say 0", 1, "note"),
        ("Oak internal box", 1, "footer"),
        ("| Oak internal table |\n| --- |", 1, "footer"),
        ("Oak Ltd box", 1, "footer"),
        ("| Oak Ltd table |\n| --- |", 1, "footer"),
        ("## Two", 2, ""),
        ("Notes: say 1", 2, "note"),
        ("Oak handout", None, "header"),
    ]
    assert document.lost == {}


def test_slides_without_a_title_have_a_heading_and_empty_ones_a_place() -> None:
    deck = Presentation()
    for text in ("A first line", "", "long " * 40):
        slide = deck.slides.add_slide(deck.slide_layouts[6])
        if text:
            slide.shapes.add_textbox(*BOX).text_frame.text = text
    blocks = read(saved(deck), ".pptx").blocks
    assert [(block.place.page, block.text[:12]) for block in blocks] == [
        (1, "## A first l"),
        (2, ""),
        (3, "## Slide 3"),
        (3, "long long lo"),
    ]


def test_formulas_and_alternatives_are_read() -> None:
    math = (
        "<m:oMathPara><m:oMath><m:f><m:num><m:r><m:t>a+b</m:t></m:r></m:num><m:den><m:r><m:t>c</m:t></m:r></m:den></m:f>"
        "</m:oMath></m:oMathPara>"
    )
    shape = (
        f"<mc:AlternateContent {NAMES}><mc:Choice><p:sp><p:nvSpPr/><p:txBody><a:p><a:r><a:t>is </a:t></a:r>{math}</a:p>"
        "</p:txBody></p:sp></mc:Choice><mc:Fallback><p:sp><p:txBody><a:p><a:r><a:t>other words</a:t></a:r></a:p>"
        "</p:txBody></p:sp></mc:Fallback></mc:AlternateContent>"
    )
    document = read(with_shape(saved(deck_of(["Sum"])), 1, shape), ".pptx")
    assert text_of(document) == "## Sum\n\nis (a+b)/c"
    assert document.lost == {}


def test_metadata_and_printed_numbers() -> None:
    deck = deck_of(["One"])
    deck.core_properties.title, deck.core_properties.author = "Costs", "Ann"
    deck.core_properties.subject, deck.core_properties.keywords = "Trees", "oak; elm"
    deck.part._element.set("firstSlideNum", "5")
    document = read(saved(deck), ".pptx")
    expected = {"Title": "Costs", "Author": "Ann", "Subject": "Trees", "Keywords": "oak; elm"}
    assert expected.items() <= document.info.items()
    assert document.info["Created"] == "2013-01-27T09:14:16Z"
    assert [(block.place.page, block.place.label) for block in document.blocks] == [(1, "5")]


def test_damaged_decks_are_read_as_far_as_possible() -> None:
    data = saved(deck_of(["One", "Two", "Three"]))
    document = read(changed(data, lambda name, text: None if name.endswith("slides/slide2.xml") else text), ".pptx")
    assert re.findall("## .*", text_of(document)) == ["## One", "## Three"]
    assert [block.place.page for block in document.blocks] == [1, 2, 3]
    assert "slides without content in the file: 2" in document.warnings[0]

    def cut(name: str, text: str) -> str:
        return text[: text.index("</p:spTree>")] if name.endswith("slides/slide2.xml") else text

    document = read(changed(data, cut), ".pptx")
    assert "## Two" in text_of(document, 2)
    assert "ppt/slides/slide2.xml" in document.warnings[0]

    chart = f'<p:graphicFrame {NAMES}><c:chart xmlns:c="c" r:id="rId99"/></p:graphicFrame>'
    lost = with_shape(data, 1, chart, link("rId99", "chart", "../charts/none.xml"))
    assert any("ppt/charts/none.xml" in line for line in read(lost, ".pptx").warnings)
    assert read(with_shape(data, 1, chart), ".pptx").warnings == []


def test_a_deck_of_300_slides_is_read_in_order() -> None:
    document = read(saved(deck_of([f"Slide {number}" for number in range(300)])), ".pptx")
    assert [block.text for block in document.blocks] == [f"## Slide {number}" for number in range(300)]


def test_other_files_are_refused() -> None:
    ole = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
    data = saved(deck_of(["One"]))
    broken = changed(data, lambda name, text: text[:300] if name == "ppt/presentation.xml" else text)
    encrypted = ole + bytes(100) + "EncryptedPackage".encode("utf-16-le")
    for other in (b"", b"PK\x03\x04garbage", data[: len(data) // 2], broken, ole + bytes(100), encrypted):
        with pytest.raises(UnreadableFileError) as failure:
            read(other, ".pptx")
        assert ("encrypted" in str(failure.value)) == (other == encrypted)


def test_shared_files_give_no_false_alarm(shared_office: Path) -> None:
    for path in sorted(shared_office.glob("*.pptx")):
        document = read(path.read_bytes(), ".pptx")
        assert (document.lost, document.warnings) == ({}, []), path.name
    assert "| 2022 | 175 | 130 |" in text_of(read((shared_office / "chart.pptx").read_bytes(), ".pptx"), 1, "chart")
    assert text_of(read((shared_office / "notes.pptx").read_bytes(), ".pptx"), 1, "note") == "Notes: Notes"
    comments = text_of(read((shared_office / "comments.pptx").read_bytes(), ".pptx"), 1, "comment")
    assert "[Reply by Jane Smith: This is a sample response]" in comments
