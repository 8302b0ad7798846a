"""Embed queries: cache the last ones, and batch those of one call or of several threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import Context, ContextVar
from dataclasses import dataclass, field
from functools import partial
from threading import Event, Lock
from typing import TYPE_CHECKING, Any

from ragistry import trace
from ragistry.errors import ModelError
from ragistry.protocols import Embedder
from ragistry.types import EmbedderFingerprint, Role

if TYPE_CHECKING:
    from ragistry.protocols import Vectors

CACHED = 256
SHORT = 200
"""Maximum length in characters of a query in a batch: below the limit of every model, because only a single query is
traced as cut."""
MOST = 32
"""Maximum number of queries in one call."""
AT_ONCE = 2
"""Number of concurrent calls: a single query uses one core only."""

Restore = tuple[Callable[..., Any], tuple[Any, ...]]


@dataclass(slots=True, eq=False)
class _Query:
    """A query of one thread. ``batch``: the queries this thread has to embed. ``row``: its vector, (1, d)."""

    text: str
    batch: list[_Query] | None = None
    row: Vectors | None = None
    woken: Event = field(default_factory=Event)


class _Together:
    """The short queries of a block, which are embedded in one call when the first of them is needed.

    Several threads may enter it at once, each in its own context.
    """

    def __init__(self, owner: QueryEmbedder, queries: Sequence[str]) -> None:
        self.owner = owner
        self._texts = [text for text in dict.fromkeys(queries) if len(text) <= SHORT]
        self._rows: dict[str, Vectors] | None = None
        self._lock = Lock()

    def __enter__(self) -> None:
        _TOGETHER.set(self)

    def __exit__(self, *_: object) -> None:
        _TOGETHER.set(None)

    def row(self, text: str) -> Vectors | None:
        """Return the vector of a query; None if it is not one of these, or the call failed."""
        with self._lock:
            if self._rows is None:
                self._texts = [one for one in self._texts if not self.owner.is_cached(one)]
                self._rows = self.owner.rows(self._texts) if len(self._texts) > 1 else {}
        return self._rows.get(text)


_TOGETHER: ContextVar[_Together | None] = ContextVar("together", default=None)


class QueryEmbedder:
    """An embedder that caches and batches single queries, so that several techniques embed a query once. Thread-safe.

    While the model is busy, new short queries wait and share the next call. If it is idle, a query is embedded at once,
    so that batching never delays it.

    Args:
        embedder: Computes the vectors.
        restore: A function and its arguments that build the embedder again in another process, which then loads the
            model only once; None to pickle ``embedder``.
    """

    def __init__(self, embedder: Embedder, *, restore: Restore | None = None) -> None:
        self.embedder = embedder
        self._restore = restore
        self._cached: dict[str, Vectors] = {}
        self._lock = Lock()
        self._running = 0
        self._waiting: list[_Query] = []

    @property
    def fingerprint(self) -> EmbedderFingerprint:
        return self.embedder.fingerprint

    @property
    def runtime(self) -> str:
        """The runtime of a model in this process, as `OnnxEmbedder.runtime`; else empty."""
        runtime: str = getattr(self.embedder, "runtime", "")
        return runtime

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return self.embedder.count_tokens(texts)

    @trace.span("ragistry.embed")
    def embed(self, texts: Sequence[str], *, role: Role = "document") -> Vectors:
        """As `Embedder.embed`. The vector of a single query is read-only."""
        if role != "query" or isinstance(texts, str) or len(texts) != 1 or not isinstance(texts[0], str):
            return self.embedder.embed(texts, role=role)
        text = texts[0]
        with self._lock:
            if (row := self._cached.pop(text, None)) is not None:
                self._cached[text] = row  # the last one used is the last one to be dropped
                return row
        row = self._embed_query(text)
        with self._lock:
            self._cached[text] = row
            if len(self._cached) > CACHED:
                del self._cached[next(iter(self._cached))]
        return row

    def together(self, queries: Sequence[str]) -> AbstractContextManager[None]:
        """Embed the short ones of these queries in one call when a search in this block needs the first of them."""
        return _Together(self, queries)

    def rows(self, texts: Sequence[str]) -> dict[str, Vectors]:
        """Embed queries in one call; empty if it failed. It is not traced: each search records its own query."""
        try:
            vectors = Context().run(partial(self.embedder.embed, texts, role="query"))
        except ModelError:
            return {}
        return {text: vectors[place : place + 1].copy() for place, text in enumerate(texts)}

    def is_cached(self, text: str) -> bool:
        """Return whether the vector of a query is in memory."""
        return text in self._cached

    def close(self) -> None:
        """Close the embedder's connections, if it has any."""
        close_part(self.embedder)

    def __reduce__(self) -> tuple[Any, ...]:
        return self._restore or (QueryEmbedder, (self.embedder,))

    def _embed_query(self, text: str) -> Vectors:
        row, together = None, _TOGETHER.get()
        if together is not None and together.owner is self and (row := together.row(text)) is not None:
            trace.model_call(tokens=self.embedder.count_tokens([text])[0])
        elif len(text) <= SHORT:
            row = self._batched(text)
        if row is None:  # a long query, or the call failed: embed each query alone to find the faulty one
            row = self.embedder.embed([text], role="query")
        row.flags.writeable = False
        return row

    def _batched(self, text: str) -> Vectors | None:
        """Embed a query, perhaps together with others; None if the shared call failed."""
        query = _Query(text)
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
                if len(query.batch) == 1:
                    return self.embedder.embed([text], role="query")
                rows = self.rows([one.text for one in query.batch])
                for one in query.batch:
                    one.row = rows.get(one.text)
            finally:
                for one in query.batch[1:]:
                    one.woken.set()
                with self._lock:
                    batch, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
                    self._running -= not batch
                if batch:  # its first thread embeds the next batch
                    batch[0].batch = batch
                    batch[0].woken.set()
        if query.row is not None:
            trace.model_call(tokens=self.embedder.count_tokens([text])[0])
        return query.row


def close_part(part: object) -> None:
    """Close a model, or another part of a workspace, if it can be closed."""
    close = getattr(part, "close", None)
    if callable(close):
        close()


def embedded_together(embedder: Embedder, queries: Sequence[str]) -> AbstractContextManager[None]:
    """Embed these queries in one call, for the searches in the block. It can be entered again."""
    return embedder.together(queries) if isinstance(embedder, QueryEmbedder) else nullcontext()
