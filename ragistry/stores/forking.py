"""Forks between the writes of a process, not in their middle.

A child inherits what SQLite knows of locks: that a thread of its parent is writing, for ever, since no thread goes
with it.
"""

from __future__ import annotations

import os
import threading
from time import monotonic
from weakref import ref

from ragistry.utils.forking import brief_rlock

PATIENCE = 5.0
"""Seconds that a fork waits for writes; in a child that was forked after them a write is refused as if by others."""

_locks: set[ref[threading.RLock]] = set()
_held = threading.local()


def write_lock() -> threading.RLock:
    """A lock for whose holder a fork waits, and that nobody has in the child."""
    lock = brief_rlock()
    _locks.add(ref(lock, _locks.discard))
    return lock


def _before() -> None:
    until = monotonic() + PATIENCE
    _held.locks = []  # filled one by one: what was taken is given back also if Ctrl-C comes in between
    for known in list(_locks):
        if (lock := known()) is not None and lock.acquire(timeout=max(0.0, until - monotonic())):
            _held.locks.append(lock)


def _after_in_parent() -> None:
    for lock in _held.locks:
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent)
