"""What is on its way into a collection, and how far each file is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from nicegui import ui

from ragistry.web.controls import icon_button
from ragistry.web.jobs import Job
from ragistry.web.keyed import Built, Keyed
from ragistry.web.site import Site

EVERY = 0.5
"""Seconds after which a window looks again; nothing is read for it."""
LINES = 100
"""Failures that are shown of one job."""


class _Shown(NamedTuple):
    """A job as it stood at one moment."""

    number: int
    label: str
    state: str
    said: str
    share: float
    files: tuple[tuple[str, str], ...]
    failures: tuple[str, ...]


def job_list(site: Site, wanted: Callable[[], Iterable[Job]]) -> None:
    """The ``wanted`` jobs, kept current."""
    listed = ui.element("div").classes("rg-jobs").props('role=status aria-live=polite aria-label="Taking in"')
    jobs = Keyed[_Shown](listed, lambda job: (job.number, job.state), lambda job: _card(job, forget))

    def look() -> None:
        jobs.show(_shown(job) for job in wanted())

    def forget(number: int) -> None:
        site.jobs.forget(number)
        look()

    look()
    ui.timer(EVERY, look)


def _shown(job: Job) -> _Shown:
    failures = (job.error,) if job.error else tuple(job.failures[:LINES])
    return _Shown(job.number, job.label, job.state, _said(job), job.share, tuple(job.files()), failures)


def _said(job: Job) -> str:
    if job.state == "running":
        return f"{job.done} of {len(job.paths)} files" if len(job.paths) > 1 else job.stage
    return {"waiting": "waiting", "failed": "failed", "done": job.summary}[job.state]


def _card(job: _Shown, forget: Callable[[int], None]) -> Built[_Shown]:
    bar = None
    with ui.element("div").classes("rg-job") as card:
        with ui.element("div").classes("rg-bar"):
            ui.label(job.label).classes("rg-job-label")
            said = ui.label().classes("rg-dim")
            if job.state in ("done", "failed"):
                icon_button("close", f"Dismiss {job.label}", lambda: forget(job.number))
        if job.state == "running":
            card.props("aria-busy=true")  # each step need not be read out
            bar = ui.linear_progress(show_value=False)
            bar.props["aria-label"] = f"Progress of {job.label}"
        files = Keyed[tuple[str, str]](ui.element("div").classes("rg-job-files"), lambda file: file[0], _file)
        failures = Keyed[str](ui.element("div"), lambda line: line, _failure)

    def fill(job: _Shown) -> None:
        said.set_text(job.said)
        files.show(job.files)
        failures.show(job.failures)
        if bar is not None:
            bar.set_value(job.share)

    return card, fill


def _file(file: tuple[str, str]) -> Built[tuple[str, str]]:
    with ui.element("div").classes("rg-file") as line:
        ui.label(file[0]).classes("rg-file-name")
        stage = ui.label()

    def fill(file: tuple[str, str]) -> None:
        stage.set_text(file[1])
        stage.classes(replace=f"rg-stage-{file[1].split()[0].strip(':,')}")

    return line, fill


def _failure(text: str) -> Built[str]:
    return ui.label(text).classes("rg-failure"), None
