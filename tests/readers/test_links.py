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

from ragistry.readers.blocks import ReadDocument
from ragistry.readers.by_format import read_document

URL, TEXT = "https://example.org/a/key?x=1&y=2", "handbook"
XML = escape(URL)
WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
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


def zipped(parts: dict[str, str]) -> bytes:
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return stream.getvalue()


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
}


TWICE = {"ipynb", "rst picture"}
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
