"""What may stand in documents.yaml and vector_stores.yaml. (techniques.yaml is the registry's.)"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    field_validator,
)
from pydantic_core import InitErrorDetails

from ragistry.config.archive_settings import Seconds, Segment
from ragistry.config.archives import Archives, Text
from ragistry.config.numbers import Number, Whole
from ragistry.utils.languages import canonical_language
from ragistry.utils.shown import shown


def _one_complaint(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    """One complaint for what is neither a number nor auto, in place of one for each."""
    try:
        return handler(value)
    except ValidationError as error:
        raise ValueError(f"write a number of characters, 1,000,000 at most, or auto; got {value!r}") from error


def _known(language: str) -> str:
    """As it is written, where it is known."""
    canonical_language(language)
    return language


Size = Annotated[Annotated[Whole, Field(ge=1, le=1_000_000)] | Literal["auto"], WrapValidator(_one_complaint)]
Overlap = Annotated[Annotated[Whole, Field(ge=0, le=1_000_000)] | Literal["auto"], WrapValidator(_one_complaint)]
Language = Annotated[str, AfterValidator(_known)]
COLLECTION_NAME = r"^[a-zA-Z0-9][a-zA-Z0-9._-]{0,62}$"
NAME_RULE = "1 to 63 of letters, digits, '.', '_' and '-', beginning with a letter or digit"


class Strict(BaseModel):
    """An unknown setting is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class CollectionEntry(Strict):
    """A named, described set of sources."""

    name: str = Field(pattern=COLLECTION_NAME)
    display_name: str | None = None
    description: Text = ""
    formerly: str | None = Field(default=None, description="the name that its chunks still have, while it is renamed")


class ExtractionLimits(Strict):
    """What one file may cost before it is given up."""

    seconds: Number = Field(default=60, gt=0, description="time to read one file")
    pages: Whole = Field(default=5_000, ge=1, description="pages of one PDF")
    megabytes: Whole = Field(default=200, ge=1, description="size of one file")
    characters: Whole = Field(default=50_000_000, ge=1, description="text of one PDF")
    memory: Whole = Field(default=1_000_000_000, ge=1, description="bytes of memory to read a PDF")


TWICE = "collection {!r} stands here twice; rename one"


def _complaint(place: tuple[str | int, ...], value: object, message: str) -> InitErrorDetails:
    return InitErrorDetails(type="value_error", loc=place, input=value, ctx={"error": ValueError(message)})


class DocumentsFile(Strict):
    """config/documents.yaml: the library, its collections, and how documents are cut and embedded."""

    collection: str | None = Field(default=None, description="name of the Chroma collection that holds the library")
    chroma_path: str | None = Field(default=None, description="folder of a ChromaDB database that holds the library")
    chunk_size: Size = Field(default="auto", description="characters of a chunk at most; auto: what the embedder takes")
    chunk_overlap: Overlap = Field(default="auto", description="characters that adjacent chunks share at most")
    n_results: Whole = Field(default=5, ge=1, le=1_000, description="default number of results")
    embed_model: str = Field(default="minilm", description="minilm, a model of Ollama, tei, or openai:MODEL")
    embed_url: str | None = Field(default=None, description="address of a TEI or OpenAI-compatible server")
    generate_model: str | None = Field(default=None, description="a model of Ollama, for techniques that ask one")
    rerank_url: str | None = Field(default=None, description="address of a TEI server with a reranker")
    language: Language = Field(default="english", description="of the words of the documents; none: no stemming")
    pdf_engine: Literal["pypdfium2", "pypdf"] = "pypdfium2"
    limits: ExtractionLimits = ExtractionLimits()
    description: str | None = Field(default=None, description="text of the search tool, in place of the built-in one")
    param_query: str | None = Field(default=None, description="text of the search tool's parameter `query`")
    collections: list[CollectionEntry] = []

    @field_validator("collections", mode="before")
    @classmethod
    def _none_is_empty(cls, value: object) -> object:
        if value is not None and not isinstance(value, list):
            raise ValueError(f"must be a list, got {shown(value)}; write `- name: …`")
        return value or []

    @field_validator("collections")
    @classmethod
    def _names_differ(cls, value: list[CollectionEntry]) -> list[CollectionEntry]:
        names = [entry.name for entry in value]
        twice = [(place, name) for place, name in enumerate(names) if name in names[:place]]
        if twice:  # each is told at its own line
            raise ValidationError.from_exception_data(
                cls.__name__, [_complaint((place, "name"), name, TWICE.format(name)) for place, name in twice]
            )
        return value


class ChromaServer(Strict):
    """A ChromaDB server, if ``host`` is set."""

    host: str | None = Field(default=None, description="a ChromaDB server: a name, an address or a URL")
    port: Whole = Field(default=8000, ge=1, le=65_535, description="port of the server")
    ssl: bool = Field(default=False, description="whether to use HTTPS")
    tenant: Segment = Field(default="default_tenant", description="tenant on the server")
    database: Segment = Field(default="default_database", description="database on the server")
    timeout: Seconds = Field(default=30, description="seconds for one call to the server")


class ChromaSection(ChromaServer):
    """The older form of ``store: {use: chroma, …}``: a folder or, if ``host`` is set, a server."""

    persist_directory: str | None = Field(default=None, description="folder of a ChromaDB database")
    collection_name: str | None = Field(
        default=None, description="name of the Chroma collection that holds the library"
    )


class StoreSection(BaseModel):
    """Which store holds the library; the other keys belong to that store."""

    model_config = ConfigDict(extra="allow", frozen=True)

    use: str = Field(description="local, chroma, the name of an installed store, or module:Class")


def _as_mapping(store: Any) -> Any:
    if store is not None and not isinstance(store, dict):
        raise ValueError(f"must be a mapping such as {{use: local}}, got {shown(store)}")
    return store


class VectorStoresFile(Strict):
    """config/vector_stores.yaml."""

    store: Annotated[StoreSection | None, BeforeValidator(_as_mapping)] = Field(
        default=None, description="which store holds the library, and its settings"
    )
    chromadb: ChromaSection = ChromaSection()
    archives: Archives = Field(default=[], description="collections of other Chroma servers, to route queries to")
