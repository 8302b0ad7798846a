"""The official Python client works with the server that our own client is tested against."""

from __future__ import annotations

from collections.abc import Iterator

import ollama
import pytest

from ragistry.ollama.client import OllamaClient
from ragistry.testing.ollama_server import OllamaServer
from tests.ollama.conftest import EMBEDDER, TALKER


@pytest.fixture
def official(server: OllamaServer) -> Iterator[ollama.Client]:
    with ollama.Client(host=server.url, timeout=10) as made:
        yield made


def test_it_lists_models(server: OllamaServer, official: ollama.Client) -> None:
    models = official.list().models
    assert [model.model for model in models] == server.models
    assert models[0].digest == server.digest(server.models[0])
    assert models[0].details.family == "nomic-bert"


def test_it_shows_a_model(server: OllamaServer, official: ollama.Client) -> None:
    shown = official.show(EMBEDDER)
    assert shown.modelinfo["nomic-bert.context_length"] == server.context_length
    assert "embedding" in shown.capabilities


def test_it_embeds_as_our_client_does(official: ollama.Client, client: OllamaClient) -> None:
    texts = ["Why is the sky blue?", "Why is the grass green?"]
    answer = official.embed(EMBEDDER, texts)
    assert [list(vector) for vector in answer.embeddings] == client.vectors(texts, EMBEDDER).tolist()
    assert answer.prompt_eval_count == 2 * (6 + 2)
    assert official.embeddings(EMBEDDER, texts[0]).embedding == client.embed(texts[0], EMBEDDER)


def test_it_is_refused_a_text_that_is_too_long_or_has_it_cut(official: ollama.Client) -> None:
    with pytest.raises(ollama.ResponseError, match="exceeds the context length") as raised:
        official.embed(EMBEDDER, "word " * 100, truncate=False)
    assert raised.value.status_code == 400
    assert official.embed(EMBEDDER, "word " * 100).prompt_eval_count == 64


def test_it_generates_and_chats_whole_and_in_pieces(official: ollama.Client) -> None:
    whole = official.generate(TALKER, "hello there")
    assert (whole.response, whole.done, whole.done_reason) == ("You said: hello there", True, "stop")
    parts = list(official.generate(TALKER, "hello there", stream=True))
    assert "".join(part.response for part in parts) == whole.response
    assert [part.done for part in parts] == [False] * (len(parts) - 1) + [True]
    messages = [{"role": "user", "content": "hello there"}]
    message = official.chat(TALKER, messages).message
    assert (message.content, message.role) == (whole.response, "assistant")
    pieces = list(official.chat(TALKER, messages, stream=True))
    assert "".join(piece.message.content or "" for piece in pieces) == whole.response
    assert pieces[-1].eval_count == len(pieces) - 1


def test_it_gets_answers_in_the_shape_of_a_schema(official: ollama.Client) -> None:
    schema = {"type": "object", "properties": {"age": {"type": "integer"}, "free": {"type": "boolean"}}}
    assert official.generate(TALKER, "someone", format=schema).response == '{"age": 1, "free": true}'


def test_it_is_told_that_a_model_is_missing(official: ollama.Client) -> None:
    for call in (
        lambda: official.embed("absent", "text"),
        lambda: official.show("absent"),
        lambda: official.generate("absent", "prompt"),
        lambda: list(official.chat("absent", [{"role": "user", "content": "hello"}], stream=True)),
    ):
        with pytest.raises(ollama.ResponseError, match="not found") as raised:
            call()
        assert raised.value.status_code == 404


def test_it_is_told_of_an_error_in_mid_stream(server: OllamaServer, official: ollama.Client) -> None:
    server.breaks_after = 1
    parts = official.generate(TALKER, "hello there", stream=True)
    assert next(parts).response == "You"
    with pytest.raises(ollama.ResponseError, match="while running the model"):
        list(parts)
