"""Small documents of each format, made by the libraries that people make them with, or by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from email.message import EmailMessage
from io import BytesIO
from pathlib import Path

from tests.readers.office_builder import epub_file, odf_file, p

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


def odt(path: Path) -> None:
    body = f'<text:h text:outline-level="1">{HEADING}</text:h>{p(WORDS)}'
    path.write_bytes(odf_file("text", body, meta=f"<dc:title>{TITLE}</dc:title>"))


def epub(path: Path) -> None:
    path.write_bytes(epub_file({"a.xhtml": f"<h1>{HEADING}</h1><p>{WORDS}</p>"}, title=TITLE))


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
