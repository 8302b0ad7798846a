"""A file written anew as a whole."""

from __future__ import annotations

import os
import re
import tempfile
import time
from contextlib import suppress
from errno import EDQUOT, ENOSPC
from pathlib import Path

ABANDONED = 600.0
"""Seconds after which a file that was being written is nobody's any more."""


def remedy(error: OSError) -> str:
    """What helps where the system refuses to write a file."""
    return "make room on the disk" if error.errno in (ENOSPC, EDQUOT) else "make it writable"


def sweep(path: Path) -> None:
    """Remove what processes that were killed in `replace_text` have left; one that is writing just now is let be."""
    path = Path(os.path.realpath(path))
    for left in path.parent.glob(f".{path.name}.*"):
        if re.fullmatch(r"[a-z0-9_]{8}", left.name.rpartition(".")[2]):  # as `mkstemp` ends a name
            with suppress(OSError):
                if time.time() - left.stat().st_mtime > ABANDONED:
                    left.unlink()


def replace_text(path: Path, text: str) -> None:
    """Write a file so that a reader, and a crash, find the old text or the new one, whole."""
    path = Path(os.path.realpath(path))
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        Path(temporary).chmod(mode)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    with suppress(OSError):  # where a folder cannot be opened, the system decides when its entries are safe
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
