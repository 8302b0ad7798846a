"""How a route is declared: with the right that it needs, which is checked before the body of a request is read."""

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
from ragistry.server.access import RIGHTS, Caller, Right
from ragistry.server.answers import RESPONSES
from ragistry.server.gate import Gate
from ragistry.server.jobs import Jobs
from ragistry.workspace import Workspace

RIGHT, BOUNDED = "x-right", "x-bounded"


@dataclass(frozen=True, slots=True)
class Served:
    """What every route works on; ``app.state.served``."""

    workspace: Workspace
    jobs: Jobs
    gate: Gate


def needs(right: Right, *, bounded: bool = False) -> dict[str, Any]:
    """For ``openapi_extra`` of a route. ``bounded``: it asks models, so that only so many run at the same time."""
    return {RIGHT: right, BOUNDED: bounded}


class CheckedRoute(APIRoute):
    """A route that says what right it needs. One that does not cannot be made."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler, extra = super().get_route_handler(), self.openapi_extra or {}
        right, bounded = extra.get(RIGHT), extra.get(BOUNDED)
        if right not in RIGHTS:
            raise TypeError(f"the route {self.path!r} needs openapi_extra=needs(RIGHT), one of {', '.join(RIGHTS)}")

        async def checked(request: Request) -> Response:
            caller_of(request).check(right)
            if not request.headers.get("content-type", "").lower().startswith("multipart/"):
                check_text(await request.body())
            if not bounded:
                return await handler(request)
            await request.body()  # before a place is taken: a client that sends half a body holds nothing
            return await served_by(request).gate.run(handler(request))

        return checked


def new_router() -> APIRouter:
    """A router below ``/v1``."""
    return APIRouter(prefix="/v1", route_class=CheckedRoute, responses=RESPONSES)


def served_by(request: Request) -> Served:
    """What the application of a request serves."""
    served: Served = request.app.state.served
    return served


def caller_of(request: Request) -> Caller:
    """Who asks; the guard has put it there."""
    caller: Caller = request.scope["caller"]
    return caller


def check_text(body: bytes) -> None:
    """Raise `RequestError` for JSON with half of a surrogate pair, which no file and no answer can hold."""
    if b"\\ud" not in body.lower() and b"\0" not in body and _is_utf8(body):  # Python reads UTF-16 and UTF-32 too
        return
    try:
        json.dumps(json.loads(body), ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise RequestError(
            f"the text has half a surrogate pair, {error.object[error.start]!r}; replace it before it is sent"
        ) from error
    except (RecursionError, ValueError):
        return  # the route's own check says what is wrong


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True
