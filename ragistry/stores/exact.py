"""Exact nearest neighbours: every selected vector is compared. Matrices of hot selections stay in memory."""

from __future__ import annotations

import sqlite3
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ragistry.stores.catalog import Catalog, Group
from ragistry.stores.group_reading import group_vectors
from ragistry.stores.reading import Keys
from ragistry.stores.row_checksums import Damaged
from ragistry.types import Where
from ragistry.utils.forking import brief_lock

if TYPE_CHECKING:
    from ragistry.protocols import Vectors


class Matrix(NamedTuple):
    """The vectors of a selection, ``(n, d)``, and the key of each row, ascending."""

    keys: Keys
    vectors: Vectors

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return self.keys.nbytes + self.vectors.nbytes

    def picked(self, keys: Keys) -> Matrix:
        """The rows of these keys, ascending; a view where they follow one another."""
        rows = np.searchsorted(self.keys, keys)
        if len(rows) and rows[-1] - rows[0] + 1 == len(rows):
            return Matrix(keys, self.vectors[rows[0] : rows[-1] + 1])
        return Matrix(keys, self.vectors[rows])


EVERYTHING = ""
"""The selection of all chunks."""
FEW = 10
"""Groups that are faster looked up one by one than all at once."""
MOST = 500
"""Selections that are kept at most, however small they are."""


class Matrices:
    """The matrices of the last selections, as many as ``memory`` bytes hold, `MOST` at most. Safe for threads."""

    def __init__(self, memory: int) -> None:
        self.memory = memory
        self._state = self._generation = -1
        self._kept: OrderedDict[str, Matrix] = OrderedDict()
        self._lock = brief_lock()

    def get(self, state: int, selection: str) -> Matrix | None:
        """The matrix of a selection, written as text, in a state of the store."""
        with self._lock:
            if state != self._state:
                return None
            matrix = self._kept.get(selection)
            if matrix is not None:
                self._kept.move_to_end(selection)
            return matrix

    def everything(self, generation: int) -> Matrix | None:
        """The matrix of all that there was in the last state that was kept; its rows may be used again."""
        with self._lock:
            return self._kept.get(EVERYTHING) if generation == self._generation else None

    def keep(self, catalog: Catalog, selection: str, matrix: Matrix) -> None:
        """Keep a matrix until another state is asked for, or others need its place."""
        with self._lock:
            if catalog.state < self._state:
                return  # read by one that began before others
            if catalog.state != self._state:
                self._kept.clear()
                self._state, self._generation = catalog.state, catalog.generation
            self._kept[selection] = matrix
            size = sum(kept.size for kept in self._kept.values())
            while size > self.memory or len(self._kept) > MOST:
                size -= self._kept.popitem(last=False)[1].size


def name_of(where: Where | None) -> str:
    """What the selection that meets a condition, in its normal form, is called."""
    return EVERYTHING if where is None else repr(where)


def load(
    connection: sqlite3.Connection, groups: Sequence[Group], keys: Keys, dimension: int, old: Matrix | None = None
) -> Matrix:
    """The vectors of ``keys``, all of which lie in ``groups``; ``old``: some that were read before.

    A key is never given twice, so that a vector that was read once stays right as long as its key is stored. Raises
    `Damaged` where vectors are gone, or have not ``dimension`` numbers (0: as many as the first of them).
    """
    matrix: Vectors | None = None
    if old is not None and len(old.keys):
        matrix = np.empty((len(keys), old.vectors.shape[1]), dtype=np.float32)
        at = np.searchsorted(old.keys, keys)
        known = old.keys[np.minimum(at, len(old.keys) - 1)] == keys
        matrix[known] = old.vectors[at[known]]
        missing = _spans(keys[~known], groups)
        groups = [group for group in groups if missing[group.id][0] < missing[group.id][1]]
    spans = _spans(keys, groups)
    for group, vectors in group_vectors(connection, groups):
        if matrix is None:
            matrix = np.empty((len(keys), dimension or vectors.shape[1]), dtype=np.float32)
        if vectors.shape[1] != matrix.shape[1]:
            raise Damaged(f"the vectors of {group.name} have {vectors.shape[1]} numbers in place of {matrix.shape[1]}")
        start, stop = spans[group.id]
        whole = stop - start == group.chunks
        matrix[start:stop] = vectors if whole else vectors[keys[start:stop] - group.first]
    return Matrix(keys, np.empty((0, 0), dtype=np.float32) if matrix is None else matrix)


def _spans(keys: Keys, groups: Sequence[Group]) -> dict[int, tuple[int, int]]:
    """By a group's id the rows, from and to, at which its keys stand in ``keys``."""
    if len(groups) < FEW:
        return {
            group.id: (bisect_left(keys, group.first), bisect_left(keys, group.first + group.chunks))
            for group in groups
        }
    spans = np.searchsorted(keys, [(group.first, group.first + group.chunks) for group in groups])
    return {group.id: (start, stop) for group, (start, stop) in zip(groups, spans.tolist(), strict=True)}


def nearest(matrix: Matrix, query: NDArray[np.float32], top_k: int) -> tuple[Keys, NDArray[np.float32]]:
    """Keys and cosine similarities of the best rows, in no order: ``top_k`` of them, and all that tie with the last."""
    keys, vectors = matrix
    if not len(keys):
        return keys, np.empty(0, dtype=np.float32)
    # Row by row. As one product BLAS would share the work among threads, which where another process is busy wait 8 ms
    # for each other; and it adds a row up in an order that depends on where it stands, so that equal vectors differ.
    scores = np.vecdot(vectors, query)
    if len(scores) <= top_k:
        return keys, scores
    last = np.partition(scores, -top_k)[-top_k]
    rows = (scores >= last).nonzero()[0]
    return keys[rows], scores[rows]
