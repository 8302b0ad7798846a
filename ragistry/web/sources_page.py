"""``/collection/NAME``: the sources of a collection; take in, move, delete, and edit its description in place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from nicegui import ui

from ragistry.types import SourceInfo
from ragistry.utils.wording import local_time, numbered
from ragistry.web.controls import button, icon_button
from ragistry.web.description import description_field
from ragistry.web.dialogs import choose, confirm
from ragistry.web.frame import empty, frame, heading
from ragistry.web.holdings import Holdings
from ragistry.web.intake import intake
from ragistry.web.job_list import job_list
from ragistry.web.keyed import Built, Keyed
from ragistry.web.shared import Following
from ragistry.web.site import PATIENCE, Site, attempt, in_thread
from ragistry.web.tables import PAGE, cell, last_page, pager, row, table, text_cell

COLUMNS = ("Source", "Chunks", "Ingested", "Move to…", "Actions")


@dataclass(slots=True)
class View:
    """What one window looks at; ``others``: the other collections by name, as they are shown."""

    site: Site
    following: Following[Holdings]
    collection: str
    page: int = 0
    filter: str = ""
    sources: dict[str, SourceInfo] = field(default_factory=dict)
    others: dict[str, str] = field(default_factory=dict)


def register(site: Site) -> None:
    """Serve the page."""

    @ui.page("/collection/{name}", response_timeout=PATIENCE)
    async def sources(name: str) -> None:
        with frame(name, "Collections"):
            with ui.element("div").classes("rg-bar"):
                ui.link("← Collections", "/collections").classes("rg-back")
                title = heading(name)
                button("Refresh", lambda: view.following.refresh(), icon="refresh")
            view = View(site, Following(site.holdings), name)
            gone = empty()
            with ui.element("div").classes("rg-part") as upper:
                describe = description_field(site, name)
                intake(site, name)
            job_list(site, lambda: site.jobs.of(name))
            with ui.element("div").classes("rg-part") as lower:
                show_sources = _table(view)

            def show(found: Holdings) -> None:
                here = next((entry for entry in found if entry.name == name), None)
                upper.set_visibility(here is not None)
                lower.set_visibility(here is not None)
                if here is None:
                    gone(f"There is no collection {name!r} any more.", "It was renamed or deleted; see Collections.")
                    return
                gone("", "")
                title.set_text(here.display_name)
                describe(here.description)
                view.others = {entry.name: entry.display_name for entry in found if entry.name != name}
                view.sources = {info.source_file: info for info in here.sources}
                show_sources()

            await view.following.begin(show)


def _table(view: View) -> Callable[[], None]:
    def find(text: str | None) -> None:
        view.filter, view.page = (text or "").strip().lower(), 0
        show()

    def go(page: int) -> None:
        view.page = page
        show()

    ui.input("Filter by name", on_change=lambda event: find(event.value)).classes("rg-filter").props(
        "dense clearable debounce=200"
    )
    nothing = empty()
    made = table("Sources", COLUMNS, right=("Chunks", "Actions"), stacked=True)
    rows = Keyed[tuple[SourceInfo, bool]](
        made.body, lambda item: item[0].source_file, lambda item: _row(view, item[0].source_file)
    )
    turn = pager(go)

    def show() -> None:
        found = [info for name, info in view.sources.items() if view.filter in name.lower()]
        view.page = min(view.page, last_page(len(found)))
        rows.show((info, bool(view.others)) for info in found[view.page * PAGE : (view.page + 1) * PAGE])
        turn(view.page, len(found))
        made.whole.set_visibility(bool(found))
        if not view.sources:
            nothing("Nothing in this collection yet.", "Drop files above, or add a folder by its path.")
        elif not found:
            nothing(f"No source has {view.filter!r} in its name.", "Clear the filter to see all.")
        else:
            nothing("", "")

    return show


def _row(view: View, name: str) -> Built[tuple[SourceInfo, bool]]:
    with row() as made:
        text_cell(name, "rg-name")
        chunks, when = text_cell("", "rg-number", unit="chunks"), text_cell("", "rg-when")
        with cell():
            move = button("Move to…", lambda: _move(view, name)).props("dense")
            move.props["aria-label"] = f"Move {name} to another collection"
        with cell("rg-actions"):
            icon_button("delete", f"Delete {name}", lambda: _delete(view, view.sources[name]))

    def fill(item: tuple[SourceInfo, bool]) -> None:
        info, movable = item
        chunks.set_text(f"{info.chunks:,}")
        when.set_text(local_time(info.ingested_at))
        move.set_visibility(movable)

    return made, fill


async def _move(view: View, name: str) -> None:
    library, others, info = view.site.workspace.library, view.others, view.sources[name]
    target = await choose(f"Move {name} to…", others)
    there = None if target is None else await attempt(library.sources, target)
    if target is None or there is None:
        return
    replaced = [twin for twin in there if twin.source_file == name]
    # The file of one that is moved onto itself, as after a move that was interrupted, is still needed.
    goes = [twin for twin in replaced if twin.source_path != info.source_path]
    if replaced and not await confirm(
        f"Replace {name} in {others[target]}?", _consequence(view, replaced[0], is_needed=not goes), "Replace"
    ):
        return
    moved = await attempt(library.move_source, name, view.collection, target, overwrite=bool(replaced))
    if moved is not None:
        await in_thread(view.site.forget_uploads, goes)
        ui.notify(f"{name}: {numbered(moved, '[chunk|chunks]')} moved to {others[target]}", type="positive")
    await view.following.refresh()


async def _delete(view: View, info: SourceInfo) -> None:
    if await confirm(f"Delete {info.source_file}?", _consequence(view, info), "Delete"):
        delete = view.site.workspace.library.delete_source
        if await attempt(delete, info.source_file, view.collection) is not None:
            await in_thread(view.site.forget_uploads, [info])
        await view.following.refresh()


def _consequence(view: View, info: SourceInfo, *, is_needed: bool = False) -> str:
    """What goes with a source; ``is_needed``: its file is that of another source, too."""
    file_goes = view.site.is_upload(info.source_path) and not is_needed
    file = "So does the file that was dropped here." if file_goes else "The file stays."
    return f"{numbered(info.chunks, '[chunk goes|chunks go]')}. {file}"
