"""OpenDocument texts and presentations are read whole and in reading order, and what is not read is counted."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest

from ragistry.readers.blocks import ReadDocument, UnreadableFileError, answer_of
from ragistry.readers.odf import read
from tests.messages import check_message
from tests.visits import check_linear, steps

URN = "urn:oasis:names:tc:opendocument:xmlns:"
SPACES = {
    **{
        name: f"{URN}{name}:1.0"
        for name in ("office", "text", "table", "style", "form", "presentation", "meta", "chart", "dr3d")
    },
    "draw": f"{URN}drawing:1.0",
    "svg": f"{URN}svg-compatible:1.0",
    "xlink": "http://www.w3.org/1999/xlink",
    "dc": "http://purl.org/dc/elements/1.1/",
    "math": "http://www.w3.org/1998/Math/MathML",
}
NAMES = " ".join(f'xmlns:{name}="{uri}"' for name, uri in SPACES.items())
PHRASES = [f"planted{number} cedar{number}" for number in range(20)]


def odf_file(
    body: str, styles: str = "", kind: str = "text", parts: dict[str, str] | None = None, pages: str = ""
) -> bytes:
    """A document of raw XML. ``styles``: of the text; ``pages``: the master pages; ``parts``: further members."""
    files = {
        "mimetype": f"application/vnd.oasis.opendocument.{kind}",
        "content.xml": f"<office:document-content {NAMES}><office:automatic-styles>{styles}</office:automatic-styles>"
        f"<office:body><office:{kind}>{body}</office:{kind}></office:body></office:document-content>",
        "styles.xml": f"<office:document-styles {NAMES}><office:master-styles>{pages}</office:master-styles>"
        "</office:document-styles>",
        **(parts or {}),
    }
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return stream.getvalue()


def p(inner: str, style: str = "") -> str:
    return f'<text:p text:style-name="{style}">{inner}</text:p>'


def text_of(document: ReadDocument) -> str:
    return str(answer_of(document)["text"])


def each(form: Callable[[int, str], str]) -> str:
    return "".join(form(number, phrase) for number, phrase in enumerate(PHRASES))


def inside(form: str, styles: str = "") -> Callable[[], bytes]:
    def make() -> bytes:
        return odf_file(each(lambda at, phrase: form.format(phrase=phrase, at=at)), styles)

    return make


def between(mark: str) -> Callable[[], bytes]:
    def make() -> bytes:
        return odf_file(each(lambda _, phrase: p(phrase.replace(" ", mark))))

    return make


def margins(kind: str) -> bytes:
    pages = each(
        lambda at, phrase: (
            f'<style:master-page style:name="m{at}"><style:{kind}>{p(phrase)}</style:{kind}></style:master-page>'
        )
    )
    return odf_file(p("Text"), pages=pages)


def embedded(form: Callable[[str], str]) -> bytes:
    body = each(
        lambda at, _: p(f'Text <draw:frame><draw:object xlink:href="./Object {at}"/><draw:image/></draw:frame> goes on')
    )
    return odf_file(body, parts={f"Object {at}/content.xml": form(phrase) for at, phrase in enumerate(PHRASES)})


def chart(phrase: str) -> str:
    first, second = phrase.split()
    cells = "".join(f"<table:table-cell>{p(text)}</table:table-cell>" for text in (first, second))
    table = (
        f"<table:table><table:table-rows><table:table-row>{cells}</table:table-row></table:table-rows></table:table>"
    )
    inner = f"<chart:chart><chart:title>{p(phrase)}</chart:title><chart:plot-area/>{table}</chart:chart>"
    return (
        f"<office:document-content {NAMES}><office:body><office:chart>{inner}</office:chart></office:body>"
        "</office:document-content>"
    )


def formula(phrase: str) -> str:
    return (
        f'<math xmlns="{SPACES["math"]}"><semantics><mtext>{phrase}</mtext>'
        '<annotation encoding="StarMath 5.0">source</annotation></semantics></math>'
    )


CELL = "<table:table-cell>{}</table:table-cell>"
ONE_CELL = "<table:table><table:table-row>{}</table:table-row></table:table>"
BOX = '<draw:frame text:anchor-type="as-char"><draw:text-box>{}</draw:text-box></draw:frame>'
KINDS: dict[str, Callable[[], bytes]] = {
    "paragraphs": inside(p("{phrase}")),
    "headings": inside('<text:h text:outline-level="2">{phrase}</text:h>'),
    "links in spans": inside(p('<text:span>See <text:a xlink:href="https://e.org">{phrase}</text:a></text:span>')),
    "spans in cells": inside(ONE_CELL.format(CELL.format(p("<text:span>{phrase}</text:span>")))),
    "nested tables": inside(ONE_CELL.format(CELL.format(ONE_CELL.format(CELL.format(p("{phrase}")))))),
    "blanks": between("<text:s/>"),
    "tabs": between("<text:tab/>"),
    "line breaks": between("<text:line-break/>"),
    "lists": inside(f"<text:list><text:list-item>{p('{phrase}')}</text:list-item></text:list>"),
    "footnotes": inside(
        p('Text<text:note text:note-class="footnote"><text:note-citation>{at}</text:note-citation><text:note-body>')[
            :-9
        ]
        + p("{phrase}")
        + "</text:note-body></text:note> goes on</text:p>"
    ),
    "endnotes": inside(
        p('Text<text:note text:note-class="endnote"><text:note-body>')[:-9]
        + p("{phrase}")
        + "</text:note-body></text:note> goes on</text:p>"
    ),
    "comments": inside(
        p("Te<office:annotation><dc:creator>Ann</dc:creator><dc:date>2026-01-01</dc:date>")[:-9]
        + p("{phrase}")
        + "</office:annotation>xt</text:p>"
    ),
    "text boxes": inside(p("Text")[:-9] + BOX.format(p("{phrase}")) + "</text:p>"),
    "frames of the page": inside(BOX.format(p("{phrase}"))),
    "shapes": inside(p("Text")[:-9] + f"<draw:custom-shape>{p('{phrase}')}</draw:custom-shape></text:p>"),
    "alternative texts": inside(p("<draw:frame><draw:image/><svg:desc>{phrase}</svg:desc></draw:frame>")),
    "titles of pictures": inside(
        p("<draw:frame><draw:image/><svg:title>{phrase}</svg:title><svg:desc>Rain</svg:desc></draw:frame>")
    ),
    "image maps": inside(
        p(
            "<draw:frame><draw:image/><draw:image-map><draw:area-circle><svg:title>{phrase}</svg:title>"
            "</draw:area-circle></draw:image-map></draw:frame>"
        )
    ),
    "groups": inside(p("<draw:g><svg:title>{phrase}</svg:title><draw:rect/></draw:g>")),
    "scenes": inside(p("<dr3d:scene><svg:title>{phrase}</svg:title><dr3d:sphere/></dr3d:scene>")),
    "titles of tables": inside(
        "<table:table><table:title>{phrase}</table:title><table:desc>Rain</table:desc><table:table-row>"
        f"{CELL.format(p('x'))}</table:table-row></table:table>"
    ),
    "sections": inside(f'<text:section text:name="a">{p("{phrase}")}</text:section>'),
    "indexes": inside(
        "<text:table-of-content><text:table-of-content-source><text:index-title-template>Template"
        f"</text:index-title-template></text:table-of-content-source><text:index-body>{p('{phrase}')}</text:index-body>"
        "</text:table-of-content>"
    ),
    "fields": inside(p("<text:author-name>{phrase}</text:author-name>")),
    "headers": lambda: margins("header"),
    "footers": lambda: margins("footer-left"),
    "charts": lambda: embedded(chart),
    "formulas": lambda: embedded(formula),
    "slides": lambda: slides(lambda phrase: BOX.format(p(phrase))),
    "titles of slides": lambda: slides(lambda phrase: titled(phrase)),
    "notes of slides": lambda: slides(
        lambda phrase: f"<presentation:notes>{BOX.format(p(phrase))}</presentation:notes>"
    ),
    "tables of slides": lambda: slides(
        lambda phrase: (
            "<draw:frame><table:table><table:table-row>"
            f"{CELL.format(p(phrase))}{CELL.format(p('x'))}</table:table-row></table:table></draw:frame>"
        )
    ),
    "groups of slides": lambda: slides(lambda phrase: f"<draw:g><draw:rect>{p(phrase)}</draw:rect></draw:g>"),
}


def titled(text: str) -> str:
    return BOX.format(p(text)).replace("<draw:frame", '<draw:frame presentation:class="title"')


def slides(form: Callable[[str], str]) -> bytes:
    return odf_file(each(lambda _, phrase: f"<draw:page>{form(phrase)}</draw:page>"), kind="presentation")


@pytest.mark.parametrize("kind", KINDS)
def test_every_planted_phrase_is_read(kind: str) -> None:
    data = KINDS[kind]()
    document = read(data, ".odp" if "slides" in kind else ".odt")
    text = " ".join(text_of(document).split())
    assert [phrase for phrase in PHRASES if phrase not in text] == []
    assert (document.lost, document.warnings) == ({}, [])
    if "slides" in kind:
        pages = [block.place.page for block in document.blocks if PHRASES[7] in block.text]
        assert set(pages) == {8}


STYLES = (
    '<text:list-style style:name="L1">'
    '<text:list-level-style-number text:level="1" style:num-format="1" style:num-suffix="."/>'
    '<text:list-level-style-number text:level="2" style:num-format="a" style:num-suffix=")"/></text:list-style>'
    '<text:list-style style:name="L2"><text:list-level-style-bullet text:level="1"/></text:list-style>'
    '<style:style style:name="P1" style:family="paragraph" style:parent-style-name="Title"/>'
    '<style:style style:name="T1" style:family="text"><style:text-properties style:text-position="super 58%"/>'
    '</style:style><style:style style:name="T2" style:family="text"><style:text-properties text:display="none"/>'
    "</style:style>"
)


def test_notes_and_comments_follow_their_paragraph() -> None:
    body = f"<text:note-body>{p('below')}</text:note-body>"
    note = f"<text:note><text:note-citation>3</text:note-citation>{body}</text:note>"
    comment = f"<office:annotation><dc:creator>Ann B</dc:creator>{p('why')}{p('so')}</office:annotation>"
    document = read(odf_file(p(f"One{comment}{note} text") + p("Two")), ".odt")
    assert [(block.text, block.place.kind) for block in document.blocks] == [
        ("One text", ""),
        ("[Note 3: below]", "note"),
        ("[Comment by Ann B: why so]", "comment"),
        ("Two", ""),
    ]


def test_lists_have_their_numbers() -> None:
    inner = (
        f"<text:list><text:list-item>{p('sub')}</text:list-item><text:list-item>{p('sub')}</text:list-item></text:list>"
    )
    items = f"<text:list-item>{p('one')}{inner}</text:list-item><text:list-item>{p('two')}</text:list-item>"
    third = f"<text:list-item>{p('three')}</text:list-item>"
    more = f'<text:list text:style-name="L1" text:continue-numbering="true">{third}</text:list>'
    signs = f'<text:list text:style-name="L2"><text:list-item>{p("sign")}</text:list-item></text:list>'
    body = f'{p("Cedars", "P1")}<text:list text:style-name="L1">{items}</text:list>{p("between")}{more}{signs}'
    assert text_of(read(odf_file(body, STYLES), ".odt")) == (
        "# Cedars\n\n1. one\n   - a) sub\n   - b) sub\n2. two\n\nbetween\n\n3. three\n\n- sign"
    )


def test_headings_are_counted_in_tables_too() -> None:
    level = '<text:outline-level-style text:level="{0}" style:num-format="1" text:display-levels="{0}"/>'
    outline = f"<text:outline-style>{level.format(1)}{level.format(2)}</text:outline-style>"
    first, second = ('<text:h text:outline-level="1">Oak</text:h>', '<text:h text:outline-level="2">Bark</text:h>')
    cell = f"<table:table-cell>{second}</table:table-cell>"
    body = f"{first}<table:table><table:table-row>{cell}</table:table-row></table:table>{second}{first}"
    text = text_of(read(odf_file(body, outline), ".odt"))
    assert text == "# 1 Oak\n\n| 1.1 Bark |\n| --- |\n\n## 1.2 Bark\n\n# 2 Oak"


FORMS = {
    "Invoice number<text:tab/>4471": "Invoice number 4471",
    'a<text:s text:c="3"/>b': "a   b",
    "one\n   two": "one two",
    '10<text:span text:style-name="T1">6</text:span> m': "10⁶ m",
    'seen<text:span text:style-name="T2"> unseen</text:span>': "seen",
    '<text:a xlink:href="https://e.org/a">the page</text:a>': "[the page](https://e.org/a)",
    '<text:a xlink:href="#here">the place</text:a>': "the place",
    "<text:ruby><text:ruby-base>漢字</text:ruby-base><text:ruby-text>kanji</text:ruby-text></text:ruby>": "漢字(kanji)",
    '<text:drop-down><text:label text:value="no"/>yes</text:drop-down>': "yes",
    "<text:number>3.</text:number>Soil": "3. Soil",
    "a<text:soft-page-break/>b<text:bookmark/>c": "abc",
}


@pytest.mark.parametrize("inner", FORMS)
def test_the_parts_of_a_paragraph(inner: str) -> None:
    document = read(odf_file(p(inner), STYLES), ".odt")
    assert (text_of(document), document.lost) == (FORMS[inner], {})


def test_comments_are_read_in_linear_steps() -> None:
    def read_comments(count: int) -> None:
        body = "".join(p(f"Text {at}<office:annotation>{p(f'why {at}')}</office:annotation>") for at in range(count))
        document = read(odf_file(body), ".odt")
        assert (len(document.blocks), document.lost) == (2 * count, {})

    check_linear(read_comments, 200)


def test_deleted_and_hidden_text_is_left_out() -> None:
    deletion = f"<text:deletion>{p('gone')}</text:deletion>"
    deleted = f"<text:tracked-changes><text:changed-region>{deletion}</text:changed-region></text:tracked-changes>"
    hidden = f'<text:section text:display="none">{p("unseen")}</text:section>'
    document = read(odf_file(deleted + hidden + p("Text")), ".odt")
    assert (text_of(document), document.lost) == ("Text", {})


HIDING_STYLES = (
    '<style:style style:name="H" style:family="paragraph"><style:text-properties text:display="none"/></style:style>'
    '<style:style style:name="P1" style:family="paragraph" style:parent-style-name="H"/>'
    '<style:style style:name="P2" style:family="paragraph" style:parent-style-name="P1">'
    '<style:text-properties text:display="true"/></style:style>'
    '<style:style style:name="S" style:family="text"><style:text-properties text:display="true"/></style:style>'
    '<style:style style:name="T1" style:family="text" style:parent-style-name="N"/>'
    '<style:style style:name="N" style:family="text"><style:text-properties text:display="none"/></style:style>'
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
    document = read(odf_file(body, HIDING_STYLES), ".odt")
    assert text_of(document) == "Text" + "\n\ncedar planted here" * visible
    assert document.lost == {}


def test_embedded_files_are_counted() -> None:
    body = p('<draw:frame><draw:object-ole xlink:href="./Object 1"/></draw:frame>') * 2
    check_message(read(odf_file(body, parts={"Object 1": "a program's own"}), ".odt").warnings[0], "1")


def test_a_header_stands_once_and_without_page_numbers() -> None:
    header = f"<style:header>{p('Cedar report')}{p('Page <text:page-number>3</text:page-number>')}</style:header>"
    page = f"<style:master-page>{header}</style:master-page>"
    document = read(odf_file(p("Text"), pages=page * 2), ".odt")
    assert [(block.text, block.place.kind) for block in document.blocks] == [("Cedar report", "header"), ("Text", "")]
    assert document.lost == {}


def test_empty_columns_and_repeated_rows_cost_nothing() -> None:
    def read_table(repeats: int) -> None:
        empty = f'<table:table-cell table:number-columns-repeated="{repeats}"/>'
        cells = f"{CELL.format(p('a'))}{empty}{CELL.format(p('b'))}"
        rows = f'<table:table-row>{cells}</table:table-row><table:table-row table:number-rows-repeated="{repeats}">'
        document = read(odf_file(f"<table:table>{rows}{cells}</table:table-row></table:table>"), ".odt")
        assert text_of(document).startswith("| a | b |\n| --- | --- |\n| a | b |")
        assert document.lost == {}

    assert steps(read_table, 1_048_576) == steps(read_table, 16_384)


def test_forms_show_what_is_filled_in() -> None:
    forms = (
        '<office:forms><form:form><form:checkbox form:id="c1" form:label="I agree" form:current-state="checked"/>'
        '<form:text form:id="c2" form:title="Name" form:current-value="Zoë"/></form:form></office:forms>'
    )
    body = forms + p('<draw:control draw:control="c1"/><draw:control draw:control="c2"/>')
    assert text_of(read(odf_file(body), ".odt")) == "☒ I agree Name: Zoë"


def test_slides_have_headings_and_notes_and_masters_their_own_text() -> None:
    notes = f"<presentation:notes>{BOX.format(p('Say it'))}</presentation:notes>"
    page = f"<draw:page>{BOX.format(p('Body'))}{titled('Soil')}{notes}</draw:page>"
    prompt = titled("Click to edit").replace("<draw:frame", '<draw:frame presentation:placeholder="true"')
    master = f"<style:master-page>{BOX.format(p('Cedar Ltd'))}{prompt}</style:master-page>"
    document = read(odf_file(page + "<draw:page/>", kind="presentation", pages=master), ".odp")
    assert [(block.text, block.place.page, block.place.kind) for block in document.blocks if block.text] == [
        ("Cedar Ltd", None, "header"),
        ("## Soil", 1, ""),
        ("Body", 1, ""),
        ("[Notes: Say it]", 1, "note"),
        ("## Slide 2", 2, ""),
    ]


def framed(kind: str, inner: str) -> str:
    return BOX.format(p(inner)).replace("<draw:frame", f'<draw:frame presentation:class="{kind}"')


EMPTY_MARGINS = (  # what programs write on every master
    framed("header", "<presentation:header/>")
    + framed("date-time", "<presentation:date-time/>")
    + framed("footer", "<presentation:footer>&lt;footer&gt;</presentation:footer>")
    + framed("page-number", "<text:page-number>&lt;number&gt;</text:page-number>")
    + framed("page-number", "Slide <text:page-number>&lt;number&gt;</text:page-number>")
)


def test_headers_and_footers_of_slides_notes_and_handouts_stand_once() -> None:
    notes = framed("header", "Oak notes") + framed("footer", "of 3 May") + framed("notes", "Say it")
    slide = f"<draw:page><presentation:notes>{notes}</presentation:notes></draw:page>"
    declared = (
        '<presentation:footer-decl presentation:name="f">Oak Ltd</presentation:footer-decl>'
        '<presentation:date-time-decl presentation:source="fixed">4 May</presentation:date-time-decl>'
        '<presentation:date-time-decl presentation:source="current-date">today</presentation:date-time-decl>'
    )
    master = f"<style:handout-master>{EMPTY_MARGINS}{framed('header', 'Oak handout')}</style:handout-master>"
    master += f"<style:master-page>{EMPTY_MARGINS}{framed('footer', 'Oak slides')}{framed('title', 'Click')}"
    master += f"<presentation:notes>{EMPTY_MARGINS}{framed('footer', 'Oak slides')}</presentation:notes>"
    master += "</style:master-page>"
    document = read(odf_file(declared + slide * 2, kind="presentation", pages=master), ".odp")
    assert [(block.text, block.place.page, block.place.kind) for block in document.blocks if block.text] == [
        ("Oak handout", None, "header"),
        ("Oak slides", None, "footer"),
        ("Oak Ltd", None, "footer"),
        ("4 May", None, "footer"),
        ("## Slide 1", 1, ""),
        ("[Notes: Say it]", 1, "note"),
        ("Oak notes", 1, "header"),
        ("of 3 May", 1, "footer"),
        ("## Slide 2", 2, ""),
        ("[Notes: Say it]", 2, "note"),
    ]
    assert document.lost == {}


def test_the_properties_are_known() -> None:
    meta = (
        f"<office:document-meta {NAMES}><office:meta><dc:title>Cedars</dc:title><dc:subject>Trees</dc:subject>"
        "<meta:initial-creator>Ann</meta:initial-creator><meta:keyword>wood</meta:keyword><meta:keyword>soil</meta:keyword>"
        "<meta:creation-date>2026-01-02T03:04:05</meta:creation-date><dc:date>2026-02-03T04:05:06</dc:date></office:meta>"
        "</office:document-meta>"
    )
    assert read(odf_file(p("Text"), parts={"meta.xml": meta}), ".odt").info == {
        "Title": "Cedars",
        "Author": "Ann",
        "Subject": "Trees",
        "Keywords": "wood, soil",
        "Created": "2026-01-02T03:04:05",
        "Modified": "2026-02-03T04:05:06",
    }


def zipped(files: dict[str, str]) -> bytes:
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return stream.getvalue()


MANIFEST = (
    '<m:manifest xmlns:m="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"><m:file-entry m:full-path="content.xml">'
    "<m:encryption-data/></m:file-entry></m:manifest>"
)
BROKEN = {
    "is encrypted": zipped({"META-INF/manifest.xml": MANIFEST, "content.xml": "noise"}),
    "is damaged": b"PK\x03\x04garbage",
    "is not a .odt document": zipped({"a.txt": "b"}),
    "broken XML": zipped({"content.xml": f"<office:document-content {NAMES}><office:body>"}),
}


@pytest.mark.parametrize("reason", BROKEN)
def test_a_broken_file_is_refused_with_a_remedy(reason: str) -> None:
    with pytest.raises(UnreadableFileError, match=reason) as refusal:
        read(BROKEN[reason], ".odt")
    assert ";" in str(refusal.value)


def test_objects_may_lead_to_nothing_outside_or_to_themselves(tmp_path: Path) -> None:
    (tmp_path / "content.xml").write_text("secret", encoding="utf-8")
    hrefs = ("./Gone", "../../etc", "https://e.org/a", tmp_path.as_uri(), "./Object 1")
    frames = "".join(f'<draw:frame><draw:object xlink:href="{href}"/></draw:frame>' for href in hrefs)
    again = odf_file(p(f"Inner {frames}"))
    with zipfile.ZipFile(BytesIO(again)) as archive:
        inner = archive.read("content.xml").decode()
    document = read(odf_file(p(f"Text {frames}"), parts={"Object 1/content.xml": inner}), ".odt")
    assert text_of(document) == "Text\n\nInner"


def test_deep_nesting_is_refused() -> None:
    deep = "<text:section>" * 20_000 + p("Text") + "</text:section>" * 20_000
    with pytest.raises(UnreadableFileError):
        read(odf_file(deep), ".odt")


def test_a_file_of_another_project_is_read_without_false_alarms(shared_office: Path) -> None:
    document = read((shared_office / "rich-text.odt").read_bytes(), ".odt")
    text = text_of(document)
    assert "| This is a list: - A First - A Second - A Third |" in text
    assert "This is simple text with bold, strikethrough and italic formatting with x² and H₂O" in text
    assert "After table with bold, underline, strikethrough, and italic formatting" in text
    assert document.lost == {}
