"""A model that takes time to load: the first request is sent once and waits; later ones have short limits."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from threading import Thread
from threading import enumerate as enumerate_threads
from typing import Any

import pytest

from ragistry import open_workspace
from ragistry.errors import ModelConnectionError, ModelError, ServerBusyError
from ragistry.models import http, openai
from ragistry.models.openai import OpenAICompatibleEmbedder, OpenAIGenerator, OpenAIReranker
from ragistry.ollama import embedder as ollama_embedder
from ragistry.ollama.embedder import OllamaEmbedder
from ragistry.ollama.generator import OllamaGenerator
from ragistry.server.gate import Gate, ServerLimits
from ragistry.testing.ollama_server import OllamaServer
from ragistry.testing.openai_server import OpenAIServer
from tests.conftest import Corpus
from tests.messages import check_message, refused

MODEL = "small"
KINDS: dict[str, tuple[type[Any], type[Any], str, Callable[[Any], Any]]] = {
    "ollama embeds": (OllamaServer, OllamaEmbedder, "/api/embed", lambda model: model.embed(["text"])),
    "ollama answers": (OllamaServer, OllamaGenerator, "/api/chat", lambda model: model.generate("hello")),
    "ollama streams": (OllamaServer, OllamaGenerator, "/api/chat", lambda model: list(model.stream("hello"))),
    "openai embeds": (OpenAIServer, OpenAICompatibleEmbedder, "/v1/embeddings", lambda model: model.embed(["text"])),
    "openai answers": (OpenAIServer, OpenAIGenerator, "/v1/chat/completions", lambda model: model.generate("hello")),
    "openai streams": (
        OpenAIServer, OpenAIGenerator, "/v1/chat/completions", lambda model: list(model.stream("hello")),
    ),
    "openai ranks": (OpenAIServer, OpenAIReranker, "/v1/rerank", lambda model: model.rerank("tea", ["tea", "milk"])),
}  # fmt: skip
Made = tuple[Any, Any, str, Callable[[Any], Any]]


@pytest.fixture(params=KINDS)
def make(request: pytest.FixtureRequest) -> Iterator[Callable[..., Made]]:
    """A server, a model at it, the path of its requests, and a call of it."""
    server_class, model_class, path, call = KINDS[request.param]
    with ExitStack() as stack:

        def made(**settings: Any) -> Made:
            is_ollama = server_class is OllamaServer
            server = OllamaServer([f"{MODEL}:latest"]) if is_ollama else OpenAIServer(MODEL, accent="vllm")
            stack.enter_context(server)
            address = {"host" if model_class is OllamaEmbedder else "url": server.url}
            model = model_class(MODEL, **address, **settings)
            stack.callback(model.close)
            return server, model, path, call

        yield made


def sent(server: Any, path: str) -> list[Any]:
    """The requests of the call; embedders send others to know the model."""
    return [body for body in server.asked(path) if any(word in str(body) for word in ("'text'", "hello", "tea"))]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Later requests end at once, and a first one is reported at once."""
    monkeypatch.setattr(http, "SLOW", 0.0)
    for name in ("QUERY_SECONDS", "ANSWER_SECONDS", "RERANK_SECONDS"):
        for module in (openai, ollama_embedder, http):
            monkeypatch.setattr(module, name, 1.0, raising=False)
    monkeypatch.setattr("ragistry.ollama.generator.ANSWER_SECONDS", 1.0)


class Release(logging.Handler):
    """Lets a server finish loading its model when the client reports that it waits."""

    def __init__(self, server: Any) -> None:
        super().__init__()
        self.server = server
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())
        self.server.loaded.set()


@pytest.fixture
def released(make: Callable[..., Made], impatient: None) -> Iterator[tuple[Made, Release]]:
    one = make()
    handler = Release(one[0])
    logging.getLogger(http.__name__).addHandler(handler)
    yield one, handler
    logging.getLogger(http.__name__).removeHandler(handler)


def test_first_request_is_sent_once_and_waits_and_later_ones_have_short_limits(
    released: tuple[Made, Release],
) -> None:
    (server, model, path, call), handler = released
    server.fail_next("load", path=path)
    assert call(model) is not None
    assert len(sent(server, path)) == 1
    assert repr(MODEL) in handler.lines[0]
    if path == "/v1/embeddings":
        check_message(handler.lines[0], "300")
    assert len(handler.lines) == 1
    server.fail_next("hang", times=9, path=path)
    with pytest.raises(ModelError):
        call(model)


def test_first_request_is_not_sent_again_after_a_timeout(make: Callable[..., Made]) -> None:
    server, model, path, call = make(**{})
    client = (getattr(model, "_api", None) and model._api.server) or model._client._server
    client._patience = replace(client._patience, load_timeout=0.1)
    server.fail_next("hang", times=9, path=path)
    with pytest.raises(ModelConnectionError):
        call(model)
    assert len(server.asked(path)) == 1


def test_a_request_that_waits_ends_with_its_client(released: tuple[Made, Release]) -> None:
    (server, model, path, call), handler = released
    server.fail_next("load", path=path)
    handler.emit = lambda record: model.close()  # type: ignore[method-assign]
    with pytest.raises(ModelConnectionError):
        call(model)
    server.loaded.set()
    for thread in [one for one in enumerate_threads() if one.name == "load"]:
        thread.join()


def test_requests_at_the_same_time_wait_for_the_one_that_loads(released: tuple[Made, Release]) -> None:
    (server, model, path, call), handler = released
    server.fail_next("load", path=path)
    answers: list[Any] = []
    threads = [Thread(target=lambda: answers.append(call(model))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 3
    assert len(handler.lines) == 1, "one request loads the model"


def test_request_stays_open_when_a_search_of_the_server_ends(make: Callable[..., Made]) -> None:
    server, model, path, call = make()
    server.fail_next("load", path=path)

    async def search(seconds: float) -> Any:
        return await Gate(ServerLimits(timeout=seconds)).run(asyncio.to_thread(call, model))

    async def searches() -> None:
        with pytest.raises(ServerBusyError):
            await search(0.1)
        server.loaded.set()
        assert await search(60) is not None

    asyncio.run(searches())
    assert len(sent(server, path)) == 2, "one for each search"


@pytest.mark.parametrize("model_class", [OpenAICompatibleEmbedder])
def test_a_server_that_refuses_while_it_loads_is_asked_until_it_has(
    monkeypatch: pytest.MonkeyPatch, model_class: type[Any]
) -> None:
    monkeypatch.setattr(http, "LOADING_PAUSE", 0.001)
    with OpenAIServer(MODEL, accent="llama.cpp") as server:
        monkeypatch.setattr(server, "refusal", lambda *_: {"error": {"code": 503, "message": "Loading model"}})
        server.fail_next(503, times=12, path="/v1/embeddings")
        model = model_class(MODEL, url=server.url)
        assert model.embed(["text"]).shape == (1, 64)
        model.close()


def test_timeout_of_documents_yaml_limits_the_first_request(corpus: Corpus) -> None:
    with OllamaServer(["small:latest"]) as server:
        text = f'embed_model: "ollama:{MODEL}"\ntimeout: 0.2\ncollections: []\n'
        root = corpus({"documents.yaml": text}, folder="config").parent
        server.fail_next("hang", times=9, path="/api/embed")
        with open_workspace(root, ollama_host=server.url) as workspace, refused(ModelConnectionError):
            workspace.embedder.embed(["text"])
        assert len(server.asked("/api/embed")) == 1
