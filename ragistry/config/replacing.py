"""Replace files atomically."""

from __future__ import annotations

import os
from contextlib import suppress
from errno import EDQUOT, ENOSPC
from pathlib import Path


def remedy(error: OSError) -> str:
    """The remedy for an error of writing a file."""
    return "make room on the disk" if error.errno in (ENOSPC, EDQUOT) else "make it writable"


def replace_text(path: Path, text: str) -> None:
    """Write a file atomically: readers, and the state after a crash, have the old text or the new one.

    For one writer at a time: the new text is first written to ``.NAME.new``; the next write replaces one left by a
    killed process.
    """
    path = Path(os.path.realpath(path))
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
    new = path.with_name(f".{path.name}.new")
    try:
        new.touch(0o600)  # a leftover keeps its mode until the new text is complete
        with new.open("w", encoding="utf-8", newline="") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        new.chmod(mode)
        new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    with suppress(OSError):  # if a folder cannot be opened, the system decides when its entries are durable
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
