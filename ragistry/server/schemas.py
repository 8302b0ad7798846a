"""Requests and responses of the API."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Annotated, Any, ClassVar, get_type_hints

from fastapi import UploadFile
from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator

from ragistry.answers.answer import Answer
from ragistry.config.files import NAME_RULE
from ragistry.http.errors import ErrorDetail
from ragistry.library.ingest.report import IngestReport
from ragistry.presentation.plain import TechniqueInfo
from ragistry.server.jobs import Kind, State
from ragistry.server.tasks import FOLDER_ID
from ragistry.techniques.routing.route import Route
from ragistry.types import Document, IngestedFolder, RetrievalResult, SearchRequest, SourceInfo, Unsearchable
from ragistry.utils.limits import QUERIES

RESPONSE = ConfigDict(json_schema_serialization_defaults_required=True)
JsonObject = dict[str, Any]
Description = Annotated[str, Field(max_length=10_000)]
DisplayName = Annotated[str, Field(max_length=1_000)]
NOT_BLANK: dict[str, Any] = {"minLength": 1, "pattern": r"\S"}
"""Described only: the library refuses a blank text with its own error, as it does everywhere."""
Query = Annotated[str, Field(**SearchRequest.__dataclass_fields__["query"].metadata)]
CollectionName = Annotated[str, Field(json_schema_extra=NOT_BLANK)]
SourceName = Annotated[str, Field(min_length=1, max_length=1_000)]


class RequestModel(BaseModel):
    """Base of requests: unknown keys are errors, and types are not converted, except whole numbers."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _convert_whole(cls, values: Any) -> Any:
        """Convert 5.0 to 5. JSON has one kind of number, and some clients write all numbers with a point."""
        if not isinstance(values, dict):
            return values
        return {key: int(one) if isinstance(one, float) and one.is_integer() else one for key, one in values.items()}


def fields_of(request: type[Any], **types: Any) -> dict[str, Any]:
    """Return the fields of a dataclass as arguments of `create_model`; ``types``: other types of some."""
    known = get_type_hints(request) | types
    return {one.name: (known[one.name], one) for one in fields(request)}


_SEARCH = fields_of(SearchRequest, technique=str | None)  # a request cannot send an object


class SearchBody(create_model("SearchBody", __base__=RequestModel, **_SEARCH)):  # type: ignore[misc] # a base that is made
    """A search."""


_OPTIONS: dict[str, Any] = {name: value for name, value in _SEARCH.items() if name != "query"}


class ManySearches(create_model("ManySearches", __base__=RequestModel, **_OPTIONS)):  # type: ignore[misc] # a base that is made
    """A search for each of several queries, which have at most 1,000,000 bytes together."""

    queries: list[Query] = Field(max_length=QUERIES)


class RouteRequest(RequestModel):
    """A query to route."""

    query: Query
    technique: str | None = Field(default=None, description="Name of a technique that uses collection_routed.")
    where: JsonObject | None = Field(default=None, description="Condition on metadata.")


class NewCollection(RequestModel):
    """A collection to create."""

    name: CollectionName = Field(description=NAME_RULE)
    description: Description = ""
    display_name: DisplayName | None = None


class CollectionChange(RequestModel):
    """Changes of a collection. Omitted fields stay."""

    name: CollectionName | None = Field(default=None, description="New name.")
    description: Description | None = None
    display_name: DisplayName | None = None


class SourceMove(RequestModel):
    """A source to move to another collection."""

    source: SourceName
    to: str
    overwrite: bool = Field(default=False, description="Replace a source of the same name.")


class SourceNames(RequestModel):
    """Names of sources of a collection."""

    sources: list[SourceName] = Field(max_length=100_000)


class TextSource(RequestModel):
    """A text with its name."""

    source: SourceName
    text: str
    metadata: JsonObject = Field(
        default={}, description="Metadata to set; null removes a key.", examples=[{"year": 2026}]
    )


class MetadataChange(RequestModel):
    """Metadata of a source to change."""

    metadata: JsonObject = Field(description="Keys to set; null removes a key.", examples=[{"year": 2026}])


class TextBatch(RequestModel):
    """Texts to ingest."""

    collection: str
    sources: list[TextSource] = Field(min_length=1, max_length=1_000)


class FileBatch(BaseModel):
    """Files to ingest."""

    collection: str = Field(description="Target collection.")
    files: list[UploadFile] = Field(description="The files, with their names in the collection.")
    names: list[str] | None = Field(default=None, description="Names of the files; default: their file names.")
    replace: bool = Field(default=False, description="Replace sources that were read from files of the server.")
    folder: str | None = Field(
        default=None,
        pattern=FOLDER_ID,
        description="Id of the client's folder that contains the files, to list its sources later.",
    )
    metadata: str | None = Field(
        default=None, description="JSON list with the metadata of each file to set, objects; null removes a key."
    )
    tables: str | None = Field(
        default=None, description="JSON list with the metadata of each file from a table next to it, objects."
    )
    modified: list[str] | None = Field(
        default=None, description="Modification times of the files, ISO 8601; empty for unknown."
    )


class MadeQueries(RequestModel):
    """Queries to generate from descriptions and sentences of the sources."""

    collection: str | None = Field(default=None, description="Only from this collection.")
    limit: int = Field(default=200, ge=1, le=10_000)


class ComparisonRequest(RequestModel):
    """A comparison of techniques, on ``queries`` or on generated queries (``made``)."""

    techniques: list[str] = Field(min_length=1, max_length=100, description="Names of techniques.")
    queries: str | None = Field(default=None, description='JSON lines: {"text": …, "sources": [SOURCE, …]}')
    made: MadeQueries = MadeQueries()
    measures: list[str] = Field(
        default=[], max_length=20, description="Measures such as nDCG@10; the first one decides."
    )
    baseline: str | None = Field(default=None, description="Compare each technique with this one only.")
    seed: int = Field(default=0, ge=0, le=2**31)


class ResponseModel(BaseModel):
    """Base of responses, whose fields are always there."""

    model_config = RESPONSE


@dataclass(frozen=True, kw_only=True)
class FoundModel(Document):
    """A passage of a result. ``place``: page, sheet, headings and line of the file of the line that answers."""

    place: JsonObject


@dataclass(frozen=True, kw_only=True)
class SearchResponse(RetrievalResult):
    """Results of a search, as in `ragistry search --json`."""

    __pydantic_config__: ClassVar = RESPONSE
    documents: list[FoundModel]  # type: ignore[assignment] # documents of JSON have a place


class ManyResults(ResponseModel):
    """The results of each query, in the order of the queries."""

    results: list[SearchResponse]


@dataclass(frozen=True, kw_only=True)
class GeneratedAnswer(Answer):
    """An answer, as in `ragistry ask --json`; if ``status`` is not complete, ``reason`` says why."""

    __pydantic_config__: ClassVar = RESPONSE
    documents: tuple[FoundModel, ...]
    text: str | None = field(metadata={"alias": "answer"})  # type: ignore[assignment] # null if there is none


@dataclass(frozen=True, kw_only=True)
class RouteResponse(Route):
    """Routing of a query, as in `ragistry route --json`."""

    __pydantic_config__: ClassVar = RESPONSE
    query: str
    technique: str


class TechniqueList(ResponseModel):
    """The techniques, as in `ragistry techniques --json`."""

    techniques: list[TechniqueInfo]
    broken: dict[str, str]


class CollectionModel(BaseModel):
    """A collection with its numbers of sources, of chunks and of files that are not searchable.

    ``unsearchable_count`` is null if the store does not keep them.
    """

    name: str
    display_name: str
    description: str
    source_count: int
    chunk_count: int
    unsearchable_count: int | None


class CollectionList(BaseModel):
    """The collections, as in `ragistry collections list --json`."""

    collections: list[CollectionModel]


@dataclass(frozen=True, kw_only=True)
class SourceModel(SourceInfo):
    """A source.

    ``ingested_at``: seconds since 1970. ``lost``: parts whose text could not be extracted. ``set_keys``: keys of its
    ``metadata`` that an ingest or a change has set. ``waiting``: number of chunks that have no vector yet.
    """

    __pydantic_config__: ClassVar = RESPONSE


class SourceList(ResponseModel):
    """Sources, ordered by collection and name."""

    sources: list[SourceModel]


@dataclass(frozen=True, kw_only=True)
class UnsearchableModel(Unsearchable):
    """A file that is not searchable, or not in full.

    ``kind``: ``failed``; ``outdated``, its new version failed and the old one is searched; ``no text``; ``cut``, a part
    of it is not searched; ``waiting``, some of its chunks are only found by their words. ``at``: seconds since 1970.
    """

    __pydantic_config__: ClassVar = RESPONSE


@dataclass(frozen=True, kw_only=True)
class FolderModel(IngestedFolder):
    """A folder that was ingested: numbers of the files that were left out, by reason, and patterns of such files."""

    __pydantic_config__: ClassVar = RESPONSE


class UnsearchableList(ResponseModel):
    """Files that are not searchable. ``cursor`` continues the list; it is empty at the end."""

    unsearchable: list[UnsearchableModel]
    folders: list[FolderModel]
    cursor: str


class FolderState(RequestModel):
    """What a client could not send from one of its folders."""

    folder: str = Field(default="", pattern=f"{FOLDER_ID}|^$", description="Id of the folder; empty for single files.")
    failed: dict[SourceName, str] = Field(default={}, description="Why a file could not be sent, by its name.")
    names: list[SourceName] | None = Field(default=None, description="The files of the folder, if all are known.")
    counts: dict[str, int] = Field(default={}, description="Numbers of files that were left out, by reason.")
    exclude: list[str] | None = Field(default=None, description="Patterns of files to leave out; null: as before.")


class ChunkCount(BaseModel):
    """Number of chunks that were deleted or moved."""

    chunks: int


class FailedModel(BaseModel):
    """A source that could not be ingested. ``type`` is a class of `ragistry.errors`."""

    source: str
    error: str
    type: str


@dataclass(kw_only=True)
class IngestReportModel(IngestReport):
    """Report of an ingest, as in `ragistry ingest --json`."""

    __pydantic_config__: ClassVar = RESPONSE
    collection: str
    failed: list[FailedModel]  # type: ignore[assignment] # an error is its text and its class


class ComparisonReportModel(BaseModel):
    """Verdict of a comparison, and the error of each failed technique."""

    verdict: str
    failures: dict[str, str]


class JobModel(BaseModel):
    """An ingest or a comparison. A cancelled or failed ingest has a ``report`` too, if it has written any source.

    ``current``, ``done``, ``total``: its progress. ``created``, ``finished``: seconds since 1970. ``collection``: where
    an ingest writes to. The report of a comparison is its verdict; the full one is at ``/v1/comparisons/{id}/report``.
    """

    id: str
    kind: Kind
    state: State
    owner: str
    collection: str | None
    created: float
    finished: float | None
    current: str
    done: int
    total: int
    error: ErrorDetail | None
    report: IngestReportModel | ComparisonReportModel | None


class JobList(BaseModel):
    """Ingests and comparisons, newest first."""

    jobs: list[JobModel]
