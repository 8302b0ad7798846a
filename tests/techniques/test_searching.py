"""Searches by words and by vectors, without a registry or a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from ragistry.errors import ConfigError, EmbeddingMismatchError, EmptyQueryError, InvalidLimitError
from ragistry.protocols import Embedder
from ragistry.stores.chroma import ChromaStore
from ragistry.stores.local import LocalStore
from ragistry.techniques.bm25 import BM25Technique
from ragistry.techniques.naive import NaiveRAGTechnique
from ragistry.testing.hashed import HashingEmbedder
from ragistry.types import EmbeddedChunk
from tests.messages import refused
from tests.techniques.doubles import MINILM, traced

TEXTS = ["Steep green tea in hot water.", "A cold front brings rain.", "Prune roses in late winter."]


def fill(store: LocalStore | ChromaStore, embedder: Embedder = MINILM) -> None:
    chunks = zip(TEXTS, range(3), embedder.embed(TEXTS), strict=True)
    store.add_documents([EmbeddedChunk(text, {"number": number}, vector) for text, number, vector in chunks])


@pytest.fixture(scope="module")
def chroma_notes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChromaStore]:
    with closing(ChromaStore(tmp_path_factory.mktemp("vectors") / "vectors")) as opened:
        assert naive(opened).retrieve("anything") == []
        fill(opened)
        yield opened


def naive(notes: ChromaStore, **config: object) -> NaiveRAGTechnique:
    return NaiveRAGTechnique(config, store=notes, embedder=MINILM)


def test_nearest_chunks_come_first(chroma_notes):
    documents = naive(chroma_notes, top_k=3).retrieve("how do I make tea?")
    assert documents[0].content == TEXTS[0]
    assert documents[0].score > documents[1].score >= documents[2].score >= 0
    assert documents[0].scores[0].kind == "cosine"
    assert [one.metadata for one in naive(chroma_notes).retrieve("weather", where={"number": 2})] == [{"number": 2}]
    with pytest.raises(InvalidLimitError):
        naive(chroma_notes).retrieve("tea", top_k=10_000)


def test_min_score_leaves_out_what_is_far(chroma_notes):
    assert naive(chroma_notes, min_score=0.99).retrieve("xyzabc nonexistent") == []
    assert [document.content for document in naive(chroma_notes, min_score=0.99).retrieve(TEXTS[1])] == [TEXTS[1]]


def test_configured_model_must_be_the_embedders(chroma_notes):
    naive(chroma_notes, embedding_model="minilm").retrieve("tea")
    with refused(EmbeddingMismatchError, "nomic-embed-text"):
        naive(chroma_notes, embedding_model="nomic-embed-text").retrieve("tea")


def test_words_are_found_best_first(store):
    fill(store, HashingEmbedder(8))
    technique = BM25Technique({"top_k": 2}, store=store)
    documents, [stage] = traced(technique, "prune the roses in late winters, not hot tea")
    assert [document.content for document in documents] == [TEXTS[2], TEXTS[0]]
    assert documents[0].score > documents[1].score > 0
    assert [score.kind for score in documents[0].scores] == ["bm25"]
    assert (stage.name, stage.documents_out, stage.model_calls) == ("search", 2, 0)
    assert technique.retrieve("zebra") == technique.retrieve("?!") == []
    with pytest.raises(EmptyQueryError):
        technique.retrieve(" ")
    with pytest.raises(InvalidLimitError):
        technique.retrieve("tea", top_k=10_000)


def test_store_that_searches_no_words_is_refused_at_once():
    with refused(ConfigError, "object", "naive"):
        BM25Technique({}, store=object())
