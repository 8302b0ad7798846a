"""Embeddings by a server that speaks OpenAI's protocol: Text Embeddings Inference, vLLM, llama.cpp, others."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ragistry.errors import EmbeddingGenerationError, ModelNotFoundError
from ragistry.models.rows import prefixed, prefixes_of, unit_rows
from ragistry.models.served import Served, ask_served, asked, windows_of
from ragistry.ollama.batches import Embeddings, OnLong, embed_texts
from ragistry.ollama.failures import RefusedError, TooLongError
from ragistry.ollama.http import JsonClient
from ragistry.trace import model_call
from ragistry.types import EmbedderFingerprint, Role

if TYPE_CHECKING:
    from ragistry.protocols import Vectors


def open_server(base_url: str, api_key: str | None, timeout: float, attempts: int, backoff: float) -> JsonClient:
    """The server at ``base_url``, which may end in ``/v1``, as OpenAI's clients write it."""
    return JsonClient(
        base_url.rstrip("/").removesuffix("/v1"),
        server="The model server",
        remedy="start it, or correct its address",
        timeout=timeout,
        attempts=attempts,
        backoff=backoff,
        headers={"Authorization": f"Bearer {api_key}"} if api_key else None,
    )


class OpenAICompatibleEmbedder:
    """Embeds over ``/v1/embeddings``; nothing is called before the first use.

    ``model``: None takes what the server serves. ``batch_size``: texts in one request, fewer where the server says so.
    The prefixes are those that the model was trained with (`KNOWN_MODELS`) unless given. ``on_long``: a text that is
    longer than the model takes in is refused, or its beginning is embedded, which is logged and traced. ``timeout``,
    ``attempts``, ``backoff``: see `JsonClient`.
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        base_url: str,
        api_key: str | None = None,
        batch_size: int = 32,
        query_prefix: str | None = None,
        document_prefix: str | None = None,
        on_long: OnLong = "truncate",
        timeout: float = 60.0,
        attempts: int = 4,
        backoff: float = 0.5,
    ) -> None:
        self._asked_for = model
        self._server = open_server(base_url, api_key, timeout, attempts, backoff)
        self._batch_size = batch_size
        self._own_prefixes = (query_prefix, document_prefix)
        self._on_long = on_long
        # Not `cached_property`: that of Python 3.11 has one lock for all objects of the class, so that a server which
        # hangs would hold up the others.
        self._told: Served | None = None
        self._fingerprint: EmbedderFingerprint | None = None

    @property
    def fingerprint(self) -> EmbedderFingerprint:
        """Asked of the server once; raises `ModelError`."""
        if self._fingerprint is None:
            self._fingerprint = self._fingerprint_of(self._embed(["dimension"]))
        return self._fingerprint

    def embed(self, texts: Sequence[str], *, role: Role = "document") -> Vectors:
        """See `ragistry.protocols.Embedder`."""
        vectors = self._embed(prefixed(texts, self._prefixes[role]))
        if vectors and self._fingerprint is None:  # so that the server is not asked twice for the first text
            self._fingerprint = self._fingerprint_of(vectors)
        return unit_rows(vectors, self.fingerprint.dimension)

    def close(self) -> None:
        """Close the connections."""
        self._server.close()

    @property
    def _served(self) -> Served:
        if self._told is None:
            self._told = ask_served(self._server, self._asked_for)
        return self._told

    @property
    def _prefixes(self) -> dict[Role, str]:
        return prefixes_of(self._served.model, *self._own_prefixes)

    def _fingerprint_of(self, vectors: Embeddings) -> EmbedderFingerprint:
        served = self._served
        return EmbedderFingerprint(
            provider="openai-compatible",
            model=served.model,
            digest=served.digest,
            dimension=len(vectors[0]),
            query_prefix=self._prefixes["query"],
            document_prefix=self._prefixes["document"],
            max_tokens=served.max_tokens,
        )

    def _embed(self, texts: Sequence[str]) -> Embeddings:
        served = self._served
        return embed_texts(
            texts,
            self._send,
            model=served.model,
            window=lambda: served.max_tokens,
            batch_size=min(self._batch_size, served.batch_size or self._batch_size),
            on_long=self._on_long,
        )

    def _send(self, texts: Sequence[str]) -> Embeddings:
        body = {"model": self._served.model, "input": list(texts)}
        try:
            vectors, tokens = self._server.post("/v1/embeddings", body, partial(_by_index, count=len(texts)))
        except RefusedError as error:
            raise self._explained(error) from error
        model_call(tokens)
        if self._served.truncates and tokens >= self._served.max_tokens:
            self._check_whole(texts)
        return vectors

    def _check_whole(self, texts: Sequence[str]) -> None:
        """Raise `TooLongError` where a server that cuts in silence has cut one of these texts."""
        # A text has no more tokens than bytes and two special ones.
        doubtful = [text for text in texts if len(text.encode()) + 2 > self._served.max_tokens]
        if doubtful and self._server.post("/tokenize", {"inputs": doubtful}, _longest) > self._served.max_tokens:
            raise TooLongError(f"the server cut a text to {self._served.max_tokens:,} tokens without saying so")

    def _explained(self, error: RefusedError) -> RefusedError | ModelNotFoundError:
        if error.status != 404 or "model" not in error.reason:
            return error
        there = ", ".join(asked(self._server, "/v1/models", windows_of) or ()) or "none that it names"
        return ModelNotFoundError(
            f"{self._server.server} has no model {self._served.model!r}; start it with that model; it has: {there}"
        )


def _by_index(answer: dict[str, Any], *, count: int) -> tuple[Embeddings, int]:
    """The vectors in the order of the texts, which ``index`` tells and the list does not, and the tokens read."""
    rows = {int(row["index"]): row["embedding"] for row in answer["data"]}
    if rows.keys() != set(range(count)):
        raise EmbeddingGenerationError(f"asked the server for {count} embeddings, got those of index {sorted(rows)}")
    return [rows[index] for index in range(count)], int((answer.get("usage") or {}).get("prompt_tokens") or 0)


def _longest(tokenized: list[list[Any]]) -> int:
    return max(map(len, tokenized))
