"""The server: the API and health; optionally also the page and MCP, behind the same guard."""

from __future__ import annotations

import logging
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from types import FrameType

import uvicorn
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Scope

from ragistry import __version__
from ragistry.config.folder import JOBS, UPLOADS
from ragistry.errors import ConfigError, InvalidConfigError, RagistryError
from ragistry.http.errors import handle_errors, refusal
from ragistry.http.guard import BODY_MEGABYTES, LOOPBACK, BodyLimit, Guarded, HostGuard, OriginGuard, TokenGuard
from ragistry.models.queries import embedded_together
from ragistry.server import routes_jobs, routes_library, routes_search, tasks
from ragistry.server.access import LOCAL_CALLER, Caller, Tokens
from ragistry.server.gate import Gate, ServerLimits
from ragistry.server.jobs import Kind, SavedJobs, Task
from ragistry.server.joining import SearchJoiner
from ragistry.server.route import ServerContext
from ragistry.server.uploads import UPLOAD_MEGABYTES, Uploads
from ragistry.utils.wording import numbered
from ragistry.workspace import Workspace

_log = logging.getLogger(__name__)

GRACE, PAGE_GRACE = 10, 3
"""Seconds for running requests when the server stops, without and with the page."""

OPEN_PATHS = frozenset({"/healthz", "/readyz"})
"""Paths that need no token: they say only whether the server works."""
UPLOAD_PATH, SMALL = "/v1/ingest/", ("/v1/", "/mcp")


def check_exposure(host: str, tokens: Tokens, *, ui: bool = False) -> None:
    """Check that other machines need a token, and that the page is served to this machine only.

    Raises:
        ConfigError: The options do not allow this.
    """
    if host in LOOPBACK and not (ui and tokens.entries()):
        return
    if ui:
        raise ConfigError(
            "--ui works only on this machine and without tokens, because the page shows all collections; "
            "omit it, or run `ragistry ui`, which uses its own token"
        )
    if not tokens.entries():
        raise ConfigError(
            f"--host {host!r} opens the server to other machines; first create a token: `ragistry serve token NAME`, "
            "or omit the option"
        )


def create_app(
    workspace: Workspace,
    limits: ServerLimits | None = None,
    *,
    exposed: bool = False,
    page: Callable[[SavedJobs], Starlette] | None = None,
    mcp: bool = False,
    guard: Callable[[ASGIApp], ASGIApp] | None = None,
) -> FastAPI:
    """Create the application of a workspace. Jobs run during its lifespan.

    Args:
        workspace: The open workspace. The application does not close it.
        limits: Limits of requests.
        exposed: Whether other machines can reach the server, so that a token is always required.
        page: Creates the application of the page, which is mounted at ``/``, from the jobs.
        mcp: Serve MCP at ``/mcp``.
        guard: Refuses requests and identifies callers; None: `CallerGuard`.

    Raises:
        StoreLockedError: Another server or page runs the jobs of this workspace.
    """
    limits = limits or ServerLimits()
    tokens = Tokens(workspace.root)
    workspace.library.collections.entries()
    jobs = saved_jobs(workspace, limits.upload_megabytes)
    page_app = None if page is None else page(jobs)
    served = ServerContext(
        workspace, jobs, Gate(limits), SearchJoiner(partial(embedded_together, workspace.library.embedder))
    )
    mcp_mount = None
    if mcp:
        from ragistry.server.mcp_mount import McpMount  # needs the extra `mcp`

        mcp_mount = McpMount(workspace, tokens)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            if mcp_mount is not None:
                await stack.enter_async_context(mcp_mount.running())
            if page_app is not None:
                await stack.enter_async_context(page_app.router.lifespan_context(page_app))
            stack.callback(jobs.close)
            jobs.start()
            yield

    app = FastAPI(
        title="Ragistry", version=__version__, description="Search, routing, collections, ingest and comparisons.",
        docs_url=None, redoc_url=None, lifespan=lifespan,
    )  # fmt: skip
    app.state.served = served
    handle_errors(app)
    for routes in (routes_search, routes_library, routes_jobs):
        app.include_router(routes.router)
    _add_health(app, workspace)
    if mcp_mount is not None:
        app.router.routes.append(Route("/mcp", mcp_mount))
    if page_app is not None:
        app.mount("/", page_app)  # last, because it matches every path
    if guard is None:
        guard = partial(CallerGuard, tokens=tokens, exposed=exposed, upload_megabytes=limits.upload_megabytes)
    app.add_middleware(guard)
    return app


class CallerGuard(Guarded):
    """ASGI middleware that stores the `Caller` of a request in ``scope["caller"]``.

    A token is required if the server is exposed, or if config/tokens.yaml contains one. Without tokens, only requests
    from this machine pass, and only pages of this server may change anything. Tokens make these checks unnecessary,
    because no browser sends a token by itself.

    Args:
        app: The next application.
        tokens: The tokens of the workspace.
        exposed: Whether the server listens beyond loopback.
        upload_megabytes: Maximum size of a request that uploads sources.
    """

    def __init__(self, app: ASGIApp, *, tokens: Tokens, exposed: bool, upload_megabytes: int) -> None:
        def megabytes(path: str) -> int:
            return BODY_MEGABYTES if path.startswith(SMALL) and not path.startswith(UPLOAD_PATH) else upload_megabytes

        super().__init__(BodyLimit(app, megabytes=megabytes, respond=refusal), self, respond=refusal)
        self.tokens = tokens
        self.exposed = exposed
        self._token = TokenGuard(tokens.caller)
        self._host = HostGuard(LOOPBACK, "create a token: `ragistry serve token NAME`")
        self._origin = OriginGuard()

    def problem(self, scope: Scope, headers: Headers) -> tuple[int, str] | None:
        if scope["type"] == "http" and scope["path"] in OPEN_PATHS:
            scope["caller"] = Caller("public", frozenset())
            return None
        try:
            needs_token = bool(self.tokens.entries()) or self.exposed
        except (InvalidConfigError, OSError) as error:
            _log.error("all requests are refused: %s", error)
            return 503, "the server cannot read its tokens; see its log"
        if needs_token:
            return self._token.problem(scope, headers)
        scope["caller"] = LOCAL_CALLER
        return self._host.problem(scope, headers) or self._origin.problem(scope, headers)


def saved_jobs(workspace: Workspace, upload_megabytes: int = UPLOAD_MEGABYTES) -> SavedJobs:
    """Return the jobs of a workspace, which run on its library. Raises `StoreLockedError`; see `SavedJobs`."""
    data = workspace.path_of(workspace.settings.data_dir)
    uploads = Uploads(data / UPLOADS, lambda: workspace.library.store.sources(), upload_megabytes)
    work: dict[Kind, Task] = {
        "ingest": partial(tasks.ingest, workspace),
        "comparison": partial(tasks.compare, workspace),
    }
    return SavedJobs(data / JOBS, uploads, work)


def _add_health(app: FastAPI, workspace: Workspace) -> None:
    """Add the routes that say whether the process runs, and whether it can answer."""
    known_ready = False

    @app.get("/healthz", include_in_schema=False)
    async def healthz() -> JSONResponse:
        return JSONResponse({"status": "ok"})

    @app.get("/readyz", include_in_schema=False)
    def readyz() -> JSONResponse:
        nonlocal known_ready
        try:
            workspace.store.count()
            if not known_ready:
                workspace.embedder.embed(["ready"], role="query")
                known_ready = True
        except RagistryError as error:
            _log.error("not ready: %s", error)
            return JSONResponse({"status": "not ready", "reason": type(error).__name__}, 503)
        return JSONResponse({"status": "ready"})


def run(app: FastAPI, listener: socket.socket, *, ready: Callable[[], None], has_page: bool = False) -> None:
    """Serve an application of `create_app` until interrupted. A second Ctrl+C ends the process at once.

    Args:
        app: The application.
        listener: Bound socket.
        ready: Called when the server accepts requests.
        has_page: Whether the application has the page, whose windows stay connected.
    """
    config = uvicorn.Config(
        app, log_config=None, access_log=False, ws="auto" if has_page else "none",
        timeout_graceful_shutdown=PAGE_GRACE if has_page else GRACE,
    )  # fmt: skip
    _Server(config, app.state.served.jobs, ready).run(sockets=[listener])


class _Server(uvicorn.Server):
    """Call ``ready`` after the start, and stop the jobs while running requests end."""

    def __init__(self, config: uvicorn.Config, jobs: SavedJobs, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._jobs = jobs
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()  # from here on, an interrupt ends it in order

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._jobs.stop()
        if waiting := len(self._jobs.unfinished()):
            _log.warning(
                "stopping; %s at the next start; press Ctrl+C again to end at once",
                numbered(waiting, "unfinished [job continues|jobs continue]"),
            )
        # Uvicorn would log a traceback for each request that is cut off, such as an upload.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit and sig == signal.SIGINT:
            os._exit(130)  # also during a call to a model, which no thread can end
        super().handle_exit(sig, frame)
