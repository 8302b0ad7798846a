"""What a query can be routed to: a collection of the library, a documentation repository, an archive."""

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
    """What can be read in part only, such as an archive on another server."""

    def count(self) -> int:
        """How many chunks there are. Raises `StoreError`."""
        ...

    def sample(self, size: int) -> list[Document]:
        """Up to ``size`` of them, score 0. Raises `StoreError`."""
        ...


Place = DocumentStore | Sampled
"""Where a sample of what a target holds is read."""


@dataclass(frozen=True, slots=True)
class Target:
    """A place that can be searched by itself.

    ``technique``: how it is searched, if not by the base of the routed technique; without one it shares the base's
    store, in which its documents are those with its name as ``collection``. ``where``: a condition besides that all
    its documents meet. ``store``: where a sample of what it holds can be read; None: in the store that it
    shares, or nowhere, if it has a technique of its own.
    """

    name: str
    description: str = ""
    kind: Literal["collection", "repository", "archive"] = "collection"
    where: Where | None = None
    technique: Technique | None = None
    store: Place | None = None

    @property
    def facts(self) -> dict[str, str]:
        """What is true of every document of the target: ``collection`` is its name, whatever kind it is of."""
        return (
            {"collection": self.name} if self.kind == "collection" else {"collection": self.name, self.kind: self.name}
        )

    @property
    def condition(self) -> Where | None:
        """What is asked of a store, or of the target's own technique, to get its documents and no others."""
        return self.where if self.technique is not None else {**(self.where or {}), "collection": self.name}


Targets = Callable[[], Sequence[Target]]
"""The targets as they are now; asked at every query, so it should cost little."""


class Described(Protocol):
    """An entry of documents.yaml."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...


class CollectionList(Protocol):
    """What a library knows of its collections, without looking into them."""

    def entries(self) -> Sequence[Described]: ...


class Library(Protocol):
    """A library as far as routing needs it."""

    @property
    def collections(self) -> CollectionList: ...


def library_targets(library: Library) -> list[Target]:
    """The collections of a library, in its own order."""
    return [_collection(entry.name, entry.description) for entry in library.collections.entries()]


@lru_cache(maxsize=100_000)
def _collection(name: str, description: str) -> Target:
    """The same object at every query, for which the like is soon found to be the same."""
    return Target(name, description)


class Reachable(NamedTuple):
    """A target within a caller's condition, and what of the condition its documents have yet to meet."""

    target: Target
    where: Where | None


def reachable(targets: Sequence[Target], where: Where | None) -> list[Reachable]:
    """The targets that a condition in its normal form leaves, each with the rest of the condition.

    Raises `ConfigError` where two targets have one name: a name is how access is limited.
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
    """What is left of a condition in its normal form when ``facts`` are known: a condition, or whether it holds."""
    return settle(where, facts, _keys(where) - facts.keys())


def _keys(where: Where) -> set[str]:
    """The keys of metadata that a condition in its normal form looks at."""
    [(key, value)] = where.items()
    return set().union(*map(_keys, value)) if key in JOINS else {key}
