"""Searches of a `LocalStore`: by vector, each compared or the nearest of a sketch or a graph, and by words."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ragistry.errors import StoreError, StoreLockedError
from ragistry.stores import exact, reading
from ragistry.stores.catalog import Catalog, state_of
from ragistry.stores.indexes import Indexes
from ragistry.stores.ranking import ranked_documents
from ragistry.stores.row_checksums import Damaged
from ragistry.stores.sketch import Sketches, nearly_nearest
from ragistry.stores.state import State
from ragistry.stores.text_hits import TextHits
from ragistry.stores.upkeep import I, Upkeep
from ragistry.trace import degraded
from ragistry.types import Document, Where
from ragistry.utils.vectors import query_vector as unit_query

if TYPE_CHECKING:
    from ragistry.stores.lexical import LexicalIndex
    from ragistry.stores.vector_index import VectorIndex

log = logging.getLogger(__name__)

Found = tuple[reading.Keys, NDArray[np.float32]]
NOTHING: Found = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
Answer = TypeVar("Answer")
Made = Callable[[sqlite3.Connection, Catalog, Found], Answer]
"""Makes an answer of what an index found, inside of the snapshot."""

MANY = 4
"""Of all vectors a quarter takes as long to pick out of memory as all take to be compared."""
ATTEMPTS = 4
"""How often a search is made anew because the store was written to between its looks at the database and an index.
After these it keeps writers out."""


UNIT = 1e-6
"""By how much the square of a length of 1 may be off in float32."""


class _Again(Exception):  # noqa: N818
    """A search has to be made anew, with an index that is brought up; the text says what broke in it, if anything."""


class Searching:
    """Finds chunks. Above ``exact_below`` of them it looks at sketches first, above ``graph_above`` in ChromaDB.

    ``graph_above``: None: never.
    """

    def __init__(
        self, state: State, indexes: Indexes, *, memory: int, exact_below: int, graph_above: int | None
    ) -> None:
        self._state = state
        self._indexes = indexes
        self._matrices = exact.Matrices(memory)
        self._sketches = Sketches()
        self._exact_below = exact_below
        self._graph_above = graph_above

    def by_vector(self, query: Sequence[float], top_k: int, where: Where | None) -> list[Document]:
        """The nearest chunks that meet a condition in its normal form."""
        found = self._at_once(query, top_k, where)
        return self._by_vector(query, top_k, where) if found is None else found

    def _at_once(self, query: Sequence[float], top_k: int, where: Where | None) -> list[Document] | None:
        """The nearest by the catalog that was last seen; None where it may have changed, or sketches are to be used.

        Outside of a snapshot, which costs as much as a search of few chunks: the last statement, that reads what was
        found, tells whether all before it saw the same state.
        """
        catalog = self._state.last_catalog
        if not catalog.chunks or (where is None and not self._compares_all(catalog)):
            return None
        vector = _direction(query, None)
        kept = self._matrices.get(catalog.state, _name_of(where))
        with self._state.database.read() as connection:
            try:
                if kept is None and state_of(connection) != catalog.state:
                    return None
                matrix = kept or self._matrix(connection, catalog, where)
                if matrix.vectors.shape[1] != len(vector):
                    return None
                keys, scores = exact.nearest(matrix, vector, top_k)
                found = ranked_documents(connection, catalog, keys, scores, top_k, "dense", "cosine")
            except (reading.Outdated, Damaged):
                return None
        return found if len(found) == min(top_k, len(keys)) else None

    def _by_vector(self, query: Sequence[float], top_k: int, where: Where | None) -> list[Document]:
        vectors = self._indexes.vectors

        def search(index: VectorIndex | None, final: bool) -> list[Document]:
            with self._state.read() as (connection, catalog):
                vector = _direction(query, catalog.dimension or None)
                if not catalog.chunks:
                    return self._nothing()
                if where is not None or self._compares_all(catalog):
                    keys, scores = exact.nearest(self._matrix(connection, catalog, where), vector, top_k)
                elif self._asks_graph(catalog):
                    keys, scores = _asked(
                        vectors, index, lambda found: found.search(vector, top_k), connection, catalog, final
                    )
                else:
                    keys, scores = self._nearest(connection, catalog, vector, top_k)
                return ranked_documents(connection, catalog, keys, scores, top_k, "dense", "cosine")

        return self._tried(vectors, vectors.present, search)

    def by_words(self, query: str, top_k: int, where: Where | None) -> list[Document]:
        """The best chunks by BM25 that meet a condition in its normal form."""

        def read(connection: sqlite3.Connection, catalog: Catalog, found: Found) -> list[Document]:
            return ranked_documents(connection, catalog, *found, top_k, "bm25", "bm25")

        return self._by_words(query, top_k, where, read)

    def hits_by_words(self, query: str, top_k: int, where: Where | None) -> TextHits:
        """The same, not read yet."""

        def kept(connection: sqlite3.Connection, catalog: Catalog, found: Found) -> TextHits:
            if state_of(connection) != catalog.state:
                raise reading.Outdated
            return TextHits.of(connection, catalog, self._state.database, *found)

        return self._by_words(query, top_k, where, kept)

    def _by_words(self, query: str, top_k: int, where: Where | None, made: Made[Answer]) -> Answer:
        """What is ``made`` of the keys and scores that the lexical index finds; it asks whether it sees that state."""
        answer = self._words_at_once(query, top_k, where, made)
        return self._words_found(query, top_k, where, made) if answer is None else answer

    def _words_at_once(self, query: str, top_k: int, where: Where | None, made: Made[Answer]) -> Answer | None:
        """The same by what was seen last, outside of a snapshot; None where that may have changed, as in `_at_once`."""
        lexical, catalog = self._indexes.lexical, self._state.last_catalog
        index = lexical.known_to_be_of(catalog.state)
        allowed = None if where is None else self._kept_keys(catalog, where)
        if index is None or (where is not None and allowed is None):
            return None
        try:
            found = index.search(query, top_k, allowed=None if allowed is None else allowed.keys)
            if not len(found[0]) or lexical.known_to_be_of(catalog.state) is not index:
                return None
            with self._state.database.read() as connection:
                return made(connection, catalog, found)
        except (StoreError, reading.Outdated):
            return None

    def _words_found(self, query: str, top_k: int, where: Where | None, made: Made[Answer]) -> Answer:
        lexical = self._indexes.lexical

        def search(index: LexicalIndex | None, final: bool) -> Answer:
            with self._state.read() as (connection, catalog):
                if not catalog.chunks:
                    self._nothing()
                    return made(connection, catalog, NOTHING)
                allowed = None if where is None else self._keys(connection, catalog, where)
                found = _asked(
                    lexical,
                    index,
                    lambda index: index.search(query, top_k, allowed=allowed),
                    connection,
                    catalog,
                    final,
                )
                return made(connection, catalog, found)

        return self._tried(lexical, lexical.opened(), search)

    def _tried(self, keeper: Upkeep[I], index: I | None, search: Callable[[I | None, bool], Answer]) -> Answer:
        """What ``search`` finds with the index as it is, if that will do, else when it is brought up.

        It is never waited for inside of a snapshot, for which in turn a writer may wait.
        """
        for attempt in count(1):
            try:
                return search(index, False)
            except _Again as again:
                broken = str(again)
            try:
                with self._state.locked(to_search=True):
                    index = keeper.mended(index, broken)
                    if attempt == ATTEMPTS:
                        return search(index, True)
            except StoreLockedError:
                degraded("another process is writing; what it wrote last is not searched by words; try again")
                return search(index, True)
        raise AssertionError

    def _compares_all(self, catalog: Catalog) -> bool:
        return catalog.chunks <= self._exact_below and not self._asks_graph(catalog)

    def _asks_graph(self, catalog: Catalog) -> bool:
        """Also where sketches are slow, because the vectors that they show would have to be read from the disk."""
        if self._graph_above is None:
            return False
        return catalog.chunks > self._graph_above or (catalog.chunks > self._exact_below and not self._fits(catalog))

    def _fits(self, catalog: Catalog) -> bool:
        """Whether all vectors and their keys may be kept in memory."""
        return (4 * catalog.dimension + 8) * catalog.chunks <= self._matrices.memory

    def _nearest(
        self, connection: sqlite3.Connection, catalog: Catalog, vector: NDArray[np.float32], top_k: int
    ) -> Found:
        """The nearest of all chunks, by their sketches."""
        everything = self._matrices.get(catalog.state, exact.EVERYTHING)
        if everything is None and self._fits(catalog):
            # The first search has to read all vectors anyway; it may be the only one.
            return exact.nearest(self._matrix(connection, catalog, None), vector, top_k)

        def vectors_of(keys: reading.Keys) -> exact.Matrix:
            if everything is not None:
                return everything.picked(keys)
            return exact.load(connection, catalog.holding(keys.tolist()), keys)

        def compared(keys: reading.Keys) -> exact.Matrix:
            many = len(keys) > catalog.chunks // MANY
            return everything if everything is not None and many else vectors_of(keys)

        def stored() -> reading.Keys:
            return reading.selected_keys(connection, catalog.select(None))

        return nearly_nearest(self._sketches.of(catalog, stored, vectors_of), vector, top_k, compared)

    def _matrix(self, connection: sqlite3.Connection, catalog: Catalog, where: Where | None) -> exact.Matrix:
        name = _name_of(where)
        matrix = self._matrices.get(catalog.state, name)
        if matrix is None:
            selection = catalog.select(where)
            keys = reading.selected_keys(connection, selection)
            everything = self._matrices.get(catalog.state, exact.EVERYTHING)
            if everything is not None:
                matrix = everything.picked(keys)
            else:
                matrix = exact.load(connection, selection.groups(), keys, self._matrices.everything(catalog.generation))
            self._matrices.keep(catalog, name, matrix)
        return matrix

    def _keys(self, connection: sqlite3.Connection, catalog: Catalog, where: Where) -> reading.Keys:
        """The keys of a selection; kept, because to select them may take longer than the search of words itself."""
        kept = self._kept_keys(catalog, where)
        if kept is None:
            kept = exact.Matrix(reading.selected_keys(connection, catalog.select(where)), np.empty((0, 0), np.float32))
            self._matrices.keep(catalog, f"keys {where!r}", kept)
        return kept.keys

    def _kept_keys(self, catalog: Catalog, where: Where) -> exact.Matrix | None:
        name = _name_of(where)
        return self._matrices.get(catalog.state, name) or self._matrices.get(catalog.state, f"keys {name}")

    def _nothing(self) -> list[Document]:
        log.warning("%s: the store is empty; ingest something first", self._state.folder)
        return []


def _direction(query: Sequence[float], dimension: int | None) -> NDArray[np.float32]:
    """The query at unit length; as it is where it has that length, as what an embedder gives does."""
    given: Any = query
    if isinstance(given, np.ndarray) and given.dtype == np.float32 and given.ndim == 1:
        row: NDArray[np.float32] = given
        if dimension in (None, len(row)) and abs(row.dot(row) - 1) < UNIT:
            return row
    return unit_query(query, dimension)


def _name_of(where: Where | None) -> str:
    return exact.EVERYTHING if where is None else repr(where)


def _asked(
    keeper: Upkeep[I],
    index: I | None,
    ask: Callable[[I], Found],
    connection: sqlite3.Connection,
    catalog: Catalog,
    final: bool,
) -> Found:
    """What an index finds; `_Again` where it is not there, fails, or does not hold what the connection sees."""
    if index is None:
        if final:
            return NOTHING
        raise _Again
    try:
        found = ask(index)
    except StoreError as error:
        if final:
            raise
        raise _Again(str(error)) from error
    if not final and not keeper.is_of(connection, catalog.state):
        raise _Again
    return found
