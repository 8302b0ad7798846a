"""What a search of words has found, before any of it is read."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ragistry.stores.ranking import ranked_documents
from ragistry.stores.reading import Keys, Outdated, contents
from ragistry.types import Document

if TYPE_CHECKING:
    from ragistry.stores.catalog import Catalog
    from ragistry.stores.database import Database


@dataclass(frozen=True, slots=True, eq=False)
class TextHits:
    """The best chunks for a query: as many as were asked for, and all that score the same as the last of them.

    ``scores``: BM25, the highest first; ``collections``: that of each, None where it has none.
    """

    scores: Sequence[float]
    collections: Sequence[str | None]
    _keys: Keys
    _catalog: Catalog
    _database: Database

    @classmethod
    def of(
        cls,
        connection: sqlite3.Connection,
        catalog: Catalog,
        database: Database,
        keys: Keys,
        scores: NDArray[np.float32],
    ) -> TextHits:
        """What an index found, ordered by score."""
        return cls(scores.tolist(), _collections(connection, catalog, keys.tolist()), keys, catalog, database)

    def documents(self, collections: Collection[str], top_k: int) -> list[Document] | None:
        """The ``top_k`` best of these collections, as a search within them finds them.

        None where not so many of the hits are theirs, or the store was written to since. Raises `StoreError`.
        """
        rows = [row for row, name in enumerate(self.collections) if name in collections]
        if len(rows) < top_k:
            return None
        last = self.scores[rows[top_k - 1]]
        rows = [row for row in rows if self.scores[row] >= last]
        keys, scores = self._keys[rows], np.array([self.scores[row] for row in rows], dtype=np.float32)
        with self._database.read() as connection:
            try:
                found = ranked_documents(connection, self._catalog, keys, scores, top_k, "bm25", "bm25")
            except Outdated:
                return None
        return found if len(found) == top_k else None


def _collections(connection: sqlite3.Connection, catalog: Catalog, keys: list[int]) -> list[str | None]:
    """Of each key the collection; that of a chunk without a source has to be read."""
    names = [None if group is None else group.collection for group in map(catalog.group_at, keys)]
    loose = [key for key, name in zip(keys, names, strict=True) if name is None]
    for key, _, _, metadata in contents(connection, catalog, loose) if loose else ():
        name = metadata.get("collection")
        names[keys.index(key)] = name if isinstance(name, str) else None
    return names
