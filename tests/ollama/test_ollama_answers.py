"""Generation and chat: whole, streamed, in the shape of a schema, and cut."""

from __future__ import annotations

import json
import logging
from enum import StrEnum

import pytest
from pydantic import BaseModel, Field

from ragistry.errors import ModelError
from ragistry.ollama.answers import generated, texts_of
from ragistry.ollama.client import OllamaClient
from ragistry.ollama.generator import OllamaGenerator
from ragistry.protocols import Generator
from ragistry.testing.ollama_server import OllamaServer
from ragistry.trace import collect, stage
from tests.ollama.conftest import TALKER

HELLO = [{"role": "user", "content": "hello there"}]


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Author(BaseModel):
    name: str
    born: int = Field(ge=0)


class Book(BaseModel):
    title: str
    colour: Colour
    authors: list[Author]
    price: float | None = None


def test_a_prompt_is_answered(server: OllamaServer, client: OllamaClient) -> None:
    assert client.generate("Why is the sky blue?", TALKER, system="Be brief.") == "You said: Why is the sky blue?"
    [body] = server.asked("/api/generate")
    assert (body["model"], body["prompt"], body["system"]) == (TALKER, "Why is the sky blue?", "Be brief.")


def test_white_space_of_an_answer_is_kept(server: OllamaServer, client: OllamaClient) -> None:
    server.answers.append("  a\n\n- b\t c \n")
    assert client.generate("list", TALKER) == "  a\n\n- b\t c \n"


def test_a_conversation_goes_on(server: OllamaServer, client: OllamaClient) -> None:
    messages = [{"role": "system", "content": "Be brief."}, *HELLO]
    assert client.chat(messages, TALKER) == "You said: hello there"
    assert server.asked("/api/chat")[0]["messages"] == messages


def test_answers_come_in_pieces(client: OllamaClient) -> None:
    assert list(client.generate_stream("a b", TALKER)) == ["You", " said:", " a", " b"]
    assert list(client.chat_stream(HELLO, TALKER)) == ["You", " said:", " hello", " there"]


def test_a_stream_may_be_left_early(server: OllamaServer, client: OllamaClient) -> None:
    pieces = client.chat_stream(HELLO, TALKER)
    assert next(pieces) == "You"
    pieces.close()
    assert client.chat(HELLO, TALKER) == "You said: hello there"


def test_an_answer_fits_its_pydantic_model(server: OllamaServer, client: OllamaClient) -> None:
    for answer in (client.generate("a book", TALKER, schema=Book), client.chat(HELLO, TALKER, schema=Book)):
        assert Book.model_validate_json(answer).colour is Colour.RED
    assert server.asked("/api/generate")[0]["format"] == Book.model_json_schema()


def test_an_answer_fits_its_json_schema(server: OllamaServer, client: OllamaClient) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    assert json.loads(client.generate("a number", TALKER, schema=schema)) == {"n": 1}
    assert server.asked("/api/generate")[0]["format"] == schema


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("I'd rather not.", "I'd rather not."),
        ('{"name": "Ann", "born": -1}', "born: Input should be greater than or equal to 0"),
        ('{"name": "Ann"}', "born: Field required"),
        ('{"name": "An', '{"name": "An'),
    ],
)
def test_an_answer_that_does_not_fit_is_shown(
    server: OllamaServer, client: OllamaClient, answer: str, said: str
) -> None:
    server.answers.append(answer)
    with pytest.raises(ModelError, match="'llama3.2' said .*Author") as raised:
        client.generate("an author", TALKER, schema=Author)
    assert said in str(raised.value)


def test_an_answer_that_is_not_json_is_shown(server: OllamaServer, client: OllamaClient) -> None:
    server.answers.append("Sure! Here you are:")
    with pytest.raises(ModelError, match=r"said 'Sure! Here you are:', which is not JSON"):
        client.chat(HELLO, TALKER, schema={"type": "object"})


def test_an_answer_that_was_cut_says_so(client: OllamaClient, caplog: pytest.LogCaptureFixture) -> None:
    with collect() as trace, stage("generate"), caplog.at_level(logging.WARNING):
        assert client.generate("a b c", TALKER, options={"num_predict": 3}) == "You said: a"
    assert "cut at the limit of its length" in caplog.text
    assert "num_predict" in trace.stages()[0].degraded


def test_a_prompt_that_is_too_long_is_refused_whole(client: OllamaClient) -> None:
    with pytest.raises(ModelError, match="the prompt is longer than 'llama3.2' takes in.*num_ctx"):
        client.generate("word " * 100, TALKER)


def test_an_error_in_mid_stream_is_told(server: OllamaServer, client: OllamaClient) -> None:
    server.breaks_after = 2
    pieces = client.generate_stream("a b c", TALKER)
    assert [next(pieces), next(pieces)] == ["You", " said:"]
    with pytest.raises(ModelError, match="an error was encountered while running the model"):
        next(pieces)


@pytest.mark.parametrize("lines", [[], [{"response": "You", "done": False}]])
def test_an_answer_that_stops_before_its_end_is_no_answer(lines: list[dict]) -> None:
    with pytest.raises(ModelError, match="before its end"):
        list(texts_of(map(generated, lines), TALKER))


def test_calls_and_tokens_are_traced(client: OllamaClient) -> None:
    with collect() as trace, stage("generate"):
        client.generate("a b", TALKER)
    [done] = trace.stages()
    assert (done.model_calls, done.tokens) == (1, (2 + 2) + 4)


def test_a_model_is_a_generator(server: OllamaServer, client: OllamaClient) -> None:
    generator = OllamaGenerator(TALKER, client, system="Be brief.")
    assert isinstance(generator, Generator)
    assert generator.generate("hello") == "You said: hello"
    assert Author.model_validate_json(generator.generate("an author", schema=Author))
    body = server.asked("/api/generate")[0]
    assert (body["system"], body["options"]) == ("Be brief.", {"temperature": 0})


def test_a_generator_closes_its_client(server: OllamaServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", server.url)
    generator = OllamaGenerator(TALKER)
    assert generator.generate("hello") == "You said: hello"
    generator.close()
    with pytest.raises(RuntimeError, match="closed"):
        generator.generate("hello")
