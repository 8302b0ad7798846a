"""Names beside the dots of a plot, placed so that none covers another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Literal, NamedTuple

CHARACTER = 7.2
"""About the width of a character of a name."""
HEIGHT = 13.0
DOT = 6.0
"""Half of the room that a dot takes."""
GAP = 9.0
"""Between a dot and the side of its name."""
ABOVE, BELOW = -8.0, 17.0
"""From a dot to the foot of its name."""


class Place(NamedTuple):
    """Where a name's foot stands: its beginning is at ``x``, or its end."""

    x: float
    y: float
    anchor: Literal["start", "end"]


def beside(names: Sequence[str], dots: Sequence[tuple[float, float]], right: float, bottom: float) -> list[Place]:
    """A place for the name of each dot, at its right where there is room, as near as what stands there already lets.

    Nothing goes beyond ``right`` or ``bottom``, in whose direction coordinates grow, or above 0, unless it is crowded
    everywhere.
    """
    taken = [(x - DOT, x + DOT, y + DOT) for x, y in dots]
    found = []
    for name, (x, y) in zip(names, dots, strict=True):
        width = len(name) * CHARACTER
        fits = x + GAP + width <= right
        left = x + GAP if fits else x - GAP - width
        free = (foot for foot in _feet(y, bottom) if not _covers((left, left + width, foot), taken))
        foot = next(free, y + ABOVE)
        taken.append((left, left + width, foot))
        found.append(Place(left, foot, "start") if fits else Place(left + width, foot, "end"))
    return found


def _feet(y: float, bottom: float) -> Iterator[float]:
    """Heights above and below a dot, the nearest first."""
    for step in count():
        feet = [y + ABOVE - step * HEIGHT, y + BELOW + step * HEIGHT]
        inside = [foot for foot in feet if HEIGHT <= foot <= bottom]
        if not inside:
            return
        yield from inside


def _covers(box: tuple[float, float, float], taken: Sequence[tuple[float, float, float]]) -> bool:
    left, right, foot = box
    return any(left < other[1] and other[0] < right and abs(foot - other[2]) < HEIGHT for other in taken)
