"""Servers of language models whose answers a test decides by the prompt, and a small store to ask about."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

from ragistry.models.openai import OpenAIGenerator
from ragistry.models.registry import choose_embedder
from ragistry.ollama.generator import OllamaGenerator
from ragistry.stores.local import LocalStore
from ragistry.testing.loopback import LoopbackServer
from ragistry.testing.ollama_server import OllamaServer
from ragistry.testing.openai_server import OpenAIServer
from ragistry.types import Document, EmbeddedChunk, StageScore

MODEL = "qwen3:4b"
EMBEDDER = choose_embedder("minilm")
PATHS = {"ollama": "/api/chat", "openai": "/v1/chat/completions"}
Reply = Callable[[str], Any]
"""From a prompt to the answer: a mapping is sent as JSON, a text as it is."""


def talking(server: type[Any]) -> type[Any]:
    """The server, saying what its ``reply`` makes of a prompt."""

    class Talking(server):
        reply: Reply

        def answer(self, request: Any, flaw: Any) -> Any:
            if "messages" not in (request.body or {}):
                return super().answer(request, flaw)
            said = self.reply(request.body["messages"][0]["content"])
            with self.__dict__.setdefault("speaking", Lock()):
                self.answers.append(said if isinstance(said, str) else json.dumps(said))
                return super().answer(request, flaw)

    return Talking


@contextmanager
def model(kind: str, reply: Reply, timeout: float = 10.0) -> Iterator[tuple[LoopbackServer, Any]]:
    """A server of that kind, and a generator at it."""
    ollama = kind == "ollama"
    made = talking(OllamaServer)([MODEL]) if ollama else talking(OpenAIServer)(MODEL, accent="vllm")
    made.reply = reply
    with made as server:
        made_generator = OllamaGenerator if ollama else OpenAIGenerator
        generator = made_generator(MODEL, url=server.url, timeout=timeout, backoff=0.001, attempts=2)
        yield server, generator
        generator.close()


def prompts(server: LoopbackServer) -> list[str]:
    """What the server was asked, without what it was sent back."""
    bodies = [request.body for request in server.requests if request.path in PATHS.values()]
    return [body["messages"][0]["content"] for body in bodies if len(body["messages"]) == 1]


TEXTS = {
    "discovery": "Superconductivity was discovered in 1911 by Heike Kamerlingh Onnes.",
    "taft": "William Howard Taft was president of the United States from 1909 to 1913.",
    "wilson": "Woodrow Wilson was president of the United States from 1913 to 1921.",
    "magnet": "Superconductivity is used in magnets. A magnet of a scanner is cooled with helium.",
    "tea": "Green tea is steeped in water of eighty degrees.",
    "education": "Estella Leopold has degrees in botany from Wisconsin, Berkeley and Yale.",
}
COLLECTIONS = {name: "science" if name in ("discovery", "magnet", "tea") else "people" for name in TEXTS}
QUESTION = "Who was president of the United States when superconductivity was discovered?"


def library(folder: Path, texts: Mapping[str, str] = TEXTS) -> LocalStore:
    """A store with a source of one chunk for each text."""
    store = LocalStore(folder)
    store.use_embedder(EMBEDDER.fingerprint)
    for (name, text), vector in zip(texts.items(), EMBEDDER.embed(list(texts.values())), strict=True):
        collection = COLLECTIONS.get(name, "science")
        place = {"collection": collection, "source_file": name, "chunk_index": 0, "source_hash": "1"}
        store.replace_source(collection, name, [EmbeddedChunk(text, {**place, "start": 0, "end": len(text)}, vector)])
    return store


class Fixed:
    """A base that finds the same documents whatever is asked, and remembers what it was asked."""

    def __init__(self, *names: str, texts: Mapping[str, str] = TEXTS) -> None:
        self.found = [
            Document(
                texts[name],
                {"source_file": name, "collection": COLLECTIONS.get(name, "science")},
                1 / rank,
                name,
                (StageScore("fixed", "other", 1 / rank),),
            )
            for rank, name in enumerate(names, 1)
        ]
        self.queries: list[str] = []

    def retrieve(self, query: str, *, top_k: int | None = None, where: Any = None) -> list[Document]:
        self.queries.append(query)
        return self.found[:top_k]


class Says:
    """A generator in this process, for tests of what a technique makes of an answer."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self.prompts: list[str] = []

    def generate(self, prompt: str, *, schema: Any = None) -> str:
        self.prompts.append(prompt)
        said = self.reply(prompt)
        if isinstance(said, Exception):
            raise said
        return said if isinstance(said, str) else json.dumps(said)


def names(documents: list[Document]) -> list[str]:
    return [str(document.metadata["source_file"]) for document in documents]
