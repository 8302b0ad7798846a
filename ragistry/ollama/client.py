"""A client of Ollama: embeddings, answers, chat, models."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from types import TracebackType
from typing import Any, Self

from ragistry.errors import ModelError, ModelNotFoundError
from ragistry.ollama.answers import WHOLE, Part, chatted, generated, texts_of
from ragistry.ollama.batches import Embeddings, OnLong, embed_texts
from ragistry.ollama.failures import RefusedError, TooLongError
from ragistry.ollama.host import resolve_host
from ragistry.ollama.http import JsonClient, Read
from ragistry.ollama.models import Limits, OllamaModel, as_object, embedded, full_name, installed, limits_of
from ragistry.ollama.structured import Schema, as_format, check_answer
from ragistry.ollama.whole import embed_whole
from ragistry.trace import model_call

Message = Mapping[str, Any]
"""``{"role": "system" | "user" | "assistant", "content": "…"}``"""
Options = Mapping[str, Any]
"""Ollama's options of a call, such as ``{"temperature": 0, "num_ctx": 8192}``."""


class OllamaClient:
    """One Ollama server. Threads may share a client; it keeps its connections until `close`.

    ``host``: its address in any spelling, else ``OLLAMA_HOST``, else this machine. ``timeout``: seconds to wait for
    each piece of an answer. ``attempts``, ``backoff``: retries, see `JsonClient`. ``keep_alive``: how long a model
    stays in memory after a call (``"10m"``, seconds, -1 for ever). ``api_key``: where one is asked for, else
    ``OLLAMA_API_KEY``.

    Every method raises `ModelConnectionError` where the server cannot be reached, `ModelNotFoundError` where it lacks
    the model, and `ModelError` for whatever else it answers.
    """

    def __init__(
        self,
        host: str | None = None,
        *,
        timeout: float = 60.0,
        attempts: int = 4,
        backoff: float = 0.5,
        keep_alive: str | float | None = None,
        api_key: str | None = None,
    ) -> None:
        key = api_key or os.environ.get("OLLAMA_API_KEY")
        self._server = JsonClient(
            resolve_host(host),
            server="Ollama",
            remedy="start it with `ollama serve`, or set OLLAMA_HOST to where it runs",
            timeout=timeout,
            attempts=attempts,
            backoff=backoff,
            headers={"Authorization": f"Bearer {key}"} if key else None,
        )
        self.host = self._server.base_url
        self._keep_alive = {} if keep_alive is None else {"keep_alive": keep_alive}
        self._limits: dict[str, Limits] = {}

    def embed(self, text: str, model: str, *, on_long: OnLong = "raise", options: Options | None = None) -> list[float]:
        """The embedding of one text; see `embed_batch`."""
        return self.embed_batch([text], model, on_long=on_long, options=options)[0]

    def embed_batch(
        self,
        texts: Sequence[str],
        model: str,
        *,
        batch_size: int = 32,
        on_long: OnLong = "raise",
        options: Options | None = None,
    ) -> Embeddings:
        """One vector a text, in their order, sent ``batch_size`` at a time.

        A text that is longer than the model takes in raises `EmbeddingGenerationError`; with ``on_long="truncate"``
        its beginning is embedded, which is logged and traced. Nothing is cut in silence.
        """

        def ask(batch: Sequence[str], truncate: bool = False) -> tuple[Embeddings, int]:
            return self._embed(model, {"input": list(batch), "truncate": truncate, **_options(options)})

        def window() -> int:
            return self.window(model, options)

        return embed_texts(
            texts,
            lambda batch: embed_whole(batch, ask, window),
            model=model,
            window=window,
            batch_size=batch_size,
            on_long=on_long,
            send_beginning=lambda batch: ask(batch, truncate=True)[0],
        )

    def generate(
        self,
        prompt: str,
        model: str,
        *,
        system: str | None = None,
        schema: Schema | None = None,
        options: Options | None = None,
    ) -> str:
        """The model's answer to ``prompt``.

        With ``schema``, a pydantic model or a JSON Schema, the answer is JSON; by a pydantic model it is checked, and
        `ModelError` says what the model said instead.
        """
        return _checked(
            self.generate_stream(prompt, model, system=system, schema=schema, options=options), schema, model
        )

    def generate_stream(
        self,
        prompt: str,
        model: str,
        *,
        system: str | None = None,
        schema: Schema | None = None,
        options: Options | None = None,
    ) -> Iterator[str]:
        """The answer of `generate`, piece by piece and unchecked."""
        body = {"prompt": prompt} if system is None else {"prompt": prompt, "system": system}
        return self._stream("/api/generate", generated, model, body, schema, options)

    def chat(
        self,
        messages: Sequence[Message],
        model: str,
        *,
        schema: Schema | None = None,
        options: Options | None = None,
    ) -> str:
        """The model's next message in the conversation; ``schema`` as in `generate`."""
        return _checked(self.chat_stream(messages, model, schema=schema, options=options), schema, model)

    def chat_stream(
        self,
        messages: Sequence[Message],
        model: str,
        *,
        schema: Schema | None = None,
        options: Options | None = None,
    ) -> Iterator[str]:
        """The message of `chat`, piece by piece and unchecked."""
        body = {"messages": [dict(message) for message in messages]}
        return self._stream("/api/chat", chatted, model, body, schema, options)

    def list_models(self) -> list[OllamaModel]:
        """The models that the server has, the one that changed last first."""
        return self._server.get("/api/tags", installed)

    def show(self, model: str) -> dict[str, Any]:
        """What the server tells of a model: ``details``, ``model_info``, ``parameters``, ``capabilities``, …"""
        return self._post("/api/show", model, {}, as_object)

    def digest(self, model: str) -> str:
        """The hexadecimal digest of the model's files; empty where the server does not tell."""
        digests = {full_name(there.name): there.digest for there in self.list_models()}
        return digests.get(full_name(model), "")

    def window(self, model: str, options: Options | None = None) -> int:
        """How many tokens the model takes in at most, asked once; 0 where the server does not tell."""
        if model not in self._limits:
            try:
                self._limits[model] = self._post("/api/show", model, {}, limits_of)
            except RefusedError:
                self._limits[model] = Limits()
        return self._limits[model].window(options or {})

    def version(self) -> str:
        """The version of the server."""
        return self._server.get("/api/version", lambda answer: str(answer["version"]))

    def close(self) -> None:
        """Close the connections; closing twice is harmless."""
        self._server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _embed(self, model: str, body: Mapping[str, Any]) -> tuple[Embeddings, int]:
        """The vectors of ``/api/embed``, unchecked, and how many tokens the server read."""
        vectors, tokens = self._post("/api/embed", model, body, embedded)
        model_call(tokens)
        return vectors, tokens

    def _stream(
        self,
        path: str,
        read: Callable[[Any], Part],
        model: str,
        body: Mapping[str, Any],
        schema: Schema | None,
        options: Options | None,
    ) -> Iterator[str]:
        form = {} if schema is None else {"format": as_format(schema)}
        request = {"model": model, **body, **WHOLE, **form, **_options(options), **self._keep_alive}
        try:
            with closing(self._server.stream(path, request, read)) as parts:
                yield from texts_of(parts, model)
        except RefusedError as error:
            raise self._explained(error, model) from error
        except TooLongError as error:
            raise ModelError(f"the prompt is longer than {model!r} takes in; shorten it, or raise num_ctx") from error

    def _post(self, path: str, model: str, body: Mapping[str, Any], read: Callable[[Any], Read]) -> Read:
        try:
            return self._server.post(path, {"model": model, **body, **self._keep_alive}, read)
        except RefusedError as error:
            raise self._explained(error, model) from error

    def _explained(self, error: RefusedError, model: str) -> ModelError:
        """The error itself; where the server lacks the model, one that says which models it has."""
        if error.status != 404 or "model" not in error.reason:
            return error
        there = ", ".join(installed_model.name for installed_model in self.list_models()) or "none"
        return ModelNotFoundError(
            f"{self._server.server} has no model {model!r}; get it with `ollama pull {model}`; it has: {there}"
        )


def _options(options: Options | None) -> dict[str, Any]:
    return {"options": dict(options)} if options else {}


def _checked(pieces: Iterator[str], schema: Schema | None, model: str) -> str:
    answer = "".join(pieces)
    if schema is not None:
        check_answer(answer, schema, model)
    return answer
