"""Routes for jobs: ingest files and texts, compare techniques, follow and cancel jobs."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import Form
from starlette.requests import Request
from starlette.responses import Response

from ragistry.errors import JobNotFoundError, RequestError
from ragistry.server.jobs import as_mapping
from ragistry.server.route import caller_of, library_of, needs, new_router, served_by
from ragistry.server.schemas import ComparisonRequest, FileBatch, JobList, JobModel, TextBatch
from ragistry.server.tasks import QUERIES, REPORTS
from ragistry.server.uploads import kept_name, source_name
from ragistry.utils.metadata import checked_metadata, date_text, parse_json

router = new_router()


@router.post("/ingest/files", status_code=202, response_model=JobModel, openapi_extra=needs("write"))
def ingest_files(request: Request, batch: Annotated[FileBatch, Form(media_type="multipart/form-data")]) -> Any:
    """Ingest files in a background job. The response is sent when the server has saved them."""
    library_of(request, batch.collection)
    number = len(batch.files)
    sent = batch.names or [file.filename or "" for file in batch.files]
    if len(sent) != number:
        raise RequestError(f"{len(sent):,} names for {number:,} files; send one name for each file, or none")
    names = [source_name(name) for name in sent]
    given, beside = _metadata("metadata", batch.metadata, number), _metadata("tables", batch.tables, number)
    times = batch.modified or [""] * number
    if len(times) != number or not all(date_text(time) for time in times if time):
        raise RequestError(f"modified must be {number:,} times in ISO 8601, one for each file")
    with served_by(request).jobs.new_folder() as place:
        sources = []
        for index, (name, file) in enumerate(zip(names, batch.files, strict=True)):
            kept = kept_name(index, name)
            with (place / kept).open("wb") as stream:
                shutil.copyfileobj(file.file, stream)
            come = {"argument": given[index], "table": beside[index], "modified": date_text(times[index])}
            sources.append({"name": name, "file": kept, "text": False, "folder": batch.folder or "", "metadata": come})
        return _added(request, place, batch.collection, sources, replace=batch.replace)


@router.post("/ingest/texts", status_code=202, response_model=JobModel, openapi_extra=needs("write"))
def ingest_texts(request: Request, body: TextBatch) -> Any:
    """Ingest texts in a background job."""
    library_of(request, body.collection)
    with served_by(request).jobs.new_folder() as folder:
        sources = []
        for number, one in enumerate(body.sources):
            (folder / str(number)).write_text(one.text, encoding="utf-8", newline="")
            come = {"argument": checked_metadata(one.metadata)}
            sources.append({"name": one.source, "file": str(number), "text": True, "metadata": come})
        return _added(request, folder, body.collection, sources, replace=False)


def _metadata(name: str, text: str | None, files: int) -> list[dict[str, Any]]:
    """Parse and check the metadata of each file, from a field of a form."""
    if text is None:
        return [{} for _ in range(files)]
    found = parse_json(text, name)
    if not isinstance(found, list) or len(found) != files:
        raise RequestError(f"{name} must be a JSON list of {files:,} objects, one for each file")
    return [checked_metadata(one) for one in found]


def _added(
    request: Request, folder: Path, collection: str, sources: Sequence[dict[str, Any]], *, replace: bool
) -> dict[str, Any]:
    arguments = {"replace": replace, "sources": list(sources)}
    caller = caller_of(request)
    return as_mapping(served_by(request).jobs.add(folder, "ingest", caller, collection, arguments), caller)


@router.post("/comparisons", status_code=202, response_model=JobModel, openapi_extra=needs("write"))
def start_comparison(request: Request, body: ComparisonRequest) -> Any:
    """Compare techniques over the whole library in a background job."""
    served, caller = served_by(request), caller_of(request)
    caller.check_unlimited("a comparison")
    for name in body.techniques:
        served.workspace.registry.entry(name)
    if body.made.collection is not None:
        served.workspace.library.collections.entry(body.made.collection)
    with served.jobs.new_folder() as folder:
        if body.queries is not None:
            (folder / QUERIES).write_text(body.queries, encoding="utf-8")
        arguments = body.model_dump(exclude={"queries"})
        return as_mapping(served.jobs.add(folder, "comparison", caller, None, arguments), caller)


@router.get("/jobs", response_model=JobList, openapi_extra=needs("write"))
def list_jobs(request: Request) -> Any:
    """List the ingests and comparisons of this token; an unlimited admin token lists all."""
    caller = caller_of(request)
    return {"jobs": [as_mapping(job, caller) for job in served_by(request).jobs.visible(caller)]}


@router.get("/jobs/{id}", response_model=JobModel, openapi_extra=needs("write"))
def get_job(request: Request, id: str) -> Any:
    """Return a job with its progress and report."""
    caller = caller_of(request)
    return as_mapping(served_by(request).jobs.get(id, caller), caller)


@router.delete("/jobs/{id}", response_model=JobModel, openapi_extra=needs("write"))
def cancel_job(request: Request, id: str) -> Any:
    """Cancel a job, or remove one that has ended with its report. Sources that are already written stay."""
    jobs, caller = served_by(request).jobs, caller_of(request)
    job = jobs.get(id, caller)
    if job.ended:
        jobs.remove(job)
    else:
        jobs.cancel(job)
    return as_mapping(job, caller)


REPORT_TYPES = {"json": "application/json", "markdown": "text/markdown", "html": "text/html"}


@router.get(
    "/comparisons/{id}/report",
    response_class=Response,
    responses={200: {"description": "The report", "content": {kind: {} for kind in REPORT_TYPES.values()}}},
    openapi_extra=needs("write"),
)
def get_report(request: Request, id: str, format: Literal["json", "markdown", "html"] = "json") -> Response:
    """Return the full report of a comparison."""
    jobs = served_by(request).jobs
    job = jobs.get(id, caller_of(request))
    try:
        text = (jobs.folder / job.id / REPORTS[format]).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise JobNotFoundError(f"{job.kind} {id!r} has no report of techniques; its state is {job.state}") from error
    return Response(text, media_type=REPORT_TYPES[format])
