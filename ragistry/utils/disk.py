"""Free space of a disk, and the remedy for a file that cannot be written."""

from __future__ import annotations

import os
from errno import EDQUOT, EFBIG, ENOSPC
from pathlib import Path

UNKNOWN = 1 << 62
"""Bytes; the free space where the system does not tell it."""


def free_bytes(path: Path) -> int:
    """Bytes that this user may still write to the disk with the existing file or folder ``path``."""
    try:
        status = os.statvfs(path)
    except (OSError, AttributeError):  # a file system without this call; Windows
        return UNKNOWN
    return status.f_bavail * status.f_frsize


def is_full(error: OSError) -> bool:
    """Whether a write failed because the disk, a quota or a limit on the size of files is reached."""
    return error.errno in (ENOSPC, EDQUOT, EFBIG)


def remedy(error: OSError) -> str:
    """The remedy for an error of writing a file."""
    return "make room on the disk" if is_full(error) else "make it writable"
