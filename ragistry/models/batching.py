"""Batch queries of several threads: while the model is busy, new queries wait and share the next call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import Context
from dataclasses import dataclass, field
from functools import partial
from threading import Event, Lock
from typing import TYPE_CHECKING

from ragistry import trace
from ragistry.errors import ModelError
from ragistry.protocols import Embedder
from ragistry.types import EmbedderFingerprint, Role

if TYPE_CHECKING:
    from ragistry.protocols import Vectors

SHORT = 200
"""Maximum length in characters of a query in a batch: below the limit of every model, because only a single query is
traced as cut."""
MOST = 32
"""Maximum number of queries in one call."""
AT_ONCE = 2
"""Number of concurrent calls: a single query uses one core only."""


@dataclass(slots=True, eq=False)
class _Query:
    """A query of one thread. ``batch``: the queries this thread has to embed. ``row``: its vector, (1, d)."""

    text: str
    batch: list[_Query] | None = None
    row: Vectors | None = None
    woken: Event = field(default_factory=Event)


class BatchedQueries:
    """An embedder that batches single short queries of several threads. Thread-safe.

    If the model is idle, a query is embedded at once, so that batching never delays it. ``observe`` is called with
    the number of queries of each call.
    """

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self.observe: Callable[[int], object] = lambda _: None
        self._lock = Lock()
        self._running = 0
        self._waiting: list[_Query] = []

    @property
    def fingerprint(self) -> EmbedderFingerprint:
        return self.embedder.fingerprint

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return self.embedder.count_tokens(texts)

    def embed(self, texts: Sequence[str], *, role: Role = "document") -> Vectors:
        """As `Embedder.embed`."""
        single = role == "query" and not isinstance(texts, str) and len(texts) == 1
        if not single or not isinstance(texts[0], str) or len(texts[0]) > SHORT:
            return self.embedder.embed(texts, role=role)
        query = _Query(texts[0])
        with self._lock:
            if self._running >= AT_ONCE:
                self._waiting.append(query)
            else:
                self._running += 1
                query.batch = [query]
        if query.batch is None:
            query.woken.wait()
        if query.batch is not None:
            try:
                self.observe(len(query.batch))
                if len(query.batch) == 1:
                    return self.embedder.embed(texts, role="query")
                self._embed(query.batch)
            finally:
                self._pass_on()
        if query.row is None:  # the call failed: embed each query alone to find the faulty one
            return self.embedder.embed(texts, role="query")
        trace.model_call(tokens=self.embedder.count_tokens(texts)[0])
        return query.row

    def _embed(self, batch: list[_Query]) -> None:
        """Embed the queries of several threads, and wake the others."""
        embed = partial(self.embedder.embed, [query.text for query in batch], role="query")
        try:
            vectors = Context().run(embed)  # traced by no one here: each thread records its own query
            for place, query in enumerate(batch):
                query.row = vectors[place : place + 1].copy()
        except ModelError:
            pass
        finally:
            for query in batch[1:]:
                query.woken.set()

    def _pass_on(self) -> None:
        """Let a waiting thread embed the next batch."""
        with self._lock:
            batch, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
            self._running -= not batch
        if batch:
            batch[0].batch = batch
            batch[0].woken.set()

    def close(self) -> None:
        """Close the embedder's connections, if it has any."""
        close = getattr(self.embedder, "close", None)
        if callable(close):
            close()
