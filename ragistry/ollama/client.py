"""A client of Ollama: embeddings, answers, chat, models."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote, urlsplit

from ragistry.errors import ConfigError, ModelError, ModelNotFoundError
from ragistry.models.answers import (
    Message,
    Part,
    answer_by_schema,
    messages_of,
    part_of,
    stream_answer,
    whole_answer,
)
from ragistry.models.http import JsonClient, Patience, Read, RefusedError
from ragistry.models.texts import ALWAYS_FITS, OnLong, TooLongError, embed_texts
from ragistry.trace import model_call
from ragistry.utils.urls import base_address, split_login

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from pydantic import BaseModel

Options = Mapping[str, Any]
"""Ollama's options for a call, such as ``{"temperature": 0, "num_ctx": 8192}``."""

# A long prompt is refused instead of losing its beginning. An answer ends when the window is full, instead of pushing
# the prompt out of it.
_WHOLE: Mapping[str, Any] = {"stream": False, "truncate": False, "shift": False}
REMEDY = "raise max_tokens (num_predict) or num_ctx"
"""How to allow longer answers."""
_MORE = " and" * 32
_NUM_CTX = re.compile(r"^num_ctx\s+(\d+)", re.MULTILINE)
PORT = 11434
_PATHS = re.compile(r"/(?:v1|api)/?$")
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class OllamaModel:
    """A model on a server: its name with tag, the hexadecimal digest of its files, their size in bytes."""

    name: str
    digest: str = ""
    size: int = 0


class OllamaClient:
    """One Ollama server. Threads may share a client; it keeps its connections until `close`.

    Args:
        host: Address; None for ``OLLAMA_HOST`` or this machine.
        timeout: Seconds for one complete answer, or for the embeddings of up to 8 texts.
        attempts: See `Patience`.
        retry_timeouts: See `Patience`.
        load_timeout: See `Patience`.
        api_key: API key; None for ``OLLAMA_API_KEY``.

    Every method raises `ModelConnectionError` if the server cannot be reached, `ModelNotFoundError` if it lacks the
    model, and `ModelError` for other errors.
    """

    def __init__(
        self,
        host: str | None = None,
        *,
        timeout: float = 60.0,
        attempts: int = 4,
        retry_timeouts: bool = True,
        load_timeout: float | None = None,
        api_key: str | None = None,
    ) -> None:
        self._server = JsonClient(
            resolve_host(host),
            Patience(timeout, load_timeout, attempts, retry_timeouts),
            server="Ollama",
            remedy="start it with `ollama serve`, or set OLLAMA_HOST to where it runs",
            api_key=api_key or os.environ.get("OLLAMA_API_KEY"),
        )
        self.host = self._server.base_url
        self._limits: dict[str, tuple[int, int]] = {}

    def embed(self, text: str, model: str, *, on_long: OnLong = "raise", options: Options | None = None) -> list[float]:
        """Embed one text; see `vectors`."""
        vector: list[float] = self.vectors([text], model, on_long=on_long, options=options)[0].tolist()
        return vector

    def vectors(
        self,
        texts: Sequence[str],
        model: str,
        *,
        batch_size: int = 32,
        on_long: OnLong = "raise",
        options: Options | None = None,
    ) -> NDArray[np.float64]:
        """Embed texts in batches: ``(n, d)`` in their order; ``(0, 0)`` without texts.

        A text longer than the model's limit raises `EmbeddingGenerationError`. With ``on_long="truncate"``, its
        beginning is embedded, which is logged and traced. Nothing is cut silently.
        """

        def window() -> int:
            return self.window(model, options)

        send = partial(self._embed_whole, model=model, window=window, options=options or {})
        return embed_texts(texts, send, model=model, window=window, batch_size=batch_size, on_long=on_long)

    def generate(
        self,
        prompt: str,
        model: str,
        *,
        system: str | None = None,
        schema: type[BaseModel] | None = None,
        options: Options | None = None,
    ) -> str:
        """Answer a prompt.

        With ``schema`` the answer is JSON. One that does not fit is requested once more; the second raises `ModelError`
        with the answer.
        """
        return self.chat(messages_of(prompt, system), model, schema=schema, options=options)

    def chat(
        self,
        messages: Sequence[Message],
        model: str,
        *,
        schema: type[BaseModel] | None = None,
        options: Options | None = None,
    ) -> str:
        """Return the model's next message in the conversation; ``schema`` as in `generate`."""
        form = {} if schema is None else {"format": schema.model_json_schema()}

        def ask(conversation: Sequence[Message]) -> str:
            body = {**_asked(conversation, options), **form}
            try:
                part = self._post("/api/chat", model, body, _parse_answer, loads=model)
            except RefusedError as error:
                if not error.too_long:
                    raise
                raise ModelError(f"the prompt is too long for {model!r}; shorten it, or increase num_ctx") from error
            model_call(part.tokens)
            return whole_answer(part, model, REMEDY)

        return ask(messages) if schema is None else answer_by_schema(ask, list(messages), schema, model)

    def stream(self, messages: Sequence[Message], model: str, *, options: Options | None = None) -> Iterator[str]:
        """Yield the pieces of the model's next message as they arrive.

        Raises `ModelError`; see `models.answers.stream_answer`.
        """
        return stream_answer(self._stream(messages, model, options), model, REMEDY, self._server.server)

    def _stream(self, messages: Sequence[Message], model: str, options: Options | None) -> Iterator[Part]:
        body = {"model": model, **_asked(messages, options), "stream": True}
        with self._explained(model):
            for line in self._server.stream("/api/chat", body, loads=model):
                yield self._server.read(line, _parse_piece)

    def list_models(self) -> list[OllamaModel]:
        """List the models on the server, last changed first."""
        return self._server.get(
            "/api/tags",
            lambda tags: [
                OllamaModel(
                    str(row.get("model") or row["name"]),  # older servers have only a name
                    str(row.get("digest") or "").removeprefix("sha256:"),
                    int(row.get("size") or 0),
                )
                for row in tags.get("models") or []
            ],
        )

    def digest(self, model: str) -> str:
        """Return the hexadecimal digest of the model's files; empty if the server does not report it."""
        digests = {full_name(installed.name): installed.digest for installed in self.list_models()}
        return digests.get(full_name(model), "")

    def window(self, model: str, options: Options | None = None) -> int:
        """Return the maximum tokens of the model, requested once; 0 if the server does not report it."""
        if model not in self._limits:
            try:
                self._limits[model] = self._post("/api/show", model, {}, _limits_of)
            except RefusedError:
                self._limits[model] = 0, 0
        trained, num_ctx = self._limits[model]
        return min(filter(None, (trained, int((options or {}).get("num_ctx") or num_ctx))), default=0)

    def version(self) -> str:
        """Return the version of the server."""
        return self._server.get("/api/version", lambda answer: str(answer["version"]))

    def close(self) -> None:
        """Close the connections; closing twice is harmless."""
        self._server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _embed_whole(
        self, texts: Sequence[str], *, model: str, window: Callable[[], int], options: Options
    ) -> list[Any]:
        """Embed texts; raise `TooLongError` if the server cut one.

        A server that supports ``truncate: false`` refuses a long text. Other servers cut it, which only the token count
        of the whole batch shows. So a text that may exceed the limit is sent alone. If its count reaches the limit, the
        text is sent again with some more words: if these are accepted too, both were cut.
        """
        longest = max(len(text.encode()) for text in texts)
        limit = window() if longest > ALWAYS_FITS else 0
        if len(texts) > 1 and limit and longest > 4 * limit:
            raise TooLongError(f"a text of {longest:,} bytes may fill the window of {limit:,} tokens")
        vectors, tokens = self._embed(texts, model, options)
        if len(texts) == 1 and limit and tokens >= limit - 2:
            try:
                self._embed([texts[0] + _MORE], model, options)
            except TooLongError:
                return vectors
            raise TooLongError(f"the server read only {tokens:,} tokens of a text of {longest:,} bytes")
        return vectors

    def _embed(self, texts: Sequence[str], model: str, options: Options) -> tuple[list[Any], int]:
        """Request the unchecked vectors of ``/api/embed``, and the number of tokens read."""
        body = {"input": list(texts), "truncate": False, **_given(options)}
        answer: tuple[list[Any], int] = self._post(
            "/api/embed",
            model,
            body,
            lambda answer: (answer["embeddings"], int(answer.get("prompt_eval_count") or 0)),
            texts=texts,
            loads=model,
        )
        model_call(answer[1])
        return answer

    def _post(
        self, path: str, model: str, body: Mapping[str, Any], read: Callable[[Any], Read], **options: Any
    ) -> Read:
        """Call `JsonClient.post` with the model."""
        with self._explained(model):
            return self._server.post(path, {"model": model, **body}, read, **options)

    @contextmanager
    def _explained(self, model: str) -> Iterator[None]:
        """Translate the error of a missing model to one that lists the models of the server."""
        try:
            yield
        except RefusedError as error:
            if error.status != 404 or "model" not in error.reason:
                raise
            models = ", ".join(installed.name for installed in self.list_models()) or "none"
            raise ModelNotFoundError(
                f"{self._server.server} has no model {model!r}; get it with `ollama pull {model}`; it has: {models}"
            ) from error


def full_name(model: str) -> str:
    """Return the name with its tag in lower case, as Ollama identifies models."""
    name = model.lower()
    return name if ":" in name.rpartition("/")[2] else f"{name}:latest"


def _given(options: Options | None) -> dict[str, Any]:
    return {"options": dict(options)} if options else {}


def _asked(messages: Sequence[Message], options: Options | None) -> dict[str, Any]:
    return {"messages": [dict(message) for message in messages], **_WHOLE, **_given(options)}


def _parse_answer(answer: dict[str, Any]) -> Part:
    """Parse a chat answer."""
    if not answer.get("done"):
        raise ValueError("the answer is incomplete")
    return _parse_piece(answer)


def _parse_piece(line: dict[str, Any]) -> Part:
    """Parse a piece of an answer; the last one has the reason of the end and the tokens read and written."""
    if error := line.get("error"):
        raise ValueError(error)
    tokens = int(line.get("prompt_eval_count") or 0) + int(line.get("eval_count") or 0)
    end = str(line.get("done_reason") or "") if line.get("done") else None
    return part_of(line.get("message") or {}, end=end, tokens=tokens)


def _limits_of(description: Mapping[str, Any]) -> tuple[int, int]:
    """Parse the maximum tokens of a model by its training and by its parameters; 0 if unknown."""
    info = description.get("model_info") or {}
    own = _NUM_CTX.search(description.get("parameters") or "")
    trained = min((int(value) for key, value in info.items() if key.endswith(".context_length")), default=0)
    return trained, int(own.group(1)) if own else 0


def resolve_host(host: str | None = None) -> str:
    """Return the address to use: ``host``, else ``OLLAMA_HOST``, else this machine; see `parse_host`."""
    return parse_host(host or os.environ.get("OLLAMA_HOST"))


def parse_host(host: str | None) -> str:
    """Normalise an address to ``scheme://[login@]host:port[/path]`` without a slash at its end.

    Defaults: host this machine; scheme http; port 11434, or the scheme's default port if a scheme is given. Addresses
    for listening (``0.0.0.0``, ``::``) mean this machine too. Paths of the protocol are left out, such as ``/v1`` or
    ``/api/chat``. User name and password are kept, for a proxy. Raises `ConfigError`.
    """
    text, login = split_login(base_address((host or "").strip().strip("\"'")))
    scheme, written, rest = text.partition("://")
    if not written:
        scheme, rest = "http", text
    if scheme not in _PORTS:
        raise ConfigError(f"the address of Ollama must start with http:// or https://, got {text!r}")
    if ":" in rest and _address(rest):
        rest = f"[{rest}]"
    try:
        parts = urlsplit(f"{scheme}://{rest}")
        name, port = parts.hostname or "127.0.0.1", parts.port
    except ValueError as error:
        raise ConfigError(f"the address of Ollama is malformed: {text!r} ({error}); write host:port") from error
    port = port or (_PORTS[scheme] if written else PORT)
    before = "" if login is None else f"{quote(login.user, safe='')}:{quote(login.password, safe='')}@"
    if (address := _address(name)) and address.is_unspecified:
        name = "127.0.0.1" if address.version == 4 else "::1"
    name = f"[{name}]" if ":" in name else name
    return f"{scheme}://{before}{name}:{port}/{_PATHS.sub('', parts.path).strip('/')}".rstrip("/")


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
