"""The page ``/collection/NAME``: add, move and delete sources, and edit the description of the collection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from nicegui import ui

from ragistry.types import SourceInfo
from ragistry.utils.wording import local_time, numbered
from ragistry.web.app_state import PAGE_TIMEOUT, AppState, CollectionStates, in_thread
from ragistry.web.error_list import attempt
from ragistry.web.job_list import job_list
from ragistry.web.layout import empty_notice, heading, page_layout
from ragistry.web.polling import Follower
from ragistry.web.upload_widget import upload_section
from ragistry.web.widgets import (
    PAGE,
    Built,
    button,
    cell,
    choose,
    confirm,
    icon_button,
    last_page,
    pager,
    row,
    table_of,
    text_cell,
)

COLUMNS = ("Source", "Chunks", "Ingested", "Move to…", "Actions")


@dataclass(slots=True)
class SourcesView:
    """State of one window. ``others``: display names of the other collections, by name."""

    state: AppState
    follower: Follower[CollectionStates]
    collection: str
    page: int = 0
    filter: str = ""
    sources: dict[str, SourceInfo] = field(default_factory=dict)
    others: dict[str, str] = field(default_factory=dict)


def register(state: AppState) -> None:
    """Register the page."""

    @ui.page("/collection/{name}", response_timeout=PAGE_TIMEOUT)
    async def sources(name: str) -> None:
        with page_layout(name, "Collections"):
            with ui.element("div").classes("rg-bar"):
                ui.link("← Collections", "/collections").classes("rg-back")
                title = heading(name)
                button("Refresh", lambda: view.follower.refresh(), icon="refresh")
            view = SourcesView(state, Follower(state.collections), name)
            show_missing = empty_notice()
            with ui.element("div").classes("rg-part") as upper:
                describe = description_field(state, name)
                upload_section(state, name)
            job_list(state, "Ingests", lambda: state.jobs.ingests(name))
            with ui.element("div").classes("rg-part") as lower:
                show_sources = _table(view)

            def show(found: CollectionStates) -> None:
                here = next((entry for entry in found if entry.name == name), None)
                upper.set_visibility(here is not None)
                lower.set_visibility(here is not None)
                if here is None:
                    show_missing(
                        f"Collection {name!r} no longer exists.", "It was renamed or deleted; see Collections."
                    )
                    return
                show_missing("", "")
                title.set_text(here.display_name)
                describe(here.description)
                view.others = {entry.name: entry.display_name for entry in found if entry.name != name}
                view.sources = {info.source_file: info for info in here.sources}
                show_sources()

            await view.follower.begin(show)


def _table(view: SourcesView) -> Callable[[], None]:
    def find(text: str | None) -> None:
        view.filter, view.page = (text or "").strip().lower(), 0
        show()

    def go(page: int) -> None:
        view.page = page
        show()

    ui.input("Filter by name", on_change=lambda event: find(event.value)).classes("rg-filter").props(
        "dense clearable debounce=200"
    )

    def missing() -> tuple[str, str]:
        if view.sources:
            return f"No source name contains {view.filter!r}.", "Clear the filter to see all."
        return "This collection has no sources yet.", "Drop files above, or add a folder by its path."

    show_rows = table_of(
        "Sources",
        COLUMNS,
        lambda item: item[0].source_file,
        lambda item: _row(view, item[0].source_file),
        missing,
        right=("Chunks", "Actions"),
    )
    turn = pager(go)

    def show() -> None:
        found = [info for name, info in view.sources.items() if view.filter in name.lower()]
        view.page = min(view.page, last_page(len(found)))
        show_rows([(info, bool(view.others)) for info in found[view.page * PAGE : (view.page + 1) * PAGE]])
        turn(view.page, len(found))

    return show


def _row(view: SourcesView, name: str) -> Built[tuple[SourceInfo, bool]]:
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


async def _move(view: SourcesView, name: str) -> None:
    library, others, info = view.state.workspace.library, view.others, view.sources[name]
    target = await choose(f"Move {name} to…", others)
    there = None if target is None else await attempt(library.sources, target)
    if target is None or there is None:
        return
    replaced = [twin for twin in there if twin.source_file == name]
    # A source that is moved onto itself, as after an interrupted move, still needs its file.
    unneeded = [twin for twin in replaced if twin.source_path != info.source_path]
    if replaced and not await confirm(
        f"Replace {name} in {others[target]}?", _consequence(view, replaced[0], is_needed=not unneeded), "Replace"
    ):
        return
    moved = await attempt(library.move_source, name, view.collection, target, overwrite=bool(replaced))
    if moved is not None:
        await in_thread(view.state.forget_uploads, unneeded)
        ui.notify(f"{name}: {numbered(moved, '[chunk|chunks]')} moved to {others[target]}", type="positive")
    await view.follower.refresh()


async def _delete(view: SourcesView, info: SourceInfo) -> None:
    if await confirm(f"Delete {info.source_file}?", _consequence(view, info), "Delete"):
        delete = view.state.workspace.library.delete_source
        if await attempt(delete, info.source_file, view.collection) is not None:
            await in_thread(view.state.forget_uploads, [info])
        await view.follower.refresh()


def _consequence(view: SourcesView, info: SourceInfo, *, is_needed: bool = False) -> str:
    """Describe what is deleted with a source. With ``is_needed``, another source uses its file."""
    file_of = view.state.uploads.file_of
    upload = file_of(info.source_path)
    users = [one for one in view.sources.values() if file_of(one.source_path) == upload]
    file_goes = upload is not None and not is_needed and users in ([], [info])
    file = "The uploaded copy of the file is deleted too." if file_goes else "The file stays."
    return f"{numbered(info.chunks, '[chunk is|chunks are]')} deleted. {file}"


def description_field(state: AppState, collection: str) -> Callable[[str], None]:
    """Add a field for the description. Call the result with the current text; it keeps unsaved input."""
    saved = ""
    with ui.element("div").classes("rg-bar"):
        field = ui.textarea("Description").props("autogrow dense outlined").classes("rg-describe")
        button("Save description", lambda: save())

    async def save() -> None:
        nonlocal saved
        text = (field.value or "").strip()

        def write() -> bool:
            state.workspace.library.update_description(collection, text)
            return True

        if await attempt(write):
            saved = text
            ui.notify("Description saved", type="positive")

    def show(description: str) -> None:
        nonlocal saved
        if (field.value or "").strip() == saved:
            field.value = description
        saved = description

    return show
