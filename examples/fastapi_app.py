"""Ragistry as a library in a web application: two routes over one workspace.

usage: RAGISTRY_WORKSPACE=demo-workspace uvicorn examples.fastapi_app:app

FastAPI and uvicorn come with the extra `server`. Anyone who can reach the port can search: protect it like the rest of
your application.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request
from fastapi.responses import JSONResponse

from ragistry import open_workspace
from ragistry.errors import CollectionNotFoundError, QueryError, RagistryError, UnknownTechniqueError

ASKED_WRONGLY = (QueryError, CollectionNotFoundError, UnknownTechniqueError)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """One workspace while the application runs; it is thread-safe."""
    with open_workspace(os.environ.get("RAGISTRY_WORKSPACE", "demo-workspace")) as app.state.workspace:
        yield


app = FastAPI(title="Search", lifespan=lifespan)


@app.exception_handler(RagistryError)
async def explain(_: Request, error: RagistryError) -> JSONResponse:
    """The error's message, which includes the remedy."""
    return JSONResponse({"error": str(error)}, 400 if isinstance(error, ASKED_WRONGLY) else 503)


@app.get("/search")
async def search(
    q: str, collection: str | None = None, technique: str | None = None, top_k: Annotated[int, Query(ge=1, le=50)] = 5
) -> dict[str, Any]:
    # A search computes, so it runs in a thread of a pool; other requests go on meanwhile.
    result = await app.state.workspace.asearch(q, technique, collection, top_k)
    return {"ms": result.search_time_ms, "documents": [document.to_dict() for document in result.documents]}


@app.get("/collections")
def collections() -> Any:
    return app.state.workspace.library.list_collections()
