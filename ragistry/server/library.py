"""The routes of the library: collections and their sources."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query
from starlette.requests import Request

from ragistry.errors import AccessDeniedError
from ragistry.library.service import collection_rows, source_row
from ragistry.presentation.plain import document_as_mapping
from ragistry.server.access import Caller
from ragistry.server.routing import caller_of, needs, new_router, served_by
from ragistry.server.schemas import (
    ChunksAnswer,
    CollectionChange,
    CollectionModel,
    CollectionsAnswer,
    Move,
    NewCollection,
    SourceAnswer,
    SourceNames,
    SourcesAnswer,
)
from ragistry.server.work import FOLDER_ID, SENT_FROM
from ragistry.utils.joined import joined_text

router = new_router()
FolderId = Annotated[str | None, Query(pattern=FOLDER_ID, description="as it was sent with files")]
Name = Annotated[str, Query(min_length=1, max_length=1_000, description="name of the source")]


def _check_may_be_named(caller: Caller, name: str) -> None:
    """A token that is limited to some collections makes no others, whether they are there or not."""
    if caller.collections is not None and name not in caller.collections:
        raise AccessDeniedError(f"the token {caller.name!r} is not for a collection {name!r}; use one that is")


def _row(request: Request, name: str) -> dict[str, Any]:
    library = served_by(request).workspace.library
    entry = library.collections.entry(name)
    return collection_rows([entry], library.sources(name))[0]


@router.get("/collections", response_model=CollectionsAnswer, openapi_extra=needs("read"))
def list_collections(request: Request) -> Any:
    """List the collections, with their sources and chunks counted."""
    reach = caller_of(request).reach(served_by(request).workspace.library)
    reach.check()
    return {"collections": collection_rows(reach.entries(), reach.sources())}


@router.post("/collections", status_code=201, response_model=CollectionModel, openapi_extra=needs("admin"))
def create_collection(request: Request, body: NewCollection) -> Any:
    """Make a collection."""
    _check_may_be_named(caller_of(request), body.name)
    served_by(request).workspace.library.create_collection(body.name, body.description, body.display_name)
    return _row(request, body.name)


@router.get("/collections/{collection}", response_model=CollectionModel, openapi_extra=needs("read"))
def get_collection(request: Request, collection: str) -> Any:
    """One collection."""
    caller_of(request).check_collection(served_by(request).workspace.library, collection)
    return _row(request, collection)


@router.patch("/collections/{collection}", response_model=CollectionModel, openapi_extra=needs("admin"))
def change_collection(request: Request, collection: str, body: CollectionChange) -> Any:
    """Describe a collection anew, or rename it; searches find all of it at any time."""
    library, caller = served_by(request).workspace.library, caller_of(request)
    caller.check_collection(library, collection)
    described = body.description is not None or body.display_name is not None
    if described or body.name is None:
        library.update_description(collection, body.description, display_name=body.display_name)
    if body.name is not None:
        _check_may_be_named(caller, body.name)
        library.rename_collection(collection, body.name)
    return _row(request, body.name or collection)


@router.delete("/collections/{collection}", response_model=ChunksAnswer, openapi_extra=needs("admin"))
def delete_collection(request: Request, collection: str) -> Any:
    """Delete a collection with all of its chunks."""
    library, caller = served_by(request).workspace.library, caller_of(request)
    if caller.limited:  # others may also delete what is in documents.yaml no more
        caller.check_collection(library, collection)
    return {"chunks": library.delete_collection(collection)}


@router.get("/sources", response_model=SourcesAnswer, openapi_extra=needs("read"))
def list_all_sources(request: Request) -> Any:
    """List the sources of every collection."""
    reach = caller_of(request).reach(served_by(request).workspace.library)
    return {"sources": [source_row(info) for info in reach.sources()]}


@router.get("/orphans", response_model=SourcesAnswer, openapi_extra=needs("admin"))
def list_orphans(request: Request) -> Any:
    """List the sources whose collection was taken out of documents.yaml by hand: stored, but not searched."""
    caller_of(request).check_unlimited("a list of orphans")
    return {"sources": [source_row(info) for info in served_by(request).workspace.library.orphans()]}


@router.get("/collections/{collection}/sources", response_model=SourcesAnswer, openapi_extra=needs("read"))
def list_sources(request: Request, collection: str, folder: FolderId = None) -> Any:
    """List the sources of a collection; only those that an ingest of a client's ``folder`` sent, where one is given."""
    library = served_by(request).workspace.library
    caller_of(request).check_collection(library, collection)
    sources = library.list_sources_detail(collection)
    if folder is not None:
        where = {"$and": [library.scope.of(collection), {SENT_FROM: folder}, {"chunk_index": 0}]}
        sent = {one.metadata["source_file"] for one in library.store.scan(where)}
        sources = [row for row in sources if row["source_file"] in sent]
    return {"sources": sources}


@router.get("/collections/{collection}/source", response_model=SourceAnswer, openapi_extra=needs("read"))
def get_source(request: Request, collection: str, name: Name) -> Any:
    """One source with its text and its chunks. Its name is a parameter, because it may have slashes."""
    library = served_by(request).workspace.library
    caller_of(request).check_collection(library, collection)
    info = library.source(name, collection)
    where = {"$and": [library.scope.of(collection), {"source_file": name}]}
    found = sorted(library.scope.named(list(library.store.scan(where))), key=lambda one: one.metadata["chunk_index"])
    return source_row(info) | {
        "text": joined_text(found) if found else "",
        "chunks": [document_as_mapping(one) for one in found],
    }


@router.delete("/collections/{collection}/source", response_model=ChunksAnswer, openapi_extra=needs("write"))
def delete_source(request: Request, collection: str, name: Name) -> Any:
    """Delete a source."""
    library = served_by(request).workspace.library
    caller_of(request).check_collection(library, collection)
    return {"chunks": library.delete_source(name, collection)}


@router.post("/collections/{collection}/sources/delete", response_model=ChunksAnswer, openapi_extra=needs("write"))
def delete_sources(request: Request, collection: str, body: SourceNames) -> Any:
    """Delete several sources; none where one of them is not there."""
    library = served_by(request).workspace.library
    caller_of(request).check_collection(library, collection)
    return {"chunks": library.delete_sources(body.sources, collection)}


@router.post("/collections/{collection}/sources/move", response_model=ChunksAnswer, openapi_extra=needs("write"))
def move_source(request: Request, collection: str, body: Move) -> Any:
    """Give a source to another collection. Nothing is embedded again."""
    library, caller = served_by(request).workspace.library, caller_of(request)
    for name in (collection, body.to):
        caller.check_collection(library, name)
    return {"chunks": library.move_source(body.source, collection, body.to, overwrite=body.overwrite)}
