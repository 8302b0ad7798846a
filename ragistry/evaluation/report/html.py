"""A comparison as a self-contained HTML page: no script, no network, light and dark, printable.

The template draws plots as SVG in per cent of width and height; `Scale` computes positions.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ragistry.evaluation.report.content import (
    MINUS,
    PAIRS_EXPLAINED,
    Interval,
    ReportTable,
    about,
    failures,
    origin,
    signed,
    tables,
)

if TYPE_CHECKING:
    from ragistry.evaluation.result import Comparison

HERE = Path(__file__).parent
MARKS = 5
"""Approximate number of marks on an axis."""
QUERIES_DRAWN = 12
"""Number of pairs whose single queries are drawn."""
SHORTEST = 0.001
"""The smallest value on a logarithmic axis, in milliseconds."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Map values from ``low`` to ``high`` onto ``start`` to ``stop`` per cent, logarithmically if ``log``."""

    low: float
    high: float
    start: float = 0.0
    stop: float = 100.0
    log: bool = False

    def __call__(self, value: float) -> str:
        """Return the position of a value with two decimals, so that equal figures give equal bytes."""
        low, high, value = (math.log10(v) if self.log else v for v in (self.low, self.high, value))
        return f"{self.start + (value - low) / (high - low) * (self.stop - self.start):.2f}%"

    def marks(self) -> list[float]:
        """Return round numbers in the range: 1, 2 or 5 times a power of ten apart (log: these numbers themselves)."""
        if self.log:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            numbers = [round(factor * 10.0**power, 10) for power in powers for factor in (1, 2, 5)]
            return [number for number in numbers if self.low <= number <= self.high]
        rough = (self.high - self.low) / MARKS
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
        return [round(n * step, 10) for n in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)]


def page(comparison: Comparison) -> str:
    """Return the report as a self-contained HTML page."""
    results = [comparison.techniques[name] for name in comparison.by_quality]
    means = [result.measures[comparison.measure] for result in results]
    timed = [result for result in results if result.timed]
    times = [max(time, SHORTEST) for result in timed for time in (result.cpu_ms.p50, result.cpu_ms.p95)]
    drawn = []
    for pair in comparison.main_pairs[:QUERIES_DRAWN]:
        one, other = (comparison.techniques[name].per_query[pair.measure] for name in (pair.a, pair.b))
        values = [(query, one[query] - other[query]) for query in one]
        drawn.append((pair, sorted(values, key=lambda item: (-item[1], item[0]))))
    return _environment().get_template("report.html").render(
        comparison=comparison,
        tables=tables(comparison),
        about=about(comparison),
        failures=failures(comparison),
        origin=origin(comparison),
        style=Markup((HERE / "report.css").read_text(encoding="utf-8")),
        time=Scale(min(times) / 1.6, max(times) * 1.6, 8, 70, log=True) if times else None,
        mean=scale((end for one in means for end in (one.low, one.high)), 90, 4) if means else None,
        drawn=drawn,
        limit=max((abs(value) for _, values in drawn for _, value in values), default=0.0) or 1.0,
        diagnosis=comparison.diagnosis[:PAIRS_EXPLAINED],
    )  # fmt: skip


def scale(values: Iterable[float], start: float = 0, stop: float = 100) -> Scale:
    """Return a scale over the values with a margin."""
    found = [*values]
    span, size = max(found) - min(found), max(1.0, *map(abs, found))
    room = span * 0.06 if span > size * 1e-8 else size * 0.05  # Closer values differ by rounding only.
    return Scale(min(found) - room, max(found) + room, start, stop)


def scales(table: ReportTable) -> list[Scale | None]:
    """Return a scale for each column with intervals, over rows that are not faint; for differences it includes 0."""
    found: list[Scale | None] = []
    for column in range(len(table.columns)):
        cells = [row[column] for place, row in enumerate(table.rows) if place not in table.faint]
        intervals = [cell for cell in cells if isinstance(cell, Interval)]
        ends = [end for one in intervals for end in (one.low, one.high, 0.0 if one.form[0] == "+" else one.value)]
        found.append(scale(ends) if ends else None)
    return found


@lru_cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    made.filters |= {
        "json": partial(json.dumps, ensure_ascii=False),
        "mark": lambda value: f"{value:.10g}".replace("-", MINUS),
        "scales": scales,
        "signed": signed,
    }
    return made
