"""``/compare``: the reports of ``ragistry compare``, newest first; ``/compare/NAME``: one of them, to click into."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from urllib.parse import quote

from nicegui import events, ui

from ragistry.errors import EvaluationError
from ragistry.web.charts import by_query, quality, quality_and_latency
from ragistry.web.controls import button
from ragistry.web.frame import empty, frame, heading
from ragistry.web.reports import Report, read_report, reports
from ragistry.web.site import Site, attempt, on_change
from ragistry.web.tables import cell, row, table, text_cell


def register(site: Site) -> None:
    """Serve the pages."""

    @ui.page("/compare")
    async def compare() -> None:
        with frame("Compare", "Compare"):
            heading("Compare")
            await _list(site)
        on_change(lambda: tuple(_names(site.reports)), _list.refresh)

    @ui.page("/compare/{name}")
    async def one(name: str) -> None:
        with frame(name, "Compare"):
            ui.link("← Compare", "/compare")
            try:
                report = read_report(site.reports, name)
            except EvaluationError as error:
                heading("No such report")
                empty("This report cannot be shown.", str(error))
                return
            _report(report)


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.json")) if folder.is_dir() else []


@ui.refreshable
async def _list(site: Site) -> None:
    found = await attempt(reports, site.reports)
    if not found:
        empty(
            "No comparison yet.",
            "Make one in a shell: ragistry compare --dataset FOLDER --technique naive --technique hybrid",
        )
        return
    with table("Comparisons", ("Made", "Test set", "Techniques", "Verdict")):
        for listed in found:
            with row():
                with cell("rg-name"):
                    when = f"{datetime.fromisoformat(listed.made).astimezone():%Y-%m-%d %H:%M}"
                    ui.link(when, f"/compare/{quote(listed.name, safe='')}")
                text_cell(listed.dataset)
                text_cell(", ".join(listed.techniques))
                text_cell(listed.verdict, "rg-wide")


def _report(report: Report) -> None:
    provenance = report["provenance"]
    heading(f"{report['dataset']}: {', '.join(report['techniques'])}")
    tested = provenance["dataset"]
    ui.label(
        f"{tested['documents']:,} documents, {tested['judged_queries']:,} judged queries, made {provenance['made']}"
    ).classes("rg-dim")
    for verdict in report["verdicts"]:
        ui.label(verdict).classes("rg-verdict")
    for name, failure in report.get("failures", {}).items():
        ui.label(f"{name} failed: {failure.get('error', failure)}").classes("rg-failure")
    _figures(report)
    with ui.element("div").classes("rg-charts"):
        ui.echart(quality(report)).classes("rg-chart").props('role=img aria-label="Quality with intervals"')
        ui.echart(quality_and_latency(report)).classes("rg-chart").props('role=img aria-label="Quality and latency"')
    if report["pairs"]:
        _by_query(report)


def _figures(report: Report) -> None:
    names = list(next(iter(report["techniques"].values()))["measures"]) if report["techniques"] else []
    with table("Figures", ("Technique", *names, "p50 ms", "p95 ms", "Model calls", "Tokens")):
        for name, result in report["techniques"].items():
            with row():
                text_cell(name, "rg-name")
                for measure in names:
                    figure = result["measures"][measure]
                    text_cell(f"{figure['mean']:.4f} ({figure['low']:.3f} to {figure['high']:.3f})", "rg-number")
                for latency in ("p50", "p95"):
                    text_cell(f"{result['latency_ms'][latency]:.1f}", "rg-number")
                text_cell(f"{result['calls']:,}", "rg-number")
                text_cell(f"{result['tokens']:,}", "rg-number")


def _by_query(report: Report) -> None:
    pairs = [pair for pair in report["pairs"] if pair["measure"] == report["measure"]]
    chosen = {index: f"{pair['a']} minus {pair['b']}" for index, pair in enumerate(pairs)}
    ui.label("Query by query").props("role=heading aria-level=2").classes("rg-technique")

    @ui.refreshable
    def chart(index: int) -> None:
        pair = pairs[index]
        options, queries = by_query(report, pair)

        def clicked(event: events.EChartPointClickEventArguments) -> None:
            _query(report, pair, queries[event.data_index])

        ui.echart(options, on_point_click=clicked).classes("rg-chart").props(
            'role=img aria-label="Differences by query"'
        )
        with table("Queries that differ most", ("Query", "Difference", "Why")):
            for difference in _differences(report, pair)[:10]:
                with row():
                    with cell("rg-wide"):
                        label = difference["text"]
                        button(label, lambda query=difference["query"]: _query(report, pair, query)).props(
                            "align=left"
                        ).classes("rg-place")
                    text_cell(f"{difference['difference']:+.3f}", "rg-number")
                    text_cell(difference["why"], "rg-wide")

    if len(chosen) > 1:
        ui.select(chosen, value=0, label="Pair", on_change=lambda event: chart.refresh(event.value)).props(
            "outlined dense"
        )
    chart(0)


def _differences(report: Report, pair: Report) -> list[Report]:
    for diagnosis in report.get("diagnosis", []):
        if (diagnosis["a"], diagnosis["b"]) == (pair["a"], pair["b"]):
            return list(diagnosis["queries"])
    return []


def _query(report: Report, pair: Report, query: str) -> None:
    """Both rankings of a query where the report has them, else both values."""
    known = next((item for item in _differences(report, pair) if item["query"] == query), None)
    with ui.dialog() as dialog, ui.card().classes("rg-dialog rg-source"):
        dialog.props["aria-label"] = f"Query {query}"
        ui.label(known["text"] if known else f"Query {query}").classes("rg-dialog-title")
        for side in ("a", "b"):
            value = report["techniques"][pair[side]]["per_query"][report["measure"]][query]
            ui.label(f"{pair[side]}: {report['measure']} {value:.3f}").classes("rg-technique")
            for place in known[side]["best"] if known else ():
                judged = "not judged" if place["grade"] is None else f"grade {place['grade']}"
                ui.label(f"{place['rank']}. {place['title'] or place['document']} ({judged})")
        if known is None:
            ui.label("The report keeps the rankings of the queries that differ most; this is none of them.")
        button("Close", dialog.close)
    dialog.on_value_change(lambda event: None if event.value else dialog.delete())
    dialog.open()
