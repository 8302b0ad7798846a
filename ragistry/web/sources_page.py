"""The page ``/collection/NAME``: add, move and delete sources, and edit the description of the collection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from nicegui import events, ui

from ragistry.errors import RagistryError, SourceError
from ragistry.library.unsearchable import COMMAND
from ragistry.server.jobs import SavedJob
from ragistry.server.uploads import source_name
from ragistry.types import SourceInfo, Unsearchable
from ragistry.utils.disk import remedy
from ragistry.utils.wording import local_time, numbered
from ragistry.web.app_state import PAGE_TIMEOUT, AppState, CollectionState, CollectionStates, in_thread
from ragistry.web.error_list import ErrorList, attempt
from ragistry.web.job_list import job_list
from ragistry.web.layout import empty_notice, heading, page_layout
from ragistry.web.polling import Follower
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
                show_unsearchable = _unsearchable(view)

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
                show_unsearchable(here)

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


def _unsearchable(view: SourcesView) -> Callable[[CollectionState], None]:
    """Show the files that are not searchable, with the reason, and the numbers of files that folders left out."""
    title = ui.label().classes("rg-dim").props("role=heading aria-level=2")

    def build(one: Unsearchable) -> Built[Unsearchable]:
        with row() as made:
            text_cell(one.source_file, "rg-name")
            reason = text_cell("", "rg-wide")
            with cell("rg-actions"):
                if one.source_file not in view.sources:
                    icon_button("delete", f"Forget {one.source_file}", lambda: forget(one.source_file))
        return made, lambda one: reason.set_text(f"{one.kind}: {one.reason}")

    async def forget(name: str) -> None:
        await attempt(view.state.workspace.library.delete_source, name, view.collection)
        await view.follower.refresh()

    columns = ("File", "Reason", "Actions")
    show_rows = table_of(
        "Not searchable", columns, lambda one: (one.source_file, one.source_path), build, lambda: ("", "")
    )
    left_out = ui.label().classes("rg-dim").style("white-space: pre-line")

    def show(here: CollectionState) -> None:
        more = here.missing_count - len(here.missing)
        title.set_text(
            f"{numbered(here.missing_count, 'file[ is|s are]')} not searchable"
            + (f"; {COMMAND} lists {more:,} more" if more else "")
        )
        title.set_visibility(bool(here.missing))
        show_rows(here.missing)
        left_out.set_text("\n".join(here.left_out))

    return show


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


# --- Adding files and folders ---


READ = "PDF, Markdown, text, CSV, Office and web documents, code, zip files of these"
NO_MEDIA = (
    "(files) => files.filter((file) => "
    "!/^(image|audio|video|font)\\//.test(file.type) || /\\.(ts|svg)$/i.test(file.name))"
)
"""Function of the browser that refuses files before they are sent. TypeScript has the type of a film."""


def upload_section(state: AppState, collection: str) -> None:
    """Show an upload area, and a field for a folder."""
    with ui.element("div").classes("rg-intake"):
        _drop_zone(state, collection)
        _folder(state, collection)


def _drop_zone(state: AppState, collection: str) -> None:
    """Show an area to drop or choose files."""

    async def refuse(event: events.GenericEventArguments) -> None:
        refused = [(name, _refusal(state, limit, name, size)) for limit, name, size in event.args]
        await _add(state, collection, [], refused=refused)

    with ui.element("section").classes("rg-drop").props('aria-label="Add files"') as zone:

        async def upload(event: events.MultiUploadEventArguments) -> None:
            await _queue_uploads(state, collection, event, replace=bool(replace.value))

        uploader = ui.upload(
            multiple=True,
            auto_upload=True,
            max_file_size=state.workspace.reading.limits.bytes,
            max_total_size=state.uploads.megabytes * 990_000,
            on_multi_upload=upload,
        )
        # The uploader's own interface cannot be used with a keyboard alone, so it is hidden and only sends the files.
        uploader.classes("rg-hidden").props[":filter"] = NO_MEDIA
        # Unique field names: of several fields with one name, the server sees only the last.
        uploader.props[":field-name"] = "(file) => file.__key + Math.random()"
        uploader.on(
            "rejected",
            refuse,
            js_handler="(all) => emit(all.map((one) => [one.failedPropValidation, one.file.name, one.file.size]))",
        )
        sender = f"getElement({uploader.id}).$refs.qRef"
        ui.icon("upload_file").classes("rg-drop-icon")
        with ui.element("div").classes("rg-drop-words"):
            with ui.element("div").classes("rg-bar"):
                ui.label("Drop files here, or")
                button("Choose files", kind="main").on("click", js_handler=f"() => {sender}.pickFiles()")
            ui.label(READ).classes("rg-dim")
            replace = ui.checkbox("Replace sources of the same name").props("dense")
            sending = ui.label().classes("rg-dim rg-sending").props("role=status")
            errors = ErrorList(shared=False)
    how_far = f"() => getHtmlElement({sending.id}).textContent = `Sending ${{{sender}.uploadProgressLabel}}`"
    uploader.on("start", js_handler=f"() => {{ window.sending = setInterval({how_far}, 200); }}")
    uploader.on(
        "finish",
        js_handler=f"() => {{ clearInterval(window.sending); getHtmlElement({sending.id}).textContent = ''; "
        f"{sender}.removeUploadedFiles(); {sender}.removeQueuedFiles(); }}",  # otherwise they could not be added again
    )
    uploader.on(
        "failed",
        lambda: errors.add("the files could not be sent; check that the page is still running, and add them again"),
    )
    zone.on("dragover", js_handler="(e) => { e.preventDefault(); e.currentTarget.classList.add('rg-over'); }")
    zone.on("dragleave", js_handler="(e) => e.currentTarget.classList.remove('rg-over')")
    zone.on(
        "drop",
        js_handler="(e) => { e.preventDefault(); e.currentTarget.classList.remove('rg-over'); "
        f"{sender}.addFiles(e.dataTransfer.files); }}",
    )


def _refusal(state: AppState, limit: str, name: str, size: int) -> str:
    """Describe the limit that a file exceeds, and the remedy."""
    if limit == "filter":
        return f"{PurePosixPath(name).suffix} is not a supported format"
    if limit == "max-file-size":
        most = f"the limit for a file is {state.workspace.reading.limits.bytes / 1e6:,.0f} MB"
        return f"it has {size / 1e6:,.0f} MB and {most}; split it, or add its folder by path"
    if limit == "max-total-size":
        return f"the limit for one upload is {state.uploads.megabytes:,} MB; add it in another upload"
    return "it is already selected"


def _folder(state: AppState, collection: str) -> None:
    with ui.element("section").classes("rg-folder").props('aria-label="Add a folder"'):
        folder = ui.input("Folder on this machine", placeholder=str(state.roots[0])).props("dense outlined")
        prune = ui.checkbox("Remove sources whose files are gone").props("dense")

        async def add() -> None:
            errors.clear()
            try:
                path = state.folder((folder.value or "").strip())
            except RagistryError as error:
                errors.add(str(error))
                return
            await attempt(state.jobs.ingest, collection, [path], str(path), prune=bool(prune.value))

        folder.on("keydown.enter", add)
        button("Add folder", add, icon="create_new_folder")
        errors = ErrorList(shared=False)


async def _queue_uploads(
    state: AppState, collection: str, event: events.MultiUploadEventArguments, *, replace: bool
) -> None:
    """Save the uploaded files in the workspace, and add a job for them."""
    found = await attempt(state.workspace.library.sources, collection)
    if found is None:
        return
    # Members of a zip file begin with its name.
    known = {name for info in found for name in (info.source_file, info.source_file.partition("/")[0])}
    kept: list[Path] = []
    refused: list[tuple[str, str]] = []
    with state.saved.new_folder() as folder:
        for file in event.files:
            place = folder / file.name
            try:
                name = source_name(file.name)
                if place in kept or name in state.jobs.pending(collection):
                    raise SourceError("a file of this name is already being added; wait, or rename the file")
                if name in known and not replace:
                    raise SourceError(
                        "a file of this name is already in this collection; tick Replace, or rename the file"
                    )
                await file.save(place)
                kept.append(place)
            except RagistryError as error:
                refused.append((file.name, str(error)))
            except OSError as error:
                refused.append((file.name, _not_saved(error)))
                place.unlink(missing_ok=True)
        if kept or refused:
            await _add(state, collection, kept, refused=refused, replace=replace, uploaded=folder)


async def _add(
    state: AppState, collection: str, paths: list[Path], *, refused: list[tuple[str, str]], **options: Any
) -> None:
    """Add a job for files; ``options`` are those of `PageJobs.ingest`."""
    names = [*(path.name for path in paths), *(name for name, _ in refused)]
    label = names[0] if len(names) == 1 else numbered(len(names), "[file|files]")

    def add() -> SavedJob:
        try:
            return state.jobs.ingest(collection, paths, label, refused=refused, **options)
        except OSError as error:
            raise SourceError(f"{label}: {_not_saved(error)}") from error

    await attempt(add)


def _not_saved(error: OSError) -> str:
    return f"it cannot be saved ({error.strerror or error}); {remedy(error)}"
