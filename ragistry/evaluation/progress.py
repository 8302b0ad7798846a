"""Show progress on standard error: in one changing line in a terminal or notebook, else in a line every ten seconds."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic
from typing import TextIO

from ragistry.types import Progress
from ragistry.utils.wording import one_line

EVERY = 10.0
"""Seconds between two lines where a line cannot be changed."""
OFTEN = 0.1
"""Seconds between two changes of a line."""
ESTIMATE = ", about "
"""In the text of an activity, before the time that it takes."""


class ProgressLines:
    """A `Progress` that writes to a stream. The beginning of an activity with an `ESTIMATE` is written at once.

    Args:
        stream: The stream; None for standard error.
        changing: Whether a line can be changed; None to find out.

    Attributes:
        last: The last activity, how much of it is done, and of how much.
    """

    def __init__(self, stream: TextIO | None = None, *, changing: bool | None = None) -> None:
        self.stream = sys.stderr if stream is None else stream
        self.changing = _can_change(self.stream) if changing is None else changing
        self.last, self._written, self._width = ("preparing", 0, 0), monotonic(), 0

    def __call__(self, activity: str, done: int, total: int) -> None:
        now, is_new = monotonic(), activity != self.last[0]
        at_once = done >= total or is_new if self.changing else is_new and ESTIMATE in activity
        self.last = activity, done, total
        if not at_once and now - self._written < (OFTEN if self.changing else EVERY):
            return
        self._written = now
        line = ": ".join(filter(None, (one_line(activity), f"{done:,} of {total:,}" * bool(total))))
        if self.changing:
            self.stream.write(f"\r{line:<{self._width}}")
            self._width = len(line)
            if done >= total:
                self.clear()
        else:
            self.stream.write(f"{line}\n")
        self.stream.flush()

    def clear(self) -> None:
        """Remove a changing line."""
        if self.changing and self._width:
            self.stream.write(f"\r{'':<{self._width}}\r")
            self.stream.flush()
            self._width = 0


@contextmanager
def repeated_lines() -> Iterator[ProgressLines]:
    """Yield a `Progress` that writes a line every ten seconds, also while nothing advances."""
    lines, ended = ProgressLines(changing=False), Event()

    def repeat() -> None:
        while not ended.wait(EVERY / 10):
            lines(*lines.last)

    Thread(target=repeat, daemon=True).start()
    try:
        yield lines
    finally:
        ended.set()


def shown_progress(progress: Progress | bool | None) -> Progress | None:
    """Return the callback for an argument ``progress``: True shows progress, False and None do not."""
    if progress is True:
        return ProgressLines()
    return progress or None


def _can_change(stream: TextIO) -> bool:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return stream.isatty() or (shell is not None and hasattr(shell, "kernel"))
