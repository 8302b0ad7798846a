"""The seams: what a technique, an embedder, a generator, a reranker and a store must be able to do.

Anything of the right shape fits; there is nothing to inherit. `ragistry.testing` has a conformance suite for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from ragistry.errors import RagistryError
from ragistry.types import (
    Chunk,
    Document,
    EmbeddedChunk,
    EmbedderFingerprint,
    Progress,
    Repair,
    Role,
    SourceInfo,
    Where,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from pydantic import BaseModel

    Vectors = NDArray[np.float32]

Item = TypeVar("Item")
Result = TypeVar("Result")


@runtime_checkable
class Technique(Protocol):
    """A way to retrieve.

    The constructor takes ``config`` (the mapping of the entry in techniques.yaml, without ``use``, ``base`` and
    ``bases``) and asks by parameter name for what else it needs: ``store``, ``embedder``, ``generator``,
    ``reranker``, ``base``, ``bases``, ``library``, ``targets`` (what a query can be routed to), ``registry``,
    ``folder`` (for what it derives from the store). A nested pydantic model ``Config`` is optional; where there is
    one, the entry is checked against it when the file is loaded.
    """

    def retrieve(self, query: str, *, top_k: int | None = None, where: Where | None = None) -> list[Document]:
        """The best documents for ``query``, ordered by ``(-score, id)``.

        ``top_k``: how many at most, 1 to 1,000; None: what the configuration says. ``where``: only documents whose
        metadata meet the condition. Raises `QueryError` for an empty query, a bad limit or a bad condition.
        """
        ...


@runtime_checkable
class Embedder(Protocol):
    """Text to vectors."""

    @property
    def fingerprint(self) -> EmbedderFingerprint:
        """Which model, weights and prefixes the vectors come from."""
        ...

    def embed(self, texts: Sequence[str], *, role: Role = "document") -> Vectors:
        """``(n, d)`` float32, rows of unit length, in the order of ``texts``; ``(0, d)`` for no texts.

        Several threads may call it at the same time. Raises `ModelError`. Text that is longer than the model takes in
        is reported, never cut in silence.
        """
        ...

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text as a document, the model's special tokens included, before any cut.

        Exact where the tokenizer is at hand, else an estimate (`models.texts.estimate_tokens`). Raises `ModelError`.
        """
        ...


@runtime_checkable
class SparseEncoder(Protocol):
    """Text to weighted terms."""

    @property
    def fingerprint(self) -> str:
        """Which model and weights the terms come from, in one line; texts are encoded again when it changes."""
        ...

    def encode(self, texts: Sequence[str], *, role: Role) -> list[dict[str, float]]:
        """For each text its terms and their weights, 0 or more; a query may be encoded otherwise than a document.

        Several threads may call it at the same time. Raises `ModelError`.
        """
        ...


@runtime_checkable
class Generator(Protocol):
    """Prompt to text."""

    def generate(self, prompt: str, *, schema: type[BaseModel] | None = None) -> str:
        """The model's answer; with ``schema``, JSON that the schema accepts.

        Raises `ModelError`, also for an answer that does not fit the schema.
        """
        ...


@runtime_checkable
class Reranker(Protocol):
    """Pairs of query and text to scores."""

    def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        """One score a text, in the order of ``texts``; higher is better. Raises `ModelError`."""
        ...


@runtime_checkable
class DocumentStore(Protocol):
    """One set of chunks and their vectors. A store never calls a model."""

    def add_documents(self, chunks: Sequence[EmbeddedChunk], *, ids: Sequence[str] | None = None) -> int:
        """Store the chunks and return how many were written; a chunk whose id is stored replaces it whole.

        Without ``ids`` an id is made of ``collection``, ``source_file`` and ``chunk_index`` where the metadata have
        them, else of the text (`utils.ids`). Nothing is written unless every chunk is valid.
        Raises `InvalidChunkError`, `DuplicateChunkIDError` (one id twice in one call), `StoreError`.
        """
        ...

    def search(self, query_vector: Sequence[float], top_k: int = 10, *, where: Where | None = None) -> list[Document]:
        """The nearest chunks, scored by cosine similarity clipped to [0, 1], ordered by ``(-score, id)``.

        Raises `InvalidLimitError`, `InvalidFilterError`, `EmbeddingMismatchError` (wrong dimension), `QueryError`.
        """
        ...

    def get(self, ids: Sequence[str]) -> list[Document]:
        """The chunks of these ids, in the order asked for, score 0; an id that is not stored is left out."""
        ...

    def scan(self, where: Where | None = None, *, batch: int = 1000) -> Iterator[Document]:
        """Every chunk that meets the condition, each once, score 0, read ``batch`` at a time."""
        ...

    def count(self, where: Where | None = None) -> int:
        """How many chunks meet the condition."""
        ...

    def delete(self, *, ids: Sequence[str] | None = None, where: Where | None = None) -> int:
        """Remove the chunks of these ids, or that meet the condition (one of the two), and return how many."""
        ...

    def clear_collection(self) -> None:
        """Remove every chunk, and what was recorded of the embedder."""
        ...

    def close(self) -> None:
        """Let go of files and connections; the store cannot be used afterwards. Closing twice is harmless."""
        ...


@runtime_checkable
class LibraryStore(DocumentStore, Protocol):
    """A store that a library can stand on: it knows the source of each chunk and the embedder of its vectors.

    What an engine cannot do raises `UnsupportedError`, and its name is missing in ``abilities``.
    """

    @property
    def abilities(self) -> frozenset[str]:
        """What works beyond storing and dense search: any of ``"text"`` (`search_text`), ``"repair"`` (`verify` and
        `repair`), ``"reembed"``.
        """
        ...

    def replace_source(self, collection: str, source_file: str, chunks: Sequence[EmbeddedChunk]) -> None:
        """Replace everything that is stored of this source by ``chunks``; with no chunks, remove it.

        The metadata of every chunk carry ``collection``, ``source_file``, ``chunk_index`` (0, 1, …) and
        ``source_hash``. After an error the old version is still there, whole.
        """
        ...

    def move_source(self, source_file: str, from_collection: str, to_collection: str) -> int:
        """Move the source to another collection, keep its vectors, and return its number of chunks.

        Raises `DuplicateChunkIDError` if that collection has a source of this name.
        """
        ...

    def move_collection(self, from_collection: str, to_collection: str) -> int:
        """Move every source of a collection and return the number of chunks; a repeated call completes it.

        Raises `DuplicateChunkIDError` if the other collection has a source of the same name as one of these.
        """
        ...

    def sources(self, collection: str | None = None) -> list[SourceInfo]:
        """Every source, or those of one collection, ordered by collection and name."""
        ...

    def vectors(self, ids: Sequence[str]) -> Vectors:
        """``(n, d)`` float32 in the order of ``ids``; raises `StoreError` for an id that is not stored."""
        ...

    def known_vectors(self, collection: str, source_file: str, chunks: Sequence[Chunk]) -> dict[str, Vectors]:
        """Vectors ``(d,)`` of those of ``chunks`` that need not be embedded again, by `utils.breadcrumb.searched_text`.

        At least the chunks of the stored version of this source are known; some engines know those of every source.
        """
        ...

    def embedder(self) -> EmbedderFingerprint | None:
        """The embedder that the vectors come from; None if nobody has recorded one."""
        ...

    def use_embedder(self, fingerprint: EmbedderFingerprint) -> None:
        """Record the embedder before its first vectors are added.

        Raises `EmbeddingMismatchError` if the vectors come from another embedder.
        """
        ...

    def search_text(self, query: str, top_k: int = 10, *, where: Where | None = None) -> list[Document]:
        """The best chunks by BM25, ordered by ``(-score, id)``. Needs the ability ``"text"``."""
        ...

    def writing(self) -> AbstractContextManager[None]:
        """Hold the right to write during a block of several writes; raises `StoreLockedError` at its start.

        A store with many writers gives it to everyone.
        """
        ...

    def flush(self) -> None:
        """Bring derived indexes up to date now, so that the next search does not have to."""
        ...

    def reembed(self, embedder: Embedder, progress: Progress | None = None) -> int:
        """Embed every chunk that has no vector of this embedder, switch to the new vectors, return how many were made.

        The old vectors serve searches until all new ones exist; an interrupted run continues where it stopped. Needs
        the ability ``"reembed"``. Raises `ModelError`.
        """
        ...

    def verify(self) -> list[str]:
        """Read every file and return what is wrong, one line each. Needs the ability ``"repair"``."""
        ...

    def repair(self) -> Repair:
        """Rebuild broken indexes and copy every readable row out of a damaged file. Needs the ability ``"repair"``."""
        ...


@runtime_checkable
class Engine(Protocol):
    """Where the work of an ingest or a comparison runs: in this process, or on many workers."""

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result | RagistryError]:
        """What ``work`` returns for each item, in the order of the items, or the `RagistryError` that it raised.

        ``items`` is read only a little ahead of the results. `WorkerLostError` takes the place of a result where the
        process died each time it was tried. ``work`` may run more than once for an item. Raises `EngineError` where no
        more work can be done.
        """
        ...


Resources = dict[str, Any]
"""What a registry can give a technique's constructor, by parameter name."""
