"""Vectors that are kept: computed once, charged every time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from ragistry import trace
from ragistry.errors import EmbeddingGenerationError
from ragistry.evaluation.charges import charged
from ragistry.evaluation.vectors import TEXTS_AT_ONCE, KeptVectors, kept
from ragistry.testing.hashed import count_tokens, hashed_embedding
from ragistry.types import EmbedderFingerprint, Role


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


def test_a_text_is_embedded_once_for_each_role(vectors: KeptVectors) -> None:
    first = vectors.embed(["one", "two", "one"])
    again = vectors.embed(["two", "one"])
    np.testing.assert_array_equal(first[[1, 0]], again)
    assert not np.array_equal(vectors.embed(["one"], role="query")[0], first[0])
    assert vectors.embedder.asked == ["warm up", "one", "two", "one"]


def test_no_texts_give_no_rows(vectors: KeptVectors) -> None:
    assert vectors.embed([]).shape == (0, 16)


def test_another_model_has_vectors_of_its_own(vectors: KeptVectors, tmp_path: Path) -> None:
    vectors.embed(["one"])
    other = Counting()
    other.fingerprint = EmbedderFingerprint("test", "other", "", 16)
    with closing(kept(other, tmp_path / "vectors.db")) as vectors_of_other:
        vectors_of_other.embed(["one"])
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


def charge(vectors: KeptVectors, *queries: str) -> tuple[float, int, int]:
    """Milliseconds, model calls and tokens that a retrieval is charged."""
    vectors.begin()
    with trace.collect() as collected, trace.stage("embed"):
        for query in queries:
            vectors.embed([query], role="query")
    stages = collected.stages()
    return stages[0].ms + charged(stages), sum(s.model_calls for s in stages), sum(s.tokens for s in stages)


def test_every_retrieval_is_charged_as_if_it_embedded(vectors: KeptVectors) -> None:
    first, second = charge(vectors, "how hot is tea"), charge(vectors, "how hot is tea")
    seconds, tokens = vectors.cost(["how hot is tea"], role="query")
    assert first[1:] == second[1:] == (1, round(tokens))
    assert first[0] == pytest.approx(seconds * 1000, abs=1)
    assert second[0] == pytest.approx(seconds * 1000, abs=1)


def test_a_second_look_within_a_retrieval_is_free(vectors: KeptVectors) -> None:
    assert charge(vectors, "tea", "tea")[1:] == charge(vectors, "tea")[1:]
