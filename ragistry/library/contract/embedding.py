"""Embed chunks in parallel batches, with retries of temporary errors."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from ragistry.errors import EmbeddingGenerationError, ModelError, StoreLockedError
from ragistry.models.adapt import Counted, as_embedder
from ragistry.models.registry import choose_embedder
from ragistry.protocols import Embedder
from ragistry.types import Chunk, EmbeddedChunk, Role

if TYPE_CHECKING:
    from ragistry.protocols import Vectors

log = logging.getLogger(__name__)

OnError = Literal["raise", "skip"]
AT_ONCE = 4
"""Number of parallel batches, so that a server has work during the transfer of an answer."""
FAILURES = (ModelError, TimeoutError)
PLAIN = "word"
"""A text that every model accepts."""

Answer = TypeVar("Answer")


def call_with_retries(call: Callable[..., Answer], *arguments: Any, **options: Any) -> Answer:
    """Call a function up to three times while another writer, a time-out or a failed embedding stops it."""
    import stamina

    retry = stamina.RetryingCaller(attempts=3, timeout=None, wait_initial=0.05, wait_max=2.0, wait_jitter=0.05)
    return retry((StoreLockedError, TimeoutError, EmbeddingGenerationError), call, *arguments, **options)


class PatientEmbedder(Counted):
    """An embedder of a program, with retries; those of this package retry by themselves."""

    def embed(self, texts: Sequence[str], *, role: Role = "document") -> Vectors:
        vectors: Vectors = call_with_retries(self.own.embed, texts, role=role)
        return vectors


@lru_cache(maxsize=1)
def default_embedder() -> Embedder:
    """Return all-MiniLM-L6-v2, the contract's model with 384 dimensions.

    The model is loaded on first use and shared by the process.
    """
    return choose_embedder("minilm")


def patient(embedder: Embedder) -> Embedder:
    """Return an embedder that retries temporary errors."""
    counted = as_embedder(embedder)
    return PatientEmbedder(counted) if isinstance(counted, Counted) else counted


def embed_chunks(
    chunks: Mapping[str, Chunk], embedder: Embedder, batch_size: int, on_error: OnError
) -> dict[str, EmbeddedChunk]:
    """Embed chunks in batches, `AT_ONCE` in parallel.

    Args:
        chunks: The chunks, by their ids.
        embedder: The embedder.
        batch_size: Number of chunks in a batch.
        on_error: ``skip`` leaves out chunks that the model refuses, and logs them.

    Raises:
        EmbeddingGenerationError: A chunk cannot be embedded. Also with ``skip``, if the model does not work at all.
    """
    ids = list(chunks)
    batches = [ids[start : start + batch_size] for start in range(0, len(ids), batch_size)]
    context = copy_context()

    def embed(batch: list[str]) -> dict[str, EmbeddedChunk]:
        return context.copy().run(_batch, {key: chunks[key] for key in batch}, embedder, on_error)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return {key: chunk for done in pool.map(embed, batches) for key, chunk in done.items()}


def _batch(chunks: Mapping[str, Chunk], embedder: Embedder, on_error: OnError) -> dict[str, EmbeddedChunk]:
    """Embed a batch. With ``skip``, halve it until the texts are alone that the model refuses."""
    try:
        vectors = embedder.embed([chunk.text for chunk in chunks.values()], role="document")
        return {key: EmbeddedChunk(*chunks[key], vector) for key, vector in zip(chunks, vectors, strict=True)}
    except FAILURES as error:
        if on_error == "raise" or not _works(embedder, error):
            raise EmbeddingGenerationError(str(error)) from error
        if len(chunks) == 1:
            log.error("chunk %r cannot be embedded and was left out: %s", *chunks, error)
            return {}
    items = list(chunks.items())
    halves = items[: len(items) // 2], items[len(items) // 2 :]
    return {key: chunk for half in halves for key, chunk in _batch(dict(half), embedder, on_error).items()}


def _works(embedder: Embedder, error: Exception) -> bool:
    """Return whether the model accepts a plain word, so that an error is due to the texts."""
    if isinstance(error, EmbeddingGenerationError):
        return True
    try:
        embedder.embed([PLAIN], role="document")
    except FAILURES:
        return False
    return True
