"""The server: the API, health and metrics; optionally also the page and MCP, behind the same guard."""

from __future__ import annotations

import logging
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import uvicorn
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from ragistry import __version__
from ragistry.config.folder import JOBS
from ragistry.errors import ConfigError, RagistryError
from ragistry.http.errors import handle_errors
from ragistry.http.guard import LOOPBACK
from ragistry.models.queries import QueryEmbedder
from ragistry.server import routes_jobs, routes_library, routes_search, tasks
from ragistry.server.access import Tokens
from ragistry.server.gate import Gate, ServerLimits
from ragistry.server.guard import CallerGuard
from ragistry.server.jobs import SavedJobs
from ragistry.server.metrics import Metrics, MetricsMiddleware
from ragistry.server.route import ServerContext, caller_of
from ragistry.workspace import Workspace

if TYPE_CHECKING:
    from ragistry.server.mcp_mount import McpMount

_log = logging.getLogger(__name__)

GRACE = 10
"""Seconds for running requests when the server stops."""


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
    page: Starlette | None = None,
    mcp: bool = False,
) -> FastAPI:
    """Create the application of a workspace. Jobs run during its lifespan.

    Args:
        workspace: The open workspace. The application does not close it.
        limits: Limits of requests.
        exposed: Whether other machines can reach the server, so that a token is always required.
        page: Application of the page, to be mounted at ``/``.
        mcp: Serve MCP at ``/mcp``.

    Raises:
        StoreLockedError: Another server runs the jobs of this workspace.
    """
    limits = limits or ServerLimits()
    tokens, metrics = Tokens(workspace.root), Metrics()
    workspace.library.collections.entries()
    jobs = SavedJobs(
        workspace.path_of(workspace.settings.data_dir) / JOBS,
        {"ingest": partial(tasks.ingest, workspace), "comparison": partial(tasks.compare, workspace)},
    )
    served = ServerContext(workspace, jobs, Gate(limits))
    mcp_mount = _mcp_mount(workspace, tokens) if mcp else None

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            if mcp_mount is not None:
                await stack.enter_async_context(mcp_mount.running())
            if page is not None:
                await stack.enter_async_context(page.router.lifespan_context(page))
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
    _add_operations(app, served, metrics)
    if mcp_mount is not None:
        app.router.routes.append(Route("/mcp", mcp_mount))
    if page is not None:
        app.mount("/", page)  # last, because it matches every path
    if isinstance(workspace.embedder, QueryEmbedder):
        workspace.embedder.observe = metrics.batches.observe
    app.add_middleware(CallerGuard, tokens=tokens, exposed=exposed, upload_megabytes=limits.upload_megabytes)
    app.add_middleware(MetricsMiddleware, metrics=metrics)  # outermost, so that it counts refusals
    return app


def _mcp_mount(workspace: Workspace, tokens: Tokens) -> McpMount:
    from ragistry.server.mcp_mount import McpMount  # needs the extra `mcp`

    return McpMount(workspace, tokens)


def _add_operations(app: FastAPI, served: ServerContext, metrics: Metrics) -> None:
    """Add the routes for health and metrics. Metrics need the right ``admin`` if tokens are used."""
    known_ready = False

    @app.get("/healthz", include_in_schema=False)
    async def healthz() -> JSONResponse:
        return JSONResponse({"status": "ok"})

    @app.get("/readyz", include_in_schema=False)
    def readyz() -> JSONResponse:
        nonlocal known_ready
        try:
            served.workspace.store.count()
            if not known_ready:
                served.workspace.embedder.embed(["ready"], role="query")
                known_ready = True
        except RagistryError as error:
            _log.error("not ready: %s", error)
            return JSONResponse({"status": "not ready", "reason": type(error).__name__}, 503)
        return JSONResponse({"status": "ready"})

    @app.get("/metrics", include_in_schema=False)
    def figures(request: Request) -> Response:
        caller = caller_of(request)
        caller.check("admin")
        caller.check_unlimited("the metrics")
        text = metrics.text(served.workspace, served.gate, served.jobs)
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4; charset=utf-8")


def run(
    workspace: Workspace,
    listener: socket.socket,
    host: str,
    limits: ServerLimits,
    *,
    page: Starlette | None = None,
    mcp: bool = False,
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Serve until interrupted.

    Args:
        workspace: The open workspace.
        listener: Socket that is bound to ``host``.
        host: Address on which the server listens.
        limits: Limits of requests.
        page: Application of the page, to be mounted at ``/``.
        mcp: Serve MCP at ``/mcp``.
        ready: Called when the server accepts requests.

    Raises:
        ConfigError: See `check_exposure`.
        StoreError: The store cannot be opened.
    """
    check_exposure(host, Tokens(workspace.root), ui=page is not None)
    workspace.store.count()  # opens the store, so that another server over it is detected now
    app = create_app(workspace, limits, exposed=host not in LOOPBACK, page=page, mcp=mcp)
    config = uvicorn.Config(
        app, log_config=None, access_log=False, ws="none" if page is None else "auto", timeout_graceful_shutdown=GRACE
    )
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
        await super().shutdown(sockets)
