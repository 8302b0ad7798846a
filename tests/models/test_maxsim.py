"""MaxSim over MiniLM's token vectors: the formula, its 8 bits, its cache and its limits."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from ragistry.errors import EmbeddingGenerationError
from ragistry.models.maxsim import MaxSimReranker, in_8_bits, max_similarity
from ragistry.models.minilm import MiniLMEmbedder, shared_session
from ragistry.protocols import Reranker
from ragistry.trace import collect, stage
from tests.messages import refused

MINILM = MiniLMEmbedder()
TEXTS = ["a cold front brings rain", "green tea is steeped briefly", "snow falls in winter, and rain in autumn"]
QUERY = "when will it rain?"


def calls(reranker: MaxSimReranker, query: str, texts: list[str]) -> tuple[list[float], int, int]:
    """Scores, model calls and tokens."""
    with collect() as trace, stage("rerank"):
        scores = reranker.rerank(query, texts)
    [done] = trace.stages()
    return scores, done.model_calls, done.tokens


def test_the_score_is_the_sum_of_the_best_cosines() -> None:
    query = np.eye(3, dtype=np.float32)[:2]
    text = np.array([[0.6, 0.8, 0], [0, 0, 1], [1, 0, 0]], dtype=np.float32)
    assert max_similarity(query, in_8_bits(text)) == pytest.approx(1 + 0.8, abs=0.005)


def test_scores_are_those_of_the_full_token_vectors() -> None:
    scores = MaxSimReranker().rerank(QUERY, TEXTS)
    [query], texts = MINILM.token_vectors([QUERY]), MINILM.token_vectors(TEXTS)
    assert scores == pytest.approx([float((rows @ query.T).max(axis=0).sum()) for rows in texts], abs=0.005)
    assert scores[0] > scores[1]
    assert isinstance(MaxSimReranker(), Reranker)


def test_token_vectors_are_of_unit_length_without_special_tokens_and_padding() -> None:
    alone = [MINILM.token_vectors([text])[0] for text in TEXTS]
    together = MINILM.token_vectors(TEXTS)  # padded to the longest
    assert [len(rows) for rows in together] == [count - 2 for count in MINILM.count_tokens(TEXTS)]
    for one, other in zip(alone, together, strict=True):
        assert np.linalg.norm(one, axis=1) == pytest.approx(1, abs=1e-5)
        assert np.abs(one - other).max() < 1e-4


def test_the_same_text_scores_one_for_each_token_of_the_query() -> None:
    [tokens] = MINILM.count_tokens([QUERY])
    [score] = MaxSimReranker().rerank(QUERY, [QUERY])
    assert score == pytest.approx(tokens - 2, abs=0.02)


def test_a_text_is_computed_once_while_there_is_memory() -> None:
    reranker = MaxSimReranker()
    first, *cost = calls(reranker, QUERY, TEXTS)
    assert cost == [2, sum(MINILM.count_tokens([QUERY, *TEXTS]))]
    again, *cost = calls(reranker, QUERY, TEXTS * 2)
    assert (again, cost) == (first * 2, [1, MINILM.count_tokens([QUERY])[0]])
    reranker.close()
    assert calls(reranker, QUERY, TEXTS)[1] == 2


def test_without_memory_everything_is_computed_again_and_scores_alike() -> None:
    reranker = MaxSimReranker(memory=0)
    first, *asked = calls(reranker, QUERY, TEXTS)
    assert calls(reranker, QUERY, TEXTS) == (pytest.approx(first), *asked)
    assert MaxSimReranker().rerank(QUERY, TEXTS) == pytest.approx(first)


def test_memory_is_bounded_and_the_oldest_texts_go_first() -> None:
    reranker = MaxSimReranker(memory=1)  # 2,577 tokens
    texts = [f"{number} {'word ' * 240}" for number in range(12)]
    reranker.rerank(QUERY, texts)
    assert calls(reranker, QUERY, texts[-3:])[1] == 1
    assert calls(reranker, QUERY, texts[:1])[1] == 2


@pytest.mark.parametrize("query", ["rain " * 40, "rain " * 5_000])
def test_a_long_query_is_logged_and_traced(query: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), collect() as trace, stage("rerank"):
        assert len(MaxSimReranker().rerank(query, TEXTS)) == 3
    assert "more than 32 tokens" in trace.stages()[0].degraded
    assert "more than 32 tokens" in caplog.text


@pytest.mark.parametrize("query", ["rain " * 32, QUERY])
def test_a_short_query_is_not(query: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        MaxSimReranker().rerank(query, TEXTS)
    assert not caplog.text


@pytest.mark.parametrize("text", ["", "\x00 \n", "日本語 العربية 🙂", "x" * 20_000])
def test_odd_texts_have_finite_scores(text: str) -> None:
    assert np.isfinite(MaxSimReranker().rerank(text, [text, *TEXTS])).all()
    assert np.isfinite(MaxSimReranker().rerank(QUERY, [text, *TEXTS])).all()


def test_no_texts_have_no_scores() -> None:
    assert MaxSimReranker().rerank(QUERY, []) == []


def test_half_a_surrogate_pair_is_refused() -> None:
    with refused(EmbeddingGenerationError):
        MaxSimReranker().rerank(QUERY, ["\ud800"])


def test_threads_share_one_reranker() -> None:
    reranker = MaxSimReranker(memory=1)
    expected = MaxSimReranker().rerank(QUERY, TEXTS)
    with ThreadPoolExecutor(4) as pool:
        for scores in pool.map(lambda _: reranker.rerank(QUERY, TEXTS), range(12)):
            assert scores == pytest.approx(expected, abs=1e-3)


def test_the_weights_are_in_memory_once() -> None:
    MINILM.embed(["text"])
    session = shared_session()
    assert MINILM._session_for(much=False) is session
    assert MaxSimReranker().embedder._session_for(much=False) is session
