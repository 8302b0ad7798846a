"""The seams: what a technique, an embedder, a generator, a reranker and a store must be able to do.

Anything of the right shape fits; there is nothing to inherit. `ragistry.testing` has a conformance suite for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ragistry.types import Document, EmbeddedChunk, EmbedderFingerprint, Role, SourceInfo, Where

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from pydantic import BaseModel

    Vectors = NDArray[np.float32]


@runtime_checkable
class Technique(Protocol):
    """A way to retrieve.

    The constructor takes ``config`` (the mapping of the entry in techniques.yaml, without ``use``, ``base`` and
    ``bases``) and asks by parameter name for what else it needs: ``store``, ``embedder``, ``generator``,
    ``reranker``, ``base``, ``bases``, ``library``, ``targets`` (what a query can be routed to), ``registry``. A nested
    pydantic model ``Config`` is optional; where there is one, the entry is checked against it when the file is loaded.
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


@runtime_checkable
class TokenCounter(Protocol):
    """An embedder that can also say how long a text is for its model."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, the model's special tokens included, before any cut."""
        ...


@runtime_checkable
class Generator(Protocol):
    """Prompt to text."""

    def generate(self, prompt: str, *, schema: type[BaseModel] | None = None) -> str:
        """The model's answer; with ``schema``, JSON that the schema accepts. Raises `ModelError`."""
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
class EmbedderRecord(Protocol):
    """A store that remembers which embedder its vectors come from."""

    def use_embedder(self, fingerprint: EmbedderFingerprint) -> None:
        """Record the embedder before its vectors are added; else as `check_embedder`."""
        ...

    def check_embedder(self, fingerprint: EmbedderFingerprint) -> None:
        """Raise `EmbeddingMismatchError` where the vectors come from another embedder; writes nothing."""
        ...


@runtime_checkable
class VectorLookup(Protocol):
    """A store that gives its vectors back."""

    def vectors(self, ids: Sequence[str]) -> Vectors:
        """``(n, d)`` float32 in the order of ``ids``; raises `StoreError` for an id that is not stored."""
        ...


@runtime_checkable
class VectorsByText(Protocol):
    """A store that knows what it has a vector for, so that no text is embedded twice."""

    def vectors_of_texts(self, texts: Sequence[str]) -> dict[str, Vectors]:
        """Of each text that is stored, wherever that is, the vector ``(d,)``."""
        ...


@runtime_checkable
class TextSearch(Protocol):
    """A store that also searches words."""

    def search_text(self, query: str, top_k: int = 10, *, where: Where | None = None) -> list[Document]:
        """The best chunks by BM25, ordered by ``(-score, id)``; as current as the store itself."""
        ...


@runtime_checkable
class GathersWrites(Protocol):
    """A store that may keep what was written from its indexes for a while; what is searched there is never wrong."""

    def flush(self) -> None:
        """Let every index hear of everything that was written, so that other processes find it at once."""
        ...


@runtime_checkable
class SourceStore(DocumentStore, Protocol):
    """A store that a library can stand on: it knows which source each chunk belongs to."""

    def replace_source(self, collection: str, source_file: str, chunks: Sequence[EmbeddedChunk]) -> None:
        """Put ``chunks`` in the place of all that is stored of this source; no chunks: remove it.

        The metadata of every chunk carry ``collection``, ``source_file``, ``chunk_index`` (0, 1, …) and
        ``source_hash``.
        """
        ...

    def move_source(self, source_file: str, from_collection: str, to_collection: str) -> int:
        """Give the source's chunks to another collection, vectors kept, and return how many there are."""
        ...

    def sources(self, collection: str | None = None) -> list[SourceInfo]:
        """Every source, or those of one collection, ordered by collection and name."""
        ...


@runtime_checkable
class LocksWrites(Protocol):
    """A store that lets one write at a time."""

    def writing(self) -> AbstractContextManager[None]:
        """The right to write, for a block of several writes by one thread; raises `StoreLockedError` at its start."""
        ...


@runtime_checkable
class MovesCollections(Protocol):
    """A store that gives all of a collection to another in one step."""

    def move_collection(self, from_collection: str, to_collection: str) -> int:
        """Move every source of a collection, all or none, and return how many chunks they have; vectors are kept.

        Raises `DuplicateChunkIDError` where the other collection has a source of one of their names.
        """
        ...


Resources = dict[str, Any]
"""What a registry can give a technique's constructor, by parameter name."""
