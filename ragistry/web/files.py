"""The file of a source as it is, and a page of a PDF as an image: both only of what the library holds."""

from __future__ import annotations

import os
from pathlib import Path
from threading import BoundedSemaphore
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Query
from nicegui import app
from starlette.responses import FileResponse, PlainTextResponse, Response

from ragistry.errors import RagistryError, SourceNotFoundError
from ragistry.types import Document
from ragistry.utils.documents.extract import TEXT_EXTS
from ragistry.web.page_image import render
from ragistry.web.site import Site

AT_ONCE = BoundedSemaphore(2)
"""Pages that are drawn at the same time."""
KEEP = {"cache-control": "private, max-age=3600"}
NOTHING_RUNS = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox"}


def register(site: Site) -> None:
    """Serve both. A refusal is one line of text."""

    @app.get("/file", include_in_schema=False)
    def file(collection: str, source: str) -> Response:
        try:
            path = original(site, collection, source)
        except RagistryError as error:
            return PlainTextResponse(str(error), 404)
        return _as_it_is(path)

    @app.get("/page-image", include_in_schema=False)
    def page_image(
        collection: str, source: str, page: int, mark: Annotated[list[str] | None, Query()] = None
    ) -> Response:
        try:
            path = original(site, collection, source)
            if path.suffix.lower() != ".pdf":
                raise SourceNotFoundError(f"{source!r} is not a PDF and has no pages; open the file instead")
            with AT_ONCE:
                image = render(path, page, mark or [], site.workspace.reading.limits)
        except RagistryError as error:
            return PlainTextResponse(str(error), 404)
        return Response(image, media_type="image/png", headers=KEEP)


def original(site: Site, collection: str, source: str) -> Path:
    """The file that a source was read from.

    No other file can be named: the path comes from the store, and a link that was put in its place since is refused.
    Raises `SourceNotFoundError` and `CollectionNotFoundError`.
    """
    path = Path(site.workspace.library.source(source, collection).source_path)
    if not path.is_absolute():
        raise SourceNotFoundError(f"{source!r} was added as text and has no file")
    if os.path.realpath(path) != str(path) or not path.is_file():
        raise SourceNotFoundError(f"the file of {source!r} is no longer where it was read from; ingest it again")
    return path


def file_address(document: Document) -> str:
    """Where `register` serves the file of a passage's source."""
    return "/file?" + urlencode(_named(document))


def image_address(document: Document, marks: list[str]) -> str:
    """Where `register` serves the passage's page of a PDF, with these words marked."""
    get = document.metadata.get
    asked = _named(document) | {"page": get("page"), "mark": marks, "v": str(get("source_hash"))[:12]}
    return "/page-image?" + urlencode(asked, doseq=True)


def _named(document: Document) -> dict[str, object]:
    get = document.metadata.get
    return {"collection": get("collection"), "source": get("source_file")}


def _as_it_is(path: Path) -> Response:
    """A PDF or a text is shown by the browser, as plain text whatever it holds; any other file is saved."""
    suffix = path.suffix.lower()
    if suffix == ".pdf":
        kind, shown, headers = "application/pdf", "inline", {}
    elif suffix in TEXT_EXTS:
        kind, shown, headers = "text/plain; charset=utf-8", "inline", NOTHING_RUNS
    else:
        kind, shown, headers = "application/octet-stream", "attachment", NOTHING_RUNS
    return FileResponse(path, media_type=kind, filename=path.name, content_disposition_type=shown, headers=headers)
