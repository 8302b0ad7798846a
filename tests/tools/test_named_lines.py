"""Every line that a tool names is the line that `read` shows there, for sources of any format and length."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from email.message import EmailMessage
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ragistry import Workspace, open_workspace
from ragistry.library.why import explain
from ragistry.presentation import place_of
from ragistry.readers.extract import extract
from ragistry.tools.grep import GrepRequest, grep
from ragistry.tools.outline import OutlineRequest, outline, split
from ragistry.tools.reach import Reach
from ragistry.tools.read import ReadRequest, SourceLine, read
from ragistry.types import SearchRequest
from ragistry.utils.quoting import visible_line
from tests.readers import placed_files
from tests.readers.office_builder import frame, odf_file

HASHED = "ragistry.testing.hashed:HashingEmbedder"
MARKED = re.compile(r"Sentence \d+ of mark\d+\b")
Write = Callable[[Path, Sequence[Sequence[str]]], object]


def of_text(form: str, between: str = "\n", head: str = "") -> Write:
    """Write sections, each with its lines in place of ``{}``."""

    def write(path: Path, sections: Sequence[Sequence[str]]) -> None:
        texts = (head.format(at) + "\n".join(map(form.format, lines)) for at, lines in enumerate(sections))
        path.write_text(between.join(texts), encoding="utf-8")

    return write


def of_odf(kind: str, page: str, line: str) -> Write:
    def write(path: Path, sections: Sequence[Sequence[str]]) -> None:
        parts = [page.format(at, "".join(map(line.format, lines))) for at, lines in enumerate(sections)]
        path.write_bytes(odf_file(kind, "".join(parts)))

    return write


def notebook(path: Path, sections: Sequence[Sequence[str]]) -> None:
    cells = [{"cell_type": "markdown", "metadata": {}, "source": "\n".join(["# Cell", *one])} for one in sections]
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))


def mail(path: Path, sections: Sequence[Sequence[str]]) -> None:
    message = EmailMessage()
    message["Subject"], message["From"], message["To"] = "Marks", "a@example.org", "b@example.org"
    message.set_content("\n".join(sections[0]))
    for at, lines in enumerate(sections[1:]):
        message.add_attachment("\n".join(lines).encode(), maintype="text", subtype="plain", filename=f"part{at}.txt")
    path.write_bytes(bytes(message))


WRITERS: dict[str, Write] = {
    "txt": of_text("{}", "\n\n\n"),
    "py": of_text("        note = '{}'", "\n\n\n", "def function{}():\n"),
    "csv": of_text("{},7"),
    "html": of_text("<p>{}</p>", head="<h2>Part {}</h2>\n"),
    "ipynb": notebook,
    "eml": mail,
    "odt": of_odf("text", '<text:h text:outline-level="1">Part {}</text:h>{}', "<text:p>{}</text:p>"),
    "ods": of_odf(
        "spreadsheet",
        '<table:table table:name="Sheet {}">{}</table:table>',
        "<table:table-row><table:table-cell><text:p>{}</text:p></table:table-cell>"
        "<table:table-cell><text:p>7</text:p></table:table-cell></table:table-row>",
    ),
    "odp": of_odf(
        "presentation", f"<draw:page>{frame('Slide {}', 'title')}"
        "<draw:frame><draw:text-box>{}</draw:text-box></draw:frame></draw:page>", "<text:p>{}</text:p>",
    ),
}  # fmt: skip


def true_lines(path: Path) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Yield the lines with words of a file, each with its page, sheet, chapter or part and its line in the file."""
    extracted, offset = extract(path), 0
    starts = [start for start, _ in extracted.places]
    for number, text in enumerate(extracted.text.split("\n"), 1):
        place: dict[str, Any] = {}
        if at := bisect_right(starts, offset):
            here = extracted.places[at - 1][1]
            place = {"page": here.page, "sheet": here.sheet, "part": here.part, "chapter": here.chapter}
        if extracted.line_numbers:
            place["line"] = extracted.line_numbers[number - 1]
        offset += len(text) + 1
        if text.strip():
            yield number, text, {key: value for key, value in place.items() if value}


def lines_read(reach: Reach, name: str) -> Iterator[SourceLine]:
    """Yield all lines of a source, each with its whole place."""
    line: int | None = 1
    place: dict[str, Any] = {}
    while line is not None:
        found = read(reach, ReadRequest(name, line=line, lines=10_000, max_tokens=50_000))
        for one in found.lines:
            place = dict(one.place) or place
            yield SourceLine(one.line, one.text, place)
        line = found.next_line


@pytest.mark.parametrize("kind", [*placed_files.MAKERS, *WRITERS])
@pytest.mark.parametrize(
    ("counts", "size"),
    [
        ([1], 500),
        ([2, 0, 12, 1, 30, 3, 1, 1, 20, 2, 5, 9], 200),
        pytest.param([4, 60, 300, 1, 90, 2, 300, 3] * 3, 60, marks=pytest.mark.slow),
    ],
    ids=["one chunk", "many chunks", "two thousand chunks"],
)
def test_every_line_that_is_named_is_the_line_that_is_read(
    counts: list[int], size: int, kind: str, tmp_path: Path
) -> None:
    path = tmp_path / f"a.{kind}"
    if kind in WRITERS:
        WRITERS[kind](path, [placed_files.words_of(place, count) for place, count in enumerate(counts)])
    else:
        placed_files.MAKERS[kind](path, counts)
    with open_workspace(tmp_path, embed_model=HASHED, chunk_size=size, chunk_overlap=size // 8) as workspace:
        workspace.library.create_collection("files")
        before, _ = split(workspace, str(path), None)
        workspace.library.ingest_file(path, "files")
        check_lines(workspace, path.name, [*true_lines(path)])
        after, text = split(workspace, path.name, "files")
        assert (split(workspace, str(path), None)[0], after["chunks"]) == (after, before["chunks"])
        assert text.count("\n     + ") == sum(len(one["searched_with"]) for one in after["chunks"])
        shown = {one.line: one for one in lines_read(Reach(workspace.library), path.name)}
        for one in after["chunks"]:
            lines = [shown[line].text for line in range(one["line"], one["last_line"] + 1)]
            own = one["text"].split("\n")
            assert all(
                visible_line(part, 10_000) in visible_line(line, 10_000) for part, line in zip(own, lines, strict=True)
            )
            assert one["place"] == shown[one["line"]].place, one


def check_lines(workspace: Workspace, name: str, true: list[tuple[int, str, dict[str, Any]]]) -> None:
    reach = Reach(workspace.library)
    shown = {one.line: one for one in lines_read(reach, name)}
    for number, text, place in true:
        assert shown[number].text.strip() == text.strip(), (name, number)
        assert place.items() <= shown[number].place.items(), (name, number)

    listed = outline(reach, OutlineRequest(name, max_tokens=50_000))
    assert listed.next_line is None
    begun, last = list[tuple[int, str, str]](), dict[str, Any]()
    for number, _, place in true:
        kinds = [kind for kind in ("part", "chapter", "sheet", "page") if place.get(kind) not in (None, last.get(kind))]
        begun += [(number, kind, str(place[kind])) for kind in kinds]
        last = place
    assert [(one.line, one.kind, one.title) for one in listed.entries if one.kind != "heading"] == begun, name
    for one in listed.entries:
        if one.kind == "heading":
            assert one.title in shown[one.line].text, name
        else:
            title = int(one.title) if one.kind == "page" else one.title
            [first] = read(reach, ReadRequest(name, place={one.kind: title}, lines=1)).lines
            assert first.line in [line for line, kind, title in begun if (kind, title) == (one.kind, one.title)], name

    marked = [(number, found[0], place) for number, text, place in true if (found := MARKED.search(text))]
    for number, text, place in Random(7).sample(marked, min(len(marked), 8)):
        [source] = grep(reach, GrepRequest(text, source=name, max_tokens=50_000)).sources
        assert number in [one.line for one in source.lines], (name, number)
        for one in source.lines:
            assert (one.text, one.place) == (shown[one.line].text, shown[one.line].place), (name, number)
        [best] = workspace.search(f'"{text}"', "bm25", top_k=1, where={"source_file": name}).documents
        if answering := place_of(best, text):
            assert place.items() - {("line", place.get("line"))} <= answering.items(), (name, number)
            begun_there = read(reach, ReadRequest(name, place=answering, lines=3)).lines
            assert "line" not in answering or any(text in one.text for one in begun_there), (name, number)
        if "line" in place:
            told = explain(workspace.library, SearchRequest(text, technique="bm25"), f"{name}:line {place['line']}")
            assert told.cause == "found", (name, number)
