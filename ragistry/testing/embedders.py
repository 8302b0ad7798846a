"""Conformance tests of embedders: subclass `EmbedderConformance`, override its fixture, and run pytest.

class TestMine(EmbedderConformance):
    @pytest.fixture
    def embedder(self):
        return MyEmbedder()
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from ragistry.errors import ModelError
from ragistry.protocols import Embedder
from ragistry.types import Role

TEXTS = (
    "Paris is the capital of France.",
    "The mitochondrion is the powerhouse of the cell.",
    "def add(a, b): return a + b",
    "Zürich, naïve café, 東京, Здравствуй, 🙂",
    "  white space\tand\n\nline ends  ",
    "A longer text follows the shorter ones, so that a batch has rows of several lengths. " * 4,
    "cat",
)


def cosines(left: Any, right: Any) -> Any:
    """Compute the cosine of each row of ``left`` with that of ``right``, both ``(n, d)`` of unit length: ``(n,)``."""
    return np.einsum("ij,ij->i", left, right)


class EmbedderConformance:
    """The contract of `ragistry.protocols.Embedder`."""

    @pytest.fixture
    def embedder(self) -> Embedder:
        raise NotImplementedError("override the fixture `embedder`")

    def test_is_an_embedder(self, embedder: Embedder) -> None:
        assert isinstance(embedder, Embedder)

    def test_the_fingerprint_names_the_model_and_its_dimension(self, embedder: Embedder) -> None:
        fingerprint = embedder.fingerprint
        assert fingerprint.provider
        assert fingerprint.model
        assert fingerprint.max_tokens >= 0
        assert set(fingerprint.digest) <= set("0123456789abcdef")
        assert fingerprint.dimension == embedder.embed(["one"]).shape[1]
        assert fingerprint == embedder.fingerprint

    @pytest.mark.parametrize("role", ["document", "query"])
    def test_rows_are_float32_finite_and_of_unit_length(self, embedder: Embedder, role: Role) -> None:
        vectors = embedder.embed(TEXTS, role=role)
        assert vectors.shape == (len(TEXTS), embedder.fingerprint.dimension)
        assert vectors.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)

    @pytest.mark.parametrize("role", ["document", "query"])
    def test_no_texts_give_no_rows(self, embedder: Embedder, role: Role) -> None:
        vectors = embedder.embed([], role=role)
        assert vectors.shape == (0, embedder.fingerprint.dimension)
        assert vectors.dtype == np.float32

    def test_rows_come_in_the_order_of_the_texts(self, embedder: Embedder) -> None:
        vectors = embedder.embed(TEXTS)
        assert cosines(vectors[::-1], embedder.embed(TEXTS[::-1])).min() >= 0.999
        np.testing.assert_array_equal((vectors @ vectors.T).argmax(axis=1), np.arange(len(TEXTS)))

    def test_a_text_has_the_same_row_alone_and_in_a_batch(self, embedder: Embedder) -> None:
        alone = np.concatenate([embedder.embed([text]) for text in TEXTS])
        assert cosines(alone, embedder.embed(TEXTS)).min() >= 0.999

    def test_equal_texts_have_equal_rows(self, embedder: Embedder) -> None:
        vectors = embedder.embed([TEXTS[0], TEXTS[5], TEXTS[0]])
        assert cosines(vectors[:1], vectors[2:]).min() >= 0.999

    @pytest.mark.parametrize("role", ["document", "query"])
    def test_the_same_call_gives_the_same_rows(self, embedder: Embedder, role: Role) -> None:
        first, second = embedder.embed(TEXTS, role=role), embedder.embed(TEXTS, role=role)
        np.testing.assert_allclose(first, second, atol=1e-4)

    def test_threads_get_the_rows_of_their_own_texts(self, embedder: Embedder) -> None:
        with ThreadPoolExecutor(4) as threads:
            rows = list(threads.map(lambda text: embedder.embed([text])[0], TEXTS))
        assert cosines(np.stack(rows), embedder.embed(TEXTS)).min() >= 0.999

    def test_the_callers_list_is_left_as_it_was(self, embedder: Embedder) -> None:
        texts = list(TEXTS)
        embedder.embed(texts)
        assert texts == list(TEXTS)

    @pytest.mark.parametrize("text", ["", " \n"])
    def test_a_blank_text_has_a_row_of_unit_length_or_is_refused(self, embedder: Embedder, text: str) -> None:
        try:
            vectors = embedder.embed(["before", text])
        except ModelError:
            pytest.skip("this embedder refuses blank text")
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)

    @pytest.mark.parametrize("bad", [None, 7, b"bytes", "lone surrogate \ud800"])
    def test_what_is_not_text_is_refused_with_its_position(self, embedder: Embedder, bad: Any) -> None:
        with pytest.raises(ModelError, match=r"texts\[2\]"):
            embedder.embed(["fine", "fine too", bad])

    def test_a_single_string_is_refused(self, embedder: Embedder) -> None:
        with pytest.raises(ModelError, match="list"):
            embedder.embed("one text, not a list of texts")

    def test_count_tokens_is_not_limited_by_the_model(self, embedder: Embedder) -> None:
        long = "word " * 10_000
        one, two, cut = embedder.count_tokens(["cat", "cat and dog", long])
        assert 0 < one < two < cut
        assert cut >= 10_000
        assert embedder.count_tokens([]) == []
