"""The pages ``/compare`` and ``/compare/NAME``: start comparisons, list them, show a report."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from nicegui import events, ui

from ragistry.errors import EvaluationError
from ragistry.evaluation import page as report_html
from ragistry.evaluation.systems.systems import comparable
from ragistry.server.uploads import source_name
from ragistry.utils.wording import local_time
from ragistry.web.app_state import PAGE_TIMEOUT, AppState, in_thread
from ragistry.web.error_list import attempt, clear_errors, show_error
from ragistry.web.job_list import job_list
from ragistry.web.jobs import QUESTIONS
from ragistry.web.layout import empty_notice, heading, page_layout
from ragistry.web.polling import Follower
from ragistry.web.reports import ReportRow, read_report
from ragistry.web.search_form import CANNOT_RUN
from ragistry.web.widgets import Built, button, cell, dialog, row, table_of, text_cell

GENERATED, FROM_FILE = "Generated from your documents", "From a file"
PROPOSED = ("naive", "bm25", "hybrid")
"""Techniques that are selected at first."""
MEGABYTES = 20
"""Maximum size of a file of queries."""


def register(state: AppState) -> None:
    """Register the pages."""

    @ui.page("/compare", response_timeout=PAGE_TIMEOUT)
    async def compare() -> None:
        with page_layout("Compare", "Compare"):
            with ui.element("div").classes("rg-bar"):
                heading("Compare")
                button("New comparison", lambda: start_comparison(state), icon="add", kind="main")
            job_list(state, "Comparison", state.jobs.comparisons)
            follower = Follower(state.reports)
            show = table_of(
                "Comparisons",
                ("Date", "Test set", "Techniques", "Result"),
                lambda report: report,
                _row,
                lambda: ("No comparisons yet.", "Start one here, or run ragistry compare in a shell."),
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


async def start_comparison(state: AppState) -> None:
    """Open the dialog for a new comparison. It stays open until the comparison has started."""
    uploaded: dict[str, bytes] = {}
    registry = state.workspace.registry

    async def receive(event: events.UploadEventArguments) -> None:
        uploaded.clear()
        uploaded[source_name(event.file.name)] = await event.file.read()
        file_name.set_text(event.file.name)

    def choices(*, is_generated: bool) -> list[str]:
        """Return the techniques that can run; with generated questions, none that chooses between collections."""
        return comparable(registry, on_library=not is_generated)[0]

    def update() -> None:
        is_generated = source.value == GENERATED
        names = choices(is_generated=is_generated)
        techniques.set_options(names, value=[name for name in techniques.value if name in names])
        number.set_visibility(is_generated)
        file_bar.set_visibility(not is_generated)

    async def begin() -> None:
        clear_errors()
        queries: dict[str, Any] = {"questions": int(number.value or QUESTIONS)}
        if source.value == FROM_FILE:
            if not uploaded:
                show_error("no file of queries is chosen; choose one, or use generated questions")
                return
            [(name, content)] = uploaded.items()
            queries = {"name": name, "queries": content}
        if await attempt(state.jobs.compare, list(techniques.value), **queries) is not None:
            opened.close()

    names = choices(is_generated=True)
    with dialog("New comparison") as opened:
        ui.label("Which technique finds more in your documents, and how certain is that?").classes("rg-dim")
        proposed = [name for name in PROPOSED if name in names]
        techniques = ui.select(names, value=proposed, label="Techniques", multiple=True)
        techniques.props("outlined dense use-chips").classes("w-full")
        without = [name for name in registry.names() if registry.unusable(name)]
        if without:
            ui.label(f"{CANNOT_RUN}, because a model is missing: {', '.join(without)}.").classes("rg-dim")
        source = ui.radio([GENERATED, FROM_FILE], value=GENERATED, on_change=update).props("dense").classes("rg-kinds")
        source.props["aria-label"] = "Questions"
        number = ui.number("Maximum number of questions", value=QUESTIONS, min=5, max=1_000, precision=0)
        number.props("outlined dense").classes("w-full")
        with ui.element("div").classes("rg-bar") as file_bar:
            uploader = ui.upload(auto_upload=True, max_files=1, max_file_size=MEGABYTES * 1_000_000, on_upload=receive)
            uploader.classes("rg-hidden").props["accept"] = ".jsonl,.json"
            sender = f"getElement({uploader.id}).$refs.qRef"
            pick = button("Choose queries", icon="upload_file")
            pick.on("click", js_handler=f"() => {{ {sender}.reset(); {sender}.pickFiles(); }}")
            uploader.on(
                "rejected", lambda: show_error(f"queries must be a .jsonl file of at most {MEGABYTES} MB; choose one")
            )
            file_name = ui.label('JSON lines such as {"text": "…", "sources": ["…"]}').classes("rg-dim")
        file_bar.set_visibility(False)
        with ui.row().classes("rg-dialog-actions"):
            button("Cancel", opened.close)
            button("Start", begin, kind="main")
    await opened
