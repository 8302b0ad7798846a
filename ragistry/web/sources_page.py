"""``/collection/NAME``: the sources of a collection; take in, move, delete, and edit its description in place."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from nicegui import ui

from ragistry.errors import CollectionNotFoundError
from ragistry.types import SourceInfo
from ragistry.web.controls import button, icon_button
from ragistry.web.dialogs import choose, confirm
from ragistry.web.frame import empty, frame, heading
from ragistry.web.intake import intake, job_list
from ragistry.web.site import Site, attempt, in_thread, on_change
from ragistry.web.tables import PAGE, cell, pager, row, table, text_cell

COLUMNS = ("Source", "Chunks", "Ingested", "Move to…", "Actions")


@dataclass(slots=True)
class View:
    """What one window looks at."""

    collection: str
    page: int = 0
    filter: str = ""
    sources: list[SourceInfo] = field(default_factory=list)
    others: dict[str, str] = field(default_factory=dict)


def register(site: Site) -> None:
    """Serve the page."""

    @ui.page("/collection/{name}")
    async def sources(name: str) -> None:
        library = site.workspace.library
        entry = next((item for item in await in_thread(library.list_collections) if item["name"] == name), None)
        with frame(name if entry is None else entry["display_name"], "Collections"):
            if entry is None:
                empty(
                    f"There is no collection {name!r} any more.", "It was renamed or deleted; go back to Collections."
                )
                ui.link("← Collections", "/")
                return
            view = View(name)
            _top(site, view, entry)
            intake(site, name)
            job_list(site, name)
            ui.input("Filter by name", on_change=lambda event: _filter(view, event.value)).classes("rg-filter").props(
                "dense clearable debounce=200"
            )
            await _table(site, view)
        on_change(lambda: _look(site, name), _table.refresh)


def _look(site: Site, name: str) -> str:
    library = site.workspace.library
    try:
        return repr([library.list_collections(), library.list_sources_detail(name)])
    except CollectionNotFoundError:
        return "gone"


def _filter(view: View, text: str | None) -> None:
    view.filter, view.page = (text or "").strip().lower(), 0
    _table.refresh()


def _top(site: Site, view: View, entry: dict[str, Any]) -> None:
    with ui.element("div").classes("rg-bar"):
        ui.link("← Collections", "/").classes("rg-back")
        heading(entry["display_name"])
        button("Refresh", _table.refresh, icon="refresh")
    with ui.element("div").classes("rg-bar"):
        description = ui.textarea("Description", value=entry["description"]).props("autogrow dense outlined")
        description.classes("rg-describe")
        button("Save description", lambda: save())

    async def save() -> None:
        def write() -> bool:
            site.workspace.library.update_description(view.collection, (description.value or "").strip())
            return True

        if await attempt(write):
            ui.notify("Description saved", type="positive")


@ui.refreshable
async def _table(site: Site, view: View) -> None:
    library = site.workspace.library

    def read() -> tuple[list[SourceInfo], dict[str, str]]:
        others = {item["name"]: item["display_name"] for item in library.list_collections()}
        others.pop(view.collection, None)
        return library.list_sources_detail(view.collection), others

    found = await attempt(read)
    if found is None:
        return
    sources, view.others = found
    view.sources = [info for info in sources if view.filter in info.source_file.lower()]
    if not sources:
        empty("Nothing in this collection yet.", "Drop files above, or add a folder by its path.")
        return
    if not view.sources:
        empty(f"No source has {view.filter!r} in its name.", "Clear the filter to see all.")
        return
    view.page = min(view.page, (len(view.sources) - 1) // PAGE)
    with table("Sources", COLUMNS):
        for info in view.sources[view.page * PAGE : (view.page + 1) * PAGE]:
            _row(site, view, info)

    def go(page: int) -> None:
        view.page = page
        _table.refresh()

    pager(view.page, len(view.sources), go)


def _row(site: Site, view: View, info: SourceInfo) -> None:
    with row():
        text_cell(info.source_file, "rg-name")
        text_cell(f"{info.chunks:,}", "rg-number")
        text_cell(f"{datetime.fromtimestamp(info.ingested_at):%Y-%m-%d %H:%M}" if info.ingested_at else "", "rg-when")
        with cell():
            if view.others:
                move = button("Move to…", lambda: _move(site, view, info)).props("dense")
                move.props["aria-label"] = f"Move {info.source_file} to another collection"
        with cell("rg-actions"):
            icon_button("delete", f"Delete {info.source_file}", lambda: _delete(site, view, info))


async def _move(site: Site, view: View, info: SourceInfo) -> None:
    target = await choose(f"Move {info.source_file} to…", view.others)
    if target is not None:
        moved = await attempt(site.workspace.library.move_source, info.source_file, view.collection, target)
        if moved is not None:
            ui.notify(f"{info.source_file}: {moved:,} chunks moved to {view.others[target]}", type="positive")
        _table.refresh()


async def _delete(site: Site, view: View, info: SourceInfo) -> None:
    file = "So does the file that was dropped here." if site.is_upload(info.source_path) else "The file stays."
    if await confirm(f"Delete {info.source_file}?", f"Its {info.chunks:,} chunks go. {file}", "Delete"):
        if await attempt(site.workspace.library.delete_source, info.source_file, view.collection) is not None:
            site.forget_uploads([info])
        _table.refresh()
