"""The protocols of techniques, embedders, generators, rerankers and stores.

Any object with these methods works, without a base class. `ragistry.testing` has a conformance suite for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol, TypeVar, cast, runtime_checkable

from ragistry.errors import WorkerLostError
from ragistry.types import (
    Chunk,
    Document,
    EmbeddedChunk,
    EmbedderFingerprint,
    Fit,
    IngestedFolder,
    Ranking,
    Repair,
    Role,
    SourceInfo,
    Unsearchable,
    Where,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from pydantic import BaseModel

    from ragistry.utils.where import Condition

    Vectors = NDArray[np.float32]

Item = TypeVar("Item")
Result = TypeVar("Result")


@runtime_checkable
class Technique(Protocol):
    """A way to retrieve.

    The constructor takes ``config`` (the entry in techniques.yaml, without ``use``, ``base`` and ``bases``) and gets
    other resources by parameter name: ``store``, ``embedder``, ``generator``, ``reranker``, ``base``, ``bases``,
    ``library``, ``targets`` (of routing), ``registry``, ``folder`` (for data derived from the store). ``config`` is a
    dict. With the optional nested pydantic model ``Config``, the entry is checked when the file is loaded, and
    ``config`` is that model with its defaults.
    """

    def retrieve(self, query: str, *, top_k: int | None = None, where: Where | None = None) -> list[Document]:
        """Return the best documents for a query, ordered by ``(-score, id)``.

        Args:
            query: The query.
            top_k: Maximum number of documents, 1 to 1,000; None for the configured number.
            where: Return only documents whose metadata meet this condition.

        Raises:
            QueryError: The query is empty, or the limit or condition is invalid.
        """
        ...


@runtime_checkable
class Embedder(Protocol):
    """Text to vectors."""

    @property
    def fingerprint(self) -> EmbedderFingerprint:
        """Identifies the model, weights and prefixes of the vectors."""
        ...

    def embed(self, texts: Sequence[str], *, role: Role = "document") -> Vectors:
        """Embed texts: ``(n, d)`` float32, rows of unit length, in the order of ``texts``; ``(0, d)`` without texts.

        Must be thread-safe. Text longer than the model's limit is reported, never cut silently.

        Raises:
            ModelError: A text cannot be embedded.
        """
        ...

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens of each text as a document, including special tokens, before any cut.

        Exact if the tokenizer is available, else an estimate (`models.texts.estimate_tokens`). Raises `ModelError`.
        """
        ...


@runtime_checkable
class SparseEncoder(Protocol):
    """Text to weighted terms."""

    @property
    def fingerprint(self) -> str:
        """Identifies the model and weights, in one line; texts are encoded again when it changes."""
        ...

    def encode(self, texts: Sequence[str], *, role: Role) -> list[dict[str, float]]:
        """Return the terms of each text with weights, 0 or more; queries may be encoded differently from documents.

        Must be thread-safe. Raises `ModelError`.
        """
        ...


@runtime_checkable
class Generator(Protocol):
    """Prompt to text."""

    def generate(self, prompt: str, *, schema: type[BaseModel] | None = None) -> str:
        """Answer a prompt; with ``schema``, in JSON that fits the schema.

        Raises:
            ModelError: The model failed, or its answer does not fit the schema.
        """
        ...


@runtime_checkable
class Reranker(Protocol):
    """Pairs of query and text to scores."""

    def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return one score per text, in the order of ``texts``; higher is better. Raises `ModelError`."""
        ...


@runtime_checkable
class DocumentStore(Protocol):
    """One set of chunks and their vectors. A store never calls a model."""

    def add_documents(self, chunks: Sequence[EmbeddedChunk], *, ids: Sequence[str] | None = None) -> int:
        """Store the chunks and return their number; a chunk with a stored id replaces the stored one.

        Nothing is written unless every chunk is valid.

        Args:
            chunks: The chunks.
            ids: Their ids. By default they are derived from ``collection``, ``source_file`` and ``chunk_index`` of the
                metadata, or from the text if these are missing (`utils.ids`).

        Raises:
            InvalidChunkError: A chunk is invalid.
            DuplicateChunkIDError: An id occurs twice in the call.
            StoreError: The store cannot write.
        """
        ...

    def search(self, query_vector: Sequence[float], top_k: int = 10, *, where: Where | None = None) -> list[Document]:
        """Return the nearest chunks, scored by cosine similarity clipped to [0, 1], ordered by ``(-score, id)``.

        Raises:
            InvalidLimitError: ``top_k`` is invalid.
            InvalidFilterError: ``where`` is invalid.
            EmbeddingMismatchError: The vector has another dimension than those of the store.
            QueryError: The vector is invalid.
        """
        ...

    def get(self, ids: Sequence[str]) -> list[Document]:
        """Return the stored chunks of these ids, in the order of ``ids``, with score 0."""
        ...

    def scan(self, where: Where | None = None, *, batch: int = 1000) -> Iterator[Document]:
        """Yield every chunk that meets the condition, once, with score 0, read ``batch`` at a time."""
        ...

    def count(self, where: Where | None = None) -> int:
        """Count the chunks that meet the condition."""
        ...

    def delete(self, *, ids: Sequence[str] | None = None, where: Where | None = None) -> int:
        """Remove the chunks of these ids or of the condition, exactly one of the two, and return their number."""
        ...

    def clear_collection(self) -> None:
        """Remove every chunk and the recorded embedder."""
        ...

    def close(self) -> None:
        """Close files and connections; the store cannot be used afterwards. Closing twice is harmless."""
        ...


@runtime_checkable
class LibraryStore(DocumentStore, Protocol):
    """A store for a library: it knows the source of each chunk and the embedder of its vectors.

    Methods without their ability in ``abilities`` raise `UnsupportedError`.
    """

    @property
    def abilities(self) -> frozenset[str]:
        """The optional abilities: any of ``"text"`` (`search_text` and `unknown_words`), ``"repair"`` (`verify` and
        `repair`), ``"reembed"`` (`ReembedStore`), ``"words_first"`` (`WordsFirstStore`), ``"fit"`` (`FitStore`),
        ``"unsearchable"`` (`UnsearchableStore`).
        """
        ...

    def replace_source(self, collection: str, source_file: str, chunks: Sequence[EmbeddedChunk]) -> None:
        """Replace this source by ``chunks``; without chunks, remove it.

        The metadata of every chunk have ``collection``, ``source_file``, ``chunk_index`` (0, 1, …) and ``source_hash``.
        After an error the complete old version is still stored.
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
        """List all sources, or those of one collection, ordered by collection and name."""
        ...

    def vectors(self, ids: Sequence[str]) -> Vectors:
        """Read vectors: ``(n, d)`` float32 in the order of ``ids``. Raises `StoreError` if one is not stored.

        A chunk that waits for its vector has zeros.
        """
        ...

    def known_vectors(self, collection: str, source_file: str, chunks: Sequence[Chunk]) -> dict[str, Vectors]:
        """Return vectors ``(d,)`` of chunks that need not be embedded again, by `chunking.breadcrumb.searched_text`.

        Includes at least equal chunks of the stored version of this source; some engines find those of all sources.
        """
        ...

    def embedder(self) -> EmbedderFingerprint | None:
        """Return the recorded embedder of the vectors; None before `use_embedder`."""
        ...

    def use_embedder(self, fingerprint: EmbedderFingerprint) -> None:
        """Record the embedder before its first vectors are added.

        Raises `EmbeddingMismatchError` if the vectors come from another embedder.
        """
        ...

    def search_text(
        self, query: str, top_k: int = 10, *, where: Where | None = None, every: bool = False
    ) -> list[Document]:
        """Return the best chunks by BM25, ordered by ``(-score, id)``. Needs the ability ``"text"``.

        The first chunk of a source is also found by the source's names, see `chunking.breadcrumb.searched_names`.
        ``every``: only chunks with every word of the query, in any spelling, wherever the words are.
        """
        ...

    def unknown_words(self, query: str, *, where: Where | None = None) -> list[str]:
        """Return the words of a query, as typed, that no chunk of the condition has in any spelling.

        Left out are stop words, words that ask (`text.questions`) and scripts without spaces. Needs the ability
        ``"text"``.
        """
        ...

    def writing(self) -> AbstractContextManager[None]:
        """Hold the write lock during a block of several writes; raises `StoreLockedError` at its start.

        A store with many writers does not lock.
        """
        ...

    def flush(self) -> None:
        """Update derived indexes now instead of at the next search."""
        ...

    def verify(self) -> list[str]:
        """Read every file and return the faults, one line each. Needs the ability ``"repair"``."""
        ...

    def repair(self) -> Repair:
        """Rebuild broken indexes and copy every readable row out of a damaged file. Needs the ability ``"repair"``."""
        ...


class RankingStore(LibraryStore, Protocol):
    """A store that also ranks chunks without reading their texts. Techniques find it by `as_ranking_store`.

    ``embedder`` of both methods: raise `EmbeddingMismatchError` if the vectors of the store come from another one.
    """

    def search(
        self,
        query_vector: Sequence[float],
        top_k: int = 10,
        *,
        where: Where | None = None,
        embedder: EmbedderFingerprint | None = None,
    ) -> list[Document]: ...

    def rank(
        self,
        query: str | Sequence[float],
        top_k: int,
        *,
        where: Condition | None = None,
        embedder: EmbedderFingerprint | None = None,
    ) -> Ranking:
        """Rank as `search_text` does for a text, and as `search` does for a vector. The arguments were checked."""
        ...


def as_ranking_store(store: object) -> RankingStore | None:
    """Return a store that has `RankingStore.rank`; None if it overrides a search below which ``rank`` stays as it was.

    A class that passes ``rank`` on by ``__getattr__`` does not have it.
    """
    layers = (getattr(store, "__dict__", {}), *map(vars, type(store).__mro__))
    first = next((layer for layer in layers if layer.keys() & {"rank", "search", "search_text"}), ())
    return cast("RankingStore", store) if "rank" in first else None


class ReembedStore(LibraryStore, Protocol):
    """A `LibraryStore` with the ability ``"reembed"``: vectors of another embedder are written beside those in use.

    Those of one embedder at a time: later calls for an earlier one raise `EmbeddingMismatchError`.
    """

    def begin_vectors(self, fingerprint: EmbedderFingerprint) -> None:
        """Begin the vectors of this embedder, or continue those of an interrupted run."""
        ...

    def lacking_vectors(
        self, fingerprint: EmbedderFingerprint, after: int = 0, limit: int = 128
    ) -> tuple[list[tuple[int, Chunk]], int]:
        """Return the first chunks without such a vector by their number above ``after``, and the number of all."""
        ...

    def add_vectors(self, numbers: Sequence[int], vectors: Vectors, *, embedder: EmbedderFingerprint) -> None:
        """Write the vectors of an embedder. Chunks that were removed or replaced meanwhile are left out."""
        ...

    def switch_vectors(self, fingerprint: EmbedderFingerprint) -> bool:
        """Search the new vectors instead of the old ones; False if chunks that were added meanwhile have none yet."""
        ...


class WordsFirstStore(LibraryStore, Protocol):
    """A `LibraryStore` with the ability ``"words_first"``: a chunk may wait for its vector.

    A chunk that is written without a vector is found by its words at once, in a server after `flush`, and by dense
    searches once it has one. A search that misses chunks says so (`trace.degraded`).
    """

    def waiting(self, after: int = 0, limit: int = 256) -> list[tuple[int, Document]]:
        """Return the first waiting chunks by their number in the store, above ``after``; no number is used twice."""
        ...

    def add_vectors(self, numbers: Sequence[int], vectors: Vectors) -> None:
        """Write the vectors of waiting chunks. Those that were removed or replaced meanwhile are left out."""
        ...

    def refuse_vectors(self, numbers: Sequence[int]) -> None:
        """Record that the embedder refuses these chunks. They keep waiting, but the index does not wait for them."""
        ...


class FitStore(LibraryStore, Protocol):
    """A `LibraryStore` with the ability ``"fit"``: it keeps how well its embedder knows its texts."""

    def fit(self) -> Fit | None:
        """Return what was recorded for the embedder of the vectors in use; None before that."""
        ...

    def record_fit(self, fit: Fit, fingerprint: EmbedderFingerprint) -> None:
        """Record it, unless another embedder is in use by now."""
        ...


class UnsearchableStore(LibraryStore, Protocol):
    """A `LibraryStore` with the ability ``"unsearchable"``: it keeps which files are not searchable, and why.

    A collection has at most one entry for a path, or for a name without a path; a later entry replaces it. An entry is
    removed when a source of its path is written or removed. It moves with the source, and with the collection.
    """

    def replace_source(
        self,
        collection: str,
        source_file: str,
        chunks: Sequence[EmbeddedChunk],
        *,
        unsearchable: Sequence[Unsearchable] = (),
    ) -> None:
        """See `LibraryStore`; ``unsearchable``: entries to record in the same transaction, after the source."""
        ...

    def unsearchable(self, after: int = 0, limit: int = 1_000) -> list[tuple[int, Unsearchable]]:
        """Return the first entries by their number in the store, above ``after``; no number is used twice.

        One that is recorded as ``failed`` is ``outdated`` while its old version, or a member, is stored.
        """
        ...

    def sources(self, collection: str | None = None, *, in_part: bool = False) -> list[SourceInfo]:
        """See `LibraryStore`; ``in_part``: only those that lost text, or whose chunks wait for vectors."""
        ...

    def record_unsearchable(
        self,
        entries: Sequence[Unsearchable] = (),
        *,
        gone: Sequence[int] = (),
        folders: Sequence[IngestedFolder] = (),
    ) -> None:
        """Record entries and folders and erase the entries with the numbers ``gone``, in one transaction.

        A folder replaces the one of its path; without counts and patterns, it is removed.
        """
        ...

    def folders(self, collection: str | None = None) -> list[IngestedFolder]:
        """Return the folders of a collection, or of all, ordered by collection and path."""
        ...


class Engine(Protocol):
    """Runs the work of an ingest on workers."""

    def map(
        self, work: Callable[[list[Item]], list[Result]], groups: Iterable[list[Item]]
    ) -> Iterator[list[Result | WorkerLostError]]:
        """Yield the results of ``work`` for each group, in order, and raise its errors, as the built-in `map` does.

        ``groups`` is read only slightly ahead of the results. ``work`` may run several times for a group. An item that
        kills its worker at every attempt, also alone, has a `WorkerLostError` as its result.

        Raises:
            EngineError: The workers cannot be used anymore.
        """
        ...
