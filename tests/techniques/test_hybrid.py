"""Fusion as a technique: over bases that show what they are asked, and while a library changes between two searches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from ragistry import Workspace
from ragistry.errors import InvalidConfigError
from ragistry.stores.local import LocalStore, rows
from ragistry.stores.local.vectors import VectorIndex
from ragistry.techniques.bm25 import BM25Technique
from ragistry.techniques.hybrid import HybridTechnique
from ragistry.techniques.naive import NaiveRAGTechnique
from ragistry.techniques.registered import RegisteredTechnique
from ragistry.testing.hashed import HashingEmbedder
from ragistry.types import Document, EmbeddedChunk, StageScore
from tests.evaluation.small_sets import hashed_workspace
from tests.messages import refused
from tests.techniques.doubles import Ready, ids, scored, traced

EMBEDDER = HashingEmbedder()
every_fusion = pytest.mark.parametrize("fusion", ["dbsf", "rrf", "min_max"])


def bases() -> list[Ready]:
    return [Ready(scored(stage="words", a=17.3, b=16.9, c=2.0)), Ready(scored(stage="vectors", d=0.93, b=0.9, e=0.1))]


def fused(bases: Any, query: str = "q", top_k: int | None = None, **config: Any) -> list[Document]:
    return HybridTechnique(config, bases=bases).retrieve(query, top_k=top_k)


@pytest.mark.parametrize(
    ("config", "kind", "score"),
    [
        ({}, "dbsf", None),
        ({"fusion": "rrf", "gate": False}, "rrf", 2 / 62),
        ({"fusion": "min_max", "gate": False}, "min_max", (14.9 / 15.3 + 0.8 / 0.83) / 2),
    ],
)
def test_what_both_bases_find_is_best_in_every_fusion(config, kind, score):
    best = fused(bases(), **config)[0]
    words, vectors = StageScore("words", "other", 16.9), StageScore("vectors", "other", 0.9)
    assert (best.id, best.scores) == ("b", (words, vectors, StageScore("hybrid", kind, best.score)))
    assert score is None or best.score == pytest.approx(score)


def test_weights_and_k_reach_the_fusion():
    assert fused(bases(), fusion="rrf", gate=False, k=0)[1].score == 1
    assert fused(bases(), fusion="rrf", gate=False, weights=[2, 1])[0].score == 3 / 62


# The gate

CLEAR = {"a": 20.0} | {f"w{number}": 3.0 - number / 10 for number in range(20)}
ALIKE = {f"v{number}": 0.9 - number / 100 for number in range(21)}


def sides(words: dict[str, float], vectors: dict[str, float]) -> list[RegisteredTechnique]:
    named = {"words": words, "vectors": vectors}
    return [RegisteredTechnique(name, Ready(scored(stage=name, **scores))) for name, scores in named.items()]


@every_fusion
@pytest.mark.parametrize("clear_is", ["words", "vectors"])
def test_base_whose_scores_are_all_alike_counts_less(fusion, clear_is):
    order = (CLEAR, ALIKE) if clear_is == "words" else (ALIKE, CLEAR)
    found, stages = traced(HybridTechnique({"fusion": fusion}, bases=sides(*order)), "q")
    assert found[0].id == "a"
    detail = stages[-1].detail
    gate = {side["base"]: side for side in detail["gate"]}
    other = "vectors" if clear_is == "words" else "words"
    assert gate[clear_is]["weight"] > 0.7
    assert gate[clear_is]["weight"] + gate[other]["weight"] == pytest.approx(1)
    assert gate[clear_is]["prominence"] > 4 > 2 > gate[other]["prominence"]
    assert (detail["fusion"], stages[-1].documents_in, stages[-1].documents_out) == (fusion, 42, 5)


def test_gate_multiplies_the_weights():
    def shares(**config: Any) -> list[float]:
        _, stages = traced(HybridTechnique(config, bases=sides(CLEAR, ALIKE)), "q")
        return [side["weight"] for side in stages[-1].detail["gate"]]

    words, vectors = shares()
    total = words + 3 * vectors
    assert shares(weights=[1, 3]) == pytest.approx([words / total, 3 * vectors / total], abs=0.01)


def test_without_the_gate_the_weights_stay():
    found, stages = traced(HybridTechnique({"gate": False}, bases=sides(CLEAR, ALIKE)), "q")
    assert stages[-1].detail == {"fusion": "dbsf"}
    assert {document.id for document in found[:3]} == {"a", "v0", "v1"}


def test_base_without_documents_leaves_the_other_as_it_is():
    for both in (sides({}, ALIKE), sides(ALIKE, {})):
        assert ids(fused(both, top_k=3)) == ["v0", "v1", "v2"]
    assert fused(sides({}, {})) == []


# What the bases are asked


@every_fusion
def test_base_of_weight_0_is_not_asked(fusion):
    words, vectors = bases()
    assert ids(fused([words, vectors], weights=[0, 1], fusion=fusion)) == ["d", "b", "e"]
    assert (words.queries, vectors.queries) == ([], ["q"])


def test_every_base_is_asked_the_same_and_for_enough():
    words, vectors = bases()
    technique = HybridTechnique({"fetch": 30, "top_k": 2}, bases=[words, vectors])
    assert len(technique.retrieve("q", where={"page": 3})) == 2
    assert words.asked == vectors.asked == [{"query": "q", "top_k": 30, "where": {"page": {"$eq": 3}}}]
    assert len(technique.retrieve("q", top_k=40)) == 5
    assert words.asked[1] == {"query": "q", "top_k": 60, "where": None}, "whole parts of 30"


def test_nothing_to_fuse_is_refused():
    with refused(InvalidConfigError, "bases"):
        fused([])


# Bases that rank without reading texts


class Unranked:
    """A store whose chunks cannot be ranked without their texts."""

    def __init__(self, store: LocalStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        if name == "rank":
            raise AttributeError(name)
        return getattr(self._store, name)


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStore]:
    """Sixty sources of a chunk; of every four, two have the same text."""
    texts = [f"Apples of kind {number // 2 if number % 4 < 2 else number} grow on old trees." for number in range(60)]
    with closing(LocalStore(tmp_path_factory.mktemp("shelf"))) as store:
        store.use_embedder(EMBEDDER.fingerprint)
        for number, (text, vector) in enumerate(zip(texts, EMBEDDER.embed(texts), strict=True)):
            place = {"collection": "c", "source_file": f"{number}.md", "chunk_index": 0, "source_hash": "1"}
            store.replace_source("c", f"{number}.md", [EmbeddedChunk(text, {**place, "even": number % 2 == 0}, vector)])
        yield store


def over(store: Any, **config: Any) -> HybridTechnique:
    bases = [NaiveRAGTechnique({}, store=store, embedder=EMBEDDER), BM25Technique({}, store=store)]
    return HybridTechnique(config, bases=bases)


@every_fusion
@pytest.mark.parametrize("fetch", [7, 100])
@pytest.mark.parametrize("where", [None, {"even": True}])
def test_ranking_by_keys_finds_what_reading_all_texts_finds(shelf, fusion, fetch, where):
    by_keys, by_texts = over(shelf, fusion=fusion, fetch=fetch), over(Unranked(shelf), fusion=fusion, fetch=fetch)
    for top_k in (1, 3, 25, 1000):
        assert by_keys.retrieve("kind 9 apples", top_k=top_k, where=where) == by_texts.retrieve(
            "kind 9 apples", top_k=top_k, where=where
        )


def test_only_the_texts_of_results_are_read(shelf, monkeypatch):
    read: list[int] = []
    documents = rows.documents
    monkeypatch.setattr(rows, "documents", lambda at, keys: read.extend(keys) or documents(at, keys))
    assert len(over(shelf).retrieve("kind 17 apples", top_k=3)) == 3
    assert 3 <= len(read) <= 5, "the results, and those with the score of the last"


def test_store_that_changes_before_the_texts_are_read_is_searched_again(shelf, monkeypatch):
    rank = shelf.rank

    def meanwhile(*arguments: Any, **options: Any) -> Any:
        ranking = rank(*arguments, **options)
        shelf.replace_source("c", "59.md", [])
        return ranking

    monkeypatch.setattr(shelf, "rank", meanwhile)
    found = over(shelf).retrieve("kind 59 apples", top_k=100)
    assert len(found) == 59
    assert "59.md" not in {document.metadata["source_file"] for document in found}


def test_write_between_two_bases_is_not_seen_by_one_of_them(shelf, monkeypatch):
    texts = iter(["Pears of kind 1 grow on young trees.", "Plums of kind 2 grow on tall trees."])
    best = VectorIndex.nearest

    def write_after(*arguments: Any) -> Any:
        """Replace the text of a source when its vector was found, and before its words are."""
        found = best(*arguments)
        if text := next(texts, None):
            place = {"collection": "c", "source_file": "58.md", "chunk_index": 0, "source_hash": text}
            shelf.replace_source("c", "58.md", [EmbeddedChunk(text, place, EMBEDDER.embed([text])[0])])
        return found

    monkeypatch.setattr(VectorIndex, "nearest", write_after)
    by_vectors_and_words = {
        document.content: [score.stage for score in document.scores] == ["dense", "bm25", "hybrid"]
        for document in over(shelf).retrieve("plums trees", top_k=100)
    }
    assert by_vectors_and_words["Plums of kind 2 grow on tall trees."]
    assert all(by_vectors_and_words.values())
    assert not [content for content in by_vectors_and_words if content.startswith("Pears")]


# A collection that is renamed, or a source that is moved, between the searches of two bases


class Interrupted:
    """A base, and what happens to the library before it searches."""

    def __init__(self, base: Any, happens: Callable[[], object]) -> None:
        self.base, self.happens = base, happens

    def retrieve(self, query: str, **options: Any) -> list[Document]:
        self.happens()
        found: list[Document] = self.base.retrieve(query, **options)
        return found


@pytest.fixture(scope="module")
def orchard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with hashed_workspace(tmp_path_factory.mktemp("orchard")) as workspace:
        for name in ("trees", "fruit"):
            workspace.library.create_collection(name)
        for number in range(3):
            workspace.library.ingest_text(f"File {number} has words about apples.", f"{number}.txt", "trees")
        yield workspace


def sources_found(workspace: Workspace, happens: Callable[[], object], fusion: str) -> list[tuple[str, str]]:
    bases = [workspace.technique("naive"), Interrupted(workspace.technique("bm25"), happens)]
    documents = fused(bases, "words about apples", top_k=100, fusion=fusion)
    assert all(len(document.scores) == 3 for document in documents)  # by vectors, by words, and fused
    stored = workspace.store.get(ids(documents))
    assert [document.content for document in stored] == [document.content for document in documents]
    return sorted((document.metadata["collection"], document.metadata["source_file"]) for document in documents)


@every_fusion
def test_chunks_that_move_between_two_searches_are_found_once_under_their_new_name(orchard, fusion):
    library = orchard.library
    found = sources_found(orchard, lambda: library.rename_collection("trees", "orchard"), fusion)
    assert found == [("orchard", f"{number}.txt") for number in range(3)]
    found = sources_found(orchard, lambda: library.move_source("0.txt", "orchard", "fruit"), fusion)
    assert found == [("fruit", "0.txt"), ("orchard", "1.txt"), ("orchard", "2.txt")]
    library.ingest_text("File 0 has words about apples.", "0.txt", "orchard")
    found = sources_found(orchard, lambda: None, fusion)
    assert found == [("fruit", "0.txt"), *(("orchard", f"{number}.txt") for number in range(3))], "both copies"
    library.delete_source("0.txt", "fruit")
    library.rename_collection("orchard", "trees")


def test_metadata_of_a_source_may_be_lists_in_chunks_of_no_library():
    metadatas: list[dict[str, Any]] = [
        {"source_file": ["a.md", "b.md"]},
        {"source_file": "a.md", "chunk_index": [0]},
        {"source_file": "a.md", "chunk_index": 0, "source_hash": ["x"]},
        {"source_file": "a.md", "chunk_index": 0, "source_hash": ["x"]},
    ]
    documents = [Document(f"text {n}", metadata, 0.5 - n / 10, str(n)) for n, metadata in enumerate(metadatas)]
    assert sorted(ids(fused([Ready(documents), Ready(documents)]))) == ["0", "1", "2", "3"]
