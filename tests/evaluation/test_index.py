"""The index of a corpus: made once, and made anew where it is damaged."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from ragistry.evaluation.systems.index import CARD, Chunking, Corpus, open_index
from ragistry.evaluation.systems.vectors import KeptVectors, kept
from ragistry.testing.hashed import HashingEmbedder
from tests.evaluation.small_sets import TOPICS, topics


@pytest.fixture
def vectors(tmp_path: Path) -> KeptVectors:
    return kept(HashingEmbedder(16), tmp_path / "vectors.db")


def steps(vectors: KeptVectors | None, folder: Path) -> list[str]:
    """What opening the index had to do."""
    done: list[str] = []
    found, store = open_index(Corpus(topics(), Chunking(), vectors), folder, lambda doing, *_: done.append(doing))
    assert found.store.count() == len(TOPICS)
    store.close()
    return list(dict.fromkeys(done))


def test_index_is_made_once_with_and_without_vectors(vectors, tmp_path):
    assert steps(vectors, tmp_path) == ["embedding", "writing the index"]
    assert steps(None, tmp_path) == ["writing the index"]
    assert steps(vectors, tmp_path) == steps(None, tmp_path) == []


def with_sql(statement: str) -> Callable[[Path], None]:
    def damage(home: Path) -> None:
        with closing(sqlite3.connect(home / "store.db")) as connection, connection:
            connection.execute(statement)

    return damage


@pytest.mark.parametrize(
    "damage",
    [
        lambda home: (home / "store.db").unlink(),
        lambda home: (home / CARD).unlink(),
        lambda home: (home / "store.db").write_bytes(b"SQLite format 3\0" + b"\1" * 20_000),
        with_sql("UPDATE vectors SET vector = zeroblob(length(vector)) WHERE key = 3"),
        with_sql("PRAGMA user_version = 99"),
    ],
)
def test_damaged_index_is_made_anew(vectors, tmp_path, damage):
    steps(vectors, tmp_path)
    [card] = tmp_path.glob(f"*/{CARD}")
    damage(card.parent)
    assert steps(vectors, tmp_path) == ["embedding", "writing the index"]
    assert steps(vectors, tmp_path) == []
