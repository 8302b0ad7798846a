"""Check the free disk space before a write, and reserve space for deletions.

SQLite writes a deletion to its log before it frees anything, so deleting needs space too. The file ``reserve`` has a
few megabytes that are released for it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ragistry.errors import StoreError
from ragistry.stores.chunk_checks import CheckedChunks
from ragistry.utils.disk import free_bytes
from ragistry.utils.wording import numbered

RESERVE_FILE = "reserve"
RESERVE = 4 << 20
MARGIN = 128 << 10
"""Bytes that must be free for a write: SQLite maps a file of 32 KB, and the process dies if a page does not fit.
The reserve leaves twice this number, for the marks of indexes and for small files such as documents.yaml.
"""
DELETED, WRITTEN = 6 << 10, 1 << 10
"""Measured bytes in the log for a deleted chunk, and for a written one in addition to its text and vector."""
DELETABLE = 500
"""Number of chunks that the reserve suffices for, so that their deletion is always attempted."""
GROWTH = 64 << 10
"""Bytes; the reserve is not enlarged for less."""


class Room:
    """The free space for the database at ``path``, and the reserve next to it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._reserve = path.with_name(RESERVE_FILE)

    def is_short(self) -> bool:
        """Return whether less than the margin is free."""
        return free_bytes(self.path.parent) < MARGIN

    def check_write(self, chunks: CheckedChunks) -> None:
        """Raise `StoreError` if the disk has no space for these chunks and the reserve.

        They need twice their size, because they are in the log until the database has them.
        """
        count, payload = len(chunks.ids), sum(map(len, chunks.texts)) + chunks.vectors.nbytes
        self.keep_reserve()
        self._check(2 * (payload + count * WRITTEN) + MARGIN, "writing", count)

    def check_deletion(self, chunks: int) -> None:
        """Raise `StoreError` if neither the reserve nor the disk has space to delete that many chunks."""
        if chunks > DELETABLE:
            size = self.path.stat().st_size
            needed = min(chunks * DELETED, size) + MARGIN
            self._check(needed, "deleting", chunks, f", or delete at most {DELETABLE} chunks at a time")

    def check_any(self) -> None:
        """Raise `StoreError` if the disk has no space for a small write."""
        self._check(MARGIN, "writing")

    @contextmanager
    def for_deletion(self) -> Iterator[None]:
        """Delete chunks in the block; on a full disk, use the reserve and restore it afterwards.

        The caller must hold the writer's lock.
        """
        if free_bytes(self.path.parent) < RESERVE:
            with suppress(OSError):
                self._reserve.unlink(missing_ok=True)
        try:
            yield
        finally:
            self.keep_reserve()

    def keep_reserve(self) -> None:
        """Reserve `RESERVE` bytes, or as much as the disk has."""
        with suppress(OSError):  # a missing reserve must not fail a write
            try:
                size = self._reserve.stat().st_size
            except FileNotFoundError:
                size = 0
            if size >= RESERVE:
                return
            wanted = min(RESERVE, size + free_bytes(self.path.parent) - 2 * MARGIN)
            if wanted >= size + GROWTH:
                with self._reserve.open("ab") as stream:
                    _allocate(stream.fileno(), size, wanted)

    def _check(self, needed: int, purpose: str, chunks: int = 0, alternative: str = "") -> None:
        free = free_bytes(self.path.parent)
        if free < needed:
            if chunks:
                purpose = f"{purpose} {numbered(chunks, 'chunk[|s]')}"
            raise StoreError(
                f"the disk of {str(self.path)!r} is full: {purpose} needs {_size(needed)} temporarily, {_size(free)} "
                f"are free; nothing was changed; free some space{alternative}, and try again"
            )


def _allocate(file: int, size: int, wanted: int) -> None:
    """Enlarge a file from ``size`` to ``wanted`` bytes, and allocate them on the disk."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, size, wanted - size)
    else:
        os.write(file, bytes(wanted - size))


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 1e6 else f"{count / 1e3:.0f} KB"
