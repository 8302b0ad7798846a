"""The jobs of the page as cards: progress, files, failures, and buttons to stop and dismiss them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple
from urllib.parse import quote

from nicegui import ui

from ragistry.server.jobs import ENDED, SavedJob
from ragistry.web import jobs
from ragistry.web.app_state import AppState
from ragistry.web.widgets import Built, KeyedList, button, icon_button

EVERY = 0.5
"""Seconds between two updates of a window."""
LINES = 100
"""Maximum number of failures that are shown for a job."""


class _VisibleFile(NamedTuple):
    """A line of a job. Two files may have the same name."""

    place: int
    name: str
    stage: str


class _VisibleJob(NamedTuple):
    """The visible state of a job."""

    job: SavedJob
    label: str
    state: str
    status: str
    share: float
    files: tuple[_VisibleFile, ...]
    failures: tuple[str, ...]


def job_list(state: AppState, name: str, jobs_to_show: Callable[[], Iterable[SavedJob]]) -> None:
    """Show the jobs that ``jobs_to_show`` returns, and update them. ``name`` is for screen readers."""
    area = ui.element("div").classes("rg-jobs").props(f'role=status aria-live=polite aria-label="{name}"')
    cards = KeyedList[_VisibleJob](
        area, lambda job: (job.job.id, job.state), lambda job: _card(job, state.saved.cancel, dismiss)
    )

    def update() -> None:
        cards.show(
            _VisibleJob(
                job,
                jobs.label(job),
                job.state,
                jobs.status(job),
                jobs.share(job),
                tuple(_VisibleFile(place, *line) for place, line in enumerate(jobs.files(job))),
                tuple(jobs.failures(job)[:LINES]),
            )
            for job in jobs_to_show()
        )

    def dismiss(job: SavedJob) -> None:
        state.saved.remove(job)
        update()

    update()
    ui.timer(EVERY, update)


def _card(
    job: _VisibleJob, cancel: Callable[[SavedJob], None], dismiss: Callable[[SavedJob], None]
) -> Built[_VisibleJob]:
    bar, report = None, (job.job.report or {}).get("name")
    with ui.element("div").classes("rg-job") as card:
        with ui.element("div").classes("rg-bar"):
            ui.label(job.label).classes("rg-job-label")
            status = ui.label().classes("rg-dim")
            if report and job.state == "done":
                ui.link("Show the report", f"/compare/{quote(report, safe='')}")
            if job.state not in ENDED:
                button("Stop", lambda: cancel(job.job)).props["aria-label"] = f"Stop {job.label}"
            elif job.job.kind == "ingest":  # the report of a comparison may be in its job alone
                icon_button("close", f"Dismiss {job.label}", lambda: dismiss(job.job))
        if job.state == "running":
            card.props("aria-busy=true")  # the steps are not read out
            bar = ui.linear_progress(show_value=False)
            bar.props["aria-label"] = f"Progress of {job.label}"
        lines = ui.element("div").classes("rg-job-files").props("tabindex=0 role=region")
        lines.props["aria-label"] = f"Files of {job.label}"
        files = KeyedList[_VisibleFile](lines, lambda file: file.place, _file)
        failures = KeyedList[str](
            ui.element("div"), lambda line: line, lambda line: (ui.label(line).classes("rg-failure"), None)
        )

    def fill(job: _VisibleJob) -> None:
        status.set_text(job.status)
        files.show(job.files)
        failures.show(job.failures)
        if bar is not None:
            bar.set_value(job.share)

    return card, fill


def _file(file: _VisibleFile) -> Built[_VisibleFile]:
    with ui.element("div").classes("rg-file") as line:
        ui.label(file.name).classes("rg-file-name")
        stage = ui.label()

    def fill(file: _VisibleFile) -> None:
        stage.set_text(file.stage)
        stage.classes(replace=f"rg-stage-{file.stage.split()[0].strip(':,')}")

    return line, fill
