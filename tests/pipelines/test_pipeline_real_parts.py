"""A pipeline over a real store and a real model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ragistry.models.minilm import MiniLMEmbedder
from ragistry.pipelines import END, Pipeline, PipelineBuilder
from ragistry.stores.chroma import ChromaStore
from ragistry.techniques.mmr import MMRTechnique
from ragistry.techniques.naive import NaiveRAGTechnique
from ragistry.types import EmbeddedChunk
from tests.pipelines.parts import Rewrite

TEXTS = [
    ("Steep green tea in hot water for two minutes.", "kitchen"),
    ("Green tea is steeped in hot, not boiling, water.", "kitchen"),
    ("Boil potatoes in salted water.", "kitchen"),
    ("A cold front brings rain.", "weather"),
    ("Prune roses in late winter.", "garden"),
]


@pytest.fixture(scope="module")
def careful(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    """Diverse results where the search is sure; else the question again in other words."""
    embedder = MiniLMEmbedder()
    store = ChromaStore(Path(tmp_path_factory.mktemp("careful")) / "vectors")
    vectors = embedder.embed([text for text, _ in TEXTS])
    store.add_documents(
        [EmbeddedChunk(text, {"collection": c}, vector) for (text, c), vector in zip(TEXTS, vectors, strict=True)]
    )
    sure = NaiveRAGTechnique({"min_score": 0.5}, store=store, embedder=embedder)
    naive = NaiveRAGTechnique({}, store=store, embedder=embedder)
    yield (
        PipelineBuilder("careful")
        .step("sure", sure, on={"found": "diverse", "empty": "rewrite"})
        .step("diverse", MMRTechnique({"lambda": 0.3}, base=naive, store=store, embedder=embedder), top_k=2)
        .step("rewrite", Rewrite("my Kaiserin Friedrich", "roses"), on="again")
        .step("again", naive, on={"found": END, "empty": END})
        .build()
    )
    store.close()


def test_a_search_that_is_sure_goes_on_to_diversity(careful: Pipeline) -> None:
    result = careful.run("how do I steep green tea?")
    assert [stage.name for stage in result.trace if stage.depth == 0] == ["sure", "diverse"]
    assert len([document for document in result.documents if "tea" in document.content]) == 1
    assert result.total_results == 2


def test_a_search_that_is_not_sure_asks_again_in_other_words(careful: Pipeline) -> None:
    result = careful.run("when to cut my Kaiserin Friedrich?", top_k=1)
    assert [stage.name for stage in result.trace if stage.depth == 0] == ["sure", "rewrite", "again"]
    assert result.documents[0].content == "Prune roses in late winter."


def test_the_condition_holds_whichever_way_the_run_goes(careful: Pipeline) -> None:
    for query in ("how do I steep green tea?", "when to cut my Kaiserin Friedrich?"):
        documents = careful.retrieve(query, where={"collection": "weather"})
        assert [document.content for document in documents] == ["A cold front brings rain."]
