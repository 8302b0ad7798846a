"""Every end of an answer has its own status, whatever words its server uses for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ragistry.answers.answer import Answerer
from ragistry.errors import IncompleteAnswerError, ModelError
from ragistry.models.openai import OpenAIGenerator
from ragistry.ollama.generator import OllamaGenerator
from ragistry.testing.ollama_server import OllamaServer
from ragistry.testing.openai_server import OpenAIServer
from ragistry.trace import collect, stage
from ragistry.types import Document
from tests.messages import check_message
from tests.techniques.doubles import MINILM

MODEL = "small"
DOCUMENTS = [Document("Beer traps catch slugs.", {}, 0.9, "a")]
TEXT = "Beer traps catch slugs [1]."
CALL = [{"id": "c1", "type": "function", "function": {"name": "search", "arguments": "{}"}}]

Choice = dict[str, Any]
OPENAI: list[tuple[Choice, str, str]] = [
    ({"message": {"content": TEXT}}, "complete", TEXT),
    ({"message": {"content": TEXT}, "finish_reason": None}, "complete", TEXT),
    ({"message": {"content": TEXT}, "finish_reason": "eos_token"}, "complete", TEXT),
    ({"message": {"content": [{"type": "text", "text": TEXT}]}, "finish_reason": "stop"}, "complete", TEXT),
    ({"message": {"content": "NOT FOUND"}}, "not_found", ""),
    ({"message": {"content": "Not found."}}, "not_found", ""),
    ({"message": {"content": "NOT FOUND in the"}, "finish_reason": "length"}, "not_found", ""),
    ({"message": {"content": "Not Found is status 404."}}, "complete", "Not Found is status 404."),
    ({"message": {"content": TEXT}, "finish_reason": "length"}, "cut", TEXT),
    ({"message": {"content": ""}, "finish_reason": "length"}, "cut", ""),
    ({"message": {"content": "<think>So"}, "finish_reason": "MAX_TOKENS"}, "cut", ""),
    ({"message": {"content": TEXT, "tool_calls": CALL}, "finish_reason": "tool_calls"}, "cut", TEXT),
    ({"message": {"content": TEXT}, "finish_reason": "insufficient_system_resource"}, "cut", TEXT),
    ({"message": {"content": TEXT}, "finish_reason": "content_filter"}, "filtered", TEXT),
    ({"message": {"content": None}, "finish_reason": "SAFETY"}, "filtered", ""),
    ({"message": {"content": None, "refusal": "I am sorry."}}, "refused", ""),
    ({"message": {"content": [{"type": "refusal", "refusal": "I am sorry."}]}}, "refused", ""),
    ({"message": {}, "finish_reason": "refusal"}, "refused", ""),
    ({"message": {"content": ""}}, "empty", ""),
    ({"message": {"content": " \n"}}, "empty", ""),
    ({"message": {}}, "empty", ""),
    ({"message": {"content": None, "tool_calls": CALL}, "finish_reason": "tool_calls"}, "empty", ""),
    ({"message": {"content": "", "function_call": {"name": "search"}}, "finish_reason": "stop"}, "empty", ""),
    ({"message": {"content": "<think>So.</think>"}}, "empty", ""),
    ({"message": {"content": None, "reasoning_content": "So."}}, "empty", ""),
    ({"message": {"content": "", "reasoning": "So."}}, "empty", ""),
    ({"message": {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "So."}]}]}}, "empty", ""),
    ({"message": {"content": [{"type": "reasoning", "text": "So."}]}}, "empty", ""),
    ({"message": {"content": ""}, "finish_reason": "error"}, "empty", ""),
]
OLLAMA: list[tuple[Choice, str, str]] = [
    ({"message": {"content": TEXT}}, "complete", TEXT),
    ({"message": {"content": TEXT}, "done_reason": ""}, "complete", TEXT),  # versions before 0.3
    ({"message": {"content": TEXT}, "done_reason": "length"}, "cut", TEXT),
    ({"message": {"content": ""}, "done_reason": "load"}, "empty", ""),
    ({"message": {"content": ""}, "done_reason": "unload"}, "empty", ""),
    ({"message": {"content": ""}}, "empty", ""),
    ({"message": {"content": "", "thinking": "So."}}, "empty", ""),
    ({"message": {"content": "", "thinking": "So."}, "done_reason": "length"}, "cut", ""),
    ({"message": {"content": "", "tool_calls": [{"function": {"name": "search"}}]}}, "empty", ""),
]
STREAMS = ("deltas", "messages", "both", "body")


@pytest.fixture
def openai() -> Iterator[OpenAIServer]:
    with OpenAIServer(MODEL) as server:
        yield server


class Whole:
    """A generator without streams."""

    def __init__(self, own: Any) -> None:
        self.own = own

    def generate(self, prompt: str, *, schema: Any = None) -> str:
        answer: str = self.own.generate(prompt, schema=schema)
        return answer


def ends(generator: Any) -> tuple[str, str]:
    """Ask, and return status and text; the text that arrived is the same."""
    pieces: list[str] = []
    answer = Answerer(generator, MINILM).answer("what catches slugs?", DOCUMENTS, on_piece=pieces.append)
    assert "".join(pieces).strip() == answer.text
    assert bool(answer.sentences) == bool(answer.text)
    assert bool(answer.reason) == (answer.status != "complete")
    return answer.status, answer.text


@pytest.mark.parametrize(("choice", "status", "text"), OPENAI)
def test_each_end_of_openai_has_its_status(openai: OpenAIServer, choice: Choice, status: str, text: str) -> None:
    generator = OpenAIGenerator(MODEL, url=openai.url)
    for openai.streams in STREAMS:
        openai.answers.append(choice)
        assert ends(generator) == (status, text), openai.streams
    generator.close()


def test_the_reason_says_what_happened_and_what_to_do(openai: OpenAIServer) -> None:
    openai.answers += [choice for choice, *_ in OPENAI]
    answerer = Answerer(OpenAIGenerator(MODEL, url=openai.url), MINILM)
    answers = [answerer.answer("what catches slugs?", DOCUMENTS) for _ in OPENAI]
    for reason in sorted({answer.reason for answer in answers} - {""}):
        check_message(reason)
    answerer.generator.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize(("last", "status", "text"), OLLAMA)
def test_each_end_of_ollama_has_its_status(last: Choice, status: str, text: str) -> None:
    with OllamaServer([f"{MODEL}:latest"]) as server:
        server.answers.append(last)
        generator = OllamaGenerator(MODEL, url=server.url)
        assert ends(generator) == (status, text)
        generator.close()


@pytest.mark.parametrize(
    ("choice", "status", "text"), [one for one in OPENAI if one[1] in ("filtered", "refused", "empty")]
)
def test_a_technique_gets_an_error_instead_of_such_an_answer(
    openai: OpenAIServer, choice: Choice, status: str, text: str
) -> None:
    openai.answers.append(choice)
    generator = OpenAIGenerator(MODEL, url=openai.url)
    with pytest.raises(IncompleteAnswerError) as raised:
        generator.generate("what catches slugs?")
    assert (raised.value.status, raised.value.text) == (status, text)
    openai.answers.append(choice)
    assert ends(Whole(generator)) == (status, text)
    generator.close()


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, {"error": {"message": "The response was filtered.", "code": "content_filter", "status": 400}}),
        (400, {"error": {"message": "Content Exists Risk", "type": "invalid_request_error"}}),
        (403, {"error": {"message": "Your input was flagged", "metadata": {"reasons": ["violence"]}}}),
    ],
)
def test_a_prompt_that_a_filter_refuses_is_filtered(
    openai: OpenAIServer, monkeypatch: pytest.MonkeyPatch, status: int, body: Any
) -> None:
    monkeypatch.setattr(openai, "refusal", lambda *_: body)
    openai.fail_next(status)
    generator = OpenAIGenerator(MODEL, url=openai.url)
    assert ends(generator) == ("filtered", "")
    generator.close()


def test_a_stream_without_an_end_is_an_error(openai: OpenAIServer) -> None:
    openai.fail_next("cut")
    generator = OpenAIGenerator(MODEL, url=openai.url)
    with pytest.raises(ModelError, match="aborted"):
        ends(generator)
    generator.close()


@pytest.mark.parametrize("answer", [None, "", " \n", "<think>So.</think>"])
def test_a_function_that_returns_no_text_gives_no_answer(answer: Any) -> None:
    assert ends(lambda prompt: answer) == ("empty", "")


class Client:
    """A generator of a program whose client yields None for events without text."""

    def generate(self, prompt: str, *, schema: Any = None) -> str:
        raise NotImplementedError

    def stream(self, prompt: str) -> Iterator[Any]:
        yield from (None, "Beer traps ", None, "catch slugs [1].")
        raise IncompleteAnswerError("the answer was cut", "cut")


def test_a_generator_of_a_program_may_say_how_its_answer_ended() -> None:
    assert ends(Client()) == ("cut", TEXT)


def test_a_cut_answer_is_in_the_trace_of_a_technique(openai: OpenAIServer) -> None:
    openai.answers.append({"message": {"content": TEXT}, "finish_reason": "length"})
    generator = OpenAIGenerator(MODEL, url=openai.url)
    with collect() as trace, stage("generate"):
        assert generator.generate("what catches slugs?") == TEXT
    check_message(trace.stages()[0].degraded)
    generator.close()
