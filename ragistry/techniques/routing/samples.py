"""Samples of the targets: read when they are first needed, and again when the target changes."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from contextlib import suppress
from itertools import compress
from math import inf
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from ragistry.errors import EmbeddingMismatchError, StoreError
from ragistry.protocols import DocumentStore, Embedder, LibraryStore
from ragistry.techniques.routing.target import Place, Reachable, Sampled, Target
from ragistry.techniques.routing.words import Vocabulary, WordCounts
from ragistry.trace import degraded
from ragistry.types import Document, SourceInfo, Where
from ragistry.utils.fingerprints import check_embedder
from ragistry.utils.ids import chunk_id
from ragistry.utils.where import matches, normalise

if TYPE_CHECKING:
    from ragistry.protocols import Vectors

SECONDS = 1.0
"""Minimum time between two looks at a store."""
PATIENCE = 100
"""The same as a multiple of the time that a look takes, so that looking takes at most 1 % of the time."""
LONGEST = 60.0
"""Maximum seconds between two looks, even if a look takes long, or long to fail."""
KEPT_IN_ALL = 16_384
"""Maximum number of sampled chunks of all targets: with more than 32 targets, each has a sample smaller than 512."""
LEAST = 16
"""Minimum number of sampled chunks of a target, with any number of targets."""
EMBEDDED = 32
"""Number of chunks that are embedded if a store has no vectors of the router's embedder."""

Item = TypeVar("Item")
_Look = tuple[dict[str | None, object], float]
"""The versions of a store, see `_versions`, and the time until which they are valid."""


class Sample(NamedTuple):
    """Some of the chunks of a target.

    Attributes:
        metadatas: The metadata of each chunk.
        vectors: Unit vectors of all or of the first chunks, ``(n, d)`` float32; None if not requested, or if all
            chunks wait for their vectors.
        words: The words of all chunks; None if not requested.
    """

    metadatas: list[dict[str, Any]]
    vectors: Vectors | None
    words: WordCounts | None

    def within(self, where: Where | None) -> Sample:
        """Select the chunks that meet a condition in its normal form."""
        if where is None:
            return self
        kept = np.array([matches(where, metadata) for metadata in self.metadatas], dtype=np.bool_)
        vectors, words = self.vectors, self.words
        if vectors is not None:
            vectors = vectors[kept[: len(vectors)]] if kept[: len(vectors)].any() or not kept.any() else None
        return Sample(
            [metadata for metadata, keep in zip(self.metadatas, kept, strict=True) if keep],
            vectors,
            None if words is None else words.within(kept),
        )


def sample_documents(place: Place, where: Where | None, size: int) -> list[Document]:
    """Read up to ``size`` chunks that meet a condition, spread evenly over the sources."""
    if isinstance(place, Sampled):
        condition = normalise(where)
        found = place.sample(size)
        return [document for document in found if condition is None or matches(condition, document.metadata)]
    limits = {} if where is None else normalise(where)
    if isinstance(place, LibraryStore) and limits.keys() <= {"collection"}:
        chunks = [
            (info, index)
            for info in place.sources(limits.get("collection", {}).get("$eq"))
            if not limits or matches(limits, {"collection": info.collection})
            for index in range(info.chunks)
        ]
        # Ids by the list of sources, without reading chunks; they do not exist if the caller chose other ids.
        ids = [chunk_id(info.collection, info.source_file, index) for info, index in spread(chunks, size)]
        if found := place.get(ids):
            return found
    return place.get(spread([document.id for document in place.scan(where)], size))


def spread(items: Sequence[Item], size: int) -> list[Item]:
    """Select up to ``size`` items at equal distances."""
    step = max(1.0, len(items) / size)
    return [items[int(number * step)] for number in range(min(size, len(items)))]


class _Kept(NamedTuple):
    """What was last read of a target: its sample, or the problem; valid until ``due``."""

    place: Place | None
    version: object
    sample: Sample | None
    problem: str
    due: float


class _Answer(NamedTuple):
    """What is known of some targets."""

    targets: list[Target]
    samples: list[Sample | None]
    problems: list[str]
    due: float


class Samples:
    """Samples of targets, spread evenly over their sources. Safe for threads.

    All samples have the same size; with many targets it is smaller, so that memory has a bound (`KEPT_IN_ALL`). An
    outdated sample makes the choice a little less precise, and changes nothing in the results of a search.

    Args:
        store: The store of the targets that have no technique of their own.
        size: Maximum number of chunks of each target.
        embedder: The embedder of the vectors; None: no vectors.
        words: Count words.
        seconds: Minimum time between two looks at a store.
    """

    def __init__(
        self,
        store: DocumentStore,
        size: int,
        embedder: Embedder | None = None,
        *,
        words: bool = False,
        seconds: float = SECONDS,
    ) -> None:
        self.store = store
        self.size = size
        self.embedder = embedder
        self.vocabulary: Vocabulary | None = {} if words else None
        self.seconds = seconds
        self._kept: dict[tuple[str, int], _Kept] = {}  # by target and size of sample
        self._answer = _Answer([], [], [], 0.0)
        self._lock = Lock()

    def of(self, items: Sequence[Reachable]) -> list[Sample | None]:
        """Return the sample of each target within its condition, or None if nothing is known of its content.

        The result is the same list as before if no condition applies and nothing changed. A store of a target's own
        that cannot be read is named in the trace.

        Raises:
            ModelError: The embedder failed.
            StoreError: The shared store cannot be read.
        """
        samples = self._whole([item.target for item in items])
        if all(item.where is None for item in items):
            return samples
        return [
            None if sample is None else sample.within(item.where) for item, sample in zip(items, samples, strict=True)
        ]

    def _whole(self, targets: list[Target]) -> list[Sample | None]:
        answer = self._answer
        if monotonic() >= answer.due or answer.targets != targets:
            answer = self._answered(targets)
        for problem in answer.problems:
            degraded(problem)
        return answer.samples

    def _answered(self, targets: list[Target]) -> _Answer:
        # A power of two below the share of each target, so that another target rarely changes it.
        size = min(self.size, max(LEAST, 1 << (KEPT_IN_ALL // len(targets)).bit_length() - 1))
        places = [target.place(self.store) for target in targets]
        keys = [(target.name, size) for target in targets]
        known = [kept for key, place in zip(keys, places, strict=True) if (kept := self._of_place(key, place))]
        # Wait for another thread that reads, perhaps from a slow archive, only if a target is not known yet.
        is_current = self._lock.acquire(blocking=len(known) < len(targets))
        if is_current:
            try:
                looks: dict[int, _Look] = {}
                known = [
                    self._current(target, place, size, looks) for target, place in zip(targets, places, strict=True)
                ]
            finally:
                self._lock.release()
        samples, before = [kept.sample for kept in known], self._answer
        if before.targets == targets and all(map(operator.is_, before.samples, samples)):
            samples = before.samples
        problems = [kept.problem for kept in known if kept.problem]
        answer = _Answer(targets, samples, problems, min((kept.due for kept in known), default=0.0))
        if is_current:
            self._answer = answer
        return answer

    def _of_place(self, key: tuple[str, int], place: Place | None) -> _Kept | None:
        """Return what was last read of a target, unless another store replaced its own."""
        kept = self._kept.get(key)
        return kept if kept is not None and kept.place is place else None

    def _current(self, target: Target, place: Place | None, size: int, looks: dict[int, _Look]) -> _Kept:
        """Return what is known of a target, read again if it is due and the target changed."""
        key, start = (target.name, size), monotonic()
        kept = self._of_place(key, place)
        if kept is not None and start < kept.due:
            return kept
        if place is None:
            found = _Kept(None, None, None, "", inf)
        else:
            try:
                if id(place) not in looks:
                    looks[id(place)] = _versions(place), self._due(start)
                versions, due = looks[id(place)]
                own = target.name if target.technique is None else None
                version = versions.get(own, versions[None])
                is_same = kept is not None and kept.version == version
                sample = kept.sample if kept is not None and is_same else self._read(place, target.condition, size)
                found = _Kept(place, version, sample, "", due)
            except StoreError as error:
                if place is self.store:
                    raise
                said = str(error) or type(error).__name__
                problem = f"{target.name} is routed by its description only: {said}"
                found = _Kept(place, None, None, problem, self._due(start))
        self._kept[key] = found
        return found

    def _due(self, start: float) -> float:
        """Return when to look again at a store, after a look that began at ``start``."""
        now = monotonic()
        return now + max(self.seconds, min(LONGEST, PATIENCE * (now - start)))

    def _read(self, place: Place, where: Where | None, size: int) -> Sample:
        """Read a sample, with stored vectors if they are of the embedder, else with those of a few chunks."""
        documents = sample_documents(place, where, size)
        vectors: Vectors | None = None
        if self.embedder is not None:
            if not documents:
                vectors = np.empty((0, 0), dtype=np.float32)
            elif isinstance(place, LibraryStore):
                with suppress(EmbeddingMismatchError):
                    check_embedder(place, self.embedder.fingerprint)
                    vectors = place.vectors([document.id for document in documents])
            if vectors is not None and not all(has := [bool(row.any()) for row in vectors]):  # others wait for theirs
                waiting = [document for document, one in zip(documents, has, strict=True) if not one]
                documents = [*compress(documents, has), *waiting]
                vectors = vectors[has] if any(has) else None
            elif vectors is None:
                first = spread(documents, EMBEDDED)
                chosen = {id(document) for document in first}
                documents = [*first, *(document for document in documents if id(document) not in chosen)]
                vectors = self.embedder.embed([document.content for document in first])
        vocabulary = self.vocabulary
        words = None if vocabulary is None else WordCounts.of((document.content for document in documents), vocabulary)
        return Sample([document.metadata for document in documents], vectors, words)


def _versions(place: Place) -> dict[str | None, object]:
    """Return values that differ after a change: of each collection, and, as None, of the whole store."""
    if not isinstance(place, LibraryStore):
        return {None: place.count()}
    sources = place.sources()
    collections: dict[str | None, list[SourceInfo]] = {}
    for info in sources:
        collections.setdefault(info.collection, []).append(info)
    return {**collections, None: sources}
