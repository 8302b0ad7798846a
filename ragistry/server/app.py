"""The server: the API, health and metrics, and beside them the page and MCP, behind one guard."""

from __future__ import annotations

import logging
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from functools import partial
from typing import Any

import uvicorn
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from ragistry import __version__
from ragistry.config.folder import JOBS
from ragistry.errors import ConfigError, RagistryError
from ragistry.models.batching import BatchedQueries
from ragistry.models.registry import CachedQueries
from ragistry.server import answers, ingesting, library, mounts, searching, work
from ragistry.server.access import Tokens
from ragistry.server.gate import Gate, Limits
from ragistry.server.guard import Guard
from ragistry.server.jobs import Jobs
from ragistry.server.metrics import Measured, Metrics
from ragistry.server.routing import Served, caller_of
from ragistry.web.security import LOOPBACK
from ragistry.workspace import Workspace

_log = logging.getLogger(__name__)

GRACE = 10
"""Seconds that requests have to end when the server stops."""


def check_exposure(host: str, tokens: Tokens, *, ui: bool = False) -> None:
    """Raise `ConfigError` where the server would be open to other machines without a token, or the page would."""
    if host in LOOPBACK and not (ui and tokens.entries()):
        return
    if ui:
        raise ConfigError(
            "--ui serves this machine only, without tokens: the page cannot be limited to a token's collections; "
            "leave it out, or run `ragistry ui`, which makes a token of its own"
        )
    if not tokens.entries():
        raise ConfigError(
            f"--host {host!r} lets other machines in; make a token first with `ragistry serve token NAME`, "
            "or leave the option out"
        )


def create_app(
    workspace: Workspace, limits: Limits | None = None, *, exposed: bool = False, ui: bool = False, mcp: bool = False
) -> FastAPI:
    """The application over an open workspace, which stays its owner's to close. Its jobs run while it does (lifespan).

    ``exposed``: other machines reach it, so that a token is always needed. ``ui``, ``mcp``: mount the page, and MCP at
    ``/mcp``. Raises `StoreLockedError` where another server runs the jobs of this workspace.
    """
    limits = limits or Limits()
    tokens, metrics = Tokens(workspace.root), Metrics()
    workspace.library.collections.entries()
    do: dict[Any, Any] = {"ingest": partial(work.ingest, workspace), "comparison": partial(work.compare, workspace)}
    jobs = Jobs(workspace.path_of(workspace.settings.data_dir) / JOBS, do)
    served = Served(workspace, jobs, Gate(limits))
    agents = mounts.Agents(workspace, tokens) if mcp else None
    page, page_jobs = mounts.page(workspace) if ui else (None, nullcontext())

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            if agents is not None:
                await stack.enter_async_context(agents.running())
            if page is not None:
                stack.enter_context(page_jobs)
                await stack.enter_async_context(page.router.lifespan_context(page))
            stack.callback(jobs.close)
            jobs.start()
            yield

    app = FastAPI(
        title="Ragistry", version=__version__, description="Search, routing, collections, ingest and comparisons.",
        docs_url=None, redoc_url=None, lifespan=lifespan,
    )  # fmt: skip
    app.state.served = served
    answers.install(app)
    for router in (searching.router, library.router, ingesting.router):
        app.include_router(router)
    _add_operations(app, served, metrics)
    if agents is not None:
        app.router.routes.append(Route(mounts.MCP_PATH, agents))
    if page is not None:
        app.mount("/", page)  # the last one: it answers whatever is left
    if isinstance(workspace.embedder, CachedQueries) and isinstance(workspace.embedder.embedder, BatchedQueries):
        workspace.embedder.embedder.observe = metrics.batches.observe
    app.add_middleware(Guard, tokens=tokens, exposed=exposed, upload_megabytes=limits.upload_megabytes)
    app.add_middleware(Measured, metrics=metrics)  # the outer one: refusals are counted too
    return app


def _add_operations(app: FastAPI, served: Served, metrics: Metrics) -> None:
    """Whether the server works, and figures. Metrics need the right ``admin`` where tokens are used."""
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
    limits: Limits,
    *,
    ui: bool = False,
    mcp: bool = False,
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Serve on a ``listener`` that is bound to ``host``, until interrupted. ``ready`` is called when all is open.

    Raises `ConfigError`, `StoreError` for what keeps the server from starting.
    """
    check_exposure(host, Tokens(workspace.root), ui=ui)
    workspace.store.count()  # opens it: another server over it is noticed now
    app = create_app(workspace, limits, exposed=host not in LOOPBACK, ui=ui, mcp=mcp)
    config = uvicorn.Config(
        app, log_config=None, access_log=False, ws="auto" if ui else "none", timeout_graceful_shutdown=GRACE
    )
    _Server(config, app.state.served.jobs, ready).run(sockets=[listener])


class _Server(uvicorn.Server):
    """Says when it is ready; stops the jobs while requests still have their time to end."""

    def __init__(self, config: uvicorn.Config, jobs: Jobs, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._jobs = jobs
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()  # from here on an interrupt ends it in order

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._jobs.stop()
        await super().shutdown(sockets)
