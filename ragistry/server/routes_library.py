"""Routes for collections and their sources."""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Any

from fastapi import Query
from starlette.requests import Request

from ragistry.errors import AccessDeniedError
from ragistry.library.ingest.missing import record_unsent
from ragistry.library.scope import collection_rows
from ragistry.library.service import DocumentService, source_row
from ragistry.library.unsearchable import Position, unsearchable_counts, unsearchable_from
from ragistry.server.access import Caller
from ragistry.server.route import caller_of, library_of, needs, new_router, reach_of
from ragistry.server.schemas import (
    ChunkCount,
    CollectionChange,
    CollectionList,
    CollectionModel,
    FolderModel,
    FolderState,
    MetadataChange,
    NewCollection,
    SourceList,
    SourceModel,
    SourceMove,
    SourceNames,
    UnsearchableList,
)
from ragistry.server.tasks import FOLDER_ID, SENT_FROM
from ragistry.tools.cursor import mark_of, read_cursor, write_cursor
from ragistry.types import IngestedFolder
from ragistry.utils.dataclass_json import to_json

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
    return collection_rows([entry], library.sources(name), unsearchable_counts(library.scope, [name]))[0]


@router.get("/collections", response_model=CollectionList, openapi_extra=needs("read"))
def list_collections(request: Request) -> Any:
    """List the collections with their numbers of sources, of chunks and of files that are not searchable."""
    reach = reach_of(request)
    missing = unsearchable_counts(reach.library.scope, reach.names())
    return {"collections": collection_rows(reach.entries(), reach.sources(), missing)}


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


@router.get("/unsearchable", response_model=UnsearchableList, openapi_extra=needs("read"))
def list_unsearchable(
    request: Request,
    collection: str | None = None,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1_000,
) -> Any:
    """List the files that are not searchable. `cursor` of a response continues the list; `folders` are on each page.

    A token that is limited to some collections gets their `kind` without `reason`.
    """
    library, names = library_of(request, *filter(None, [collection])), reach_of(request).names()
    mark = mark_of(collection)
    page = list(islice(unsearchable_from(library.scope, read_cursor(cursor, Position, mark), collection, names), limit))
    hidden: dict[str, Any] = {"reason": ""} if caller_of(request).limited else {}
    return {
        "unsearchable": [to_json(one) | hidden for _, one in page],
        "folders": [to_json(one) for one in library.ingested_folders(collection) if one.collection in names],
        "cursor": write_cursor(page[-1][0], mark) if len(page) == limit else "",
    }


@router.post("/collections/{collection}/unsearchable", response_model=FolderModel, openapi_extra=needs("write"))
def record_unsearchable(request: Request, collection: str, body: FolderState) -> Any:
    """Record which files of a client could not be sent, and what was left out of its folder."""
    library = library_of(request, collection)
    kept = next((one.exclude for one in library.ingested_folders(collection) if one.folder == body.folder), ())
    exclude = kept if body.exclude is None else tuple(body.exclude)
    folder = IngestedFolder(collection, body.folder, body.counts, exclude)
    with library.collections.collection_lock(collection):
        record_unsent(library.store, folder, body.failed, None if body.names is None else set(body.names))
    return to_json(folder)


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
