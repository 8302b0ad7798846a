"""List the files that are not searchable: those that a store keeps, and sources that are searched in part."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from ragistry.config.collections import CollectionsFile
from ragistry.library.scope import Scope
from ragistry.protocols import LibraryStore, UnsearchableStore
from ragistry.stores.records import entries_of, keeping
from ragistry.types import IngestedFolder, SourceInfo, Unsearchable
from ragistry.utils.ids import composed
from ragistry.utils.quoting import visible_line
from ragistry.utils.wording import agreeing, numbered

if TYPE_CHECKING:
    from ragistry.library.ingest.missing import MissingFiles
    from ragistry.library.ingest.plan import IngestPlan

NAMED = 3
"""Number of files that a line names."""
COMMAND = "`ragistry sources list --unsearchable`"


@dataclass(frozen=True, slots=True)
class Position:
    """Where a list continues: after an entry of the store, by its number, or after a source, which come last."""

    number: int = 0
    collection: str = ""
    source: str = ""


class UnsearchableMethods:
    """The methods of `DocumentService` for files that are not searchable."""

    collections: CollectionsFile
    scope: Scope

    def _missing_files(self, plan: IngestPlan) -> MissingFiles:
        from ragistry.library.ingest.missing import MissingFiles

        return MissingFiles(self.scope.store, plan, partial(self.collections.collection_lock, plan.collection))

    def _forget_missing(self, plan: IngestPlan) -> None:
        self._missing_files(plan).end()

    def unsearchable(self, collection: str | None = None) -> Iterator[Unsearchable]:
        """Yield the files of one collection, or of all, that are not searchable, or not in full.

        Files that an ingest left out are counted by `ingested_folders`.

        Raises:
            UnsupportedError: The store does not keep them.
            CollectionNotFoundError: The collection does not exist.
        """
        return (one for _, one in unsearchable_from(self.scope, collection=collection))

    def ingested_folders(self, collection: str | None = None) -> list[IngestedFolder]:
        """List the folders that were ingested, each with the numbers of files that were left out, by reason.

        Raises:
            UnsupportedError: The store does not keep them.
        """
        current, found = self.scope.current_names().current, keeping(self.scope.store).folders()
        named = [replace(one, collection=current[one.collection]) for one in found if one.collection in current]
        return [one for one in named if collection in (None, one.collection)]


def unsearchable_from(
    scope: Scope,
    after: Position | None = None,
    collection: str | None = None,
    allowed: Container[str] | None = None,
) -> Iterator[tuple[Position, Unsearchable]]:
    """Yield the files that are not searchable, each once, with their positions.

    Args:
        scope: The collections and the store.
        after: Leave out the files up to this position.
        collection: Only files of this collection.
        allowed: Leave out other collections than these.

    Raises:
        UnsupportedError: The store does not keep them.
        CollectionNotFoundError: The collection does not exist.
    """
    store, current = keeping(scope.store), scope.current_names().current
    names = {
        stored: own
        for stored, own in current.items()
        if collection in (None, own) and (allowed is None or own in allowed)
    }
    if collection is not None:
        scope.current_names().stored(collection)  # raises
    return _files(store, names, after or Position())


def unsearchable_counts(scope: Scope, allowed: Container[str] | None = None) -> Counter[str] | None:
    """Count the files that are not searchable by collection; None if the store does not keep them."""
    if "unsearchable" not in scope.store.abilities:
        return None
    return Counter(one.collection for _, one in unsearchable_from(scope, allowed=allowed))


def unsearchable_line(scope: Scope, collection: str | None = None) -> str:
    """Say how many files are not searchable, name some, and the command that lists them; empty for none."""
    keeps = "unsearchable" in scope.store.abilities
    rest = unsearchable_from(scope, collection=collection) if keeps else iter(())
    first = [visible_line(one.source_file, 60) for _, one in islice(rest, NAMED)]
    count = len(first) + sum(1 for _ in rest)
    names = ", ".join([*first, *["…"] * (count > NAMED)])
    return f"{numbered(count, 'file[ is|s are]')} not searchable ({names}): {COMMAND}" if count else ""


def entries_named(scope: Scope, source: str, collection: str) -> list[int]:
    """Return the numbers of the entries of this name; none if the store does not keep them."""
    names = [(stored, composed(source)) for stored in scope.current_names().stored(collection)]
    entries = entries_of(scope.store)
    return [number for number, one in entries if (one.collection, composed(one.source_file)) in names]


def forget_collection(store: LibraryStore, collection: str) -> None:
    """Erase the entries and folders of a collection."""
    if "unsearchable" in store.abilities:
        numbers = [number for number, one in entries_of(store) if one.collection == collection]
        folders = [IngestedFolder(collection, one.folder) for one in keeping(store).folders(collection)]
        if numbers or folders:
            keeping(store).record_unsearchable(gone=numbers, folders=folders)


def _files(
    store: UnsearchableStore, names: Mapping[str, str], after: Position
) -> Iterator[tuple[Position, Unsearchable]]:
    """Yield the files of collections; ``names``: the names of these by those in the store."""
    in_part = {
        (names[info.collection], info.source_file): info
        for info in store.sources(in_part=True)
        if info.collection in names and (info.lost or info.waiting)
    }
    for number, one in entries_of(store, 0 if in_part else after.number):
        name = names.get(one.collection, ""), one.source_file
        info = in_part.get(name)
        if not name[0] or (one.kind == "waiting" and not (info and info.waiting)):
            continue
        if info and info.source_path == one.source_path:
            del in_part[name]
        why = f"{one.reason}; its old text is searched" if one.kind == "outdated" else one.reason
        if number > after.number:
            yield Position(number), replace(one, collection=name[0], reason=why)
    for name, info in sorted(in_part.items()):
        if after.number < sys.maxsize or name > (after.collection, after.source):
            yield Position(sys.maxsize, *name), _in_part(replace(info, collection=name[0]))


def _in_part(info: SourceInfo) -> Unsearchable:
    waits = f"{info.waiting:,} of {numbered(info.chunks, 'chunk[|s]')} {agreeing(info.waiting, '[waits|wait]')}"
    reasons = [info.lost, f"{waits} for vectors, only found by words" if info.waiting else ""]
    name, why = (info.collection, info.source_file, info.source_path, ""), "; ".join(filter(None, reasons))
    return Unsearchable(*name, "cut" if info.lost else "waiting", why, info.ingested_at)
