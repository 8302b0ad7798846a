"""Routes for collections and their sources."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query
from starlette.requests import Request

from ragistry.errors import AccessDeniedError
from ragistry.library.service import DocumentService, collection_rows, source_row
from ragistry.server.access import Caller
from ragistry.server.route import caller_of, library_of, needs, new_router, reach_of
from ragistry.server.schemas import (
    ChunkCount,
    CollectionChange,
    CollectionList,
    CollectionModel,
    MetadataChange,
    NewCollection,
    SourceList,
    SourceModel,
    SourceMove,
    SourceNames,
)
from ragistry.server.tasks import FOLDER_ID, SENT_FROM

router = new_router()
FolderId = Annotated[
    str | None, Query(pattern=FOLDER_ID, description="Id of a client's folder, as sent with its files.")
]
Name = Annotated[str, Query(min_length=1, max_length=1_000, description="Name of the source.")]


def _check_may_create(caller: Caller, name: str) -> None:
    """Check that a token may create a collection of this name, whether or not it exists."""
    if caller.collections is not None and name not in caller.collections:
        raise AccessDeniedError(f"token {caller.name!r} cannot access the collection {name!r}; use a token that can")


def _row(library: DocumentService, name: str) -> dict[str, Any]:
    entry = library.collections.entry(name)
    return collection_rows([entry], library.sources(name))[0]


@router.get("/collections", response_model=CollectionList, openapi_extra=needs("read"))
def list_collections(request: Request) -> Any:
    """List the collections with their numbers of sources and chunks."""
    reach = reach_of(request)
    reach.check()
    return {"collections": collection_rows(reach.entries(), reach.sources())}


@router.post("/collections", status_code=201, response_model=CollectionModel, openapi_extra=needs("admin"))
def create_collection(request: Request, body: NewCollection) -> Any:
    """Create a collection."""
    library = library_of(request)
    _check_may_create(caller_of(request), body.name)
    library.create_collection(body.name, body.description, body.display_name)
    return _row(library, body.name)


@router.get("/collections/{collection}", response_model=CollectionModel, openapi_extra=needs("read"))
def get_collection(request: Request, collection: str) -> Any:
    """Return a collection."""
    return _row(library_of(request, collection), collection)


@router.patch("/collections/{collection}", response_model=CollectionModel, openapi_extra=needs("admin"))
def change_collection(request: Request, collection: str, body: CollectionChange) -> Any:
    """Change the description or display name of a collection, or rename it."""
    library = library_of(request, collection)
    described = body.description is not None or body.display_name is not None
    if described or body.name is None:
        library.update_description(collection, body.description, display_name=body.display_name)
    if body.name is not None:
        _check_may_create(caller_of(request), body.name)
        library.rename_collection(collection, body.name)
    return _row(library, body.name or collection)


@router.delete("/collections/{collection}", response_model=ChunkCount, openapi_extra=needs("admin"))
def delete_collection(request: Request, collection: str) -> Any:
    """Delete a collection with all its chunks."""
    # An unlimited caller may also delete a collection that is no longer in documents.yaml.
    library = library_of(request, collection) if caller_of(request).limited else library_of(request)
    return {"chunks": library.delete_collection(collection)}


@router.get("/sources", response_model=SourceList, openapi_extra=needs("read"))
def list_all_sources(request: Request) -> Any:
    """List the sources of all collections."""
    return {"sources": [source_row(info) for info in reach_of(request).sources()]}


@router.get("/orphans", response_model=SourceList, openapi_extra=needs("admin"))
def list_orphans(request: Request) -> Any:
    """List the sources whose collection was removed from documents.yaml by hand. They are stored but not searched."""
    caller_of(request).check_unlimited("the list of orphans")
    return {"sources": [source_row(info) for info in library_of(request).orphans()]}


@router.get("/collections/{collection}/sources", response_model=SourceList, openapi_extra=needs("read"))
def list_sources(request: Request, collection: str, folder: FolderId = None) -> Any:
    """List the sources of a collection, optionally only those from one folder of a client."""
    library = library_of(request, collection)
    sources = library.list_sources_detail(collection)
    if folder is not None:
        where = {
            "$and": [library.scope.current_names().condition_for(collection), {SENT_FROM: folder}, {"chunk_index": 0}]
        }
        sent = {one.metadata["source_file"] for one in library.store.scan(where)}
        sources = [row for row in sources if row["source_file"] in sent]
    return {"sources": sources}


@router.get("/collections/{collection}/source", response_model=SourceModel, openapi_extra=needs("read"))
def get_source(request: Request, collection: str, name: Name) -> Any:
    """Return a source; the tool ``read`` has its text."""
    return source_row(library_of(request, collection).source(name, collection))


@router.patch("/collections/{collection}/source", response_model=SourceModel, openapi_extra=needs("write"))
def change_source(request: Request, collection: str, name: Name, body: MetadataChange) -> Any:
    """Change metadata of a source. Nothing is embedded again."""
    return source_row(library_of(request, collection).set_metadata(name, collection, body.metadata))


@router.delete("/collections/{collection}/source", response_model=ChunkCount, openapi_extra=needs("write"))
def delete_source(request: Request, collection: str, name: Name) -> Any:
    """Delete a source."""
    return {"chunks": library_of(request, collection).delete_source(name, collection)}


@router.post("/collections/{collection}/sources/delete", response_model=ChunkCount, openapi_extra=needs("write"))
def delete_sources(request: Request, collection: str, body: SourceNames) -> Any:
    """Delete several sources. If one does not exist, none is deleted."""
    return {"chunks": library_of(request, collection).delete_sources(body.sources, collection)}


@router.post("/collections/{collection}/sources/move", response_model=ChunkCount, openapi_extra=needs("write"))
def move_source(request: Request, collection: str, body: SourceMove) -> Any:
    """Move a source to another collection without embedding it again."""
    library = library_of(request, collection, body.to)
    return {"chunks": library.move_source(body.source, collection, body.to, overwrite=body.overwrite)}
