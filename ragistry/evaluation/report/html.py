"""A comparison as one page that needs nothing else: no script, no network, light and dark, fit to print."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ragistry.evaluation.diagnosis import Lost
from ragistry.evaluation.report import charts
from ragistry.evaluation.report.charts import Chart, Point, Spread
from ragistry.evaluation.report.content import report
from ragistry.evaluation.report.tables import PAIRS_EXPLAINED, pair_name, signed
from ragistry.evaluation.result import Comparison, Pair

HERE = Path(__file__).parent
FATES = (2, 1, 5, 4)
"""Colours of what became of relevant documents, from good to bad."""
SMALL = 0.01
"""Stages below this share of the slowest technique's time are summed up."""
PAIRS_DRAWN = 30
"""Of more pairs, only those with the baseline or the best technique are drawn."""
QUERIES_DRAWN = 12
"""Pairs whose single queries are drawn."""


def page(comparison: Comparison) -> str:
    """The report as HTML."""
    return _environment().get_template("report.html").render(
        report=report(comparison),
        style=Markup((HERE / "report.css").read_text(encoding="utf-8")),
        charts=_charts(comparison) if comparison.techniques else {},
        measure=comparison.measure,
        baseline=comparison.baseline,
        hidden=len(comparison.main_pairs) - len(_drawn(comparison, comparison.measure)),
        hidden_queries=max(0, len(comparison.main_pairs) - QUERIES_DRAWN),
        diagnosis=comparison.diagnosis[:PAIRS_EXPLAINED],
        lost=_lost(comparison),
        narrow=charts.NARROW,
    )  # fmt: skip


@lru_cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    made.filters |= {"signed": signed, "json": lambda value: json.dumps(value, ensure_ascii=False)}
    return made


def _charts(comparison: Comparison) -> dict[str, Any]:
    colours = {name: number for number, name in enumerate(comparison.techniques)}
    return {
        "quality": {measure: _quality(comparison, measure, colours) for measure in comparison.measures},
        "differences": {measure: _differences(comparison, measure, colours) for measure in comparison.measures},
        "queries": _queries(comparison, colours),
        "time": _time(comparison, colours),
        "stages": _stages(comparison),
        "relevant": _relevant(comparison),
    }


def _quality(comparison: Comparison, measure: str, colours: dict[str, int]) -> Chart:
    rows = []
    for name in comparison.by_quality:
        one = comparison.techniques[name].measures[measure]
        rows.append(Spread(name, one.mean, one.low, one.high, colours[name]))
    return charts.spreads(rows, measure)


def _differences(comparison: Comparison, measure: str, colours: dict[str, int]) -> Chart | None:
    rows = [
        Spread(pair_name(comparison, pair), pair.difference, pair.low, pair.high, colours[pair.a], pair.significant)
        for pair in _drawn(comparison, measure)
    ]
    return charts.spreads(rows, f"Difference in {measure}", zero=True) if rows else None


def _drawn(comparison: Comparison, measure: str) -> list[Pair]:
    pairs = [pair for pair in comparison.pairs if pair.measure == measure]
    best = comparison.baseline or next(iter(comparison.by_quality), "")
    return pairs if len(pairs) <= PAIRS_DRAWN else [pair for pair in pairs if best in (pair.a, pair.b)]


def _queries(comparison: Comparison, colours: dict[str, int]) -> list[Chart]:
    """Query by query, all charts on one scale."""
    found = []
    for pair in _drawn(comparison, comparison.measure)[:QUERIES_DRAWN]:
        left, right = (comparison.techniques[name].per_query[comparison.measure] for name in (pair.a, pair.b))
        found.append((pair, [(query, left[query] - right[query]) for query in left]))
    limit = max((abs(value) for _, values in found for _, value in values), default=0.0) or 1.0
    return [
        charts.query_differences(values, pair.a, pair.b, (colours[pair.a], colours[pair.b]), limit)
        for pair, values in found
    ]


def _time(comparison: Comparison, colours: dict[str, int]) -> Chart:
    points = []
    for name in comparison.by_quality:
        result = comparison.techniques[name]
        quality, time = result.measures[comparison.measure], result.cpu_ms
        points.append(Point(name, time.p50, time.p95, quality.mean, quality.low, quality.high, colours[name]))
    return charts.quality_and_time(points, comparison.measure, "CPU milliseconds")


def _stages(comparison: Comparison) -> Chart:
    """Milliseconds of each stage; small ones are summed.

    A stage of a technique inside another one has the same name, and so the same colour, in both: ``naive > embed``.
    """
    measured = {name: comparison.techniques[name].stages for name in comparison.by_quality}
    inside = {stage for stages in measured.values() for stage in stages}
    found = {
        name: {whole if (whole := f"{name} > {stage}") in inside else stage: ms for stage, ms in stages.items()}
        for name, stages in measured.items()
    }
    least = SMALL * max(sum(stages.values()) for stages in found.values())
    stages = list(dict.fromkeys(stage for own in found.values() for stage, ms in own.items() if ms >= least))
    rows = []
    for name, own in found.items():
        times = [own.get(stage, 0.0) for stage in stages]
        rows.append((name, [*times, sum(own.values()) - sum(times)]))
    return charts.bars(rows, [*stages, "the rest"], "Time by stage", "ms")


def _relevant(comparison: Comparison) -> Chart:
    rows, parts = [], ["shown", "ranked lower", "not retrieved", "routed away"]
    for name in comparison.by_quality:
        found = comparison.techniques[name].found
        rows.append((name, [float(n) for n in (found.shown, found.low, found.never, found.routed_away)]))
    title = "What became of the relevant documents"
    return charts.bars(rows, parts, title, "[document|documents]", colours=FATES)


def _lost(comparison: Comparison) -> list[tuple[str, list[Lost]]]:
    """Relevant documents that were not shown: a summary and some examples each."""
    said = {"low": "ranked too low", "never": "not retrieved", "routed_away": "routed away"}
    return [
        (f"{name}: {getattr(result.found, fate):,} {what}; examples", examples)
        for name, result in comparison.techniques.items()
        for fate, what in said.items()
        if (examples := result.found.examples.get(fate, []))
    ]
