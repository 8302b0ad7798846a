"""Queries of several threads are embedded in one call, each with the vector that it has alone."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import numpy as np
import pytest

from ragistry import trace
from ragistry.errors import EmbeddingGenerationError
from ragistry.models.minilm import FINGERPRINT, MiniLMEmbedder
from ragistry.models.queries import AT_ONCE, SHORT, QueryEmbedder
from ragistry.protocols import Embedder
from ragistry.testing.embedders import EmbedderConformance
from ragistry.types import Role

MINILM = MiniLMEmbedder()


class TestQueryEmbedder(EmbedderConformance):
    @pytest.fixture
    def embedder(self) -> Embedder:
        return QueryEmbedder(MINILM)


class Slow:
    """The embedded model, whose calls wait until they are released. It refuses what holds the word poison."""

    fingerprint = FINGERPRINT

    def __init__(self) -> None:
        self.release = Event()
        self.calls: list[list[str]] = []

    def embed(self, texts: Sequence[str], *, role: Role = "document") -> Any:
        self.calls.append(list(texts))
        assert self.release.wait(30)
        if any("poison" in text for text in texts):
            raise EmbeddingGenerationError("no poison")
        return MINILM.embed(texts, role=role)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return MINILM.count_tokens(texts)


def ask_together(texts: list[str]) -> tuple[Slow, list[Any], list[int]]:
    """What threads get that ask at the same time, the calls of the model, and how many tokens each one's trace has."""
    slow = Slow()
    batched, tokens = QueryEmbedder(slow), [0] * len(texts)

    def ask(place: int) -> Any:
        with trace.collect() as found, trace.stage("ask"):
            try:
                return batched.embed([texts[place]], role="query")
            except EmbeddingGenerationError as error:
                return error
            finally:
                [stage] = found.stages()
                tokens[place] = stage.tokens

    with ThreadPoolExecutor(len(texts)) as threads:
        waiting = [threads.submit(ask, place) for place in range(len(texts))]
        while len(batched._waiting) + len(slow.calls) < len(texts):
            pass
        slow.release.set()
        return slow, [one.result(30) for one in waiting], tokens


def test_queries_that_wait_are_embedded_in_one_call() -> None:
    texts = [f"query number {number} about tea" for number in range(12)]
    slow, rows, tokens = ask_together(texts)
    assert len(slow.calls) <= AT_ONCE + 2
    assert sorted(text for call in slow.calls for text in call) == sorted(texts)
    for text, row in zip(texts, rows, strict=True):
        np.testing.assert_allclose(row, MINILM.embed([text], role="query"), atol=1e-5)
    assert tokens == MINILM.count_tokens(texts)


def test_a_query_that_the_model_refuses_spoils_no_other() -> None:
    texts = [f"query {number}" for number in range(8)] + ["poison"]
    _, rows, _ = ask_together(texts)
    assert isinstance(rows.pop(), EmbeddingGenerationError)
    assert all(row.shape == (1, FINGERPRINT.dimension) for row in rows)


def test_documents_and_long_queries_are_embedded_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    shared: list[str] = []
    batched = QueryEmbedder(MINILM)
    monkeypatch.setattr(batched, "_batched", shared.append)
    batched.embed(["a", "b"], role="query")
    batched.embed(["a"])
    batched.embed(["word " * SHORT], role="query")
    assert shared == []
    batched.embed(["word"], role="query")
    assert shared == ["word"]


def test_the_queries_used_last_are_remembered_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragistry.models.queries.CACHED", 2)
    queries = QueryEmbedder(MINILM)
    for query in ("tea", "rain", "tea", "snow"):
        queries.embed([query], role="query")
    assert [queries.is_cached(query) for query in ("tea", "rain", "snow")] == [True, False, True]
