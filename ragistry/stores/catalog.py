"""What a `LocalStore` keeps of its sources in memory: enough to select chunks by condition without reading them."""

from __future__ import annotations

import json
import sqlite3
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ragistry.stores import meta
from ragistry.stores.embedder_record import recorded_dimension
from ragistry.stores.row_checksums import Damaged, row_checksum
from ragistry.types import SourceInfo, Where
from ragistry.utils.settle import settle


@dataclass(frozen=True, slots=True)
class Group:
    """A source, or a group of chunks without one: its keys are ``first`` to ``first + chunks - 1``."""

    id: int
    version: int
    collection: str | None
    source_file: str | None
    first: int
    chunks: int
    common: dict[str, Any]
    varying: frozenset[str]
    whole: bool
    lists: tuple[str, ...]
    """Keys of ``common`` that hold a list."""

    @property
    def name(self) -> str:
        """What messages call it."""
        if self.source_file is None:
            return f"group {self.id} of chunks without a source"
        return f"source {self.source_file!r} of collection {self.collection!r}"

    def metadata(self, own: dict[str, Any]) -> dict[str, Any]:
        """All metadata of a chunk, for the caller to keep and change."""
        whole = self.common | own
        for key in self.lists:
            whole[key] = list(whole[key])
        return whole


class Selection(NamedTuple):
    """The groups whose chunks all meet a condition, and those of which some may, with what is left to look at."""

    whole: list[Group]
    partial: list[tuple[Group, dict[str, Any]]]

    def groups(self) -> list[Group]:
        """All of them."""
        return [*self.whole, *(group for group, _ in self.partial)]


_COLUMNS = "id, version, collection, source_file, first, chunks, common, varying, whole, checksum"


class Catalog:
    """Every group of the store, as of one ``state`` of it; `refreshed` gives that of the present state.

    ``dimension``: how many numbers a vector has; 0 before there is one.
    """

    def __init__(
        self,
        state: int = -1,
        generation: int = 0,
        groups: dict[int, Group] | None = None,
        dimension: int = 0,
    ) -> None:
        self.state = state
        self.generation = generation
        self.dimension = dimension
        self.groups = groups or {}
        self.chunks = sum(group.chunks for group in self.groups.values())
        self._in_order = sorted(self.groups.values(), key=lambda group: group.first)
        self._firsts = [group.first for group in self._in_order]
        self._sources: list[SourceInfo] | None = None
        self._by_collection: dict[str | None, list[Group]] = {}
        for group in self.groups.values():
            self._by_collection.setdefault(group.collection, []).append(group)

    def refreshed(self, connection: sqlite3.Connection) -> Catalog:
        """The catalog of what the connection sees; only groups that are new or changed are read."""
        state = state_of(connection)
        if state == self.state:
            return self
        present = connection.execute("SELECT id, version FROM sources ORDER BY id").fetchall()
        known = self.groups
        fresh = [id for id, version in present if id not in known or known[id].version != version]
        read = {group.id: group for group in _read(connection, fresh, everything=not known)}
        if len(read) != len(fresh):
            raise Damaged("some of what is recorded of sources cannot be found")
        groups = {id: read.get(id) or known[id] for id, _ in present}
        return Catalog(state, generation_of(connection), groups, recorded_dimension(connection) or 0)

    def sources(self, collection: str | None) -> list[SourceInfo]:
        """The sources with a name, in order; without its hash one that is not whole, so that it is ingested again."""
        if self._sources is None:  # no `cached_property`, whose lock a forked child would wait for in Python 3.11
            self._sources = self._listed()
        return [info for info in self._sources if collection in (None, info.collection)]

    def _listed(self) -> list[SourceInfo]:
        found = [
            (group.collection, group.source_file, group)
            for group in self.groups.values()
            if group.collection is not None and group.source_file is not None
        ]
        return [
            SourceInfo(
                name,
                source_file,
                group.chunks,
                group.common.get("source", ""),
                group.common.get("source_hash", "") if group.whole else "",
                group.common.get("ingested_at", 0.0),
                group.common.get("source_path", ""),
            )
            for name, source_file, group in sorted(found, key=lambda item: item[:2])
        ]

    def group(self, id: int) -> Group:
        """The group of this number, which a chunk says that it belongs to; raises `Damaged` where there is none."""
        try:
            return self.groups[id]
        except KeyError as error:
            raise Damaged(f"what is recorded of source number {id!r} is gone") from error

    def holding(self, keys: Sequence[int]) -> list[Group]:
        """The groups in which these keys lie, each once."""
        found = {}
        for key in keys:
            group = self.group_at(key)
            if group is None:
                raise Damaged(f"chunk number {key} belongs to no source")
            found[group.id] = group
        return list(found.values())

    def group_at(self, key: int) -> Group | None:
        """The group that has this key, if one has."""
        place = bisect_right(self._firsts, key) - 1
        if place < 0:
            return None
        group = self._in_order[place]
        return group if key < group.first + group.chunks else None

    def select(self, where: Where | None) -> Selection:
        """What meets a condition in its normal form; None: everything."""
        if where is None:
            return Selection(list(self.groups.values()), [])
        whole: list[Group] = []
        partial: list[tuple[Group, dict[str, Any]]] = []
        names = _collections(where)
        if names is None:
            candidates = self._candidates(where)
        else:  # which all chunks of their sources meet
            whole += self._of_collections(names)
            candidates = self._by_collection.get(None, ())
        for group in candidates:
            verdict = settle(where, group.common, group.varying)
            if verdict is True:
                whole.append(group)
            elif verdict is not False:
                partial.append((group, verdict))
        return Selection(whole, partial)

    def _candidates(self, where: Where) -> Iterable[Group]:
        """The groups that may hold what meets a condition: where it names collections, those of these only."""
        [(key, value)] = where.items()
        for part in value if key == "$and" else [where]:
            names = _collections(part)
            if names is not None:
                return [*self._of_collections(names), *self._by_collection.get(None, ())]
        return self.groups.values()

    def _of_collections(self, names: Iterable[str]) -> list[Group]:
        return [group for name in names for group in self._by_collection.get(name, ())]


def _collections(where: Where) -> Iterable[str] | None:
    """The names that a condition in its normal form leaves, each once, where that is all it asks; else None."""
    condition = where.get("collection", {})
    names = [condition["$eq"]] if "$eq" in condition else condition.get("$in")
    return None if names is None else {name: None for name in names if isinstance(name, str)}


def state_of(connection: sqlite3.Connection) -> int:
    """A number that grows with every write to the store."""
    return meta.number(connection, "state")


def generation_of(connection: sqlite3.Connection) -> int:
    """A number that grows when all vectors are replaced by those of another embedder."""
    return meta.number(connection, "generation")


def _read(connection: sqlite3.Connection, ids: list[int], *, everything: bool) -> Iterable[Group]:
    if everything:
        rows = connection.execute(f"SELECT {_COLUMNS} FROM sources")
    else:
        rows = connection.execute(
            f"SELECT {_COLUMNS} FROM sources WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(ids),)
        )
    for id, *row, checksum in rows:
        if row_checksum(*row) != checksum:
            raise Damaged(f"what is recorded of source {row[2]!r} of collection {row[1]!r} is not what was written")
        version, collection, source_file, first, chunks, written, varying, whole = row
        common = json.loads(written)
        lists = tuple(key for key, value in common.items() if isinstance(value, list))
        yield Group(
            id, version, collection, source_file, first, chunks,
            common, frozenset(json.loads(varying)), bool(whole), lists,
        )  # fmt: skip
