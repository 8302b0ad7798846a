"""Count the steps of a function, so that a test of its growth depends on no clock."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

GROWTH = 2.5
"""Most steps at twice the size, as a multiple of the steps at one size."""


def steps(run: Callable[[int], object], size: int) -> int:
    """Return how many lines of Python and how many built-in functions a call runs."""
    count = 0

    def trace(_: FrameType, event: str, __: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    def profile(_: FrameType, event: str, __: Any) -> None:
        nonlocal count
        count += event == "c_call"

    before = sys.gettrace(), sys.getprofile()
    sys.settrace(trace)
    sys.setprofile(profile)
    try:
        run(size)
    finally:
        sys.settrace(before[0])
        sys.setprofile(before[1])
    return count


def check_linear(run: Callable[[int], object], size: int) -> None:
    """Run at a size and at twice the size, and compare the numbers of steps."""
    run(size)  # What is loaded on first use does not count.
    assert steps(run, 2 * size) < GROWTH * steps(run, size)
