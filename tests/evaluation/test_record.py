"""What a model answered once it answers again, to the last byte and without the model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel

from ragistry.errors import EvaluationError, MissingRecordError
from ragistry.evaluation.systems.record import model_of, recording, replaying
from ragistry.models.tei_reranker import TEIReranker
from ragistry.protocols import Embedder, Generator, Reranker, TokenCounter
from ragistry.testing.hashed import hashed_embedding
from ragistry.trace import collect, model_call, stage
from ragistry.types import EmbedderFingerprint, Role


class Answer(BaseModel):
    word: str


class Talker:
    """A generator that never says the same thing twice, and counts what it is asked."""

    model = "talker-1"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def generate(self, prompt: str, *, schema: type[BaseModel] | None = None) -> str:
        self.asked.append(prompt)
        model_call(tokens=7)
        said = f"answer {len(self.asked)}: ⟨{prompt}⟩"
        return json.dumps({"word": said}) if schema else said


class Judge:
    """A reranker."""

    def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        model_call(tokens=len(texts))
        return [1 / (3 + len(text)) for text in texts]


class HashedEmbedder:
    """An embedder without a model."""

    fingerprint = EmbedderFingerprint("test", "hashed", "", 16, query_prefix="query: ")

    def embed(self, texts: Sequence[str], *, role: Role = "document") -> Any:
        prefix = self.fingerprint.query_prefix if role == "query" else ""
        return np.array([hashed_embedding(prefix + text, 16) for text in texts], np.float32).reshape(-1, 16)


class Noisy(HashedEmbedder):
    """An embedder whose last digits depend on how many texts come together; it counts tokens, too."""

    def embed(self, texts: Sequence[str], *, role: Role = "document") -> Any:
        model_call(tokens=len(texts))
        return super().embed(texts, role=role) * np.float32(1 + 1e-6 * len(texts))

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) + 2 for text in texts]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "models.jsonl"


def test_vectors_come_back_to_the_last_byte(file: Path) -> None:
    live = recording({"embedder": Noisy()}, file)["embedder"]
    first = live.embed(["tea", "rain", "tea"])
    query = live.embed(["tea"], role="query")
    again = live.embed(["rain", "wind"])
    counts = live.count_tokens(["green tea"])
    back = replaying(file)["embedder"]
    assert isinstance(back, Embedder)
    assert back.fingerprint == Noisy().fingerprint
    assert back.embed(["tea", "rain", "tea"]).tobytes() == first.tobytes()
    assert back.embed(["wind"]).tobytes() == again[1:].tobytes()
    assert again[0].tobytes() == first[1].tobytes(), "what is recorded is not asked again"
    assert back.embed(["tea"], role="query").tobytes() == query.tobytes()
    assert back.embed([]).shape == (0, back.fingerprint.dimension)
    assert back.count_tokens(["green tea"]) == counts == [4]
    assert not isinstance(recording({"embedder": HashedEmbedder()}, file.with_name("b"))["embedder"], TokenCounter)
    first[0] = 0  # as callers may do with an embedder's answer


def test_a_generator_and_a_reranker_come_back(file: Path) -> None:
    talker = Talker()
    parts = recording({"generator": talker, "reranker": Judge(), "store": "untouched"}, file)
    assert parts["store"] == "untouched"
    plain = parts["generator"].generate("why?")
    shaped = parts["generator"].generate("why?", schema=Answer)
    assert plain != shaped
    assert parts["generator"].generate("why?") == plain
    assert talker.asked == ["why?", "why?"]
    scores = parts["reranker"].rerank("tea", ["green tea", "rain"])
    back = replaying(file)
    assert set(back) == {"generator", "reranker"}
    assert isinstance(back["generator"], Generator)
    assert isinstance(back["reranker"], Reranker)
    assert back["generator"].generate("why?") == plain
    assert back["generator"].generate("why?", schema=Answer) == shaped
    assert back["reranker"].rerank("tea", ["green tea", "rain"]) == scores == [1 / 12, 1 / 7]


def test_a_replay_reports_the_cost_of_the_recording(file: Path) -> None:
    def costs(parts: dict[str, Any]) -> list[tuple[int, int]]:
        with collect() as trace:
            with stage("embed"):
                parts["embedder"].embed(["tea", "rain"])
            with stage("generate"):
                parts["generator"].generate("why?")
        return [(stage.model_calls, stage.tokens) for stage in trace.stages() if stage.model_calls]

    recorded = costs(recording({"embedder": Noisy(), "generator": Talker()}, file))
    assert recorded == [(1, 2), (1, 7)]
    assert costs(replaying(file)) == recorded


def test_what_was_not_recorded_is_named(file: Path) -> None:
    parts = recording({"embedder": HashedEmbedder(), "generator": Talker()}, file)
    parts["embedder"].embed(["tea"])
    back = replaying(file)
    long = "what is " + "very " * 40 + "long?"
    with pytest.raises(MissingRecordError) as caught:
        back["generator"].generate(long)
    message = str(caught.value)
    assert repr(long[:80]) in message
    assert "very " * 20 not in message
    assert "prompt" in message
    assert "'talker-1'" in message
    assert "--record" in message
    with pytest.raises(MissingRecordError, match=r"to the query 'tea'"):
        back["embedder"].embed(["tea"], role="query")
    with pytest.raises(MissingRecordError, match=r"to the document 'wind' \(and 1 more\)"):
        back["embedder"].embed(["tea", "wind", "rain"])


def test_a_recording_that_was_stopped_goes_on(file: Path) -> None:
    recording({"generator": Talker()}, file)["generator"].generate("one")
    with file.open("a", encoding="utf-8") as stream:
        stream.write('{"part": "generator", "asked": {"role"')
    second = Talker()
    live = recording({"generator": second}, file)["generator"]
    assert live.generate("one") == "answer 1: ⟨one⟩"
    live.generate("two")
    assert second.asked == ["two"]
    assert replaying(file)["generator"].generate("two") == "answer 1: ⟨two⟩"


def test_another_model_needs_another_file(file: Path) -> None:
    recording({"generator": Talker()}, file)
    other = Talker()
    other.model = "talker-2"  # type: ignore[misc]
    with pytest.raises(EvaluationError, match=r"'talker-1'.*'talker-2'.*another file"):
        recording({"generator": other}, file)


def test_a_reranker_at_another_address_needs_another_file_and_a_replay_knows_which_it_was(file: Path) -> None:
    one, two = TEIReranker(base_url="http://one:80"), TEIReranker(base_url="http://two:80")
    recording({"reranker": one}, file)
    with pytest.raises(EvaluationError, match=r"http://one:80.*http://two:80.*another file"):
        recording({"reranker": two}, file)
    assert model_of(replaying(file)["reranker"]) == model_of(one) != model_of(two)
    with pytest.raises(MissingRecordError, match="of the reranker 'ragistry.models.tei_reranker:TEIReranker' to"):
        replaying(file)["reranker"].rerank("tea", ["rain"])
    one.close()
    two.close()


def test_a_file_that_is_no_recording_is_refused(file: Path) -> None:
    with pytest.raises(EvaluationError, match="no recording"):
        replaying(file)
    file.parent.mkdir()
    no_model = '{"part": "generator", "kind": "generator", "model": "one", "counts_tokens": false}'
    for line in (no_model, '{"part": "embedder"}', '"text"', "null", "[" * 100_000):
        file.write_text(f"{line}\n", encoding="utf-8")
        with pytest.raises(EvaluationError, match=r"models.jsonl:1: no record"):
            replaying(file)


def test_a_model_that_fails_leaves_no_record(file: Path) -> None:
    class Broken(Talker):
        def generate(self, prompt: str, *, schema: type[BaseModel] | None = None) -> str:
            raise EvaluationError("out of order")

    live = recording({"generator": Broken()}, file)["generator"]
    with pytest.raises(EvaluationError, match="out of order"):
        live.generate("why?")
    with pytest.raises(MissingRecordError):
        replaying(file)["generator"].generate("why?")
