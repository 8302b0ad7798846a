"""Ctrl-C held back for a moment, where what it interrupts could never be set right."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def uninterrupted(act: Callable[[], T]) -> T:
    """What ``act`` returns; a Ctrl-C that comes meanwhile is heard as soon as it is done, and its result then lost.

    Only Python's main thread is ever interrupted. For what takes a moment only: taking or giving back a lock.
    """
    former = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(former):
        return act()
    came: list[Any] = []
    try:
        signal.signal(signal.SIGINT, lambda *told: came.append(told))
        return act()
    finally:
        signal.signal(signal.SIGINT, former)
        if came:
            former(*came[-1])
