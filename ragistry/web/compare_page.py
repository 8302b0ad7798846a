"""``/compare``: the reports of ``ragistry compare``, newest first."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from urllib.parse import quote

from nicegui import ui

from ragistry.web.frame import empty, frame, heading
from ragistry.web.keyed import Built, Keyed
from ragistry.web.reports import Listed
from ragistry.web.shared import Following
from ragistry.web.site import Site
from ragistry.web.tables import cell, row, table, text_cell


def register(site: Site) -> None:
    """Serve the page."""

    @ui.page("/compare")
    async def compare() -> None:
        with frame("Compare", "Compare"):
            heading("Compare")
            following = Following(site.listed)
            await following.begin(_list())


def _list() -> Callable[[list[Listed]], None]:
    nothing = empty()
    made = table("Comparisons", ("Made", "Test set", "Techniques", "Verdict"))
    rows = Keyed[Listed](made.body, lambda listed: listed, _row)

    def show(found: list[Listed]) -> None:
        rows.show(found)
        made.whole.set_visibility(bool(found))
        if found:
            nothing("", "")
        else:
            command = "ragistry compare --dataset FOLDER --technique naive --technique hybrid"
            nothing("No comparison yet.", f"Make one in a shell: {command}")

    return show


def _row(listed: Listed) -> Built[Listed]:
    with row() as made:
        with cell("rg-name"):
            when = f"{datetime.fromisoformat(listed.made).astimezone():%Y-%m-%d %H:%M}"
            ui.link(when, f"/compare/{quote(listed.name, safe='')}").classes("rg-whole-row")
        text_cell(listed.dataset)
        text_cell(", ".join(listed.techniques))
        text_cell(listed.verdict, "rg-wide")
    return made, None
