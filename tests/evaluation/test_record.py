"""What a model answered once it answers again, to the last byte, at the same cost, and without the model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel

from ragistry.errors import EmbeddingGenerationError, EvaluationError, MissingRecordError
from ragistry.evaluation import recording, replaying
from ragistry.evaluation.systems.recorded_answers import CHARGED_CPU, TEXTS_AT_ONCE, cached_embedder, charged
from ragistry.protocols import Embedder, Generator, Reranker
from ragistry.testing.hashed import HashingEmbedder
from ragistry.trace import collect, model_call, stage
from ragistry.types import Role
from tests.messages import refused


class Answer(BaseModel):
    word: str


class Talker:
    """A generator that never says the same thing twice."""

    def __init__(self, model: str = "talker-1") -> None:
        self.model = model
        self.asked: list[str] = []

    def generate(self, prompt: str, *, schema: type[BaseModel] | None = None) -> str:
        if prompt == "fail":
            raise EvaluationError("out of order")
        self.asked.append(prompt)
        model_call(tokens=7)
        answer = f"answer {len(self.asked)}: ⟨{prompt}⟩"
        return json.dumps({"word": answer}) if schema else answer


class Judge:
    """A reranker at an address."""

    def __init__(self, base_url: str = "http://one:80") -> None:
        self.base_url = base_url

    def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        model_call(tokens=len(texts))
        return [1 / (3 + len(text)) for text in texts]


class Noisy(HashingEmbedder):
    """An embedder whose last digits depend on how many texts come together."""

    def __init__(self, fails_at: str = "") -> None:
        super().__init__(16, check=self.fail)
        self.fingerprint = replace(self.fingerprint, query_prefix="query: ")
        self.fails_at = fails_at

    def fail(self, texts: Sequence[str]) -> None:
        if self.fails_at in texts:
            raise EmbeddingGenerationError("the server went away")

    def embed(self, texts: Sequence[str], *, role: Role = "document") -> Any:
        model_call(tokens=len(texts))
        vectors = super().embed(texts, role=role) * np.float32(1 + 1e-6 * len(texts))
        return vectors if role == "document" else -vectors


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "models.db"


def test_vectors_come_back_to_the_last_byte(file):
    live = recording({"embedder": Noisy()}, file)["embedder"]
    first = live.embed(["tea", "rain", "tea"])
    query, again = live.embed(["tea"], role="query"), live.embed(["rain", "wind"])
    back = replaying(file)["embedder"]
    assert isinstance(back, Embedder)
    assert back.fingerprint == Noisy().fingerprint
    assert back.embed(["tea", "rain", "tea"]).tobytes() == first.tobytes()
    assert back.embed(["wind"]).tobytes() == again[1:].tobytes()
    assert again[0].tobytes() == first[1].tobytes(), "what is recorded is not asked again"
    assert back.embed(["tea"], role="query").tobytes() == query.tobytes() != first[0].tobytes()
    assert back.embed([]).shape == (0, 16)
    assert live.count_tokens(["green tea"]) == back.count_tokens(["green tea"]) == [4]


def test_generators_and_rerankers_come_back_at_the_same_cost(file):
    def asked(parts: dict[str, Any]) -> tuple[list[Any], list[tuple[int, int]]]:
        assert isinstance(parts["generator"], Generator)
        assert isinstance(parts["reranker"], Reranker)
        with collect() as trace, stage("all"):
            answers = [parts["generator"].generate("why?"), parts["generator"].generate("why?", schema=Answer)]
            answers += [parts["generator"].generate("why?"), parts["reranker"].rerank("tea", ["green tea", "rain"])]
        return answers, [(one.model_calls, one.tokens) for one in trace.stages() if one.model_calls]

    talker = Talker()
    live = recording({"generator": talker, "reranker": Judge(), "store": "untouched"}, file)
    assert live["store"] == "untouched"
    answers, costs = asked(live)
    assert answers[0] == answers[2] != answers[1]
    assert answers[3] == [1 / 12, 1 / 7]
    assert talker.asked == ["why?", "why?"]
    assert costs == [(1, 7), (1, 7), (1, 7), (1, 2)]
    assert asked(replaying(file)) == (answers, costs)


def test_what_was_not_recorded_is_named(file):
    parts = recording({"embedder": Noisy(), "generator": Talker()}, file)
    parts["embedder"].embed(["tea"])
    with refused(EvaluationError):
        parts["generator"].generate("fail")
    back = replaying(file)
    long = "what is " + "very " * 40 + "long?"
    with refused(MissingRecordError, f"'talker-1' to the prompt {long[:80]!r}"):
        back["generator"].generate(long)
    with refused(MissingRecordError):
        back["generator"].generate("fail")
    with refused(MissingRecordError, "query 'tea'"):
        back["embedder"].embed(["tea"], role="query")
    with refused(MissingRecordError, "'wind' (and 1 more)"):
        back["embedder"].embed(["tea", "wind", "rain"])


def test_recording_that_was_stopped_is_continued(file):
    recording({"generator": Talker()}, file)["generator"].generate("one")
    second = Talker()
    live = recording({"generator": second}, file)["generator"]
    assert [live.generate("one"), live.generate("two")] == ["answer 1: ⟨one⟩", "answer 1: ⟨two⟩"]
    assert second.asked == ["two"]


@pytest.mark.parametrize(
    ("part", "one", "other"),
    [
        ("generator", Talker(), Talker("talker-2")),
        ("reranker", Judge(), Judge("http://bob:hunter2@two:80")),
    ],
)
def test_another_model_needs_another_file(part, one, other, file):
    recording({part: one}, file)
    with refused(EvaluationError) as caught:
        recording({part: other}, file)
    assert "hunter2" not in str(caught.value)


def test_file_that_is_no_recording_is_refused(file):
    with refused(EvaluationError):
        replaying(file)
    file.parent.mkdir()
    file.write_bytes(b"no database" * 100)
    with refused(EvaluationError):
        replaying(file)


def test_what_was_embedded_before_a_failure_is_kept(file):
    texts = [f"text {number}" for number in range(2 * TEXTS_AT_ONCE)]
    with pytest.raises(EmbeddingGenerationError):
        cached_embedder(Noisy(fails_at=texts[-1]), file).embed(texts)
    second = Noisy()
    cached_embedder(second, file).embed(texts)
    assert second.texts == ["warm up", *texts[TEXTS_AT_ONCE:]]


class Clock:
    """A clock of wall and CPU time that moves only when something takes time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        for name in (
            "ragistry.trace.perf_counter",
            "ragistry.evaluation.systems.recorded_answers.perf_counter",
            "ragistry.evaluation.systems.recorded_answers.process_time",
        ):
            monkeypatch.setattr(name, lambda: self.now)


class Slow(Noisy):
    """An embedder that takes a quarter of a second."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock

    def embed(self, texts: Sequence[str], *, role: Role = "document") -> Any:
        self.clock.now += 0.25
        return super().embed(texts, role=role)


def test_every_retrieval_is_charged_as_if_it_embedded(file, monkeypatch):
    clock = Clock(monkeypatch)
    vectors = cached_embedder(Slow(clock), file)

    def charge(queries: list[str]) -> tuple[float, float, int, int]:
        vectors.file.charged.clear()
        start = clock.now
        with collect() as collected, stage("embed"):
            for query in queries:
                vectors.embed([query], role="query")
        stages = collected.stages()
        calls, tokens = sum(one.model_calls for one in stages), sum(one.tokens for one in stages)
        cpu_ms = (clock.now - start) * 1000 + charged(stages, CHARGED_CPU)
        return stages[0].ms + charged(stages), cpu_ms, calls, tokens

    first, second = charge(["tea"]), charge(["tea", "tea"])
    assert first == (250, 250, 1, 1), "loading the model is free"
    assert second == (250, 250, 1, 1), "a second look is free, as it is in a workspace"
