"""Conditions for the chunks of defined collections, and the sources of undefined ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ragistry.chunking.breadcrumb import OLDER
from ragistry.config.collections import CollectionsFile
from ragistry.config.files import CollectionEntry
from ragistry.library.condition_checks import with_stored_dates
from ragistry.protocols import LibraryStore
from ragistry.techniques.folding import COPY_PLACES
from ragistry.types import Document, SourceInfo
from ragistry.utils.where import Condition, both, normalise


class _Orphans(NamedTuple):
    """Names in the store that were not among these collections."""

    names: Names
    stored: tuple[str, ...]


class Names:
    """The names of the collections at one moment.

    Attributes:
        current: Every stored name of a collection, with its current name. During a rename, a collection has chunks
            under two names: the new one and ``formerly``.
        is_renaming: Whether a collection is being renamed.
    """

    def __init__(self, collections: CollectionsFile, entries: list[CollectionEntry]) -> None:
        self.entries = entries
        former = {entry.formerly: entry.name for entry in entries if entry.formerly is not None}
        self.current = former | {entry.name: entry.name for entry in entries}
        self.is_renaming = bool(former)
        self._collections = collections

    def stored(self, *names: str) -> list[str]:
        """List the names under which the chunks of these collections are stored.

        Raises:
            CollectionNotFoundError: One of the collections does not exist.
        """
        for name in names:
            if name not in self.current.values():
                self._collections.entry(name)  # which raises
        return [under for under, own in self.current.items() if own in names]

    def condition_for(self, *names: str) -> Condition:
        """Return the condition for the chunks of these collections.

        Raises:
            CollectionNotFoundError: One of the collections does not exist.
        """
        stored = self.stored(*names)
        condition = {"collection": {"$eq": stored[0]} if len(stored) == 1 else {"$in": stored}}
        return Condition(condition) if "".join(stored).isascii() else normalise(condition)

    def with_current_names(self, documents: list[Document]) -> list[Document]:
        """Replace former collection names in the metadata of documents by current ones."""
        if not self.is_renaming:
            return documents

        def current_place(place: str) -> str:
            name, mark, rest = place.partition(": ")
            return f"{self.current.get(name, name)}{mark}{rest}"

        def with_current(document: Document) -> Document:
            under = document.metadata.get("collection")
            own = self.current.get(under) if isinstance(under, str) else None
            if own is None:
                return document
            metadata = document.metadata | {"collection": own}
            if places := metadata.get(COPY_PLACES):
                metadata[COPY_PLACES] = list(map(current_place, places))
            if newer := metadata.get(OLDER):
                metadata[OLDER] = current_place(newer)
            return replace(document, metadata=metadata)

        return [with_current(document) for document in documents]

    def joined(self, scope: Condition | None, where: Condition | None) -> Condition | None:
        """Join the condition of a caller, with names and dates as they are stored, to that of the collections."""
        if where is None:
            return scope
        stored = with_stored_dates(where)
        if self.is_renaming:
            former = {own: under for under, own in self.current.items() if under != own}
            stored = Condition(_with_former(stored, former))
        return stored if scope is None else both(scope, stored)


class Scope:
    """Maps the collections of documents.yaml to chunks in a store."""

    def __init__(self, collections: CollectionsFile, store: LibraryStore) -> None:
        self.collections = collections
        self.store = store
        self._names: Names | None = None
        self._orphans: _Orphans | None = None

    def current_names(self) -> Names:
        """Return the names of the collections. They are computed again only after documents.yaml changed."""
        entries, known = self.collections.entries(), self._names
        if known is None or known.entries is not entries:
            self._names = known = Names(self.collections, entries)
        return known

    def condition(self, names: Names, collection: str | None) -> Condition | None:
        """Return the condition for the chunks of one collection, or of all defined collections.

        For all, the store is read again only after documents.yaml changed. Usually a search only checks the date of
        that file, and runs without a condition, which is faster.

        Args:
            names: The names of the collections.
            collection: Name of the collection; None for all.

        Returns:
            The condition, or None if all chunks of the store belong to defined collections.

        Raises:
            CollectionNotFoundError: The collection does not exist.
        """
        if collection is not None:
            return names.condition_for(collection)
        known = self._orphans
        if known is None or known.names is not names:
            self._orphans = known = _Orphans(names, tuple(self._orphaned_names(names)))
        return normalise({"collection": {"$nin": known.stored}}) if known.stored else None

    def sources(self, name: str | None = None) -> list[SourceInfo]:
        """List the sources of one or all defined collections, under current names.

        Raises:
            CollectionNotFoundError: The collection does not exist.
        """
        names = self.current_names()
        if name is not None and len(names.stored(name)) == 1:
            return self.store.sources(name)
        found = [
            info if own == info.collection else replace(info, collection=own)
            for info in self.store.sources()
            if (own := names.current.get(info.collection)) is not None and name in (None, own)
        ]
        return sorted(found, key=lambda info: (info.collection, info.source_file)) if names.is_renaming else found

    def orphans(self) -> list[SourceInfo]:
        """List the sources of undefined collections, which are stored but not searched."""
        names = self.current_names().current
        return [info for info in self.store.sources() if info.collection not in names]

    def forget(self) -> None:
        """Discard the cached state after the store changed."""
        self._orphans = None

    def _orphaned_names(self, names: Names) -> list[str]:
        known = sorted(names.current)
        # Counting is fast, also in a store that has to read every chunk to list its sources.
        if not self.store.count({"collection": {"$nin": known}} if known else None):
            return []
        return sorted({info.collection for info in self.store.sources() if info.collection not in names.current})


def collection_rows(
    entries: Sequence[CollectionEntry], sources: Iterable[SourceInfo], unsearchable: Mapping[str, int] | None
) -> list[dict[str, Any]]:
    """Convert collections to mappings with their numbers, see `list_collections`."""
    counts = {entry.name: [0, 0] for entry in entries}
    for info in sources:
        count = counts.get(info.collection)
        if count is not None:  # otherwise its collection was created after the entries were read
            count[0] += 1
            count[1] += info.chunks
    return [
        {
            "name": entry.name,
            "display_name": entry.display_name or entry.name,
            "description": entry.description,
            "source_count": counts[entry.name][0],
            "chunk_count": counts[entry.name][1],
            "unsearchable_count": None if unsearchable is None else unsearchable.get(entry.name, 0),
        }
        for entry in entries
    ]


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


def being_renamed(collections: CollectionsFile) -> list[CollectionEntry]:
    """List the collections whose chunks may still have a former name."""
    return [entry for entry in collections.entries() if entry.formerly is not None]
