"""Titles and headings are searched with the text of a chunk; the passage that is returned does not change."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ragistry import Workspace, open_workspace
from ragistry.chunking.breadcrumb import LIMIT, breadcrumb, searched_text
from ragistry.library.embedding import reembed
from ragistry.library.ingest.source import ReadOptions, chunks_of
from ragistry.models.minilm import MiniLMEmbedder
from ragistry.readers.extract import extract, extract_for_attachment
from ragistry.readers.extracted import Extracted
from ragistry.testing.hashed import HashingEmbedder

PAGE = "---\ntitle: Lost words zebra\nsection: tales\n---\n\nIt rained.\n\n## Camps\n\n### Tents\n\nWe slept well.\n"


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "page.md"
    path.write_text(PAGE, encoding="utf-8")
    return path


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Workspace]:
    with open_workspace(tmp_path, chunk_size=40, chunk_overlap=0) as workspace:
        workspace.library.create_collection("notes", "Notes")
        yield workspace


@pytest.mark.parametrize("technique", ["bm25", "naive"])
def test_page_is_found_by_its_title_and_headings(opened: Workspace, page: Path, technique: str) -> None:
    opened.library.ingest_paths([page], "notes")
    opened.library.ingest_text("Quite another matter.", "other.txt", "notes")
    for query, passage in (
        ("lost words zebra", "It rained."),
        ("camps with tents", "## Camps\n\n### Tents\n\nWe slept well."),
    ):
        best = opened.search(query, technique, top_k=1).documents[0]
        assert passage in best.content
        start, end = best.metadata["start"], best.metadata["end"]
        assert extract(page).text[start:end] == best.content


def test_vector_is_that_of_the_text_below_its_breadcrumb(opened: Workspace, page: Path) -> None:
    opened.library.ingest_paths([page], "notes")
    [chunk] = opened.search("we slept", top_k=1).documents
    assert chunk.metadata["breadcrumb"] == "Lost words zebra > Camps > Tents"
    [stored] = opened.store.vectors([chunk.id])
    [made] = MiniLMEmbedder().embed([f"Lost words zebra > Camps > Tents\n{chunk.content}"])
    assert np.allclose(stored, made, atol=1e-3)


def test_switch_leaves_titles_out_and_changes_stored_chunks(tmp_path: Path, page: Path) -> None:
    for headings in (True, False):
        with open_workspace(tmp_path, index_headings=headings) as workspace:
            if headings:
                workspace.library.create_collection("notes", "Notes")
            report = workspace.library.ingest_paths([page], "notes")
            assert bool(report.added or report.updated)
            assert len(workspace.search("zebra", "bm25").documents) == headings


def test_new_title_embeds_the_text_again_and_the_old_title_finds_nothing(opened: Workspace, page: Path) -> None:
    opened.library.ingest_paths([page], "notes")
    page.write_text(PAGE.replace("zebra", "okapi"), encoding="utf-8")
    report = opened.library.ingest_paths([page], "notes")
    assert report.embedded == 2
    assert opened.search("zebra", "bm25").documents == []
    assert opened.search("okapi", "bm25").documents


def test_reembedding_keeps_the_breadcrumb(opened: Workspace, page: Path) -> None:
    opened.library.ingest_paths([page], "notes")
    reembed(opened.store, embedder := HashingEmbedder())
    assert f"Lost words zebra > Camps > Tents\n{PAGE[PAGE.index('## Camps') :].strip()}" in embedder.texts


def test_file_with_a_title_alone_is_indexed(opened: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "empty.md"
    path.write_text("---\ntitle: Lost words zebra\n---\n", encoding="utf-8")
    report = opened.library.ingest_paths([path], "notes")
    assert (report.added, report.warnings) == (["empty.md"], [])
    [found] = opened.search("zebra", "bm25").documents
    assert (found.content, found.metadata["start"], found.metadata["end"]) == ("Lost words zebra", 0, 16)


def test_attachment_has_its_front_matter(page: Path) -> None:
    assert extract_for_attachment(page)["data"] == PAGE


@pytest.mark.parametrize(
    ("metadata", "line"),
    [
        ({}, ""),
        ({"title": "Guide"}, "Guide"),
        ({"title": "Guide", "section": "Install", "heading_context": "Guide > Install"}, "Guide > Install"),
        ({"title": "  A\n b ", "section": "docs"}, "A b > docs"),
        ({"title": 3, "heading_context": ""}, ""),
        ({"title": "x" * 500}, "x" * LIMIT),
    ],
)
def test_breadcrumb(metadata: dict[str, object], line: str) -> None:
    assert breadcrumb(metadata) == line
    assert searched_text("text", {"breadcrumb": line}) == (f"{line}\ntext" if line else "text")


def test_chunks_leave_room_for_their_breadcrumb() -> None:
    embedder, text = MiniLMEmbedder(), "Plain words stand in this line. " * 400
    extracted = Extracted(text, "a.md", "markdown", metadata={"title": "Quite a long title of this page " * 4})
    chunks = chunks_of(extracted, ReadOptions(5_000, 0, fit=True), embedder)
    longest = max(embedder.count_tokens([searched_text(*chunk) for chunk in chunks]))
    assert 200 < longest <= embedder.fingerprint.max_tokens
