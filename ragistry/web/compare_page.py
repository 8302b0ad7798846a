"""The pages ``/compare`` and ``/compare/NAME``: list the reports of comparisons, and show one."""

from __future__ import annotations

from urllib.parse import quote

from nicegui import ui

from ragistry.errors import EvaluationError
from ragistry.evaluation import page as report_html
from ragistry.utils.wording import local_time
from ragistry.web.app_state import PAGE_TIMEOUT, AppState, in_thread
from ragistry.web.layout import empty_notice, heading, page_layout
from ragistry.web.polling import Follower
from ragistry.web.reports import ReportRow, read_report
from ragistry.web.widgets import Built, cell, row, table_of, text_cell


def register(state: AppState) -> None:
    """Register the pages."""

    @ui.page("/compare", response_timeout=PAGE_TIMEOUT)
    async def compare() -> None:
        with page_layout("Compare", "Compare"):
            heading("Compare")
            follower = Follower(state.reports)
            show = table_of(
                "Comparisons",
                ("Date", "Test set", "Techniques", "Result"),
                lambda report: report,
                _row,
                lambda: ("No comparisons yet.", "Run `ragistry compare` in a shell."),
            )
            await follower.begin(show)

    @ui.page("/compare/{name}", response_timeout=PAGE_TIMEOUT)
    async def report(name: str) -> None:
        with page_layout(name, "Compare"):
            ui.link("← Compare", "/compare")
            try:
                html = await in_thread(lambda: report_html(read_report(state.reports_folder, name)))
            except EvaluationError as error:
                heading("Report not found")
                empty_notice("This report cannot be shown.", str(error))
                return
            frame = ui.element("iframe").classes("rg-report").props('sandbox="" title=Report')
            frame.props["srcdoc"] = html


def _row(report: ReportRow) -> Built[ReportRow]:
    with row() as made:
        with cell("rg-name"):
            ui.link(local_time(report.made), f"/compare/{quote(report.name, safe='')}").classes("rg-whole-row")
        text_cell(report.dataset)
        text_cell(", ".join(report.techniques))
        with cell("rg-wide"):
            ui.label(report.verdict)
            for warning in report.warnings:
                ui.label(warning).classes("rg-note")
    return made, None
