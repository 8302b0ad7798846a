"""Hide file names from techniques during a comparison.

Synthetic queries often share words with the path of their document, so a technique that ranks by paths would find it
without retrieval. Therefore each source has the same opaque name everywhere during a comparison, and results are
translated back before they are measured. Chunk ids are already hashes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NoReturn

from ragistry.errors import StoreError, UnsupportedError
from ragistry.protocols import LibraryStore
from ragistry.types import Document, EmbedderFingerprint, SourceInfo, Where
from ragistry.utils.ids import PLACE, chunk_id
from ragistry.utils.where import JOINS, normalise

if TYPE_CHECKING:
    from ragistry.library.service import DocumentService
    from ragistry.protocols import Vectors

HIDDEN = ("source_file", "source", "source_path", "file_path")
"""Metadata with the name of a source, replaced by the opaque name."""


@cache
def opaque(source_file: str) -> str:
    """Return the name of a source during a comparison."""
    return f"d{sha256(f'source {source_file}'.encode()).hexdigest()[:16]}"


class MaskedStore:
    """A read-only `LibraryStore` with opaque names of sources.

    Args:
        store: The store.
        has_vectors: False for an index of words only.
    """

    def __init__(self, store: LibraryStore, *, has_vectors: bool = True) -> None:
        self._store = store
        self._has_vectors = has_vectors
        self._real: dict[str, str] = {}
        self.sources()  # Conditions on opaque names need them.

    def real_name(self, name: str) -> str:
        """Return the source behind an opaque name; other names are returned unchanged."""
        return self._real.get(name, name)

    @property
    def abilities(self) -> frozenset[str]:
        return self._store.abilities & {"text"}

    def search(self, query_vector: Sequence[float], top_k: int = 10, *, where: Where | None = None) -> list[Document]:
        self._check_vectors()
        return self._masked(self._store.search(query_vector, top_k, where=self._real_where(where)))

    def search_text(
        self, query: str, top_k: int = 10, *, where: Where | None = None, every: bool = False
    ) -> list[Document]:
        return self._masked(self._store.search_text(query, top_k, where=self._real_where(where), every=every))

    def get(self, ids: Sequence[str]) -> list[Document]:
        """Return chunks by id; ids computed from the opaque name of a source are accepted, too."""
        found = self._store.get(ids)
        if len(found) < len(ids):
            found = self._store.get(list(dict.fromkeys(self._ids.get(id, id) for id in ids)))
        return self._masked(found)

    def scan(self, where: Where | None = None, *, batch: int = 1000) -> Iterator[Document]:
        for document in self._store.scan(self._real_where(where), batch=batch):
            yield from self._masked([document])

    def count(self, where: Where | None = None) -> int:
        return self._store.count(self._real_where(where))

    def sources(self, collection: str | None = None) -> list[SourceInfo]:
        return [
            replace(info, source_file=self._mask(info.source_file), source=self._mask(info.source_file), source_path="")
            for info in self._store.sources(collection)
        ]

    def vectors(self, ids: Sequence[str]) -> Vectors:
        self._check_vectors()
        return self._store.vectors(ids)

    def embedder(self) -> EmbedderFingerprint | None:
        return self._store.embedder() if self._has_vectors else None

    def close(self) -> None:
        """Does nothing: the comparison closes the store."""

    def _refused(self, *_: Any, **__: Any) -> NoReturn:
        raise UnsupportedError("a comparison only reads its store; remove the call that writes to it")

    add_documents = replace_source = move_source = move_collection = delete = clear_collection = _refused
    use_embedder = known_vectors = writing = flush = reembed = verify = repair = _refused

    def _check_vectors(self) -> None:
        if not self._has_vectors:
            raise StoreError(
                "the index has no vectors, because no technique asked for the embedder; add a parameter `embedder` to "
                "the constructor of the technique that searches by vector"
            )

    def _mask(self, source_file: str) -> str:
        name = opaque(source_file)
        self._real[name] = source_file
        return name

    def _masked(self, documents: Sequence[Document]) -> list[Document]:
        found = []
        for one in documents:
            name = self._mask(str(one.metadata.get("source_file") or one.metadata.get("source") or ""))
            metadata = one.metadata | {key: name for key in HIDDEN if key in one.metadata}
            found.append(Document(one.content, metadata, one.score, one.id, one.scores))
        return found

    @cached_property
    def _ids(self) -> dict[str, str]:
        """The real id of each chunk by the id computed from the opaque name."""
        found = {}
        for chunk in self._store.scan():
            collection, source_file, index = (chunk.metadata.get(key) for key in PLACE)
            if isinstance(source_file, str) and index is not None:
                found[chunk_id(str(collection), self._mask(source_file), index)] = chunk.id
        return found

    def _real_where(self, where: Where | None) -> Where | None:
        return None if where is None else self._unmasked(normalise(where))

    def _unmasked(self, where: Where) -> dict[str, Any]:
        """Return the same condition on real names."""
        [(key, value)] = where.items()
        if key in JOINS:
            return {key: [self._unmasked(part) for part in value]}
        [(op, operand)] = value.items()
        operands = operand if isinstance(operand, list) else [operand]
        if key not in HIDDEN or not any(one in self._real for one in operands):
            return {key: value}
        real = [self._real.get(one, one) for one in operands]
        return {"source_file": {op: real if isinstance(operand, list) else real[0]}}


class MaskedLibrary:
    """The library that techniques see: its collections, and sources with opaque names."""

    def __init__(self, library: DocumentService, store: MaskedStore) -> None:
        self.collections = library.collections
        self.sources = store.sources
