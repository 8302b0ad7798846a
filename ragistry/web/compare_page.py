"""``/compare``: comparisons, newest first; start one."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

from nicegui import ui

from ragistry.utils.wording import local_time
from ragistry.web.compare_form import running_comparison, start_comparison
from ragistry.web.controls import button
from ragistry.web.frame import empty, frame, heading
from ragistry.web.keyed import Built, Keyed
from ragistry.web.reports import Listed
from ragistry.web.shared import Following
from ragistry.web.site import PATIENCE, Site
from ragistry.web.tables import cell, row, table, text_cell


def register(site: Site) -> None:
    """Serve the page."""

    @ui.page("/compare", response_timeout=PATIENCE)
    async def compare() -> None:
        with frame("Compare", "Compare"):
            with ui.element("div").classes("rg-bar"):
                heading("Compare")
                button("New comparison", lambda: start_comparison(site), icon="add", kind="main")
            running_comparison(site)
            following = Following(site.listed)
            await following.begin(_list())


def _list() -> Callable[[list[Listed]], None]:
    nothing = empty()
    made = table("Comparisons", ("Made", "Test set", "Techniques", "Verdict"), stacked=True)
    rows = Keyed[Listed](made.body, lambda listed: listed, _row)

    def show(found: list[Listed]) -> None:
        rows.show(found)
        made.whole.set_visibility(bool(found))
        if found:
            nothing("", "")
        else:
            nothing("No comparison yet.", "Start one here, or with ragistry compare in a shell.")

    return show


def _row(listed: Listed) -> Built[Listed]:
    with row() as made:
        with cell("rg-name"):
            ui.link(local_time(listed.made), f"/compare/{quote(listed.name, safe='')}").classes("rg-whole-row")
        text_cell(listed.dataset)
        text_cell(", ".join(listed.techniques))
        with cell("rg-wide"):
            ui.label(listed.verdict)
            for warning in listed.warnings:
                ui.label(warning).classes("rg-note")
    return made, None
