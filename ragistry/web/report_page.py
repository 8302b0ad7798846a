"""``/compare/NAME``: one report of ``ragistry compare``, to click into."""

from __future__ import annotations

from functools import partial

from nicegui import events, ui

from ragistry.errors import EvaluationError
from ragistry.utils.wording import local_time, numbered
from ragistry.web.charts import by_query, quality, quality_and_time
from ragistry.web.controls import button
from ragistry.web.dialogs import dialog
from ragistry.web.frame import empty, frame, heading
from ragistry.web.reports import Report, read_report
from ragistry.web.site import PATIENCE, Site, in_thread
from ragistry.web.tables import cell, row, table, text_cell

VERDICTS = 20
"""Pairs that get a sentence."""


def register(site: Site) -> None:
    """Serve the page."""

    @ui.page("/compare/{name}", response_timeout=PATIENCE)
    async def one(name: str) -> None:
        with frame(name, "Compare"):
            ui.link("← Compare", "/compare")
            try:
                report = await in_thread(read_report, site.reports, name)
            except EvaluationError as error:
                heading("No such report")
                empty("This report cannot be shown.", str(error))
                return
            _report(report)


def _report(report: Report) -> None:
    provenance = report["provenance"]
    heading(f"{report['dataset']}: {', '.join(report['techniques'])}")
    tested = provenance["dataset"]
    ui.label(
        f"{numbered(tested['documents'], '[document|documents]')}, "
        f"{numbered(tested['judged_queries'], 'judged [query|queries]')}, "
        f"made {local_time(provenance['made'])}"
    ).classes("rg-dim")
    ui.label(report["conclusion"]).classes("rg-verdict")
    if report["warnings"]:
        with ui.element("div").classes("rg-warning").props("role=note"):
            for warning in report["warnings"]:
                ui.label(warning)
    if report["notes"]:
        ui.label(" ".join(report["notes"])).classes("rg-dim")
    for verdict in report["verdicts"][:VERDICTS]:
        ui.label(verdict)
    for name, failure in report.get("failures", {}).items():
        ui.label(f"{name} failed: {failure.get('error', failure)}").classes("rg-failure")
    _figures(report)
    with ui.element("div").classes("rg-charts"):
        ui.echart(quality(report)).classes("rg-chart").props('role=img aria-label="Quality with intervals"')
        ui.echart(quality_and_time(report)).classes("rg-chart").props('role=img aria-label="Quality and CPU time"')
    if report["pairs"]:
        _by_query(report)


def _figures(report: Report) -> None:
    names = list(next(iter(report["techniques"].values()))["measures"]) if report["techniques"] else []
    figures = (*names, "CPU p50 ms", "p50 ms", "p95 ms", "Model calls", "Tokens in", "Tokens out")
    with table("Figures", ("Technique", *figures), right=figures).body:
        for name, result in report["techniques"].items():
            with row():
                text_cell(name, "rg-name")
                for measure in names:
                    figure = result["measures"][measure]
                    text_cell(f"{figure['mean']:.4f} ({figure['low']:.3f} to {figure['high']:.3f})", "rg-number")
                for kind, share in (("cpu_ms", "p50"), ("latency_ms", "p50"), ("latency_ms", "p95")):
                    text_cell(f"{result[kind][share]:.1f}", "rg-number")
                text_cell(f"{result['calls']:,}", "rg-number")
                text_cell(f"{result['tokens']:,}", "rg-number")
                text_cell(f"{result['returned_tokens']:,.0f}", "rg-number")
        for name, means in report.get("controls", {}).items():
            with row():
                text_cell(f"control: {name}", "rg-name")
                for measure in names:
                    text_cell(f"{means[measure]:.4f}" if measure in means else "", "rg-number")
                for _ in range(len(figures) - len(names)):
                    text_cell("", "rg-number")


def _by_query(report: Report) -> None:
    pairs = [pair for pair in report["pairs"] if pair["measure"] == report["measure"]]
    chosen = {index: f"{pair['a']} minus {pair['b']}" for index, pair in enumerate(pairs)}
    ui.label("Query by query").props("role=heading aria-level=2").classes("rg-technique")

    def draw(index: int) -> None:
        drawn.clear()
        with drawn:
            _pair(report, pairs[index])

    if len(chosen) > 1:
        ui.select(chosen, value=0, label="Pair", on_change=lambda event: draw(event.value)).props("outlined dense")
    drawn = ui.element("div").classes("rg-part")
    draw(0)


def _pair(report: Report, pair: Report) -> None:
    options, queries = by_query(report, pair)

    def clicked(event: events.EChartPointClickEventArguments) -> None:
        _query(report, pair, queries[event.data_index])

    ui.echart(options, on_point_click=clicked).classes("rg-chart").props('role=img aria-label="Differences by query"')
    with table("Queries that differ most", ("Query", "Difference", "Why"), right=("Difference",)).body:
        for difference in _differences(report, pair)[:10]:
            with row():
                with cell("rg-wide"):
                    show = partial(_query, report, pair, difference["query"])
                    button(difference["text"], show).props("align=left").classes("rg-place")
                text_cell(f"{difference['difference']:+.3f}", "rg-number")
                text_cell(difference["why"], "rg-wide")


def _differences(report: Report, pair: Report) -> list[Report]:
    for diagnosis in report.get("diagnosis", []):
        if (diagnosis["a"], diagnosis["b"]) == (pair["a"], pair["b"]):
            return list(diagnosis["queries"])
    return []


def _query(report: Report, pair: Report, query: str) -> None:
    """Both rankings of a query where the report has them, else both values."""
    known = next((item for item in _differences(report, pair) if item["query"] == query), None)
    with dialog(known["text"] if known else f"Query {query}", classes="rg-source") as opened:
        for side in ("a", "b"):
            value = report["techniques"][pair[side]]["per_query"][report["measure"]][query]
            ui.label(f"{pair[side]}: {report['measure']} {value:.3f}").classes("rg-technique")
            for place in known[side]["best"] if known else ():
                judged = "not judged" if place["grade"] is None else f"grade {place['grade']}"
                ui.label(f"{place['rank']}. {place['title'] or place['document']} ({judged})")
        if known is None:
            ui.label("The report keeps the rankings of the queries that differ most; this is none of them.")
        button("Close", opened.close)
    opened.open()
