"""What a model answered once it answers again, to the last byte, at the same cost, and without the model."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest
from pydantic import BaseModel

from ragistry.config.folder import ANSWERS
from ragistry.errors import EmbeddingGenerationError, EvaluationError, ModelConnectionError
from ragistry.evaluation import as_technique, compare
from ragistry.evaluation.systems.recorded_answers import (
    CHARGED_CPU,
    TEXTS_AT_ONCE,
    AnswerStore,
    cached_embedder,
    charged,
    kept,
    kept_embedder,
)
from ragistry.library.backup import write_backup
from ragistry.protocols import Embedder, Generator, Reranker
from ragistry.testing.hashed import HashingEmbedder
from ragistry.testing.loopback import Failure, LoopbackServer
from ragistry.testing.wire import Reply
from ragistry.trace import collect, degraded, model_call, stage
from ragistry.types import Role
from tests.evaluation.small_sets import Answers, hashed_workspace, numbered, topics, with_sql
from tests.messages import check_message, refused


def count(file: Path) -> int:
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute("SELECT count(*) FROM answers").fetchone()[0]


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
    live: Any = kept_embedder(AnswerStore(file), "mine", Noisy())
    first = live.embed(["tea", "rain", "tea"])
    query, again = live.embed(["tea"], role="query"), live.embed(["rain", "wind"])
    back: Any = kept_embedder(AnswerStore(file), "mine", Noisy(fails_at="tea"))
    assert isinstance(back, Embedder)
    assert back.fingerprint == Noisy().fingerprint
    assert back.embed(["tea", "rain", "tea"]).tobytes() == first.tobytes()
    assert back.embed(["wind"]).tobytes() == again[1:].tobytes()
    assert again[0].tobytes() == first[1].tobytes(), "what is kept is not asked again"
    assert back.embed(["tea"], role="query").tobytes() == query.tobytes() != first[0].tobytes()
    assert back.embed([]).shape == (0, 16)
    assert live.count_tokens(["green tea"]) == back.count_tokens(["green tea"]) == [4]


def test_generators_and_rerankers_come_back_at_the_same_cost(file):
    def asked(talker: Talker) -> tuple[list[Any], list[tuple[int, int]]]:
        answers = AnswerStore(file)
        generator: Any = kept(answers, talker)
        reranker: Any = kept(answers, Judge())
        assert isinstance(generator, Generator)
        assert isinstance(reranker, Reranker)
        with collect() as trace, stage("all"):
            said = [generator.generate("why?"), generator.generate("why?", schema=Answer)]
            said += [generator.generate("why?"), reranker.rerank("tea", ["green tea", "rain"])]
        return said, [(one.model_calls, one.tokens) for one in trace.stages() if one.model_calls]

    first, second = Talker(), Talker()
    said, costs = asked(first)
    assert said[0] == said[2] != said[1]
    assert said[3] == [1 / 12, 1 / 7]
    assert first.asked == ["why?", "why?"]
    assert costs == [(1, 7), (1, 7), (1, 7), (1, 2)]
    assert asked(second) == (said, costs)
    assert second.asked == []


def test_failed_answer_is_not_kept_and_the_file_has_no_question(file):
    generator: Any = kept(AnswerStore(file), Judge())
    assert generator.rerank("a very secret question", ["a text"]) == [1 / 9]
    talker: Any = kept(AnswerStore(file), Talker())
    for _ in range(2):
        with refused(EvaluationError):
            talker.generate("fail")
    assert count(file) == 1
    content = file.read_bytes()
    assert not any(text in content for text in (b"secret", b"question", b"fail", b"a text", b"http"))


def test_degraded_answer_is_reported_again(file):
    class Cut(Judge):
        def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
            degraded("a text was cut")
            return super().rerank(query, texts)

    for _ in range(2):
        reranker: Any = kept(AnswerStore(file), Cut())
        with collect() as trace, stage("rerank"):
            reranker.rerank("tea", ["rain"])
        assert [one.degraded for one in trace.stages() if one.degraded][-1:] == ["a text was cut"]


def test_another_model_or_setting_is_asked(file):
    one, other = Talker(), Talker("talker-2")
    said = [kept(AnswerStore(file), talker).generate("one") for talker in (one, other)]  # type: ignore[attr-defined]
    assert one.asked == other.asked == ["one"]
    assert said == ["answer 1: ⟨one⟩"] * 2
    kept(AnswerStore(file), Judge("http://two:80")).rerank("tea", ["rain"])  # type: ignore[attr-defined]
    kept(AnswerStore(file), Judge("http://bob:hunter2@two:80")).rerank("tea", ["rain"])  # type: ignore[attr-defined]
    assert count(file) == 3, "a password does not distinguish models"


def test_embedder_that_cannot_be_reached_answers_from_the_file(file):
    class Gone:
        @property
        def fingerprint(self) -> Any:
            raise ModelConnectionError("no server; start it")

    gone: Any = Gone()
    with refused(ModelConnectionError):
        kept_embedder(AnswerStore(file), "ollama:mine", gone)
    live: Any = kept_embedder(AnswerStore(file), "ollama:mine", Noisy())
    first = live.embed(["tea"])
    back: Any = kept_embedder(AnswerStore(file), "ollama:mine", gone)
    assert back.embed(["tea"]).tobytes() == first.tobytes()
    with refused(ModelConnectionError):
        kept_embedder(AnswerStore(file), "ollama:other", gone)


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b"no database" * 100),
        lambda path: path.write_bytes(path.read_bytes()[:5000]),
        lambda path: path.write_bytes(path.read_bytes()[:4096] + b"\1" * (path.stat().st_size - 4096)),
        with_sql("PRAGMA user_version = 99"),
        with_sql("DROP TABLE models"),
        with_sql("CREATE TABLE notes (text)"),
    ],
)
def test_file_that_is_damaged_or_of_another_version_is_named_and_left_alone(file, damage):
    talker: Any = kept_embedder(AnswerStore(file), "mine", Noisy())
    talker.embed([f"text {number}" for number in range(200)])
    damage(file)
    before = file.read_bytes()
    with refused(EvaluationError, str(file)):
        AnswerStore(file)
    assert file.read_bytes() == before


KILLED = """
import os, sys
from ragistry.evaluation.systems.recorded_answers import AnswerStore, kept
from tests.evaluation.test_answers import Judge

class Killing(Judge):
    def rerank(self, query, texts):
        if query == "query 7":
            os.kill(os.getpid(), 9)
        return super().rerank(query, texts)

Killing.__module__, Killing.__qualname__ = Judge.__module__, Judge.__qualname__
reranker = kept(AnswerStore(sys.argv[1]), Killing())
for number in range(20):
    reranker.rerank(f"query {number}", ["a"])
"""


def test_killed_process_keeps_every_answer(file):
    assert subprocess.run([sys.executable, "-c", KILLED, str(file)], check=False).returncode == -9
    asked: list[str] = []

    class Counting(Judge):
        def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
            asked.append(query)
            return super().rerank(query, texts)

    Counting.__module__, Counting.__qualname__ = Judge.__module__, Judge.__qualname__
    again: Any = kept(AnswerStore(file), Counting())
    for number in range(20):
        again.rerank(f"query {number}", ["a"])
    assert asked == [f"query {number}" for number in range(7, 20)]


CALLS: list[str] = []


def their_search(query: str, top_k: int) -> list[tuple[str, float]]:
    """A function of another program."""
    CALLS.append(query)
    return [(f"d{query.split()[-1]}", 1.5), ("d0", 1.0)][:top_k]


def test_function_is_asked_once(file):
    options: dict[str, Any] = {"progress": False, "answers": file}
    CALLS.clear()
    first = compare({"theirs": as_technique(their_search)}, numbered(8), ["RR@10"], **options)
    asked = len(CALLS)
    assert asked == len(set(CALLS)) * 2 == 16, "for a search, and for the ranking"
    again = compare({"theirs": as_technique(their_search)}, numbered(8), ["RR@10"], **options)
    assert len(CALLS) == asked
    assert again.runs == first.runs
    theirs = [one.techniques["theirs"] for one in (first, again)]
    assert theirs[0].measures == theirs[1].measures
    assert theirs[0].calls == theirs[1].calls == 0, "it is no model"
    compare({"theirs": as_technique(their_search)}, numbered(8), ["RR@10"], answers=False, progress=False)
    assert len(CALLS) > asked, "asked anew"


class Endpoint(LoopbackServer):
    """A search endpoint over `numbered` that can be out of order."""

    broken = False

    def answer(self, request: Any, flaw: Failure | None) -> Reply:
        if self.broken and request.body["query"] == "query 3":
            return Reply(400, {"detail": "out of order"})
        return Reply(200, their_search(request.body["query"], request.body["top_k"]))

    def refusal(self, status: int) -> Any:
        return {"detail": f"refused with {status}"}


def test_endpoint_is_asked_once_and_again_where_it_failed(file):
    options: dict[str, Any] = {"progress": False, "answers": file}
    with Endpoint() as server:
        theirs = {"theirs": as_technique(f"{server.url}/search", api_key="k3y")}
        server.broken = True
        broken = compare(theirs, numbered(8), ["RR@10"], **options)
        check_message(broken.failures["theirs"].error, "out of order")
        before = [request.body for request in server.requests]
        server.broken = False
        first = compare(theirs, numbered(8), ["RR@10"], **options)
        after = [request.body for request in server.requests[len(before) :]]
        answered = [body for body in before if body["query"] != "query 3"]
        assert answered
        assert not [body for body in after if body in answered], "what it answered is kept"
        assert len([body for body in after if body["query"] == "query 3"]) == 2, "a failure is not"
        asked = len(server.requests)
        again = compare(theirs, numbered(8), ["RR@10"], **options)
        assert len(server.requests) == asked, "nothing is asked twice"
        assert again.runs == first.runs
        other = {"theirs": as_technique(f"{server.url}/other")}
        compare(other, numbered(8), ["RR@10"], **options)
        assert len(server.requests) == asked + 16, "another address is another contender"
        with_sql("PRAGMA user_version = 99")(file)
        with refused(EvaluationError, str(file), "99"):
            compare(theirs, numbered(8), ["RR@10"], **options)
        assert len(server.requests) == asked + 16


def test_function_with_a_state_of_its_own_is_always_asked(file):
    for rank, expected in ((1, 1.0), (2, 0.5)):
        search = Answers(lambda _, rank=rank: rank).retrieve

        def closure(query: str, top_k: int, search: Any = search) -> Any:
            return search(query, top_k=top_k)

        given = {"method": as_technique(search), "closure": as_technique(closure)}
        result = compare(given, numbered(5), ["RR@10"], answers=file, progress=False)
        assert [one.measures["RR@10"].mean for one in result.techniques.values()] == [expected] * 2


def test_answers_of_the_workspace_go_with_what_they_read(tmp_path):
    with hashed_workspace(tmp_path) as workspace:
        file = tmp_path / ".ragistry" / ANSWERS
        library = workspace.library
        library.create_collection("notes")
        library.create_collection("others")

        def compared() -> bool:
            compare(["naive"], topics(), ["RR@10"], workspace=workspace, progress=False)
            return file.exists()

        for name in ("a.md", "b.md", "c.md", "d.md"):
            library.ingest_text(f"A text of {name}.", name, "notes")
        assert compared()
        library.ingest_text("One more text.", "e.md", "notes")
        assert file.exists(), "nothing was erased"
        for erase in (
            lambda: library.delete_source("a.md", "notes"),
            lambda: library.delete_sources(["b.md"], "notes"),
            lambda: library.ingest_text("Another text.", "c.md", "notes"),
            lambda: library.delete_collection("notes"),
        ):
            assert compared()
            erase()
            assert not file.exists()
        assert compared()


def test_backup_has_no_answers(tmp_path):
    (tmp_path / "home").mkdir()
    with hashed_workspace(tmp_path / "home") as workspace:
        compare(["naive"], topics(), ["RR@10"], workspace=workspace, progress=False)
        assert (workspace.root / ".ragistry" / ANSWERS).exists()
        write_backup(tmp_path / "b.zip", workspace.root, workspace.store, tmp_path / "none")
    assert not any("answers" in name for name in ZipFile(tmp_path / "b.zip").namelist())


def test_what_was_embedded_before_a_failure_is_kept(file):
    texts = [f"text {number}" for number in range(2 * TEXTS_AT_ONCE)]
    with pytest.raises(EmbeddingGenerationError):
        cached_embedder(Noisy(fails_at=texts[-1]), file).embed(texts)
    second = Noisy()
    cached_embedder(second, file).embed(texts)
    assert second.texts == ["warm up", *texts[TEXTS_AT_ONCE:]]


def test_every_retrieval_is_charged_as_if_it_embedded(file, monkeypatch):
    now = [0.0]
    recorded = "ragistry.evaluation.systems.recorded_answers"
    for name in ("ragistry.trace.perf_counter", f"{recorded}.perf_counter", f"{recorded}.process_time"):
        monkeypatch.setattr(name, lambda: now[0])

    def slow(texts: Sequence[str]) -> None:
        now[0] += 0.25
        model_call(tokens=len(texts))

    vectors = cached_embedder(HashingEmbedder(16, check=slow), file)
    for queries in (["tea"], ["tea", "tea"]):
        vectors.file.charged.clear()
        start = now[0]
        with collect() as collected, stage("embed"):
            for query in queries:
                vectors.embed([query], role="query")
        stages = collected.stages()
        cost = sum(one.model_calls for one in stages), sum(one.tokens for one in stages)
        wall_ms, cpu_ms = stages[0].ms + charged(stages), (now[0] - start) * 1000 + charged(stages, CHARGED_CPU)
        assert (wall_ms, cpu_ms, *cost) == (250, 250, 1, 1), "loading the model is free, and so is a second look"
