"""Language models as generators: of Ollama, and of servers that speak OpenAI's protocol."""

from __future__ import annotations

from enum import StrEnum

import pytest
from pydantic import BaseModel, Field

from ragistry.errors import ModelError
from ragistry.protocols import Generator
from ragistry.trace import collect, stage
from tests.messages import refused
from tests.models.servers import GENERATORS, MODEL, Kind, Serve, every

OPENAI = GENERATORS["openai answers"]
SAID = "Rain falls from clouds."
GOOD, BAD = '{"name": "Ann", "born": 1970}', '{"name": "Ann"}'


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


@every(GENERATORS)
def test_a_prompt_is_answered_with_system_text_and_settings(serve: Serve, kind: Kind) -> None:
    server, generator = serve(kind, system="Be brief.", max_tokens=50, options={"top_k": 3})
    assert isinstance(generator, Generator)
    assert generator.generate("Why is the sky blue?") == "You said: Why is the sky blue?"
    [body] = server.asked(kind.path)
    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Why is the sky blue?"},
    ]
    sent = body.get("options", body)
    assert (body["model"], sent["temperature"], sent["top_k"]) == (MODEL, 0, 3)
    assert sent.get("max_tokens", sent.get("num_predict")) == 50


@every(GENERATORS)
def test_no_temperature_leaves_it_to_the_server(serve: Serve, kind: Kind) -> None:
    server, generator = serve(kind, temperature=None)
    generator.generate("hello")
    assert "temperature" not in str(server.asked(kind.path))


@every(GENERATORS)
def test_white_space_of_an_answer_is_kept(serve: Serve, kind: Kind) -> None:
    server, generator = serve(kind)
    server.answers.append("  a\n\n- b\t c \n")
    assert generator.generate("list") == "  a\n\n- b\t c \n"


@every(GENERATORS)
def test_an_answer_fits_its_schema(serve: Serve, kind: Kind) -> None:
    server, generator = serve(kind)
    assert Book.model_validate_json(generator.generate("a book", schema=Book)).colour is Colour.RED
    [body] = server.asked(kind.path)
    schema = body.get("format") or body["response_format"]["json_schema"]["schema"]
    assert schema == Book.model_json_schema()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (BAD, "born: "),
        ('{"name": "Ann", "born": -1}', "born: "),
        ('{"name": "An', '{"name": "An'),
        ("I'd rather not.", "I'd rather not."),
        ("Sure! Here you are:", "Sure! Here you are:"),
    ],
)
@every(GENERATORS)
def test_an_answer_that_does_not_fit_is_sent_back_once(serve: Serve, kind: Kind, answer: str, said: str) -> None:
    server, generator = serve(kind)
    server.answers += [answer, GOOD]
    assert generator.generate("an author", schema=Author) == GOOD
    asked, answered, again = server.asked(kind.path)[1]["messages"]
    assert (asked["content"], answered["content"]) == ("an author", answer)
    assert ("born: " if said == "born: " else "Invalid JSON") in again["content"]
    server.answers += [answer, answer]
    with refused(ModelError, said):
        generator.generate("an author", schema=Author)
    assert len(server.asked(kind.path)) == 4


@pytest.mark.parametrize(
    "said",
    [
        f"```json\n{GOOD}\n```",
        f"Here you are: {GOOD} Anything else?",
        f'<think>{{"name": "no"}} or {{x}}?</think>{GOOD}',
        f"Here {{it}} is:\n```json\n{GOOD}\n```\nDone [1].",
        f"Sure.\n\n{GOOD}",
    ],
)
@every(GENERATORS)
def test_json_is_found_in_an_answer(serve: Serve, kind: Kind, said: str) -> None:
    server, generator = serve(kind)
    server.answers.append(said)
    assert generator.generate("an author", schema=Author) == GOOD


@pytest.mark.parametrize("status", [400, 422, 500])  # llama-cpp-python answers 500
def test_a_server_without_schemas_is_asked_in_the_prompt(serve: Serve, status: int) -> None:
    server, generator = serve(OPENAI)
    server.takes_schemas, server.refuses_schemas_with = False, status
    server.answers += [f"```json\n{GOOD}\n```"] * 2
    assert [generator.generate("an author", schema=Author) for _ in range(2)] == [GOOD, GOOD]
    bodies = server.asked(OPENAI.path)
    assert ["response_format" in body for body in bodies] == [True, False, False], "tried once"
    assert '"born"' in bodies[1]["messages"][0]["content"]


@every(GENERATORS)
def test_an_answer_arrives_in_pieces(serve: Serve, kind: Kind) -> None:
    server, generator = serve(kind, system="Be brief.")
    server.answers.append(SAID)
    pieces = list(generator.stream("What is rain?"))
    assert len(pieces) > 1
    assert "".join(pieces) == SAID
    [body] = server.asked(kind.path)
    assert body["stream"] is True
    assert body["messages"][0]["role"] == "system"


@pytest.mark.parametrize(
    "said",
    [
        f"<think>They ask {{about}} rain [1]. </think>\n\n{SAID}",
        f"<think></think>{SAID}",
        f"<think>\n\n</think>\n\n{SAID}",
        f"  <THINKING>a</THINKING> {SAID}",
        f"[THINK]b[/THINK]{SAID}",
    ],
)
@every(GENERATORS)
def test_reasoning_is_not_part_of_an_answer(serve: Serve, kind: Kind, said: str) -> None:
    server, generator = serve(kind)
    server.answers += [said, said]
    assert generator.generate("What is rain?") == SAID
    assert "".join(generator.stream("What is rain?")) == SAID


@every(GENERATORS)
def test_reasoning_that_began_in_the_prompt_is_not_part_of_an_answer(serve: Serve, kind: Kind) -> None:
    server, generator = serve(kind, {"model": "deepseek-r1"}, model="deepseek-r1")
    server.answers += [f"They ask about rain.</think>\n{SAID}"] * 2
    assert generator.generate("What is rain?") == SAID
    assert list(generator.stream("What is rain?")) == [SAID]


@pytest.mark.parametrize("said", ["<think>They ask", "<think>They ask about rain.</think>"])
@every(GENERATORS)
def test_answer_of_reasoning_only_is_an_error(serve: Serve, kind: Kind, said: str) -> None:
    server, generator = serve(kind)
    server.answers += [said, said]
    with refused(ModelError, MODEL):
        generator.generate("What is rain?")
    with refused(ModelError, MODEL):
        list(generator.stream("What is rain?"))


@every(GENERATORS)
def test_a_cut_answer_is_reported(serve: Serve, kind: Kind) -> None:
    _, generator = serve(kind, max_tokens=2)
    with collect() as trace, stage("generate"):
        assert generator.generate("one two three") == "You said:"
    [done] = trace.stages()
    assert "raise max_tokens" in done.degraded
    assert (done.model_calls, done.tokens > 4) == (1, True)


def test_a_prompt_that_is_too_long_is_refused_whole(serve: Serve) -> None:
    with refused(ModelError):
        serve(GENERATORS["ollama answers"])[1].generate("word " * 100)
