"""Build small office files from raw parts: a piece of XML or RTF for each phrase, in every format.

In a piece, ``PHRASE`` stands for the phrase, ``FIRST`` and ``SECOND`` for its words, and ``NUMBER`` for its number,
counted from 1. A presentation has a slide for each phrase, and a workbook a sheet; both are called ``S<number>``.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping, Sequence
from html import escape
from importlib import import_module
from io import BytesIO
from typing import NamedTuple
from urllib.parse import quote

from ragistry.readers.blocks import ReadDocument, answer_of
from ragistry.readers.formats import FORMATS

PHRASES = [f"planted{number} cedar{number}" for number in range(20)]
OPEN = "http://schemas.openxmlformats.org"
RELATION = f"{OPEN}/officeDocument/2006/relationships"
PACKAGE = f"{OPEN}/package/2006"
NAMES = " ".join(
    f'xmlns:{name}="{uri}"'
    for name, uri in {
        "w": f"{OPEN}/wordprocessingml/2006/main",
        "p": f"{OPEN}/presentationml/2006/main",
        "r": RELATION,
        "m": f"{OPEN}/officeDocument/2006/math",
        "a": f"{OPEN}/drawingml/2006/main",
        "c": f"{OPEN}/drawingml/2006/chart",
        "wp": f"{OPEN}/drawingml/2006/wordprocessingDrawing",
        "dgm": f"{OPEN}/drawingml/2006/diagram",
        "mc": f"{OPEN}/markup-compatibility/2006",
        "w14": "http://schemas.microsoft.com/office/word/2010/wordml",
        "wps": "http://schemas.microsoft.com/office/word/2010/wordprocessingShape",
        "v": "urn:schemas-microsoft-com:vml",
    }.items()
)
URN = "urn:oasis:names:tc:opendocument:xmlns"
ODF_PARTS = ("office", "text", "table", "style", "form", "presentation", "meta", "chart", "dr3d")
ODF_NAMES = " ".join(
    [f'xmlns:{one}="{URN}:{one}:1.0"' for one in ODF_PARTS]
    + [f'xmlns:draw="{URN}:drawing:1.0" xmlns:svg="{URN}:svg-compatible:1.0"']
    + ['xmlns:xlink="http://www.w3.org/1999/xlink" xmlns:dc="http://purl.org/dc/elements/1.1/"']
)
SHEET_NAMES = f'xmlns="{OPEN}/spreadsheetml/2006/main" {NAMES}'


def read(data: bytes, suffix: str) -> ReadDocument:
    """Read a file by the reader of its format, in this process."""
    document: ReadDocument = import_module(f"ragistry.readers.{FORMATS[suffix].module}").read(data, suffix)
    return document


def text_of(document: ReadDocument) -> str:
    return str(answer_of(document)["text"])


def fill(piece: str, number: int, phrase: str) -> str:
    first, _, second = phrase.partition(" ")
    for name, value in (("PHRASE", phrase), ("FIRST", first), ("SECOND", second), ("NUMBER", str(number))):
        piece = piece.replace(name, value)
    return piece


def each(piece: str, phrases: Sequence[str]) -> str:
    return "".join(fill(piece, number, phrase) for number, phrase in enumerate(phrases, 1))


def zipped(files: Mapping[str, str]) -> bytes:
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return stream.getvalue()


def changed(data: bytes, change: Callable[[str, str], str | None]) -> bytes:
    """Change the parts of a package; a part for which ``change`` returns None is left out."""
    with zipfile.ZipFile(BytesIO(data)) as old:
        parts = {name: change(name, old.read(name).decode()) for name in old.namelist()}
    return zipped({name: part for name, part in parts.items() if part is not None})


# --- Office Open XML ---


TYPES = {"word": "wordprocessingml", "ppt": "presentationml", "xl": "spreadsheetml"}
OFFICE_TYPE = "application/vnd.openxmlformats-officedocument"
ONCE = ("footnotes", "endnotes", "comments", "styles", "numbering", "sharedStrings")
"""Parts of which a file has one, with the pieces of all phrases."""
MANY = (("ppt", "comments"), ("xl", "comments"))


class Part(NamedTuple):
    """A part of a package, and the parts to which its relations lead, by their ids.

    ``kind`` is the last word of the type of a relation. Without XML, the relation leads to an address or to nothing.
    """

    kind: str
    xml: str = ""
    links: Mapping[str, Part] = {}
    target: str = ""


def ooxml(folder: str, main: Part, core: str = "") -> bytes:
    """Write a package. The parts are called ``<folder>/<kind>s/<kind><number>.xml``, or ``<folder>/<kind>.xml``."""
    names: dict[int, str] = {}
    files: dict[str, str] = {}
    types = []

    def write(part: Part) -> str:
        if not part.xml:
            return part.target
        if id(part) not in names:
            number = sum(f"/{part.kind}s/" in name for name in names.values()) + 1
            is_single = part is main or (part.kind in ONCE and (folder, part.kind) not in MANY)
            path, name = (folder, part.kind) if is_single else (f"{folder}/{part.kind}s", f"{part.kind}{number}")
            names[id(part)] = f"{path}/{name}.xml"
            kind = f"{TYPES[folder]}.{'sheet' if part.kind == 'workbook' else part.kind}{'.main' * (part is main)}"
            kind = f"drawingml.{part.kind}" if part.kind in ("chart", "diagramData") else kind
            types.append(f'<Override PartName="/{names[id(part)]}" ContentType="{OFFICE_TYPE}.{kind}+xml"/>')
            files[names[id(part)]] = part.xml
            files[f"{path}/_rels/{name}.xml.rels"] = related(part.links)
        return f"/{names[id(part)]}"

    def related(links: Mapping[str, Part]) -> str:
        lines = []
        for one, part in links.items():
            target = write(part)
            mode = ' TargetMode="External"' if ":" in target else ""
            lines.append(f'<Relationship Id="{one}" Type="{RELATION}/{part.kind}" Target="{target}"{mode}/>')
        return f'<Relationships xmlns="{PACKAGE}/relationships">{"".join(lines)}</Relationships>'

    files["_rels/.rels"] = related({"main": main._replace(kind="officeDocument", xml="", target=write(main))})
    files["[Content_Types].xml"] = f'<Types xmlns="{PACKAGE}/content-types">{"".join(types)}</Types>'
    if core:
        files["docProps/core.xml"] = f'<c:coreProperties xmlns:c="core">{core}</c:coreProperties>'
    return zipped(files)


ROOTS = {"header": "w:hdr", "footer": "w:ftr", "chart": "c:chartSpace", "diagramData": "dgm:dataModel"}
URL = "https://e.org/a?x=1&y=2"
XML_URL = escape(URL)
WEB = Part("hyperlink", target=XML_URL)


def part(kind: str, inner: str, links: Mapping[str, Part] | None = None) -> Part:
    root = ROOTS.get(kind, f"w:{kind}")
    return Part(kind, f"<{root} {NAMES}>{inner}</{root}>", links or {})


def word_file(body: str, *parts: Part, core: str = "", **links: Part) -> bytes:
    """A document of Word. The ids of the relations to the parts are their kinds with their numbers, as ``chart1``."""
    related = {"web": WEB, **links}
    for one in parts:
        related[f"{one.kind}{sum(other.startswith(one.kind) for other in related) + 1}"] = one
    xml = f"<w:document {NAMES}><w:body>{body}</w:body></w:document>"
    return ooxml("word", Part("document", xml, related), core)


def docx(phrases: Sequence[str], body: str, **pieces: str) -> bytes:
    parts = [part("styles", WORD_STYLES), part("numbering", WORD_NUMBERING)]
    for kind, piece in pieces.items():
        many = [each(piece, phrases)] if kind in ONCE else [fill(piece, *one) for one in enumerate(phrases, 1)]
        parts += [part(kind, inner) for inner in many]
    return word_file(each(body, phrases), *parts)


def deck_file(slides: Sequence[Part], core: str = "", numbers: str = "", **links: Part) -> bytes:
    listed = "".join(f'<p:sldId r:id="s{number}"/>' for number in range(len(slides)))
    xml = f"<p:presentation {NAMES} {numbers}><p:sldIdLst>{listed}</p:sldIdLst></p:presentation>"
    related = {**{f"s{number}": slide for number, slide in enumerate(slides)}, **links}
    return ooxml("ppt", Part("presentation", xml, related), core)


def slide(shapes: str, kind: str = "slide", tag: str = "sld", /, **links: Part) -> Part:
    tree = f"<p:cSld><p:spTree>{shapes}</p:spTree></p:cSld>"
    return Part(kind, f"<p:{tag} {NAMES}>{tree}</p:{tag}>", {"web": WEB, **links})


def pptx(phrases: Sequence[str], body: str, **pieces: str) -> bytes:
    slides = []
    for number, phrase in enumerate(phrases, 1):
        own = {kind: fill(piece, number, phrase) for kind, piece in pieces.items()}
        links = {
            kind: slide(xml, kind, "notes") if kind == "notesSlide" else part(kind, xml) for kind, xml in own.items()
        }
        slides.append(slide(sp(ap(f"S{number}"), "title") + fill(body, number, phrase), **links))
    authors = part("commentAuthors", '<p:cmAuthor id="0" name="Ann B"/>')
    return deck_file(slides, authors=authors)


def book_file(sheets: Mapping[str, Part], core: str = "", **links: Part) -> bytes:
    listed = "".join(f'<sheet name="{name}" r:id="{name}"/>' for name in sheets)
    xml = f"<workbook {SHEET_NAMES}><sheets>{listed}</sheets></workbook>"
    return ooxml("xl", Part("workbook", xml, {**sheets, **links}), core)


def sheet(rows: str, after: str = "", /, **links: Part) -> Part:
    xml = f"<worksheet {SHEET_NAMES}><sheetData>{rows}</sheetData>{after}</worksheet>"
    return Part("worksheet", xml, {"web": WEB, **links})


def book_part(kind: str, inner: str, links: Mapping[str, Part] | None = None) -> Part:
    return Part(kind, f"<{kind} {SHEET_NAMES}>{inner}</{kind}>", links or {})


def xlsx(phrases: Sequence[str], body: str, after: str = "", **pieces: str) -> bytes:
    sheets = {}
    for number, phrase in enumerate(phrases, 1):
        links = {kind: book_part(kind, fill(piece, number, phrase)) for kind, piece in pieces.items()}
        if "drawing" in links:  # what else is there, the drawing refers to
            links = {"drawing": links.pop("drawing")._replace(links={"web": WEB, **links})}
        sheets[f"S{number}"] = sheet(*(fill(xml, number, phrase) for xml in (body, after)), **links)
    strings = book_part("sharedStrings", "<si><t>none</t></si>" + each("<si><t>PHRASE</t></si>", phrases))
    return book_file(sheets, strings=strings, styles=book_part("styles", "<cellXfs><xf/><xf numFmtId='10'/></cellXfs>"))


# --- OpenDocument ---


def odf_file(kind: str, body: str, styles: str = "", pages: str = "", meta: str = "", **members: str) -> bytes:
    """A document of raw XML. ``styles``: of the text; ``pages``: master pages; ``members``: further parts."""
    files = {
        "mimetype": f"application/vnd.oasis.opendocument.{kind}",
        "content.xml": odf_content(kind, body, f"<office:automatic-styles>{styles}</office:automatic-styles>"),
        "styles.xml": f"<office:document-styles {ODF_NAMES}><office:master-styles>{pages}</office:master-styles>"
        "</office:document-styles>",
        **members,
    }
    if meta:
        files["meta.xml"] = (
            f"<office:document-meta {ODF_NAMES}><office:meta>{meta}</office:meta></office:document-meta>"
        )
    return zipped(files)


def odf_content(kind: str, body: str, styles: str = "") -> str:
    inner = f"{styles}<office:body><office:{kind}>{body}</office:{kind}></office:body>"
    return f"<office:document-content {ODF_NAMES}>{inner}</office:document-content>"


def _odf(kind: str, phrases: Sequence[str], body: str, object: str = "", pages: str = "") -> bytes:
    objects = {f"Object {number}/content.xml": fill(object, number, phrase) for number, phrase in enumerate(phrases, 1)}
    return odf_file(kind, each(body, phrases), ODF_STYLES, each(pages, phrases), **objects if object else {})


def odt(phrases: Sequence[str], body: str, **pieces: str) -> bytes:
    return _odf("text", phrases, body, **pieces)


def odp(phrases: Sequence[str], body: str, **pieces: str) -> bytes:
    return _odf("presentation", phrases, f"<draw:page>{frame('SNUMBER', 'title')}{body}</draw:page>", **pieces)


def ods(phrases: Sequence[str], body: str, style: str = "", **pieces: str) -> bytes:
    table = f'<table:table table:name="SNUMBER" table:style-name="{style}">{body}</table:table>'
    return _odf("spreadsheet", phrases, table, **pieces)


def rtf(phrases: Sequence[str], body: str) -> bytes:
    styles = r"{\stylesheet{\s1 heading 1;}}"
    return (r"{\rtf1\ansi " + styles + each(body, phrases) + "}").encode()


# --- Books ---


def xhtml(body: str) -> str:
    names = 'xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops"'
    return f"<html {names}><head><title>Book</title></head><body>{body}</body></html>"


def epub_file(pages: Mapping[str, str], contents: str = "", title: str = "Book") -> bytes:
    """A book of pages by their names; ``contents``: links, which are the items of the table of contents."""
    kind = 'media-type="application/xhtml+xml"'
    items = "".join(f'<item id="p{at}" href="{quote(name)}" {kind}/>' for at, name in enumerate(pages))
    order = "".join(f'<itemref idref="p{at}"/>' for at in range(len(pages)))
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="i">'
        '<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:identifier id="i">1</dc:identifier>'
        f"<dc:title>{title}</dc:title><dc:language>en</dc:language></metadata>"
        f'<manifest><item id="nav" href="nav.xhtml" properties="nav" {kind}/>{items}</manifest>'
        f"<spine>{order}</spine></package>"
    )
    container = (
        '<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="text/book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
    )
    files = {"mimetype": "application/epub+zip", "META-INF/container.xml": container, "text/book.opf": package}
    files["text/nav.xhtml"] = xhtml(f'<nav epub:type="toc"><ol>{contents}</ol></nav>')
    return zipped(files | {f"text/{name}": xhtml(body) for name, body in pages.items()})


ODF_KINDS = {".odt": "text", ".odp": "presentation", ".ods": "spreadsheet"}
BUILDERS: dict[str, Callable[..., bytes]] = {
    f".{make.__name__}": make for make in (docx, odt, rtf, pptx, odp, xlsx, ods)
}

# --- Pieces of WordprocessingML, DrawingML, SpreadsheetML and OpenDocument ---


def run(text: str, properties: str = "") -> str:
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def wp(inner: str, style: str = "", properties: str = "") -> str:
    style = f'<w:pStyle w:val="{style}"/>' if style else ""
    return f"<w:p><w:pPr>{style}{properties}</w:pPr>{inner}</w:p>"


def item(number: int, depth: int, text: str, style: str = "") -> str:
    return wp(run(text), style, f'<w:numPr><w:ilvl w:val="{depth}"/><w:numId w:val="{number}"/></w:numPr>')


def drawing(inner: str, properties: str = "") -> str:
    graphic = f"<a:graphic><a:graphicData>{inner}</a:graphicData></a:graphic>"
    return f"<w:r><w:drawing><wp:inline><wp:docPr {properties}/>{graphic}</wp:inline></w:drawing></w:r>"


def ap(text: str, properties: str = "", level: int = 0) -> str:
    return f'<a:p><a:pPr lvl="{level}">{properties}</a:pPr><a:r><a:t>{text}</a:t></a:r></a:p>'


def sp(paragraphs: str, kind: str = "", properties: str = "", mark: str = "") -> str:
    kind = f'<p:ph type="{kind}" {mark}/>' if kind else ""
    shown = f"<p:nvSpPr><p:cNvPr {properties}/><p:nvPr>{kind}</p:nvPr></p:nvSpPr>"
    return f"<p:sp>{shown}<p:txBody>{paragraphs}</p:txBody></p:sp>"


def graphic(inner: str) -> str:
    return f"<p:graphicFrame><a:graphic><a:graphicData>{inner}</a:graphicData></a:graphic></p:graphicFrame>"


def cells(*texts: str, row: int | str = 1) -> str:
    """A row of texts, which begins in column A; an empty text leaves its cell out."""
    found = (
        f'<c r="{column}{row}" t="inlineStr"><is><t>{text}</t></is></c>'
        for column, text in zip("ABCDEF", texts, strict=False)
        if text
    )
    return f'<row r="{row}">{"".join(found)}</row>'


def p(inner: str, style: str = "") -> str:
    return f'<text:p text:style-name="{style}">{inner}</text:p>'


def frame(text: str, kind: str = "", properties: str = "") -> str:
    return (
        f'<draw:frame presentation:class="{kind}" {properties}><draw:text-box>{p(text)}</draw:text-box></draw:frame>'
        if kind
        else f"<draw:frame {properties}><draw:text-box>{p(text)}</draw:text-box></draw:frame>"
    )


def odf_table(*rows: Sequence[str]) -> str:
    """A table; an empty text is a cell that another one covers."""
    return f"<table:table>{''.join(odf_row(*row) for row in rows)}</table:table>"


def odf_row(*texts: str) -> str:
    return f"<table:table-row>{''.join(map(odf_cell, texts))}</table:table-row>"


def odf_cell(text: str) -> str:
    inner = text if text.startswith("<") else p(text)
    return f"<table:table-cell>{inner}</table:table-cell>" if text else "<table:covered-table-cell/>"


def chart_xml(title: str, name: str, category: str, value: str) -> str:
    """The content of a chart with one point."""
    axis = f"<c:catAx><c:title>{ap('Month')}</c:title></c:catAx>"
    series = (
        f"<c:ser><c:tx><c:pt><c:v>{name}</c:v></c:pt></c:tx><c:cat><c:pt idx='0'><c:v>{category}</c:v></c:pt></c:cat>"
    )
    series += f"<c:val><c:formatCode>0%</c:formatCode><c:pt idx='0'><c:v>{value}</c:v></c:pt></c:val></c:ser>"
    return f"<c:chart><c:title>{ap(title)}</c:title><c:plotArea>{series}{axis}</c:plotArea></c:chart>"


def diagram_xml(*texts: str) -> str:
    """The content of a diagram: the first text, and the others below it, last first."""
    points = '<dgm:pt modelId="0" type="doc"/>' + "".join(
        f'<dgm:pt modelId="{at}"><dgm:t>{ap(text)}</dgm:t></dgm:pt>' for at, text in enumerate(texts, 1)
    )
    links = "".join(
        f'<dgm:cxn srcId="{int(at > 1)}" destId="{at}" srcOrd="{99 - at}"/>' for at in range(1, len(texts) + 1)
    )
    return f"<dgm:ptLst>{points}</dgm:ptLst><dgm:cxnLst>{links}</dgm:cxnLst>"


def level(at: int, style: str, text: str) -> str:
    shown = f'<w:numFmt w:val="{style}"/><w:lvlText w:val="{text}"/>'
    return f'<w:lvl w:ilvl="{at}"><w:start w:val="1"/>{shown}</w:lvl>'


WORD_NUMBERING = "".join(
    f'<w:abstractNum w:abstractNumId="{at}">{levels}</w:abstractNum>'
    f'<w:num w:numId="{at}"><w:abstractNumId w:val="{at}"/></w:num>'
    for at, levels in enumerate(
        [
            level(0, "bullet", "•"),
            level(0, "decimal", "%1.") + level(1, "lowerLetter", "%2)"),
            level(0, "decimal", "%1") + level(1, "decimal", "%1.%2"),
        ],
        1,
    )
)
WORD_NUMBERING += (
    '<w:num w:numId="4"><w:abstractNumId w:val="2"/><w:lvlOverride w:ilvl="0"><w:startOverride w:val="1"/>'
    "</w:lvlOverride></w:num>"
)
WORD_STYLES = (
    '<w:style w:type="paragraph" w:styleId="berschrift1"><w:name w:val="heading 1"/><w:pPr><w:outlineLvl w:val="0"/>'
    '</w:pPr></w:style><w:style w:type="paragraph" w:styleId="Chapter"><w:name w:val="Chapter"/>'
    '<w:basedOn w:val="berschrift1"/></w:style><w:style w:type="paragraph" w:styleId="Loop"><w:name w:val="Loop"/>'
    '<w:basedOn w:val="Loop"/></w:style><w:style w:type="character" w:styleId="Secret"><w:name w:val="Secret"/>'
    "<w:rPr><w:vanish/></w:rPr></w:style>"
)
ODF_STYLES = (
    '<text:list-style style:name="L1">'
    '<text:list-level-style-number text:level="1" style:num-format="1" style:num-suffix="."/>'
    '<text:list-level-style-number text:level="2" style:num-format="a" style:num-suffix=")"/></text:list-style>'
    '<text:list-style style:name="L2"><text:list-level-style-bullet text:level="1"/></text:list-style>'
    '<style:style style:name="P1" style:family="paragraph" style:parent-style-name="Title"/>'
    '<style:style style:name="T1" style:family="text"><style:text-properties style:text-position="super 58%"/>'
    '</style:style><style:style style:name="T2" style:family="text"><style:text-properties text:display="none"/>'
    '</style:style><style:style style:name="h"><style:table-properties table:display="false"/></style:style>'
)
