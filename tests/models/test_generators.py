"""Language models as generators: of Ollama, and of servers that speak OpenAI's protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from pydantic import BaseModel, Field

from ragistry.errors import ModelConnectionError, ModelError, ModelNotFoundError
from ragistry.models.openai import OpenAIGenerator
from ragistry.ollama.generator import OllamaGenerator
from ragistry.protocols import Generator
from ragistry.testing.ollama_server import OllamaServer
from ragistry.testing.openai_server import OpenAIServer
from ragistry.trace import collect, stage
from tests.messages import refused

MODEL = "qwen3:4b"
Server = OllamaServer | OpenAIServer
Made = tuple[Any, Any]
PATHS = {OllamaServer: "/api/chat", OpenAIServer: "/v1/chat/completions"}
GOOD, BAD = '{"name": "Ann", "born": 1970}', '{"name": "Ann"}'


class Author(BaseModel):
    name: str
    born: int = Field(ge=0)


@pytest.fixture(params=["ollama", "openai"])
def make(request: pytest.FixtureRequest) -> Iterator[Callable[..., Made]]:
    """A server, and a generator at it."""
    with ExitStack() as stack:

        def made(**settings: Any) -> Made:
            ollama = request.param == "ollama"
            server = stack.enter_context(OllamaServer([MODEL]) if ollama else OpenAIServer(MODEL, accent="vllm"))
            kind = OllamaGenerator if ollama else OpenAIGenerator
            generator = kind(**{"model": MODEL, "url": server.url} | settings)
            stack.callback(generator.close)
            return server, generator

        yield made


def bodies(server: Server) -> list[Any]:
    return server.asked(PATHS[type(server)])


def test_a_prompt_is_answered_with_system_text_and_settings(make: Callable[..., Made]) -> None:
    server, generator = make(system="Be brief.", max_tokens=50, options={"top_k": 3})
    assert isinstance(generator, Generator)
    assert generator.generate("Why is the sky blue?") == "You said: Why is the sky blue?"
    [body] = bodies(server)
    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Why is the sky blue?"},
    ]
    sent = body.get("options", body)
    assert (body["model"], sent["temperature"], sent["top_k"]) == (MODEL, 0, 3)
    assert sent.get("max_tokens", sent.get("num_predict")) == 50


def test_no_temperature_leaves_it_to_the_server(make: Callable[..., Made]) -> None:
    server, generator = make(temperature=None)
    generator.generate("hello")
    assert "temperature" not in str(bodies(server))


def test_an_answer_fits_its_schema(make: Callable[..., Made]) -> None:
    server, generator = make()
    assert Author.model_validate_json(generator.generate("an author", schema=Author))
    [body] = bodies(server)
    schema = body.get("format") or body["response_format"]["json_schema"]["schema"]
    assert schema == Author.model_json_schema()


def test_an_answer_that_does_not_fit_is_sent_back_once(make: Callable[..., Made]) -> None:
    server, generator = make()
    server.answers += [BAD, GOOD]
    assert generator.generate("an author", schema=Author) == GOOD
    asked, answered, again = bodies(server)[1]["messages"]
    assert (asked["content"], answered["content"]) == ("an author", BAD)
    assert "born: " in again["content"]
    server.answers += [BAD, "I'd rather not."]
    with refused(ModelError):
        generator.generate("an author", schema=Author)


@pytest.mark.parametrize("status", [400, 422, 500])  # llama-cpp-python answers 500
def test_a_server_without_schemas_is_asked_in_the_prompt(status: int) -> None:
    with OpenAIServer(MODEL, accent="vllm") as server:
        server.takes_schemas, server.refuses_schemas_with = False, status
        server.answers += [f"```json\n{GOOD}\n```"] * 2
        generator = OpenAIGenerator(MODEL, url=server.url)
        assert [generator.generate("an author", schema=Author) for _ in range(2)] == [GOOD, GOOD]
        generator.close()
        assert ["response_format" in body for body in bodies(server)] == [True, False, False], "tried once"
        assert '"born"' in bodies(server)[1]["messages"][0]["content"]


def test_an_answer_arrives_in_pieces(make: Callable[..., Made]) -> None:
    server, generator = make(system="Be brief.")
    server.answers.append("Rain falls from clouds.")
    pieces = list(generator.stream("What is rain?"))
    assert len(pieces) > 1
    assert "".join(pieces) == "Rain falls from clouds."
    [body] = bodies(server)
    assert body["stream"] is True
    assert body["messages"][0]["role"] == "system"


def test_a_stream_that_fails_or_breaks_off_is_an_error(make: Callable[..., Made]) -> None:
    server, generator = make()
    server.fail_next("cut")
    with pytest.raises(ModelError):
        list(generator.stream("What is rain?"))
    server.close()
    with pytest.raises(ModelConnectionError):
        list(generator.stream("What is rain?"))


def test_a_cut_answer_is_reported(make: Callable[..., Made]) -> None:
    _, generator = make(max_tokens=2)
    with collect() as trace, stage("generate"):
        assert generator.generate("one two three") == "You said:"
    [done] = trace.stages()
    assert "raise max_tokens" in done.degraded
    assert (done.model_calls, done.tokens > 4) == (1, True)


def test_an_unknown_model_is_an_error_with_those_that_are_there(make: Callable[..., Made]) -> None:
    _, generator = make(model="nothing")
    with pytest.raises(ModelNotFoundError, match=f"no model 'nothing'.*it has: {MODEL}"):
        generator.generate("hello")


@pytest.mark.parametrize("failure", ["hang", "drip"])
def test_timeout_limits_the_whole_answer_and_is_not_retried(make: Callable[..., Made], failure: str) -> None:
    server, generator = make(timeout=0.3)
    server.fail_next(failure, times=9)
    with refused(ModelConnectionError):
        generator.generate("hello")
    assert len(bodies(server)) == 1


def test_an_answer_without_an_end_is_refused_while_it_arrives(make: Callable[..., Made]) -> None:
    server, generator = make()
    server.fail_next("endless")
    with refused(ModelError):
        generator.generate("hello")


def test_a_key_is_sent_and_a_wrong_one_is_not_shown() -> None:
    with OpenAIServer(MODEL, accent="vllm", api_key="sk-right") as server:
        generator = OpenAIGenerator(MODEL, url=f"{server.url}/v1/", api_key="sk-right")
        assert generator.generate("hello") == "You said: hello"
        generator.close()
        stranger = OpenAIGenerator(MODEL, url=server.url, api_key="sk-wrong")
        with refused(ModelError) as raised:
            stranger.generate("hello")
        assert "sk-wrong" not in str(raised.value)
        stranger.close()


def test_ollama_host_is_used_where_no_url_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    with OllamaServer([MODEL]) as server:
        for given, variable in (({"ollama_host": server.url}, "127.0.0.1:9"), ({}, server.url)):
            monkeypatch.setenv("OLLAMA_HOST", variable)
            generator = OllamaGenerator(MODEL, **given)
            assert generator.generate("hello") == "You said: hello"
            generator.close()
