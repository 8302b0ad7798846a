"""What targets hold, as a sample of each: read when it is first asked for, and again when it changes."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from threading import Lock
from time import monotonic
from typing import NamedTuple

from ragistry.errors import StoreError
from ragistry.protocols import DocumentStore, Embedder, LibraryStore
from ragistry.techniques.routing.sampling import Sample, read_sample
from ragistry.techniques.routing.target import Place, Reachable, Target
from ragistry.techniques.routing.words import Vocabulary
from ragistry.trace import degraded
from ragistry.types import SourceInfo

SECONDS = 1.0
"""For how long what is stored is taken to be as it was."""
PATIENCE = 100
"""And as many times as long as it takes to look, so that looking takes 1 % of the time at most."""
LONGEST = 60.0
"""Seconds after which a store that failed is asked again, however long it took to fail."""

KEPT_IN_ALL = 16_384
"""Chunks of all targets together: with more than 32 targets, each has a smaller sample than 512."""
LEAST = 16
"""Chunks of a target, however many targets there are."""

State = list[SourceInfo] | list[int]
"""What a store holds, as far as a change shows in it."""


class _Seen(NamedTuple):
    """What a store held when it was last looked at, or why it could not be; to be looked at again when ``due``."""

    place: Place
    due: float
    state: State
    parts: dict[str, State]  # by collection
    problem: str = ""


class _Kept(NamedTuple):
    """The sample of a target, the state of the store in which it is right, and what of that concerns the target."""

    place: Place
    state: State
    part: State
    sample: Sample


class _Answer(NamedTuple):
    """The samples of some targets, right without another look until ``due``."""

    targets: list[Target]
    samples: list[Sample | None]
    due: float


class Samples:
    """Up to ``size`` chunks a target, spread evenly over its sources, with what the routers need. Safe for threads.

    Of many targets the samples are smaller, all of the same size (`KEPT_IN_ALL`), so that memory has a bound.
    ``embedder``: that of the vectors, None for no vectors; ``words``: whether words are counted. ``seconds``: for how
    long at least a look at what is stored holds good. A sample that is out of date makes the choice a little less
    precise, and changes nothing in what a search then finds.
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
        """Of every target the sample within its condition; None: what it holds is not known.

        The same list as before where all of it is the same and whole. A store of a target's own that cannot be read is
        named in the trace. Raises `ModelError`, and `StoreError` for the store that the others share.
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
        # What another thread reads anew, perhaps from a slow archive, is waited for only where nothing is known yet.
        if self._lock.acquire(blocking=not all(self._is_known(target, size) for target in targets)):
            try:
                return self._answered(targets, [self._of(target, size) for target in targets])
            finally:
                self._lock.release()
        return [self._last(target, size) for target in targets]

    def _size_for(self, targets: int) -> int:
        """A power of two below the share of each, so that one target more or less seldom changes it."""
        if self.size * targets <= KEPT_IN_ALL:
            return self.size
        return min(self.size, max(LEAST, 1 << (KEPT_IN_ALL // targets).bit_length() - 1))

    def _answered(self, targets: list[Target], samples: list[Sample | None]) -> list[Sample | None]:
        """Remember an answer, unless of some place there is a problem to tell with each."""
        known = self._answer
        if known.targets == targets and all(map(operator.is_, known.samples, samples)):
            samples = known.samples
        places = [place for target in targets if (place := place_of(target, self.store)) is not None]
        seen = [self._seen.get(id(place)) for place in places]
        due = min((0.0 if each is None or each.problem else each.due for each in seen), default=0.0)
        self._answer = _Answer(targets, samples, due)
        return samples

    def _is_known(self, target: Target, size: int) -> bool:
        place = place_of(target, self.store)
        return place is None or self._problem(place) != "" or self._sample(target, place, size) is not None

    def _last(self, target: Target, size: int) -> Sample | None:
        """What is kept of a target, without a look at what is stored."""
        place = place_of(target, self.store)
        if place is None:
            return None
        if problem := self._problem(place):
            _say_unknown(target, problem)
            return None
        return self._sample(target, place, size)

    def _problem(self, place: Place) -> str:
        seen = self._seen.get(id(place))
        return seen.problem if seen is not None and seen.place is place else ""

    def _sample(self, target: Target, place: Place, size: int) -> Sample | None:
        kept = self._kept.get((target.name, size))
        return kept.sample if kept is not None and kept.place is place else None

    def _of(self, target: Target, size: int) -> Sample | None:
        place, key = place_of(target, self.store), (target.name, size)
        if place is None:
            return None
        kept = self._kept.get(key)
        if kept is not None and kept.place is not place:
            self._forget(key, kept)
            kept = None
        seen = self._look(place)
        if seen.problem:
            _say_unknown(target, seen.problem)
            return None
        if kept is not None and kept.state is seen.state:
            return kept.sample
        part = seen.state if target.technique is not None else seen.parts.get(target.name) or seen.state
        if kept is None or kept.part != part:
            start = monotonic()
            try:
                sample = read_sample(place, target.condition, size, self.embedder, self.vocabulary)
            except StoreError as error:
                _say_unknown(target, self._fail(place, monotonic() - start, error).problem)
                return None
        else:
            sample = kept.sample
        self._kept[key] = _Kept(place, seen.state, part, sample)
        return sample

    def _forget(self, key: tuple[str, int], kept: _Kept) -> None:
        """Let go of a store that another took the place of."""
        del self._kept[key]
        if kept.place is not self.store:
            self._seen.pop(id(kept.place), None)

    def _look(self, place: Place) -> _Seen:
        """What a store holds, the same object as before until it is due."""
        start = monotonic()
        seen = self._seen.get(id(place))
        if seen is not None and seen.place is place and start < seen.due:
            return seen
        try:
            state: State = place.sources() if isinstance(place, LibraryStore) else [place.count()]
        except StoreError as error:
            return self._fail(place, monotonic() - start, error)
        due = self._due(monotonic() - start)
        if seen is not None and seen.place is place and seen.state == state:
            found = seen._replace(due=due, problem="")
        else:
            found = _Seen(place, due, state, _by_collection(state))
        self._seen[id(place)] = found
        return found

    def _fail(self, place: Place, took: float, error: StoreError) -> _Seen:
        """Remember what is wrong with a store, which is not asked again for a while."""
        if place is self.store:
            raise error
        due = monotonic() + max(self.seconds, min(LONGEST, PATIENCE * took))
        failed = self._seen[id(place)] = _Seen(place, due, [], {}, str(error) or type(error).__name__)
        return failed

    def _due(self, took: float) -> float:
        return monotonic() + max(self.seconds, PATIENCE * took)


def _say_unknown(target: Target, problem: str) -> None:
    degraded(f"{target.name} is known by its description only: {problem}")


def _by_collection(state: State) -> dict[str, State]:
    """What of a store's state concerns each target."""
    parts: dict[str, list[SourceInfo]] = {}
    for info in state:
        if isinstance(info, SourceInfo):
            parts.setdefault(info.collection, []).append(info)
    return dict(parts)


def place_of(target: Target, shared: DocumentStore) -> Place | None:
    """Where a sample of what a target holds can be read; None: nowhere."""
    return target.store or (shared if target.technique is None else None)
