"""Texts to vectors in batches, several at once, with what passes by itself tried again."""

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
from ragistry.library.contract_chunks import OnError
from ragistry.models.registry import choose_embedder
from ragistry.protocols import Embedder
from ragistry.types import Chunk, EmbeddedChunk, Role

if TYPE_CHECKING:
    from ragistry.protocols import Vectors

log = logging.getLogger(__name__)

AT_ONCE = 4
"""Batches that are embedded side by side, so that a server has work while an answer travels."""
ATTEMPTS = 3
FIRST_WAIT, LONGEST_WAIT = 0.05, 2.0
"""Seconds between the attempts; each wait is twice the one before."""
TRANSIENT = (StoreLockedError, TimeoutError)
"""What may pass: another writer, a time-out; and an embedding that failed, where the embedder is somebody else's.
Ragistry's own try again by themselves what may pass, and know what cannot."""
FAILURES = (ModelError, TimeoutError)
LATE_IN_A_ROW = 3
"""Chunks without an answer in time after which no more are skipped: it is the server that hangs."""

Answer = TypeVar("Answer")
Batch = Sequence[tuple[str, Chunk]]
Embedded = list[tuple[str, EmbeddedChunk]]


@lru_cache(maxsize=1)
def default_embedder() -> Embedder:
    """all-MiniLM-L6-v2, the contract's model (384 dimensions), loaded on first use and kept by the process."""
    return choose_embedder("minilm")


def retried(call: Callable[[], Answer], on: tuple[type[Exception], ...] = TRANSIENT) -> Answer:
    """The answer of ``call``, which is tried `ATTEMPTS` times where it raises one of these."""
    for attempt in stamina.retry_context(
        on=on, attempts=ATTEMPTS, timeout=None, wait_initial=FIRST_WAIT, wait_max=LONGEST_WAIT, wait_jitter=0.05
    ):
        with attempt:
            answer = call()
    return answer


def query_vector(query: str, embedder: Embedder) -> Sequence[float]:
    """The vector of a query. Raises `ModelError`."""
    vector: Sequence[float] = _vectors([query], "query", embedder)[0]
    return vector


def _vectors(texts: Sequence[str], role: Role, embedder: Embedder) -> Vectors:
    is_own = type(embedder).__module__.startswith("ragistry.")
    on = TRANSIENT if is_own else (*TRANSIENT, EmbeddingGenerationError)
    return retried(lambda: embedder.embed(texts, role=role), on)


def embedded(
    chunks: Sequence[Chunk], ids: Sequence[str], embedder: Embedder, batch_size: int, on_error: OnError
) -> tuple[list[EmbeddedChunk], list[str]]:
    """The chunks with their vectors, and their ids, in order; `AT_ONCE` batches of ``batch_size`` are on their way.

    What cannot be embedded raises `EmbeddingGenerationError`, and nothing is lost because nothing has been written
    yet. ``on_error="skip"``: a chunk that cannot be embedded by itself either is logged and left out; but a server that
    cannot be reached, or gives no answer in time for `LATE_IN_A_ROW` chunks in a row, is no fault of theirs.
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
    """Raise the error by the contract's name."""
    if isinstance(error, EmbeddingGenerationError):
        raise error
    raise EmbeddingGenerationError(str(error)) from error


def _is_down(error: Exception) -> bool:
    """Whether nobody listens, or has the model, which is no fault of a text; a time-out can be one."""
    from ragistry.models.http import worth_retrying  # loads httpx, which a model in this process does not need

    if not isinstance(error, ModelConnectionError):
        return isinstance(error, ModelNotFoundError)
    cause = error.__cause__
    in_time = not isinstance(cause, TimeoutError)
    return in_time and not (isinstance(cause, Exception) and worth_retrying(cause, longest_wait=0.0))
