"""A comparison as one page that needs nothing else: no script, no network, dark and light, fit to print."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from ragistry.evaluation import charts
from ragistry.evaluation.charts import Point, Spread
from ragistry.evaluation.html import Html, joined, tag
from ragistry.evaluation.notes import notes
from ragistry.evaluation.report_diagnosis import diagnosis
from ragistry.evaluation.report_origin import origin
from ragistry.evaluation.report_text import failures, size
from ragistry.evaluation.result import Comparison
from ragistry.evaluation.sheets import (
    Sheet,
    by_quality,
    conclusion,
    cost,
    differences,
    fates,
    indexes,
    is_number,
    pair_name,
    quality,
    verdicts,
)
from ragistry.evaluation.synthetic import cautions, heading
from ragistry.utils.wording import numbered

FATES = (2, 1, 5, 4)
"""Colours of what became of relevant documents, from good to bad."""
SMALL = 0.01
"""The share of the slowest technique's time below which a stage is not drawn by itself."""
PAIRS_DRAWN = 12
"""Pairs whose single queries are drawn; of more the first."""


def page(comparison: Comparison) -> str:
    """The report as HTML."""
    style = Path(__file__).with_name("report.css").read_text(encoding="utf-8")
    title = f"Retrieval on {comparison.name}"
    head = tag(
        "head",
        Html('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        tag("title", title),
        tag("style", Html(style)),
    )
    parts = [_opening(comparison, title)]
    if comparison.techniques:
        parts += [_quality(comparison), _differences(comparison), _cost(comparison), _fates(comparison)]
    parts += [diagnosis(comparison), origin(comparison)]
    return f"<!doctype html>\n{tag('html', head, tag('body', parts), lang='en')}\n"


def table(sheet: Sheet) -> Html:
    """A table of the report, with its note."""
    kinds = ["number" if is_number(sheet, column) else "name-cell" for column in range(len(sheet.headers))]
    head = tag("tr", [tag("th", header, class_=kind) for header, kind in zip(sheet.headers, kinds, strict=True)])
    body = [
        tag(
            "tr",
            [tag("td", cell, class_=kind) for cell, kind in zip(row, kinds, strict=True)],
            class_="strong" if number in sheet.strong else None,
        )
        for number, row in enumerate(sheet.rows)
    ]
    return joined(
        [
            tag("div", tag("table", tag("thead", head), tag("tbody", body)), class_="scroll"),
            tag("p", sheet.note, class_="note") if sheet.note else "",
        ]
    )


def _opening(comparison: Comparison, title: str) -> Html:
    dataset = comparison.provenance["dataset"]
    made = datetime.fromisoformat(comparison.provenance["made"])
    about = (
        f"{size(comparison)}, {numbered(dataset['relevant'], 'relevant [pair|pairs]')} · "
        f"made {made:%Y-%m-%d %H:%M} UTC by Ragistry {comparison.provenance['versions']['ragistry']}"
    )
    said = tag("ul", [tag("li", verdict) for verdict in verdicts(comparison)])
    failed = tag(
        "div",
        tag("strong", "Could not be compared"),
        tag("ul", [tag("li", line) for line in failures(comparison)]),
        class_="verdict failed",
    )
    synthetic = tag(
        "div",
        tag("strong", heading(comparison.provenance)),
        tag("ul", [tag("li", caution) for caution in cautions(comparison.provenance)]),
        class_="verdict caution",
    )
    return joined(
        [
            tag("h1", title),
            tag("p", about, class_="about"),
            synthetic if heading(comparison.provenance) else "",
            tag("div", tag("strong", conclusion(comparison)), said, class_="verdict"),
            failed if comparison.failures else "",
            tag("ul", [tag("li", note) for note in notes(comparison)], class_="note") if notes(comparison) else "",
        ]
    )


def _quality(comparison: Comparison) -> Html:
    colours = colour_of(comparison)
    rows = {
        measure: [
            Spread(name, one.mean, one.low, one.high, colours[name])
            for name in by_quality(comparison)
            for one in [comparison.techniques[name].measures[measure]]
        ]
        for measure in comparison.measures
    }
    return joined([tag("h2", "Quality"), _panels(rows), table(quality(comparison))])


def _differences(comparison: Comparison) -> Html:
    if not comparison.pairs:
        return Html()
    colours = colour_of(comparison)
    rows = {
        measure: [
            Spread(pair_name(comparison, pair), pair.difference, pair.low, pair.high, colours[pair.a], pair.significant)
            for pair in comparison.pairs
            if pair.measure == measure
        ]
        for measure in comparison.measures
    }
    caption = "Mean difference with its 95 % interval. Full: significant after Holm's correction; hollow: not shown."
    return joined(
        [
            tag("h2", f"Differences from {comparison.baseline}" if comparison.baseline else "Differences"),
            _panels(rows, zero=True),
            tag("p", caption, class_="note"),
            table(differences(comparison)),
            tag("h3", f"Query by query, {comparison.measure}"),
            _query_by_query(comparison),
        ]
    )


def _panels(rows: dict[str, list[Spread]], *, zero: bool = False) -> Html:
    """One plot for each measure."""
    labels = [row.label for found in rows.values() for row in found]
    title = "Difference in " if zero else ""
    return tag(
        "div",
        [
            tag("figure", tag("h3", measure), charts.spreads(found, title + measure, zero=zero))
            for measure, found in rows.items()
        ],
        class_="panels" if charts.panel_width(labels) == charts.NARROW else "panels broad",
    )


def _query_by_query(comparison: Comparison) -> Html:
    colours = colour_of(comparison)
    figures = []
    for pair in comparison.main_pairs[:PAIRS_DRAWN]:
        left, right = (comparison.techniques[name].per_query[comparison.measure] for name in (pair.a, pair.b))
        values = [(query, left[query] - right[query]) for query in left]
        chart = charts.query_differences(values, pair.a, pair.b, (colours[pair.a], colours[pair.b]))
        figures.append(tag("figure", chart, class_="wide"))
    return joined(figures)


def _cost(comparison: Comparison) -> Html:
    colours, names = colour_of(comparison), by_quality(comparison)
    points = []
    for name in names:
        result = comparison.techniques[name]
        estimate, latency = result.measures[comparison.measure], result.latency_ms
        points.append(Point(name, latency.p50, latency.p95, estimate.mean, estimate.low, estimate.high, colours[name]))
    stages, rows = _stages(comparison)
    return joined(
        [
            tag("h2", "Cost"),
            tag("figure", charts.quality_and_latency(points, comparison.measure), class_="wide"),
            table(cost(comparison)),
            tag("h3", "Where the time of a query goes (mean milliseconds)"),
            tag("figure", charts.bars(rows, stages, "Latency by stage", "ms"), class_="wide"),
            tag("h3", "Index"),
            table(indexes(comparison)),
        ]
    )


def _stages(comparison: Comparison) -> tuple[list[str], list[tuple[str, list[float]]]]:
    """The stages that take time somewhere, and each technique's milliseconds in each; the rest is summed.

    A stage of a technique that is part of another one bears one name in both, and so one colour: ``naive > embed``.
    """
    measured = {name: comparison.techniques[name].stages for name in by_quality(comparison)}
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
    return [*stages, "the rest"], rows


def _fates(comparison: Comparison) -> Html:
    sheet = fates(comparison)
    rows = []
    for name in by_quality(comparison):
        found = comparison.techniques[name].found
        rows.append((name, [float(n) for n in (found.shown, found.low, found.never, found.routed_away)]))
    return joined(
        [
            tag("h2", sheet.title),
            tag(
                "figure",
                charts.bars(rows, sheet.headers[1:5], sheet.title, "[document|documents]", colours=FATES),
                class_="wide",
            ),
            table(sheet),
        ]
    )


def colour_of(comparison: Comparison) -> dict[str, int]:
    """Each technique's colour, the same in every plot."""
    return {name: number for number, name in enumerate(comparison.techniques)}
