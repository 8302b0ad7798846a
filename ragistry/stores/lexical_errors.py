"""Tantivy's errors as ours. It reports nearly everything as `ValueError`, and damage at times as a panic."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import disk_usage

from ragistry.errors import RagistryError, StoreCorruptError, StoreError, StoreLockedError

REBUILD = "run `ragistry repair`; it is rebuilt from the store and loses nothing"

ROOM = 1_000_000
"""Bytes on the disk below which a writer that failed had no room."""
REMEDIES = {
    errno.ENOSPC: "make room on the disk",
    errno.EDQUOT: "make room on the disk",
    errno.EFBIG: "make room on the disk",
    errno.EACCES: "make the folder writable",
    errno.EPERM: "make the folder writable",
    errno.EROFS: "make the folder writable",
    errno.EMFILE: "let the process open more files (`ulimit -n`)",
    errno.ENFILE: "close what has many files open",
    errno.ENOMEM: "close what takes the memory",
}
"""What helps where the system refuses and the index is sound."""
_ERRNO = re.compile(r"(?:os error|code:) (\d+)")


@contextmanager
def translated(folder: Path) -> Iterator[None]:
    """Errors of tantivy, and of the system beneath it, leave as `StoreError` that names the folder."""
    try:
        yield
    except RagistryError:
        raise
    except BaseException as error:
        if isinstance(error, ValueError | RuntimeError | OSError) or type(error).__name__ == "PanicException":
            raise translation(folder, error) from error
        raise


def translation(folder: Path, error: BaseException) -> StoreError:
    """Our error for one of tantivy's."""
    place = f"the lexical index at {str(folder)!r}"
    said = " ".join(str(error).split())[:300]
    if "LockBusy" in said:
        return StoreLockedError(f"{place} is being written to by another process; wait until it is done")
    number = _number(error, said)
    if not number and "Worker thread failed" in said and folder.exists() and disk_usage(folder).free < ROOM:
        number = errno.ENOSPC  # of which tantivy's writer tells nothing
    if number in REMEDIES:
        return StoreError(f"{place} cannot be used: {os.strerror(number)!r}; {REMEDIES[number]}, and try again")
    return StoreCorruptError(f"{place} is damaged: {said!r}; {REBUILD}")


def _number(error: BaseException, said: str) -> int:
    if isinstance(error, OSError):
        return error.errno or 0
    found = _ERRNO.search(said)
    return int(found[1]) if found else 0
