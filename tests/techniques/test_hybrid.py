"""Fusion as a technique: over real searches of a workspace, and over bases that show what they are asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ragistry import Workspace, open_workspace
from ragistry.errors import InvalidConfigError, ModelConnectionError
from ragistry.techniques.hybrid import HybridTechnique
from ragistry.techniques.registry import RegisteredTechnique
from ragistry.testing.techniques import TechniqueConformance
from ragistry.trace import collect, degraded
from ragistry.types import Document, StageScore

TECHNIQUES = """
techniques:
  naive: {use: naive}
  mmr: {use: mmr, base: naive}
  fused: {use: "ragistry.techniques.hybrid:HybridTechnique", bases: [naive, mmr]}
  by_rank: {use: "ragistry.techniques.hybrid:HybridTechnique", bases: [naive, mmr], fusion: rrf}
  by_score:
    use: "ragistry.techniques.hybrid:HybridTechnique"
    bases: [naive, mmr]
    fusion: min_max
    weights: [2, 1]
"""


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    root = tmp_path_factory.mktemp("hybrid")
    (root / "config").mkdir()
    (root / "config" / "techniques.yaml").write_text(TECHNIQUES, encoding="utf-8")
    with open_workspace(root) as opened:
        for collection, topic in (("handbook", "backup"), ("garden", "soil")):
            opened.library.create_collection(collection)
            for number in range(4):
                text = f"To restore a {topic} of kind {number}, wait {number + 2} days and look at the {topic} again."
                opened.library.ingest_text(text, f"{topic}-{number}.txt", collection)
        yield opened


class TestOverRealSearches(TechniqueConformance):
    @pytest.fixture(params=["fused", "by_rank", "by_score"])
    def technique(self, workspace: Workspace, request: pytest.FixtureRequest) -> RegisteredTechnique:
        return workspace.technique(request.param)


def test_the_trace_shows_the_bases_and_the_fusion(workspace: Workspace) -> None:
    stages = {stage.name: stage for stage in workspace.search("restore a backup", "by_score").trace}
    assert list(stages) == ["by_score", "naive", "embed", "search", "mmr", "diversify", "fuse"]
    detail = stages["fuse"].detail
    assert (detail["fusion"], [side["base"] for side in detail["gate"]]) == ("min_max", ["naive", "mmr"])
    assert (stages["fuse"].documents_in, stages["fuse"].documents_out) == (16, 5)


class Ready:
    """A base with its answer in hand, that keeps what it was asked."""

    def __init__(self, kind: str, **scores: float) -> None:
        self.documents = [
            Document(f"text of {name}", {}, score, name, (StageScore(kind, "other", score),))
            for name, score in scores.items()
        ]
        self.asked: dict[str, Any] = {}

    def retrieve(self, query, *, top_k=None, where=None):
        self.asked = {"query": query, "top_k": top_k, "where": where}
        return self.documents[:top_k]


def bases() -> list[Ready]:
    return [Ready("words", a=17.3, b=16.9, c=2.0), Ready("vectors", d=0.93, b=0.9, e=0.1)]


def test_dbsf_unless_the_configuration_says_otherwise() -> None:
    best = HybridTechnique({}, bases=bases()).retrieve("q")[0]
    assert best.id == "b"
    assert [score.kind for score in best.scores] == ["other", "other", "dbsf"]
    assert best.scores[-1] == StageScore("hybrid", "dbsf", best.score)


def test_rrf_as_an_option() -> None:
    by_rank = {"fusion": "rrf", "gate": False}
    best = HybridTechnique(by_rank, bases=bases()).retrieve("q")[0]
    assert best.id == "b"
    assert best.scores == (
        StageScore("words", "other", 16.9),
        StageScore("vectors", "other", 0.9),
        StageScore("hybrid", "rrf", 2 / 62),
    )
    assert HybridTechnique({**by_rank, "k": 0}, bases=bases()).retrieve("q")[1].score == 1
    assert HybridTechnique({**by_rank, "weights": [1, 0]}, bases=bases()).retrieve("q")[0].id == "a"


def sides(words: dict[str, float], vectors: dict[str, float]) -> list[RegisteredTechnique]:
    return [
        RegisteredTechnique("words", Ready("words", **words)),
        RegisteredTechnique("vectors", Ready("vectors", **vectors)),
    ]


CLEAR = {"a": 20.0} | {f"w{number}": 3.0 - number / 10 for number in range(20)}
ALIKE = {f"v{number}": 0.9 - number / 100 for number in range(21)}


@pytest.mark.parametrize("fusion", ["dbsf", "rrf", "min_max"])
@pytest.mark.parametrize("clear_is", ["words", "vectors"])
def test_a_base_whose_scores_are_all_alike_counts_less(fusion: str, clear_is: str) -> None:
    order = (CLEAR, ALIKE) if clear_is == "words" else (ALIKE, CLEAR)
    with collect() as trace:
        found = HybridTechnique({"fusion": fusion}, bases=sides(*order)).retrieve("q")
    assert found[0].id == "a"
    gate = {side["base"]: side for side in trace.stages()[-1].detail["gate"]}
    other = "vectors" if clear_is == "words" else "words"
    assert gate[clear_is]["weight"] > 0.7
    assert gate[clear_is]["weight"] + gate[other]["weight"] == pytest.approx(1)
    assert gate[clear_is]["prominence"] > 4 > 2 > gate[other]["prominence"]


def test_the_gate_multiplies_the_weights() -> None:
    def shares(**config: Any) -> list[float]:
        with collect() as trace:
            HybridTechnique(config, bases=sides(CLEAR, ALIKE)).retrieve("q")
        return [side["weight"] for side in trace.stages()[-1].detail["gate"]]

    words, vectors = shares()
    assert shares(weights=[1, 3]) == pytest.approx(
        [words / (words + 3 * vectors), 3 * vectors / (words + 3 * vectors)], abs=0.01
    )


def test_without_the_gate_the_weights_stay() -> None:
    with collect() as trace:
        found = HybridTechnique({"gate": False}, bases=sides(CLEAR, ALIKE)).retrieve("q")
    assert trace.stages()[-1].detail == {"fusion": "dbsf"}
    assert {document.id for document in found[:3]} == {"a", "v0", "v1"}


def test_a_base_without_documents_leaves_the_other_as_it_is() -> None:
    nothing: dict[str, float] = {}
    for both in (sides(nothing, ALIKE), sides(ALIKE, nothing)):
        assert [document.id for document in HybridTechnique({}, bases=both).retrieve("q", top_k=3)] == [
            "v0",
            "v1",
            "v2",
        ]
    assert HybridTechnique({}, bases=sides(nothing, nothing)).retrieve("q") == []


@pytest.mark.parametrize("fusion", ["dbsf", "rrf", "min_max"])
def test_a_base_of_weight_0_is_not_asked(fusion: str) -> None:
    words, vectors = bases()
    technique = HybridTechnique({"weights": [0, 1], "fusion": fusion}, bases=[words, vectors])
    assert [document.id for document in technique.retrieve("q")] == ["d", "b", "e"]
    assert (words.asked, vectors.asked["query"]) == ({}, "q")


def test_the_mean_of_scaled_scores_as_an_option() -> None:
    first, second, third = HybridTechnique({"fusion": "min_max", "gate": False}, bases=bases()).retrieve("q", top_k=3)
    assert first.scores[-1].kind == "min_max"
    assert first.score == pytest.approx((14.9 / 15.3 + 0.8 / 0.83) / 2)
    assert [(second.id, second.score), (third.id, third.score)] == [("a", 0.5), ("d", 0.5)]


def test_every_base_is_asked_the_same_and_for_enough() -> None:
    words, vectors = bases()
    technique = HybridTechnique({"fetch": 30, "top_k": 2}, bases=[words, vectors])
    assert len(technique.retrieve("q", where={"page": 3})) == 2
    assert words.asked == vectors.asked == {"query": "q", "top_k": 30, "where": {"page": 3}}
    assert len(technique.retrieve("q", top_k=40)) == 5
    assert words.asked == {"query": "q", "top_k": 40, "where": None}


def test_a_base_that_fails_is_not_left_out_in_silence() -> None:
    class Down:
        def retrieve(self, query, **options):
            raise ModelConnectionError("no server")

    with pytest.raises(ModelConnectionError):
        HybridTechnique({}, bases=[*bases(), Down()]).retrieve("q")


def test_a_lesser_answer_of_a_base_is_in_the_trace() -> None:
    class Lesser(Ready):
        def retrieve(self, query, **options):
            degraded("no reranker")
            return super().retrieve(query, **options)

    technique = HybridTechnique({}, bases=[RegisteredTechnique("lesser", Lesser("words", a=1.0))])
    with collect() as trace:
        technique.retrieve("q")
    assert [(stage.name, stage.degraded) for stage in trace.stages()] == [("lesser", "no reranker"), ("fuse", "")]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"weights": [1.0]}, r"HybridTechnique: weights: \[1.0\] are 1 for 2 bases; give each base one"),
        ({"weights": [0, 0]}, r"HybridTechnique: weights: takes numbers from 0 to 1,000,000, one of them above 0, got"),
        ({"weights": [1, float("nan")]}, "weights: takes numbers from 0 to 1,000,000"),
        ({"weights": [1, -1]}, "weights: takes numbers from 0 to 1,000,000"),
        ({"fusion": "max"}, "fusion: Input should be 'dbsf', 'rrf' or 'min_max', got 'max'"),
        ({"k": -1}, "k: .*got -1"),
        ({"fetch": 0}, "fetch: .*got 0"),
        ({"rrf_k": 60}, "unknown setting 'rrf_k'; there are fetch, fusion, gate, k, top_k, weights"),
    ],
)
def test_bad_configuration_is_refused(config: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidConfigError, match=message):
        HybridTechnique(config, bases=bases())


def test_nothing_to_fuse_is_refused() -> None:
    with pytest.raises(InvalidConfigError, match="HybridTechnique: bases is empty; list at least one technique"):
        HybridTechnique({}, bases=[])
