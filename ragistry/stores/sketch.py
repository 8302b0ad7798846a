"""Nearest neighbours by sketches: 48 bytes a vector tell which few are worth comparing, and these are compared exactly.

A bit of a sketch is the side of a plane on which the vector lies. Of planes in directions drawn at random, the part
that separates two vectors is the angle between them over π (Charikar, "Similarity estimation techniques from rounding
algorithms", 2002). So a vector that is as near to the query as the last of those found so far differs from it in a
number of bits whose distribution is known, whatever the vectors are; those that differ in too many are left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ragistry.stores.catalog import Catalog
from ragistry.stores.exact import Matrix, nearest
from ragistry.stores.reading import Keys
from ragistry.utils.forking import brief_lock

WORDS = 6
BITS = 64 * WORDS
DEVIATIONS = 2.5
"""Standard deviations by which bits may differ in excess: at the very last place, one in 160 is further off."""
FIRST = 100
"""Vectors that are compared, at least, to see how near the nearest are."""
BLOCK = 1 << 16
"""Vectors whose bits are counted at once: what is in between stays in the caches of a core."""
MADE_AT_ONCE = 5_000


class Sketch(NamedTuple):
    """The sketches of vectors, ``(WORDS, n)``, and the key of each column, ascending."""

    keys: Keys
    codes: NDArray[np.uint64]


VectorsOf = Callable[[Keys], Matrix]


class Sketches:
    """The sketch of all that a store holds, in the state that was searched last. Safe for threads."""

    def __init__(self) -> None:
        self._state = self._generation = -1
        self._sketch: Sketch | None = None
        self._lock = brief_lock()

    def of(self, catalog: Catalog, keys: Callable[[], Keys], vectors_of: VectorsOf) -> Sketch:
        """The sketch of ``keys``, those of the catalog; what was made for an earlier state is used again."""
        with self._lock:
            sketch = self._sketch if catalog.generation == self._generation else None
            if sketch is None or catalog.state != self._state:
                sketch = made(keys(), vectors_of, sketch)
                self._sketch, self._state, self._generation = sketch, catalog.state, catalog.generation
            return sketch


def made(keys: Keys, vectors_of: VectorsOf, old: Sketch | None = None) -> Sketch:
    """The sketches of the vectors of ``keys``, ascending; ``old``: some that were made before."""
    codes = np.empty((WORDS, len(keys)), dtype=np.uint64)
    missing = np.arange(len(keys))
    if old is not None and len(old.keys):
        at = np.minimum(np.searchsorted(old.keys, keys), len(old.keys) - 1)
        known = old.keys[at] == keys
        codes[:, known] = old.codes[:, at[known]]
        missing = np.flatnonzero(~known)
    for start in range(0, len(missing), MADE_AT_ONCE):
        rows = missing[start : start + MADE_AT_ONCE]
        codes[:, rows] = _codes(vectors_of(keys[rows]).vectors)
    return Sketch(keys, codes)


def nearly_nearest(
    sketch: Sketch, query: NDArray[np.float32], top_k: int, vectors_of: VectorsOf
) -> tuple[Keys, NDArray[np.float32]]:
    """Keys and cosine similarities of the best, in no order: ``top_k`` of them, and all that tie with the last."""
    # Plane by plane: as one product BLAS would share it among threads, which on a busy machine wait for each other.
    sides = np.vecdot(_directions(len(query)), query) > 0
    differing = _differing(sketch.codes, np.packbits(sides).view(np.uint64))
    radius = _radius_of(differing, max(FIRST, 2 * top_k))
    while True:
        keys, scores = nearest(vectors_of(sketch.keys[differing <= radius]), query, top_k)
        reach = _reach(float(scores.min()))
        if reach <= radius:
            return keys, scores
        radius = reach


def _codes(vectors: NDArray[np.float32]) -> NDArray[np.uint64]:
    """The sketches of vectors ``(n, d)``, as ``(WORDS, n)``."""
    sides = vectors @ _directions(vectors.shape[1]).T > 0
    return np.packbits(sides, axis=1).view(np.uint64).T


@cache
def _directions(dimension: int) -> NDArray[np.float32]:
    """``(BITS, dimension)``, the same in every process: at right angles as far as there is room, else at random."""
    random = np.random.default_rng(0)
    size = (dimension, min(dimension, BITS))
    bases = [np.linalg.qr(random.standard_normal(size))[0] for _ in range(math.ceil(BITS / size[1]))]
    return np.ascontiguousarray(np.hstack(bases)[:, :BITS].T, dtype=np.float32)


def _differing(codes: NDArray[np.uint64], query: NDArray[np.uint64]) -> NDArray[np.uint16]:
    """In how many bits each differs from the query."""
    counts = np.empty(codes.shape[1], dtype=np.uint16)
    for start in range(0, len(counts), BLOCK):
        part = slice(start, start + BLOCK)
        np.sum(np.bitwise_count(codes[:, part] ^ query[:, None]), axis=0, out=counts[part])
    return counts


def _radius_of(differing: NDArray[np.uint16], count: int) -> int:
    """Within how many bits there are ``count`` of them, or all."""
    within = np.cumsum(np.bincount(differing, minlength=BITS + 1))
    return int(np.searchsorted(within, min(count, len(differing))))


def _reach(score: float) -> int:
    """By how many bits a vector of this cosine similarity may differ from the query."""
    share = math.acos(min(1.0, max(-1.0, score))) / math.pi
    return math.ceil(BITS * share + DEVIATIONS * math.sqrt(BITS * share * (1 - share)))
