"""A cross-encoder that Text Embeddings Inference serves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ragistry.errors import ModelError
from ragistry.models.tei_reranker import TEIReranker
from ragistry.protocols import Reranker
from ragistry.testing.openai_server import OpenAIServer

TEXTS = ["the capital of Spain", "cats sleep all day", "the capital of France is Paris"]


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer("BAAI/bge-reranker-base", max_batch=4) as running:
        yield running


@pytest.fixture
def reranker(server: OpenAIServer) -> Iterator[TEIReranker]:
    made = TEIReranker(base_url=server.url, batch_size=4, backoff=0.001)
    yield made
    made.close()


def test_scores_come_in_the_order_of_the_texts(reranker: TEIReranker) -> None:
    assert isinstance(reranker, Reranker)
    spain, cats, france = reranker.rerank("capital of France", TEXTS)
    assert france > spain > cats == 0


def test_many_texts_are_sent_a_batch_at_a_time(server: OpenAIServer, reranker: TEIReranker) -> None:
    assert reranker.rerank("capital", TEXTS * 3) == reranker.rerank("capital", TEXTS) * 3
    assert max(len(body["texts"]) for body in server.asked("/rerank")) == 4


def test_a_server_that_takes_fewer_texts_at_once_gets_fewer(server: OpenAIServer) -> None:
    small = TEIReranker(base_url=server.url, backoff=0.001)
    texts = [f"{text} {number}" for number in range(7) for text in TEXTS]
    assert small.rerank("capital", texts) == [small.rerank("capital", [text])[0] for text in texts]
    small.close()


@pytest.mark.parametrize("status", [413, 422])
def test_a_text_that_is_refused_alone_is_told_of(server: OpenAIServer, reranker: TEIReranker, status: int) -> None:
    server.fail_next(status, times=9)
    with pytest.raises(ModelError, match=f"answered {status}: .*, for one text of 20 characters; shorten it"):
        reranker.rerank("capital", TEXTS)
    assert [len(body["texts"]) for body in server.asked("/rerank")] == [3, 1]


def test_no_texts_have_no_scores(server: OpenAIServer, reranker: TEIReranker) -> None:
    assert reranker.rerank("capital", []) == []
    assert server.requests == []


def test_a_busy_server_is_asked_again(server: OpenAIServer, reranker: TEIReranker) -> None:
    server.fail_next(429, times=2)
    assert len(reranker.rerank("capital", TEXTS)) == 3


def test_an_answer_without_all_scores_is_refused(server: OpenAIServer, reranker: TEIReranker) -> None:
    server.fail_next("short")
    with pytest.raises(ModelError, match="3 scores"):
        reranker.rerank("capital", TEXTS)
