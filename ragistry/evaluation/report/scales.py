"""Scales with round marks, and places for the names in a plot."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Literal, NamedTuple

MINUS = "\N{MINUS SIGN}"
"""As wide as a plus; a hyphen is narrower."""
MARKS = 5
"""About how many marks an axis has."""
MARK_WIDTH = 45.0
"""Room for the number of a mark."""
CHARACTER = 7.2
"""About the width of a character of a name."""
HEIGHT = 13.0
"""Height of a line of text."""
DOT = 6.0
"""Half of the room for a dot."""
GAP = 9.0
"""Between a dot and its name."""
ABOVE, BELOW = -8.0, 17.0
"""From a dot to the baseline of its name."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps ``low`` to ``high`` onto ``start`` to ``stop``, by logarithm if ``log``."""

    low: float
    high: float
    start: float
    stop: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """The position of a value."""
        low, high, value = (math.log10(v) if self.log else v for v in (self.low, self.high, value))
        return self.start + (value - low) / (high - low) * (self.stop - self.start)

    def marks(self) -> list[float]:
        """Round numbers between low and high: 1, 2 or 5 times a power of ten apart (log: these numbers themselves)."""
        if self.log:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            marks = [round(factor * 10.0**power, 10) for power in powers for factor in (1, 2, 5)]
            return [mark for mark in marks if self.low <= mark <= self.high]
        rough = (self.high - self.low) / max(1.0, min(MARKS, abs(self.stop - self.start) / MARK_WIDTH))
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [round(number * step, 10) for number in range(first, last + 1)]


def linear(values: Iterable[float], start: float, stop: float, *, zero: bool = False, margin: float = 0.06) -> Scale:
    """A scale over the values with a margin; ``zero``: include 0."""
    found = [*values, *([0.0] if zero else [])]
    low, high = min(found), max(found)
    room = (high - low) * margin or 0.05
    return Scale(low - room, high + room, start, stop)


def logarithmic(values: Sequence[float], start: float, stop: float) -> Scale:
    """A logarithmic scale over positive values, wide enough for a mark even if all are equal."""
    return Scale(min(values) / 1.6, max(values) * 1.6, start, stop, log=True)


class Place(NamedTuple):
    """The baseline of a name: it starts at ``x``, or ends there."""

    x: float
    y: float
    anchor: Literal["start", "end"]


def beside(names: Sequence[str], dots: Sequence[tuple[float, float]], right: float, bottom: float) -> list[Place]:
    """A place for the name of each dot: to its right if there is room, as near as the other names and dots allow.

    Names stay within 0 to ``right`` and 0 to ``bottom``, unless every place is taken.
    """
    taken = [(x - DOT, x + DOT, y + DOT) for x, y in dots]
    found = []
    for name, (x, y) in zip(names, dots, strict=True):
        width = len(name) * CHARACTER
        fits = x + GAP + width <= right
        left = x + GAP if fits else x - GAP - width
        free = (foot for foot in _baselines(y, bottom) if not _overlaps((left, left + width, foot), taken))
        foot = next(free, y + ABOVE)
        taken.append((left, left + width, foot))
        found.append(Place(left, foot, "start") if fits else Place(left + width, foot, "end"))
    return found


def _baselines(y: float, bottom: float) -> Iterator[float]:
    """Heights above and below a dot, nearest first."""
    for step in count():
        feet = [y + ABOVE - step * HEIGHT, y + BELOW + step * HEIGHT]
        inside = [foot for foot in feet if HEIGHT <= foot <= bottom]
        if not inside:
            return
        yield from inside


def _overlaps(box: tuple[float, float, float], taken: Sequence[tuple[float, float, float]]) -> bool:
    left, right, foot = box
    return any(left < other[1] and other[0] < right and abs(foot - other[2]) < HEIGHT for other in taken)
