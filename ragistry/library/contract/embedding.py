"""Embedding of texts in parallel batches, with retries of temporary errors."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import lru_cache, partial
from typing import TYPE_CHECKING, NoReturn, TypeVar

import stamina

from ragistry.errors import (
    EmbeddingGenerationError,
    ModelConnectionError,
    ModelError,
    ModelNotFoundError,
    StoreLockedError,
)
from ragistry.library.contract.chunks import OnError
from ragistry.models.registry import choose_embedder
from ragistry.protocols import Embedder
from ragistry.types import Chunk, EmbeddedChunk, Role

if TYPE_CHECKING:
    from ragistry.protocols import Vectors

log = logging.getLogger(__name__)

AT_ONCE = 4
"""Number of parallel batches, so that a server has work during the transfer of an answer."""
ATTEMPTS = 3
FIRST_WAIT, LONGEST_WAIT = 0.05, 2.0
"""Seconds before the first retry; each further wait is doubled."""
TRANSIENT = (StoreLockedError, TimeoutError)
"""Temporary errors: another writer, a time-out; and a failed embedding of a third-party embedder. The built-in ones
retry by themselves."""
FAILURES = (ModelError, TimeoutError)
LATE_IN_A_ROW = 3
"""Number of consecutive time-outs after which chunks are no longer skipped, because the server hangs."""

Answer = TypeVar("Answer")
Batch = Sequence[tuple[str, Chunk]]
Embedded = list[tuple[str, EmbeddedChunk]]


@lru_cache(maxsize=1)
def default_embedder() -> Embedder:
    """Return all-MiniLM-L6-v2, the contract's model with 384 dimensions.

    The model is loaded on first use and shared by the process.
    """
    return choose_embedder("minilm")


def retried(call: Callable[[], Answer], on: tuple[type[Exception], ...] = TRANSIENT) -> Answer:
    """Call a function up to `ATTEMPTS` times while it raises one of these errors."""
    for attempt in stamina.retry_context(
        on=on, attempts=ATTEMPTS, timeout=None, wait_initial=FIRST_WAIT, wait_max=LONGEST_WAIT, wait_jitter=0.05
    ):
        with attempt:
            answer = call()
    return answer


def query_vector(query: str, embedder: Embedder) -> Sequence[float]:
    """Embed a query.

    Raises:
        ModelError: The query cannot be embedded.
    """
    vector: Sequence[float] = _vectors([query], "query", embedder)[0]
    return vector


def _vectors(texts: Sequence[str], role: Role, embedder: Embedder) -> Vectors:
    is_own = type(embedder).__module__.startswith("ragistry.")
    on = TRANSIENT if is_own else (*TRANSIENT, EmbeddingGenerationError)
    return retried(lambda: embedder.embed(texts, role=role), on)


def embedded(
    chunks: Sequence[Chunk], ids: Sequence[str], embedder: Embedder, batch_size: int, on_error: OnError
) -> tuple[list[EmbeddedChunk], list[str]]:
    """Embed chunks in parallel batches.

    Args:
        chunks: The chunks.
        ids: Their ids.
        embedder: The embedder.
        batch_size: Number of chunks in a batch; `AT_ONCE` batches run in parallel.
        on_error: ``skip`` leaves out chunks that cannot be embedded alone, and logs them.

    Returns:
        The embedded chunks and their ids, in order.

    Raises:
        EmbeddingGenerationError: A chunk cannot be embedded. Also with ``skip``, if the server is unreachable, or after
            `LATE_IN_A_ROW` consecutive time-outs.
    """
    named = list(zip(ids, chunks, strict=True))
    batches = [named[start : start + batch_size] for start in range(0, len(named), batch_size)]
    embed = partial(_batch, embedder=embedder, on_error=on_error)
    done = embed(batches[0]) if len(batches) == 1 else _side_by_side(embed, batches)
    return [chunk for _, chunk in done], [name for name, _ in done]


def _side_by_side(embed: Callable[[Batch], Embedded], batches: Sequence[Batch]) -> Embedded:
    with ThreadPoolExecutor(AT_ONCE) as workers:
        futures = [workers.submit(copy_context().run, embed, batch) for batch in batches]
        try:
            return [pair for future in futures for pair in future.result()]
        finally:
            workers.shutdown(cancel_futures=True)


def _batch(batch: Batch, *, embedder: Embedder, on_error: OnError) -> Embedded:
    try:
        return _with_vectors(batch, embedder)
    except FAILURES as error:
        if on_error == "raise" or _is_down(error):
            _refuse(error)
        if len(batch) == 1:
            return _left_out(batch[0][0], error)
    return _one_by_one(batch, embedder)


def _one_by_one(batch: Batch, embedder: Embedder) -> Embedded:
    done: Embedded = []
    late = 0
    for name, chunk in batch:
        try:
            done += _with_vectors([(name, chunk)], embedder)
            late = 0
        except FAILURES as error:
            late = late + 1 if isinstance(error, ModelConnectionError | TimeoutError) else 0
            if late == LATE_IN_A_ROW or _is_down(error):
                _refuse(error)
            done += _left_out(name, error)
    return done


def _with_vectors(batch: Batch, embedder: Embedder) -> Embedded:
    vectors = _vectors([chunk.text for _, chunk in batch], "document", embedder)
    return [
        (name, EmbeddedChunk(chunk.text, chunk.metadata, vector))
        for (name, chunk), vector in zip(batch, vectors, strict=True)
    ]


def _left_out(name: str, error: Exception) -> Embedded:
    log.error("chunk %r cannot be embedded and was left out: %s", name, error)
    return []


def _refuse(error: Exception) -> NoReturn:
    """Raise the error as the contract's `EmbeddingGenerationError`."""
    if isinstance(error, EmbeddingGenerationError):
        raise error
    raise EmbeddingGenerationError(str(error)) from error


def _is_down(error: Exception) -> bool:
    """Return whether the server is unreachable, or lacks the model.

    Time-outs do not count, because a text may cause them.
    """
    from ragistry.models.http import worth_retrying  # loads httpx, which a model in this process does not need

    if not isinstance(error, ModelConnectionError):
        return isinstance(error, ModelNotFoundError)
    cause = error.__cause__
    in_time = not isinstance(cause, TimeoutError)
    return in_time and not (isinstance(cause, Exception) and worth_retrying(cause, longest_wait=0.0))
