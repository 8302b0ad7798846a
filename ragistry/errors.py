"""All errors of Ragistry, as one tree.

    RagistryError
    ├── ConfigError (ValueError)
    │   ├── InvalidConfigError
    │   └── UnknownTechniqueError
    ├── SourceError
    │   ├── SourceNotFoundError (FileNotFoundError)
    │   ├── UnsupportedFormatError (ValueError)
    │   ├── InvalidMetadataError (ValueError)
    │   └── ExtractionError
    ├── ModelError
    │   ├── ModelConnectionError (ConnectionError)
    │   ├── ModelNotFoundError
    │   ├── IncompleteAnswerError
    │   └── EmbeddingGenerationError
    ├── StoreError
    │   ├── ChromaDBConnectionError (ConnectionError)
    │   ├── StoreConnectionError (ConnectionError)
    │   ├── CollectionNotFoundError
    │   │   └── DatabaseNotFoundError
    │   ├── CollectionAlreadyExistsError
    │   ├── InvalidCollectionNameError (ValueError)
    │   ├── InvalidChunkError (ValueError)
    │   ├── DuplicateChunkIDError
    │   ├── EmbeddingMismatchError
    │   ├── StoreLockedError
    │   ├── StoreCorruptError
    │   └── UnsupportedError
    ├── QueryError (ValueError)
    │   ├── EmptyQueryError
    │   ├── InvalidLimitError
    │   └── InvalidFilterError
    ├── EvaluationError (ValueError)
    │   └── DatasetError
    ├── TechniqueError
    ├── PipelineError
    ├── EngineError
    │   └── WorkerLostError
    └── ServerError
        ├── ServerConnectionError (ConnectionError)
        ├── ServerBusyError
        ├── AccessDeniedError (PermissionError)
        ├── RequestError (ValueError)
        └── JobNotFoundError

A message says what is wrong, the value in ``!r``, and the remedy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragistry.types import AnswerStatus


class RagistryError(Exception):
    """Root of every error that Ragistry raises on purpose."""


class ConfigError(RagistryError, ValueError):
    """A setting or an argument of a constructor is invalid."""


class InvalidConfigError(ConfigError):
    """A configuration file is wrong; the message lists every problem as ``file:line: …``."""


class UnknownTechniqueError(ConfigError):
    """No technique of that name is configured."""


class SourceError(RagistryError):
    """A file or text cannot be ingested."""


class SourceNotFoundError(SourceError, FileNotFoundError):
    """The file or folder does not exist."""

    # OSError formats its arguments as "[Errno …] …"; here the message is complete
    __str__ = Exception.__str__


class UnsupportedFormatError(SourceError, ValueError):
    """This format cannot be read; the message lists the supported ones."""


class InvalidMetadataError(SourceError, ValueError):
    """Metadata of a source have a reserved key, or a key or value that cannot be stored."""


class ExtractionError(SourceError):
    """The file has a known format, but its text cannot be extracted."""


class ModelError(RagistryError):
    """An embedder, generator or reranker failed."""


class ModelConnectionError(ModelError, ConnectionError):
    """The model's server cannot be reached."""

    __str__ = Exception.__str__


class ModelNotFoundError(ModelError):
    """The server does not have the model; the message lists the ones it has."""


class IncompleteAnswerError(ModelError):
    """A language model did not complete its answer.

    Attributes:
        status: How it ended: ``cut``, ``filtered``, ``refused`` or ``empty``; see `types.AnswerStatus`.
        text: What the model wrote.
    """

    def __init__(self, message: str, status: AnswerStatus = "empty", text: str = "") -> None:
        super().__init__(message)
        self.status: AnswerStatus = status
        self.text = text


class EmbeddingGenerationError(ModelError):
    """A text could not be embedded."""


class StoreError(RagistryError):
    """The store cannot perform the operation."""


class ChromaDBConnectionError(StoreError, ConnectionError):
    """ChromaDB cannot be opened or reached."""

    __str__ = Exception.__str__


class StoreConnectionError(StoreError, ConnectionError):
    """The database server of a store cannot be reached, or the connection to it was lost."""

    __str__ = Exception.__str__


class CollectionNotFoundError(StoreError):
    """No collection of that name."""


class DatabaseNotFoundError(CollectionNotFoundError):
    """No tenant or database of that name on a ChromaDB server."""


class CollectionAlreadyExistsError(StoreError):
    """A collection of that name exists."""


class InvalidCollectionNameError(StoreError, ValueError):
    """The name is not a valid collection name."""


class InvalidChunkError(StoreError, ValueError):
    """A chunk's text, vector, id or metadata cannot be stored as it is."""


class DuplicateChunkIDError(StoreError):
    """The id of a chunk is already stored, or occurs twice in one call."""


class EmbeddingMismatchError(StoreError):
    """The vectors in the store come from another embedder."""


class StoreLockedError(StoreError):
    """Another process is writing to the store; the message names it."""


class StoreCorruptError(StoreError):
    """The files of the store are damaged."""


class UnsupportedError(StoreError):
    """This engine does not support the operation; the message names one that does."""


class QueryError(RagistryError, ValueError):
    """The arguments of a search are invalid."""


class EmptyQueryError(QueryError):
    """The query is empty or white space."""


class InvalidLimitError(QueryError):
    """``top_k`` is not a whole number in the allowed range."""


class InvalidFilterError(QueryError):
    """``where`` is not a well-formed condition on metadata."""


class EvaluationError(RagistryError, ValueError):
    """The arguments of a comparison are invalid."""


class DatasetError(EvaluationError):
    """A test set is wrong; the message lists every problem."""


class TechniqueError(RagistryError):
    """A technique returned a value that violates the contract of ``retrieve``."""


class PipelineError(RagistryError):
    """A pipeline's graph is invalid, or a run exceeded its budget of steps."""


class EngineError(RagistryError):
    """The workers for an ingest or a comparison cannot be used."""


class WorkerLostError(EngineError):
    """The worker process of an item died at every attempt."""


class ServerError(RagistryError):
    """A Ragistry server failed, or refused a request."""


class ServerConnectionError(ServerError, ConnectionError):
    """The server cannot be reached, or did not answer in time."""

    __str__ = Exception.__str__


class ServerBusyError(ServerError):
    """The server is overloaded; the same request may succeed later."""


class AccessDeniedError(ServerError, PermissionError):
    """The token is missing, unknown, expired, or lacks a right."""

    __str__ = Exception.__str__


class RequestError(ServerError, ValueError):
    """A request is malformed or too large."""


class JobNotFoundError(ServerError):
    """No job or comparison of that id, or it belongs to another token."""


def public_name(kind: type[BaseException]) -> str:
    """Return the name of the nearest class of this module; ``ServerError`` for an error of another module."""
    return next((cls.__name__ for cls in kind.__mro__ if globals().get(cls.__name__) is cls), "ServerError")
