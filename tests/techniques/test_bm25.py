"""Lexical retrieval over the local store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from ragistry.errors import ConfigError, EmptyQueryError, InvalidConfigError, InvalidLimitError
from ragistry.stores.local import LocalStore
from ragistry.techniques.bm25 import BM25Technique
from ragistry.testing.techniques import TechniqueConformance
from ragistry.trace import collect
from ragistry.types import EmbeddedChunk

TEXTS = {
    f"{collection}-{number}": (f"To restore the {topic} of kind {number}, look at the {topic} again.", collection)
    for collection, topic in (("handbook", "backup"), ("garden", "soil"))
    for number in range(4)
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStore]:
    with closing(LocalStore(tmp_path_factory.mktemp("words"))) as opened:
        chunks = [EmbeddedChunk(text, {"collection": collection}, [1.0]) for text, collection in TEXTS.values()]
        opened.add_documents(chunks, ids=list(TEXTS))
        yield opened


class TestConformance(TechniqueConformance):
    query = "how do I restore a backup again?"

    @pytest.fixture
    def technique(self, store: LocalStore) -> BM25Technique:
        return BM25Technique({}, store=store)


def test_finds_by_words_best_first(store: LocalStore) -> None:
    documents = BM25Technique({"top_k": 3}, store=store).retrieve("backups of kind 2")
    assert documents[0].id == "handbook-2"
    assert documents[0].score > documents[1].score >= documents[2].score > 0
    assert [score.kind for score in documents[0].scores] == ["bm25"]


def test_nothing_is_found_where_no_word_is_shared(store: LocalStore) -> None:
    assert BM25Technique({}, store=store).retrieve("zebra") == []
    assert BM25Technique({}, store=store).retrieve("?!") == []


def test_top_k_of_the_configuration_and_of_the_call(store: LocalStore) -> None:
    technique = BM25Technique({"top_k": 2}, store=store)
    assert len(technique.retrieve("restore")) == 2
    assert len(technique.retrieve("restore", top_k=7)) == 7
    assert len(BM25Technique({}, store=store).retrieve("restore")) == 5


def test_a_condition_holds(store: LocalStore) -> None:
    documents = BM25Technique({}, store=store).retrieve("restore the backup", where={"collection": "garden"})
    assert [document.metadata["collection"] for document in documents] == ["garden"] * 4


def test_the_trace_says_how_many_were_found(store: LocalStore) -> None:
    with collect() as trace:
        BM25Technique({"top_k": 3}, store=store).retrieve("restore")
    [stage] = trace.stages()
    assert (stage.name, stage.documents_out, stage.model_calls) == ("search", 3, 0)


def test_a_store_that_searches_no_words_is_refused_at_once() -> None:
    with pytest.raises(ConfigError, match=r"the store 'object' does not search words.*'naive'.*vector_stores\.yaml"):
        BM25Technique({}, store=object())


@pytest.mark.parametrize("config", [{"top_k": 0}, {"top_k": "many"}, {"k1": 1.2}])
def test_bad_configuration_is_refused(store: LocalStore, config: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfigError, match="BM25Technique: "):
        BM25Technique(config, store=store)


def test_bad_input_is_refused_without_a_registry(store: LocalStore) -> None:
    technique = BM25Technique({}, store=store)
    with pytest.raises(EmptyQueryError):
        technique.retrieve(" ")
    with pytest.raises(InvalidLimitError):
        technique.retrieve("tea", top_k=10_000)
