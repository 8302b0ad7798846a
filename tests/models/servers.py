"""Every kind of model at every kind of model server: a test `every(KINDS)` holds for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from ragistry.models.openai import OpenAICompatibleEmbedder, OpenAIGenerator, OpenAIReranker
from ragistry.models.tei import TEIReranker
from ragistry.ollama.client import OllamaClient
from ragistry.ollama.embedder import OllamaEmbedder
from ragistry.ollama.generator import OllamaGenerator
from ragistry.testing.loopback import Failure, LoopbackServer
from ragistry.testing.ollama_server import OllamaServer
from ragistry.testing.openai_server import Accent, OpenAIServer
from ragistry.testing.wire import Reply, Request
from ragistry.utils.fingerprints import PROBE
from tests.messages import check_message

MODEL = "small"
WINDOW = 64
TEXTS = [f"text {number}" for number in range(10)]


@dataclass(frozen=True, slots=True)
class Kind:
    """A model at a server.

    ``ask`` calls the model with texts, which the server gets in requests to ``path``; a generator takes the first.
    """

    serve: Callable[..., Any]
    make: Callable[..., Any]
    path: str
    ask: Callable[[Any, Sequence[str]], Any]

    @contextmanager
    def at(self, server: LoopbackServer, url: str = "", **settings: Any) -> Iterator[Any]:
        """Make the model at this server."""
        model = self.make(url=url or server.url, **settings)
        try:
            yield model
        finally:
            model.close()

    def sent(self, server: LoopbackServer) -> list[list[str]]:
        """Return the texts of each request, without those by which an embedder knows its model."""
        texts = [_texts(body) for body in server.asked(self.path)]
        return [batch for batch in texts if batch[0] not in ("dimension", PROBE)]


def _texts(body: dict[str, Any]) -> list[str]:
    if "messages" in body:
        return [body["messages"][-1]["content"]]
    return next(body[name] for name in ("input", "texts", "documents") if name in body)


def _ollama(model: str = MODEL, max_tokens: int = WINDOW) -> OllamaServer:
    return OllamaServer([f"{model}:latest"], context_length=max_tokens)


def _openai(accent: Accent, model: str = MODEL, **settings: Any) -> OpenAIServer:
    return OpenAIServer(model, accent=accent, **{"max_tokens": WINDOW, "max_batch": 4} | settings)


def _ollama_embedder(model: str = MODEL, *, url: str, api_key: str | None = None, **settings: Any) -> OllamaEmbedder:
    client = OllamaClient(url, api_key=api_key) if api_key else None
    return OllamaEmbedder(model, host=url, client=client, **settings)


def _made(kind: Callable[..., Any]) -> Callable[..., Any]:
    return lambda model=MODEL, **settings: kind(model, **settings)


def _embed(model: Any, texts: Sequence[str]) -> Any:
    return model.embed(texts)


def _generate(model: Any, texts: Sequence[str]) -> Any:
    return model.generate(texts[0])


def _stream(model: Any, texts: Sequence[str]) -> Any:
    return "".join(model.stream(texts[0]))


def _rank(model: Any, texts: Sequence[str]) -> Any:
    return model.rerank("text 1 2 3", texts)


_VLLM, _CHAT = partial(_openai, "vllm"), "/v1/chat/completions"
EMBEDDERS = {
    "ollama embeds": Kind(_ollama, _ollama_embedder, "/api/embed", _embed),
    "tei embeds": Kind(partial(_openai, "tei"), _made(OpenAICompatibleEmbedder), "/v1/embeddings", _embed),
    "vllm embeds": Kind(_VLLM, _made(OpenAICompatibleEmbedder), "/v1/embeddings", _embed),
    "llama.cpp embeds": Kind(partial(_openai, "llama.cpp"), _made(OpenAICompatibleEmbedder), "/v1/embeddings", _embed),
}
GENERATORS = {
    "ollama answers": Kind(_ollama, _made(OllamaGenerator), "/api/chat", _generate),
    "openai answers": Kind(_VLLM, _made(OpenAIGenerator), _CHAT, _generate),
}
STREAMS = {
    "ollama streams": Kind(_ollama, _made(OllamaGenerator), "/api/chat", _stream),
    "openai streams": Kind(_VLLM, _made(OpenAIGenerator), _CHAT, _stream),
}
RERANKERS = {
    "tei ranks": Kind(partial(_openai, "tei"), TEIReranker, "/rerank", _rank),
    "openai ranks": Kind(_VLLM, _made(OpenAIReranker), "/v1/rerank", _rank),
}
KINDS = EMBEDDERS | GENERATORS | STREAMS | RERANKERS


def every(kinds: dict[str, Kind]) -> pytest.MarkDecorator:
    """Run a test with each of these kinds."""
    return pytest.mark.parametrize("kind", kinds.values(), ids=kinds)


class Serve:
    """Starts servers, and makes models at them, until its end."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack

    def __call__(self, kind: Kind, server: dict[str, Any] | None = None, **settings: Any) -> tuple[Any, Any]:
        running = self._stack.enter_context(kind.serve(**(server or {})))
        return running, self.model(kind, running, **settings)

    def model(self, kind: Kind, server: LoopbackServer, **settings: Any) -> Any:
        """Make another model at the same server."""
        return self._stack.enter_context(kind.at(server, **settings))


def check_wording(kind: Kind, error: Exception) -> None:
    """Compare the whole message for one model of each name of a server; those of all kinds are made in one place."""
    if kind in (KINDS["ollama embeds"], KINDS["tei ranks"]):
        check_message(str(error), raised=error)


class Fixed(LoopbackServer):
    """Answers every request with the same body, or the same events of a stream."""

    def __init__(self, body: Any = None, *, events: Sequence[Any] = ()) -> None:
        super().__init__()
        self.body = body
        self.events = events

    def answer(self, request: Request, flaw: Failure | None) -> Reply:
        return Reply(lines=self.events, events=True) if self.events else Reply(body=self.body)
