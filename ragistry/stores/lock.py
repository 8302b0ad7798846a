"""The write lock of a folder: one process at a time holds it, and its threads take turns.

The lock is a file in the folder; the operating system releases it when the process ends for any reason.
"""

from __future__ import annotations

import json
import os
import shlex
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ragistry.errors import StoreError, StoreLockedError
from ragistry.utils.disk import remedy

if TYPE_CHECKING:
    from filelock import FileLock


@dataclass(slots=True)
class _Shared:
    """The state shared by every `WriterLock` of this process on one file."""

    lock: FileLock | None = None
    turn: threading.RLock = field(default_factory=threading.RLock)
    guard: threading.Lock = field(default_factory=threading.Lock)
    holders: int = 0
    depth: int = 0  # of nested `writing` blocks of the thread whose turn it is


_shared: dict[tuple[int, Path], _Shared] = {}


class WriterLock:
    """The lock file ``path`` of the object called ``place`` in messages.

    ``wait``: seconds to wait for another process before `StoreLockedError`, which names that process.
    """

    def __init__(self, path: Path, place: str, *, wait: float = 2.0) -> None:
        self.path, self.place, self.wait = path, place, wait
        self._note = path.with_name(f"{path.name}.holder")
        self.pid = os.getpid()
        # By process id: a forked child does not hold the lock of its parent.
        self._state = _shared.setdefault((os.getpid(), path), _Shared())

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the lock during the block, in which no other process or thread writes; a thread may nest blocks."""
        with self._state.turn:
            is_nested = self._state.depth > 0
            if is_nested:
                self.check_process()
            else:
                self.hold()
            self._state.depth += 1
            try:
                yield
            finally:
                self._state.depth -= 1
                if not is_nested:
                    self.release()

    @property
    def is_inherited(self) -> bool:
        """Whether this process was forked from the one that created the lock, which then cannot be used."""
        return self.pid != os.getpid()

    def check_process(self) -> None:
        """Raise `StoreError` in a forked child."""
        if self.pid != os.getpid():
            raise StoreError(
                f"{self.place} was opened by process {self.pid}, which forked this one; "
                "open it again in this process, or start processes with the 'spawn' method"
            )

    def hold(self) -> None:
        """Keep other processes out until `release`. Raises `StoreLockedError`, `StoreError`."""
        self.check_process()
        with self._state.guard:
            if self._state.holders == 0:
                self._acquire()
            self._state.holders += 1

    def release(self) -> None:
        """Undo one `hold`; the last one in the process releases the lock."""
        with self._state.guard:
            self._state.holders -= 1
            if self._state.holders == 0:
                with suppress(OSError):
                    self._note.unlink(missing_ok=True)
                if self._state.lock is not None:
                    self._state.lock.release()

    def _acquire(self) -> None:
        from filelock import FileLock  # not at the top, because a search locks nothing

        if self._state.lock is None:
            self._state.lock = FileLock(self.path, thread_local=False)
        try:
            self._state.lock.acquire(timeout=self.wait, poll_interval=0.02)
        except TimeoutError as error:
            raise StoreLockedError(
                f"{self.place} is being written by {self._holder()}; end that process, or wait until it is done"
            ) from error
        except OSError as error:
            raise StoreError(
                f"{self.place} cannot be locked for writing: {error.strerror!r}; nothing was changed; {remedy(error)}"
            ) from error
        holder = {"pid": os.getpid(), "host": socket.gethostname(), "command": shlex.join(sys.argv)[:200]}
        with suppress(OSError):  # a full disk cannot store the note, but the lock works
            self._note.write_text(json.dumps(holder), encoding="utf-8")

    def _holder(self) -> str:
        try:
            holder = json.loads(self._note.read_text(encoding="utf-8"))
            return f"process {holder['pid']} on {holder['host']!r} ({holder['command']!r})"
        except (OSError, ValueError, LookupError, TypeError):
            return "another process"
