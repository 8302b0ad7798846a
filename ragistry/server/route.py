"""Declare routes with the right that they need, which is checked before the body of a request is read."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from ragistry.errors import RequestError
from ragistry.http.errors import RESPONSES
from ragistry.library.service import DocumentService
from ragistry.server.access import RIGHTS, Caller, Right
from ragistry.server.gate import Gate
from ragistry.server.jobs import SavedJobs
from ragistry.server.joining import SearchJoiner
from ragistry.tools.reach import Reach
from ragistry.workspace import Workspace

RIGHT, BOUNDED = "x-right", "x-bounded"


@dataclass(frozen=True, slots=True)
class ServerContext:
    """The objects that all routes use; stored in ``app.state.served``."""

    workspace: Workspace
    jobs: SavedJobs
    gate: Gate
    joiner: SearchJoiner


def needs(right: Right, *, bounded: bool = False) -> dict[str, Any]:
    """Make ``openapi_extra`` of a route. ``bounded`` limits concurrent requests, for routes that use models."""
    return {RIGHT: right, BOUNDED: bounded}


class CheckedRoute(APIRoute):
    """A route that checks its right. A route without a right raises `TypeError`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler, extra = super().get_route_handler(), self.openapi_extra or {}
        right, bounded = extra.get(RIGHT), extra.get(BOUNDED)
        if right not in RIGHTS:
            raise TypeError(f"the route {self.path!r} needs openapi_extra=needs(RIGHT) with one of {', '.join(RIGHTS)}")

        async def checked(request: Request) -> Response:
            caller_of(request).check(right)
            if not request.headers.get("content-type", "").lower().startswith("multipart/"):
                check_text(await request.body())
            if not bounded:
                return await handler(request)
            await request.body()  # first, so that a client that sends half a body occupies no slot
            return await served_by(request).gate.run(handler(request))

        return checked


def new_router() -> APIRouter:
    """Create a router for ``/v1``."""
    return APIRouter(prefix="/v1", route_class=CheckedRoute, responses=RESPONSES)


def served_by(request: Request) -> ServerContext:
    """Return the objects that the application of a request uses."""
    served: ServerContext = request.app.state.served
    return served


def caller_of(request: Request) -> Caller:
    """Return the caller, which `CallerGuard` has identified."""
    caller: Caller = request.scope["caller"]
    return caller


def library_of(request: Request, *collections: str) -> DocumentService:
    """Return the library. Raises `CollectionNotFoundError` if the caller may not access one of these collections."""
    library = served_by(request).workspace.library
    for name in collections:
        caller_of(request).check_collection(library, name)
    return library


def reach_of(request: Request) -> Reach:
    """Return the collections that the caller can search."""
    return caller_of(request).reach(library_of(request))


def check_text(body: bytes) -> None:
    """Raise `RequestError` for JSON with an unpaired surrogate, which cannot be written as UTF-8."""
    if b"\\ud" not in body.lower() and b"\0" not in body and _is_utf8(body):  # Python reads UTF-16 and UTF-32 too
        return
    try:
        json.dumps(json.loads(body), ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise RequestError(
            f"the text contains an unpaired surrogate, {error.object[error.start]!r}; replace it"
        ) from error
    except (RecursionError, ValueError):
        return  # the route reports it


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True
