"""What can be told of a Chroma directory from its files alone.

ChromaDB opens a directory that has lost its database as an empty one, searches cut index files in silence, and ends
the whole process on a cut header; each is found here before it opens the directory. The file `ragistry.json` inside
records which collections have been written to, because a database that vanishes leaves no other trace.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from uuid import UUID

from ragistry.errors import StoreCorruptError

DATABASE = "chroma.sqlite3"
RECORD = "ragistry.json"
REMEDY = "restore it from a backup, or delete the whole folder and ingest again"

_HEADER = struct.Struct("<i4Q")
"""Head of header.bin: version, offset, capacity, number of vectors, bytes a vector; 100 bytes in all."""
_HEADER_SIZE = 100


def check_files(directory: Path) -> None:
    """Raise `StoreCorruptError` if the directory's files cannot be what was written."""
    database = directory / DATABASE
    if not database.exists() and (written(directory) or any(_index_folders(directory))):
        raise StoreCorruptError(f"the Chroma directory {str(directory)!r} has lost its {DATABASE}; {REMEDY}")
    for folder in _index_folders(directory):
        problem = _index_problem(folder)
        if problem:
            raise StoreCorruptError(f"the vector index {str(folder)!r} is damaged: {problem}; {REMEDY}")


def _index_problem(folder: Path) -> str:
    try:
        header = (folder / "header.bin").read_bytes()
        if len(header) != _HEADER_SIZE:
            return f"header.bin has {len(header)} bytes, not {_HEADER_SIZE}"
        _, _, _, vectors, size = _HEADER.unpack_from(header)
        needed = {"data_level0.bin": vectors * size, "length.bin": vectors * 4}
        for name, least in needed.items():
            found = (folder / name).stat().st_size
            if found < least:
                return f"{name} has {found:,} bytes, at least {least:,} are needed"
    except FileNotFoundError as error:
        return f"{Path(error.filename).name} is missing"
    return ""


def check_same_collection(directory: Path, name: str, identity: str) -> None:
    """Raise `StoreCorruptError` if a collection that was written to is now another one."""
    known = written(directory).get(name)
    if known is not None and known != identity:
        raise StoreCorruptError(
            f"collection {name!r} in {str(directory)!r} was removed by something other than Ragistry "
            f"(its id was {known}, now {identity}); restore the folder from a backup, or delete it and ingest again"
        )


def written(directory: Path) -> dict[str, str]:
    """The collections that have been written to: name to ChromaDB's id."""
    try:
        found = json.loads((directory / RECORD).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise StoreCorruptError(f"{str(directory / RECORD)!r} cannot be read: {error}; {REMEDY}") from error
    return dict(found["collections"])


def record(directory: Path, name: str, identity: str | None) -> None:
    """Write down that a collection has been written to; None: that it is no more."""
    collections = written(directory)
    if collections.get(name) == identity:
        return
    collections[name] = identity or ""
    if identity is None:
        del collections[name]
    new = directory / f"{RECORD}.new"
    new.write_text(json.dumps({"collections": collections}, indent=2) + "\n", encoding="utf-8")
    os.replace(new, directory / RECORD)  # noqa: PTH105


def remove_orphans(directory: Path) -> None:
    """Delete the index folders of collections that are no more; ChromaDB leaves them."""
    with closing(sqlite3.connect(f"{(directory / DATABASE).as_uri()}?mode=ro", uri=True)) as database:
        known = {row[0] for row in database.execute("SELECT id FROM segments")}
    for folder in _index_folders(directory):
        if folder.name not in known:
            shutil.rmtree(folder, ignore_errors=True)


def _index_folders(directory: Path) -> Iterator[Path]:
    for folder in sorted(directory.iterdir()) if directory.is_dir() else ():
        if folder.is_dir() and _is_uuid(folder.name):
            yield folder


def _is_uuid(name: str) -> bool:
    try:
        return str(UUID(name)) == name
    except ValueError:
        return False
