"""What went wrong, as an answer: a status and ``{"error": {"type", "message"}}``."""

from __future__ import annotations

import logging
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from ragistry import errors
from ragistry.server.access import Caller
from ragistry.utils.disk import is_full
from ragistry.utils.wording import one_line, shown

_log = logging.getLogger(__name__)

RETRY_AFTER = 2
"""Seconds that a caller of a busy server is asked to wait."""
LONGEST = 2_000
"""Characters of a message."""

STATUS: dict[type[Exception], int] = {
    errors.AccessDeniedError: 403,
    errors.RequestError: 422,
    errors.ServerBusyError: 503,
    errors.JobNotFoundError: 404,
    errors.InvalidConfigError: 503,
    errors.UnknownTechniqueError: 404,
    errors.ConfigError: 400,
    errors.SourceNotFoundError: 404,
    errors.SourceError: 422,
    errors.ModelError: 503,
    errors.CollectionNotFoundError: 404,
    errors.CollectionAlreadyExistsError: 409,
    errors.InvalidCollectionNameError: 400,
    errors.InvalidChunkError: 422,
    errors.DuplicateChunkIDError: 409,
    errors.EmbeddingMismatchError: 409,
    errors.UnsupportedError: 422,
    errors.StoreError: 503,
    errors.QueryError: 400,
    errors.EvaluationError: 422,
}
"""By class; the nearest ancestor counts, and what has none is 500."""


class ErrorDetail(BaseModel):
    """``type``: a class of `ragistry.errors`. ``message``: what is wrong and the remedy, in one line."""

    type: str
    message: str


class ErrorAnswer(BaseModel):
    """The form of every answer that is no success."""

    error: ErrorDetail


RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorAnswer, "description": said}
    for status, said in {
        400: "The request cannot be answered",
        401: "A token is needed",
        403: "The token lacks a right",
        404: "Nothing of that name",
        409: "It is there already, or made otherwise",
        408: "The request did not arrive in time",
        413: "The request is too large",
        422: "The request is malformed",
        500: "The server failed",
        503: "The server is busy, or what it needs does not answer",
    }.items()
}
"""For the description of the API."""


def status_of(error: Exception) -> int:
    """The HTTP status of an error."""
    return next((STATUS[cls] for cls in type(error).__mro__ if cls in STATUS), 500)


def detail_of(error: Exception, *, limited: bool = False) -> ErrorDetail:
    """What a caller is told; one that is ``limited`` to some collections hears only the kind of what `is_hidden`."""
    kind = type(error)
    if not isinstance(error, errors.RagistryError):
        return ErrorDetail(type="ServerError", message="the server failed; its log says why")
    while not hasattr(errors, kind.__name__):  # a subclass that only one module knows
        kind = kind.__mro__[1]
    message = one_line(str(error), LONGEST)
    if limited and isinstance(error, errors.UnknownTechniqueError):
        message = "there is no such technique; /v1/techniques lists those that there are"
    elif limited and is_hidden(error):
        message = "the server cannot do this now; its log says why"
    return ErrorDetail(type=kind.__name__, message=message)


def is_hidden(error: Exception) -> bool:
    """Whether the message is only for callers that are not limited: it may name paths, servers, other collections."""
    return not isinstance(error, errors.ServerBusyError) and (
        status_of(error) >= 500 or isinstance(error, errors.ConfigError)
    )


def answer(status: int, detail: ErrorDetail) -> JSONResponse:
    """The answer; a busy server says when to come again, and a missing token which kind is wanted."""
    headers = {"Retry-After": str(RETRY_AFTER)} if status == 503 else {}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse({"error": detail.model_dump()}, status, headers)


def refusal(status: int, message: str) -> JSONResponse:
    """The answer to a request that is refused as such."""
    kind = {401: "AccessDeniedError", 403: "AccessDeniedError", 503: "ServerBusyError"}.get(status, "RequestError")
    return answer(status, ErrorDetail(type=kind, message=message))


def install(app: FastAPI) -> None:
    """Let every exception of the application's routes become an answer."""

    @app.exception_handler(errors.RagistryError)
    async def known(request: Request, error: errors.RagistryError) -> JSONResponse:
        caller: Caller | None = request.scope.get("caller")
        status = status_of(error)
        if is_hidden(error):
            _log.error("%s %s: %s", request.method, request.url.path, error)
        return answer(status, detail_of(error, limited=caller is not None and caller.limited))

    @app.exception_handler(RequestValidationError)
    async def malformed(_: Request, error: RequestValidationError) -> JSONResponse:
        said = [_complaint(item) for item in error.errors()]
        return refusal(422, one_line("; ".join(said), LONGEST))

    @app.exception_handler(HTTPException)
    async def refused(_: Request, error: HTTPException) -> JSONResponse:
        status, said = error.status_code, str(error.detail)
        if status == 404:
            said = "there is nothing at this address; see /openapi.json"
        if said.startswith("Too many"):  # files or fields, which the parser of forms counts
            status = 413
        return refusal(status, said)

    @app.exception_handler(OSError)
    async def of_the_system(request: Request, error: OSError) -> JSONResponse:
        _log.error("%s %s: %s", request.method, request.url.path, error)
        if is_full(error):
            said = "the disk of the server is full, and nothing was taken in; make room there, and send it again"
            return answer(507, ErrorDetail(type="ServerError", message=said))
        said = f"the server's system refused: {error.strerror or type(error).__name__}; its log says of which file"
        return answer(503, ErrorDetail(type="ServerError", message=said))

    @app.exception_handler(Exception)
    async def unknown(request: Request, error: Exception) -> JSONResponse:
        _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
        return answer(500, detail_of(error))


def _complaint(item: dict[str, Any]) -> str:
    place = ".".join(str(part) for part in item["loc"])
    given = item.get("input")
    value = f", got {shown(given)}" if isinstance(given, str | int | float | bool) or given is None else ""
    return f"{place}: {item['msg']}{value}"
