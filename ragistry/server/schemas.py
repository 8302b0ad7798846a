"""Requests and responses of the API."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from ragistry.config.files import NAME_RULE
from ragistry.http.errors import ErrorDetail
from ragistry.http.jobs import State
from ragistry.types import TOP_K_LIMIT, AnswerStatus

JsonObject = dict[str, Any]
Description = Annotated[str, Field(max_length=10_000)]
DisplayName = Annotated[str, Field(max_length=1_000)]
NOT_BLANK: dict[str, Any] = {"minLength": 1, "pattern": r"\S"}
"""Described only: the library refuses a blank text with its own error, as it does everywhere."""
Query = Annotated[
    str,
    Field(
        max_length=100_000,
        description="Text of the query. Words in double quotes are a phrase.",
        json_schema_extra=NOT_BLANK,
    ),
]
CollectionName = Annotated[str, Field(json_schema_extra=NOT_BLANK)]
SourceName = Annotated[str, Field(min_length=1, max_length=1_000)]


def _whole(value: Any) -> Any:
    """Convert 5.0 to 5. JSON has one kind of number, and some clients write all numbers with a point."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


WholeNumber = Annotated[int, BeforeValidator(_whole)]


class RequestModel(BaseModel):
    """Base of requests: unknown keys are errors, and types are not converted, except whole numbers."""

    model_config = ConfigDict(extra="forbid", strict=True)


class SearchBody(RequestModel):
    """A search."""

    query: Query
    technique: str | None = Field(default=None, description="Name of a technique.")
    collection: str | None = Field(default=None, description="Search only this collection.")
    top_k: WholeNumber | None = Field(default=None, ge=1, le=TOP_K_LIMIT, description="Number of passages.")
    where: JsonObject | None = Field(default=None, description="Condition on metadata.", examples=[{"page": 3}])


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


class MadeQueries(RequestModel):
    """Queries to generate from titles, headings and descriptions of the sources."""

    collection: str | None = Field(default=None, description="Only from this collection.")
    limit: WholeNumber = Field(default=200, ge=1, le=10_000)


class ComparisonRequest(RequestModel):
    """A comparison of techniques, on ``queries`` or on generated queries (``made``)."""

    techniques: list[str] = Field(min_length=1, max_length=100, description="Names of techniques.")
    queries: str | None = Field(default=None, description='JSON lines: {"text": …, "sources": [SOURCE, …]}')
    made: MadeQueries = MadeQueries()
    measures: list[str] = Field(
        default=[], max_length=20, description="Measures such as nDCG@10; the first one decides."
    )
    baseline: str | None = Field(default=None, description="Compare each technique with this one only.")
    seed: WholeNumber = Field(default=0, ge=0, le=2**31)


class ScoreModel(BaseModel):
    """Score of a document in one stage."""

    stage: str
    kind: str
    value: float


class DocumentModel(BaseModel):
    """A passage of a result. Higher scores are better."""

    id: str
    content: str
    metadata: JsonObject
    score: float
    scores: list[ScoreModel]


class FoundModel(DocumentModel):
    """A passage of a result. ``place``: page, sheet, headings and line of the file of the line that answers."""

    place: JsonObject


class StageModel(BaseModel):
    """A stage of a retrieval."""

    name: str
    ms: float
    documents_in: int
    documents_out: int
    model_calls: int
    tokens: int
    depth: int
    detail: JsonObject
    degraded: str


class SearchResponse(BaseModel):
    """Results of a search, as in `ragistry search --json`. ``weak``: nothing fits the query well."""

    query: str
    documents: list[FoundModel]
    total_results: int
    search_time_ms: float
    weak: bool
    trace: list[StageModel]


class SentenceModel(BaseModel):
    """A sentence of an answer. ``citations`` are numbers of documents, from 1; ``supported``: result of their check."""

    text: str
    citations: list[int]
    supported: bool


class GeneratedAnswer(BaseModel):
    """An answer, as in `ragistry ask --json`; if ``status`` is not complete, ``reason`` says why."""

    query: str
    status: AnswerStatus
    answer: str | None
    reason: str
    sentences: list[SentenceModel]
    documents: list[FoundModel]
    weak: bool
    degraded: list[str]


class RouteResponse(BaseModel):
    """Routing of a query, as in `ragistry route --json`."""

    query: str
    technique: str
    router: str
    rule: str
    chosen: list[str]
    scores: dict[str, float]
    margin: float | None
    fit: float | None
    note: str


class TechniqueModel(BaseModel):
    """A configured technique. ``unusable``: why it cannot run; empty if it can."""

    name: str
    use: str
    default: bool
    bases: list[str]
    config: JsonObject
    description: str
    unusable: str


class TechniqueList(BaseModel):
    """The techniques, as in `ragistry techniques --json`."""

    techniques: list[TechniqueModel]
    broken: dict[str, str]


class CollectionModel(BaseModel):
    """A collection with its numbers of sources and chunks."""

    name: str
    display_name: str
    description: str
    source_count: int
    chunk_count: int


class CollectionList(BaseModel):
    """The collections, as in `ragistry collections list --json`."""

    collections: list[CollectionModel]


class SourceModel(BaseModel):
    """A source.

    ``ingested_at``: seconds since 1970. ``lost``: parts whose text could not be extracted. ``set_keys``: keys of its
    ``metadata`` that an ingest or a change has set.
    """

    collection: str
    source_file: str
    chunk_count: int
    ingested_at: float
    source: str
    source_path: str
    source_hash: str
    lost: str
    metadata: JsonObject
    set_keys: list[str]


class SourceList(BaseModel):
    """Sources, ordered by collection and name."""

    sources: list[SourceModel]


class SourceWithText(SourceModel):
    """A source with its searchable text and its chunks."""

    text: str
    chunks: list[DocumentModel]


class ChunkCount(BaseModel):
    """Number of chunks that were deleted or moved."""

    chunks: int


class FailedModel(BaseModel):
    """A source that could not be ingested. ``type`` is a class of `ragistry.errors`."""

    source: str
    error: str
    type: str


class IngestReportModel(BaseModel):
    """Report of an ingest, as in `ragistry ingest --json`."""

    collection: str
    added: list[str]
    updated: list[str]
    skipped: list[str]
    deleted: list[str]
    failed: list[FailedModel]
    vanished: list[str]
    warnings: list[str]
    unread: dict[str, int]
    left_out: dict[str, int] = {}  # reports of earlier versions lack it
    chunks: int
    embedded: int


class ComparisonReportModel(BaseModel):
    """Conclusion of a comparison, and the error of each failed technique."""

    conclusion: str
    failures: dict[str, str]


class JobBase(BaseModel):
    """A job. ``current``, ``done``, ``total``: its progress. ``created``, ``finished``: seconds since 1970."""

    id: str
    state: State
    owner: str
    created: float
    finished: float | None
    current: str
    done: int
    total: int
    error: ErrorDetail | None


class JobModel(JobBase):
    """An ingest. A cancelled or failed ingest has a ``report`` too, if it has written any source."""

    collection: str
    report: IngestReportModel | None


class JobList(BaseModel):
    """Ingest jobs, newest first."""

    jobs: list[JobModel]


class ComparisonModel(JobBase):
    """A comparison. Its full report is at ``/v1/comparisons/{id}/report``."""

    report: ComparisonReportModel | None


class ComparisonList(BaseModel):
    """Comparisons, newest first."""

    comparisons: list[ComparisonModel]
