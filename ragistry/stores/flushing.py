"""When an index hears of what was written by a process that keeps the right to write, so that no other may tell it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic

from ragistry.utils.forking import brief_lock

PAUSE = 0.5
"""Seconds without a write after which the index is brought up."""
EVERY = 5.0
"""Seconds after which it is in the middle of writes that do not pause: each time costs as much as many writes."""


class Flusher:
    """Calls ``flush`` in a thread of its own, which lives only as long as there is something to wait for."""

    def __init__(self, flush: Callable[[], None]) -> None:
        self._flush = flush
        self._waits = threading.Condition(brief_lock())
        self._thread: threading.Thread | None = None
        self._first = self._last = 0.0
        self._closed = False

    def written(self) -> None:
        """Something was written that the index has yet to hear of."""
        with self._waits:
            self._last = monotonic()
            if self._thread is None and not self._closed:
                self._first = self._last
                thread = threading.Thread(target=self._run, name="ragistry-flush", daemon=True)
                thread.start()
                self._thread = thread

    def close(self) -> None:
        """Wait for no more writes; a flush that is under way ends first."""
        with self._waits:
            self._closed = True
            self._waits.notify_all()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _run(self) -> None:
        try:
            self._flush_when_due()
        except BaseException:  # `threading.excepthook` tells it; the next write starts another thread
            with self._waits:
                self._thread = None
            raise

    def _flush_when_due(self) -> None:
        while self._is_due():
            seen = self._last
            self._flush()
            with self._waits:
                if self._last == seen:
                    self._thread = None
                    return
                self._first = monotonic()

    def _is_due(self) -> bool:
        """True when it is time; False if it never will be."""
        with self._waits:
            while not self._closed and (left := min(self._last + PAUSE, self._first + EVERY) - monotonic()) > 0:
                self._waits.wait(left)
            return not self._closed
