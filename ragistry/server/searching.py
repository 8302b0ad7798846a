"""The routes that answer questions: search, route, techniques."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from ragistry.cli.route import routing_technique
from ragistry.cli.search import as_mapping
from ragistry.cli.techniques import configured
from ragistry.server.routing import caller_of, needs, new_router, served_by
from ragistry.server.schemas import RouteAnswer, RouteRequest, SearchAnswer, SearchRequest, TechniquesAnswer
from ragistry.techniques.routing.technique import CollectionRoutedTechnique

router = new_router()


@router.post("/search", response_model=SearchAnswer, openapi_extra=needs("read", bounded=True))
def search(request: Request, body: SearchRequest) -> Any:
    """Search one collection, or all that can be reached."""
    library, caller = served_by(request).workspace.library, caller_of(request)
    if body.collection is not None:
        caller.check_collection(library, body.collection)
    where = caller.where(library, body.where)
    return as_mapping(library.search(body.query, body.collection, body.top_k, technique=body.technique, where=where))


@router.post("/route", response_model=RouteAnswer, openapi_extra=needs("read", bounded=True))
def route(request: Request, body: RouteRequest) -> Any:
    """Say where a query would be searched, with every score and the rule that decided."""
    workspace, caller = served_by(request).workspace, caller_of(request)
    name = routing_technique(workspace, body.technique)
    routed: CollectionRoutedTechnique = workspace.technique(name).technique  # type: ignore[assignment]
    chosen = routed.route(body.query, caller.where(workspace.library, body.where))
    return {"query": body.query, "technique": name} | chosen.detail()


@router.get("/techniques", response_model=TechniquesAnswer, openapi_extra=needs("read"))
def techniques(request: Request) -> Any:
    """List the techniques that can be named in a search."""
    registry = served_by(request).workspace.registry
    return {"techniques": configured(registry), "broken": registry.broken}
