"""Searches of a `LocalStore`: exact or approximate by vector, and by words."""

from __future__ import annotations

import json
import logging
import sqlite3
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ragistry.errors import StoreCorruptError, StoreLockedError
from ragistry.stores import exact, reading
from ragistry.stores.catalog import Catalog
from ragistry.stores.indexes import Indexes
from ragistry.stores.ranking import ranked_documents
from ragistry.stores.state import State
from ragistry.trace import degraded
from ragistry.types import Document, Where

if TYPE_CHECKING:
    from ragistry.stores.lexical import LexicalIndex

log = logging.getLogger(__name__)

Found = tuple[reading.Keys, NDArray[np.float32]]


class Searching:
    """Finds chunks. ``approximate_above``: chunks from which on the approximate index is used; None: never."""

    def __init__(self, state: State, indexes: Indexes, memory: int, approximate_above: int | None) -> None:
        self._state = state
        self._indexes = indexes
        self._matrices = exact.Matrices(memory)
        self._approximate_above = approximate_above

    def by_vector(
        self,
        connection: sqlite3.Connection,
        catalog: Catalog,
        vector: NDArray[np.float32],
        top_k: int,
        where: Where | None,
    ) -> list[Document]:
        """The nearest chunks that meet a condition in its normal form."""
        if not catalog.chunks:
            self._warn_empty()
            return []
        if where is None and self._approximate_above is not None and catalog.chunks > self._approximate_above:
            keys, scores = self._approximate(vector, top_k)
        else:
            keys, scores = exact.nearest(self._matrix(connection, catalog, where), vector, top_k)
        return ranked_documents(connection, keys, scores, top_k, "dense", "cosine")

    def by_words(self, query: str, top_k: int, where: Where | None) -> list[Document]:
        """The best chunks by BM25 that meet a condition in its normal form."""
        index = self._lexical()
        if index is None:
            self._warn_empty()
            return []
        try:
            return self._words(index, query, top_k, where)
        except StoreCorruptError as error:
            with self._state.locked():
                index = self._indexes.remake_lexical(str(error))
            return self._words(index, query, top_k, where)

    def _words(self, index: LexicalIndex, query: str, top_k: int, where: Where | None) -> list[Document]:
        with self._state.read() as (connection, catalog):
            allowed = None if where is None else reading.selected_keys(connection, catalog.select(where))
            keys, scores = index.search(query, top_k, allowed=allowed)
            return ranked_documents(connection, keys, scores, top_k, "bm25", "bm25")

    def _matrix(self, connection: sqlite3.Connection, catalog: Catalog, where: Where | None) -> exact.Matrix:
        name = exact.EVERYTHING if where is None else json.dumps(where, sort_keys=True)
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

    def _lexical(self) -> LexicalIndex | None:
        """The index of words with all that was written; where another process writes, as it is for the moment.

        None where there is nothing to search, or nothing yet.
        """
        with self._state.read() as (connection, catalog):
            pending = self._indexes.lexical_pending(connection)
        index = self._indexes.lexical_as_it_is()
        if not catalog.chunks or (index is not None and not pending):
            return index if catalog.chunks else None
        try:
            with self._state.locked():
                return self._indexes.lexical()
        except StoreLockedError:
            missing = "the index of words is" if index is None else f"{pending} chunks are"
            degraded(f"{missing} being written by another process; search by words again when it is done")
            return index

    def _approximate(self, vector: NDArray[np.float32], top_k: int) -> Found:
        with self._state.locked():
            index = self._indexes.vectors()
        try:
            return index.search(vector, top_k)
        except StoreCorruptError as error:
            with self._state.locked():
                return self._indexes.remake_vectors(str(error)).search(vector, top_k)

    def _warn_empty(self) -> None:
        log.warning("%s: the store is empty; ingest something first", self._state.folder)
