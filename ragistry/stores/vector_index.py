"""Approximate nearest neighbours of a `LocalStore`: ids and vectors in ChromaDB, nothing else.

Without text and metadata ChromaDB takes vectors in about three times faster, and what it loses is nowhere but here.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragistry.errors import StoreCorruptError, StoreError
from ragistry.stores.checksums import check_checksums, remove_checksums, write_checksums
from ragistry.stores.chroma_client import open_directory
from ragistry.stores.chroma_collection import check_index, open_collection
from ragistry.stores.chroma_errors import translated
from ragistry.stores.reading import Keys

NAME = "vectors"
GRAPH = {"space": "cosine", "max_neighbors": 32, "ef_construction": 100, "ef_search": 200}
"""Twice ChromaDB's own neighbours: with 16, 500 equal vectors hid half of 500 others, with 32 one in twenty."""
BATCH = 1_000
"""Vectors a write: ChromaDB lets no other thread run while it writes."""
MAX_FETCHED = 5_000
"""Vectors fetched at most to see all that share the last place; among more of them, ChromaDB chooses."""


class VectorIndex:
    """An index in a folder, by the integer keys of a `LocalStore`. Only the holder of the store's lock opens it.

    Raises `StoreCorruptError` where the folder does not open, or what is in it does not find itself.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._place = f"the vector index at {str(folder)!r}"
        self._closed = False
        check_checksums(folder)
        try:
            self._connection = open_directory(folder, 0.0)
        except StoreError as error:
            raise StoreCorruptError(f"{self._place} does not open: {error}") from error
        try:
            with translated(self._place):
                self._rows = open_collection(self._connection.client, NAME, self._place, GRAPH)
                check_index(self._rows, self._place)
        except BaseException as error:
            self._connection.close()
            if isinstance(error, StoreError) and not isinstance(error, StoreCorruptError):
                raise StoreCorruptError(f"{self._place} does not open: {error}") from error
            raise

    @staticmethod
    def build(folder: Path, pairs: Iterable[tuple[int, Any]]) -> None:
        """Make an index of ``(key, vector)`` in a folder that is empty."""
        index = VectorIndex(folder)
        index.apply(pairs, ())
        index.close()

    def apply(self, add: Iterable[tuple[int, Any]], delete: Iterable[int]) -> None:
        """Take vectors in, in the place of what has their keys, and forget other keys."""
        remove_checksums(self._folder)
        with translated(self._place):
            gone = [str(key) for key in delete]
            for start in range(0, len(gone), BATCH):
                self._rows.delete(ids=gone[start : start + BATCH])
            pairs = iter(add)
            while batch := list(islice(pairs, BATCH)):
                self._rows.upsert(ids=[str(key) for key, _ in batch], embeddings=np.stack([row for _, row in batch]))

    def search(self, query: NDArray[np.float32], top_k: int) -> tuple[Keys, NDArray[np.float32]]:
        """Keys and cosine similarities of the nearest vectors, best first, with all that tie with the last."""
        wanted = top_k + 1
        while True:
            keys, scores = self._nearest(query, wanted)
            tied = len(keys) == wanted and scores[-1] == scores[top_k - 1]
            if not tied or wanted >= MAX_FETCHED:
                return keys, scores
            wanted = min(2 * wanted, MAX_FETCHED)

    def _nearest(self, query: NDArray[np.float32], wanted: int) -> tuple[Keys, NDArray[np.float32]]:
        try:
            with translated(self._place):
                found = self._rows.query(query_embeddings=query.reshape(1, -1), n_results=wanted, include=["distances"])
        except AttributeError as error:
            if not self._closed:
                raise
            # Another thread closed it meanwhile, whereupon ChromaDB's client has lost its parts.
            raise StoreError(f"{self._place} is closed; search again") from error
        [ids], [distances] = found["ids"], found["distances"] or [[]]
        return np.array([int(id) for id in ids], dtype=np.int64), 1 - np.array(distances, dtype=np.float32)

    def count(self) -> int:
        """How many vectors the index holds."""
        with translated(self._place):
            return self._rows.count()

    def check(self, count: int) -> str:
        """What is wrong with the index, which should hold ``count`` vectors; empty where nothing is."""
        try:
            with translated(self._place):
                held = self._rows.count()
                if held != count:
                    return f"{self._place} holds {held:,} vectors in place of {count:,}"
                return self._lost()
        except StoreError as error:
            return str(error)

    def _lost(self) -> str:
        """Every vector must find itself."""
        lost = tried = offset = 0
        while page := self._rows.get(limit=BATCH, offset=offset, include=["embeddings"]):
            if not page["ids"]:
                break
            offset += BATCH
            found = self._rows.query(query_embeddings=page["embeddings"], n_results=1, include=["distances"])
            tried += len(page["ids"])
            lost += sum(not distances or abs(distances[0]) > 1e-3 for distances in found["distances"] or [])
        # An approximate index may miss one in some thousand.
        return f"{self._place}: {lost:,} of {tried:,} vectors do not find themselves" if lost > tried / 500 else ""

    def close(self) -> None:
        """Let go of the folder."""
        self._closed = True
        self._connection.close()
        with suppress(OSError):  # without checksums it is made again
            write_checksums(self._folder)
            for suffix in (".lock", ".holder"):
                self._folder.with_name(self._folder.name + suffix).unlink(missing_ok=True)
