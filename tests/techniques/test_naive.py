"""Dense retrieval by hand, without a registry or a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ragistry.errors import EmbeddingMismatchError, InvalidConfigError, InvalidLimitError
from ragistry.models.minilm import MiniLMEmbedder
from ragistry.stores.chroma import ChromaStore
from ragistry.techniques.naive import NaiveRAGTechnique
from ragistry.types import Document, EmbeddedChunk

TEXTS = ["Steep green tea in hot water.", "A cold front brings rain.", "Prune roses in late winter."]


@pytest.fixture(scope="module")
def embedder() -> MiniLMEmbedder:
    return MiniLMEmbedder()


@pytest.fixture
def store(tmp_path: Path, embedder: MiniLMEmbedder) -> Iterator[ChromaStore]:
    opened = ChromaStore(tmp_path / "vectors")
    vectors = embedder.embed(TEXTS)
    opened.add_documents(
        [EmbeddedChunk(text, {"number": number}, vectors[number]) for number, text in enumerate(TEXTS)]
    )
    yield opened
    opened.close()


def test_retrieve_returns_documents_best_first(store: ChromaStore, embedder: MiniLMEmbedder) -> None:
    documents = NaiveRAGTechnique({"top_k": 3}, store=store, embedder=embedder).retrieve("how do I make tea?")
    assert all(isinstance(document, Document) for document in documents)
    assert documents[0].content == TEXTS[0]
    assert documents[0].score > documents[1].score >= documents[2].score >= 0
    assert documents[0].scores[0].kind == "cosine"


def test_top_k_of_the_configuration_and_of_the_call(store: ChromaStore, embedder: MiniLMEmbedder) -> None:
    technique = NaiveRAGTechnique({"top_k": 2}, store=store, embedder=embedder)
    assert len(technique.retrieve("weather")) == 2
    assert len(technique.retrieve("weather", top_k=1)) == 1
    assert [document.metadata for document in technique.retrieve("weather", where={"number": 2})] == [{"number": 2}]


def test_an_empty_store_gives_no_results(tmp_path: Path, embedder: MiniLMEmbedder) -> None:
    empty = ChromaStore(tmp_path / "empty")
    assert NaiveRAGTechnique({}, store=empty, embedder=embedder).retrieve("anything") == []
    empty.close()


def test_min_score_leaves_out_what_is_far(store: ChromaStore, embedder: MiniLMEmbedder) -> None:
    technique = NaiveRAGTechnique({"min_score": 0.99}, store=store, embedder=embedder)
    assert technique.retrieve("xyzabc nonexistent") == []
    assert [document.content for document in technique.retrieve(TEXTS[1])] == [TEXTS[1]]


def test_bad_limit_is_refused_without_a_registry(store: ChromaStore, embedder: MiniLMEmbedder) -> None:
    technique = NaiveRAGTechnique({}, store=store, embedder=embedder)
    with pytest.raises(InvalidLimitError):
        technique.retrieve("tea", top_k=10_000)


def test_bad_configuration_is_refused(store: ChromaStore, embedder: MiniLMEmbedder) -> None:
    with pytest.raises(InvalidConfigError, match="NaiveRAGTechnique: top_k: .*got 0; topk: unknown setting 'topk'"):
        NaiveRAGTechnique({"top_k": 0, "topk": 3}, store=store, embedder=embedder)


def test_the_configured_model_must_be_the_embedders(store: ChromaStore, embedder: MiniLMEmbedder) -> None:
    NaiveRAGTechnique({"embedding_model": "minilm"}, store=store, embedder=embedder).retrieve("tea")
    technique = NaiveRAGTechnique({"embedding_model": "nomic-embed-text"}, store=store, embedder=embedder)
    with pytest.raises(EmbeddingMismatchError, match="'nomic-embed-text', but the embedder here is 'all-MiniLM-L6-v2'"):
        technique.retrieve("tea")
