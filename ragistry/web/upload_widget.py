"""Add files and folders to a collection."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from nicegui import events, ui

from ragistry.errors import RagistryError, SourceError
from ragistry.server.jobs import SavedJob
from ragistry.server.uploads import source_name
from ragistry.utils.disk import remedy
from ragistry.utils.wording import numbered
from ragistry.web.app_state import AppState
from ragistry.web.error_list import ErrorList, attempt
from ragistry.web.widgets import button

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


def _label(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else numbered(len(names), "[file|files]")


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
    label = _label([*(path.name for path in paths), *(name for name, _ in refused)])

    def add() -> SavedJob:
        try:
            return state.jobs.ingest(collection, paths, label, refused=refused, **options)
        except OSError as error:
            raise SourceError(f"{label}: {_not_saved(error)}") from error

    await attempt(add)


def _not_saved(error: OSError) -> str:
    return f"it cannot be saved ({error.strerror or error}); {remedy(error)}"
