"""Records of the collections in a folder: one small file for each, with its store's folder and its metadata.

``NAME.json`` is authoritative. The stores are in folders ``NAME@…`` next to it. A store is filled before the file
refers to it, and the file is replaced atomically. So readers see the old version or the new one. Leftovers of a killed
process are never read; the next write of the collection removes them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from filelock import FileLock, Timeout

from ragistry.config.replacing import flush_folder, replace_text
from ragistry.errors import (
    ChromaDBConnectionError,
    CollectionNotFoundError,
    InvalidCollectionNameError,
    StoreCorruptError,
)
from ragistry.stores.lock import WriterLock
from ragistry.utils.disk import remedy
from ragistry.utils.wording import did_you_mean, listed, shown

NAME_RULE = "1 to 63 lower-case letters, digits and '-'"
LOCK_SECONDS = 2.0
"""Seconds that a second writer of a collection waits for the first."""

_NAME = re.compile(r"[a-z0-9-]{1,63}")


@dataclass(frozen=True, slots=True)
class RepositoryEntry:
    """The record of a collection.

    Attributes:
        name: Name of the collection.
        folder: Folder of its store; empty if it has never had chunks.
        metadata: Metadata of the collection.
    """

    name: str
    folder: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)


def check_name(name: str) -> str:
    """Return the name if it follows `NAME_RULE`.

    Raises:
        InvalidCollectionNameError: The name is invalid.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidCollectionNameError(f"{name!r:.100} cannot be the name of a collection; use {NAME_RULE}")
    return name


def names(root: Path) -> list[str]:
    """List the names of the collections, in order; none for a missing folder."""
    try:
        with translated_errors(root):
            stems = [path.stem for path in root.iterdir() if path.suffix == ".json"]
    except FileNotFoundError:
        return []
    return sorted(stem for stem in stems if _NAME.fullmatch(stem))


def read_entry(root: Path, name: str) -> RepositoryEntry | None:
    """Read the record of a collection; None if it does not exist.

    Raises:
        StoreCorruptError: The record is damaged.
    """
    path = root / f"{check_name(name)}.json"
    try:
        with translated_errors(root):
            text = path.read_bytes()
        if not text:  # a collection without chunks, whose file was not written completely before a power failure
            return None
        record = json.loads(text)
        folder, metadata = record["folder"], dict(record["metadata"])
        if folder != "" and not re.fullmatch(rf"{name}@[0-9a-f]+", folder):
            raise ValueError(f"it names the folder {folder!r}")
    except FileNotFoundError:
        return None
    except (ValueError, LookupError, TypeError) as error:
        raise StoreCorruptError(
            f"{str(path)!r} is damaged ({error}); restore it from a backup, or delete it and index again"
        ) from error
    return RepositoryEntry(name, folder, metadata)


def existing_entry(root: Path, name: str) -> RepositoryEntry:
    """Read the record of a collection.

    Raises:
        CollectionNotFoundError: The collection does not exist.
        StoreCorruptError: The record is damaged.
    """
    entry = read_entry(root, name)
    if entry is None:
        known = names(root)
        raise CollectionNotFoundError(
            f"no collection {name!r} in {str(root)!r}{did_you_mean(name, known)}; there are {listed(known)}"
        )
    return entry


def put_entry(root: Path, entry: RepositoryEntry) -> None:
    """Replace the record of a collection, then remove unused versions.

    The caller holds the lock. After a power failure, the file has the old record or the new one; the record of a new
    collection without chunks may be missing.
    """
    text = json.dumps(asdict(entry), ensure_ascii=False, allow_nan=False, indent=1)
    path = root / f"{entry.name}.json"
    with translated_errors(root):
        replace_text(path, text, durable=bool(entry.folder) or path.exists())
    sweep(root, entry.name)


def drop_entry(root: Path, name: str) -> None:
    """Delete the record of a collection and its versions. The caller holds the lock."""
    with translated_errors(root):
        for leftover in (f"{name}.json", f".{name}.json.new"):
            (root / leftover).unlink(missing_ok=True)
        flush_folder(root)
    sweep(root, name)


@contextmanager
def entry_lock(root: Path, name: str, wait: float = LOCK_SECONDS) -> Iterator[None]:
    """Hold the write lock of a collection; its folder is created.

    Args:
        root: Folder of the collections.
        name: Name of the collection.
        wait: Maximum seconds to wait for another writer.

    Raises:
        StoreLockedError: Another process holds the lock; the message names it.
    """
    check_name(name)
    try:
        with translated_errors(root):
            root.mkdir(parents=True, exist_ok=True)
            path = root.resolve() / f"{name}.lock"
    except FileNotFoundError as error:  # no folder can be created there, such as below /proc
        raise _unreachable(root, error) from error
    with WriterLock(path, f"collection {name!r} in {str(root)!r}", wait=wait).writing():
        yield


@contextmanager
def translated_errors(root: str | os.PathLike[str]) -> Iterator[None]:
    """Translate errors of the file system, except missing files."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a NUL character, or not valid Unicode
        raise _unreachable(root, error) from error


def _unreachable(root: object, error: OSError | ValueError) -> ChromaDBConnectionError:
    if isinstance(error, OSError):
        reason, also = error.strerror, f", or {remedy(error)}"
    else:
        reason, also = str(error), ""
    return ChromaDBConnectionError(
        f"the collections in {shown(str(root))} cannot be opened: {reason}; give another path{also}"
    )


def new_folder(root: Path, name: str) -> Path:
    """Return an unused folder for the next version of a collection's store."""
    return root / f"{name}@{uuid4().hex}"


def sweep(root: Path, name: str) -> None:
    """Remove the versions of a collection that are not recorded, except those that another process fills."""
    entry = read_entry(root, name) or RepositoryEntry(name)
    for folder in root.glob(f"{name}@*"):
        if folder.name != entry.folder:
            with suppress(Timeout, OSError), FileLock(folder / "lock", timeout=0):  # the lock of its store
                shutil.rmtree(folder, ignore_errors=True)
