"""Checksums of a vector index's files, written when it is closed and compared before it is opened.

ChromaDB ends the whole process on many a damaged file, without a word. There are no checksums while the index is
written to: one whose writer was killed counts as damaged, as about one in seven of them is.
"""

from __future__ import annotations

import json
import zlib
from pathlib import Path

from ragistry.errors import StoreCorruptError
from ragistry.stores.lexical_errors import REMEDIES

FILE = "checksums.json"
PIECE = 1 << 20


def write_checksums(folder: Path) -> None:
    """Record what the files hold."""
    (folder / FILE).write_text(json.dumps(_checksums(folder)), encoding="utf-8")


def remove_checksums(folder: Path) -> None:
    """The files are about to change."""
    (folder / FILE).unlink(missing_ok=True)


def check_checksums(folder: Path) -> None:
    """Raise `StoreCorruptError` unless the files are as they were when the index was closed."""
    try:
        now = _checksums(folder)
        then = json.loads((folder / FILE).read_text(encoding="utf-8")) if (folder / FILE).exists() else {}
    except OSError as error:
        if error.errno in REMEDIES:
            raise
        raise StoreCorruptError(f"{str(error.filename or folder)!r} cannot be read: {error.strerror!r}") from error
    except (ValueError, RecursionError) as error:
        raise StoreCorruptError(f"{str(folder / FILE)!r} is garbled") from error
    if now and not then:
        raise StoreCorruptError(f"{str(folder)!r} was not closed by whoever wrote to it last")
    if now != then:
        raise StoreCorruptError(f"{str(folder)!r} has files that are damaged or missing")


def _checksums(folder: Path) -> dict[str, int]:
    """Of ChromaDB's folders, not of its database: that changes when it is opened, and is read with more care."""
    return {
        path.relative_to(folder).as_posix(): _checksum(path) for path in sorted(folder.glob("*/*")) if path.is_file()
    }


def _checksum(path: Path) -> int:
    checksum = 0
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            checksum = zlib.crc32(piece, checksum)
    return checksum
