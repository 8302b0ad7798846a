"""The routes of jobs: ingest files and texts, compare techniques, see how far a job is, cancel it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

from fastapi import File, Form, UploadFile
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from ragistry.errors import JobNotFoundError, RequestError
from ragistry.server.jobs import FILES, Job, as_mapping
from ragistry.server.routing import caller_of, needs, new_router, served_by
from ragistry.server.schemas import (
    ComparisonModel,
    ComparisonRequest,
    ComparisonsAnswer,
    JobModel,
    JobsAnswer,
    Texts,
)
from ragistry.server.work import FOLDER_ID, QUERIES, REPORTS

router = new_router()
LONGEST_NAME = 1_000


def source_name(name: str) -> str:
    """The name of an uploaded file: as in the folder of its sender, with `/`. Raises `RequestError`.

    No path of this machine is made of it.
    """
    parts = PurePosixPath(name).parts
    if not parts or name != "/".join(parts) or ".." in parts or not name.isprintable() or len(name) > LONGEST_NAME:
        raise RequestError(f"{name[:100]!r} cannot name a source; send a relative path such as guides/setup.md")
    return name


def _suffix(name: str) -> str:
    """By which a file's format is known."""
    suffix = PurePosixPath(name).suffix.lower()
    return suffix if re.fullmatch(r"\.[a-z0-9]{1,15}", suffix) else ""


@router.post("/ingest/files", status_code=202, response_model=JobModel, openapi_extra=needs("write"))
def ingest_files(
    request: Request,
    collection: Annotated[str, Form(description="the collection that takes them in")],
    files: Annotated[list[UploadFile], File(description="each under its name in the collection")],
    names: Annotated[list[str] | None, Form(description="of the files, where theirs are not meant")] = None,
    replace: Annotated[
        bool, Form(description="take the place of a source that came from a file of the server")
    ] = False,
    folder: Annotated[
        str | None, Form(pattern=FOLDER_ID, description="of the client's folder that holds the files; see its sources")
    ] = None,
) -> Any:
    """Take files in. They are on the server's disk when this answers; the job says what became of them."""
    served, caller = served_by(request), caller_of(request)
    caller.check_collection(served.workspace.library, collection)
    sent = names or [file.filename or "" for file in files]
    if len(sent) != len(files):
        raise RequestError(f"{len(sent):,} names for {len(files):,} files; send one for each, or none")
    named = [source_name(name) for name in sent]
    with served.jobs.new_folder() as place:
        sources = []
        for number, (name, file) in enumerate(zip(named, files, strict=True)):
            kept = f"{number}{_suffix(name)}"
            with (place / FILES / kept).open("wb") as stream:
                shutil.copyfileobj(file.file, stream)
            sources.append({"name": name, "file": kept, "text": False, "folder": folder or ""})
        return _added(request, place, collection, sources, replace=replace)


@router.post("/ingest/texts", status_code=202, response_model=JobModel, openapi_extra=needs("write"))
def ingest_texts(request: Request, body: Texts) -> Any:
    """Take texts in, each under its name."""
    served, caller = served_by(request), caller_of(request)
    caller.check_collection(served.workspace.library, body.collection)
    with served.jobs.new_folder() as folder:
        sources = []
        for number, one in enumerate(body.sources):
            (folder / FILES / str(number)).write_text(one.text, encoding="utf-8", newline="")
            sources.append({"name": one.source, "file": str(number), "text": True})
        return _added(request, folder, body.collection, sources, replace=False)


def _added(
    request: Request, folder: Path, collection: str, sources: Sequence[dict[str, Any]], *, replace: bool
) -> dict[str, Any]:
    asked = {"replace": replace, "sources": list(sources)}
    return as_mapping(served_by(request).jobs.add(folder, "ingest", caller_of(request), collection, asked))


@router.get("/jobs", response_model=JobsAnswer, openapi_extra=needs("write"))
def list_jobs(request: Request) -> Any:
    """List the ingest jobs of this token; an admin for every collection sees all."""
    return {"jobs": [as_mapping(job) for job in served_by(request).jobs.all("ingest", caller_of(request))]}


@router.get("/jobs/{id}", response_model=JobModel, openapi_extra=needs("write"))
def get_job(request: Request, id: str) -> Any:
    """How far a job is, and what came of it."""
    return as_mapping(served_by(request).jobs.get(id, "ingest", caller_of(request)))


@router.delete("/jobs/{id}", response_model=JobModel, openapi_extra=needs("write"))
def cancel_job(request: Request, id: str) -> Any:
    """Cancel a job; sources that were written stay."""
    jobs = served_by(request).jobs
    job = jobs.get(id, "ingest", caller_of(request))
    jobs.cancel(job)
    return as_mapping(job)


@router.post("/comparisons", status_code=202, response_model=ComparisonModel, openapi_extra=needs("write"))
def start_comparison(request: Request, body: ComparisonRequest) -> Any:
    """Compare techniques over the whole library, in the background."""
    served, caller = served_by(request), caller_of(request)
    caller.check_unlimited("a comparison")
    for name in body.techniques:
        served.workspace.registry.entry(name)
    if body.made.collection is not None:
        served.workspace.library.collections.entry(body.made.collection)
    with served.jobs.new_folder() as folder:
        if body.queries is not None:
            (folder / FILES / QUERIES).write_text(body.queries, encoding="utf-8")
        asked = body.model_dump(exclude={"queries"})
        return as_mapping(served.jobs.add(folder, "comparison", caller, None, asked))


@router.get("/comparisons", response_model=ComparisonsAnswer, openapi_extra=needs("write"))
def list_comparisons(request: Request) -> Any:
    """List the comparisons of this token; an admin for every collection sees all."""
    found = served_by(request).jobs.all("comparison", caller_of(request))
    return {"comparisons": [as_mapping(job) for job in found]}


@router.get("/comparisons/{id}", response_model=ComparisonModel, openapi_extra=needs("write"))
def get_comparison(request: Request, id: str) -> Any:
    """How far a comparison is, and its conclusion."""
    return as_mapping(served_by(request).jobs.get(id, "comparison", caller_of(request)))


@router.delete("/comparisons/{id}", response_model=ComparisonModel, openapi_extra=needs("write"))
def cancel_comparison(request: Request, id: str) -> Any:
    """Cancel a comparison."""
    jobs = served_by(request).jobs
    job = jobs.get(id, "comparison", caller_of(request))
    jobs.cancel(job)
    return as_mapping(job)


REPORT_CONTENT: dict[str, Any] = {"application/json": {}, "text/markdown": {}, "text/html": {}}


@router.get(
    "/comparisons/{id}/report",
    response_class=Response,
    responses={200: {"description": "The report", "content": REPORT_CONTENT}},
    openapi_extra=needs("write"),
)
def get_report(request: Request, id: str, format: Literal["json", "markdown", "html"] = "json") -> Response:
    """The whole report, as `ragistry compare` writes it."""
    jobs = served_by(request).jobs
    job: Job = jobs.get(id, "comparison", caller_of(request))
    try:
        text = (jobs.folder / job.id / REPORTS[format]).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise JobNotFoundError(f"comparison {id!r} has no report: it is {job.state}") from error
    if format == "html":
        return HTMLResponse(text)
    if format == "markdown":
        return PlainTextResponse(text, media_type="text/markdown")
    return Response(text, media_type="application/json")
