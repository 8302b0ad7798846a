"""The embedded all-MiniLM-L6-v2, with its real weights."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragistry import trace
from ragistry.errors import ConfigError, EmbeddingGenerationError
from ragistry.models import minilm
from ragistry.models.minilm import MiniLMEmbedder
from ragistry.protocols import Embedder
from ragistry.testing.embedders import TEXTS, EmbedderConformance, cosines

MINILM = MiniLMEmbedder()
WORDS_THAT_FIT = 254  # "word" is one token, and [CLS] and [SEP] are two


class TestConformance(EmbedderConformance):
    @pytest.fixture
    def embedder(self) -> MiniLMEmbedder:
        return MINILM


def test_it_counts_tokens():
    assert isinstance(MINILM, Embedder)
    assert MINILM.count_tokens(["", "a happy dog", "word " * 400]) == [2, 5, 402]


@pytest.mark.parametrize(
    ("other", "cosine"),
    [("That is a happy dog", 0.695), ("That is a very happy person", 0.943), ("Today is a sunny day", 0.257)],
)
def test_cosines_are_those_of_the_model_card(other: str, cosine: float):
    left, right = MINILM.embed(["That is a happy person", other])
    assert left @ right == pytest.approx(cosine, abs=0.01)


def test_a_row_does_not_depend_on_the_other_texts_of_a_long_and_uneven_batch():
    texts = ["cat", *(f"{number} " + "The reaction of the cell to heat. " * number for number in range(0, 40, 3)), "?"]
    alone = np.concatenate([MINILM.embed([text]) for text in texts])
    assert cosines(alone, MINILM.embed(texts)).min() >= 0.999


@settings(max_examples=15, deadline=None)
@given(st.lists(st.text(max_size=60), min_size=1, max_size=5))
def test_any_text_has_the_same_row_of_unit_length_alone_and_in_a_batch(texts: list[str]):
    together = MINILM.embed(texts)
    alone = np.concatenate([MINILM.embed([text]) for text in texts])
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    assert cosines(alone, together).min() >= 0.999


def test_the_same_call_gives_the_same_bytes():
    np.testing.assert_array_equal(MINILM.embed(TEXTS), MINILM.embed(TEXTS))


def test_the_role_changes_no_vector():
    np.testing.assert_array_equal(MINILM.embed(TEXTS, role="query"), MINILM.embed(TEXTS, role="document"))


@pytest.mark.parametrize("threads", [1, 3])
def test_the_number_of_threads_changes_no_row(threads: int):
    assert cosines(MiniLMEmbedder(threads=threads).embed(TEXTS), MINILM.embed(TEXTS)).min() >= 0.999


@pytest.mark.parametrize("threads", [0, -2])
def test_fewer_than_one_thread_is_refused(threads: int):
    with pytest.raises(ConfigError, match=f"threads must be 1 or more, got {threads}"):
        MiniLMEmbedder(threads=threads)


def test_threads_that_begin_at_once_load_the_model_once(monkeypatch: pytest.MonkeyPatch):
    loads: list[int] = []
    load_session = minilm.load_session
    monkeypatch.setattr(minilm, "_sessions", {})  # none is in use
    monkeypatch.setattr(
        minilm, "load_session", lambda weights, *rest: loads.append(len(weights)) or load_session(weights, *rest)
    )
    fresh, start = MiniLMEmbedder(), Barrier(8)

    def embed(text: str) -> np.ndarray:
        start.wait()
        return fresh.embed([text])[0]

    texts = [f"text number {number}" for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        rows = np.stack(list(pool.map(embed, texts)))
    assert len(loads) == 1
    assert cosines(rows, MINILM.embed(texts)).min() >= 0.999


def test_session_has_no_threads_that_spin_after_the_work_is_done():
    options = minilm.shared_session().get_session_options()
    assert (options.intra_op_num_threads, options.inter_op_num_threads) == (1, 1)


def test_long_texts_are_reported_in_one_warning(caplog: pytest.LogCaptureFixture):
    texts = ["short", "word " * (WORDS_THAT_FIT + 1), "word " * 400, "word " * WORDS_THAT_FIT]
    with caplog.at_level(logging.WARNING, logger="ragistry"):
        vectors = MINILM.embed(texts)
    assert [record.getMessage() for record in caplog.records] == [
        "2 of 4 texts are longer than 256 tokens and were cut; longest: texts[2] with 402 tokens; use smaller chunks"
    ]
    assert cosines(vectors[1:3], vectors[[3, 3]]).min() >= 0.999, "what was cut is the end of the text"


def test_a_text_that_just_fits_is_not_reported(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING, logger="ragistry"):
        MINILM.embed(["word " * WORDS_THAT_FIT])
    assert caplog.records == []


def test_a_query_that_is_cut_is_degraded_in_the_trace():
    with trace.collect() as collected, trace.stage("embed"):
        MINILM.embed(["word " * 400], role="query")
    assert [stage.degraded for stage in collected.stages()] == ["the query has 402 tokens and was cut to 256"]


def test_the_trace_has_one_model_call_and_the_tokens_that_the_model_saw():
    with trace.collect() as collected, trace.stage("embed"):
        MINILM.embed(["a happy dog", "word " * 400, ""])
    [stage] = collected.stages()
    assert (stage.model_calls, stage.tokens, stage.degraded) == (1, 5 + 256 + 2, "")


def test_no_texts_call_no_model():
    with trace.collect() as collected, trace.stage("embed"):
        MINILM.embed([])
    assert collected.stages()[0].model_calls == 0


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["fine", None], "texts[1] is not a string: None; pass text, or an empty string"),
        (["\udfff"], r"texts[0] has half a surrogate pair, '\udfff', at character 0; decode its source with "),
        ("one", "texts must be a list of strings, got one: 'one'; write [text]"),
    ],
)
def test_bad_input_is_named_with_its_remedy(texts, message: str):
    with pytest.raises(EmbeddingGenerationError) as refused:
        MINILM.embed(texts)
    assert str(refused.value).startswith(message)
    with pytest.raises(EmbeddingGenerationError):
        MINILM.count_tokens(texts)
