"""Lexical retrieval over a store that searches words; the index of words is the real one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragistry.errors import ConfigError, EmptyQueryError, InvalidConfigError, InvalidLimitError
from ragistry.stores.lexical import LexicalIndex
from ragistry.techniques.bm25 import BM25Technique
from ragistry.testing.techniques import TechniqueConformance
from ragistry.trace import collect
from ragistry.types import Document, StageScore, Where, ranked
from ragistry.utils.limits import check_top_k
from ragistry.utils.where import matches, normalise

TEXTS = {
    f"{collection}-{number}": (f"To restore the {topic} of kind {number}, look at the {topic} again.", collection)
    for collection, topic in (("handbook", "backup"), ("garden", "soil"))
    for number in range(4)
}


class WordStore:
    """`TextSearch` and no more: rows in a dictionary, their words in an index."""

    def __init__(self, folder: Path, rows: Mapping[str, tuple[str, str]]) -> None:
        self.ids = list(rows)
        self.rows = [(text, {"collection": collection}) for text, collection in rows.values()]
        LexicalIndex.build(folder, ((key, text) for key, (text, _) in enumerate(self.rows)))
        self.index = LexicalIndex(folder)

    def search_text(self, query: str, top_k: int = 10, *, where: Where | None = None) -> list[Document]:
        check_top_k(top_k)
        allowed = None if where is None else np.array(self.selected(normalise(where)), dtype=np.int64)
        keys, scores = self.index.search(query, top_k, allowed=allowed)
        return ranked(map(self.document, keys.tolist(), scores.tolist()))[:top_k]

    def selected(self, where: Where) -> list[int]:
        return [key for key, (_, metadata) in enumerate(self.rows) if matches(where, metadata)]

    def document(self, key: int, score: float) -> Document:
        text, metadata = self.rows[key]
        return Document(text, dict(metadata), score, self.ids[key], (StageScore("bm25", "bm25", score),))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WordStore]:
    opened = WordStore(tmp_path_factory.mktemp("words") / "lexical", TEXTS)
    yield opened
    opened.index.close()


class TestConformance(TechniqueConformance):
    query = "how do I restore a backup again?"

    @pytest.fixture
    def technique(self, store: WordStore) -> BM25Technique:
        return BM25Technique({}, store=store)


def test_finds_by_words_best_first(store: WordStore) -> None:
    documents = BM25Technique({"top_k": 3}, store=store).retrieve("backups of kind 2")
    assert documents[0].id == "handbook-2"
    assert documents[0].score > documents[1].score >= documents[2].score > 0
    assert [score.kind for score in documents[0].scores] == ["bm25"]


def test_nothing_is_found_where_no_word_is_shared(store: WordStore) -> None:
    assert BM25Technique({}, store=store).retrieve("zebra") == []
    assert BM25Technique({}, store=store).retrieve("?!") == []


def test_top_k_of_the_configuration_and_of_the_call(store: WordStore) -> None:
    technique = BM25Technique({"top_k": 2}, store=store)
    assert len(technique.retrieve("restore")) == 2
    assert len(technique.retrieve("restore", top_k=7)) == 7
    assert len(BM25Technique({}, store=store).retrieve("restore")) == 5


def test_a_condition_holds(store: WordStore) -> None:
    documents = BM25Technique({}, store=store).retrieve("restore the backup", where={"collection": "garden"})
    assert [document.metadata["collection"] for document in documents] == ["garden"] * 4


def test_the_trace_says_how_many_were_found(store: WordStore) -> None:
    with collect() as trace:
        BM25Technique({"top_k": 3}, store=store).retrieve("restore")
    [stage] = trace.stages()
    assert (stage.name, stage.documents_out, stage.model_calls) == ("search", 3, 0)


def test_a_store_that_searches_no_words_is_refused_at_once() -> None:
    with pytest.raises(ConfigError, match="BM25Technique: the store 'object' does not search words.*'naive'"):
        BM25Technique({}, store=object())


@pytest.mark.parametrize("config", [{"top_k": 0}, {"top_k": "many"}, {"k1": 1.2}])
def test_bad_configuration_is_refused(store: WordStore, config: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfigError, match="BM25Technique: "):
        BM25Technique(config, store=store)


def test_bad_input_is_refused_without_a_registry(store: WordStore) -> None:
    technique = BM25Technique({}, store=store)
    with pytest.raises(EmptyQueryError):
        technique.retrieve(" ")
    with pytest.raises(InvalidLimitError):
        technique.retrieve("tea", top_k=10_000)
