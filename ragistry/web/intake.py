"""Files that are dropped on the page, and folders that are named."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path, PurePosixPath, PureWindowsPath

from nicegui import events, ui

from ragistry.errors import RagistryError, SourceError
from ragistry.utils.documents.extract import SUPPORTED_FORMATS
from ragistry.utils.wording import numbered
from ragistry.web.controls import button
from ragistry.web.security import BODY_MEGABYTES
from ragistry.web.site import UPLOAD_MEGABYTES, Site, attempt, complain

READ = "PDF, Markdown, text, CSV, Office and web documents, code"

Target = Callable[[], Awaitable[str | None]]
"""Gives the collection that files go into, made if need be; None where there can be none, which was said."""


def intake(site: Site, collection: str) -> None:
    """Where to drop files and to name a folder."""

    async def here() -> str:
        return collection

    with ui.element("div").classes("rg-intake"):
        drop_zone(site, here)
        _folder(site, collection)


def drop_zone(site: Site, target: Target) -> None:
    """Where to drop or to choose files."""
    with ui.element("section").classes("rg-drop").props('aria-label="Add files"') as zone:

        async def upload(event: events.MultiUploadEventArguments) -> None:
            collection = await target()
            if collection is not None:
                await _take_in(site, collection, event, replace=bool(replace.value))

        uploader = ui.upload(
            multiple=True,
            auto_upload=True,
            max_file_size=UPLOAD_MEGABYTES * 1_000_000,
            max_total_size=BODY_MEGABYTES * 990_000,
            on_multi_upload=upload,
        )
        # Its own looks cannot be used with a keyboard alone; it still sends the files.
        uploader.classes("rg-hidden").props["accept"] = ",".join(SUPPORTED_FORMATS)
        # Else the fields are called as the files are, and of two files of one name the server sees only the last.
        uploader.props[":field-name"] = "(file) => file.__key + Math.random()"
        uploader.on(
            "rejected",
            _complain_of,
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
    how_far = f"() => getHtmlElement({sending.id}).textContent = `Sending ${{{sender}.uploadProgressLabel}}`"
    uploader.on("start", js_handler=f"() => {{ window.sending = setInterval({how_far}, 200); }}")
    uploader.on(
        "finish",
        js_handler=f"() => {{ clearInterval(window.sending); getHtmlElement({sending.id}).textContent = ''; "
        f"{sender}.removeUploadedFiles(); {sender}.removeQueuedFiles(); }}",  # else they cannot be added again
    )
    uploader.on("failed", lambda: complain("the files could not be sent; check that the page is served, and add again"))
    zone.on("dragover", js_handler="(e) => { e.preventDefault(); e.currentTarget.classList.add('rg-over'); }")
    zone.on("dragleave", js_handler="(e) => e.currentTarget.classList.remove('rg-over')")
    zone.on(
        "drop",
        js_handler="(e) => { e.preventDefault(); e.currentTarget.classList.remove('rg-over'); "
        f"{sender}.addFiles(e.dataTransfer.files); }}",
    )


def _complain_of(event: events.GenericEventArguments) -> None:
    for refused in event.args[:5]:
        complain(_refusal(*refused))


def _refusal(limit: str, name: str, size: int) -> str:
    """Which limit a file broke, and what to do."""
    if limit == "accept":
        suffix = PurePosixPath(name).suffix
        return f"{name!r} was not added: {suffix or 'a file without a suffix'} is not read here; add {READ}"
    if limit == "max-file-size":
        most = f"a file may have {UPLOAD_MEGABYTES} MB"
        return f"{name!r} has {size / 1e6:,.0f} MB and {most}; split it, or add its folder by path"
    if limit == "max-total-size":
        most = f"files that are sent at once may have {BODY_MEGABYTES:,} MB together"
        return f"{name!r} ({size / 1e6:,.0f} MB) was not added: {most}; add it next"
    return f"{name!r} was not added: it is chosen already"


def _folder(site: Site, collection: str) -> None:
    with ui.element("section").classes("rg-folder").props('aria-label="Add a folder"'):
        folder = ui.input("Folder on this machine", placeholder=str(site.roots[0])).props("dense outlined")
        prune = ui.checkbox("Remove what is no longer in it").props("dense")

        def add() -> None:
            try:
                path = site.folder((folder.value or "").strip())
            except RagistryError as error:
                complain(str(error))
                return
            site.jobs.add(collection, [path], str(path), prune=bool(prune.value))

        folder.on("keydown.enter", add)
        button("Add folder", add, icon="create_new_folder")


async def _take_in(site: Site, collection: str, event: events.MultiUploadEventArguments, *, replace: bool) -> None:
    """Keep the files in the workspace and queue them."""
    found = await attempt(site.workspace.library.sources, collection)
    if found is None:
        return
    known = {info.source_file for info in found}
    kept: list[Path] = []
    for file in event.files:
        try:
            name = safe_name(file.name)
            if name in {path.name for path in (*kept, *site.jobs.pending(collection))}:
                raise SourceError(f"{name!r} is already being added; wait, or give it another name")
            if name in known and not replace:
                raise SourceError(f"{name!r} is in this collection already; tick Replace, or give it another name")
            if file.size() > UPLOAD_MEGABYTES * 1_000_000:
                raise SourceError(_refusal("max-file-size", name, file.size()))
        except SourceError as error:
            complain(str(error))
            continue
        # Never over the file that it replaces, which the source stands on until this one is known to be readable.
        try:
            kept.append(await site.uploads.keep(name, file.save))
        except OSError as error:
            complain(f"{name!r} cannot be kept ({error.strerror or error}); make room on the disk of the workspace")
    if kept:
        label = kept[0].name if len(kept) == 1 else numbered(len(kept), "[file|files]")
        site.jobs.add(collection, kept, label, replace=replace)


def safe_name(name: str) -> str:
    """The bare name of an uploaded file, whatever its sender wrote before it. Raises `SourceError` for none."""
    bare = PurePosixPath(PureWindowsPath(name).name).name.strip()
    if not bare or bare.startswith(".") or any(ord(character) < 32 for character in bare):
        raise SourceError(f"{name!r} cannot name a source; rename the file")
    if len(bare.encode()) > 200:
        raise SourceError(f"the name {bare[:40]!r}… is too long; give the file one of at most 200 bytes")
    return bare
