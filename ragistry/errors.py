"""Everything that Ragistry raises, as one tree.

    RagistryError
    ├── ConfigError (ValueError)
    │   ├── InvalidConfigError
    │   └── UnknownTechniqueError
    ├── SourceError
    │   ├── SourceNotFoundError (FileNotFoundError)
    │   ├── UnsupportedFormatError (ValueError)
    │   └── ExtractionError
    ├── ModelError
    │   ├── ModelConnectionError (ConnectionError)
    │   ├── ModelNotFoundError
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
    │   ├── DatasetError
    │   └── MissingRecordError
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


class RagistryError(Exception):
    """Root of every error that Ragistry raises on purpose."""


class ConfigError(RagistryError, ValueError):
    """A setting or an argument of a constructor does not fit."""


class InvalidConfigError(ConfigError):
    """A configuration file is wrong; the message lists every problem as ``file:line: …``."""


class UnknownTechniqueError(ConfigError):
    """No technique of that name is configured."""


class SourceError(RagistryError):
    """A file or text cannot be taken in."""


class SourceNotFoundError(SourceError, FileNotFoundError):
    """The file or folder does not exist."""

    # OSError formats its arguments as "[Errno …] …"; the message stands alone here.
    __str__ = Exception.__str__


class UnsupportedFormatError(SourceError, ValueError):
    """No reader for this kind of file; the message lists the formats that have one."""


class ExtractionError(SourceError):
    """The file has a known format, but no text can be taken out of it."""


class ModelError(RagistryError):
    """An embedder, generator or reranker failed."""


class ModelConnectionError(ModelError, ConnectionError):
    """The model's server cannot be reached."""

    __str__ = Exception.__str__


class ModelNotFoundError(ModelError):
    """The server does not have the model; the message lists those that it has."""


class EmbeddingGenerationError(ModelError):
    """A text could not be embedded."""


class StoreError(RagistryError):
    """The store cannot do what was asked."""


class ChromaDBConnectionError(StoreError, ConnectionError):
    """ChromaDB cannot be opened or reached."""

    __str__ = Exception.__str__


class StoreConnectionError(StoreError, ConnectionError):
    """The database server of a store cannot be reached, or the connection to it was lost."""

    __str__ = Exception.__str__


class CollectionNotFoundError(StoreError):
    """No collection of that name."""


class DatabaseNotFoundError(CollectionNotFoundError):
    """No tenant or no database of that name on a ChromaDB server, and so none of its collections."""


class CollectionAlreadyExistsError(StoreError):
    """A collection of that name exists."""


class InvalidCollectionNameError(StoreError, ValueError):
    """The name breaks the rules for names of collections."""


class InvalidChunkError(StoreError, ValueError):
    """A chunk's text, vector, id or metadata cannot be stored as it is."""


class DuplicateChunkIDError(StoreError):
    """A chunk of that id is stored, or comes twice in one call."""


class EmbeddingMismatchError(StoreError):
    """The vectors in the store come from another embedder."""


class StoreLockedError(StoreError):
    """Another process is writing to the store; the message names it."""


class StoreCorruptError(StoreError):
    """The files of the store are damaged."""


class UnsupportedError(StoreError):
    """This engine cannot do what was asked; the message names one that can."""


class QueryError(RagistryError, ValueError):
    """A search was asked for something that cannot be answered."""


class EmptyQueryError(QueryError):
    """The query has no characters but white space."""


class InvalidLimitError(QueryError):
    """``top_k`` is not a whole number in the allowed range."""


class InvalidFilterError(QueryError):
    """``where`` is not a well-formed condition on metadata."""


class EvaluationError(RagistryError, ValueError):
    """A comparison was asked for something that it cannot measure."""


class DatasetError(EvaluationError):
    """A test set is wrong; the message lists every problem."""


class MissingRecordError(EvaluationError):
    """A replay was asked for a call that was not recorded."""


class TechniqueError(RagistryError):
    """A technique returned something that breaks the contract of ``retrieve``."""


class PipelineError(RagistryError):
    """A pipeline's graph is wrong, or a run used up its budget of steps."""


class EngineError(RagistryError):
    """The workers that an ingest or a comparison was to run on cannot be used."""


class WorkerLostError(EngineError):
    """The process that worked on one item died every time it was tried."""


class ServerError(RagistryError):
    """A Ragistry server failed, or refused a request."""


class ServerConnectionError(ServerError, ConnectionError):
    """The server cannot be reached, or gave no answer in time."""

    __str__ = Exception.__str__


class ServerBusyError(ServerError):
    """The server has too much to do; the same request may succeed later."""


class AccessDeniedError(ServerError, PermissionError):
    """The token is missing, not known or expired, or lacks a right."""

    __str__ = Exception.__str__


class RequestError(ServerError, ValueError):
    """A request is malformed or too large."""


class JobNotFoundError(ServerError):
    """No job and no comparison of that id, or it belongs to another token."""
