"""Small documents of each format, made by the libraries that people make them with, or by hand."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from email.message import EmailMessage
from io import BytesIO
from pathlib import Path

TITLE, HEADING, WORDS = "Cedar report", "Roots and soil", "The cedar needs a sandy soil."


def docx(path: Path) -> None:
    from docx import Document

    document = Document()
    document.core_properties.title, document.core_properties.author = TITLE, "Office"
    document.add_heading(HEADING, 1)
    document.add_paragraph(WORDS)
    table = document.add_table(2, 2)
    for row, cells in zip(table.rows, [("month", "rain"), ("May", "40 mm")], strict=True):
        for cell, text in zip(row.cells, cells, strict=True):
            cell.text = text
    document.save(str(path))


def pptx(path: Path) -> None:
    from pptx import Presentation

    slides = Presentation()
    slides.core_properties.title = TITLE
    for title, text, note in ((TITLE, "An overview", ""), (HEADING, WORDS, "Say this slowly.")):
        slide = slides.slides.add_slide(slides.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text = text
        if note:
            slide.notes_slide.notes_text_frame.text = note
    slides.save(str(path))


def xlsx(path: Path) -> None:
    from openpyxl import Workbook

    book = Workbook()
    book.properties.title = TITLE
    book.active.title = HEADING
    book.active.append(["fact", "value"])
    book.active.append([WORDS, 7])
    book.create_sheet("Rain").append(["May", 40])
    book.save(str(path))


def _zipped(path: Path, kind: str, files: dict[str, str]) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mimetype", kind, zipfile.ZIP_STORED)
        for name, text in files.items():
            archive.writestr(name, text)


def odt(path: Path) -> None:
    names = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{of}:1.0"'
        for name, of in (("office", "office"), ("text", "text"))
    )
    body = f'<text:h text:outline-level="1">{HEADING}</text:h><text:p>{WORDS}</text:p>'
    content = f'<?xml version="1.0"?><office:document-content {names}><office:body><office:text>{body}</office:text>'
    title = f'<office:meta><dc:title xmlns:dc="http://purl.org/dc/elements/1.1/">{TITLE}</dc:title></office:meta>'
    meta = f'<?xml version="1.0"?><office:document-meta {names}>{title}</office:document-meta>'
    files = {"content.xml": f"{content}</office:body></office:document-content>", "meta.xml": meta}
    _zipped(path, "application/vnd.oasis.opendocument.text", files)


def epub(path: Path) -> None:
    container = (
        '<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
    )
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="i">'
        '<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:identifier id="i">1</dc:identifier>'
        f'<dc:title>{TITLE}</dc:title><dc:language>en</dc:language></metadata><manifest><item id="a" href="a.xhtml" '
        'media-type="application/xhtml+xml"/></manifest><spine><itemref idref="a"/></spine></package>'
    )
    page = f'<html xmlns="http://www.w3.org/1999/xhtml"><body><h1>{HEADING}</h1><p>{WORDS}</p></body></html>'
    _zipped(path, "application/epub+zip", {"META-INF/container.xml": container, "book.opf": package, "a.xhtml": page})


def html(path: Path) -> None:
    head = f"<head><meta charset='utf-8'><title>{TITLE}</title><meta name='author' content='Web'></head>"
    body = f"<h1>{HEADING}</h1><p>{WORDS} <b>Grüße</b></p><script>alert('no')</script><pre><code>x = 1</code></pre>"
    path.write_text(f"<!doctype html><html>{head}<body>{body}</body></html>", encoding="utf-8")


def eml(path: Path) -> None:
    message = EmailMessage()
    message["Subject"], message["From"], message["To"] = TITLE, "a@example.org", "b@example.org"
    message.set_content(f"{HEADING}\n\n{WORDS}\n")
    path.write_bytes(bytes(message))


def ipynb(path: Path) -> None:
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": [f"# {TITLE}\n", f"## {HEADING}\n", WORDS]},
        {"cell_type": "code", "metadata": {}, "source": ["print('cedar')"], "outputs": [], "execution_count": 1},
    ]
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}), encoding="utf-8")


def rtf(path: Path) -> None:
    path.write_text(rf"{{\rtf1\ansi {{\b {HEADING}}}\par {WORDS}\par}}", encoding="ascii")


def rst(path: Path) -> None:
    path.write_text(f"{TITLE}\n{'=' * 12}\n\n{HEADING}\n{'-' * 14}\n\n{WORDS}\n", encoding="utf-8")


def org(path: Path) -> None:
    path.write_text(f"* {TITLE}\n** {HEADING}\n{WORDS}\n", encoding="utf-8")


MAKERS: dict[str, Callable[[Path], None]] = {
    f".{make.__name__}": make for make in (docx, pptx, xlsx, odt, epub, html, eml, ipynb, rtf, rst, org)
}


def docx_of(*paragraphs: str) -> bytes:
    """A document of Word with these paragraphs."""
    from docx import Document

    document, stream = Document(), BytesIO()
    for paragraph in paragraphs:
        document.add_paragraph(paragraph)
    document.save(stream)
    return stream.getvalue()
