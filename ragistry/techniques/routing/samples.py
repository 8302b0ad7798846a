"""Samples of the targets: read when they are first needed, and again when the target changes."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from itertools import compress
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
"""Seconds after which a store that failed is asked again, even if it took long to fail."""
KEPT_IN_ALL = 16_384
"""Maximum number of sampled chunks of all targets: with more than 32 targets, each has a sample smaller than 512."""
LEAST = 16
"""Minimum number of sampled chunks of a target, with any number of targets."""
EMBEDDED = 32
"""Number of chunks that are embedded if a store has no vectors of the router's embedder."""

Item = TypeVar("Item")
State = list[SourceInfo] | list[int]
"""The sources of a store, or its number of chunks; it differs if the store changed."""


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
        condition = None if where is None else normalise(where)
        found = place.sample(size)
        return [document for document in found if condition is None or matches(condition, document.metadata)]
    return place.get(_ids_by_sources(place, where, size)) or place.get(
        spread([document.id for document in place.scan(where)], size)
    )


def _ids_by_sources(store: DocumentStore, where: Where | None, size: int) -> list[str]:
    """Compute ids from the list of sources without reading chunks; they do not exist if the caller chose other ids."""
    condition = {} if where is None else normalise(where)
    if not isinstance(store, LibraryStore) or not condition.keys() <= {"collection"}:
        return []
    only = condition.get("collection", {}).get("$eq")
    chunks = [
        (info, index)
        for info in store.sources(only)
        if not condition or matches(condition, {"collection": info.collection})
        for index in range(info.chunks)
    ]
    return [chunk_id(info.collection, info.source_file, index) for info, index in spread(chunks, size)]


def spread(items: Sequence[Item], size: int) -> list[Item]:
    """Select up to ``size`` items at equal distances."""
    step = max(1.0, len(items) / size)
    return [items[int(number * step)] for number in range(min(size, len(items)))]


class _Seen(NamedTuple):
    """The state of a store when it was last read, or the error; valid until ``due``."""

    place: Place
    due: float
    state: State
    parts: dict[str, State]  # by collection
    problem: str = ""


class _Kept(NamedTuple):
    """A sample, the state of its store, and the part of this state that concerns the target."""

    place: Place
    state: State
    part: State
    sample: Sample


class _Known(NamedTuple):
    """The last sample of a target, or the reason why there is none."""

    sample: Sample | None
    problem: str = ""


class _Answer(NamedTuple):
    """The samples of some targets, valid until ``due``."""

    targets: list[Target]
    samples: list[Sample | None]
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
        self._seen: dict[int, _Seen] = {}
        self._answer = _Answer([], [], 0.0)
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
        if monotonic() < answer.due and answer.targets == targets:
            return answer.samples
        size = self._size_for(len(targets))
        known = [self._known(target, size) for target in targets]
        # Wait for another thread that reads, perhaps from a slow archive, only if a target is not known yet.
        if self._lock.acquire(blocking=any(one is None for one in known)):
            try:
                return self._answered(targets, [self._current(target, size) for target in targets])
            finally:
                self._lock.release()
        for target, one in zip(targets, known, strict=True):
            if one is not None and one.problem:
                _report(target, one.problem)
        return [None if one is None else one.sample for one in known]

    def _size_for(self, targets: int) -> int:
        """Return a power of two below the share of each target, so that another target rarely changes it."""
        if self.size * targets <= KEPT_IN_ALL:
            return self.size
        return min(self.size, max(LEAST, 1 << (KEPT_IN_ALL // targets).bit_length() - 1))

    def _answered(self, targets: list[Target], samples: list[Sample | None]) -> list[Sample | None]:
        """Keep the samples, unless a place has a problem, which is reported with each query."""
        known = self._answer
        if known.targets == targets and all(map(operator.is_, known.samples, samples)):
            samples = known.samples
        places = [place for target in targets if (place := target.place(self.store)) is not None]
        seen = [self._seen.get(id(place)) for place in places]
        due = min((0.0 if each is None or each.problem else each.due for each in seen), default=0.0)
        self._answer = _Answer(targets, samples, due)
        return samples

    def _known(self, target: Target, size: int) -> _Known | None:
        """Return what is known of a target without reading its store; None: nothing yet."""
        place = target.place(self.store)
        if place is None:
            return _Known(None)
        seen, kept = self._seen.get(id(place)), self._kept.get((target.name, size))
        if seen is not None and seen.place is place and seen.problem:
            return _Known(None, seen.problem)
        return _Known(kept.sample) if kept is not None and kept.place is place else None

    def _current(self, target: Target, size: int) -> Sample | None:
        """Return the sample of a target, read again if the target changed."""
        place, key = target.place(self.store), (target.name, size)
        if place is None:
            return None
        kept = self._kept.get(key)
        if kept is not None and kept.place is not place:  # another store replaced it
            del self._kept[key]
            if kept.place is not self.store:
                self._seen.pop(id(kept.place), None)
            kept = None
        seen = self._look(place)
        if seen.problem:
            _report(target, seen.problem)
            return None
        if kept is not None and kept.state is seen.state:
            return kept.sample
        part = seen.state if target.technique is not None else seen.parts.get(target.name) or seen.state
        if kept is not None and kept.part == part:
            sample = kept.sample
        else:
            start = monotonic()
            try:
                sample = self._read(place, target.condition, size)
            except StoreError as error:
                _report(target, self._failed(place, monotonic() - start, error).problem)
                return None
        self._kept[key] = _Kept(place, seen.state, part, sample)
        return sample

    def _look(self, place: Place) -> _Seen:
        """Return the state of a store: the same object as before until it is due."""
        start = monotonic()
        seen = self._seen.get(id(place))
        if seen is not None and seen.place is place and start < seen.due:
            return seen
        try:
            state: State = place.sources() if isinstance(place, LibraryStore) else [place.count()]
        except StoreError as error:
            return self._failed(place, monotonic() - start, error)
        now = monotonic()
        due = now + max(self.seconds, PATIENCE * (now - start))
        if seen is not None and seen.place is place and seen.state == state:
            found = seen._replace(due=due, problem="")
        else:
            found = _Seen(place, due, state, _by_collection(state))
        self._seen[id(place)] = found
        return found

    def _failed(self, place: Place, took: float, error: StoreError) -> _Seen:
        """Keep the error of a store, which is not read again until it is due. Raises that of the shared store."""
        if place is self.store:
            raise error
        due = monotonic() + max(self.seconds, min(LONGEST, PATIENCE * took))
        failed = self._seen[id(place)] = _Seen(place, due, [], {}, str(error) or type(error).__name__)
        return failed

    def _read(self, place: Place, where: Where | None, size: int) -> Sample:
        """Read a sample, with stored vectors if they are of the embedder, else with those of a few chunks."""
        documents, vectors = sample_documents(place, where, size), None
        if self.embedder is not None:
            vectors = _stored_vectors(place, documents, self.embedder)
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


def _stored_vectors(place: Place, documents: Sequence[Document], embedder: Embedder) -> Vectors | None:
    if not documents:
        return np.empty((0, 0), dtype=np.float32)
    if not isinstance(place, LibraryStore):
        return None
    try:
        check_embedder(place, embedder.fingerprint)
        return place.vectors([document.id for document in documents])
    except EmbeddingMismatchError:
        return None


def _report(target: Target, problem: str) -> None:
    degraded(f"{target.name} is routed by its description only: {problem}")


def _by_collection(state: State) -> dict[str, State]:
    """Group the sources of a store by collection."""
    parts: dict[str, list[SourceInfo]] = {}
    for info in state:
        if isinstance(info, SourceInfo):
            parts.setdefault(info.collection, []).append(info)
    return dict(parts)
