"""Generation and chat: whole, streamed, in the shape of a schema, and cut."""

from __future__ import annotations

from enum import StrEnum

import pytest
from pydantic import BaseModel, Field

from ragistry.errors import ModelError
from ragistry.ollama.client import OllamaClient
from ragistry.testing.ollama_server import OllamaServer
from tests.messages import refused
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
    [body] = server.asked("/api/chat")
    said = [(message["role"], message["content"]) for message in body["messages"]]
    assert (body["model"], said) == (TALKER, [("system", "Be brief."), ("user", "Why is the sky blue?")])


def test_white_space_of_an_answer_is_kept(server: OllamaServer, client: OllamaClient) -> None:
    server.answers.append("  a\n\n- b\t c \n")
    assert client.generate("list", TALKER) == "  a\n\n- b\t c \n"


def test_an_answer_fits_its_pydantic_model(server: OllamaServer, client: OllamaClient) -> None:
    for answer in (client.generate("a book", TALKER, schema=Book), client.chat(HELLO, TALKER, schema=Book)):
        assert Book.model_validate_json(answer).colour is Colour.RED
    assert server.asked("/api/chat")[0]["format"] == Book.model_json_schema()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("I'd rather not.", "I'd rather not."),
        ('{"name": "Ann", "born": -1}', "born: "),
        ('{"name": "Ann"}', "born: "),
        ('{"name": "An', '{"name": "An'),
    ],
)
def test_an_answer_that_does_not_fit_is_shown(
    server: OllamaServer, client: OllamaClient, answer: str, said: str
) -> None:
    server.answers += [answer, answer]
    with refused(ModelError) as raised:
        client.generate("an author", TALKER, schema=Author)
    assert said in str(raised.value)


def test_an_answer_that_is_not_json_is_shown(server: OllamaServer, client: OllamaClient) -> None:
    server.answers += ["Sure! Here you are:"] * 2
    with refused(ModelError):
        client.chat(HELLO, TALKER, schema=Author)


def test_a_prompt_that_is_too_long_is_refused_whole(client: OllamaClient) -> None:
    with refused(ModelError):
        client.generate("word " * 100, TALKER)


@pytest.mark.parametrize("around", ["```json\n{}\n```", "Here you are: {} Anything else?"])
def test_words_around_the_json_are_left_out(server: OllamaServer, client: OllamaClient, around: str) -> None:
    server.answers.append(around.replace("{}", '{"name": "Ann", "born": 1970}'))
    assert client.generate("an author", TALKER, schema=Author) == '{"name": "Ann", "born": 1970}'
