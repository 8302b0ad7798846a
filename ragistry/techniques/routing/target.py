"""The targets of routing: a collection of the library, a documentation repository, an archive."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from ragistry.errors import ConfigError
from ragistry.protocols import DocumentStore, Technique
from ragistry.types import Document, Where
from ragistry.utils.where import JOINS, settle


@runtime_checkable
class Sampled(Protocol):
    """A place of which only a sample can be read, such as an archive on another server."""

    def count(self) -> int:
        """Return the number of chunks. Raises `StoreError`."""
        ...

    def sample(self, size: int) -> list[Document]:
        """Return up to ``size`` chunks with score 0. Raises `StoreError`."""
        ...


Place = DocumentStore | Sampled
"""A place from which a sample of a target is read."""


@dataclass(frozen=True, slots=True)
class Target:
    """A place that can be searched by itself.

    Attributes:
        name: Name of the target. Its documents have it as ``collection``.
        description: What the target contains.
        kind: Kind of the target.
        where: A condition that all its documents meet, in addition to that on ``collection``.
        technique: The technique that searches it; None: the base of the routed technique, in whose store it is.
        store: The place from which a sample is read; None: the store of the base, or no place if the target has a
            technique.
    """

    name: str
    description: str = ""
    kind: Literal["collection", "repository", "archive"] = "collection"
    where: Where | None = None
    technique: Technique | None = None
    store: Place | None = None

    @property
    def facts(self) -> dict[str, str]:
        """The metadata of every document of the target; ``collection`` is its name, whatever its kind."""
        named = {"collection": self.name}
        return named if self.kind == "collection" else {**named, self.kind: self.name}

    @property
    def condition(self) -> Where | None:
        """The condition by which a store, or the target's own technique, returns its documents and no others."""
        return self.where if self.technique is not None else {**(self.where or {}), "collection": self.name}

    def place(self, shared: DocumentStore) -> Place | None:
        """Return the place from which a sample can be read, if any; ``shared`` is the store of the base."""
        return self.store or (shared if self.technique is None else None)


Targets = Callable[[], Sequence[Target]]
"""Returns the current targets. It is called at every query, so it should cost little."""


class TargetLibrary(Protocol):
    """A library; ``collections.entries()`` lists the name and the description of each collection."""

    @property
    def collections(self) -> Any: ...


def library_targets(library: TargetLibrary) -> list[Target]:
    """List the collections of a library as targets, in its order."""
    return [_collection(entry.name, entry.description) for entry in library.collections.entries()]


@lru_cache(maxsize=100_000)
def _collection(name: str, description: str) -> Target:
    """Return the same object at every query, so that comparing two lists of targets is fast."""
    return Target(name, description)


class Reachable(NamedTuple):
    """A target that a caller may search, and the remaining condition that its documents must meet."""

    target: Target
    where: Where | None


def reachable(targets: Sequence[Target], where: Where | None) -> list[Reachable]:
    """Select the targets that a condition in its normal form admits, each with the rest of the condition.

    Raises:
        ConfigError: Two targets have one name. Access is limited by name, so names must differ.
    """
    names = [target.name for target in targets]
    if len(set(names)) < len(names):
        twice = min(name for name in names if names.count(name) > 1)
        raise ConfigError(f"two targets are called {twice!r}; rename the collection, repository or archive")
    if where is None:
        return [Reachable(target, None) for target in targets]
    rests = [(target, residual(where, target.facts)) for target in targets]
    return [Reachable(target, None if rest is True else rest) for target, rest in rests if rest is not False]


def residual(where: Where, facts: Mapping[str, Any]) -> Where | bool:
    """Simplify a condition in its normal form by known metadata: return the rest, or whether it is met."""
    return settle(where, facts, _keys(where) - facts.keys())


def _keys(where: Where) -> set[str]:
    """Return the metadata keys in a condition in its normal form."""
    [(key, value)] = where.items()
    return set().union(*map(_keys, value)) if key in JOINS else {key}
