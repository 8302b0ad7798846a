"""Searches of a `LocalStore` by vector: each compared, or the nearest of a sketch or a graph."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ragistry.stores import exact
from ragistry.stores.attempts import Found, asked, tried
from ragistry.stores.catalog import Catalog, state_of
from ragistry.stores.exact import name_of
from ragistry.stores.ranking import ranked_documents
from ragistry.stores.reading import Keys, Outdated
from ragistry.stores.row_checksums import Damaged
from ragistry.stores.selecting import selected_keys
from ragistry.stores.sketch import Sketches, nearly_nearest
from ragistry.stores.state import State
from ragistry.stores.upkeep import Upkeep
from ragistry.types import Document, Where
from ragistry.utils.vectors import query_vector as unit_query

if TYPE_CHECKING:
    from ragistry.stores.vector_index import VectorIndex

log = logging.getLogger(__name__)

MANY = 4
"""Of all vectors a quarter takes as long to pick out of memory as all take to be compared."""
UNIT = 1e-6
"""By how much the square of a length of 1 may be off in float32."""


class VectorSearch:
    """Finds chunks by vector. Above ``exact_below`` it looks at sketches first, above ``graph_above`` in ChromaDB.

    ``graph_above``: None: never. ``matrices``: where those of selections are kept.
    """

    def __init__(
        self,
        state: State,
        graph: Upkeep[VectorIndex],
        matrices: exact.Matrices,
        *,
        exact_below: int,
        graph_above: int | None,
    ) -> None:
        self._state = state
        self._graph = graph
        self._matrices = matrices
        self._sketches = Sketches()
        self._exact_below = exact_below
        self._graph_above = graph_above

    def documents(self, query: Sequence[float], top_k: int, where: Where | None) -> list[Document]:
        """The nearest chunks that meet a condition in its normal form."""
        found = self._at_once(query, top_k, where)
        return self._in_snapshot(query, top_k, where) if found is None else found

    def _at_once(self, query: Sequence[float], top_k: int, where: Where | None) -> list[Document] | None:
        """The nearest by the catalog that was last seen; None where it may have changed, or sketches are to be used.

        Outside of a snapshot, which costs as much as a search of few chunks: the last statement, that reads what was
        found, tells whether all before it saw the same state.
        """
        catalog = self._state.last_catalog
        if not catalog.chunks or (where is None and not self._compares_all(catalog)):
            return None
        vector, name = _direction(query, None), name_of(where)
        kept = self._matrices.get(catalog.state, name)
        with self._state.database.read() as connection:
            try:
                if kept is None and state_of(connection) != catalog.state:
                    return None
                matrix = kept or self._read(connection, catalog, where)
                if matrix.vectors.shape[1] != len(vector):
                    return None
                keys, scores = exact.nearest(matrix, vector, top_k)
                found = ranked_documents(connection, catalog, keys, scores, top_k, "dense", "cosine")
            except (Outdated, Damaged):
                return None
        if not found or len(found) < min(top_k, len(keys)):
            return None  # where nothing was read, nothing told the state
        if kept is None:  # not before: others may be in a snapshot of that state
            self._matrices.keep(catalog, name, matrix)
        return found

    def _in_snapshot(self, query: Sequence[float], top_k: int, where: Where | None) -> list[Document]:
        def search(index: VectorIndex | None, final: bool) -> list[Document]:
            with self._state.read() as (connection, catalog):
                vector = _direction(query, catalog.dimension or None)
                if not catalog.chunks:
                    log.warning("%s: the store is empty; ingest something first", self._state.folder)
                    return []
                if where is not None or self._compares_all(catalog):
                    keys, scores = exact.nearest(self._matrix(connection, catalog, where), vector, top_k)
                elif self._asks_graph(catalog):
                    keys, scores = asked(
                        self._graph, index, lambda found: found.search(vector, top_k), connection, catalog, final
                    )
                else:
                    keys, scores = self._nearest(connection, catalog, vector, top_k)
                return ranked_documents(connection, catalog, keys, scores, top_k, "dense", "cosine")

        return tried(self._state, self._graph, self._graph.present, search)

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

        def vectors_of(keys: Keys) -> exact.Matrix:
            if everything is not None:
                return everything.picked(keys)
            return exact.load(connection, catalog.holding(keys.tolist()), keys, catalog.dimension)

        def compared(keys: Keys) -> exact.Matrix:
            many = len(keys) > catalog.chunks // MANY
            return everything if everything is not None and many else vectors_of(keys)

        def stored() -> Keys:
            return selected_keys(connection, catalog.select(None))

        return nearly_nearest(self._sketches.of(catalog, stored, vectors_of), vector, top_k, compared)

    def _matrix(self, connection: sqlite3.Connection, catalog: Catalog, where: Where | None) -> exact.Matrix:
        name = name_of(where)
        matrix = self._matrices.get(catalog.state, name)
        if matrix is None:
            matrix = self._read(connection, catalog, where)
            self._matrices.keep(catalog, name, matrix)
        return matrix

    def _read(self, connection: sqlite3.Connection, catalog: Catalog, where: Where | None) -> exact.Matrix:
        selection = catalog.select(where)
        keys = selected_keys(connection, selection)
        everything = self._matrices.get(catalog.state, exact.EVERYTHING)
        if everything is not None:
            return everything.picked(keys)
        known = self._matrices.everything(catalog.generation)
        return exact.load(connection, selection.groups(), keys, catalog.dimension, known)


def _direction(query: Sequence[float], dimension: int | None) -> NDArray[np.float32]:
    """The query at unit length; as it is where it has that length, as what an embedder gives does."""
    given: Any = query
    if isinstance(given, np.ndarray) and given.dtype == np.float32 and given.ndim == 1:
        row: NDArray[np.float32] = given
        if dimension in (None, len(row)) and abs(row.dot(row) - 1) < UNIT:
            return row
    return unit_query(query, dimension)
