"""The index of a corpus and its vectors: made once, charged every time, and made anew where they are damaged."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock

from ragistry import trace
from ragistry.errors import EmbeddingGenerationError, EvaluationError, StoreLockedError
from ragistry.evaluation.systems import index
from ragistry.evaluation.systems.index import CARD, Chunking, Corpus, open_index
from ragistry.evaluation.systems.vectors import CHARGED_CPU, TEXTS_AT_ONCE, KeptVectors, charged, kept
from ragistry.testing.hashed import count_tokens, hashed_embedding
from ragistry.types import EmbedderFingerprint, Role
from tests.evaluation.small_sets import TOPICS, topics


class Counting:
    """Embeds by hashing, and notes what it was asked."""

    fingerprint = EmbedderFingerprint("test", "hashed", "", 16)

    def __init__(self, breaks_at: str = "") -> None:
        self.asked: list[str] = []
        self.breaks_at = breaks_at

    def embed(self, texts: Sequence[str], *, role: Role = "document") -> np.ndarray:
        if self.breaks_at in texts:
            raise EmbeddingGenerationError("the server went away")
        self.asked += texts
        trace.model_call(tokens=sum(map(count_tokens, texts)))
        return np.array([hashed_embedding(f"{role} {text}", 16) for text in texts], dtype=np.float32)


@pytest.fixture
def vectors(tmp_path: Path) -> Iterator[KeptVectors]:
    opened = kept(Counting(), tmp_path / "vectors.db")
    yield opened
    opened.close()


def steps(vectors: KeptVectors | None, folder: Path) -> list[str]:
    """What opening the index had to do."""
    said: list[str] = []
    found, store = open_index(Corpus(topics(), Chunking(), vectors), folder, lambda doing, *_: said.append(doing))
    assert found.store.count() == len(TOPICS)
    store.close()
    return list(dict.fromkeys(said))


def test_an_index_is_made_once_with_and_without_vectors(vectors: KeptVectors, tmp_path: Path) -> None:
    assert steps(vectors, tmp_path) == ["embedding", "writing the index"]
    assert steps(None, tmp_path) == ["writing the index"]
    assert steps(vectors, tmp_path) == steps(None, tmp_path) == []


def forget_vectors(home: Path) -> None:
    with closing(sqlite3.connect(home / "store.db")) as connection, connection:
        connection.execute("UPDATE vectors SET vector = zeroblob(length(vector)) WHERE key = 3")


def of_another_version(home: Path) -> None:
    with closing(sqlite3.connect(home / "store.db")) as connection, connection:
        connection.execute("PRAGMA user_version = 99")


@pytest.mark.parametrize(
    "damage",
    [
        lambda home: (home / "store.db").unlink(),
        lambda home: (home / CARD).unlink(),
        lambda home: (home / "store.db").write_bytes(b"SQLite format 3\0" + b"\1" * 20_000),
        forget_vectors,
        of_another_version,
    ],
)
def test_a_damaged_index_is_made_anew(vectors: KeptVectors, tmp_path: Path, damage: Callable[[Path], object]) -> None:
    steps(vectors, tmp_path)
    [card] = tmp_path.glob(f"*/{CARD}")
    damage(card.parent)
    assert steps(vectors, tmp_path) == ["embedding", "writing the index"]
    assert steps(vectors, tmp_path) == []


def test_an_index_that_another_process_holds_is_waited_for(
    vectors: KeptVectors, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps(vectors, tmp_path)
    monkeypatch.setattr(index, "LOCK_SECONDS", 0.0)
    [database] = tmp_path.glob("*/store.db")
    with FileLock(database.with_name("lock")), pytest.raises(StoreLockedError):
        steps(vectors, tmp_path)
    assert steps(vectors, tmp_path) == []


def test_a_text_is_embedded_once_for_each_role_and_model(vectors: KeptVectors, tmp_path: Path) -> None:
    found = vectors.embed(["one", "two", "one"])
    np.testing.assert_array_equal(found[[1, 0]], vectors.embed(["two", "one"]))
    assert not np.array_equal(vectors.embed(["one"], role="query")[0], found[0])
    assert vectors.embedder.asked == ["warm up", "one", "two", "one"]
    assert vectors.embed([]).shape == (0, 16)
    other = Counting()
    other.fingerprint = EmbedderFingerprint("test", "other", "", 16)
    with closing(kept(other, tmp_path / "vectors.db")) as of_other:
        of_other.embed(["one"])
    assert other.asked == ["warm up", "one"]


def test_what_was_embedded_before_a_failure_is_kept(tmp_path: Path) -> None:
    texts = [f"text {number}" for number in range(2 * TEXTS_AT_ONCE)]
    with (
        closing(kept(Counting(breaks_at=texts[-1]), tmp_path / "vectors.db")) as first,
        pytest.raises(EmbeddingGenerationError),
    ):
        first.embed(texts)
    with closing(kept(Counting(), tmp_path / "vectors.db")) as second:
        second.embed(texts)
    assert second.embedder.asked == ["warm up", *texts[TEXTS_AT_ONCE:]]


def test_damaged_vectors_are_told_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "vectors.db").write_bytes(b"no database" * 100)
    with pytest.raises(EvaluationError, match="the vectors in .* are damaged: .*; delete that file"):
        kept(Counting(), tmp_path / "vectors.db")


def charge(vectors: KeptVectors, *queries: str) -> tuple[float, float, int, int]:
    """Milliseconds of wall and CPU time, model calls and tokens that a retrieval is charged."""
    vectors.begin()
    with trace.collect() as collected, trace.stage("embed"):
        for query in queries:
            vectors.embed([query], role="query")
    stages = collected.stages()
    calls, tokens = sum(s.model_calls for s in stages), sum(s.tokens for s in stages)
    return stages[0].ms + charged(stages), charged(stages, CHARGED_CPU), calls, tokens


def test_every_retrieval_is_charged_as_if_it_embedded(vectors: KeptVectors) -> None:
    first, second = charge(vectors, "how hot is tea"), charge(vectors, "how hot is tea", "how hot is tea")
    seconds, tokens = vectors.cost(["how hot is tea"], role="query")
    assert first[2:] == second[2:] == (1, round(tokens))
    assert first[0] == pytest.approx(seconds * 1000, abs=1)
    assert second[0] == pytest.approx(seconds * 1000, abs=1)
