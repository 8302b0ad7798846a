"""One process at a time on a directory, and who it is.

The lock is a file next to the directory; the operating system lets it go when its holder ends, however it ends.
Several stores of one process on one directory share it.
"""

from __future__ import annotations

import json
import os
import shlex
import socket
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

from filelock import FileLock, Timeout

from ragistry.errors import StoreError, StoreLockedError
from ragistry.stores.interrupts import uninterrupted


@dataclass(slots=True)
class _Hold:
    lock: FileLock
    pid: int
    keep: bool
    users: int = 1


_holds: dict[Path, _Hold] = {}
_guard = threading.Lock()
_of_parent: list[FileLock] = []
POLL = 0.05
"""Seconds between two attempts to take a lock that another process has."""


SERVER = "end that process, or wait until it is done, or let both use one ChromaDB server (`chroma run`)"


def hold(directory: Path, wait: float, *, store: Path | None = None, remedy: str = SERVER, keep: bool = True) -> None:
    """Take the lock of a directory (its real path), waiting at most ``wait`` seconds.

    ``store``: what errors call it, if not by the directory; ``remedy``: what they say to do about another holder.
    ``keep``: it is not let go for a long time, which `is_kept` tells others, and has something open with it that a
    forked child cannot use.
    Raises `StoreLockedError` that names the holder, and `StoreError` in a child of a process that has it open.
    """
    with _guard:
        held = _holds.get(directory)
        if held is None:
            _acquire(directory, wait, str(store or directory), remedy, keep)
            return
        if held.pid != os.getpid():
            raise StoreError(
                f"the store at {str(store or directory)!r} was opened by process {held.pid} before it forked this one, "
                "where it would hang; start the process with the 'spawn' method, or open the store after the fork"
            )
        held.users += 1


def users(directory: Path) -> int:
    """How many in this process have the lock."""
    held = _holds.get(directory)
    return held.users if held is not None and held.pid == os.getpid() else 0


def release(directory: Path, *, to: int | None = None) -> None:
    """Give the lock back; the last user of the process lets others in.

    ``to``: so many users are left, if there are more: for one who may or may not have got it when it was interrupted.
    """
    with _guard:
        held = _holds.get(directory)
        if held is None or held.pid != os.getpid():
            return
        held.users = held.users - 1 if to is None else min(held.users, to)
        if held.users == 0:
            try:
                with suppress(OSError):
                    _holder_file(directory).unlink(missing_ok=True)
            finally:
                uninterrupted(lambda: _give_back(directory, held.lock))


def _renew() -> None:
    """In a forked child no thread is left that would let go of what it had when its process forked."""
    global _guard
    _guard = threading.Lock()
    passing = [directory for directory, held in _holds.items() if not held.keep]
    # Not forgotten: what is collected may let go of the parent's lock.
    _of_parent.extend(_holds.pop(directory).lock for directory in passing)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


def _acquire(directory: Path, wait: float, name: str, remedy: str, keep: bool) -> None:
    until = monotonic() + wait
    try:
        lock = uninterrupted(lambda: FileLock(_beside(directory, ".lock"), thread_local=False))
        while not uninterrupted(lambda: _is_got(directory, lock, keep)):
            if monotonic() >= until:
                raise StoreLockedError(f"the store at {name!r} is in use by {_holder(directory)}; {remedy}")
            sleep(POLL)
    except OSError as error:
        raise StoreError(
            f"the store at {name!r} cannot be locked for writing: {error.strerror!r}; nothing was changed; "
            "make room on the disk, or make the folder writable"
        ) from error
    holder = {"pid": os.getpid(), "host": socket.gethostname(), "command": shlex.join(sys.argv)[:200], "keep": keep}
    with suppress(OSError):  # on a full disk there is no note, but there is a lock
        _holder_file(directory).write_text(json.dumps(holder), encoding="utf-8")


def _is_got(directory: Path, lock: FileLock, keep: bool) -> bool:
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return False
    _holds[directory] = _Hold(lock, os.getpid(), keep)
    return True


def _give_back(directory: Path, lock: FileLock) -> None:
    try:
        lock.release()
    finally:
        _holds.pop(directory, None)


def is_kept(directory: Path) -> bool:
    """Whether somebody who holds the lock will not let it go soon."""
    try:
        return bool(json.loads(_holder_file(directory).read_text(encoding="utf-8"))["keep"])
    except (OSError, ValueError, LookupError, TypeError):
        return False


def _holder(directory: Path) -> str:
    try:
        holder = json.loads(_holder_file(directory).read_text(encoding="utf-8"))
        return f"process {holder['pid']} on {holder['host']!r} ({holder['command']!r})"
    except (OSError, ValueError, LookupError, TypeError):
        return "another process (which has not said its name)"


def _holder_file(directory: Path) -> Path:
    return _beside(directory, ".holder")


def _beside(directory: Path, suffix: str) -> Path:
    return directory.with_name(directory.name + suffix)
