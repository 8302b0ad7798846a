"""Which chunks of a store belong to the collections of documents.yaml, and which to none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from ragistry.config.collections import CollectionsFile, Version
from ragistry.config.files import CollectionEntry
from ragistry.protocols import LibraryStore
from ragistry.types import Document, SourceInfo, Where
from ragistry.utils.where import normalise


class _Orphans(NamedTuple):
    """Names that the store has and documents.yaml had not, when it was of this version."""

    version: Version | None
    names: tuple[str, ...]


class Scope:
    """The collections of documents.yaml as they lie in a store.

    A collection that is being renamed has its chunks under two names, its own and that in ``formerly``.
    """

    def __init__(self, collections: CollectionsFile, store: LibraryStore) -> None:
        self.collections = collections
        self.store = store
        self._orphans: _Orphans | None = None

    def names(self) -> dict[str, str]:
        """Every name under which chunks of a defined collection lie, and the collection's own."""
        entries = self.collections.entries()
        former = {entry.formerly: entry.name for entry in entries if entry.formerly is not None}
        return former | {entry.name: entry.name for entry in entries}

    def stored(self, *names: str) -> list[str]:
        """The names under which the chunks of these collections lie. Raises `CollectionNotFoundError`."""
        for name in names:
            self.collections.entry(name)
        return [under for under, own in self.names().items() if own in names]

    def named(self, documents: list[Document]) -> list[Document]:
        """The documents, each with the name that its collection has now; the ids stay those of the store."""
        if not being_renamed(self.collections):
            return documents
        names = self.names()

        def named(document: Document) -> Document:
            under = document.metadata.get("collection")
            own = names.get(under) if isinstance(under, str) else None
            return replace(document, metadata=document.metadata | {"collection": own}) if own else document

        return [named(document) for document in documents]

    def meant(self, where: Where) -> dict[str, Any]:
        """The condition in its normal form, where a collection's name stands for each under which its chunks lie."""
        condition = normalise(where)
        if not being_renamed(self.collections):
            return condition
        return _with_former(condition, {own: under for under, own in self.names().items() if under != own})

    def of(self, *names: str) -> Where:
        """The condition that the chunks of these collections meet. Raises `CollectionNotFoundError`."""
        stored = self.stored(*names)
        return {"collection": stored[0]} if len(stored) == 1 else {"collection": {"$in": stored}}

    def of_all(self) -> Where | None:
        """The condition that the chunks of no defined collection fail; None where all belong to one.

        The store is asked again when documents.yaml was changed, so that a search costs a look at the file's date,
        and one without a condition stays as fast as the store has it.
        """
        version = self.collections.version()
        if self._orphans is None or self._orphans.version != version:
            self._orphans = _Orphans(version, tuple(self._orphaned_names()))
        return {"collection": {"$nin": list(self._orphans.names)}} if self._orphans.names else None

    def sources(self, name: str | None = None) -> list[SourceInfo]:
        """The sources of one collection, or of all that are defined, under the collection's own name, in order."""
        if name is not None:
            self.collections.entry(name)
        names = self.names()
        if name is not None and list(names.values()).count(name) == 1:
            return self.store.sources(name)
        found = [
            info if own == info.collection else replace(info, collection=own)
            for info in self.store.sources()
            if (own := names.get(info.collection)) is not None and name in (None, own)
        ]
        return found if len(names) == len(set(names.values())) else sorted(found, key=_place)

    def orphans(self) -> list[SourceInfo]:
        """The sources whose collection is not defined: stored, but not searched."""
        names = self.names()
        return [info for info in self.store.sources() if info.collection not in names]

    def forget(self) -> None:
        """Ask the store again: what it holds was changed without documents.yaml."""
        self._orphans = None

    def _orphaned_names(self) -> list[str]:
        names = sorted(self.names())
        # To count is quick where there are none, also in a store that has to read every chunk to list its sources.
        if not self.store.count({"collection": {"$nin": names}} if names else None):
            return []
        return sorted({info.collection for info in self.orphans()})


_SEVERAL = {"$eq": "$in", "$in": "$in", "$ne": "$nin", "$nin": "$nin"}


def _with_former(where: dict[str, Any], former: Mapping[Any, str]) -> dict[str, Any]:
    [(key, value)] = where.items()
    if key in ("$and", "$or"):
        return {key: [_with_former(part, former) for part in value]}
    [(op, operand)] = value.items()
    if key != "collection" or op not in _SEVERAL:
        return where
    names = operand if isinstance(operand, list) else [operand]
    return {key: {_SEVERAL[op]: [*names, *(former[name] for name in names if name in former)]}}


def _place(info: SourceInfo) -> tuple[str, str]:
    return info.collection, info.source_file


def being_renamed(collections: CollectionsFile) -> list[CollectionEntry]:
    """The collections whose chunks may still have another name."""
    return [entry for entry in collections.entries() if entry.formerly is not None]
