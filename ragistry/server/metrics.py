"""Metrics for Prometheus: requests, latency, queue, embedding batches, jobs, chunks."""

from __future__ import annotations

from time import perf_counter

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ragistry.server.gate import Gate
from ragistry.server.jobs import SavedJobs
from ragistry.workspace import Workspace

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
BATCHES = (1, 2, 4, 8, 16, 32, 64)


class Metrics:
    """The metrics of one server, in their own registry."""

    def __init__(self) -> None:
        self.registry = to = CollectorRegistry()
        self.requests = Counter("ragistry_requests", "Requests", ["method", "route", "status"], registry=to)
        self.seconds = Histogram(
            "ragistry_request_seconds", "Latency of requests", ["route"], buckets=SECONDS, registry=to
        )
        self.batches = Histogram(
            "ragistry_query_batch_size", "Queries embedded in one call", buckets=BATCHES, registry=to
        )
        self._running = Gauge("ragistry_searches_running", "Running searches", registry=to)
        self._waiting = Gauge("ragistry_searches_waiting", "Waiting searches", registry=to)
        self._jobs = Gauge("ragistry_jobs", "Jobs by kind and state", ["kind", "state"], registry=to)
        self._chunks = Gauge("ragistry_chunks", "Chunks in the store", registry=to)

    def text(self, workspace: Workspace, gate: Gate, jobs: SavedJobs) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        self._running.set(gate.running)
        self._waiting.set(gate.waiting)
        self._chunks.set(workspace.store.count())
        for (kind, state), number in jobs.count_by_state().items():
            self._jobs.labels(kind, state).set(number)
        return generate_latest(self.registry)


class MetricsMiddleware:
    """ASGI middleware that counts requests by route and status. Requests without a route count as ``other``."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status = perf_counter(), 500

        async def send_measured(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, send_measured)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            self.metrics.requests.labels(scope["method"], route, str(status)).inc()
            self.metrics.seconds.labels(route).observe(perf_counter() - start)
