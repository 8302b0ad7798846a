"""What requests and answers look like: the models that the description of the API is made from."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ragistry.config.files import NAME_RULE
from ragistry.server.answers import ErrorDetail
from ragistry.types import TOP_K_LIMIT

JsonObject = dict[str, Any]
Description = Annotated[str, Field(max_length=10_000)]
DisplayName = Annotated[str, Field(max_length=1_000)]
SourceName = Annotated[str, Field(min_length=1, max_length=1_000)]


class Request(BaseModel):
    """Values of exactly the declared types; an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", strict=True)


class SearchBody(Request):
    """A search."""

    query: str = Field(max_length=100_000, description="what to look for")
    technique: str | None = Field(default=None, description="a name of techniques.yaml")
    collection: str | None = Field(default=None, description="search this collection only")
    top_k: int | None = Field(default=None, ge=1, le=TOP_K_LIMIT, description="how many passages")
    where: JsonObject | None = Field(default=None, description="condition on metadata", examples=[{"page": 3}])


class RouteRequest(Request):
    """A question where a query would be searched."""

    query: str = Field(max_length=100_000, description="what to look for")
    technique: str | None = Field(default=None, description="a name of techniques.yaml that uses collection_routed")
    where: JsonObject | None = Field(default=None, description="condition on metadata")


class NewCollection(Request):
    """A collection to make."""

    name: str = Field(description=NAME_RULE)
    description: Description = ""
    display_name: DisplayName | None = None


class CollectionChange(Request):
    """What to change of a collection; what is left out stays."""

    name: str | None = Field(default=None, description="its new name")
    description: Description | None = None
    display_name: DisplayName | None = None


class Move(Request):
    """A source to give to another collection."""

    source: SourceName
    to: str
    overwrite: bool = Field(default=False, description="take the place of a source of that name")


class SourceNames(Request):
    """Sources of a collection."""

    sources: list[SourceName] = Field(max_length=100_000)


class TextSource(Request):
    """A text under a name."""

    source: SourceName
    text: str


class Texts(Request):
    """Texts to take into a collection."""

    collection: str
    sources: list[TextSource] = Field(min_length=1, max_length=1_000)


class MadeQueries(Request):
    """Queries that are made from titles, headings and descriptions of the library's sources."""

    collection: str | None = Field(default=None, description="of this collection only")
    limit: int = Field(default=200, ge=1, le=10_000)


class ComparisonRequest(Request):
    """A comparison of techniques over the library: on ``queries``, or on those that are ``made``."""

    techniques: list[str] = Field(min_length=1, max_length=100, description="names of techniques.yaml")
    queries: str | None = Field(default=None, description='JSON lines, each {"text": …, "sources": [SOURCE, …]}')
    made: MadeQueries = MadeQueries()
    measures: list[str] = Field(default=[], max_length=20, description="as nDCG@10; the first decides")
    baseline: str | None = Field(default=None, description="test each technique against this one")
    seed: int = Field(default=0, ge=0, le=2**31)


class ScoreModel(BaseModel):
    """What one stage gave a document."""

    stage: str
    kind: str
    value: float


class DocumentModel(BaseModel):
    """A passage that was found. ``score``: higher is better."""

    id: str
    content: str
    metadata: JsonObject
    score: float
    scores: list[ScoreModel]


class StageModel(BaseModel):
    """What one stage of a retrieval did."""

    name: str
    ms: float
    documents_in: int
    documents_out: int
    model_calls: int
    tokens: int
    depth: int
    detail: JsonObject
    degraded: str


class SearchAnswer(BaseModel):
    """The same as `ragistry search --json` prints."""

    query: str
    documents: list[DocumentModel]
    total_results: int
    search_time_ms: float
    trace: list[StageModel]


class SentenceModel(BaseModel):
    """A sentence of an answer. ``citations``: numbers of documents, from 1. ``supported``: whether one says it."""

    text: str
    citations: list[int]
    supported: bool


class AnswerAnswer(BaseModel):
    """The same as `ragistry ask --json` prints. ``reason``: why there is no answer."""

    query: str
    answer: str | None
    reason: str
    sentences: list[SentenceModel]
    documents: list[DocumentModel]


class RouteAnswer(BaseModel):
    """The same as `ragistry route --json` prints."""

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
    """A configured technique."""

    name: str
    use: str
    default: bool
    bases: list[str]
    config: JsonObject
    description: str


class TechniquesAnswer(BaseModel):
    """The same as `ragistry techniques --json` prints."""

    techniques: list[TechniqueModel]
    broken: dict[str, str]


class CollectionModel(BaseModel):
    """A collection with its sources and chunks counted."""

    name: str
    display_name: str
    description: str
    source_count: int
    chunk_count: int


class CollectionsAnswer(BaseModel):
    """The same as `ragistry collections list --json` prints."""

    collections: list[CollectionModel]


class SourceModel(BaseModel):
    """A source. ``ingested_at``: seconds since 1970. ``lost``: what of its text could not be extracted."""

    collection: str
    source_file: str
    chunk_count: int
    ingested_at: float
    source: str
    source_path: str
    source_hash: str
    lost: str


class SourcesAnswer(BaseModel):
    """Sources, ordered by collection and name."""

    sources: list[SourceModel]


class SourceAnswer(SourceModel):
    """A source with its text as it is searched, and the chunks of it."""

    text: str
    chunks: list[DocumentModel]


class ChunksAnswer(BaseModel):
    """How many chunks there are, or were, or were moved."""

    chunks: int


class FailedModel(BaseModel):
    """A source that was not taken in. ``type``: a class of `ragistry.errors`."""

    source: str
    error: str
    type: str


class IngestReportModel(BaseModel):
    """The same as `ragistry ingest --json` prints, and the ``type`` of each error."""

    collection: str
    added: list[str]
    updated: list[str]
    skipped: list[str]
    deleted: list[str]
    failed: list[FailedModel]
    vanished: list[str]
    warnings: list[str]
    unread: dict[str, int]
    chunks: int
    embedded: int


class ComparisonReportModel(BaseModel):
    """What a comparison found, and the techniques that failed with the reason."""

    conclusion: str
    failures: dict[str, str]


class JobBase(BaseModel):
    """A job. ``current``, ``done``, ``total``: how far it is. ``created``, ``finished``: seconds since 1970."""

    id: str
    state: Literal["waiting", "running", "done", "failed", "cancelled"]
    owner: str
    created: float
    finished: float | None
    current: str
    done: int
    total: int
    error: ErrorDetail | None


class JobModel(JobBase):
    """An ingest. ``report``: what became of each source, also where it was cancelled or failed on the way."""

    collection: str
    report: IngestReportModel | None


class JobsAnswer(BaseModel):
    """Ingest jobs, the newest first."""

    jobs: list[JobModel]


class ComparisonModel(JobBase):
    """A comparison. Its whole report is at ``/v1/comparisons/{id}/report``."""

    report: ComparisonReportModel | None


class ComparisonsAnswer(BaseModel):
    """Comparisons, the newest first."""

    comparisons: list[ComparisonModel]
