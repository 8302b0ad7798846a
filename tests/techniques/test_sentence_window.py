"""Hits with the chunks next to them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ragistry import Workspace, open_workspace
from ragistry.errors import InvalidConfigError
from ragistry.stores.chroma import ChromaStore
from ragistry.techniques.registry import RegisteredTechnique
from ragistry.techniques.sentence_window import SentenceWindowTechnique
from ragistry.testing.techniques import TechniqueConformance
from ragistry.types import Document
from tests.techniques.passages import GUIDE, Finds, guide, ingest, words

TECHNIQUES = """
techniques:
  naive: {use: naive}
  window: {use: "ragistry.techniques.sentence_window:SentenceWindowTechnique", base: naive, window: 2}
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChromaStore]:
    folder = tmp_path_factory.mktemp("windows")
    opened = ChromaStore(folder / "vectors")
    ingest(opened, guide(folder), 60)
    yield opened
    opened.close()


def windows(store: ChromaStore, *indexes: int, top_k: int = 10, **config: int) -> list[Document]:
    base = Finds(store, "guide.md", *indexes)
    return SentenceWindowTechnique(config, base=base, store=store).retrieve("q", top_k=top_k)


def parts(documents: list[Document]) -> list[list[int]]:
    return [document.metadata["chunk_indexes"] for document in documents]


def test_a_hit_with_one_chunk_on_each_side(store: ChromaStore) -> None:
    [document] = windows(store, 5)
    assert parts([document]) == [[4, 5, 6]]
    start, end = document.metadata["start"], document.metadata["end"]
    assert words(document.content) == words(GUIDE[start:end])
    assert "It asks for a password." in document.content


def test_the_window_is_a_setting_and_ends_with_the_source(store: ChromaStore) -> None:
    assert parts(windows(store, 5, window=0)) == [[5]]
    assert parts(windows(store, 5, window=3)) == [[2, 3, 4, 5, 6, 7, 8]]
    assert parts(windows(store, 0)) == [[0, 1]]
    assert parts(windows(store, 12, window=2)) == [[10, 11, 12]]


def test_a_hit_in_the_window_of_a_better_one_is_part_of_it(store: ChromaStore) -> None:
    documents = windows(store, 5, 6, 10, 4)
    assert parts(documents) == [[4, 5, 6], [9, 10, 11]]
    assert [document.score for document in documents] == [1.0, 0.98]


def test_windows_that_overlap_share_no_chunk(store: ChromaStore) -> None:
    assert parts(windows(store, 5, 7, 3)) == [[4, 5, 6], [7, 8], [2, 3]]


def test_overlapping_chunks_are_joined_without_repetition(tmp_path: Path) -> None:
    store = ChromaStore(tmp_path / "vectors")
    ingest(store, guide(tmp_path), 90, 30)
    [document] = windows(store, 7, window=2)
    assert parts([document]) == [[5, 6, 7, 8, 9]]
    assert words(document.content) == words(GUIDE[GUIDE.index("## Use") :])
    store.close()


def test_a_condition_holds_for_the_window_too(store: ChromaStore) -> None:
    technique = SentenceWindowTechnique({}, base=Finds(store, "guide.md", 6), store=store)
    assert parts(technique.retrieve("q", where={"section": "Windows"})) == [[6, 7]]


def test_only_so_many_as_asked_for_and_the_base_is_asked_for_more(store: ChromaStore) -> None:
    base = Finds(store, "guide.md", 5, 4, 6, 9)
    technique = SentenceWindowTechnique({"top_k": 2}, base=base, store=store)
    assert parts(technique.retrieve("q")) == [[4, 5, 6], [8, 9, 10]]
    assert base.asked == 6
    assert parts(technique.retrieve("q", top_k=1)) == [[4, 5, 6]]


def test_bad_configuration_is_refused_without_a_registry(store: ChromaStore) -> None:
    with pytest.raises(InvalidConfigError, match="SentenceWindowTechnique: window: .*got -1"):
        windows(store, 1, window=-1)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    root = tmp_path_factory.mktemp("windows-workspace")
    (root / "config").mkdir()
    (root / "config" / "techniques.yaml").write_text(TECHNIQUES, encoding="utf-8")
    with open_workspace(root, chunk_size=100, chunk_overlap=0) as opened:
        for collection in ("handbook", "garden"):
            opened.library.create_collection(collection)
            opened.library.ingest_text(GUIDE.replace("page", f"backup of the {collection}"), "guide.md", collection)
        yield opened


class TestOverRealSearches(TechniqueConformance):
    @pytest.fixture
    def technique(self, workspace: Workspace) -> RegisteredTechnique:
        return workspace.technique("window")


def test_a_search_shows_its_stages(workspace: Workspace) -> None:
    result = workspace.search("close the backup", "window", top_k=1)
    assert [stage.name for stage in result.trace] == ["window", "naive", "embed", "search", "widen"]
    assert result.trace[-1].documents_out == len(result.documents) == 1
    assert result.trace[-1].documents_in == 3
