"""What targets hold, as a sample of their vectors: read when it is first asked for, and again when they change."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from time import monotonic

from ragistry.protocols import DocumentStore, SourceStore
from ragistry.techniques.routing.sampling import Sample, gives_vectors, read_sample
from ragistry.techniques.routing.stack import Stack
from ragistry.techniques.routing.target import Reachable, Target
from ragistry.types import SourceInfo

SECONDS = 1.0
"""For how long what is stored is taken to be as it was."""
PATIENCE = 100
"""And as many times as long as it takes to look, so that looking takes 1 % of the time at most."""


State = list[SourceInfo] | list[int]
"""What a store holds, as far as a change shows in it."""


class Samples:
    """Up to ``size`` vectors a target, spread evenly over its sources. Safe for threads.

    ``seconds``: for how long at least a look at what is stored holds good. A sample that is out of date makes the
    choice a little less precise, and changes nothing in what a search then finds.
    """

    def __init__(self, store: DocumentStore, size: int, *, seconds: float = SECONDS) -> None:
        self.store = store
        self.size = size
        self.seconds = seconds
        self._kept: dict[str, tuple[State, Sample | None]] = {}
        self._states: dict[int, tuple[float, State]] = {}
        self._stack = Stack.of([])
        self._lock = Lock()

    def of(self, items: Sequence[Reachable]) -> Stack:
        """The vectors of every target within its condition; None: they cannot be read."""
        with self._lock:
            samples = [self._of(item.target) for item in items]
            parts = [
                None if sample is None else sample.within(item.where)
                for item, sample in zip(items, samples, strict=True)
            ]
            if any(item.where is not None for item in items):
                return Stack.of(parts)
            if not self._stack.is_of(parts):
                self._stack = Stack.of(parts)
            return self._stack

    def _of(self, target: Target) -> Sample | None:
        store = target.store or (self.store if target.technique is None else None)
        if store is None:
            return None
        state = self._state(store)
        known = self._kept.get(target.name)
        if known is None or known[0] is not state:
            sample = read_sample(store, target.condition, self.size) if gives_vectors(store) else None
            known = self._kept[target.name] = (state, sample)
        return known[1]

    def _state(self, store: DocumentStore) -> State:
        """What the store holds; the same object as before where nothing has changed."""
        now = monotonic()
        due, state = self._states.get(id(store), (0.0, []))
        if now >= due:
            seen: State = store.sources() if isinstance(store, SourceStore) else [store.count()]
            state = state if seen == state else seen
            self._states[id(store)] = (now + max(self.seconds, PATIENCE * (monotonic() - now)), state)
        return state
