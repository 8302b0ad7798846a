"""Word documents are read whole and in reading order, and what is not read is counted."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest
from docx import Document

from ragistry.readers.blocks import ReadDocument, UnreadableFileError, answer_of, words_of
from ragistry.readers.docx import read
from tests.messages import check_message
from tests.visits import check_linear

OPEN = "http://schemas.openxmlformats.org"
SPACES = {
    "w": f"{OPEN}/wordprocessingml/2006/main",
    "r": f"{OPEN}/officeDocument/2006/relationships",
    "m": f"{OPEN}/officeDocument/2006/math",
    "a": f"{OPEN}/drawingml/2006/main",
    "c": f"{OPEN}/drawingml/2006/chart",
    "wp": f"{OPEN}/drawingml/2006/wordprocessingDrawing",
    "dgm": f"{OPEN}/drawingml/2006/diagram",
    "mc": f"{OPEN}/markup-compatibility/2006",
    "w14": "http://schemas.microsoft.com/office/word/2010/wordml",
    "wps": "http://schemas.microsoft.com/office/word/2010/wordprocessingShape",
    "v": "urn:schemas-microsoft-com:vml",
}
NAMES = " ".join(f'xmlns:{name}="{uri}"' for name, uri in SPACES.items())
WORD_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml"
DRAWING_TYPE = "application/vnd.openxmlformats-officedocument.drawingml"
PHRASES = [f"planted{number} cedar{number}" for number in range(20)]

Parts = dict[str, tuple[str, str]]


def word_file(body: str, parts: Parts | None = None, main: str = "word/document.xml", links: str = "") -> bytes:
    """A document of raw XML. ``parts``: ``{name: (kind, xml)}``; the id of the relation is the name of the file."""
    parts = parts or {}
    types, relations = "", links
    for name, (kind, _) in parts.items():
        content_type = DRAWING_TYPE if kind in ("chart", "diagramData") else WORD_TYPE
        types += f'<Override PartName="/word/{name}" ContentType="{content_type}.{kind}+xml"/>'
        relations += f'<Relationship Id="{name}" Type="{SPACES["r"]}/{kind}" Target="{name}"/>'
    files = {
        "[Content_Types].xml": f'<Types xmlns="{OPEN}/package/2006/content-types">'
        f'<Override PartName="/{main}" ContentType="{WORD_TYPE}.document.main+xml"/>{types}</Types>',
        "_rels/.rels": f'<Relationships xmlns="{OPEN}/package/2006/relationships">'
        f'<Relationship Id="a" Type="{SPACES["r"]}/officeDocument" Target="{main}"/></Relationships>',
        f"word/_rels/{main.rpartition('/')[2]}.rels": f'<Relationships xmlns="{OPEN}/package/2006/relationships">'
        f"{relations}</Relationships>",
        main: f"<w:document {NAMES}><w:body>{body}</w:body></w:document>",
        **{f"word/{name}": xml for name, (_, xml) in parts.items()},
    }
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return stream.getvalue()


def run(text: str) -> str:
    return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'


def paragraph(inner: str, style: str = "", properties: str = "") -> str:
    style = f'<w:pStyle w:val="{style}"/>' if style else ""
    return f"<w:p><w:pPr>{style}{properties}</w:pPr>{inner}</w:p>"


def part(tag: str, inner: str) -> str:
    return f"<w:{tag} {NAMES}>{inner}</w:{tag}>"


def each(form: Callable[[int, str], str]) -> str:
    return "".join(form(number, phrase) for number, phrase in enumerate(PHRASES))


def text_of(document: ReadDocument) -> str:
    return str(answer_of(document)["text"])


def read_body(body: str, parts: Parts | None = None, links: str = "") -> str:
    return text_of(read(word_file(body, parts, links=links), ".docx"))


# --- Twenty planted phrases for each kind ---


def notes(kind: str) -> bytes:
    body = each(
        lambda at, _: paragraph(
            run(f"Text {at}") + f'<w:r><w:{kind}Reference w:id="{at + 1}"/></w:r>' + run(" goes on")
        )
    )
    separator = f'<w:{kind} w:type="separator" w:id="0">{paragraph("<w:r><w:separator/></w:r>")}</w:{kind}>'
    xml = part(
        f"{kind}s",
        separator + each(lambda at, phrase: f'<w:{kind} w:id="{at + 1}">{paragraph(run(phrase))}</w:{kind}>'),
    )
    return word_file(body, {f"{kind}s.xml": (f"{kind}s", xml)})


def comments() -> bytes:
    body = each(
        lambda at, _: paragraph(
            f'<w:commentRangeStart w:id="{at}"/>{run(f"Text {at}")}<w:commentRangeEnd w:id="{at}"/>'
            f'<w:r><w:commentReference w:id="{at}"/></w:r>'
        )
    )
    xml = each(lambda at, phrase: f'<w:comment w:id="{at}" w:author="Ann">{paragraph(run(phrase))}</w:comment>')
    return word_file(body, {"comments.xml": ("comments", part("comments", xml))})


def margins(kind: str, tag: str) -> bytes:
    parts = {f"{kind}{at}.xml": (kind, part(tag, paragraph(run(phrase)))) for at, phrase in enumerate(PHRASES)}
    references = each(lambda at, _: f'<w:{kind}Reference w:type="default" r:id="{kind}{at}.xml"/>')
    return word_file(paragraph(run("Text")) + f"<w:sectPr>{references}</w:sectPr>", parts)


def drawing(inner: str, kind: str = "inline", description: str = "") -> str:
    described = f'<wp:docPr id="1" name="Picture 1" descr="{description}"/>'
    return (
        f"<w:r><w:drawing><wp:{kind}>{described}<a:graphic><a:graphicData>{inner}</a:graphicData></a:graphic>"
        f"</wp:{kind}></w:drawing></w:r>"
    )


def text_boxes() -> bytes:
    def box(_: int, phrase: str) -> str:
        inside = f"<w:txbxContent>{paragraph(run(phrase))}</w:txbxContent>"
        shape = drawing(f"<wps:wsp><wps:txbx>{inside}</wps:txbx></wps:wsp>", "anchor")[5:-6]
        fallback = f"<w:pict><v:shape><v:textbox>{inside}</v:textbox></v:shape></w:pict>"
        choice = f'<mc:Choice Requires="wps">{shape}</mc:Choice><mc:Fallback>{fallback}</mc:Fallback>'
        return paragraph(f"<w:r><mc:AlternateContent>{choice}</mc:AlternateContent></w:r>")

    return word_file(each(box))


def chart_xml(title: str, categories: list[str], values: list[str]) -> str:
    def points(texts: list[str]) -> str:
        return "".join(f'<c:pt idx="{at}"><c:v>{text}</c:v></c:pt>' for at, text in enumerate(texts))

    shown = f"<c:title><c:tx><c:rich><a:p><a:r><a:t>{title}</a:t></a:r></a:p></c:rich></c:tx></c:title>"
    series = '<c:ser><c:tx><c:strRef><c:strCache><c:pt idx="0"><c:v>Rain</c:v></c:pt></c:strCache></c:strRef></c:tx>'
    series += f"<c:cat><c:strRef><c:strCache>{points(categories)}</c:strCache></c:strRef></c:cat>"
    series += f"<c:val><c:numRef><c:numCache>{points(values)}</c:numCache></c:numRef></c:val></c:ser>"
    plot = f"<c:plotArea><c:barChart>{series}</c:barChart></c:plotArea>"
    return f"<c:chartSpace {NAMES}><c:chart>{shown}{plot}</c:chart></c:chartSpace>"


def charts() -> bytes:
    xml = chart_xml(PHRASES[0], PHRASES[1:], [str(at) for at in range(19)])
    body = paragraph(run("Text") + drawing('<c:chart r:id="chart1.xml"/>'))
    return word_file(body, {"chart1.xml": ("chart", xml)})


def diagrams() -> bytes:
    body = paragraph(drawing('<dgm:relIds r:dm="data1.xml" r:lo="a" r:qs="b" r:cs="c"/>'))
    points = each(
        lambda at, phrase: f'<dgm:pt modelId="{at}"><dgm:t><a:p><a:r><a:t>{phrase}</a:t></a:r></a:p></dgm:t></dgm:pt>'
    )
    links = each(lambda at, _: f'<dgm:cxn modelId="x{at}" srcId="doc" destId="{at}" srcOrd="{at}" destOrd="0"/>')
    xml = f'<dgm:dataModel {NAMES}><dgm:ptLst><dgm:pt modelId="doc" type="doc"/>{points}</dgm:ptLst>'
    xml += f"<dgm:cxnLst>{links}</dgm:cxnLst></dgm:dataModel>"
    return word_file(body, {"data1.xml": ("diagramData", xml)})


def tables() -> bytes:
    def cell(inner: str, properties: str = "") -> str:
        return f"<w:tc><w:tcPr>{properties}</w:tcPr>{inner}</w:tc>"

    def row(at: int, phrase: str) -> str:
        first, second = phrase.split()
        split = cell(paragraph(run(first)) + paragraph(run(second)), '<w:vMerge w:val="restart"/>')
        nested = f"<w:tbl><w:tr>{cell(paragraph(run(first)))}{cell(paragraph(run(second)))}</w:tr></w:tbl>"
        wide = cell(paragraph(run("x")), '<w:gridSpan w:val="2"/>')
        return f"<w:tr>{split if at % 2 else cell(nested)}{wide}</w:tr>"

    return word_file(f"<w:tbl>{each(row)}</w:tbl>")


def between(mark: str) -> Callable[[], bytes]:
    def make() -> bytes:
        return word_file(
            each(lambda _, phrase: paragraph(f"<w:r><w:t>{phrase.replace(' ', f'</w:t>{mark}<w:t>')}</w:t></w:r>"))
        )

    return make


def inside(form: str, parts: Parts | None = None, links: str = "") -> Callable[[], bytes]:
    def make() -> bytes:
        return word_file(
            each(lambda at, phrase: form.format(run=run(phrase), phrase=phrase, at=at)), parts, links=links
        )

    return make


P = "<w:p>{}</w:p>"
FIELD = "".join(
    f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>{more}'
    for kind, more in (("begin", "<w:r><w:instrText>DATE</w:instrText></w:r>"), ("separate", "{run}"), ("end", ""))
)
LINK = f'<Relationship Id="web" Type="{SPACES["r"]}/hyperlink" Target="https://e.org/a" TargetMode="External"/>'
NUMBERING = part(
    "numbering",
    '<w:abstractNum w:abstractNumId="0"><w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/>'
    '<w:lvlText w:val="%1."/></w:lvl><w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="lowerLetter"/>'
    '<w:lvlText w:val="%2)"/></w:lvl></w:abstractNum>'
    '<w:abstractNum w:abstractNumId="1"><w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/>'
    '<w:lvlText w:val="%1"/></w:lvl><w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="decimal"/>'
    '<w:lvlText w:val="%1.%2"/></w:lvl></w:abstractNum>'
    '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num><w:num w:numId="2"><w:abstractNumId w:val="1"/></w:num>'
    '<w:num w:numId="3"><w:abstractNumId w:val="0"/><w:lvlOverride w:ilvl="0"><w:startOverride w:val="1"/>'
    "</w:lvlOverride></w:num>",
)
STYLES = part(
    "styles",
    '<w:style w:type="paragraph" w:styleId="berschrift1"><w:name w:val="heading 1"/><w:pPr><w:outlineLvl w:val="0"/>'
    '</w:pPr></w:style><w:style w:type="paragraph" w:styleId="Chapter"><w:name w:val="Chapter"/>'
    '<w:basedOn w:val="berschrift1"/></w:style><w:style w:type="paragraph" w:styleId="Loop"><w:name w:val="Loop"/>'
    '<w:basedOn w:val="Loop"/></w:style><w:style w:type="character" w:styleId="Secret"><w:name w:val="Secret"/>'
    "<w:rPr><w:vanish/></w:rPr></w:style>",
)
KINDS: dict[str, Callable[[], bytes]] = {
    "paragraphs": inside(P.format("{run}")),
    "headings": inside('<w:p><w:pPr><w:outlineLvl w:val="1"/></w:pPr>{run}</w:p>'),
    "lists": inside(
        '<w:p><w:pPr><w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr></w:pPr>{run}</w:p>',
        {"numbering.xml": ("numbering", NUMBERING)},
    ),
    "tables": tables,
    "tabs": between("<w:tab/>"),
    "positioned tabs": between("<w:ptab/>"),
    "line breaks": between("<w:br/>"),
    "hyperlinks": inside(P.format('<w:hyperlink r:id="web">{run}</w:hyperlink>'), links=LINK),
    "fields": inside(P.format(FIELD)),
    "simple fields": inside(P.format('<w:fldSimple w:instr="DATE">{run}</w:fldSimple>')),
    "insertions": inside(P.format('<w:ins w:id="1">{run}</w:ins>')),
    "content controls": inside("<w:sdt><w:sdtPr/><w:sdtContent><w:p>{run}</w:p></w:sdtContent></w:sdt>"),
    "inline controls": inside(P.format("<w:sdt><w:sdtPr/><w:sdtContent>{run}</w:sdtContent></w:sdt>")),
    "text boxes": text_boxes,
    "diagrams": diagrams,
    "charts": charts,
    "formulas": inside(P.format(run("where ") + "<m:oMath><m:r><m:t>{phrase}</m:t></m:r></m:oMath>")),
    "alternative texts": inside(P.format(drawing("", description="{phrase}"))),
    "titles of pictures": inside(
        P.format(drawing("", description="Cedars").replace("descr", 'title="{phrase}" descr'))
    ),
    "table captions": inside(
        '<w:tbl><w:tblPr><w:tblCaption w:val="{phrase}"/><w:tblDescription w:val="Rain"/></w:tblPr><w:tr><w:tc>'
        "<w:p>{run}</w:p></w:tc></w:tr></w:tbl>"
    ),
    "watermarks": inside(P.format('<w:r><w:pict><v:shape><v:textpath string="{phrase}"/></v:shape></w:pict></w:r>')),
    "footnotes": lambda: notes("footnote"),
    "endnotes": lambda: notes("endnote"),
    "comments": comments,
    "headers": lambda: margins("header", "hdr"),
    "footers": lambda: margins("footer", "ftr"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_planted_phrase_is_read(kind: str) -> None:
    document = read(KINDS[kind](), ".docx")
    text = " ".join(text_of(document).split())
    assert [phrase for phrase in PHRASES if phrase not in text] == []
    assert (document.lost, document.warnings) == ({}, [])


# --- Form and order ---


def test_notes_and_comments_follow_their_paragraph() -> None:
    notes_xml = part("footnotes", f'<w:footnote w:id="4">{paragraph(run("below"))}</w:footnote>')
    comment = f'<w:comment w:id="7" w:author="Ann B">{paragraph(run("why"))}{paragraph(run("so"))}</w:comment>'
    references = '<w:r><w:commentReference w:id="7"/></w:r><w:r><w:footnoteReference w:id="4"/></w:r>'
    parts = {
        "footnotes.xml": ("footnotes", notes_xml),
        "comments.xml": ("comments", part("comments", comment)),
    }
    document = read(
        word_file(paragraph(run("One") + references + run(" text")) + paragraph(run("Two")), parts), ".docx"
    )
    assert [(block.text, block.place.kind) for block in document.blocks] == [
        ("One text", ""),
        ("[Note 1: below]", "note"),
        ("[Comment by Ann B: why so]", "comment"),
        ("Two", ""),
    ]


def test_lists_and_headings_have_their_numbers() -> None:
    def item(number: int, depth: int, text: str, style: str = "") -> str:
        level = f'<w:numPr><w:ilvl w:val="{depth}"/><w:numId w:val="{number}"/></w:numPr>'
        return paragraph(run(text), style, level)

    body = item(2, 0, "Soil", "Chapter") + item(1, 0, "one") + item(1, 1, "sub") + item(1, 1, "sub") + item(1, 0, "two")
    body += item(2, 1, "Sand", "Chapter") + item(3, 0, "again") + item(2, 0, "Water", "Chapter")
    parts = {"numbering.xml": ("numbering", NUMBERING), "styles.xml": ("styles", STYLES)}
    assert read_body(body, parts) == (
        "# 1 Soil\n\n1. one\n   - a) sub\n   - b) sub\n2. two\n\n# 1.1 Sand\n\n1. again\n\n# 2 Water"
    )


FORMS = {
    "<w:r><w:t>Invoice number</w:t><w:tab/><w:t>4471</w:t></w:r>": "Invoice number 4471",
    "<w:r><w:t>well</w:t><w:noBreakHyphen/><w:t>kept</w:t></w:r>": "well-kept",
    "<w:r><w:t>soft</w:t><w:softHyphen/><w:t>ly\u00ad.</w:t></w:r>": "softly.",
    '<w:r><w:sym w:font="Symbol" w:char="F061"/><w:t> </w:t><w:sym w:font="Wingdings" w:char="F0E0"/></w:r>': (
        "\u03b1 →"
    ),
    run("10") + '<w:r><w:rPr><w:vertAlign w:val="superscript"/></w:rPr><w:t>6</w:t></w:r>' + run(" m"): "10⁶ m",
    run("4") + '<w:r><w:rPr><w:vertAlign w:val="superscript"/></w:rPr><w:t>th</w:t></w:r>': "4th",
    f"{run('kept')}<w:del><w:r><w:delText> gone</w:delText></w:r></w:del><w:moveFrom>{run(' away')}</w:moveFrom>": (
        "kept"
    ),
    f"{run('seen')}<w:r><w:rPr><w:vanish/></w:rPr><w:t> unseen</w:t></w:r>": "seen",
    f'{run("seen")}<w:r><w:rPr><w:rStyle w:val="Secret"/></w:rPr><w:t> unseen</w:t></w:r>': "seen",
    '<w:r><w:fldChar w:fldCharType="begin"><w:ffData><w:checkBox><w:checked/></w:checkBox></w:ffData></w:fldChar>'
    '<w:instrText>FORMCHECKBOX</w:instrText><w:fldChar w:fldCharType="end"/>'
    '<w:t xml:space="preserve"> yes</w:t></w:r>': "☒ yes",
    f'<w:sdt><w:sdtPr><w14:checkbox><w14:checked w14:val="0"/></w14:checkbox></w:sdtPr><w:sdtContent>{run("☐")}'
    f"</w:sdtContent></w:sdt>{run(' no')}": "☐ no",
    f'<w:hyperlink r:id="web">{run("the page")}</w:hyperlink>': "[the page](https://e.org/a)",
    "<w:ruby><w:rt><w:r><w:t>kanji</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>漢字</w:t></w:r></w:rubyBase></w:ruby>": (
        "漢字(kanji)"
    ),
    run("# no heading"): "\\# no heading",
    run("area ") + "<m:oMath><m:f><m:num><m:r><m:t>a+b</m:t></m:r></m:num><m:den><m:r><m:t>c</m:t></m:r></m:den></m:f>"
    "<m:r><m:t>=</m:t></m:r><m:sSup><m:e><m:r><m:t>x</m:t></m:r></m:e><m:sup><m:r><m:t>2</m:t></m:r></m:sup></m:sSup>"
    "<m:rad><m:radPr/><m:deg/><m:e><m:r><m:t>n</m:t></m:r></m:e></m:rad></m:oMath>" + run(" in total"): (
        "area (a+b)/c=x^2√(n) in total"
    ),
}


@pytest.mark.parametrize("inner", FORMS)
def test_the_parts_of_a_paragraph(inner: str) -> None:
    document = read(word_file(f"<w:p>{inner}</w:p>", {"styles.xml": ("styles", STYLES)}, links=LINK), ".docx")
    assert (text_of(document), document.lost) == (FORMS[inner], {})


def styled(kind: str, name: str, vanish: str = "", based: str = "") -> str:
    above = f'<w:basedOn w:val="{based}"/>' if based else ""
    return f'<w:style w:type="{kind}" w:styleId="{name}">{above}<w:rPr>{vanish}</w:rPr></w:style>'


HIDES, SHOWS = "<w:vanish/>", '<w:vanish w:val="0"/>'
HIDING_STYLES = (
    styled("character", "Hides", HIDES)
    + styled("character", "HidesToo", based="Hides")
    + styled("character", "Shows", SHOWS, "Hides")
    + styled("paragraph", "Hidden", HIDES)
    + styled("paragraph", "HiddenToo", based="Hidden")
    + styled("paragraph", "Shown", SHOWS, "Hidden")
)
HIDDEN_RUNS = {
    # style of the paragraph, style of the run, the run itself, hidden by default: whether the text is visible
    ("Hidden", "", "", False): False,
    ("Hidden", "", SHOWS, False): True,
    ("HiddenToo", "", '<w:vanish w:val="off"/>', False): True,
    ("HiddenToo", "", "", False): False,
    ("Shown", "", "", False): True,
    ("Shown", "", HIDES, False): False,
    ("", "Hides", SHOWS, False): True,
    ("", "HidesToo", "", False): False,
    ("", "Shows", "", False): True,
    ("Hidden", "Hides", "", False): True,
    ("HiddenToo", "HidesToo", "", False): True,
    ("Hidden", "Shows", "", False): False,
    ("", "", "", True): False,
    ("Hidden", "Hides", "", True): False,
    ("", "", SHOWS, True): True,
}


@pytest.mark.parametrize("hidden", HIDDEN_RUNS)
def test_a_run_is_hidden_by_itself_or_by_one_of_its_styles(hidden: tuple[str, str, str, bool]) -> None:
    style, run_style, own, by_default = hidden
    default = f"<w:docDefaults><w:rPrDefault><w:rPr>{HIDES}</w:rPr></w:rPrDefault></w:docDefaults>" * by_default
    styles = part("styles", default + HIDING_STYLES)
    named = f'<w:rStyle w:val="{run_style}"/>' if run_style else ""
    body = paragraph(f"<w:r><w:rPr>{named}{own}</w:rPr><w:t>cedar planted here</w:t></w:r>", style)
    document = read(word_file(body, {"styles.xml": ("styles", styles)}), ".docx")
    assert text_of(document) == "cedar planted here" * HIDDEN_RUNS[hidden]
    assert document.lost == {}


def test_tables_keep_their_columns() -> None:
    def cell(text: str, properties: str = "") -> str:
        return f"<w:tc><w:tcPr>{properties}</w:tcPr>{paragraph(run(text))}</w:tc>"

    span, start, more = '<w:gridSpan w:val="2"/>', '<w:vMerge w:val="restart"/>', "<w:vMerge/>"
    rows = [
        cell("a|b") + cell("c", span),
        cell("1", start) + cell("2") + cell("3"),
        cell("", more) + cell("4") + cell("5"),
    ]
    body = f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in rows)}</w:tbl>"
    assert read_body(body) == "| a\\|b | c |  |\n| --- | --- | --- |\n| 1 | 2 | 3 |\n|  | 4 | 5 |"


def test_a_chart_is_a_table_and_a_text_box_is_read_once() -> None:
    document = read(charts(), ".docx")
    assert f"| {PHRASES[1]} | 0 |" in document.blocks[1].text
    assert document.blocks[1].place.kind == "chart"
    assert [text_of(read(text_boxes(), ".docx")).count(phrase) for phrase in PHRASES[2:]] == [1] * 18


def test_headers_stand_once_and_without_page_numbers() -> None:
    number = '<w:fldSimple w:instr=" PAGE "><w:r><w:t>3</w:t></w:r></w:fldSimple>'
    xml = part("hdr", paragraph(run("Cedar report")) + paragraph(run("Page ") + number))
    parts = {"header1.xml": ("header", xml), "header2.xml": ("header", xml)}
    document = read(word_file(paragraph(run("Text")), parts), ".docx")
    assert [(block.text, block.place.kind) for block in document.blocks] == [("Cedar report", "header"), ("Text", "")]
    assert document.lost == {}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("- ", " -", ""),
        ("Seite ", " von 12", ""),
        ("A-", "", ""),
        ("2024 - ", "", "2024 - 3"),
        ("4711 / ", "", "4711 / 3"),
        ("Civil ", "", "Civil 3"),
        ("III - ", "", "III - 3"),
        ("Exhibit ", "", "Exhibit 3"),
    ],
)
def test_only_the_number_of_the_page_is_left_out_of_a_footer(before: str, after: str, expected: str) -> None:
    number = '<w:fldSimple w:instr=" PAGE "><w:r><w:t>3</w:t></w:r></w:fldSimple>'
    xml = part("ftr", paragraph(run(before) + number + run(after)))
    document = read(word_file(paragraph(run("Page 3")), {"footer1.xml": ("footer", xml)}), ".docx")
    assert [block.text for block in document.blocks] == [text for text in (expected, "Page 3") if text]


def test_the_properties_are_known() -> None:
    document = Document()
    document.core_properties.title, document.core_properties.author = "Cedars", "Ann"
    document.core_properties.subject, document.core_properties.keywords = "Trees", "wood, soil"
    document.add_heading("Roots", 2)
    document.add_paragraph("Sand", style="List Bullet")
    stream = BytesIO()
    document.save(stream)
    found = read(stream.getvalue(), ".docx")
    assert text_of(found) == "## Roots\n\n- Sand"
    assert {key: found.info[key] for key in ("Title", "Author", "Subject", "Keywords")} == {
        "Title": "Cedars",
        "Author": "Ann",
        "Subject": "Trees",
        "Keywords": "wood, soil",
    }
    assert re.match(r"\d{4}-\d\d-\d\dT", found.info["Created"])


# --- What can be lost, and bad input ---


def test_inserted_and_damaged_parts_are_reported() -> None:
    frame = f'<w:altChunk r:id="chunk"/>{paragraph(run("Text"))}'
    links = f'<Relationship Id="chunk" Type="{SPACES["r"]}/aFChunk" Target="chunk.htm"/>'
    data = word_file(frame, {"chunk.htm": ("aFChunk", "<html><body>five words are in here</body></html>")}, links=links)
    document = read(data, ".docx")
    assert document.lost == {"inserted files": 5}
    assert document.warnings == ["an inserted file is not read; open and save the document in Word to include it"]
    unread = part("footnotes", "<w:footnote w:id='3'><w:r><w:t>stray words</w:t></w:r><x>")
    document = read(word_file(paragraph(run("Text")), {"footnotes.xml": ("footnotes", unread)}), ".docx")
    assert "damaged parts" in document.warnings[0]


def test_what_nothing_refers_to_stands_at_the_end() -> None:
    body = paragraph(run("Text") + '<w:r><w:footnoteReference w:id="99"/><w:commentReference w:id="98"/></w:r>')
    parts = {
        "footnotes.xml": ("footnotes", part("footnotes", f'<w:footnote w:id="5">{paragraph(run("A"))}</w:footnote>')),
        "comments.xml": ("comments", part("comments", f'<w:comment w:id="6">{paragraph(run("B"))}</w:comment>')),
    }
    assert read_body(body, parts) == "Text\n\n[Note: A]\n\n[Comment: B]"


def test_embedded_files_are_counted() -> None:
    links = "".join(
        f'<Relationship Id="{kind}" Type="{SPACES["r"]}/{kind}" Target="embeddings/{kind}.bin"/>'
        for kind in ("package", "oleObject")
    )
    check_message(read(word_file(paragraph(run("Text")), links=links), ".docx").warnings[0], "2")


def test_a_field_without_an_end_hides_no_text() -> None:
    begin = '<w:r><w:fldChar w:fldCharType="begin"/></w:r>'
    assert read_body(paragraph(begin) + paragraph(run("Text")) + paragraph(run("More"))) == "Text\n\nMore"


def test_relations_may_lead_to_nothing() -> None:
    body = paragraph(run("Text") + drawing('<c:chart r:id="gone"/>') + drawing('<c:chart r:id="none"/>'))
    links = f'<Relationship Id="gone" Type="{SPACES["r"]}/chart" Target="charts/chart9.xml"/>'
    assert read_body(body, links=links) == "Text"


def test_the_main_part_may_have_another_name_and_the_names_may_be_strict() -> None:
    data = word_file(paragraph(run("Text"), "Chapter"), {"styles.xml": ("styles", STYLES)}, main="word/other2.xml")
    assert text_of(read(data, ".docm")) == "# Text"
    stream = BytesIO()
    with zipfile.ZipFile(BytesIO(data)) as old, zipfile.ZipFile(stream, "w") as new:
        for name in old.namelist():
            strict = re.sub(
                r"schemas\.openxmlformats\.org/(\w+)/2006/(?=main|math|rel)",
                r"purl.oclc.org/ooxml/\1/",
                old.read(name).decode(),
            )
            new.writestr(
                name, strict.replace("purl.oclc.org/ooxml/package/", "schemas.openxmlformats.org/package/2006/")
            )
    document = read(stream.getvalue(), ".docx")
    assert (text_of(document), document.lost) == ("# Text", {})


def zipped(files: dict[str, str]) -> bytes:
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return stream.getvalue()


BROKEN = {
    "is encrypted": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le"),
    "has an older format": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600,
    "is damaged": b"PK\x03\x04garbage",
    "no main part": zipped({"a.txt": "b"}),
    "is not a .docx document": zipped({"word/document.xml": "<a/>"}),
    "broken XML": zipped({"word/document.xml": f"<w:document {NAMES}><w:body><w:p>"}),
}


@pytest.mark.parametrize("reason", BROKEN)
def test_a_broken_file_is_refused_with_a_remedy(reason: str) -> None:
    with pytest.raises(UnreadableFileError, match=reason) as refusal:
        read(BROKEN[reason], ".docx")
    assert ";" in str(refusal.value) or ":" in str(refusal.value)


def test_entities_and_addresses_open_nothing(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret words", encoding="utf-8")
    main = (
        f'<!DOCTYPE a [<!ENTITY e SYSTEM "{(tmp_path / "secret").as_uri()}"><!ENTITY f "{"x" * 50}">]>'
        f"<w:document {NAMES}><w:body><w:p><w:r><w:t>Text &e;</w:t></w:r></w:p></w:body></w:document>"
    )
    assert "secret" not in text_of(read(zipped({"word/document.xml": main}), ".docx"))


@pytest.mark.parametrize("referred", [True, False])
def test_comments_are_read_in_linear_steps(referred: bool) -> None:
    tag = "commentReference" if referred else "bookmarkStart"

    def read_comments(count: int) -> None:
        many = range(count)
        body = "".join(f'<w:p>{run(f"Text {at}")}<w:r><w:{tag} w:id="{at}"/></w:r></w:p>' for at in many)
        xml = "".join(f'<w:comment w:id="{at}" w:author="A">{paragraph(run(f"why {at}"))}</w:comment>' for at in many)
        document = read(word_file(body, {"comments.xml": ("comments", part("comments", xml))}), ".docx")
        assert (len(document.blocks), document.lost) == (2 * count, {})

    check_linear(read_comments, 200)


def test_deep_nesting_is_refused_or_read() -> None:
    deep = "<w:sdt><w:sdtContent>" * 120 + paragraph(run("Text")) + "</w:sdtContent></w:sdt>" * 120
    assert read_body(deep) == "Text"
    with pytest.raises(UnreadableFileError):
        read_body("<w:sdt><w:sdtContent>" * 20_000 + paragraph(run("Text")) + "</w:sdtContent></w:sdt>" * 20_000)


SHARED = {
    "comments.docx": "[Comment by John Reviewer: This is a sample reviewer comment",
    "headers-footers.docx": "REGULAR HEADER (page 2 onward)",
    "rich-cells.docx": "A B C Cell 1 Cell 2 Cell 3",
    "rich-comments.docx": "[Comment by Steve Canny: Text with hyperlink",
    "textbox.docx": "Health Bureau:",
}


@pytest.mark.parametrize("name", SHARED)
def test_files_of_other_projects_are_read_without_false_alarms(name: str, shared_office: Path) -> None:
    document = read((shared_office / name).read_bytes(), ".docx")
    assert SHARED[name] in text_of(document)
    assert (document.lost, document.warnings) == ({}, [])
    assert words_of(text_of(document)).total() > 20
