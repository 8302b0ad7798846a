"""Routes for queries: search, answer, route, techniques, and the tools that read texts."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from typing import Any

from pydantic import create_model
from starlette.concurrency import iterate_in_threadpool, run_in_threadpool
from starlette.requests import Request
from starlette.responses import StreamingResponse

from ragistry.answers.answer import Answer
from ragistry.http.errors import HIDDEN, detail_of
from ragistry.library.asked import log_question
from ragistry.presentation.plain import as_mapping, describe_techniques
from ragistry.server.route import caller_of, library_of, needs, new_router, reach_of, served_by
from ragistry.server.schemas import (
    GeneratedAnswer,
    ManyResults,
    ManySearches,
    RequestModel,
    RouteRequest,
    RouteResponse,
    SearchBody,
    SearchResponse,
    TechniqueList,
    fields_of,
)
from ragistry.techniques.routing.technique import routing_technique
from ragistry.tools.tool import Tool
from ragistry.tools.toolbox import READING
from ragistry.types import RetrievalResult, SearchRequest

log = logging.getLogger(__name__)

router = new_router()


@router.post("/search", response_model=SearchResponse, openapi_extra=needs("read", bounded=True))
async def search(request: Request, body: SearchBody) -> Any:
    """Search one collection, or all collections of the token."""
    joiner = served_by(request).joiner
    if body.technique in joiner.quick:
        return await joiner.run(body.query, partial(_search, request, body))
    return await run_in_threadpool(_search, request, body)


def _search(request: Request, body: SearchBody) -> dict[str, Any]:
    served = served_by(request)
    values = _values(request, served.workspace.library.run_search(_allowed(request, body)))
    if served.workspace.registry.chosen(body.technique).can_rank:
        served.joiner.quick.add(body.technique)
    return values


@router.post("/search/many", response_model=ManyResults, openapi_extra=needs("read", bounded=True))
def search_many(request: Request, body: ManySearches) -> Any:
    """Search for each of several queries, which are embedded together."""
    found = library_of(request).run_searches(body.queries, _allowed(request, body))
    return {"results": [_values(request, one) for one in found]}


@router.post("/answer", response_model=GeneratedAnswer, openapi_extra=needs("read", bounded=True))
def answer(request: Request, body: SearchBody) -> Any:
    """Search, and generate an answer from the results, with checked citations for each sentence."""
    return _values(request, library_of(request).run_answer(_allowed(request, body)))


@router.post(
    "/answer/stream",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}}},
    openapi_extra=needs("read", bounded=True),
)
def answer_stream(request: Request, body: SearchBody) -> StreamingResponse:
    """Generate an answer as server-sent events: each `piece` of the text, then the `answer` of `/v1/answer`.

    An `error` in place of the answer has its type and message.
    """
    stream = library_of(request).run_answer_stream(_allowed(request, body))

    async def events() -> AsyncIterator[str]:
        try:
            async with served_by(request).gate.slot():
                async for piece in iterate_in_threadpool(stream):
                    yield _event("piece", piece)
                yield _event("answer", _values(request, stream.answer))
        except Exception as error:  # noqa: BLE001, the response has begun
            log.error("%s: %s", request.url.path, error)
            yield _event("error", detail_of(error, limited=caller_of(request).limited).model_dump())
        finally:
            stream.close()

    return StreamingResponse(events(), media_type="text/event-stream", headers={"Cache-Control": "no-store"})


def _event(name: str, data: Any) -> str:
    return f"event: {name}\ndata: {json.dumps(data, default=str)}\n\n"


def _values(request: Request, found: RetrievalResult | Answer) -> dict[str, Any]:
    library, limited = library_of(request), caller_of(request).limited
    values = as_mapping(found, library.reading.language)
    if isinstance(found, Answer) and found.confirmed:
        log_question(library, found.query, "server", limited=limited, confirmed=found.confirmed)
    if limited:  # the reason after the colon may name files and servers
        for stage in values.get("trace", ()):
            stage["degraded"] = stage["degraded"].partition(": ")[0]
        if isinstance(found, Answer):
            values["degraded"] = [reason.partition(": ")[0] for reason in values["degraded"]]
    return values


def _allowed(request: Request, body: SearchBody | ManySearches) -> SearchRequest:
    """Limit a search to the collections that the caller may read."""
    library, caller = library_of(request, *filter(None, [body.collection])), caller_of(request)
    for text in body.queries if isinstance(body, ManySearches) else [body.query]:
        log_question(library, text, "server", limited=caller.limited)
    options = {name: value for name, value in body if name != "queries"}
    return replace(SearchRequest(**{"query": ""} | options), where=caller.where(library, body.where))


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


def _add_tool(tool: Tool) -> None:
    """Add the route of a tool that reads texts."""
    body_type: Any = create_model(f"{tool.request.__name__}Body", __base__=RequestModel, **fields_of(tool.request))

    def run(request: Request, body: Any) -> Any:
        return tool.run(reach_of(request), tool.request(**dict(body)))

    run.__annotations__ = {"request": Request, "body": body_type, "return": Any}
    run.__doc__ = tool.description
    run.__name__ = tool.name
    router.post(f"/tools/{tool.name}", response_model=tool.answer, openapi_extra=needs("read", bounded=True))(run)


for _one in READING.values():
    _add_tool(_one)
