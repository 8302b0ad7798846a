"""Which collections a folder holds: for each a small file that names the folder of its store and its metadata.

``NAME.json`` is the truth. The stores lie beside it in folders ``NAME@…``; one is made, filled, and only then named in
the file, which is replaced as a whole. So a reader sees the old version or the new one, and what a killed process
left behind is never seen, and removed when the collection is next written.
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

from ragistry.config.replacing import remedy
from ragistry.errors import ChromaDBConnectionError, InvalidCollectionNameError, StoreCorruptError
from ragistry.stores.lock import WriterLock
from ragistry.utils.shown import shown

NAME_RULE = "small letters, digits and '-', 1 to 63 of them"
LOCK_SECONDS = 2.0
"""How long a second writer of one collection waits for the first."""

_NAME = re.compile(r"[a-z0-9-]{1,63}")
MAKING = "making.lock"
"""A lock file in a version's folder that a process holds until that version is on record."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A collection: its name, the folder of its store ("" while it has had no chunks), and its metadata."""

    name: str
    folder: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)


def folder_of(path: Any) -> Path:
    """The folder of the collections; raises `ChromaDBConnectionError` for what cannot name one."""
    try:
        folder = Path(path).absolute()
        possible = b"\0" not in os.fsencode(folder)
    except (TypeError, ValueError):  # no path, or half a character
        possible = False
    if not possible:
        raise ChromaDBConnectionError(f"{shown(path)} cannot name the folder of the collections; give another path")
    return folder


def check_name(name: object) -> str:
    """The name itself; raises `InvalidCollectionNameError` unless it follows `NAME_RULE`."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidCollectionNameError(f"{name!r:.100} cannot name a collection; use {NAME_RULE}")
    return name


def read_entry(root: Path, name: str) -> Entry | None:
    """What is on record of a collection; None where there is none. Raises `StoreCorruptError`."""
    path = root / f"{check_name(name)}.json"
    try:
        with reached(root):
            text = path.read_text(encoding="utf-8")
        if not text:  # a name without chunks that a power cut left half written
            return None
        found = json.loads(text)
        return Entry(name, _inside(found["folder"], name), dict(found["metadata"]))
    except FileNotFoundError:
        return None
    except (ValueError, LookupError, TypeError) as error:
        raise StoreCorruptError(
            f"{str(path)!r} is damaged ({error}); put it back from a backup, or remove it and index again"
        ) from error


def _inside(folder: object, name: str) -> str:
    """The file may have been written by anybody; it must not lead out of its folder."""
    if folder == "" or (isinstance(folder, str) and re.fullmatch(rf"{re.escape(name)}@[0-9a-f]+", folder)):
        return str(folder)
    raise ValueError(f"it names the folder {folder!r}")


def names(root: Path) -> list[str]:
    """The collections of the folder, in order; none where there is no such folder."""
    try:
        with reached(root):
            stems = [path.stem for path in root.iterdir() if path.suffix == ".json"]
    except FileNotFoundError:
        return []
    return sorted(stem for stem in stems if _NAME.fullmatch(stem))


def entries(root: Path) -> list[Entry]:
    """What is on record of every collection, by name. Raises `StoreCorruptError`."""
    return [entry for name in names(root) if (entry := read_entry(root, name)) is not None]


def put_entry(root: Path, entry: Entry) -> None:
    """Put an entry in the place of what was on record; then remove versions that are not needed. Call it `locked`.

    A power cut leaves the old entry or the new one; of a new name without chunks, the name or nothing.
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
    """Forget a collection and remove its versions. Call it `locked`."""
    with reached(root):
        (root / f"{name}.json").unlink(missing_ok=True)
        _settle(root)
    _sweep(root, Entry(name))


@contextmanager
def locked(root: Path, name: str, wait: float = LOCK_SECONDS) -> Iterator[None]:
    """Hold the right to write a collection; after ``wait`` seconds raise `StoreLockedError` that names the holder."""
    _make(root)
    with reached(root):
        path = root.resolve() / f"{check_name(name)}.lock"
    with WriterLock(path, f"collection {name!r} in {str(root)!r}", wait=wait).writing():
        yield


def _make(root: Path) -> None:
    try:
        with reached(root):
            root.mkdir(parents=True, exist_ok=True)
    except FileNotFoundError as error:  # where no folder can be made, as below /proc
        raise _unreachable(root, error) from error


def new_folder(root: Path, name: str) -> Path:
    """Where the next version of a collection's store can be made; nothing is there yet."""
    return root / f"{name}@{uuid4().hex}"


@contextmanager
def reached(root: Path) -> Iterator[None]:
    """What the file system refuses, as the contract's error; that there is no such file is for the caller to judge."""
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
    """Make a change of names last through a power cut, where the system can."""
    if os.name == "posix":
        handle = os.open(root, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _sweep(root: Path, entry: Entry) -> None:
    """Remove every version except the one on record and those being made, and entries that were never put in place."""
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
