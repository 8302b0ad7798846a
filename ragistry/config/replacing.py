"""Replace files atomically."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def replace_text(path: Path, text: str, *, expected: bytes | None = None, durable: bool = True) -> bool:
    """Write a file atomically: readers, and the state after a crash, have the old text or the new one.

    For one writer of this program at a time: the new text is first written to ``.NAME.new``; the next write replaces
    one left by a killed process.

    Args:
        path: The file.
        text: Its new text.
        expected: Required content of the file; None for any.
        durable: Wait until the disk has the text. Otherwise the file may be missing or empty after a power failure.

    Returns:
        Whether the text was written. False if another program has changed the file meanwhile; its change stays.
    """
    path = Path(os.path.realpath(path))
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
    new = path.with_name(f".{path.name}.new")
    try:
        new.touch(0o600)  # a leftover keeps its mode until the new text is complete
        with new.open("w", encoding="utf-8", newline="") as stream:
            stream.write(text)
            stream.flush()
            if durable:
                os.fsync(stream.fileno())
        new.chmod(mode)
        done = _replaced(path, new, expected)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    if durable:
        flush_folder(path.parent)
    return done


def flush_folder(folder: Path) -> None:
    """Wait until the disk has the entries of a folder."""
    with suppress(OSError):  # if a folder cannot be opened, the system decides when its entries are durable
        flush(folder)


def flush(path: Path) -> None:
    """Write a file, or the entries of a folder, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _replaced(path: Path, new: Path, expected: bytes | None) -> bool:
    """Replace a file whose content is ``expected``."""
    if expected is None or not path.exists():
        new.replace(path)
        return True
    saved = path.with_name(f".{path.name}.saved")
    saved.unlink(missing_ok=True)
    try:
        os.link(path, saved)  # An editor that has the file open continues to write to it, under this name.
    except OSError:  # a file system without links
        new.replace(path)
        return True
    if saved.read_bytes() == expected:
        new.replace(path)
        if saved.read_bytes() == expected:
            saved.unlink()
            return True
        saved.replace(path)
    saved.unlink(missing_ok=True)
    new.unlink(missing_ok=True)
    return False
