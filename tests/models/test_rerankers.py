"""Cross-encoders at a server: TEI's own protocol, and that of Cohere and Jina, which vLLM and llama.cpp serve."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ragistry.errors import ModelError, ModelNotFoundError
from ragistry.models.openai import OpenAIReranker
from ragistry.models.tei import TEIReranker
from ragistry.protocols import Reranker
from ragistry.testing.openai_server import OpenAIServer
from tests.messages import refused

MODEL = "BAAI/bge-reranker-base"
TEXTS = ["the capital of Spain", "cats sleep all day", "the capital of France is Paris"]
PATHS = {"tei": ("/rerank", "texts"), "vllm": ("/v1/rerank", "documents")}


@pytest.fixture(params=["tei", "vllm"])
def server(request: pytest.FixtureRequest) -> Iterator[OpenAIServer]:
    with OpenAIServer(MODEL, accent=request.param, max_batch=4) as running:
        yield running


@pytest.fixture
def reranker(server: OpenAIServer) -> Iterator[Reranker]:
    kind = TEIReranker if server.accent == "tei" else OpenAIReranker
    made = kind(url=server.url, batch_size=4)
    yield made
    made.close()


def sizes(server: OpenAIServer) -> list[int]:
    path, key = PATHS[server.accent]
    return [len(body[key]) for body in server.asked(path)]


def test_scores_come_in_the_order_of_the_texts(server: OpenAIServer, reranker: Reranker) -> None:
    assert isinstance(reranker, Reranker)
    for server.index in ("number", "without 0", "from 1", "text"):
        spain, cats, france = reranker.rerank("capital of France", TEXTS)
        assert france > spain > cats == 0


def test_address_may_be_that_of_the_endpoint(server: OpenAIServer) -> None:
    kind = TEIReranker if server.accent == "tei" else OpenAIReranker
    made = kind(url=f"{server.url}{PATHS[server.accent][0]}")
    assert len(made.rerank("capital of France", TEXTS)) == len(TEXTS)
    made.close()


def test_many_texts_are_sent_a_batch_at_a_time(server: OpenAIServer, reranker: Reranker) -> None:
    assert reranker.rerank("capital", TEXTS * 3) == reranker.rerank("capital", TEXTS) * 3
    assert sizes(server) == [4, 4, 1, 3]


def test_a_batch_that_is_refused_is_halved() -> None:
    with OpenAIServer(MODEL, max_batch=4) as server:
        reranker = TEIReranker(url=server.url)
        texts = [f"{text} {number}" for number in range(7) for text in TEXTS]
        assert reranker.rerank("capital", texts) == [reranker.rerank("capital", [text])[0] for text in texts]
        reranker.close()


@pytest.mark.parametrize("status", [413, 422])
def test_a_single_text_that_is_refused_is_an_error(server: OpenAIServer, reranker: Reranker, status: int) -> None:
    server.fail_next(status, times=9)
    with pytest.raises(ModelError, match=f"answered {status}: .*, for one text of 20 characters; shorten it"):
        reranker.rerank("capital", TEXTS)
    assert sizes(server) == [3, 1]


def test_no_texts_have_no_scores(server: OpenAIServer, reranker: Reranker) -> None:
    assert reranker.rerank("capital", []) == []
    assert server.requests == []


def test_a_busy_server_is_asked_again(server: OpenAIServer, reranker: Reranker) -> None:
    server.fail_next(429, times=2)
    assert len(reranker.rerank("capital", TEXTS)) == 3


def test_an_answer_without_all_scores_is_refused(server: OpenAIServer, reranker: Reranker) -> None:
    server.fail_next("short")
    with refused(ModelError):
        reranker.rerank("capital", TEXTS)


def test_a_model_name_is_sent_to_servers_that_have_several() -> None:
    with OpenAIServer(MODEL, accent="vllm") as server:
        reranker = OpenAIReranker(MODEL, url=f"{server.url}/v1")
        reranker.rerank("capital", TEXTS)
        assert [body["model"] for body in server.asked("/v1/rerank")] == [MODEL]
        server.fail_next(404)
        server.refusal = lambda status: {"error": "no such model"}  # type: ignore[method-assign]
        with pytest.raises(ModelNotFoundError, match=f"has no model '{MODEL}'"):
            reranker.rerank("capital", TEXTS)
        reranker.close()
