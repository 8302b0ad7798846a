"""Where a link leads is in the text; an address that is shown anyway is there once.

Links of office files are in test_office_table.py.
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape

import pytest

from ragistry.readers.blocks import ReadDocument
from ragistry.readers.by_format import read_document
from tests.readers.office_builder import epub_file

URL, TEXT = "https://example.org/a/key?x=1&y=2", "handbook"
XML = escape(URL)


def eml(text: str) -> bytes:
    page = f'<p>See <a href="{XML}">{escape(text)}</a></p>'
    return f"Subject: s\nMIME-Version: 1.0\nContent-Type: text/html; charset=utf-8\n\n{page}\n".encode()


FORMS: dict[str, Callable[[str], bytes]] = {
    "html": lambda text: f'<html><body><p>See <a href="{XML}">{escape(text)}</a>.</p></body></html>'.encode(),
    "eml": eml,
    "epub": lambda text: epub_file({"a.xhtml": f'<p>See <a href="{XML}">{escape(text)}</a></p>'}),
    "ipynb": lambda text: (
        f'{{"cells": [{{"cell_type": "markdown", "source": ["See [{text}]({URL})"]}}], "metadata": {{}}}}'.encode()
    ),
    "org": lambda text: f"See [[{URL}][{text}]].".encode(),
    "rst embedded": lambda text: f"See the `{text} <{URL}>`_ now.".encode(),
    "rst anonymous": lambda text: f"See `{text}`__ now.\n\n__ {URL}".encode(),
    "rst named": lambda text: f"See `{text}`_ now.\n\n.. _`{text.replace(':', chr(92) + ':')}`: {URL}".encode(),
    "rst substitution": lambda text: f"See |x|_ now.\n\n.. |x| replace:: {text}\n.. _x: {URL}".encode(),
    "rst in a heading": lambda text: f"`{text} <{URL}>`_\n{'=' * 99}\n\nWords.".encode(),
    "rst in a table": lambda text: (
        f".. list-table::\n\n   * - `{text} <{URL}>`_\n     - b\n   * - c\n     - d\n".encode()
    ),
    "rst picture": lambda text: f".. image:: a.png\n   :alt: {text}\n   :target: {URL}\n".encode(),
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


@pytest.mark.parametrize(
    ("source", "expected"),
    [(f"`{TEXT} <../a/other.pdf>`_", f"[{TEXT}](../a/other.pdf)"), ("Write to a@e.org", "Write to a@e.org")],
)
def test_an_address_of_a_file_or_a_mail_is_written_as_it_is(source: str, expected: str) -> None:
    assert expected in text_of(source.encode(), "rst")
