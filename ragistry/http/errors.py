"""Convert exceptions to HTTP responses: a status and ``{"error": {"type", "message"}}``."""

from __future__ import annotations

import logging
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.routing import Match

from ragistry import errors
from ragistry.utils.disk import is_full
from ragistry.utils.wording import one_line, problem_of, shown

_log = logging.getLogger(__name__)

RETRY_AFTER = 2
"""Seconds after which clients of a busy server try again."""
HIDDEN = "the server cannot do this now; see its log"
"""What limited tokens see instead of a message that may name paths, servers or other collections."""
METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")
MESSAGE_LENGTH = 2_000
"""Maximum number of characters of a message."""

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
"""Status by class of error. The nearest base class decides; the default is 500."""


class ErrorDetail(BaseModel):
    """An error. ``type`` is a class of `ragistry.errors`; ``message`` has one line: what is wrong, and the remedy."""

    type: str
    message: str


class ErrorResponse(BaseModel):
    """The body of every unsuccessful response."""

    error: ErrorDetail


RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorResponse, "description": description}
    for status, description in {
        400: "The request is invalid",
        401: "A token is required",
        403: "The token lacks a right",
        404: "Not found",
        409: "Conflict with existing data",
        408: "The request did not arrive in time",
        413: "The request is too large",
        422: "The request is malformed",
        500: "Internal error",
        503: "The server is busy, or a model or store is not available",
    }.items()
}
"""Error responses in the description of the API."""


def status_of(kind: type[Exception]) -> int:
    """Return the HTTP status of a class of errors."""
    return next((STATUS[cls] for cls in kind.__mro__ if cls in STATUS), 500)


def detail_of(error: Exception, *, limited: bool = False) -> ErrorDetail:
    """Describe an error; for a token that is ``limited`` to some collections, without the message if `is_hidden`."""
    kind = type(error)
    if not isinstance(error, errors.RagistryError):
        return ErrorDetail(type="ServerError", message="internal error of the server; see its log")
    while not hasattr(errors, kind.__name__):  # a private subclass
        kind = kind.__mro__[1]
    message = one_line(str(error), MESSAGE_LENGTH)
    return ErrorDetail(type=kind.__name__, message=HIDDEN if limited and is_hidden(kind) else message)


def is_hidden(kind: type[Exception]) -> bool:
    """Return whether a message may name paths, servers or other collections, so that limited tokens do not see it."""
    return not issubclass(kind, errors.ServerBusyError | errors.UnknownTechniqueError) and (
        status_of(kind) >= 500 or issubclass(kind, errors.ConfigError)
    )


def error_response(status: int, detail: ErrorDetail) -> JSONResponse:
    """Make an error response, with the headers Retry-After for status 503 and WWW-Authenticate for 401."""
    headers = {"Retry-After": str(RETRY_AFTER)} if status == 503 else {}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse({"error": detail.model_dump()}, status, headers)


def refusal(status: int, message: str) -> JSONResponse:
    """Make the response to a request that is refused before it reaches the library."""
    kind = {401: "AccessDeniedError", 403: "AccessDeniedError", 503: "ServerBusyError"}.get(status, "RequestError")
    return error_response(status, ErrorDetail(type=kind, message=message))


def handle_errors(app: FastAPI) -> None:
    """Convert every exception of the application's routes to a response."""

    @app.exception_handler(errors.RagistryError)
    async def known(request: Request, error: errors.RagistryError) -> JSONResponse:
        is_limited = getattr(request.scope.get("caller"), "limited", False)
        status = status_of(type(error))
        if is_hidden(type(error)):
            _log.error("%s %s: %s", request.method, request.url.path, error)
        return error_response(status, detail_of(error, limited=is_limited))

    @app.exception_handler(RequestValidationError)
    async def malformed(_: Request, error: RequestValidationError) -> JSONResponse:
        problems = [_problem(item) for item in error.errors()]
        return refusal(422, one_line("; ".join(problems), MESSAGE_LENGTH))

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> JSONResponse:
        status, message = error.status_code, str(error.detail)
        if status == 404:
            message = "this address does not exist; see /openapi.json"
        if message.startswith("Too many"):  # files or fields, counted by the form parser
            status = 413
        response = refusal(status, message)
        if status == 405:
            response.headers["Allow"] = ", ".join(_methods(request))
        return response

    @app.exception_handler(OSError)
    async def system_error(request: Request, error: OSError) -> JSONResponse:
        _log.error("%s %s: %s", request.method, request.url.path, error)
        if is_full(error):
            message = (
                "the disk of the server is full, and nothing was saved; free some space, then send the request again"
            )
            return error_response(507, ErrorDetail(type="ServerError", message=message))
        message = f"the operating system of the server refused: {error.strerror or type(error).__name__}; see its log"
        return error_response(503, ErrorDetail(type="ServerError", message=message))

    @app.exception_handler(Exception)
    async def unknown(request: Request, error: Exception) -> JSONResponse:
        _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
        return error_response(500, detail_of(error))


def _methods(request: Request) -> list[str]:
    """Return the methods of an address. An error of the router has only those of the first route that matches."""

    def is_served(method: str) -> bool:
        scope = {**request.scope, "method": method}
        return any(route.matches(scope)[0] is Match.FULL for route in request.app.routes)

    return list(filter(is_served, METHODS))


def _problem(item: dict[str, Any]) -> str:
    place = ".".join(str(part) for part in item["loc"])
    value = item.get("input")
    got = f", got {shown(value)}" if isinstance(value, str | int | float | bool) or value is None else ""
    return f"{place}: {problem_of(item)}{got}"
