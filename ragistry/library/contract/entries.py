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
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from filelock import FileLock, Timeout

from ragistry.errors import ChromaDBConnectionError, InvalidCollectionNameError, StoreCorruptError
from ragistry.stores.lock import WriterLock
from ragistry.utils.disk import remedy
from ragistry.utils.wording import shown

NAME_RULE = "1 to 63 lower-case letters, digits and '-'"
LOCK_SECONDS = 2.0
"""Seconds that a second writer of a collection waits for the first."""

_NAME = re.compile(r"[a-z0-9-]{1,63}")
MAKING = "making.lock"
"""A lock file in a version's folder, held until the version is recorded."""


@dataclass(frozen=True, slots=True)
class Entry:
    """The record of a collection.

    Attributes:
        name: Name of the collection.
        folder: Folder of its store; empty if it has never had chunks.
        metadata: Metadata of the collection.
    """

    name: str
    folder: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)


def folder_of(path: Any) -> Path:
    """Return the absolute path of the folder of the collections.

    Raises:
        ChromaDBConnectionError: The path is invalid.
    """
    try:
        folder = Path(path).absolute()
        possible = b"\0" not in os.fsencode(folder)
    except (TypeError, ValueError):  # not a path, or not valid Unicode
        possible = False
    if not possible:
        raise ChromaDBConnectionError(
            f"{shown(path)} is not a path for the folder of the collections; give another path"
        )
    return folder


def check_name(name: object) -> str:
    """Return the name if it follows `NAME_RULE`.

    Raises:
        InvalidCollectionNameError: The name is invalid.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidCollectionNameError(f"{name!r:.100} cannot be the name of a collection; use {NAME_RULE}")
    return name


def read_entry(root: Path, name: str) -> Entry | None:
    """Read the record of a collection; None if it does not exist.

    Raises:
        StoreCorruptError: The record is damaged.
    """
    path = root / f"{check_name(name)}.json"
    try:
        with reached(root):
            text = path.read_text(encoding="utf-8")
        if not text:  # a collection without chunks, whose file was not written completely before a power failure
            return None
        found = json.loads(text)
        return Entry(name, _inside(found["folder"], name), dict(found["metadata"]))
    except FileNotFoundError:
        return None
    except (ValueError, LookupError, TypeError) as error:
        raise StoreCorruptError(
            f"{str(path)!r} is damaged ({error}); restore it from a backup, or delete it and index again"
        ) from error


def _inside(folder: object, name: str) -> str:
    """Check that the folder of a record is inside the folder of the collections."""
    if folder == "" or (isinstance(folder, str) and re.fullmatch(rf"{re.escape(name)}@[0-9a-f]+", folder)):
        return str(folder)
    raise ValueError(f"it names the folder {folder!r}")


def names(root: Path) -> list[str]:
    """List the names of the collections, in order; none for a missing folder."""
    try:
        with reached(root):
            stems = [path.stem for path in root.iterdir() if path.suffix == ".json"]
    except FileNotFoundError:
        return []
    return sorted(stem for stem in stems if _NAME.fullmatch(stem))


def entries(root: Path) -> list[Entry]:
    """Read the records of all collections, by name.

    Raises:
        StoreCorruptError: A record is damaged.
    """
    return [entry for name in names(root) if (entry := read_entry(root, name)) is not None]


def put_entry(root: Path, entry: Entry) -> None:
    """Replace the record of a collection, then remove unused versions.

    The caller holds the lock. After a power failure, the file has the old record or the new one; the record of a new
    collection without chunks may be missing.
    """
    text = json.dumps(asdict(entry), ensure_ascii=False, allow_nan=False, indent=1)
    new, path = root / f".{entry.name}.{uuid4().hex}", root / f"{entry.name}.json"
    with reached(root):
        lasting = bool(entry.folder) or path.exists()
        with new.open("w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            if lasting:
                os.fsync(stream.fileno())
        new.replace(path)
        if lasting:
            _settle(root)
    _sweep(root, entry)


def drop_entry(root: Path, name: str) -> None:
    """Delete the record of a collection and its versions. The caller holds the lock."""
    with reached(root):
        (root / f"{name}.json").unlink(missing_ok=True)
        _settle(root)
    _sweep(root, Entry(name))


@contextmanager
def locked(root: Path, name: str, wait: float = LOCK_SECONDS) -> Iterator[None]:
    """Hold the write lock of a collection.

    Args:
        root: Folder of the collections.
        name: Name of the collection.
        wait: Maximum seconds to wait for another writer.

    Raises:
        StoreLockedError: Another process holds the lock; the message names it.
    """
    _make(root)
    with reached(root):
        path = root.resolve() / f"{check_name(name)}.lock"
    with WriterLock(path, f"collection {name!r} in {str(root)!r}", wait=wait).writing():
        yield


def _make(root: Path) -> None:
    try:
        with reached(root):
            root.mkdir(parents=True, exist_ok=True)
    except FileNotFoundError as error:  # no folder can be created there, such as below /proc
        raise _unreachable(root, error) from error


def new_folder(root: Path, name: str) -> Path:
    """Return an unused folder for the next version of a collection's store."""
    return root / f"{name}@{uuid4().hex}"


@contextmanager
def reached(root: Path) -> Iterator[None]:
    """Translate errors of the file system, except missing files."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _unreachable(root, error) from error


def _unreachable(root: Path, error: OSError) -> ChromaDBConnectionError:
    return ChromaDBConnectionError(
        f"the collections in {str(root)!r} cannot be opened: {error.strerror}; give another path, or {remedy(error)}"
    )


def _settle(root: Path) -> None:
    """Make a rename durable, if the system supports it."""
    if os.name == "posix":
        handle = os.open(root, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _sweep(root: Path, entry: Entry) -> None:
    """Remove unfinished records, and versions that are not recorded or being built."""
    for path in root.glob(f".{entry.name}.*"):
        if re.fullmatch(r"\.[0-9a-f]{32}", path.suffix):
            path.unlink(missing_ok=True)
    for folder in root.glob(f"{entry.name}@*"):
        if folder.name != entry.folder and not _being_made(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _being_made(folder: Path) -> bool:
    if not (folder / MAKING).exists():
        return False
    try:
        with FileLock(folder / MAKING, timeout=0):
            return False
    except (Timeout, OSError):
        return True
