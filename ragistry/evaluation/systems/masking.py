"""Hide file names from techniques during a comparison.

Synthetic queries often share words with the path of their document, so a technique that ranks by paths would find it
without retrieval. Therefore each source has the same opaque name everywhere during a comparison, and results are
translated back before they are measured. The opaque names are hashes with a salt, which a technique that lists the
folder of the documents does not know. Ids of chunks are made from the opaque names.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from weakref import WeakKeyDictionary

from filelock import FileLock

from ragistry.errors import EvaluationError, StoreError, UnsupportedError
from ragistry.protocols import LibraryStore, RankingStore, as_ranking_store
from ragistry.types import Document, EmbedderFingerprint, Place, Ranking, SourceInfo, Where
from ragistry.utils.ids import PLACE, chunk_id
from ragistry.utils.where import JOINS, Condition, normalise

if TYPE_CHECKING:
    from ragistry.library.service import DocumentService
    from ragistry.protocols import Vectors

HIDDEN = ("source_file", "source", "source_path", "file_path")
"""Metadata with the name of a source, replaced by the opaque name."""


SALT = "salt"
"""File with the salt of a workspace, in the folder of its comparisons."""


def read_salt(folder: Path) -> str:
    """Return the salt of a workspace; draw one if it has none.

    Args:
        folder: Folder of the comparisons of the workspace.

    Raises:
        EvaluationError: The salt cannot be kept.
    """
    path = folder / SALT
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{path}.lock"):
            salt = path.read_text(encoding="utf-8").strip() if path.exists() else ""
            if not salt:
                salt = secrets.token_hex(8)
                path.write_text(salt, encoding="utf-8")
    except (OSError, ValueError) as error:
        raise EvaluationError(
            f"the salt of hidden names cannot be kept in {str(path)!r} ({error}); make the folder writable, or pass a "
            "salt with --salt"
        ) from error
    return salt


@dataclass(slots=True)
class Hidden:
    """What a masked store hides.

    Attributes:
        store: The store with the real names.
        salt: Salt of the opaque names.
        opaque: Source → opaque name.
        sources: Opaque name → source.
        ids: Id of a chunk under the opaque name → its id in the store.
        all_ids: ``ids`` has every chunk.
        ranking: The last ranking of the store.
        places: Places of chunks in the version of that ranking, under the opaque names.
    """

    store: LibraryStore
    salt: str
    opaque: dict[str, str] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    all_ids: bool = False
    ranking: Ranking | None = None
    places: dict[int, Place] = field(default_factory=dict)


_HIDDEN: WeakKeyDictionary[MaskedStore, Hidden] = WeakKeyDictionary()
"""What each masked store hides. It is kept here so that no attribute of a store leads to a real name."""


def real_name(store: MaskedStore, name: str) -> str:
    """Return the source behind an opaque name; other names are returned unchanged."""
    return _HIDDEN[store].sources.get(name, name)


class MaskedStore:
    """A read-only `LibraryStore` with opaque names of sources.

    Args:
        store: The store.
        salt: Salt of the opaque names.
        has_vectors: False for an index of words only.
    """

    def __init__(self, store: LibraryStore, salt: str, *, has_vectors: bool = True) -> None:
        _HIDDEN[self] = Hidden(store, salt)
        self._has_vectors = has_vectors
        self.sources()  # Conditions on opaque names need them.

    @property
    def abilities(self) -> frozenset[str]:
        return _HIDDEN[self].store.abilities & {"text"}

    def search(self, query_vector: Sequence[float], top_k: int = 10, *, where: Where | None = None) -> list[Document]:
        self._check_vectors()
        return self._masked(_HIDDEN[self].store.search(query_vector, top_k, where=self._real_where(where)))

    def search_text(
        self, query: str, top_k: int = 10, *, where: Where | None = None, every: bool = False
    ) -> list[Document]:
        return self._masked(_HIDDEN[self].store.search_text(query, top_k, where=self._real_where(where), every=every))

    def get(self, ids: Sequence[str]) -> list[Document]:
        """Return chunks by the id that `chunk_id` computes from the opaque name of their source."""
        return self._masked(_HIDDEN[self].store.get(self._real_ids(ids)))

    def scan(self, where: Where | None = None, *, batch: int = 1000) -> Iterator[Document]:
        for document in _HIDDEN[self].store.scan(self._real_where(where), batch=batch):
            yield from self._masked([document])

    def count(self, where: Where | None = None) -> int:
        return _HIDDEN[self].store.count(self._real_where(where))

    def sources(self, collection: str | None = None) -> list[SourceInfo]:
        return [
            replace(info, source_file=self._mask(info.source_file), source=self._mask(info.source_file), source_path="")
            for info in _HIDDEN[self].store.sources(collection)
        ]

    def vectors(self, ids: Sequence[str]) -> Vectors:
        self._check_vectors()
        return _HIDDEN[self].store.vectors(self._real_ids(ids))

    def embedder(self) -> EmbedderFingerprint | None:
        return _HIDDEN[self].store.embedder() if self._has_vectors else None

    def close(self) -> None:
        """Does nothing: the comparison closes the store."""

    def _refused(self, *_: Any, **__: Any) -> NoReturn:
        raise UnsupportedError("a comparison only reads its store; remove the call that writes to it")

    add_documents = replace_source = move_source = move_collection = delete = clear_collection = _refused
    use_embedder = known_vectors = writing = flush = verify = repair = _refused

    def _check_vectors(self) -> None:
        if not self._has_vectors:
            raise StoreError(
                "the index has no vectors, because no technique asked for the embedder; add a parameter `embedder` to "
                "the constructor of the technique that searches by vector"
            )

    def _mask(self, source_file: str) -> str:
        hidden = _HIDDEN[self]
        if (name := hidden.opaque.get(source_file)) is None:
            name = f"d{sha256(f'{hidden.salt} {source_file}'.encode()).hexdigest()[:16]}"
            hidden.opaque[source_file], hidden.sources[name] = name, source_file
        return name

    def _masked(self, documents: Sequence[Document]) -> list[Document]:
        found, ids = [], _HIDDEN[self].ids
        for one in documents:
            name = self._mask(str(one.metadata.get("source_file") or one.metadata.get("source") or ""))
            metadata = one.metadata | {key: name for key in HIDDEN if key in one.metadata}
            id = self._masked_id(one.id, *map(metadata.get, PLACE))
            ids[id] = one.id
            found.append(Document(one.content, metadata, one.score, id, one.scores))
        return found

    def _masked_id(self, id: str, collection: str | None, name: str | None, index: int | None) -> str:
        if collection is None or name is None or index is None:
            return self._mask(id)
        return chunk_id(collection, name, index)

    def _real_ids(self, ids: Sequence[str]) -> list[str]:
        hidden = _HIDDEN[self]
        if not (hidden.all_ids or hidden.ids.keys() >= set(ids)):
            hidden.all_ids = all(True for _ in self.scan())
        return list(dict.fromkeys(hidden.ids[id] for id in ids if id in hidden.ids))

    def _real_where(self, where: Where | None) -> Where | None:
        return None if where is None else self._unmasked(normalise(where))

    def _unmasked(self, where: Where) -> dict[str, Any]:
        """Return the same condition on real names."""
        [(key, value)] = where.items()
        if key in JOINS:
            return {key: [self._unmasked(part) for part in value]}
        [(op, operand)] = value.items()
        operands, sources = operand if isinstance(operand, list) else [operand], _HIDDEN[self].sources
        if key not in HIDDEN or not any(one in sources for one in operands):
            return {key: value}
        real = [sources.get(one, one) for one in operands]
        return {"source_file": {op: real if isinstance(operand, list) else real[0]}}


class MaskedRankingStore(MaskedStore):
    """A `MaskedStore` over a `RankingStore`."""

    def search(
        self,
        query_vector: Sequence[float],
        top_k: int = 10,
        *,
        where: Where | None = None,
        embedder: EmbedderFingerprint | None = None,
    ) -> list[Document]:
        self._check_vectors()
        store: RankingStore = _HIDDEN[self].store  # type: ignore[assignment]
        return self._masked(store.search(query_vector, top_k, where=self._real_where(where), embedder=embedder))

    def rank(
        self,
        query: str | Sequence[float],
        top_k: int,
        *,
        where: Condition | None = None,
        embedder: EmbedderFingerprint | None = None,
    ) -> Ranking:
        if not isinstance(query, str):
            self._check_vectors()
        hidden = _HIDDEN[self]
        store: RankingStore = hidden.store  # type: ignore[assignment]
        real = None if where is None else normalise(self._unmasked(where))
        ranking = store.rank(query, top_k, where=real, embedder=embedder)
        if hidden.ranking is None or hidden.ranking.snapshot != ranking.snapshot:
            hidden.places = {}
        hidden.ranking = ranking
        version = ranking.snapshot[1]
        return replace(
            ranking,
            snapshot=(self, version),
            read=partial(self._read_ranked, version),
            places=partial(self._places_ranked, version),
        )

    def _read_ranked(self, version: int, keys: Sequence[int]) -> Mapping[int, Document] | None:
        ranking = _HIDDEN[self].ranking
        found = None if ranking is None or ranking.snapshot[1] != version else ranking.read(keys)
        return None if found is None else dict(zip(found, self._masked(list(found.values())), strict=True))

    def _places_ranked(self, version: int, keys: Sequence[int]) -> Mapping[int, Place] | None:
        """Return places under the opaque names. Each is read once, because every question ranks most of them."""
        hidden = _HIDDEN[self]
        ranking, places = hidden.ranking, hidden.places
        if ranking is None or ranking.snapshot[1] != version:
            return None
        if new := [key for key in keys if key not in places]:
            if (found := ranking.places(new)) is None:
                return None
            for key, place in found.items():
                name = None if place.source_file is None else self._mask(place.source_file)
                id = self._masked_id(place.id, place.collection, name, place.chunk_index)
                hidden.ids[id] = place.id
                places[key] = Place(id, place.collection, name, place.chunk_index)
        return {key: places[key] for key in keys if key in places}


def masked_store(store: LibraryStore, salt: str, *, has_vectors: bool = True) -> MaskedStore:
    """Return a view of a store with opaque names, which ranks if the store does."""
    kind = MaskedStore if as_ranking_store(store) is None else MaskedRankingStore
    return kind(store, salt, has_vectors=has_vectors)


class MaskedLibrary:
    """The library that techniques see: its collections, and sources with opaque names."""

    def __init__(self, library: DocumentService, store: MaskedStore) -> None:
        self.collections = library.collections
        self.sources = store.sources
