"""All settings: type, default, description, and where each can be set."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from ragistry.config.archives import Archives, Seconds, Segment, ServerURL
from ragistry.config.numbers import Number, Whole, not_bool
from ragistry.errors import ConfigError, InvalidConfigError
from ragistry.text.languages import AUTO, canonical_language

CONFIG_FOLDER = "config"
DEFAULTS = Path(__file__).parent / "defaults"
LOCAL, CHROMA = "local", "chroma"
"""The stores that can be selected without ``store:``."""
PREFIX = "RAGISTRY_"


class Strict(BaseModel):
    """A model in which unknown settings are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


@dataclass(frozen=True, slots=True)
class Source:
    """Sources of a setting besides an argument: variables, then keys of files; the first one set wins.

    A key begins with its file name: ``("documents.yaml", "n_results")``.
    """

    variables: tuple[str, ...]
    keys: tuple[tuple[str, ...], ...]


def _setting(default: Any, description: str, *keys: str, also: str = "", variable: bool = True, **checks: Any) -> Any:
    """Return a field of `Settings` with its `Source`.

    ``keys``: ``documents.n_results`` is ``n_results`` in documents.yaml. ``also``: a variable of another program, in
    addition to ``RAGISTRY_`` and the name of the setting. ``variable``: False if a variable cannot hold the value.
    """
    variables = (f"{PREFIX}*" if variable else "", also)
    split = [key.split(".") for key in keys]
    field = Field(default=default, description=description, **checks)
    field.metadata.append(
        Source(tuple(filter(None, variables)), tuple((f"{file}.yaml", *rest) for file, *rest in split))
    )
    return field


def _document(default: Any, description: str, *keys: str, **more: Any) -> Any:
    """Return a setting of documents.yaml, by its own name."""
    return _setting(default, description, "documents.*", *keys, **more)


def _server(default: Any, description: str, key: str, **more: Any) -> Any:
    """Return a setting of a ChromaDB server: in the section of the store, or in the older one."""
    return _setting(default, description, f"vector_stores.store.{key}", f"vector_stores.chromadb.{key}", **more)


def _one_complaint(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    """Report one error, instead of two, for a value that is neither a number nor auto."""
    try:
        return handler(value)
    except ValidationError as error:
        raise ValueError(f"write a number of characters, 1,000,000 at most, or auto; got {value!r}") from error


def _known_language(language: str) -> str:
    """Return the language as written. Raises `ConfigError` for an unknown one."""
    if language.casefold() == AUTO:
        return AUTO
    try:
        canonical_language(language)
    except ConfigError as error:
        raise ConfigError(f"{error}, and {AUTO!r} for each source by its own") from error
    return language


Size = Annotated[Annotated[int, Field(ge=1, le=1_000_000), not_bool] | Literal["auto"], WrapValidator(_one_complaint)]
Overlap = Annotated[
    Annotated[int, Field(ge=0, le=1_000_000), not_bool] | Literal["auto"], WrapValidator(_one_complaint)
]
Language = Annotated[str, AfterValidator(_known_language)]


def sendable(key: str) -> str:
    """Return an API key without surrounding white space. Checked here, because HTTP clients print invalid headers.

    Raises `ValueError`.
    """
    text = key.strip()
    if not all(" " <= character <= "~" for character in text):
        raise ValueError("must be ASCII characters on one line; copy the key again")
    return text


Key = Annotated[SecretStr, AfterValidator(lambda key: SecretStr(sendable(key.get_secret_value())))]
"""An API key, printed as stars."""


def text_of(key: SecretStr | None) -> str | None:
    """Return the plain text of a key."""
    return None if key is None else key.get_secret_value()


def _suffix(text: str) -> str:
    if not re.fullmatch(r"\.[^\s./\\A-Z]+", text) or text == ".zip":
        raise ValueError(f"{text!r} must be the last suffix of files in lower case, such as .pdf, and not .zip")
    return text


Suffix = Annotated[str, AfterValidator(_suffix)]


class ExtractionLimits(Strict):
    """Limits for reading one file."""

    seconds: Number = Field(default=60, gt=0, description="maximum time to read one file")
    pages: Whole = Field(default=5_000, ge=1, description="maximum pages of one PDF")
    megabytes: Whole = Field(default=200, ge=1, description="maximum size of one file")
    characters: Whole = Field(default=50_000_000, ge=1, description="maximum text of one PDF")
    memory: Whole = Field(default=1_000_000_000, ge=1, description="maximum memory to read a PDF, in bytes")


class Settings(Strict):
    """The resolved settings of a workspace. Relative paths are relative to the workspace's folder."""

    # first, because it decides whether the other keys of its section are settings
    store: str = _setting(
        LOCAL, "local, chroma, the name of an installed store, or module:Class", "vector_stores.store.use"
    )
    data_dir: str = _setting(".ragistry", "folder of all stored data")
    embed_model: str = _document(
        "minilm",
        "minilm, multilingual, folder:PATH, a model of Ollama, tei, openai:MODEL, or module:Class",
    )
    embed_url: str | None = _document(
        None, "address of a TEI or OpenAI-compatible server", also="DOCPROC_TEI_EMBEDDINGS_URL"
    )
    embed_api_key: Key | None = _setting(None, "API key, sent to that server as `Authorization: Bearer`")
    embed_output: str | None = _document(
        None, "output with the vectors, for a model from a folder where it is not clear"
    )
    embed_timeout: Seconds = _setting(
        300, "seconds for the first request to the server of `embed_model`, which may load the model",
        "documents.timeout",
    )  # fmt: skip
    runtime: Literal["auto", "onnxruntime", "openvino"] = _document(
        "auto",
        "onnxruntime or openvino for minilm; auto: openvino if it is installed and the processor has bfloat16, for "
        "ingests and servers",
    )
    ollama_host: str | None = _setting(None, "address of Ollama", also="OLLAMA_HOST")
    chunk_size: Size = _document("auto", "maximum size of a chunk in characters; auto: suitable for the embedder")
    chunk_overlap: Overlap = _document("auto", "maximum overlap of adjacent chunks in characters")
    n_results: Whole = _document(5, "default number of results", ge=1, le=1_000)
    language: Language = _document(
        "english", "language of the documents, for stemming; auto: detected for each source; none: no stemming"
    )
    index_headings: bool = _document(True, "search title, section and heading path with the text of a chunk")
    keep_token_vectors: bool = _document(
        False, "compute the token vectors of the reranker maxsim at ingest and keep them: 0.4 KB per token"
    )
    log_questions: bool = _document(
        False, "keep each question, its time and its door in questions.jsonl beside the store, for test sets"
    )
    pdf_engine: Literal["pypdfium2", "pypdf"] = _document("pypdfium2", "pypdfium2 or pypdf")
    ocr: Literal["auto", "never"] = _document(
        "auto", "auto: read scanned pages of PDFs with tesseract if it is installed; never: do not"
    )
    limits: ExtractionLimits = _document(ExtractionLimits(), "limits for reading one file", variable=False)
    readers: dict[Suffix, Annotated[str, Field(min_length=1)]] = _document(
        {}, "readers of formats by suffix: a name of an installed package, or module:function", variable=False
    )
    collection: str = _document(
        "collective.documents",
        "name of the Chroma collection that holds the library",
        "vector_stores.chromadb.collection_name",
    )
    chroma_path: str | None = _document(
        None,
        "folder of a ChromaDB database; default for chroma: data_dir/chroma",
        "vector_stores.store.path",
        "vector_stores.store.persist_directory",
        "vector_stores.chromadb.persist_directory",
        min_length=1,
    )
    chroma_host: ServerURL | None = _server(
        None, "address of a ChromaDB server, `http://HOST:PORT`", "host", also="CHROMA_HOST"
    )
    chroma_api_key: Key | None = _setting(None, "sent to the Chroma server as `x-chroma-token`", also="CHROMA_API_KEY")
    chroma_tenant: Segment = _server("default_tenant", "tenant on the server", "tenant", also="CHROMA_TENANT")
    chroma_database: Segment = _server("default_database", "database on the server", "database", also="CHROMA_DATABASE")
    chroma_timeout: Seconds = _server(30, "seconds for one call to the server", "timeout")
    archives: Archives = _setting(
        [], "collections of other Chroma servers, to route queries to", "vector_stores.archives", variable=False
    )


def _source(name: str) -> Source:
    found = next(item for item in Settings.model_fields[name].metadata if isinstance(item, Source))
    variables = tuple(variable.replace("*", name.upper()) for variable in found.variables)
    return Source(variables, tuple(tuple(part.replace("*", name) for part in key) for key in found.keys))


SOURCES = {name: _source(name) for name in Settings.model_fields}


def is_there(path: Path) -> bool:
    """Return whether a file exists. Raises `InvalidConfigError` if its folder is not readable."""
    try:
        return path.exists()
    except OSError as error:
        raise InvalidConfigError(f"{path}: cannot be read: {error.strerror}; make its folder readable") from error
