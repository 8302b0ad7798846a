"""Files that are dropped on the page, and folders that are named."""

from __future__ import annotations

from pathlib import Path, PurePosixPath, PureWindowsPath

from nicegui import events, ui

from ragistry.errors import RagistryError, SourceError
from ragistry.utils.extract import SUPPORTED_FORMATS
from ragistry.web.controls import button
from ragistry.web.security import BODY_MEGABYTES
from ragistry.web.site import UPLOAD_MEGABYTES, Site, attempt, complain


def intake(site: Site, collection: str) -> None:
    """Where to drop files and to name a folder."""
    with ui.element("div").classes("rg-intake"):
        _files(site, collection)
        _folder(site, collection)


def _files(site: Site, collection: str) -> None:
    with ui.element("section").classes("rg-drop").props('aria-label="Add files"') as zone:

        async def upload(event: events.MultiUploadEventArguments) -> None:
            await _take_in(site, collection, event, replace=bool(replace.value))

        uploader = ui.upload(
            multiple=True,
            auto_upload=True,
            max_file_size=UPLOAD_MEGABYTES * 1_000_000,
            max_total_size=BODY_MEGABYTES * 990_000,
            on_multi_upload=upload,
            on_rejected=lambda: complain(
                f"a file was refused: it has more than {UPLOAD_MEGABYTES} MB, all together more than "
                f"{BODY_MEGABYTES:,} MB, or its format is none of {', '.join(SUPPORTED_FORMATS)}"
            ),
        )
        # Its own looks cannot be used with a keyboard alone; it still sends the files.
        uploader.classes("rg-hidden").props["accept"] = ",".join(SUPPORTED_FORMATS)
        # Else the fields are called as the files are, and of two files of one name the server sees only the last.
        uploader.props[":field-name"] = "(file) => file.__key + Math.random()"
        sender = f"getElement({uploader.id}).$refs.qRef"
        button("Choose files", icon="upload_file", kind="main").on("click", js_handler=f"() => {sender}.pickFiles()")
        ui.label("or drop them here: PDF, Markdown, text, CSV, code").classes("rg-dim")
        replace = ui.checkbox("Replace sources of the same name")
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


def _folder(site: Site, collection: str) -> None:
    with ui.element("section").classes("rg-folder").props('aria-label="Add a folder"'):
        folder = ui.input("Folder on this machine", placeholder=str(site.roots[0])).props("dense outlined")
        prune = ui.checkbox("Remove what is no longer in it")

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
                raise SourceError(f"{name!r} is on its way already; wait, or give it another name")
            if name in known and not replace:
                raise SourceError(f"{name!r} is in this collection already; tick Replace, or give it another name")
            if file.size() > UPLOAD_MEGABYTES * 1_000_000:
                raise SourceError(f"{name!r} has more than {UPLOAD_MEGABYTES} MB; split it, or use `ragistry ingest`")
        except SourceError as error:
            complain(str(error))
            continue
        # Never over the file that it replaces, which the source stands on until this one is known to be readable.
        try:
            kept.append(await site.uploads.keep(name, file.save))
        except OSError as error:
            complain(f"{name!r} cannot be kept ({error.strerror or error}); make room on the disk of the workspace")
    if kept:
        label = kept[0].name if len(kept) == 1 else f"{len(kept)} files"
        site.jobs.add(collection, kept, label, replace=replace)


def safe_name(name: str) -> str:
    """The bare name of an uploaded file, whatever its sender wrote before it. Raises `SourceError` for none."""
    bare = PurePosixPath(PureWindowsPath(name).name).name.strip()
    if not bare or bare.startswith(".") or any(ord(character) < 32 for character in bare):
        raise SourceError(f"{name!r} cannot name a source; rename the file")
    if len(bare.encode()) > 200:
        raise SourceError(f"the name {bare[:40]!r}… is too long; give the file one of at most 200 bytes")
    return bare
