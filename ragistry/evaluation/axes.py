"""Scales of a plot: from values to places, with round numbers for marks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

MINUS = "\N{MINUS SIGN}"
"""As wide as a plus, which a hyphen is not."""
MARKS = 5
"""About how many marks an axis has, where there is room."""
ROOM = 45.0
"""What a mark's number needs."""


@dataclass(frozen=True, slots=True)
class Scale:
    """``low`` to ``high`` become ``start`` to ``stop``; by their logarithm where ``log``."""

    low: float
    high: float
    start: float
    stop: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """The place of a value."""
        low, high, value = (math.log10(v) if self.log else v for v in (self.low, self.high, value))
        return self.start + (value - low) / (high - low) * (self.stop - self.start)

    def marks(self) -> list[float]:
        """Round numbers from low to high: 1, 2 or 5 of a power of ten apart, or by logarithm at these themselves."""
        if self.log:
            return _log_marks(self.low, self.high)
        return _linear_marks(self.low, self.high, max(1.0, min(MARKS, abs(self.stop - self.start) / ROOM)))


def linear(values: Iterable[float], start: float, stop: float, *, zero: bool = False, margin: float = 0.06) -> Scale:
    """A scale that holds the values with a margin, and 0 where ``zero``."""
    found = [*values, *([0.0] if zero else [])]
    low, high = min(found), max(found)
    room = (high - low) * margin or 0.05
    return Scale(low - room, high + room, start, stop)


def logarithmic(values: Sequence[float], start: float, stop: float) -> Scale:
    """A scale that holds the values, all above 0, with room for a mark even where they are all the same."""
    return Scale(min(values) / 1.6, max(values) * 1.6, start, stop, log=True)


def shown(value: float) -> str:
    """A mark's number, as short as it is exact."""
    return f"{value:.10g}".replace("-", MINUS)


def _linear_marks(low: float, high: float, most: float) -> list[float]:
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(number * step, 10) for number in range(first, last + 1)]


def _log_marks(low: float, high: float) -> list[float]:
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    marks = [factor * 10.0**power for power in powers for factor in (1, 2, 5)]
    return [round(mark, 10) for mark in marks if low <= mark <= high]
