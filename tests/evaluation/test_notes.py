"""What a reader must know beside the figures stands in every report."""

from __future__ import annotations

import json
from pathlib import Path
from time import perf_counter, sleep
from types import SimpleNamespace
from typing import Any

import pytest

from ragistry import open_workspace
from ragistry.errors import EvaluationError
from ragistry.evaluation import Comparison, Dataset, Text, compare, markdown, page
from ragistry.evaluation.notes import notes
from ragistry.evaluation.record import recording, replaying
from ragistry.evaluation.vectors import kept
from ragistry.testing.hashed import hashed_embedding
from ragistry.trace import collect, degraded, stage
from ragistry.types import Document, EmbedderFingerprint
from tests.evaluation.small_sets import Answers, first, numbered, topics

SLOW = 0.03
"""Seconds that a call of a slow model takes, or a text of a slow embedder; more on a machine that is busy."""


class SlowGenerator:
    model = "slow"

    def generate(self, prompt: str, *, schema: Any = None) -> str:
        sleep(SLOW)
        return prompt


class SlowEmbedder:
    fingerprint = EmbedderFingerprint("test", "slow", "", 8)

    def embed(self, texts: Any, *, role: str = "document") -> Any:
        import numpy as np

        sleep(SLOW * len(texts))
        return np.array([hashed_embedding(text, 8) for text in texts], np.float32).reshape(-1, 8)


class Asking(Answers):
    """Asks a generator twice a query, the second time what it asked already."""

    def __init__(self, config: dict, *, generator: Any) -> None:
        super().__init__(first)
        self.generator = generator

    def retrieve(self, query: str, **options: Any) -> list[Document]:
        with stage("think"):
            self.generator.generate(query)
        with stage("judge"):
            self.generator.generate(query)
        return super().retrieve(query, **options)


class Degraded(Answers):
    def retrieve(self, query: str, **options: Any) -> list[Document]:
        with stage("rerank"):
            if query != "query 0":
                degraded("the reranker was down")
        return super().retrieve(query, **options)


def reports(comparison: Comparison) -> list[str]:
    text = markdown(comparison).replace("\\", "")
    return [text, page(comparison).replace("&#x27;", "'"), *([] if "#" not in text else [" ".join(notes(comparison))])]


def test_what_was_degraded_is_in_every_report() -> None:
    comparison = compare({"a": Degraded(first), "b": Answers(first)}, numbered(4))
    assert all("a was degraded on 3 of 4 queries: the reranker was down." in text for text in reports(comparison))
    assert not [note for note in notes(comparison) if note.startswith("b was degraded")]


def test_results_outside_of_the_corpus_are_counted_in_every_report() -> None:
    comparison = compare({"a": Answers(first, documents=2), "b": Answers(lambda _: 1, documents=0)}, numbered(4))
    said = "a returned 2 documents that are not in the corpus (8 of 12 results), such as 'x0'; they count as not"
    assert all(said in text for text in reports(comparison))
    assert comparison.to_json()["techniques"]["a"]["outside"] == {
        "documents": 2,
        "results": 8,
        "of": 12,
        "example": "x0",
    }
    assert comparison.techniques["b"].outside is None
    assert comparison.to_json()["notes"] == notes(comparison)


def test_documents_that_the_embedder_does_not_see_whole_are_in_every_report(tmp_path: Path) -> None:
    corpus = [Text(f"d{number}", "", "A glacier flows downhill. " * (200 if number < 2 else 1)) for number in range(10)]
    queries, qrels = {"q": "ice that moves"}, {"q": {"d0": 1}}

    def compared(documents: list[Text]) -> Comparison:
        with open_workspace(tmp_path) as workspace:
            return compare(["naive"], Dataset("ice", documents, queries, qrels), workspace=workspace)

    said = "ATTENTION: 2 of 10 chunks (document) are longer than the 256 tokens that the embedder takes in"
    comparison = compared(corpus)
    assert all(said in text for text in reports(comparison))
    assert comparison.to_json()["notes"][0].startswith(said)
    assert notes(compared([*corpus, *(Text(f"e{number}", "", "Short.") for number in range(10))])) == []


def test_a_replay_charges_each_call_what_it_took(tmp_path: Path) -> None:
    file = tmp_path / "models.jsonl"

    def asked(parts: dict[str, Any]) -> float:
        with collect() as trace, stage("technique"):
            parts["generator"].generate("why?")
        return sum(one.detail.get("charged_ms", 0.0) for one in trace.stages())

    live = recording({"generator": SlowGenerator()}, file)
    assert asked(live) == 0, "the clock shows it"
    assert asked(live) >= SLOW * 1000, "what is asked again is not free"
    assert asked(replaying(file)) >= SLOW * 1000


def test_a_replayed_embedder_costs_each_text_its_share(tmp_path: Path) -> None:
    file = tmp_path / "models.jsonl"
    texts = ["warm up", "tea", "rain", "wind"]
    live, start = recording({"embedder": SlowEmbedder()}, file)["embedder"], perf_counter()
    live.embed(texts)
    took = perf_counter() - start
    vectors, start = kept(replaying(file)["embedder"], tmp_path / "vectors.db"), perf_counter()
    vectors.embed(texts)
    took += perf_counter() - start
    two, four = vectors.cost(texts[:2])[0], vectors.cost(texts)[0]
    vectors.close()
    assert 4 * SLOW <= four <= took, "the texts share what the call took, and what it took to replay"
    assert two == pytest.approx(four / 2)


def test_a_replayed_comparison_has_the_times_of_the_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_workspace(tmp_path) as workspace:
        monkeypatch.setitem(workspace._parts, "generator", SlowGenerator())
        monkeypatch.setitem(workspace._parts, "embedder", SlowEmbedder())
        options = {"dataset": numbered(3), "workspace": workspace}
        live = compare({"a": Asking}, **options, record=tmp_path / "models.jsonl").techniques["a"]
        again = compare({"a": Asking}, **options, replay=tmp_path / "models.jsonl")
    replayed = again.techniques["a"]
    assert live.latency_ms.p50 >= 2 * SLOW * 1000
    assert replayed.latency_ms.p50 >= 2 * SLOW * 1000
    assert replayed.stages["think"] >= SLOW * 1000
    assert replayed.stages["judge"] >= SLOW * 1000
    assert all("Replayed: the models' answers come from models.jsonl" in text for text in reports(again))


def test_damaged_vectors_are_told_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "vectors.db").write_bytes(b"no database" * 1_000)
    with pytest.raises(EvaluationError, match=r"vectors.db' are damaged: .*; delete that file, and they are made anew"):
        kept(SlowEmbedder(), tmp_path / "vectors.db")


def test_an_index_that_lost_its_card_is_made_anew(tmp_path: Path) -> None:
    with open_workspace(tmp_path) as workspace:
        before = compare("bm25", topics(), workspace=workspace, cache=tmp_path / "cache").runs
        [card] = tmp_path.glob("cache/topics-*/index.json")
        card.write_text("{")
        assert compare("bm25", topics(), workspace=workspace, cache=tmp_path / "cache").runs == before
        assert json.loads(card.read_text())["documents"] == 10


@pytest.mark.parametrize("score", ["0.5", None, SimpleNamespace()])
def test_a_score_that_is_no_number_names_technique_and_document(score: Any) -> None:
    class Odd(Answers):
        def retrieve(self, query: str, **_: object) -> list[Document]:
            return [Document("", {}, score, "d0")]

    failure = compare({"odd": Odd(first)}, numbered(3)).failures["odd"].error
    assert failure.startswith("TechniqueError: technique 'odd' gave ")
    assert f"'d0' the score {score!r}; " in failure
