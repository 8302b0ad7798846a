"""Web pages, notebooks and reStructuredText as their readers see them."""

from __future__ import annotations

import json
import re
import unicodedata
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import pytest

from ragistry.readers.blocks import ReadDocument
from ragistry.readers.by_format import read_document
from ragistry.readers.extract import extract
from ragistry.readers.formats import FORMATS


def read(text: str | bytes, suffix: str) -> tuple[ReadDocument, str]:
    data = text.encode() if isinstance(text, str) else text
    document = read_document(data, f"x{suffix}", lambda _: ReadDocument(), {})
    return document, "\n\n".join(block.text for block in document.blocks)


SHOWN = [
    ("<h2>Top <em>x</em></h2><p>a</p>", "## Top *x*\n\na"),
    (
        "<p>a <b> b </b>c<br>d <a href='http://e.org'>link</a> <a href='#top'>up</a>",
        "a **b** c\nd [link](http://e.org) up",
    ),
    ("<ul><li>a<li>b<ol start=3><li>c<li>d</ol></ul>", "- a\n- b\n  3. c\n  4. d"),
    ("<blockquote>a</blockquote><dl><dt>Term<dd>Meaning</dl>", "> a\n\nTerm\nMeaning"),
    ("<pre><code class='language-sh'>ls |\n  wc</code></pre>", "```sh\nls |\n  wc\n```"),
    (
        "<table><tr><th>A<th>B<tr><td rowspan=2>1<td>2|3<tr><td>4</table>",
        "| A | B |\n| --- | --- |\n| 1 | 2\\|3 |\n|  | 4 |",
    ),
    ("<table><tr><td><h3>Menu</h3>a<td>b</table>", "### Menu\n\na\n\nb"),
    (
        "<img src=x alt='A cat'> <abbr title='World Health'>WHO</abbr> <q>so</q>",
        "[Picture: A cat] WHO (World Health) “so”",
    ),
    ("<select><option>One<option selected>Two</select> <textarea>area</textarea>", "One; ☒ Two area"),
    ("<input value=Zoe> <input type=checkbox checked> yes <input type=hidden value=no>", "Zoe ☒ yes"),
    ("<datalist><option value=Blue><option value=Red></datalist>", "Blue; Red"),
    ("<nav><a href='/a'>Home</a> <a href='/b'>About</a></nav><button>Go</button>", "[Home](/a) [About](/b)\n\nGo"),
    ("<svg><title>Plan</title><text>Valve</text></svg> <ruby>漢<rp>(<rt>kan<rp>)</ruby>", "Plan Valve 漢(kan)"),
    ("<p># no heading<br>---", "\\# no heading\n\\---"),
    ("<script>no()</script><style>no</style><template>no</template><p>yes", "yes"),
    ("<head><title>no</title><meta name='author' content='no'></head><body><p>yes</body>", "yes"),
    ("text <p>more <b>bold", "text\n\nmore **bold**"),
    ("<p>10<sup>6</sup> cells, H<sub>2</sub>O, the 4<sup>th</sup> x<sup>2a</sup>", "10⁶ cells, H₂O, the 4th x^(2a)"),
    ("<math alttext='E=mc^2'><mi>E</mi><mo>=</mo></math>", "E=mc^2"),
    ("<p><math><mi>a</mi><mo>+</mo><mi>b</mi></math> end", "a + b end"),
]


@pytest.mark.parametrize(("page", "expected"), SHOWN)
def test_page_is_read_as_a_browser_shows_it(page: str, expected: str) -> None:
    document, text = read(page, ".html")
    assert (text, document.lost, document.warnings) == (expected, {}, [])


@pytest.mark.parametrize("mark", ["hidden", "style='display: none'", "style='color:red;visibility:hidden'"])
def test_words_of_hidden_elements_are_counted_as_such(mark: str) -> None:
    document, text = read(f"<p>a<div {mark}>three hidden <b>words</b></div>b", ".html")
    assert (text, document.lost) == ("a\n\nb", {"hidden elements": 3})


@pytest.mark.parametrize("unit", ["<b>", "<div></p>", "<table><tr><td>", "<ul><li>", "<blockquote>", "<sup>a"])
def test_page_with_too_many_open_elements_keeps_its_words(unit: str) -> None:
    document, text = read(unit * 3_000 + "cedar &amp; pine<script>no</script>", ".html")
    assert "cedar & pine" in text
    assert "no" not in text.split()
    assert len(document.warnings) == 1


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
    assert read(json.dumps({"worksheets": [{"cells": cells}], "nbformat": 3}), ".ipynb")[1] == text
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


@pytest.mark.parametrize(
    ("definitions", "expected"),
    [
        (".. |m| replace:: A |br| B\n\n.. |br| raw:: html\n\n   <br>", "first A B zebra"),
        (".. |m| replace:: A |unknown| B", "first A |unknown| B zebra"),
        (".. |m| replace:: A |Dash| B\n.. |dash| unicode:: U+2014", "first A — B zebra"),
        (".. |m| replace:: |n|\n.. |n| replace:: |m|", "first |n| zebra"),
        (".. |m| replace:: A |i| B\n.. |i| index:: pair: a; b", "first A B zebra"),
    ],
)
def test_substitution_within_a_substitution_is_read(definitions: str, expected: str) -> None:
    document, text = read(f"first |m| zebra\n\n{definitions}\n", ".rst")
    assert (text, document.warnings) == (expected, [])


MARKUP = [suffix for suffix, known in FORMATS.items() if known.place == "worker" and known.text != "-"]
ERRORS = (
    KeyError("br"),
    RecursionError(),
    TypeError("'NoneType' object is not"),
    ValueError("f() failed"),
    OSError(5, "x"),
)


@pytest.mark.parametrize(
    ("suffix", "error"),
    [*((suffix, ERRORS[0]) for suffix in MARKUP), *((".rst", error) for error in ERRORS[1:])],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_text_whose_markup_cannot_be_read_is_plain_text(
    suffix: str, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(data: bytes, suffix: str) -> ReadDocument:
        raise error

    monkeypatch.setattr(f"ragistry.readers.{FORMATS[suffix].module}.read", fail)
    document, text = read("Zebra |br| <b>x</b>", suffix)
    assert text == "Zebra |br| <b>x</b>"
    [warning] = document.warnings
    assert "plain text" in warning
    assert not re.search(r"Error|NoneType|'br'|\(\)", warning)


@pytest.mark.parametrize("text", ['{"cells": [', '{"cells": 4}', "[]", "plain zebra", '{"cells": [{"source": 1}]}'])
def test_broken_notebook_is_plain_text(text: str) -> None:
    document, found = read(text, ".ipynb")
    assert (found, len(document.warnings)) == (text, 1)


@pytest.mark.parametrize("half", ["\\ud83d", "\\udc00 and \\ud83d", "\\ud83dx"])
def test_half_of_a_surrogate_pair_in_a_notebook_is_replaced(half: str, tmp_path: Path) -> None:
    path = tmp_path / "a.ipynb"
    cell = '{"cell_type": "markdown", "source": "zebra HALF end"}'.replace("HALF", half)
    path.write_text(f'{{"cells": [{cell}]}}', encoding="utf-8")
    text = extract(path).text
    assert text.encode().decode().startswith("zebra \ufffd")
    assert text.endswith(" end")


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("text/part one.xhtml", "text/part%20one.xhtml"),
        ("text/part one.xhtml", "text/part one.xhtml"),
        ("text/part%20one.xhtml", "text/part%20one.xhtml"),
        ("text/Größe.xhtml", unicodedata.normalize("NFD", "text/Größe.xhtml")),
        (unicodedata.normalize("NFD", "text/Größe.xhtml"), "text/Gr%C3%B6%C3%9Fe.xhtml"),
        ("text/a.xhtml", "text\\a.xhtml"),
        ("text\\a.xhtml", "./text/../text/A.xhtml#top"),
        ("text/100%.xhtml", "text/100%25.xhtml"),
    ],
)
def test_part_of_a_book_is_found_however_its_address_is_written(name: str, address: str) -> None:
    entries = f'<item id="a" href="{address}" media-type="application/xhtml+xml"/>'
    book = (
        f'<package xmlns="http://www.idpf.org/2007/opf"><metadata/><manifest>{entries}'
        '<item id="n" href="toc.ncx" media-type="application/x-dtbncx+xml"/></manifest>'
        '<spine><itemref idref="a"/></spine></package>'
    )
    toc = f"<ncx><navPoint><navLabel><text>First</text></navLabel><content src='{address}'/></navPoint></ncx>"
    container = '<container><rootfiles><rootfile full-path="ops%20x/book.opf"/></rootfiles></container>'
    parts = {
        "META-INF/container.xml": container,
        "ops x/book.opf": book,
        "ops x/toc.ncx": toc,
        f"ops x/{name}": "<p>Zebra",
    }
    data = BytesIO()
    with ZipFile(data, "w") as archive:
        for part, content in parts.items():
            archive.writestr(part, content)
    document, text = read(data.getvalue(), ".epub")
    assert (text, document.warnings) == ("Zebra", [])
    assert document.blocks[0].place.chapter == "First"
