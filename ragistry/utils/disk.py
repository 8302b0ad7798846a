"""Read the free space of a disk; name the remedy if a file cannot be written."""

from __future__ import annotations

import os
from errno import EDQUOT, EFBIG, ENOSPC
from pathlib import Path

UNKNOWN = 1 << 62
"""Assumed free space in bytes if the system does not report it."""


def free_bytes(path: Path) -> int:
    """Return the bytes that this user may still write to the disk of the existing ``path``."""
    try:
        status = os.statvfs(path)
    except (OSError, AttributeError):  # a file system without this call; Windows
        return UNKNOWN
    return status.f_bavail * status.f_frsize


def is_full(error: OSError) -> bool:
    """Return whether a write failed because the disk, a quota or a limit on file sizes is full."""
    return error.errno in (ENOSPC, EDQUOT, EFBIG)


def remedy(error: OSError) -> str:
    """Return the remedy for a failed write of a file."""
    return "free some space on the disk" if is_full(error) else "make it writable"
