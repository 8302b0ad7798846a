"""Searches by words and by vectors, without a registry or a file."""

from __future__ import annotations

import pytest

from ragistry.errors import ConfigError, EmbeddingMismatchError
from ragistry.techniques.bm25 import BM25Technique
from ragistry.techniques.naive import NaiveRAGTechnique
from tests.messages import refused
from tests.techniques.doubles import MINILM, names, traced


def test_words_are_found_best_first(facts):
    technique = BM25Technique({"top_k": 2}, store=facts)
    documents, [stage] = traced(technique, "green teas of the presidents, steeping in the water")
    assert names(documents)[0] == "tea"
    assert documents[0].score > documents[1].score > 0
    assert (stage.name, stage.documents_out, stage.model_calls) == ("search", 2, 0)
    assert technique.retrieve("zebra") == technique.retrieve("?!") == []


@pytest.mark.parametrize("model", ["minilm", "all-MiniLM-L6-v2", "nomic-embed-text"])
def test_configured_model_must_be_the_embedders(facts, model):
    technique = NaiveRAGTechnique({"embedding_model": model}, store=facts, embedder=MINILM)
    if model == "nomic-embed-text":
        with refused(EmbeddingMismatchError, model):
            technique.retrieve("tea")
    else:
        assert technique.retrieve("tea")


def test_store_that_searches_no_words_is_refused_at_once():
    with refused(ConfigError, "object", "naive"):
        BM25Technique({}, store=object())
