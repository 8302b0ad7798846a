"""Texts to vectors in batches, with what passes by itself tried again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeVar

import stamina

from ragistry.embedders.choose import choose_embedder
from ragistry.errors import EmbeddingGenerationError, StoreLockedError
from ragistry.library.contract_chunks import OnError
from ragistry.protocols import Embedder
from ragistry.types import Chunk, EmbeddedChunk

log = logging.getLogger(__name__)

ATTEMPTS = 3
FIRST_WAIT, LONGEST_WAIT = 0.05, 2.0
"""Seconds between the attempts; each wait is twice the one before."""
TRANSIENT = (EmbeddingGenerationError, StoreLockedError, TimeoutError)
"""What may pass: an embedding that failed, another writer, a time-out. A server that is not there is told at once."""

Answer = TypeVar("Answer")


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
    """The chunks with their vectors, and their ids, ``batch_size`` of them embedded at once.

    ``on_error="skip"``: a chunk that cannot be embedded by itself either is logged and left out; else it raises
    `EmbeddingGenerationError`, and nothing is lost because nothing has been written yet.
    """
    done: list[EmbeddedChunk] = []
    kept: list[str] = []
    for start in range(0, len(chunks), batch_size):
        batch, names = chunks[start : start + batch_size], ids[start : start + batch_size]
        try:
            done += _batch(batch, embedder)
            kept += names
        except EmbeddingGenerationError as error:
            if on_error == "raise":
                raise
            if len(batch) == 1:
                log.error("chunk %r cannot be embedded and was left out: %s", names[0], error)
                continue
            one_by_one, found = embedded(batch, names, embedder, 1, on_error)
            done += one_by_one
            kept += found
    return done, kept


def _batch(chunks: Sequence[Chunk], embedder: Embedder) -> list[EmbeddedChunk]:
    vectors = retried(lambda: embedder.embed([chunk.text for chunk in chunks], role="document"))
    return [EmbeddedChunk(chunk.text, chunk.metadata, vector) for chunk, vector in zip(chunks, vectors, strict=True)]
