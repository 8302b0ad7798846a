"""A file written anew as a whole."""

from __future__ import annotations

import os
from contextlib import suppress
from errno import EDQUOT, ENOSPC
from pathlib import Path


def remedy(error: OSError) -> str:
    """What helps where the system refuses to write a file."""
    return "make room on the disk" if error.errno in (ENOSPC, EDQUOT) else "make it writable"


def replace_text(path: Path, text: str) -> None:
    """Write a file so that a reader, and a crash, find the old text or the new one, whole.

    One writer at a time: the new text is first written to ``.NAME.new``, which a killed process leaves to the next.
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
    with suppress(OSError):  # where a folder cannot be opened, the system decides when its entries are safe
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
