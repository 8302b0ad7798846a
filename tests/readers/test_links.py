"""Where a link leads is in the text, in every format and form; an address that is shown anyway is there once."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from html import escape
from io import BytesIO
from typing import Any

import pytest
from docx import Document
from docx.oxml import parse_xml
from openpyxl import Workbook
from pptx import Presentation
from pptx.util import Inches

from ragistry.readers.blocks import ReadDocument
from ragistry.readers.by_format import read_document

URL, TEXT = "https://example.org/a/key?x=1&y=2", "handbook"
XML = escape(URL)
WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
LINK = f"{OFFICE}/hyperlink"


def saved(document: Any) -> bytes:
    stream = BytesIO()
    document.save(stream)
    return stream.getvalue()


def docx_of(form: str, text: str) -> bytes:
    document = Document()
    relation = document.part.relate_to(URL, LINK, is_external=True)
    run = f"<w:r><w:t>{escape(text)}</w:t></w:r>"
    xml = form.format(run=run, id=relation, url=XML)
    document.element.body.insert(0, parse_xml(f'<w:p xmlns:w="{WORD}" xmlns:r="{OFFICE}">{xml}</w:p>'))
    return saved(document)


def field(mark: str) -> str:
    return f'<w:r><w:fldChar w:fldCharType="{mark}"/></w:r>'


def pptx_slide() -> tuple[Any, Any]:
    deck = Presentation()
    return deck, deck.slides.add_slide(deck.slide_layouts[5])


def pptx_run(text: str, place: str = "shape") -> bytes:
    deck, slide = pptx_slide()
    box = Inches(1), Inches(1), Inches(3), Inches(1)
    match place:
        case "title":
            frame = slide.shapes.title.text_frame
        case "table":
            frame = slide.shapes.add_table(2, 2, *box).table.cell(0, 0).text_frame
        case "notes":
            frame = slide.notes_slide.notes_text_frame
        case "group":
            frame = slide.shapes.add_group_shape().shapes.add_textbox(*box).text_frame
        case _:
            frame = slide.shapes.add_textbox(*box).text_frame
    run = frame.paragraphs[0].add_run()
    run.text, run.hyperlink.address = text, URL
    return saved(deck)


def pptx_click(text: str) -> bytes:
    deck, slide = pptx_slide()
    shape = slide.shapes.add_textbox(Inches(1), Inches(1), Inches(3), Inches(1))
    shape.text_frame.text, shape.click_action.hyperlink.address = text, URL
    return saved(deck)


def xlsx_cell(text: str, cell: str = "B2", **more: str) -> bytes:
    book = Workbook()
    sheet = book.active
    sheet["A1"], sheet["B1"], sheet["A2"], sheet["B2"] = "Name", "Where", 4, text
    sheet[cell].hyperlink = URL
    for name, value in more.items():
        setattr(sheet[cell].hyperlink, name, value)
    return saved(book)


def xlsx_raw(cells: str, drawing: str = "") -> bytes:
    """A workbook whose row has these cells as XML, and a drawing with these shapes."""
    book = Workbook()
    book.active["A1"] = "row"
    with zipfile.ZipFile(BytesIO(saved(book))) as old:
        parts = {name: old.read(name).decode() for name in old.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    main = parts[sheet]
    start, end = main.index("<sheetData>"), main.index("</sheetData>")
    parts[sheet] = f'{main[:start]}<sheetData><row r="1">{cells}</row>{main[end:]}'
    if drawing:
        parts[sheet] = parts[sheet].replace("</worksheet>", f'<drawing xmlns:r="{OFFICE}" r:id="d1"/></worksheet>')
        space = "http://schemas.openxmlformats.org/drawingml/2006/spreadsheetDrawing"
        parts["xl/worksheets/_rels/sheet1.xml.rels"] = rels(("d1", "drawing", "../drawings/drawing1.xml", ""))
        parts["xl/drawings/drawing1.xml"] = (
            f'<x:wsDr xmlns:x="{space}" xmlns:a="{DRAWING}" xmlns:r="{OFFICE}">{drawing}</x:wsDr>'
        )
        parts["xl/drawings/_rels/drawing1.xml.rels"] = rels(("h1", "hyperlink", XML, ' TargetMode="External"'))
    return zipped(parts)


def rels(*entries: tuple[str, str, str, str]) -> str:
    space = "http://schemas.openxmlformats.org/package/2006/relationships"
    lines = (
        f'<Relationship Id="{one}" Type="{OFFICE}/{kind}" Target="{to}"{mode}/>' for one, kind, to, mode in entries
    )
    return f'<Relationships xmlns="{space}">{"".join(lines)}</Relationships>'


def zipped(parts: dict[str, str]) -> bytes:
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return stream.getvalue()


def formula(code: str, text: str) -> bytes:
    cell = f'<c r="A1" t="str"><f>{escape(code)}</f><v>{escape(text)}</v></c>'
    return xlsx_raw(f'{cell}<c r="B1" t="inlineStr"><is><t>b</t></is></c>')


def opened(kind: str, body: str) -> bytes:
    """A document of OpenDocument of a kind, such as ``text``."""
    urn = "urn:oasis:names:tc:opendocument:xmlns"
    names = "".join(
        f' xmlns:{name}="{urn}:{of}:1.0"'
        for name, of in (
            *((name, name) for name in ("office", "text", "table", "presentation", "script")),
            ("draw", "drawing"),
        )
    )
    names += ' xmlns:xlink="http://www.w3.org/1999/xlink"'
    content = f"<office:document-content{names}><office:body><office:{kind}>{body}</office:{kind}></office:body>"

    return zipped({"content.xml": f"{content}</office:document-content>"})


def ods(cell: str) -> bytes:
    row = f"<table:table-row>{cell}<table:table-cell><text:p>b</text:p></table:table-cell></table:table-row>"
    return opened("spreadsheet", f'<table:table table:name="One">{row}</table:table>')


def odp(inner: str) -> bytes:
    return opened("presentation", f'<draw:page draw:name="p1">{inner}</draw:page>')


def epub(text: str) -> bytes:
    container = (
        '<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="b.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
    )
    book = (
        '<package xmlns="http://www.idpf.org/2007/opf" version="3.0"><metadata/><manifest><item id="a" href="a.xhtml" '
        'media-type="application/xhtml+xml"/></manifest><spine><itemref idref="a"/></spine></package>'
    )
    page = (
        f'<html xmlns="http://www.w3.org/1999/xhtml"><body><p>See <a href="{XML}">{escape(text)}</a></p></body></html>'
    )
    return zipped({"META-INF/container.xml": container, "b.opf": book, "a.xhtml": page})


def eml(text: str) -> bytes:
    page = f'<p>See <a href="{XML}">{escape(text)}</a></p>'
    return f"Subject: s\nMIME-Version: 1.0\nContent-Type: text/html; charset=utf-8\n\n{page}\n".encode()


def anchor(text: str) -> str:
    return f'<a:r><a:rPr><a:hlinkClick r:id="h1"/></a:rPr><a:t>{escape(text)}</a:t></a:r>'


def shape(inner: str, click: str = "") -> str:
    return (
        '<x:twoCellAnchor><x:sp><x:nvSpPr><x:cNvPr id="2" name="S">'
        f"{click}</x:cNvPr></x:nvSpPr><x:txBody><a:p>{inner}</a:p></x:txBody></x:sp></x:twoCellAnchor>"
    )


CLICK = '<a:hlinkClick r:id="h1"/>'
LISTENER = (
    '<office:event-listeners><presentation:event-listener script:event-name="dom:click" presentation:action="show" '
    f'xlink:href="{XML}"/></office:event-listeners>'
)

FORMS: dict[str, Callable[[str], bytes]] = {
    "html": lambda text: f'<html><body><p>See <a href="{XML}">{escape(text)}</a>.</p></body></html>'.encode(),
    "eml": eml,
    "epub": epub,
    "ipynb": lambda text: (
        f'{{"cells": [{{"cell_type": "markdown", "source": ["See [{text}]({URL})"]}}], "metadata": {{}}}}'.encode()
    ),
    "org": lambda text: f"See [[{URL}][{text}]].".encode(),
    "rtf": lambda text: (
        rf'{{\rtf1\ansi See {{\field{{\*\fldinst HYPERLINK "{URL}"}}{{\fldrslt {text}}}}}\par}}'.encode()
    ),
    "rst embedded": lambda text: f"See the `{text} <{URL}>`_ now.".encode(),
    "rst anonymous": lambda text: f"See `{text}`__ now.\n\n__ {URL}".encode(),
    "rst named": lambda text: f"See `{text}`_ now.\n\n.. _`{text.replace(':', chr(92) + ':')}`: {URL}".encode(),
    "rst substitution": lambda text: f"See |x|_ now.\n\n.. |x| replace:: {text}\n.. _x: {URL}".encode(),
    "rst in a heading": lambda text: f"`{text} <{URL}>`_\n{'=' * 99}\n\nWords.".encode(),
    "rst in a table": lambda text: (
        f".. list-table::\n\n   * - `{text} <{URL}>`_\n     - b\n   * - c\n     - d\n".encode()
    ),
    "rst picture": lambda text: f".. image:: a.png\n   :alt: {text}\n   :target: {URL}\n".encode(),
    "docx": lambda text: docx_of('<w:hyperlink r:id="{id}">{run}</w:hyperlink>', text),
    "docx field": lambda text: docx_of(
        f'{field("begin")}<w:r><w:instrText> HYPERLINK "{{url}}" </w:instrText></w:r>{field("separate")}{{run}}'
        f"{field('end')}",
        text,
    ),
    "docx simple field": lambda text: docx_of(
        '<w:fldSimple w:instr=" HYPERLINK &quot;{url}&quot; \\o &quot;tip&quot; ">{run}</w:fldSimple>', text
    ),
    "odt": lambda text: opened("text", f'<text:p>See <text:a xlink:href="{XML}">{escape(text)}</text:a></text:p>'),
    "odp": lambda text: odp(
        f'<draw:frame><draw:text-box><text:p><text:a xlink:href="{XML}">{escape(text)}</text:a></text:p>'
        "</draw:text-box></draw:frame>"
    ),
    "odp shape": lambda text: odp(f"<draw:custom-shape>{LISTENER}<text:p>{escape(text)}</text:p></draw:custom-shape>"),
    "odp frame": lambda text: odp(
        f'<draw:a xlink:href="{XML}"><draw:frame><draw:text-box><text:p>{escape(text)}</text:p></draw:text-box>'
        "</draw:frame></draw:a>"
    ),
    "ods": lambda text: ods(
        f'<table:table-cell><text:p><text:a xlink:href="{XML}">{escape(text)}</text:a></text:p></table:table-cell>'
    ),
    "ods formula": lambda text: ods(
        f'<table:table-cell table:formula="of:=HYPERLINK(&quot;{XML}&quot;;&quot;{escape(text)}&quot;)" '
        f'office:value-type="string"><text:p>{escape(text)}</text:p></table:table-cell>'
    ),
    "xlsx": xlsx_cell,
    "xlsx range": lambda text: xlsx_cell(text, ref="B2:C3"),
    "xlsx formula": lambda text: formula(f'HYPERLINK("{URL}","{text}")', text),
    "xlsx shape": lambda text: xlsx_raw("", shape(anchor(text))),
    "xlsx clicked shape": lambda text: xlsx_raw("", shape(f"<a:r><a:t>{escape(text)}</a:t></a:r>", CLICK)),
    "pptx": pptx_run,
    "pptx title": lambda text: pptx_run(text, "title"),
    "pptx table": lambda text: pptx_run(text, "table"),
    "pptx notes": lambda text: pptx_run(text, "notes"),
    "pptx group": lambda text: pptx_run(text, "group"),
    "pptx shape": pptx_click,
}


TWICE = {"ipynb", "rst picture", "odp shape", "odp frame", "xlsx clicked shape", "pptx shape"}
"""Forms whose text is not that of the link alone."""


def text_of(data: bytes, form: str) -> str:
    document = read_document(data, f"x.{form.split()[0]}", lambda _: ReadDocument(), {})
    return "\n\n".join(block.text for block in document.blocks)


@pytest.mark.parametrize("form", FORMS)
def test_the_address_of_a_link_is_in_the_text(form: str) -> None:
    text = text_of(FORMS[form](TEXT), form)
    assert (URL in text, TEXT in text) == (True, True), text
    text = text_of(FORMS[form](URL), form)
    assert text.count(URL) == 1 or form in TWICE, text


def test_the_runs_of_a_link_are_one_link() -> None:
    deck = Presentation(BytesIO(pptx_run("hand")))
    run = deck.slides[0].shapes[1].text_frame.paragraphs[0].add_run()
    run.text, run.hyperlink.address = "book", URL
    assert f"[{TEXT}]({URL})" in text_of(saved(deck), "pptx")


PARTS = {
    "a place in the address": (lambda: xlsx_cell(TEXT, location="Sheet2!A1"), "xlsx", f"[{TEXT}]({URL}#Sheet2!A1)"),
    "a computed address": (
        lambda: formula('HYPERLINK("https://e.org/"&A2&"/x",A2)', "T-1"),
        "xlsx",
        "(https://e.org/…/x)",
    ),
    "a place in the workbook": (lambda: formula('HYPERLINK("#Two!A1","T")', "T-1"), "xlsx", "| T-1 |"),
    "a number": (lambda: xlsx_cell(TEXT, "A2"), "xlsx", f"| [4]({URL}) |"),
    "a part of a page": (
        lambda: docx_of('<w:hyperlink r:id="{id}" w:anchor="part">{run}</w:hyperlink>', TEXT),
        "docx",
        f"({URL}#part)",
    ),
    "a place in the document": (lambda: docx_of('<w:hyperlink w:anchor="a">{run}</w:hyperlink>', TEXT), "docx", TEXT),
    "a file": (lambda: f"`{TEXT} <../a/other.pdf>`_".encode(), "rst", f"[{TEXT}](../a/other.pdf)"),
    "a mail": (lambda: b"Write to a@e.org", "rst", "Write to a@e.org"),
    "a pipe": (lambda: formula('HYPERLINK("https://e.org/a|b","T")', "T"), "xlsx", r"| [T](https://e.org/a\|b) |"),
}


@pytest.mark.parametrize("case", PARTS)
def test_an_address_is_written_as(case: str) -> None:
    data, form, expected = PARTS[case]
    text = text_of(data(), form)
    assert expected in text
    assert expected != TEXT or "(" not in text
