"""The files of a lexical index: what they were made with, and whether they are whole."""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ragistry.errors import StoreCorruptError
from ragistry.stores.lexical_errors import REBUILD, REMEDIES
from ragistry.stores.lexical_writing import BLOCK_SIZE
from ragistry.stores.rights import is_writable
from ragistry.stores.stamp import OutdatedIndexError
from ragistry.utils.analysis import analysis_record

META = "meta.json"
MANAGED = ".managed.json"
RECORD = "analysis.json"
READING_LOCK = ".tantivy-meta.lock"

_FOOTER_MAGIC = 1337


def write_record(folder: Path, language: str) -> None:
    """Record which analysis the index was made with: the last step of making one, so that half an index has none."""
    path = folder / RECORD
    with path.open("w", encoding="utf-8") as file:
        json.dump(_record(language), file)
        file.flush()
        os.fsync(file.fileno())
    directory = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _record(language: str) -> dict[str, Any]:
    return {**analysis_record(language), "block": BLOCK_SIZE}


def check_record(folder: Path, language: str) -> None:
    """Raise `StoreCorruptError` unless the index is there; `OutdatedIndexError` unless its terms are today's."""
    try:
        found = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise StoreCorruptError(f"there is no lexical index at {str(folder)!r}; {REBUILD}") from error
    except (IsADirectoryError, ValueError, RecursionError) as error:
        raise StoreCorruptError(f"the lexical index at {str(folder)!r} has a garbled {RECORD}; {REBUILD}") from error
    wanted = _record(language)
    if found != wanted:
        raise OutdatedIndexError(
            f"the lexical index at {str(folder)!r} was made with the analysis {found!r}, not {wanted!r}; {REBUILD}"
        )


@contextmanager
def place_to_open(folder: Path) -> Iterator[Path]:
    """Where tantivy opens an index: it makes a lock even to read, so where it may not, links to the files will do.

    What was opened stays open when the links are gone.
    """
    if is_writable(folder):
        yield folder
        return
    with TemporaryDirectory(prefix="ragistry-") as name:
        for path in folder.iterdir():
            if not path.name.endswith(".lock"):
                Path(name, path.name).symlink_to(path)
        yield Path(name)


def damage(folder: Path) -> str:
    """What is wrong with the files of the index, read through and compared with their checksums; empty if nothing."""
    try:
        json.loads((folder / MANAGED).read_text(encoding="utf-8"))
        segments = _segments(folder)
        names = sorted(path.name for path in folder.iterdir() if path.name.startswith(segments))
        return next((f"{name} is garbled or cut short" for name in names if not _is_whole(folder / name)), "")
    except FileNotFoundError as error:
        return f"{Path(error.filename).name} is missing"
    except OSError as error:
        if error.errno in REMEDIES:
            raise
        return f"{Path(error.filename or folder).name} cannot be read: {error.strerror!r}"
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        return f"{META} or {MANAGED} is garbled: {str(error)!r}"


def _segments(folder: Path) -> tuple[str, ...]:
    meta = json.loads((folder / META).read_text(encoding="utf-8"))
    return tuple(segment["segment_id"].replace("-", "") for segment in meta["segments"])


def _is_whole(path: Path) -> bool:
    """Tantivy ends every file of a segment with JSON, its length and a magic number, both 32 bits."""
    data = path.read_bytes()
    try:
        length, magic = struct.unpack("<II", data[-8:])
        crc = json.loads(data[-8 - length : -8])["crc"]
    except (struct.error, ValueError, LookupError, TypeError):
        return False
    return bool(magic == _FOOTER_MAGIC and crc == zlib.crc32(memoryview(data)[: -8 - length]))


def _let_go() -> None:
    """In a forked child: close what a thread of tantivy's had locked in the parent, which would be locked as long.

    Whoever opens an index starts such a thread, which cannot be waited for. Where there is no /proc, nobody knows.
    """
    with suppress(OSError):
        for opened in list(Path("/proc/self/fd").iterdir()):
            with suppress(OSError):
                if opened.readlink().name.startswith(READING_LOCK):
                    os.close(int(opened.name))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)
