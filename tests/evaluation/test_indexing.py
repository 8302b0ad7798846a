"""The index of a corpus: made once, and anew where what is kept cannot be read any more."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from filelock import FileLock

from ragistry import open_workspace
from ragistry.errors import StoreLockedError
from ragistry.evaluation import indexing, read_library
from ragistry.evaluation.index_building import Chunking
from ragistry.evaluation.vectors import KeptVectors, kept
from tests.evaluation.small_sets import TOPICS, topics
from tests.evaluation.test_kept_vectors import Counting


@pytest.fixture
def vectors(tmp_path: Path) -> Iterator[KeptVectors]:
    opened = kept(Counting(), tmp_path / "vectors.db")
    yield opened
    opened.close()


def steps(vectors: KeptVectors, folder: Path) -> list[str]:
    """What opening the index had to do."""
    said: list[str] = []
    index = indexing.open_index(topics(), Chunking(), vectors, folder, progress=lambda doing, *_: said.append(doing))
    assert index.store.count() == len(TOPICS)
    index.store.close()
    return said


def test_a_document_is_in_the_collection_that_its_id_names_and_no_other(tmp_path: Path) -> None:
    with open_workspace(tmp_path) as workspace:
        for collection, source in (("a", "b/tea.md"), ("b", "tea.md")):
            workspace.library.create_collection(collection)
            workspace.library.ingest_text(f"Tea in {collection}.", source, collection)
        (tmp_path / "queries.jsonl").write_text('{"text": "tea", "sources": ["a/b/tea.md"]}\n')
        index = indexing.library_index(read_library(workspace, tmp_path / "queries.jsonl"), workspace)
        assert index.collection_of == {"a/b/tea.md": "a", "b/tea.md": "b"}


def test_an_index_is_made_once(vectors: KeptVectors, tmp_path: Path) -> None:
    assert steps(vectors, tmp_path) == ["embedding", "writing the index"]
    assert steps(vectors, tmp_path) == []


def forget_vectors(database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE vectors SET vector = zeroblob(length(vector)) WHERE key = 3")


def fill_with_ones(database: Path) -> None:
    database.write_bytes(b"SQLite format 3\0" + b"\1" * 20_000)


def of_another_version(database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("PRAGMA user_version = 99")


@pytest.mark.parametrize("damage", [Path.unlink, fill_with_ones, forget_vectors, of_another_version])
def test_an_index_that_cannot_be_opened_is_made_anew(
    vectors: KeptVectors, tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    steps(vectors, tmp_path)
    [database] = tmp_path.glob("*/store.db")
    damage(database)
    assert steps(vectors, tmp_path) == ["embedding", "writing the index"]
    assert steps(vectors, tmp_path) == []


def test_an_index_that_another_process_has_is_waited_for_and_not_made_anew(
    vectors: KeptVectors, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps(vectors, tmp_path)
    monkeypatch.setattr(indexing, "LOCK_SECONDS", 0.0)
    [database] = tmp_path.glob("*/store.db")
    with FileLock(database.with_name("lock")), pytest.raises(StoreLockedError):
        steps(vectors, tmp_path)
    assert steps(vectors, tmp_path) == []
