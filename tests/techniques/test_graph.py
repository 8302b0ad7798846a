"""Multi-hop retrieval: the walk against PageRank worked out by hand and by matrices, and what it finds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from ragistry.stores.local import LocalStore
from ragistry.techniques.bm25 import BM25Technique
from ragistry.techniques.derived import Table
from ragistry.techniques.entities import ENTITY
from ragistry.techniques.graph import Graph, GraphTechnique
from ragistry.types import EmbeddedChunk
from tests.evaluation.small_sets import hashed_workspace
from tests.messages import check_message
from tests.techniques.doubles import Ready, degraded, ids, scored, traced

STANFORD = {
    "thomas": "The neuroscience of Alzheimer's disease is what Thomas Südhof works on.",
    "stanford": "A laureate, Thomas Südhof, is a professor at Stanford University.",
    "other": "At Harvard College there is a professor of law.",
    "campus": "The campus of Stanford University has a tower.",
}
"""After figure 1 of HippoRAG: which professor of Stanford works on the neuroscience of Alzheimer's?"""


def fill(store: LocalStore, texts: Mapping[str, str], **metadata: Any) -> None:
    store.add_documents([EmbeddedChunk(text, metadata, [1.0, 0.0]) for text in texts.values()], ids=list(texts))


def graph(store: LocalStore, **config: Any) -> GraphTechnique:
    return GraphTechnique(config, base=BM25Technique({}, store=store), store=store)


def table_of(chunks: Mapping[str, Mapping[int, float]]) -> Table:
    rows = np.array([pair for entities in chunks.values() for pair in sorted(entities.items())], dtype=ENTITY)
    return Table(list(chunks), np.cumsum([0, *map(len, chunks.values())]), rows)


class TestWalk:
    @pytest.mark.parametrize("hops", [1, 2, 4])
    def test_equals_the_power_series_of_the_whole_matrix(self, hops):
        random = np.random.default_rng(5)
        chunks = {
            f"{chunk:02}": {int(key): float(random.integers(1, 4)) for key in random.choice(25, 6, replace=False)}
            for chunk in range(40)
        }
        weights = np.array([[entities.get(key, 0.0) for key in range(25)] for entities in chunks.values()])
        counts = (weights > 0).sum(axis=0)
        weights *= np.where(counts > 1, np.log1p(len(chunks) / counts), 0)
        to_entity = weights / weights.sum(axis=1, keepdims=True)
        step = to_entity @ (weights / weights.sum(axis=0)).T
        seeds = np.zeros(40)
        seeds[[3, 7]] = 0.75, 0.25
        expected = sum(0.6**hop * seeds @ np.linalg.matrix_power(step, hop) for hop in range(1, hops + 1))
        rows, mass = Graph(table_of(chunks), 40).walk(np.array([3, 7]), np.array([0.75, 0.25]), hops, 0.6)
        found = np.zeros(40)
        found[rows] = mass
        assert found == pytest.approx(expected)

    def test_hubs_are_left_out_and_rare_entities_count_more(self):
        chunks = {name: {1: 1.0} for name in "abcdef"}
        chunks |= {"a": {1: 1.0, 2: 1.0, 3: 1.0}, "b": {1: 1.0, 2: 1.0}, "c": {1: 1.0, 3: 1.0}, "d": {1: 1.0, 3: 1.0}}
        rows, mass = Graph(table_of(chunks), 5).walk(np.array([0]), np.array([1.0]), 1, 0.5)
        reached = dict(zip(rows.tolist(), mass.tolist(), strict=True))
        assert set(reached) == {0, 1, 2, 3}
        assert reached[1] > reached[2] == reached[3]

    def test_nothing_is_reached_from_a_chunk_without_shared_entities(self):
        for chunks in ({"a": {1: 1.0}, "b": {2: 1.0}}, {"a": {}, "b": {}}):
            rows, _ = Graph(table_of(chunks), 10).walk(np.array([0]), np.array([1.0]), 2, 0.5)
            assert rows.tolist() == []


def test_finds_the_second_half_of_the_answer(store):
    fill(store, STANFORD)
    query = "neuroscience of Alzheimer's"
    assert ids(store.search_text(query)) == ["thomas"]
    found = graph(store).retrieve(query)
    assert ids(found) == ["thomas", "stanford", "campus"]
    assert ids(graph(store, hops=1).retrieve(query)) == ["thomas", "stanford"]
    assert ids(graph(store).retrieve("neuroscience", top_k=1)) == ["thomas"]
    assert all(type(one.score) is float and 0 < one.score <= 1 for one in found)
    assert [(one.scores[-1].kind, one.scores[-1].value) for one in found] == [("pagerank", one.score) for one in found]
    assert [score.kind for score in found[0].scores] == ["bm25", "pagerank"]


def test_without_weight_the_order_is_that_of_the_base(store):
    fill(store, STANFORD)
    query = "professor Thomas Stanford"
    assert ids(graph(store, weight=0).retrieve(query)) == ids(store.search_text(query))
    assert ids(graph(store, weight=0).retrieve("neuroscience")) == ["thomas"]


def test_writes_are_followed(store):
    fill(store, STANFORD)
    technique = graph(store)
    technique.retrieve("neuroscience")
    store.delete(ids=["stanford"])
    assert ids(technique.retrieve("neuroscience")) == ["thomas"]
    fill(store, {"new": "A prize went to Thomas Südhof in autumn."})
    assert ids(technique.retrieve("neuroscience")) == ["thomas", "new"]


def test_condition_limits_results_and_trace(store):
    fill(store, STANFORD, shelf="low")
    fill(store, {"secret": "The codename of Thomas Südhof is Blue Heron.", "heron": "A Blue Heron flies."}, shelf="no")
    fill(store, {"bird": "She saw a Blue Heron at the lake."}, shelf="low")
    found, stages = traced(graph(store, top_k=20), "neuroscience", where={"shelf": "low"})
    assert {one.metadata["shelf"] for one in found} == {"low"}
    assert "bird" in ids(found)  # through the secret, which is not named
    assert "secret" not in str(stages)
    assert "Heron" not in str(stages)


def test_chunks_under_the_condition_are_found_behind_many_others(store):
    fill(store, {"seed": "neuroscience by Thomas Südhof"}, shelf="low")
    fill(store, {f"x{number:02}": "with Thomas Südhof" for number in range(60)}, shelf="no")
    fill(store, {"last": "that one long text, which says more than all others do, is by Thomas Südhof"}, shelf="low")
    technique = graph(store, max_chunks=100)
    assert ids(technique.retrieve("neuroscience", where={"shelf": "low"})) == ["seed", "last"]


def test_documents_of_another_store_keep_their_order_and_this_is_reported(store):
    technique = GraphTechnique({}, base=Ready(scored(a=3.0, b=2.0, c=1.0)), store=store)
    found, stages = traced(technique, "q", top_k=2)
    assert ids(found) == ["a", "b"]
    check_message(degraded(stages))


def test_nothing_found_by_the_base_is_nothing_found_and_equal_scores_are_ordered_by_id(store):
    fill(store, {"b": "a same text", "a": "a same text"})
    assert graph(store).retrieve("submarine") == []
    assert ids(graph(store).retrieve("same text")) == ["a", "b"]
    assert ids(graph(store).retrieve("same text", top_k=1)) == ["a"]


def test_second_process_reads_the_graph_from_its_file(store, tmp_path):
    fill(store, STANFORD)
    base = BM25Technique({}, store=store)
    first = GraphTechnique({}, base=base, store=store, folder=tmp_path / "derived").retrieve("neuroscience")
    content = (tmp_path / "derived" / "graph.rows").read_bytes()
    assert not any(word.encode() in content for word in ("Thomas", "Stanford", "neuroscience", "stanford univ"))
    second = GraphTechnique({}, base=base, store=store, folder=tmp_path / "derived")
    assert second.retrieve("neuroscience") == first


def test_workspace_keeps_the_graph_in_its_data_directory(tmp_path):
    with hashed_workspace(tmp_path) as workspace:
        workspace.library.create_collection("notes")
        for name in ("thomas", "stanford"):
            workspace.library.ingest_text(STANFORD[name], f"{name}.txt", "notes")
        found = workspace.search("neuroscience of Alzheimer's", "graph")
        assert {one.metadata["source_file"] for one in found.documents[:2]} == {"thomas.txt", "stanford.txt"}
        assert (workspace.folder / "graph.rows").is_file()
        elsewhere = workspace.technique_over(workspace.store, "graph")  # as over the store of a repository
        assert elsewhere.technique.rows.path is None
