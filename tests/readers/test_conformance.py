"""The readers of this package pass the suite that those of other packages are given."""

from __future__ import annotations

import io
import json
from typing import Any, ClassVar

import pytest

from ragistry.readers import docx, html_page, notebook, org, rtf, sheets
from ragistry.readers.blocks import Place
from ragistry.testing.readers import ReaderConformance

WORDS = {"prune the roses": Place(), "water the tomatoes": Place()}


class TestHtml(ReaderConformance):
    reader = staticmethod(html_page.read)
    suffix = ".html"
    phrases = WORDS

    @pytest.fixture
    def data(self) -> bytes:
        return b"<html><body><h1>prune the roses</h1><p>in <b>March</b></p><p>water the tomatoes</p></body></html>"


class TestOrg(ReaderConformance):
    reader = staticmethod(org.read)
    suffix = ".org"
    phrases = WORDS

    @pytest.fixture
    def data(self) -> bytes:
        return b"* prune the roses\nin March\n** July\n- water the tomatoes\n"


class TestRtf(ReaderConformance):
    reader = staticmethod(rtf.read)
    suffix = ".rtf"
    phrases = WORDS

    @pytest.fixture
    def data(self) -> bytes:
        return rb"{\rtf1\ansi prune the {\b roses}\par water the tomatoes\par}".replace(b"{\\b roses}", b"roses")


class TestNotebook(ReaderConformance):
    reader = staticmethod(notebook.read)
    suffix = ".ipynb"
    phrases = WORDS

    @pytest.fixture
    def data(self) -> bytes:
        cells = [{"cell_type": "markdown", "source": [phrase], "metadata": {}} for phrase in WORDS]
        return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()


class TestDocx(ReaderConformance):
    reader = staticmethod(docx.read)
    suffix = ".docx"
    phrases = WORDS

    @pytest.fixture
    def data(self) -> bytes:
        from docx import Document

        document: Any = Document()
        for phrase in WORDS:
            document.add_paragraph(phrase)
        return _saved(document)


class TestSheets(ReaderConformance):
    reader = staticmethod(sheets.read)
    suffix = ".xlsx"
    phrases: ClassVar = {"prune the roses": Place(sheet="March"), "water the tomatoes": Place(sheet="July")}

    @pytest.fixture
    def data(self) -> bytes:
        from openpyxl import Workbook

        book: Any = Workbook()
        book.remove(book.active)
        for phrase, place in self.phrases.items():
            book.create_sheet(place.sheet).append(["to do", phrase])
        return _saved(book)


def _saved(document: Any) -> bytes:
    stream = io.BytesIO()
    document.save(stream)
    return stream.getvalue()
