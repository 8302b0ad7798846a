"""Names of files in composed and decomposed Unicode are one name."""

from __future__ import annotations

import json
from pathlib import Path
from unicodedata import normalize

import pytest

from ragistry import RemoteWorkspace, Workspace
from ragistry.errors import SourceNotFoundError
from ragistry.evaluation import read_library
from ragistry.testing.techniques import same_answer
from tests.conftest import Corpus, everywhere
from tests.library.shelf import Shelf, step

NAMES = ["Zürich.txt", "한국어.txt", "Việt Nam.txt", "がぎ.txt"]


def forms(name: str) -> tuple[str, str]:
    return normalize("NFC", name), normalize("NFD", name)


@everywhere
def test_conditions_and_commands_know_both_forms(workspace: Workspace | RemoteWorkspace, corpus: Corpus) -> None:
    library = workspace.library
    library.ingest_paths(
        [corpus({forms(name)[number % 2]: f"Text {number}" for number, name in enumerate(NAMES)})], "notes"
    )
    on_disk = {forms(name)[number % 2] for number, name in enumerate(NAMES)}
    assert set(library.list_sources("notes")) == on_disk
    for name in NAMES:
        for form in forms(name):
            [found] = workspace.search("text", where={"source_file": form}).documents
            assert found.metadata["source_file"] in on_disk & {*forms(name)}
            assert same_answer(workspace.search("text", where={"source_file": {"$in": [form]}}).documents, [found])
            others = workspace.search("text", where={"source_file": {"$ne": form}}).documents
            assert len(others) == len(workspace.search("text", where={"source_file": {"$nin": [form]}}).documents) == 3
    composed, decomposed = forms(NAMES[1])
    assert library.delete_source(composed, "notes") == 1
    with pytest.raises(SourceNotFoundError):
        library.delete_source(decomposed, "notes")


def test_a_source_is_found_and_judged_by_both_forms(workspace: Workspace, corpus: Corpus, tmp_path: Path) -> None:
    composed, decomposed = forms(NAMES[0])
    workspace.library.ingest_paths([corpus({decomposed: "Some text of a town"})], "notes")
    assert workspace.library.source(composed, "notes").source_file == decomposed
    queries = tmp_path / "queries.jsonl"
    lines = ({"text": "town", "sources": [name]} for name in (composed, f"notes/{composed}", decomposed))
    queries.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert [*read_library(workspace, queries).qrels.values()] == [{f"notes/{decomposed}": 1}] * 3


def test_a_file_that_comes_back_in_the_other_form_is_the_same_source(shelf: Shelf) -> None:
    composed, decomposed = forms(NAMES[0])
    shelf.play(
        step({composed: "The old text", "b.txt": "Other"}, added=["b.txt", composed]),
        step({composed: None, decomposed: "New"}, prune=True, updated=[decomposed], skipped="b.txt"),
        step({composed: "Another text"}, skipped=["b.txt", decomposed], failed=[composed]),
    )
