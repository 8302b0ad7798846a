"""Routes for queries: search, answer, route, techniques."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from starlette.requests import Request

from ragistry.http.errors import HIDDEN
from ragistry.presentation.plain import as_mapping, describe_techniques
from ragistry.server.route import caller_of, needs, new_router, served_by
from ragistry.server.schemas import (
    GeneratedAnswer,
    RouteRequest,
    RouteResponse,
    SearchBody,
    SearchResponse,
    TechniqueList,
)
from ragistry.techniques.routing.technique import routing_technique
from ragistry.types import SearchRequest

router = new_router()


@router.post("/search", response_model=SearchResponse, openapi_extra=needs("read", bounded=True))
def search(request: Request, body: SearchBody) -> Any:
    """Search one collection, or all collections of the token."""
    library = served_by(request).workspace.library
    found = as_mapping(library.run_search(_allowed(request, body)), library.reading.language)
    if caller_of(request).limited:  # the reason after the colon may name files and servers
        for stage in found["trace"]:
            stage["degraded"] = stage["degraded"].partition(": ")[0]
    return found


@router.post("/answer", response_model=GeneratedAnswer, openapi_extra=needs("read", bounded=True))
def answer(request: Request, body: SearchBody) -> Any:
    """Search, and generate an answer from the results, with checked citations for each sentence."""
    library = served_by(request).workspace.library
    made = as_mapping(library.run_answer(_allowed(request, body)), library.reading.language)
    if caller_of(request).limited:
        made["degraded"] = [reason.partition(": ")[0] for reason in made["degraded"]]
    return made


def _allowed(request: Request, body: SearchBody) -> SearchRequest:
    """Limit a search to the collections that the caller may read."""
    library, caller = served_by(request).workspace.library, caller_of(request)
    if body.collection is not None:
        caller.check_collection(library, body.collection)
    return replace(SearchRequest(**dict(body)), where=caller.where(library, body.where))


@router.post("/route", response_model=RouteResponse, openapi_extra=needs("read", bounded=True))
def route(request: Request, body: RouteRequest) -> Any:
    """Choose the collections for a query, and return all scores and the rule that decided."""
    workspace, caller = served_by(request).workspace, caller_of(request)
    name, routed = routing_technique(workspace.registry, body.technique)
    chosen = routed.route(body.query, caller.where(workspace.library, body.where))
    return {"query": body.query, "technique": name} | chosen.detail()


@router.get("/techniques", response_model=TechniqueList, openapi_extra=needs("read"))
def techniques(request: Request) -> Any:
    """List the techniques. A limited token sees neither their configuration nor why one cannot be used."""
    registry = served_by(request).workspace.registry
    rows, broken = describe_techniques(registry), registry.broken
    if caller_of(request).limited:  # both may name files, servers and collections
        rows = [replace(row, use="", config={}, unusable=row.unusable and HIDDEN) for row in rows]
        broken = dict.fromkeys(broken, HIDDEN)
    return {"techniques": rows, "broken": broken}
