"""Web pages, notebooks and reStructuredText as their readers see them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragistry.utils.documents.blocks import ReadDocument
from ragistry.utils.documents.readers import read_document


def read(text: str | bytes, suffix: str) -> tuple[ReadDocument, str]:
    data = text.encode() if isinstance(text, str) else text
    document = read_document(data, f"x{suffix}", lambda _: ReadDocument())
    return document, "\n\n".join(block.text for block in document.blocks)


PAGES = [
    ("10<sup>6</sup> cells", "10⁶ cells"),
    ("H<sub>2</sub>O", "H₂O"),
    ("the 4<sup>th</sup> day", "the 4th day"),
    ("x<sup>2a</sup>", "x^(2a)"),
    ("<math alttext='E=mc^2'><mi>E</mi><mo>=</mo></math>", "E=mc^2"),
    ("<math><mi>a</mi><mo>+</mo><mi>b</mi></math>", "a + b"),
]


@pytest.mark.parametrize(("page", "expected"), PAGES)
def test_raised_digits_and_formulas_of_a_page(page: str, expected: str) -> None:
    document, text = read(f"<html><head><title>T</title></head><body><p>{page} end</p></body></html>", ".html")
    assert (expected in text, "<!--" in text, document.lost) == (True, False, {})
    assert document.info["Title"] == "T"


def test_nested_tables_give_no_false_alarm(shared_office: Path) -> None:
    document, text = read((shared_office / "nested-tables.html").read_bytes(), ".html")
    assert document.lost == {}
    assert "VIII" in text


def test_outputs_and_errors_of_a_notebook() -> None:
    outputs = [
        {"output_type": "stream", "text": ["printed Grüße"]},
        {"output_type": "execute_result", "data": {"text/html": ["<p>shown <b>bold</b></p>"], "text/plain": ["<obj>"]}},
        {"output_type": "display_data", "data": {"text/markdown": "**marked**"}},
        {
            "output_type": "error", "ename": "ValueError", "evalue": "wrong valve",
            "traceback": ["\x1b[0;31mTraceback\x1b[0m", "ValueError: wrong valve"],
        },
    ]  # fmt: skip
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "text"]},
        {"cell_type": "code", "source": "print(1)", "outputs": outputs},
    ]
    _, text = read(json.dumps({"cells": cells, "metadata": {}}), ".ipynb")
    for phrase in ("# Title", "print(1)", "printed Grüße", "shown **bold**", "**marked**", "ValueError: wrong valve"):
        assert phrase in text
    assert ("\x1b" in text, text.count("ValueError")) == (False, 1)


RST = """
Title
=====

.. contents::
   :local:

``throttle`` and more
---------------------

Use :guilabel:`compare` and :ref:`playbooks_reuse`, :ref:`the guide <x_y>`, :py:class:`~a.b.Valve`, :unknown:`thing`.
A |sub| and a `link <http://example.com>`_.

.. |sub| replace:: substituted word

.. versionadded:: 2.3
   The new boiler.

.. toctree::
   :maxdepth: 2

   other_page

.. note:: Be careful.

.. tabs::

   .. tab:: Linux

      Run the pump.

.. code-block:: python
   :linenos:

   drain(1)

.. py:function:: close(valve)
   :module: house

   Closes the valve.

.. csv-table:: Prices
   :header: A,B

   tea,4

Text with a note [1]_.

.. [1] The note itself.

.. include:: /etc/passwd

.. image:: x.png
   :alt: A picture of tea
"""
RST_SHOWN = [
    *("# Title", "## `throttle` and more", "**compare**", "playbooks_reuse", "the guide", "`Valve`", "thing"),
    *("substituted word", "Added in version 2.3: The new boiler.", "Be careful.", "Linux", "Run the pump.", "drain(1)"),
    *("close(valve)", "Closes the valve.", "| tea | 4 |", "[Note 1: The note itself.]", "[Picture: A picture of tea]"),
]


def test_restructured_text_is_read_as_its_page_shows_it() -> None:
    _, text = read(RST, ".rst")
    assert [phrase for phrase in RST_SHOWN if phrase not in text] == []
    for leaving in (":guilabel:", ":ref:", "local:", "maxdepth", "x_y", "linenos", "root:", "other_page", "|sub|"):
        assert leaving not in text


@pytest.mark.parametrize("text", ["", "Title\n==", ".. unknown::\n   :a:\n", "`broken", ".. |a| replace:: |a|\n\n|a|"])
def test_broken_restructured_text_is_read_without_an_error(text: str) -> None:
    read(text, ".rst")
