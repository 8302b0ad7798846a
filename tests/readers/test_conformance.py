"""The readers of this package pass the suite that those of other packages are given."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import import_module

import pytest

from ragistry.readers.blocks import Place
from ragistry.readers.formats import FORMATS
from ragistry.testing.readers import ReaderConformance
from tests.readers.test_office_table import build

PHRASES = ["prune the roses", "water the tomatoes"]
ANYWHERE = dict.fromkeys(PHRASES, Place())
SHEETS = {phrase: Place(sheet=f"S{number}") for number, phrase in enumerate(PHRASES, 1)}
SLIDES = {phrase: Place(page=number) for number, phrase in enumerate(PHRASES, 1)}
CELLS = [{"cell_type": "markdown", "source": [phrase], "metadata": {}} for phrase in PHRASES]
NOTEBOOK = {"cells": CELLS, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def suite(suffix: str, data: bytes = b"", places: Mapping[str, Place] = ANYWHERE) -> type[ReaderConformance]:
    """The suite for the reader of a format; without data, over a file of an office program."""
    whole = data or build("paragraphs", suffix, PHRASES)

    class Suite(ReaderConformance):
        reader = staticmethod(import_module(f"ragistry.readers.{FORMATS[suffix].module}").read)
        phrases = places

        @pytest.fixture
        def data(self) -> bytes:
            return whole

    Suite.suffix = suffix
    return Suite


TestHtml = suite(".html", b"<body><h1>prune the roses</h1><p>in <b>March</b></p><p>water the tomatoes</p></body>")
TestOrg = suite(".org", b"* prune the roses\nin March\n** July\n- water the tomatoes\n")
TestNotebook = suite(".ipynb", json.dumps(NOTEBOOK).encode())
TestRst = suite(".rst", b"prune the roses\n===============\n\nIn *March*.\n\n- water the tomatoes\n")
TestRtf = suite(".rtf")
TestDocx = suite(".docx")
TestOdt = suite(".odt")
TestSlides = suite(".pptx", places=SLIDES)
TestOpenSlides = suite(".odp", places=SLIDES)
TestSheets = suite(".xlsx", places=SHEETS)
TestOpenSheets = suite(".ods", places=SHEETS)
