"""Embedders, generators and rerankers on servers with OpenAI's protocol: vLLM, llama.cpp, TEI, hosted ones."""

from __future__ import annotations

import base64
import json
import logging
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, Field

from ragistry.config.archives import Seconds, ServerURL
from ragistry.config.models import ApiKey
from ragistry.config.numbers import NumberOrNone, Whole, WholeOrNone
from ragistry.errors import EmbeddingGenerationError, IncompleteAnswerError, ModelError, ModelNotFoundError
from ragistry.models.answers import (
    Message,
    Part,
    answer_by_schema,
    in_words,
    messages_of,
    part_of,
    stream_answer,
    whole_answer,
)
from ragistry.models.http import (
    ANSWER_SECONDS,
    FILTERED,
    LOAD_SECONDS,
    NO_KEY,
    NOT_IMPLEMENTED,
    QUERY_SECONDS,
    RERANK_SECONDS,
    Patience,
    Read,
    RefusedError,
)
from ragistry.models.known import known_model, prefixes_of
from ragistry.models.openai_api import OpenAIAPI, events
from ragistry.models.tei import Served, indexes_of, scores_in_batches, scores_of, served_by_tei, tokenized
from ragistry.models.texts import (
    TooLongError,
    check_texts,
    embed_texts,
    estimate_tokens,
    unit_rows,
)
from ragistry.trace import model_call
from ragistry.types import EmbedderFingerprint, Role
from ragistry.utils.fingerprints import PROBE, probe_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragistry.protocols import Vectors

REMEDY = "raise max_tokens"
"""How to allow longer answers."""

_log = logging.getLogger(__name__)


class OpenAICompatibleEmbedder:
    """Embeds over ``/v1/embeddings``; the first request is sent on first use.

    Args:
        model: Name of the model; None for the one of the server.
        url: See `OpenAIAPI`.
        api_key: See `JsonClient`.
        batch_size: Maximum number of texts per request.
        prefixes: Prefix of each role; None for those the model was trained with (`KNOWN_MODELS`).
        probe: Add the vector of a fixed text to the fingerprint, which takes a request.
        load_timeout: Seconds for the first request, which may load the model.
        patience: How long and how often to ask, in place of ``load_timeout``. The time is for a request of up to 8
            texts, such as a query; proportionally longer for more.

    Of a text longer than the model's limit, the beginning is embedded, which is logged and traced.
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        url: str,
        api_key: str | None = None,
        batch_size: int = 32,
        prefixes: Mapping[Role, str] | None = None,
        probe: bool = True,
        load_timeout: float = LOAD_SECONDS,
        patience: Patience | None = None,
    ) -> None:
        self._model = model
        self._probes = probe
        self._api = OpenAIAPI(url, patience or Patience(QUERY_SECONDS, load_timeout), api_key)
        self._batch_size = batch_size
        self._own_prefixes = prefixes
        # Not `cached_property`: in Python 3.11 it has one lock for all objects of the class, so a server that hangs
        # would block the others.
        self._known_served: Served | None = None
        self._fingerprint: EmbedderFingerprint | None = None
        self._dimension = 0

    @property
    def fingerprint(self) -> EmbedderFingerprint:
        """Requested from the server once. Raises `ModelError`."""
        if self._fingerprint is None:
            vector = self._embed([PROBE])[0] if self._probes or not self._dimension else ()
            served, prefixes = self._served, self._prefixes
            self._fingerprint = EmbedderFingerprint(
                provider="openai-compatible",
                model=served.model,
                digest=served.digest,
                dimension=self._dimension or len(vector),
                query_prefix=prefixes["query"],
                document_prefix=prefixes["document"],
                max_tokens=served.max_tokens,
                probe=probe_of(vector) if self._probes else "",
            )
        return self._fingerprint

    def embed(self, texts: Sequence[str], *, role: Role = "document") -> Vectors:
        """See `ragistry.protocols.Embedder`."""
        vectors = self._embed([self._prefixes[role] + text for text in check_texts(texts)])
        if not self._dimension:
            self._dimension = vectors.shape[1] or self.fingerprint.dimension
        return unit_rows(vectors, self._dimension)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """As `Embedder.count_tokens`, for each text as a document with its prefix.

        Text Embeddings Inference counts tokens; for other servers they are estimated (`estimate_tokens`).
        """
        sent = [self._prefixes["document"] + text for text in check_texts(texts)]
        if self._served.tokenizes:
            try:
                return tokenized(self._api, sent, self._request_size)
            except RefusedError as error:  # a proxy that allows only embeddings
                _log.info("%s; its tokens are estimated", error)
        return estimate_tokens(sent)

    def close(self) -> None:
        """Close the connections."""
        self._api.close()

    @property
    def _served(self) -> Served:
        if self._known_served is None:
            self._known_served = ask_served(self._api, self._model)
        return self._known_served

    @property
    def _prefixes(self) -> Mapping[Role, str]:
        return prefixes_of(self._served.model) if self._own_prefixes is None else self._own_prefixes

    @property
    def _request_size(self) -> int:
        return min(self._batch_size, self._served.batch_size or self._batch_size)

    def _embed(self, texts: Sequence[str]) -> NDArray[np.float64]:
        served = self._served
        return embed_texts(
            texts,
            self._send,
            model=served.model,
            window=lambda: served.max_tokens,
            batch_size=self._request_size,
            on_long="truncate",
        )

    def _send(self, texts: Sequence[str]) -> list[Any]:
        served, body = self._served, {"model": self._served.model, "input": list(texts)}
        with _explained(self._api, served.model):
            read = partial(_by_index, count=len(texts))
            vectors, tokens = self._api.ask("/embeddings", body, read, texts=texts, loads=served.model)
        model_call(tokens)
        if served.truncates and tokens >= served.max_tokens:
            # a text has at most as many tokens as bytes, plus two special ones
            doubtful = [text for text in texts if len(text.encode()) + 2 > served.max_tokens]
            if max(tokenized(self._api, doubtful, self._request_size), default=0) > served.max_tokens:
                raise TooLongError(f"the server silently cut a text to {served.max_tokens:,} tokens")
        return vectors


class OpenAIGenerator:
    """Answers prompts over ``/v1/chat/completions``.

    A schema is sent as ``response_format``, or in the prompt if the server refuses that. Time-outs are not retried.

    Args:
        model: Name of the model.
        url: See `OpenAIAPI`.
        api_key: See `JsonClient`.
        system: System message before every prompt.
        temperature: 0 takes the likeliest words; None does not send it, which some models require.
        max_tokens: Maximum length of an answer.
        timeout: Seconds for one complete answer; None for 300 for the first, which may load the model, and then 120.
        options: More fields of the request, passed on unchanged.
    """

    def __init__(
        self,
        model: str,
        *,
        url: ServerURL,
        api_key: ApiKey = None,
        system: str | None = None,
        temperature: Annotated[NumberOrNone, Field(ge=0)] = 0.0,
        max_tokens: Annotated[WholeOrNone, Field(ge=1)] = None,
        timeout: Seconds | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        self.model = model
        self._system = system
        settings = {"temperature": temperature, "max_tokens": max_tokens}
        self._options = {name: value for name, value in settings.items() if value is not None} | dict(options or {})
        patience = Patience(timeout or ANSWER_SECONDS, timeout or LOAD_SECONDS, retry_timeouts=False)
        self._api = OpenAIAPI(url, patience, api_key)
        self._takes_schemas = True

    def generate(self, prompt: str, *, schema: type[BaseModel] | None = None) -> str:
        """See `ragistry.protocols.Generator`."""
        messages = messages_of(prompt, self._system)
        if schema is None:
            return self._chat(messages)
        return answer_by_schema(partial(self._chat_by_schema, schema), messages, schema, self.model)

    def stream(self, prompt: str) -> Iterator[str]:
        """Yield the pieces of the answer as they arrive. Raises `ModelError`; see `models.answers.stream_answer`."""
        return stream_answer(self._stream(prompt), self.model, REMEDY, self._api.server)

    def _stream(self, prompt: str) -> Iterator[Part]:
        body = {
            "model": self.model,
            "messages": messages_of(prompt, self._system),
            "stream": True,
            "stream_options": {"include_usage": True},
            **self._options,
        }
        with _explained(self._api, self.model):
            for event in events(self._api.lines("/chat/completions", body, loads=self.model)):
                yield Part(end="") if event == "[DONE]" else self._api.read(event, _parse_event)

    def close(self) -> None:
        """Close the connections."""
        self._api.close()

    def _chat_by_schema(self, schema: type[BaseModel], messages: list[Message]) -> str:
        if self._takes_schemas:
            form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema.model_json_schema()}}
            try:
                return self._chat(messages, response_format=form)
            except RefusedError as error:
                failed = error.status >= 500 and error.status != NOT_IMPLEMENTED and not error.refuses_form
                if failed or error.status in (*NO_KEY, 404, 429):
                    raise
                _log.info("%s; the schema goes into the prompt", error)
        last = messages[-1]
        answer = self._chat([*messages[:-1], {**last, "content": f"{last['content']}\n\n{in_words(schema)}"}])
        self._takes_schemas = False
        return answer

    def _chat(self, messages: list[Message], **more: Any) -> str:
        body = {"model": self.model, "messages": messages, **more, **self._options}
        with _explained(self._api, self.model):
            part = self._api.ask("/chat/completions", body, _parse_answer, loads=self.model)
        model_call(part.tokens)
        return whole_answer(part, self.model, REMEDY)


class OpenAIReranker:
    """Ranks over ``/v1/rerank``, the protocol of Cohere and Jina, which vLLM and llama.cpp support too.

    The server defines the scale of the scores.

    Args:
        model: Name of the model; None for the one of the server.
        url: See `OpenAIAPI`.
        api_key: See `JsonClient`.
        batch_size: Maximum number of texts per request; halved if the server refuses it.
        timeout: Seconds for one request; None for 300 for the first, which may load the model, and then 30.
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        url: ServerURL,
        api_key: ApiKey = None,
        batch_size: Annotated[Whole, Field(ge=1)] = 32,
        timeout: Seconds | None = None,
    ) -> None:
        self.model = model
        patience = Patience(timeout or RERANK_SECONDS, timeout or LOAD_SECONDS)
        self._api = OpenAIAPI(url, patience, api_key)
        self._batch_size = batch_size

    def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        """See `ragistry.protocols.Reranker`."""
        model = {} if self.model is None else {"model": self.model}

        def send(batch: Sequence[str]) -> dict[int, float]:
            body = {**model, "query": query, "documents": list(batch), "top_n": len(batch)}
            return self._api.ask(
                "/rerank", body, lambda answer: scores_of(answer["results"], "relevance_score"), loads=self.model or ""
            )

        with _explained(self._api, self.model or ""):
            return scores_in_batches(send, texts, self._batch_size, self._api.server)

    def close(self) -> None:
        """Close the connections."""
        self._api.close()


def ask_served(api: OpenAIAPI, model: str | None) -> Served:
    """Ask the server for its model: Text Embeddings Inference has ``/info``, others ``/v1/models``.

    Args:
        api: The server.
        model: The expected model; None for any. Servers without these paths are not checked: many can only embed.

    Raises:
        ModelNotFoundError: The server has another model.
        ModelError: The server failed, or does not report its model.
    """
    served = _ask(partial(api.get, "/info", served_by_tei), needed=model is None)
    if served is None:
        windows = _ask(partial(api.get, api.places("/models"), _windows), needed=model is None, last=True) or {}
        name = model or next(iter(windows), None)
        if name is None:
            raise ModelError(f"{api.server} does not report its model; set the name of the model")
        served = Served(name, max_tokens=windows.get(name, 0))
    is_path = served.model.startswith((".", "/"))
    if model and not is_path and _bare(model) != _bare(served.model):
        raise ModelNotFoundError(f"{api.server} serves {served.model!r}, not {model!r}; start it with that model")
    name = model or served.model
    known = known_model(name)
    return replace(served, model=name, max_tokens=served.max_tokens or (known.max_tokens if known else 0))


def _ask(ask: Callable[[], Read], *, needed: bool = True, last: bool = False) -> Read | None:
    """Return the answer; None if the server lacks the path, or fails and the answer is not ``needed``.

    ``last``: no other path has the information, so a refused API key is an error.
    """
    try:
        return ask()
    except RefusedError as error:
        failed = error.status >= 500 and error.status != NOT_IMPLEMENTED
        if needed and (failed or (last and error.status in NO_KEY)):
            raise
        _log.info("%s", error)
        return None


@contextmanager
def _explained(api: OpenAIAPI, model: str) -> Iterator[None]:
    """Explain a refusal in the block: if the server lacks the model, list the models it has.

    A prompt that a content filter refuses has no answer, which is no fault of the server.
    """
    try:
        yield
    except RefusedError as error:
        if error.is_filtered:
            raise IncompleteAnswerError(f"{error}; ask in other words", "filtered") from error
        if error.status != 404 or "model" not in error.reason:
            raise
        models = (
            ", ".join(_ask(partial(api.get, api.places("/models"), _windows), needed=False) or ())
            or "none that it reports"
        )
        raise ModelNotFoundError(
            f"{api.server} has no model {model!r}; start it with that model; it has: {models}"
        ) from error


def _parse_event(event: dict[str, Any]) -> Part:
    """Parse an event of a stream; some servers send a whole ``message`` or ``text`` instead of a ``delta``."""
    if error := event.get("error"):
        if FILTERED.search(str(error)):
            return Part(end="content_filter")
        raise ValueError(error)
    part = _parse_answer({"choices": [], **event})
    is_whole = event.get("object") == "chat.completion"  # from a server that does not stream
    return part._replace(end="") if is_whole and part.end is None else part


def _bare(model: str) -> str:
    return model.lower().rpartition("/")[2]


def _windows(models: Mapping[str, Any]) -> dict[str, int]:
    """Parse the names in ``/v1/models``, and the maximum tokens of each model, if reported (vLLM)."""
    return {str(row["id"]): int(row.get("max_model_len") or 0) for row in models["data"]}


def _by_index(answer: dict[str, Any], *, count: int) -> tuple[list[Any], int]:
    """Parse the vectors in the order of the texts, and the tokens read.

    Rows are ordered by ``index``; without it, by their order in the list.
    """
    data = answer["data"]
    has_index = any(row.get("index") is not None for row in data)
    indexes = indexes_of(data) if has_index else range(len(data))
    rows = {index: row["embedding"] for index, row in zip(indexes, data, strict=True)}
    if len(data) != count or rows.keys() != set(range(count)):
        raise EmbeddingGenerationError(
            f"asked the server for {count} embeddings, got those with index {sorted(rows)!r:.100}; check its log"
        )
    tokens = int((answer.get("usage") or {}).get("prompt_tokens") or 0)
    return [_numbers(rows[index]) for index in range(count)], tokens


def _numbers(embedding: Any) -> Any:
    """Decode a vector; some servers send it as JSON in a text, or the bytes of its float32 numbers in base64."""
    if not isinstance(embedding, str):
        return embedding
    if embedding.lstrip().startswith("["):
        return json.loads(embedding)
    content = base64.b64decode(embedding, validate=True)
    return list(struct.unpack(f"<{len(content) // 4}f", content))


def _parse_answer(answer: dict[str, Any]) -> Part:
    """Parse a chat completion, or an event of its stream; the event with the tokens has no choices."""
    choice: dict[str, Any] = next(iter(answer["choices"] or ()), {})
    delta, whole = choice.get("delta"), choice.get("message")
    message = delta or whole or {"content": choice.get("text")}
    tokens = int((answer.get("usage") or {}).get("total_tokens") or 0)
    end = choice.get("finish_reason")
    return part_of(message, end=None if end is None else str(end), tokens=tokens, is_whole=not delta)
