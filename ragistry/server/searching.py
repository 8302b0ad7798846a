"""The routes that answer questions: search, answer, route, techniques."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from starlette.requests import Request

from ragistry.presentation.plain import answer_as_mapping, result_as_mapping, techniques_as_mappings
from ragistry.server.routing import caller_of, needs, new_router, served_by
from ragistry.server.schemas import (
    AnswerAnswer,
    RouteAnswer,
    RouteRequest,
    SearchAnswer,
    SearchBody,
    TechniquesAnswer,
)
from ragistry.techniques.routing.technique import CollectionRoutedTechnique, routing_technique
from ragistry.types import SearchRequest

router = new_router()


@router.post("/search", response_model=SearchAnswer, openapi_extra=needs("read", bounded=True))
def search(request: Request, body: SearchBody) -> Any:
    """Search one collection, or all that can be reached."""
    return result_as_mapping(served_by(request).workspace.library.run_search(_allowed(request, body)))


@router.post("/answer", response_model=AnswerAnswer, openapi_extra=needs("read", bounded=True))
def answer(request: Request, body: SearchBody) -> Any:
    """Search, and let the configured generator answer from what was found, each sentence with checked citations."""
    return answer_as_mapping(served_by(request).workspace.library.run_answer(_allowed(request, body)))


def _allowed(request: Request, body: SearchBody) -> SearchRequest:
    """The search within the collections that the caller may read."""
    library, caller = served_by(request).workspace.library, caller_of(request)
    if body.collection is not None:
        caller.check_collection(library, body.collection)
    return replace(SearchRequest(**dict(body)), where=caller.where(library, body.where))


@router.post("/route", response_model=RouteAnswer, openapi_extra=needs("read", bounded=True))
def route(request: Request, body: RouteRequest) -> Any:
    """Say where a query would be searched, with every score and the rule that decided."""
    workspace, caller = served_by(request).workspace, caller_of(request)
    name = routing_technique(workspace.registry, body.technique)
    routed: CollectionRoutedTechnique = workspace.technique(name).technique  # type: ignore[assignment]
    chosen = routed.route(body.query, caller.where(workspace.library, body.where))
    return {"query": body.query, "technique": name} | chosen.detail()


@router.get("/techniques", response_model=TechniquesAnswer, openapi_extra=needs("read"))
def techniques(request: Request) -> Any:
    """List the techniques that can be named in a search."""
    registry = served_by(request).workspace.registry
    return {"techniques": techniques_as_mappings(registry), "broken": registry.broken}
