"""Model servers that keep to the protocol in their own ways, and the official client of the servers of our tests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
import openai
import pytest
from pydantic import BaseModel

from ragistry.errors import ModelError
from ragistry.models.openai import OpenAICompatibleEmbedder, OpenAIGenerator
from ragistry.models.tei import TEIReranker
from ragistry.ollama.generator import OllamaGenerator
from ragistry.testing.loopback import Failure, LoopbackServer
from ragistry.testing.ollama_server import OllamaServer
from ragistry.testing.openai_server import OpenAIServer
from ragistry.testing.wire import Reply, Request
from tests.messages import refused

MODEL = "writer"
SAID = "Rain falls from clouds."
START = {"choices": [{"delta": {"role": "assistant", "content": ""}}]}
PIECES = [
    {"choices": [{"delta": {"content": piece}, "finish_reason": None}]} for piece in ("Rain falls", " from clouds.")
]
STOP = {"choices": [{"delta": {}, "finish_reason": "stop"}]}
USAGE = {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 4, "total_tokens": 9}}


class Scripted(LoopbackServer):
    """Sends the same events to every streamed request."""

    def __init__(self, *events: dict[str, Any]) -> None:
        super().__init__()
        self.events = events

    def answer(self, request: Request, flaw: Failure | None) -> Reply:
        return Reply(lines=list(self.events), events=True)


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(MODEL, accent="vllm") as running:
        yield running


def stream(server: LoopbackServer) -> str:
    with closing(OpenAIGenerator(MODEL, url=server.url)) as generator:
        return "".join(generator.stream("What is rain?"))


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([START, *PIECES, STOP, USAGE], id="usage with empty choices at the end"),
        pytest.param([START, *PIECES, STOP, {"usage": USAGE["usage"]}], id="usage without choices"),
        pytest.param([START, *PIECES, STOP, STOP], id="two ends"),
        pytest.param([*PIECES, {**STOP, "usage": None}], id="null usage"),
        pytest.param([{"choices": []}, *PIECES, STOP], id="an event without a choice at the start"),
        pytest.param(
            [{"choices": [{"delta": {"content": None, "reasoning_content": "hm"}}]}, *PIECES, STOP],
            id="reasoning beside null",
        ),
        pytest.param(
            [{"choices": [{"delta": {"content": [{"type": "text", "text": SAID}]}}]}, STOP], id="content in parts"
        ),
        pytest.param([*PIECES], id="an end without a reason"),
    ],
)
def test_stream_ends_in_any_known_way(events: list[dict[str, Any]]) -> None:
    with Scripted(*events) as server:
        assert stream(server) == SAID


@pytest.mark.parametrize(
    "lines",
    [
        ": keep-alive\n\nevent: message\nid: 7\ndata: {}\n\n: ping\n\ndata: [DONE]\n\n",
        "retry: 10\r\ndata:{}\r\n\r\ndata: [DONE]\r\n\r\ndata: [DONE]\r\n\r\n",
    ],
)
def test_comments_and_other_fields_of_events_are_skipped(lines: str) -> None:
    class Raw(LoopbackServer):
        def _respond(self, handler: Any, request: Request) -> None:
            text = lines.replace("{}", json.dumps({"choices": [{"delta": {"content": SAID}, "finish_reason": "stop"}]}))
            handler.send(200, text.encode(), {"Content-Type": "text/event-stream"})

    with Raw() as server:
        assert stream(server) == SAID


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
@pytest.mark.parametrize("kind", [OpenAIGenerator, OllamaGenerator])
def test_reasoning_is_not_part_of_an_answer(kind: Any, said: str) -> None:
    with OpenAIServer(MODEL, accent="vllm") if kind is OpenAIGenerator else OllamaServer([f"{MODEL}:latest"]) as server:
        server.answers += [said, said]
        with closing(kind(MODEL, url=server.url)) as generator:
            assert generator.generate("What is rain?") == SAID
            assert "".join(generator.stream("What is rain?")) == SAID


def test_reasoning_that_began_in_the_prompt_is_not_part_of_an_answer() -> None:
    model = "deepseek-r1:8b"
    with OpenAIServer(model, accent="vllm") as server:
        server.answers += [f"They ask about rain.</think>\n{SAID}"] * 2
        with closing(OpenAIGenerator(model, url=server.url)) as generator:
            assert generator.generate("What is rain?") == SAID
            assert list(generator.stream("What is rain?")) == [SAID]


@pytest.mark.parametrize("said", ["<think>They ask", "<think>They ask about rain.</think>"])
def test_answer_of_reasoning_only_is_an_error(server: OpenAIServer, said: str) -> None:
    server.answers += [said, said]
    with closing(OpenAIGenerator(MODEL, url=server.url)) as generator:
        with refused(ModelError, MODEL):
            generator.generate("What is rain?")
        with refused(ModelError, MODEL):
            list(generator.stream("What is rain?"))


@pytest.mark.parametrize(
    "said",
    [
        '<think>{"name": "no"} or {x}?</think>{"name": "Ann"}',
        'Here {it} is:\n```json\n{"name": "Ann"}\n```\nDone [1].',
        'Sure.\n\n{"name": "Ann"}',
    ],
)
def test_json_is_found_in_an_answer(server: OpenAIServer, said: str) -> None:
    class Author(BaseModel):
        name: str

    server.answers.append(said)
    with closing(OpenAIGenerator(MODEL, url=server.url)) as generator:
        assert Author.model_validate_json(generator.generate("an author", schema=Author)).name == "Ann"


@pytest.mark.parametrize(
    ("index", "base64"), [("null", False), ("missing", False), ("number", True), ("missing", True)]
)
def test_embeddings_are_read_in_every_form(server: OpenAIServer, index: Any, base64: bool) -> None:
    texts = ["tea", "rain and snow", "wind"]
    with closing(OpenAICompatibleEmbedder(MODEL, url=server.url)) as embedder:
        expected = embedder.embed(texts)
        server.index, server.base64 = index, base64
        np.testing.assert_allclose(embedder.embed(texts), expected, atol=1e-6)


@pytest.mark.parametrize("root", ["/api/v3", "/api/paas/v4", "/openai", "/v1beta/openai", "/llm/v1", ""])
def test_address_is_used_as_given_where_the_server_answers_there(server: OpenAIServer, root: str) -> None:
    server.root = root
    with closing(OpenAIGenerator(MODEL, url=f"{server.url}{root}/")) as generator:
        assert generator.generate("hello") == "You said: hello"
        assert "".join(generator.stream("hello")) == "You said: hello"
    with closing(OpenAICompatibleEmbedder(MODEL, url=f"{server.url}{root}")) as embedder:
        assert embedder.embed(["tea"]).shape == (1, server.dimension)


@pytest.mark.parametrize("name", ["temperature", "max_tokens", "stream_options", "top_p"])
def test_refused_parameter_is_left_out_after_one_refusal(
    server: OpenAIServer, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    server.refused = {name}
    generator = OpenAIGenerator(MODEL, url=server.url, max_tokens=50, options={"top_p": 0.5})
    with closing(generator):
        for _ in range(2):
            assert "".join(generator.stream("hello")) == "You said: hello"
    assert [name in body for body in server.asked("/v1/chat/completions")] == [True, False, False]
    assert name in caplog.text


def test_batch_refused_in_unknown_words_is_halved(server: OpenAIServer) -> None:
    with closing(OpenAICompatibleEmbedder(MODEL, url=server.url)) as embedder:
        assert embedder.fingerprint
        server.requests.clear()
        server.fail_next(400, path="/v1/embeddings")
        assert embedder.embed(["one", "two", "three", "four"]).shape == (4, server.dimension)
    assert [len(body["input"]) for body in server.asked("/v1/embeddings")] == [4, 2, 2]


def test_official_client_reads_every_answer(server: OpenAIServer) -> None:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
        whole = client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "hello"}])
        assert whole.choices[0].message.content == "You said: hello"
        assert whole.usage is not None
        assert whole.usage.total_tokens > 0
        chunks = list(
            client.chat.completions.create(
                model=MODEL,
                messages=[{"role": "user", "content": "hello"}],
                stream=True,
                stream_options={"include_usage": True},
            )
        )
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "You said: hello"
        assert chunks[-1].usage is not None
        vectors = client.embeddings.create(model=MODEL, input=["tea", "rain"], dimensions=16)  # asks for base64
        assert [len(row.embedding) for row in vectors.data] == [16, 16]
        assert [model.id for model in client.models.list()] == [MODEL]
        with pytest.raises(openai.BadRequestError):
            client.embeddings.create(model=MODEL, input=[])
        with pytest.raises(openai.NotFoundError):
            client.embeddings.create(model="absent", input=["tea"])


class Redirecting(LoopbackServer):
    """Redirects every request but those to ``/here``."""

    target = ""

    def answer(self, request: Request, flaw: Failure | None) -> Reply:
        if request.path == "/here":
            return Reply(lines=[*PIECES, STOP], events=True)
        return Reply(307, headers={"Location": self.target})


@pytest.mark.parametrize("target", ["{other}/v1/x", "//localhost:{port}/here", "https://127.0.0.1:1/", "file:///etc/x"])
def test_texts_do_not_follow_a_redirect_to_another_server(target: str) -> None:
    with Redirecting() as server, OpenAIServer(MODEL) as other:
        server.target = target.format(other=other.url, port=server.url.rpartition(":")[2])
        for ask in (
            stream,
            lambda server: OpenAICompatibleEmbedder(MODEL, url=server.url).embed(["private"], role="passage"),
            lambda server: OllamaGenerator(MODEL, url=server.url).generate("private"),
            lambda server: TEIReranker(url=server.url).rerank("private", ["private"]),
        ):
            with refused(ModelError, server.url, "redirects"):
                ask(server)
        assert other.requests == []
        server.target = "/here"
        assert stream(server) == SAID
