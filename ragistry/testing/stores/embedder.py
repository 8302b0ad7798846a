"""A store that remembers its embedder."""

from __future__ import annotations

from typing import Any

import pytest

from ragistry.errors import EmbeddingMismatchError
from ragistry.protocols import EmbedderRecord
from ragistry.testing.stores.chunks import chunk
from ragistry.types import EmbedderFingerprint

MINILM = EmbedderFingerprint("embedded", "minilm", "abc", 3)


class EmbedderRecordConformance:
    """`EmbedderRecord`."""

    def test_has_the_shape_of_a_record(self, store: EmbedderRecord) -> None:
        assert isinstance(store, EmbedderRecord)

    def test_the_same_embedder_is_welcome_again(self, store: EmbedderRecord) -> None:
        store.check_embedder(MINILM)
        store.use_embedder(MINILM)
        store.use_embedder(MINILM)
        store.check_embedder(MINILM)

    @pytest.mark.parametrize("other", [
        EmbedderFingerprint("embedded", "another", "abc", 3), EmbedderFingerprint("embedded", "minilm", "def", 3),
        EmbedderFingerprint("ollama", "minilm", "abc", 3), EmbedderFingerprint("embedded", "minilm", "abc", 4),
        EmbedderFingerprint("embedded", "minilm", "abc", 3, query_prefix="query: "),
    ], ids=lambda other: f"{other.provider}-{other.model}-{other.dimension}")  # fmt: skip
    def test_another_embedder_is_refused_even_of_the_same_dimension(
        self, store: EmbedderRecord, other: EmbedderFingerprint
    ) -> None:
        store.use_embedder(MINILM)
        for call in (store.use_embedder, store.check_embedder):
            with pytest.raises(EmbeddingMismatchError, match=f"'minilm'.*{other.model!r}.*embed_model"):
                call(other)
        store.use_embedder(MINILM)

    def test_a_digest_that_one_side_does_not_know_is_no_difference(self, store: EmbedderRecord) -> None:
        store.use_embedder(MINILM)
        store.check_embedder(EmbedderFingerprint("embedded", "minilm", "", 3, max_tokens=256))

    def test_checking_records_nothing(self, store: EmbedderRecord) -> None:
        store.check_embedder(MINILM)
        store.use_embedder(EmbedderFingerprint("embedded", "another", "abc", 3))

    def test_vectors_of_another_dimension_than_the_embedders_are_refused(self, store: Any) -> None:
        store.use_embedder(MINILM)
        with pytest.raises(EmbeddingMismatchError):
            store.add_documents([chunk("text", [1.0, 0.0])])
        with pytest.raises(EmbeddingMismatchError):
            store.search([1.0, 0.0])
        assert store.count() == 0

    def test_an_embedder_of_another_dimension_than_what_is_stored_is_refused(self, store: Any) -> None:
        store.add_documents([chunk("text")])
        with pytest.raises(EmbeddingMismatchError):
            store.use_embedder(EmbedderFingerprint("embedded", "minilm", "abc", 4))
        store.use_embedder(MINILM)

    def test_clear_forgets_the_embedder(self, store: Any) -> None:
        store.use_embedder(MINILM)
        store.add_documents([chunk("text")])
        store.clear_collection()
        store.use_embedder(EmbedderFingerprint("ollama", "nomic-embed-text", "", 2))
        assert store.add_documents([chunk("text", [1.0, 0.0])]) == 1
