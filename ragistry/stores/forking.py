"""Forks between the writes of a process, not in their middle.

A child inherits what SQLite knows of locks: that a thread of its parent is writing, for ever, since no thread goes
with it. And a lock of Python that the thread had stays taken.
"""

from __future__ import annotations

import os
import threading
from time import monotonic
from weakref import WeakSet

PATIENCE = 5.0
"""Seconds that a fork waits for writes; in a child that was forked after them a write is refused as if by others."""

_locks: WeakSet[threading.RLock] = WeakSet()
_brief_locks: WeakSet[threading.Lock] = WeakSet()
_held = threading.local()


def write_lock() -> threading.RLock:
    """A lock for whose holder a fork waits, and that nobody has in the child."""
    lock = threading.RLock()
    _locks.add(lock)
    return lock


def brief_lock() -> threading.Lock:
    """A lock of what is in memory only: a fork waits for nobody who has it, and in the child nobody has."""
    lock = threading.Lock()
    _brief_locks.add(lock)
    return lock


def _before() -> None:
    until = monotonic() + PATIENCE
    _held.locks = []  # filled one by one: what was taken is given back also if Ctrl-C comes in between
    for lock in list(_locks):
        if lock.acquire(timeout=max(0.0, until - monotonic())):
            _held.locks.append(lock)


def _after_in_parent() -> None:
    for lock in _held.locks:
        lock.release()


def _after_in_child() -> None:
    for lock in (*_locks, *_brief_locks):
        lock._at_fork_reinit()  # type: ignore[attr-defined]  # as the standard library does with its own


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
