"""Move chunks to another collection without calling a model.

A rename first writes the new name to documents.yaml, with the old one as ``formerly``; then it moves the chunks; then
it removes ``formerly``. Meanwhile searches use both names, so nothing is lost if the process ends: the next write
completes the rename. If another process holds the write lock, nothing is started.
"""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import replace

from ragistry.config.collections import CollectionsFile
from ragistry.errors import CollectionAlreadyExistsError, CollectionNotFoundError, SourceError, StoreError
from ragistry.library.scope import being_renamed
from ragistry.protocols import LibraryStore
from ragistry.stores.records import entries_of, source_chunks
from ragistry.types import SourceInfo
from ragistry.utils.wording import agreeing, listed


def rename(collections: CollectionsFile, store: LibraryStore, name: str, new_name: str) -> int:
    """Rename a collection, or finish an interrupted rename.

    Returns:
        Number of chunks moved.

    Raises:
        CollectionAlreadyExistsError: The store has chunks under the new name.
        StoreError: The store cannot be written.
    """
    begun = _is_begun(collections, name, new_name)
    moved = complete_renames(collections, store)
    if begun:
        return moved
    if store.count({"collection": new_name}) and new_name not in [entry.name for entry in collections.entries()]:
        raise CollectionAlreadyExistsError(
            f"the store has chunks of a collection {new_name!r} that is not in {collections.path}; choose another "
            f"name, or remove them with `ragistry collections delete {new_name}`"
        )
    with ExitStack() as held:
        # take the file's lock before the store's, as every write does
        collections.begin_rename(name, new_name, lambda: held.enter_context(store.writing()))
        try:
            moved = _give_all(store, name, new_name)
        except StoreError as error:
            raise type(error)(
                f"renamed {name!r} to {new_name!r} in {collections.path}, but some chunks still have the old name "
                f"({error}); searches find all of them, and the same rename, or the next write, finishes it"
            ) from error
    _end(collections, new_name)
    return moved


def _is_begun(collections: CollectionsFile, name: str, new_name: str) -> bool:
    names = {entry.name: entry.formerly for entry in collections.entries()}
    return name not in names and names.get(new_name) == name


def complete_renames(collections: CollectionsFile, store: LibraryStore) -> int:
    """Finish all interrupted renames.

    Returns:
        Number of chunks moved.
    """
    moved = 0
    for entry in being_renamed(collections):
        former = str(entry.formerly)
        if former not in [other.name for other in collections.entries()]:
            moved += _give_all(store, former, entry.name)
        _end(collections, entry.name)
    return moved


def _end(collections: CollectionsFile, name: str) -> None:
    with suppress(CollectionNotFoundError):  # another process has finished it
        collections.end_rename(name)


def _give_all(store: LibraryStore, former: str, name: str) -> int:
    there = {info.source_file: info for info in store.sources(name)}
    twins = [(info, there[info.source_file]) for info in store.sources(former) if info.source_file in there]
    others = [info.source_file for info, twin in twins if not _halves_of_one(info, twin)]
    if others:
        raise StoreError(
            f"collections {former!r} and {name!r} both have {agreeing(len(others), '[a source|sources]')} called "
            f"{listed(others, 5)}; remove `formerly: {former}` from the entry of {name!r}, add {former!r} again with "
            f"`ragistry collections add {former}`, and move or delete one of each; nothing was changed"
        )
    for info, twin in twins:
        keeps_twin = twin.source_hash and (not info.source_hash or twin.ingested_at >= info.ingested_at)
        store.replace_source(former if keeps_twin else name, info.source_file, [])
    return store.move_collection(former, name)


def _halves_of_one(info: SourceInfo, twin: SourceInfo) -> bool:
    """Return whether both are the same source, and one is incomplete or older.

    Then one of them can be deleted without a loss. This is the case after an interrupted move, but not after
    ``formerly`` was added to an entry by hand.
    """
    if info.source_hash and twin.source_hash:
        return info.source_hash == twin.source_hash or info.source_path == twin.source_path != ""
    is_same = (info.source, info.source_path) == (twin.source, twin.source_path)
    return is_same and bool(info.source_hash or twin.source_hash)


def move(store: LibraryStore, info: SourceInfo, to_collection: str, *, overwrite: bool) -> int:
    """Move a source to another collection.

    Returns:
        Number of chunks moved.

    Raises:
        SourceError: Both collections are the same, or the target has a source of this name and ``overwrite`` is false.
    """
    if info.collection == to_collection:
        raise SourceError(f"{info.source_file!r} is already in collection {to_collection!r}; give another collection")
    if all(other.source_file != info.source_file for other in store.sources(to_collection)):
        return store.move_source(info.source_file, info.collection, to_collection)
    if not overwrite:
        raise SourceError(
            f"collection {to_collection!r} already has a source {info.source_file!r}; overwrite it "
            f"(`--overwrite`), or delete it first; nothing was moved"
        )
    return _overwrite(store, info, to_collection)


def _overwrite(store: LibraryStore, info: SourceInfo, to_collection: str) -> int:
    """Replace the source of that name, then remove the original: every search sees one of them."""
    chunks = source_chunks(store, info.collection, info.source_file)
    for chunk in chunks:
        chunk.metadata["collection"] = to_collection
    name = info.collection, info.source_file, "outdated"
    failed = [one for _, one in entries_of(store) if (one.collection, one.source_file, one.kind) == name]
    options = {"unsearchable": [replace(one, collection=to_collection) for one in failed]} if failed else {}
    store.replace_source(to_collection, info.source_file, chunks, **options)
    store.replace_source(info.collection, info.source_file, [])
    return len(chunks)
