"""Searches of a `LocalStore` by words."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ragistry.errors import StoreError
from ragistry.stores.attempts import NOTHING, Answer, Found, asked, tried
from ragistry.stores.catalog import Catalog, state_of
from ragistry.stores.exact import Matrices, Matrix, name_of
from ragistry.stores.ranking import ranked_documents
from ragistry.stores.reading import Outdated
from ragistry.stores.selecting import selected_keys
from ragistry.stores.state import State
from ragistry.stores.text_hits import TextHits
from ragistry.stores.upkeep import Upkeep
from ragistry.types import Document, Where

if TYPE_CHECKING:
    from ragistry.stores.lexical import LexicalIndex

log = logging.getLogger(__name__)

Made = Callable[[sqlite3.Connection, Catalog, Found], Answer]
"""Makes an answer of what the index found; raises `Outdated` where the connection sees another state."""


class WordSearch:
    """Finds chunks by BM25. ``selections``: where the keys of selections are kept."""

    def __init__(self, state: State, index: Upkeep[LexicalIndex], selections: Matrices) -> None:
        self._state = state
        self._index = index
        self._selections = selections

    def documents(self, query: str, top_k: int, where: Where | None) -> list[Document]:
        """The best chunks by BM25 that meet a condition in its normal form."""

        def read(connection: sqlite3.Connection, catalog: Catalog, found: Found) -> list[Document]:
            return ranked_documents(connection, catalog, *found, top_k, "bm25", "bm25")

        return self._found(query, top_k, where, read)

    def hits(self, query: str, top_k: int, where: Where | None) -> TextHits:
        """The same, not read yet."""

        def kept(connection: sqlite3.Connection, catalog: Catalog, found: Found) -> TextHits:
            if state_of(connection) != catalog.state:
                raise Outdated
            return TextHits.of(connection, catalog, self._state.database, *found)

        return self._found(query, top_k, where, kept)

    def _found(self, query: str, top_k: int, where: Where | None, made: Made[Answer]) -> Answer:
        """What is ``made`` of the keys and scores that the index finds."""
        answer = self._at_once(query, top_k, where, made)
        return self._in_snapshot(query, top_k, where, made) if answer is None else answer

    def _at_once(self, query: str, top_k: int, where: Where | None, made: Made[Answer]) -> Answer | None:
        """The same by what was seen last, outside of a snapshot; None where that may have changed since."""
        catalog = self._state.last_catalog
        index = self._index.known_to_be_of(catalog.state)
        kept = None if where is None else self._kept(catalog, where)
        if index is None or (where is not None and kept is None):
            return None
        try:
            found = index.search(query, top_k, allowed=None if kept is None else kept.keys)
            if not len(found[0]) or not self._index.is_as_known():
                return None
            with self._state.database.read() as connection:
                return made(connection, catalog, found)
        except (StoreError, Outdated):
            return None

    def _in_snapshot(self, query: str, top_k: int, where: Where | None, made: Made[Answer]) -> Answer:
        def search(index: LexicalIndex | None, final: bool) -> Answer:
            with self._state.read() as (connection, catalog):
                if not catalog.chunks:
                    log.warning("%s: the store is empty; ingest something first", self._state.folder)
                    return made(connection, catalog, NOTHING)
                allowed = None if where is None else self._selected(connection, catalog, where).keys

                def ask(index: LexicalIndex) -> Found:
                    return index.search(query, top_k, allowed=allowed)

                return made(connection, catalog, asked(self._index, index, ask, connection, catalog, final))

        return tried(self._state, self._index, self._index.opened(), search)

    def _selected(self, connection: sqlite3.Connection, catalog: Catalog, where: Where) -> Matrix:
        """The keys of a selection; kept, because to select them may take longer than the search of words itself."""
        kept = self._kept(catalog, where)
        if kept is None:
            kept = Matrix(selected_keys(connection, catalog.select(where)), np.empty((0, 0), np.float32))
            self._selections.keep(catalog, f"keys {name_of(where)}", kept)
        return kept

    def _kept(self, catalog: Catalog, where: Where) -> Matrix | None:
        name = name_of(where)
        return self._selections.get(catalog.state, name) or self._selections.get(catalog.state, f"keys {name}")
