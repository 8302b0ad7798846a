"""Pseudo-relevance feedback: the formulas of the papers, over a real store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragistry.errors import ConfigError
from ragistry.protocols import LibraryStore
from ragistry.stores.chroma import ChromaStore
from ragistry.stores.local import LocalStore
from ragistry.techniques.bm25 import BM25Technique
from ragistry.techniques.prf import RM3Technique, RocchioTechnique, weighted_query
from ragistry.testing.techniques import same_answer
from ragistry.types import Document, EmbeddedChunk, EmbedderFingerprint, Role
from tests.messages import check_message, refused
from tests.techniques.doubles import Ready, degraded, ids, traced

CARS = {
    "a": "The car has a motor.",
    "b": "A car whose motor is loud.",
    "c": "Oil for the motor.",
    "d": "Tea grows in the hills.",
}


def fill(store: LocalStore, texts: dict[str, str], **metadata: str) -> LocalStore:
    chunks = [EmbeddedChunk(text, metadata, [1.0, float(row)]) for row, text in enumerate(texts.values())]
    store.add_documents(chunks, ids=list(texts))
    return store


def rm3(store: LocalStore, base: object = None, **config: Any) -> RM3Technique:
    return RM3Technique(config, base=base or BM25Technique({}, store=store), store=store)


def words_added(technique: RM3Technique, query: str) -> dict[str, float]:
    _, stages = traced(technique, query)
    return next(stage for stage in stages if stage.name == "expand").detail["words"]


class TestRM3:
    def test_relevance_model_is_that_of_the_paper(self, store):
        base = Ready([Document("apples, apples and pears", {}, 3.0, "a"), Document("a pear, a plum", {}, 1.0, "b")])
        # P(w|R) = sum of P(w|D) P(Q|D): apple 2/3 * 3/4, pear 1/3 * 3/4 + 1/2 * 1/4, plum 1/2 * 1/4
        assert words_added(rm3(store, base), "fruit") == {"apples": 0.5, "pear": 0.375, "plum": 0.125}
        assert words_added(rm3(store, base, fb_terms=2), "fruit") == {"apples": 0.571, "pear": 0.429}
        assert words_added(rm3(store, base, fb_docs=1), "fruit") == {"apples": 0.667, "pears": 0.333}
        assert base.asked[-1]["top_k"] == 1

    @pytest.mark.parametrize("scores", [(-1.0, -5.0), (2.0, 2.0), (0.0, 0.0)])
    def test_documents_count_alike_where_scores_are_equal_or_not_positive(self, store, scores):
        base = Ready([Document("apple", {}, scores[0], "a"), Document("plum", {}, scores[1], "b")])
        assert words_added(rm3(store, base), "fruit") == {"apple": 0.5, "plum": 0.5}

    def test_weights_become_repetitions(self):
        counts = Counter(weighted_query("red car", {"blue": 0.8, "wheel": 0.2}, 0.5, "english").split())
        assert counts == {"red": 25, "car": 25, "blue": 40, "wheel": 10}
        assert weighted_query("red car", {"blue": 1.0}, 1, "english").split() == ["red", "car"] * 25

    def test_many_words_keep_their_weights(self):
        words = {f"w{number}": 1 / 200 for number in range(200)}
        counts = Counter(weighted_query("red car", words, 0.9, "english").split())
        assert counts == {"red": 4500, "car": 4500, **dict.fromkeys(words, 5)}

    def test_long_query_is_written_once(self):
        query = " ".join(f"w{number}" for number in range(1700))
        counts = Counter(weighted_query(query, {"blue": 1.0}, 0.5, "english").split())
        assert (counts["w7"], counts["blue"], sum(counts.values())) == (1, 1700, 3400)

    def test_finds_what_shares_no_word_with_the_query(self, store):
        fill(store, CARS)
        assert ids(store.search_text("car")) == ["a", "b"]
        assert ids(rm3(store).retrieve("car")) == ["a", "b", "c"]
        query = "loud motor"
        assert ids(rm3(store, original_weight=1).retrieve(query)) == ids(store.search_text(query))
        assert rm3(store).retrieve("submarine") == []
        assert ids(rm3(store, Ready([Document("🙂 …", {}, 1.0, "x")])).retrieve("oil")) == ["c"], "it has no words"

    @pytest.mark.parametrize(
        ("language", "texts", "query"),
        [
            ("chinese", {"a": "汽车有发动机", "b": "发动机很响"}, "汽车"),
            ("german", {"a": "Häuser am Fluss", "b": "Das Haus"}, "Fluss"),
            ("no such language", {"a": "river house", "b": "houses"}, "river"),
            ("english", {"a": "car databases", "b": "databases"}, "car"),  # the stem has another stem
            ("english", {"a": "alarm LNT-1042 🙂 …", "b": "LNT-1042"}, "alarm"),
        ],
    )
    def test_documents_are_analysed_in_their_language(self, store, language, texts, query):
        fill(store, texts, language=language)
        assert ids(rm3(store).retrieve(query)) == ["a", "b"]

    def test_condition_reaches_base_and_store(self, store):
        fill(store, CARS, shelf="low")
        fill(store, {"e": "A motor"}, shelf="high")
        base = Ready(store.search_text("car"))
        assert ids(rm3(store, base).retrieve("car", top_k=9, where={"shelf": "high"})) == ["e"]
        assert base.asked == [{"query": "car", "top_k": 10, "where": {"shelf": "high"}}]

    def test_store_without_words_is_refused(self, store):
        class Dense:
            abilities = frozenset[str]()

        with refused(ConfigError, "rocchio"):
            RM3Technique({}, base=Ready(), store=Dense())


class Fixed:
    """An embedder for which every text is the same."""

    fingerprint = EmbedderFingerprint("test", "fixed", "", 2)

    def embed(self, texts: Sequence[str], *, role: Role = "document") -> np.ndarray:
        assert role == "query"
        return np.array([[1.0, 0.0]] * len(texts), dtype=np.float32)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [1] * len(texts)


class TestRocchio:
    @pytest.fixture(params=[LocalStore, ChromaStore])
    def store(self, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[LibraryStore]:
        store = request.param(tmp_path / "store")
        vectors = {"a": [0.8, 0.6], "b": [0.0, 1.0], "c": [0.8, -0.6]}
        store.add_documents(
            [EmbeddedChunk(name, {"name": name}, vector) for name, vector in vectors.items()], ids="abc"
        )
        yield store
        store.close()

    def rocchio(self, store: LibraryStore, *feedback: Document, **config: Any) -> RocchioTechnique:
        return RocchioTechnique(config, base=Ready(feedback), store=store, embedder=Fixed())

    def test_query_moves_towards_the_mean_of_the_feedback(self, store):
        found = self.rocchio(store, *store.get(list("ab")), alpha=1, beta=0.5, fb_docs=2).retrieve("q")
        moved = np.array([1 + 0.5 * 0.4, 0.5 * 0.8])  # the mean of a and b is (.4, .8)
        moved /= np.linalg.norm(moved)
        assert [(one.id, one.score) for one in found] == [
            ("a", pytest.approx(moved @ [0.8, 0.6], abs=1e-6)),
            ("c", pytest.approx(moved @ [0.8, -0.6], abs=1e-6)),
            ("b", pytest.approx(moved @ [0, 1], abs=1e-6)),
        ]
        assert found[0].scores[-1].kind == "cosine"

    def test_without_feedback_weight_it_is_dense_retrieval(self, store):
        assert same_answer(self.rocchio(store, *store.get(list("b")), beta=0).retrieve("q"), store.search([1, 0], 5))
        assert self.rocchio(store).retrieve("q") == [], "nothing found by the base is nothing found"

    def test_feedback_document_that_was_deleted_does_not_count(self, store):
        gone = Document("gone", {}, 1.0, "gone")
        expected = self.rocchio(store, *store.get(list("a"))).retrieve("q")
        assert same_answer(self.rocchio(store, gone, *store.get(list("a"))).retrieve("q"), expected)

    def test_feedback_that_waits_for_its_vector_does_not_count(self, tmp_path):
        with closing(LocalStore(tmp_path / "store")) as store:
            store.use_embedder(Fixed.fingerprint)
            vectors = {"a": [0.8, 0.6], "b": None, "c": [0.8, -0.6]}
            store.add_documents([EmbeddedChunk(name, {}, vector) for name, vector in vectors.items()], ids="abc")
            a, b = store.get(["a", "b"])
            assert self.rocchio(store, a, b).retrieve("q") == self.rocchio(store, a).retrieve("q")
            found, stages = traced(self.rocchio(store, b), "q")
            assert found == [b]
            check_message(degraded(stages))

    def test_feedback_from_another_store_is_returned_as_it_is_and_said(self, store):
        foreign = Document("foreign", {}, 1.0, "foreign")
        found, stages = traced(self.rocchio(store, foreign), "q")
        assert found == [foreign]
        check_message(degraded(stages))

    def test_condition_reaches_base_and_store(self, store):
        technique = self.rocchio(store, *store.get(list("ab")))
        assert ids(technique.retrieve("q", top_k=4, where={"name": "c"})) == ["c"]
        assert technique.base.asked == [{"query": "q", "top_k": 3, "where": {"name": "c"}}]
