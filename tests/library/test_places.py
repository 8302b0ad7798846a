"""Each way to search names the place of the line that answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pypdf import PdfReader, PdfWriter

from ragistry import Workspace
from ragistry.presentation import excerpt_line, excerpt_of, place_of
from ragistry.presentation.hits import spot_of
from ragistry.tools.search_library import SearchLibraryTool
from ragistry.types import Document
from tests.cli.conftest import ragistry  # noqa: F401, the fixture
from tests.conftest import everywhere
from tests.readers import placed_files

COUNTS = [1, 0, 12, 3, 1]


def best(workspace: Workspace, query: str) -> tuple[Document, dict[str, Any]]:
    [found] = workspace.search(query, "bm25", "notes", top_k=1).documents
    return found, place_of(found, query)


@everywhere
@pytest.mark.parametrize("kind", ["pdf", "pptx"])
def test_a_condition_on_a_page_finds_every_chunk_of_it(workspace: Workspace, tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"a.{kind}"
    placed_files.MAKERS[kind](path, COUNTS)
    workspace.library.ingest_file(path, "notes")
    every = workspace.search("sentence note slide", "naive", top_k=100).documents
    for page in range(1, len(COUNTS) + 1):
        found = workspace.search("sentence note slide", "naive", top_k=100, where={"page": page}).documents
        marks = {mark for one in found for mark in placed_files.MARK.findall(one.content)}
        assert marks == ({str(page - 1)} if COUNTS[page - 1] or kind == "pptx" else set())
        assert {one.id for one in found} == {one.id for one in every if f"mark{page - 1}" in one.content}
        assert all(place_of(one, "sentence")["page"] == page for one in found)


def test_every_door_names_the_same_place(
    workspace: Workspace,
    tmp_path: Path,
    ragistry: Callable[..., Any],  # noqa: F811
) -> None:
    path = tmp_path / "guide.md"
    path.write_text("# Guide\n\n## Tea\n\nSteep it.\n\n## Coffee\n\nBrew the\nfilter coffee.\n", encoding="utf-8")
    workspace.library.ingest_file(path, "notes")
    found, place = best(workspace, "filter coffee")
    assert place == {"heading_context": "Guide > Coffee", "section": "Coffee", "line": 10}
    assert found.metadata["section"] == "Tea", "where the chunk begins"
    root = workspace.root
    [printed] = ragistry("search", "filter coffee", "-t", "bm25", "--json", "--workspace", root).json["documents"]
    assert printed["place"] == place
    assert "Coffee · line 10" in ragistry("search", "filter coffee", "-t", "bm25", "--workspace", root).out
    tool = SearchLibraryTool(workspace.library, technique="bm25")
    assert "1. guide.md (Guide > Coffee, line 10, chunk 0)" in tool.handle({"query": "filter coffee"})


@pytest.mark.parametrize("kind", placed_files.MAKERS)
def test_a_search_names_the_place_of_each_mark_of_every_format(workspace: Workspace, tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"a.{kind}"
    places = placed_files.MAKERS[kind](path, COUNTS)
    workspace.library.ingest_file(path, "notes")
    for number in (0, 2, 3, 4):
        query = f"sentence of mark{number}"
        found, place = best(workspace, query)
        assert places[number].items() <= place.items()
        assert f"mark{number}" in excerpt_line(excerpt_of(found, query, "english", 300))


def test_places_of_turned_pages_and_of_tables_from_right_to_left(workspace: Workspace, tmp_path: Path) -> None:
    from docx import Document as Docx

    placed_files.pdf(tmp_path / "plain.pdf", [3, 3])
    turned = PdfWriter()
    for angle, page in zip((90, 270), PdfReader(tmp_path / "plain.pdf").pages, strict=True):
        turned.add_page(page.rotate(angle))
    turned.write(tmp_path / "turned.pdf")
    (tmp_path / "plain.pdf").unlink()
    table = Docx()
    for heading, rows in (("Erstes", [("نص", "قيمة")]), ("Zweites", [("عنوان", "المكتبة الوطنية"), ("שנה", "חמש")])):
        table.add_heading(heading, 1)
        cells = table.add_table(0, 2)
        for row in rows:
            for cell, text in zip(cells.add_row().cells, row, strict=True):
                cell.text = text
    table.save(str(tmp_path / "table.docx"))
    workspace.library.ingest_folder(tmp_path, "notes")
    for query, spot in (("mark1 sentence 2 turned", "p. 2"), ("المكتبة", "Zweites"), ("חמש", "Zweites")):
        found, place = best(workspace, query)
        assert spot_of(found, place) == spot
