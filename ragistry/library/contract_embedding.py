"""Texts to vectors in batches, several at once, with what passes by itself tried again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import lru_cache, partial
from typing import TypeVar

import stamina

from ragistry.embedders.choose import choose_embedder
from ragistry.errors import EmbeddingGenerationError, StoreLockedError
from ragistry.library.contract_chunks import OnError
from ragistry.protocols import Embedder
from ragistry.types import Chunk, EmbeddedChunk

log = logging.getLogger(__name__)

AT_ONCE = 4
"""Batches that are embedded side by side, so that a server has work while an answer travels."""
ATTEMPTS = 3
FIRST_WAIT, LONGEST_WAIT = 0.05, 2.0
"""Seconds between the attempts; each wait is twice the one before."""
TRANSIENT = (EmbeddingGenerationError, StoreLockedError, TimeoutError)
"""What may pass: an embedding that failed, another writer, a time-out. A server that is not there is told at once."""

Answer = TypeVar("Answer")
Batch = Sequence[tuple[str, Chunk]]
Embedded = list[tuple[str, EmbeddedChunk]]


@lru_cache(maxsize=1)
def default_embedder() -> Embedder:
    """all-MiniLM-L6-v2, the contract's model (384 dimensions), loaded on first use and kept by the process."""
    return choose_embedder("minilm")


def retried(call: Callable[[], Answer]) -> Answer:
    """The answer of ``call``, which is tried `ATTEMPTS` times where it raises one of `TRANSIENT`."""
    for attempt in stamina.retry_context(
        on=TRANSIENT, attempts=ATTEMPTS, timeout=None, wait_initial=FIRST_WAIT, wait_max=LONGEST_WAIT, wait_jitter=0.05
    ):
        with attempt:
            answer = call()
    return answer


def embedded(
    chunks: Sequence[Chunk], ids: Sequence[str], embedder: Embedder, batch_size: int, on_error: OnError
) -> tuple[list[EmbeddedChunk], list[str]]:
    """The chunks with their vectors, and their ids, in order; `AT_ONCE` batches of ``batch_size`` are on their way.

    ``on_error="skip"``: a chunk that cannot be embedded by itself either is logged and left out; else it raises
    `EmbeddingGenerationError`, and nothing is lost because nothing has been written yet.
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
    texts = [chunk.text for _, chunk in batch]
    try:
        vectors = retried(lambda: embedder.embed(texts, role="document"))
    except EmbeddingGenerationError as error:
        if on_error == "raise":
            raise
        if len(batch) == 1:
            log.error("chunk %r cannot be embedded and was left out: %s", batch[0][0], error)
            return []
        return [pair for one in batch for pair in _batch([one], embedder=embedder, on_error=on_error)]
    return [
        (name, EmbeddedChunk(chunk.text, chunk.metadata, vector))
        for (name, chunk), vector in zip(batch, vectors, strict=True)
    ]
