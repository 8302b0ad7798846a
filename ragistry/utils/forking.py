"""Locks that nobody has in a forked child: the thread that had one there would never give it back."""

from __future__ import annotations

import os
import threading
from typing import Any, TypeVar
from weakref import ref

Lock = TypeVar("Lock")

_locks: set[ref[Any]] = set()  # not a `WeakSet`: another thread may add to it while it is gone through


def brief_lock() -> threading.Lock:
    """A lock of what is in memory only: a fork waits for nobody who has it, and in the child nobody has."""
    return _renewed(threading.Lock())


def brief_rlock() -> threading.RLock:
    """The same for a thread that may take it again while it has it."""
    return _renewed(threading.RLock())


def _renewed(lock: Lock) -> Lock:
    _locks.add(ref(lock, _locks.discard))
    return lock


def _after_in_child() -> None:
    for known in list(_locks):
        if (lock := known()) is not None:
            lock._at_fork_reinit()  # as the standard library does with its own


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_in_child)
