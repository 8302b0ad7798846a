"""Routes for the original file of a source, and for a page of a PDF as an image."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import BoundedSemaphore
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Query
from nicegui import app
from starlette.responses import FileResponse, PlainTextResponse, Response

from ragistry.errors import RagistryError, SourceNotFoundError
from ragistry.readers.extracted import ExtractLimits
from ragistry.readers.formats import CONVERTED, OFFICE_EXTS, TEX_EXTS
from ragistry.readers.reader_process import read_in_worker
from ragistry.types import Document
from ragistry.web.app_state import AppState

AT_ONCE = BoundedSemaphore(2)
"""Limits the number of pages that are drawn at the same time."""
SECONDS = 20.0
"""Maximum time to draw a page."""
MARKS = 20
"""Maximum number of marked words."""
KEEP = {"cache-control": "private, max-age=3600"}
NOTHING_RUNS = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox"}


def register(state: AppState) -> None:
    """Register both routes. Errors are one line of text."""

    @app.get("/file", include_in_schema=False)
    def file(collection: str, source: str) -> Response:
        try:
            path = original(state, collection, source)
        except RagistryError as error:
            return PlainTextResponse(str(error), 404)
        return _send(path)

    @app.get("/page-image", include_in_schema=False)
    def page_image(
        collection: str, source: str, page: int, mark: Annotated[list[str] | None, Query()] = None
    ) -> Response:
        try:
            path = original(state, collection, source)
            if path.suffix.lower() != ".pdf":
                raise SourceNotFoundError(f"{source!r} is not a PDF and has no pages; open the file instead")
            with AT_ONCE:
                image = _draw(path, page, mark or [], state.workspace.reading.limits)
        except RagistryError as error:
            return PlainTextResponse(str(error), 404)
        return Response(image, media_type="image/png", headers=KEEP)


def original(state: AppState, collection: str, source: str) -> Path:
    """Return the path of the file that a source was read from.

    No other file can be requested: the path comes from the store, and a symbolic link that replaced it is refused.

    Raises:
        SourceNotFoundError: The source or its file does not exist.
        CollectionNotFoundError: The collection does not exist.
    """
    path = Path(state.workspace.library.source(source, collection).source_path)
    if not path.is_absolute():
        raise SourceNotFoundError(f"{source!r} was added as text and has no file")
    if os.path.realpath(path) != str(path) or not path.is_file():
        raise SourceNotFoundError(f"the file of {source!r} no longer exists at its path; ingest it again")
    return path


def file_address(document: Document) -> str:
    """Return the address of a passage's file."""
    return "/file?" + urlencode(_source_query(document))


def image_address(document: Document, page: int, marks: list[str]) -> str:
    """Return the address of an image of a page of a passage's source with marked words."""
    get = document.metadata.get
    query = _source_query(document) | {"page": page, "mark": marks, "v": str(get("source_hash"))[:12]}
    return "/page-image?" + urlencode(query, doseq=True)


def _draw(path: Path, page: int, marks: list[str], limits: ExtractLimits) -> bytes:
    """Draw a page, counted from 1, as PNG. A worker draws, so that a file that hangs or crashes harms nothing else."""
    limits = replace(limits, seconds=min(limits.seconds, SECONDS))
    with TemporaryDirectory(prefix="ragistry-") as folder:
        image = Path(folder, "page.png")
        read_in_worker(
            str(path), "draw", limits, "open the file instead", page=page, image=str(image), marks=marks[:MARKS]
        )
        return image.read_bytes()


def _source_query(document: Document) -> dict[str, object]:
    get = document.metadata.get
    return {"collection": get("collection"), "source": get("source_file")}


def _send(path: Path) -> Response:
    """Send a file. Browsers display PDFs, and any text as plain text; they download other files."""
    suffix = path.suffix.lower()
    if suffix == ".pdf":
        kind, shown, headers = "application/pdf", "inline", {}
    elif suffix not in OFFICE_EXTS | TEX_EXTS | CONVERTED.keys():
        kind, shown, headers = "text/plain; charset=utf-8", "inline", NOTHING_RUNS
    else:
        kind, shown, headers = "application/octet-stream", "attachment", NOTHING_RUNS
    return FileResponse(path, media_type=kind, filename=path.name, content_disposition_type=shown, headers=headers)
