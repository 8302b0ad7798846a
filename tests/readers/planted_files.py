"""Files with twenty planted phrases for each kind of content, and the place of each phrase."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from email.message import EmailMessage
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from tests.readers import placed_files
from tests.readers.office_builder import PHRASES, fill
from tests.readers.outlook_files import compound_file, outlook_folder
from tests.readers.test_office_table import CELLS, KINDS, build

Place = Callable[[int], dict[str, Any]]
"""Gives the place of a phrase by its number, as far as the format has places."""


class Planted(NamedTuple):
    suffix: str
    kind: str
    make: Callable[[], bytes]
    place: Place | None = None
    phrases: list[str] = PHRASES


def each(form: str) -> str:
    """The form for each phrase, with its number as ``{at}``."""
    return "".join(form.format(phrase=phrase, at=number) for number, phrase in enumerate(PHRASES))


def text(form: str, head: str = "", foot: str = "") -> Callable[[], bytes]:
    return lambda: f"{head}{each(form)}{foot}".encode()


def pdf(kind: str) -> bytes:
    from fpdf import FPDF

    file = FPDF()
    for number, phrase in enumerate(PHRASES):
        file.add_page()
        file.set_font("helvetica", size=12)
        file.multi_cell(0, 6, f"Page {number} has a text that says what is on it.", new_x="LMARGIN", new_y="NEXT")
        if kind == "annotations":
            file.text_annotation(20, 60, phrase)
        elif kind == "tables":
            with file.table() as table:
                for row in (("Part", "Tree"), ("Pump", phrase)):
                    table.row(row)
        else:
            file.multi_cell(0, 6, phrase, new_x="LMARGIN", new_y="NEXT")
    return bytes(file.output())


def eml(kind: str) -> bytes:
    mail = EmailMessage()
    mail["Subject"], mail["From"], mail["To"] = "Trees", "Ann <ann@example.com>", "ben@example.com"
    mail.set_content(each("{phrase}\n") if kind == "body" else "Short")
    if kind == "HTML body":
        mail.add_alternative(each("<p>{phrase}</p>"), subtype="html")
    for number, phrase in enumerate(PHRASES):
        if kind == "attachments":
            mail.add_attachment(phrase.encode(), maintype="text", subtype="plain", filename=f"file{number}.txt")
        elif kind == "inner mails":
            inner = EmailMessage()
            inner["Subject"], inner["From"] = f"Inner {number}", "Ann <ann@example.com>"
            inner.set_content(phrase)
            mail.add_attachment(inner)
    return bytes(mail)


def msg(kind: str) -> bytes:
    if kind in ("body", "HTML body"):
        body = {0x1000: each("{phrase}\n").encode()} if kind == "body" else {0x1013: each("<p>{phrase}</p>").encode()}
        return compound_file(outlook_folder({0x0037: b"Trees", **body}, {0x3FFD: 1252}))
    attached = outlook_folder({0x3707: b"file.txt", 0x3701: each("{phrase}\n").encode()}, {}, header=8)
    return compound_file(outlook_folder({0x0037: b"Trees", 0x1000: b"Short"}, {0x3FFD: 1252}, attach=attached))


def notebook(kind: str) -> bytes:
    cells: list[dict[str, Any]] = []
    for phrase in PHRASES:
        output = {"output_type": "stream", "name": "stdout", "text": phrase}
        cells.append(
            {"cell_type": "markdown", "metadata": {}, "source": phrase}
            if kind == "text cells"
            else {
                "cell_type": "code", "metadata": {}, "execution_count": 1,
                "source": f"# {phrase}" if kind == "code" else "print(tree)",
                "outputs": [output] if kind == "outputs" else [],
            }
        )  # fmt: skip
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()


def table(dialect: str) -> bytes:
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter="\t" if dialect == "tsv" else ",", quoting=csv.QUOTE_ALL)
    writer.writerows([("Part", "Tree"), *((f"Pump {number}", phrase) for number, phrase in enumerate(PHRASES))])
    return stream.getvalue().encode()


def epub() -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.epub"
        placed_files.epub(path, [1] * len(PHRASES), PHRASES)
        return path.read_bytes()


def page(number: int) -> dict[str, Any]:
    return {"page": number + 1}


def part(name: str) -> Place:
    return lambda number: {"part": name.format(number)}


def section(number: int) -> dict[str, Any]:
    return {"heading_context": f"Trees > Tree {number}"}


def line(first: int, step: int = 1) -> Place:
    return lambda number: {"line": first + step * number}


PLANTED = [
    *(Planted(".pdf", kind, lambda kind=kind: pdf(kind), page) for kind in ("pages", "tables", "annotations")),
    *(Planted(".eml", kind, lambda kind=kind: eml(kind)) for kind in ("body", "HTML body")),
    Planted(".eml", "attachments", lambda: eml("attachments"), part("file{}.txt")),
    Planted(".eml", "inner mails", lambda: eml("inner mails"), part("Inner {}")),
    *(Planted(".msg", kind, lambda kind=kind: msg(kind)) for kind in ("body", "HTML body")),
    Planted(".msg", "attachments", lambda: msg("attachments"), part("file.txt")),
    Planted(".rst", "paragraphs", text("{phrase}\n\n"), line(1, 2)),
    Planted(".rst", "sections", text("Tree {at}\n-------\n\n{phrase}\n\n", "Trees\n=====\n\n"), section),
    Planted(".rst", "lists", text("- {phrase}\n"), line(1)),
    Planted(".rst", "notes", text(".. note:: {phrase}\n\n")),
    Planted(".rst", "footnotes", text("Tree [#]_\n\n.. [#] {phrase}\n\n")),
    Planted(".rst", "captions", text(".. code-block:: sh\n   :caption: {phrase}\n\n   ls\n\n"), line(2, 5)),
    Planted(".rst", "captions of other files", text(".. literalinclude:: a.py\n   :caption: {phrase}\n\n"), line(2, 3)),
    Planted(".rst", "captions of toctrees", text(".. toctree::\n   :caption: {phrase}\n\n   a\n\n"), line(2, 5)),
    Planted(".rst", "entries of toctrees", text("   {phrase} <a/b{at}>\n", ".. toctree::\n\n   a\n"), line(4)),
    Planted(".rst", "defaults", text(".. confval:: c\n   :default: {phrase}\n\n"), line(1, 3)),
    Planted(".rst", "tables", text("   * - Pump\n     - {phrase}\n", ".. list-table::\n\n")),
    *(Planted(".ipynb", kind, lambda kind=kind: notebook(kind)) for kind in ("text cells", "code", "outputs")),
    Planted(".html", "paragraphs", text("<p>{phrase}</p>")),
    Planted(".html", "sections", text("<h2>Tree {at}</h2><p>{phrase}</p>", "<h1>Trees</h1>"), section),
    Planted(".html", "tables", text("<tr><td>Pump</td><td>{phrase}</td></tr>", "<table>", "</table>")),
    Planted(".html", "lists", text("<li>{phrase}</li>", "<ul>", "</ul>")),
    Planted(".html", "definitions", text("<dt>Pump</dt><dd>{phrase}</dd>", "<dl>", "</dl>")),
    Planted(".html", "alternative texts", text('<p>Tree <img src="a.png" alt="{phrase}"></p>')),
    Planted(".csv", "cells", lambda: table("csv"), line(2)),
    Planted(".tsv", "cells", lambda: table("tsv"), line(2)),
    Planted(".epub", "chapters", epub, lambda number: {"chapter": f"Chapter mark{number}"}),
    Planted(".md", "sections", text("## Tree {at}\n\n{phrase}\n\n", "# Trees\n\n"), section),
    Planted(".txt", "lines", text("{phrase}\n"), line(1)),
    Planted(".tex", "sections", text("\\section{{Tree {at}}}\n{phrase}\n\n"), line(2, 3)),
    Planted(".tex", "links", text("See \\href{{https://a.org/{at}}}{{{phrase}}}.\n\n"), line(1, 2)),
    Planted(".tex", "frames", text("\\begin{{frame}}[t]{{{phrase}}}\nTree\n\\end{{frame}}\n\n"), line(1, 4)),
    Planted(".tex", "blocks", text("\\begin{{block}}{{{phrase}}}\nTree\n\\end{{block}}\n\n"), line(1, 4)),
    Planted(".tex", "footnotes", text("Tree\\footnote{{{phrase}}} here.\n\n"), line(1, 2)),
    Planted(".tex", "commands", text("\\tree{{{phrase}}}\n\n", "\\newcommand{\\tree}[1]{\\emph{#1}}\n"), line(2, 2)),
    Planted(".tex", "tables", text("Pump {at} & {phrase} \\\\\n", "\\begin{tabular}{ll}\n", "\\end{tabular}"), line(2)),
    Planted(
        ".tex", "authors", text("\\author{{{phrase}}}\n", foot="\\begin{document}\nTree\n\\end{document}"), line(1)
    ),
    Planted(".org", "sections", text("* Tree {at}\n{phrase}\n"), line(2, 2)),
]
"""Kinds of content of all formats but those of office programs."""
OFFICE_PLACES: dict[str, Place] = {
    **dict.fromkeys((".pptx", ".odp"), page),
    **dict.fromkeys((".xlsx", ".ods"), lambda number: {"sheet": f"S{number + 1}"}),
}
OFFICE = [
    Planted(suffix, kind, partial(build, kind, suffix, PHRASES), OFFICE_PLACES.get(suffix))
    for kind, suffix in CELLS
    if PHRASES[0] in " ".join(fill(KINDS[kind][0], 1, PHRASES[0]).split())
]
"""Kinds of content of office formats, without those that part or change the phrase."""
