"""How often a search and an ingest do what takes time: each source is listed, read, counted and embedded once."""

from __future__ import annotations

from collections import Counter
from pkgutil import resolve_name
from typing import Any

import pytest

from ragistry import Workspace
from tests.conftest import Corpus

WATCHED = (
    "ragistry.config.collections.CollectionsFile.version",
    "ragistry.library.ingest.plan.list_folder",
    "ragistry.library.ingest.run.Ingest.run",
    "ragistry.readers.extract.extract",
    "ragistry.models.queries.QueryEmbedder.count_tokens",
    "ragistry.models.queries.QueryEmbedder.embed",
    "ragistry.stores.local.database.Database.read",
    "ragistry.stores.local.database.Database.write",
    "ragistry.stores.local.store.LocalStore.sources",
)


@pytest.fixture
def calls(workspace: Workspace, corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each function of `WATCHED` was called, by its last name; the library has one file and is warm."""
    workspace.library.ingest_folder(corpus({"a.md": "Drain the pump before frost."}), "notes")
    workspace.search("pump", collection="notes", technique="hybrid")
    found: Counter[str] = Counter()
    for path in WATCHED:
        name = path.rpartition(".")[2]
        monkeypatch.setattr(path, _counting(resolve_name(path), name, found))
    return found


def _counting(function: Any, name: str, found: Counter[str]) -> Any:
    def counting(*arguments: Any, **options: Any) -> Any:
        found[name] += 1
        return function(*arguments, **options)

    return counting


@pytest.mark.parametrize(("technique", "read"), [("naive", 1), ("bm25", 1), ("hybrid", 3)])
def test_search(workspace: Workspace, calls: Counter[str], technique: str, read: int) -> None:
    assert workspace.search("frost", technique=technique, collection="notes").documents
    embed = {"embed": 1} if technique != "bm25" else {}
    assert calls == {"version": 1, "read": read} | embed, "documents.yaml is looked at once"


def test_search_of_all_collections_for_a_condition(workspace: Workspace, calls: Counter[str]) -> None:
    for read in (2, 1):  # the first one asks whether the store has chunks of other collections
        calls.clear()
        assert workspace.search("frost", technique="bm25", where={"source_file": "a.md"}).documents
        assert calls == {"version": 1, "read": read}


def test_ingest_of_a_folder(workspace: Workspace, corpus: Corpus, calls: Counter[str]) -> None:
    folder = corpus({"b.md": "Close the valve at night.", "c.md": "Check the fuse."})
    report = workspace.library.ingest_paths([folder, folder / "b.md"], "notes")
    assert sorted(report.added) == ["b.md", "c.md"]
    assert {name: calls[name] for name in ("run", "extract", "count_tokens", "embed")} == {
        "run": 1,
        "extract": 2,
        "count_tokens": 2,
        "embed": 1,
    }
    assert calls["sources"] == 2, "to find vanished files, and to compare"


def test_ingest_of_unchanged_files(workspace: Workspace, corpus: Corpus, calls: Counter[str]) -> None:
    report = workspace.library.ingest_folder(corpus({}), "notes")
    assert report.skipped == ["a.md"]
    assert not {"extract", "count_tokens", "embed", "write"} & calls.keys()
    assert calls["list_folder"] == calls["run"] == 1
