"""The index of vectors: exact nearest neighbours over memory-mapped files, preselected by sketches if there are many.

Files, a row for each chunk in the order of the keys: ``keys`` (int64), ``vectors`` (float32), ``sums`` (a checksum for
each vector, compared when the vector is first read, because reading all of them would take seconds), ``sketches``
(blocks). Also ``planes`` of the sketches, and a file with the rows of removed chunks. Rows are only appended.

A sketch has 96 bytes and selects the few vectors worth comparing exactly. A bit of it is the side of a plane on which
the vector lies. Among planes in random directions, the share that separates two vectors is the angle between them
divided by π (Charikar, "Similarity estimation techniques from rounding algorithms", 2002). So the number of different
bits of two sketches has a known distribution, independent of the data.

Sketches are stored in blocks ``(WORDS, BLOCK)``, the same word of many vectors together. Counting bits then reads
memory sequentially, which is three to five times faster than vector by vector.
"""

from __future__ import annotations

import math
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ragistry.stores.local.database import Head
from ragistry.stores.local.index import DerivedIndex, MappedFiles, Signature, Stale, Stamp, View
from ragistry.stores.local.rows import vectors_from, vectors_of
from ragistry.stores.local.selecting import Selection
from ragistry.stores.records import Keys, Scores

if TYPE_CHECKING:
    from ragistry.protocols import Vectors

FILES_VERSION = 1
EXACT_SELECTION = 50_000
"""Number of chunks under a condition up to which all are compared; above it, sketches preselect."""
READ_AHEAD = 256_000_000
"""Size of vectors in bytes up to which all are checked on opening; above it, each is checked on first use."""
STEP = 32
"""Number of bits by which the radius grows while it contains too few vectors."""
AT_LEAST = 100
"""Number of vectors compared first to estimate the distance of the nearest."""
READ_AT_ONCE = 4_096
DEAD_SHARE = 0.25
"""Share of removed rows above which the index is rebuilt."""
WORDS = 12
BITS = 64 * WORDS
BLOCK = 1 << 14
DEVIATIONS = 2.0
"""Standard deviations by which bits may differ in excess. A vector as near as the last result is missed with a
probability of 2 %, nearer ones with far less. Measured on clustered vectors, recall@10 is .992 to .998."""
SAMPLE, ENOUGH = 8_192, 8
"""Size of a sample of sketches, and how many of them determine the radius."""

Bits = NDArray[np.uint64]
Planes = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class VectorView(View):
    """The open files. ``dead``: rows of removed chunks. ``checked``: rows whose checksum was compared."""

    keys: Keys
    vectors: Vectors
    sums: NDArray[np.uint32]
    sketches: NDArray[np.uint64]
    planes: NDArray[np.float32]
    dead: NDArray[np.int64]
    checked: NDArray[np.bool_] = field(repr=False)

    def rows(self, rows: NDArray[np.int64] | slice) -> Vectors:
        """Read the vectors of these rows, verified by checksum. Raises `Stale`."""
        vectors: Vectors = self.vectors[rows]
        new = ~self.checked[rows]
        if new.any():
            if not np.array_equal(sums_of(vectors[new]), self.sums[rows][new]):
                raise Stale("damaged", broken=True)
            self.checked[rows] = True
        return vectors


class VectorIndex(DerivedIndex[VectorView]):
    """Cosine similarity. Up to ``exact_below`` chunks every vector is compared."""

    name = "vectors"
    kind = {"version": FILES_VERSION}  # noqa: RUF012
    may_lag = 250  # read from the database

    def __init__(self, *arguments: Any, exact_below: int) -> None:
        super().__init__(*arguments)
        self.exact_below = exact_below

    def nearest(
        self,
        connection: sqlite3.Connection,
        head: Head,
        view: VectorView,
        query: NDArray[np.float32],
        top_k: int,
        selection: Selection | None,
    ) -> tuple[Keys, Scores]:
        """Return keys and similarities of the best ``top_k`` chunks and all ties with the last, unordered.

        Chunks that the index lacks are read from the database. Raises `Stale`.
        """
        if not head.dimension or (selection is not None and not len(selection.keys)):
            return np.empty(0, np.int64), np.empty(0, np.float32)
        if view.vectors.shape[1] != head.dimension:
            if head.next_key == view.stamp.next_key:  # an embedder is recorded, but no vector is stored yet
                return np.empty(0, np.int64), np.empty(0, np.float32)
            if self.lag(view, head):
                raise Stale("made before the first vector")
        if selection is not None and len(selection.keys) <= max(EXACT_SELECTION, self.exact_below):
            keys, matrix, unread = selection.matrix or (selection.keys[:0], None, selection.keys)
            if matrix is None or len(unread):
                newer, vectors = self._matrix(connection, head, view, unread)
                keys = np.concatenate([keys, newer])
                matrix = vectors if matrix is None else np.concatenate([matrix, vectors])
                selection.matrix = keys, matrix, unread[:0]
            return best(keys, np.maximum(np.vecdot(matrix, query), 0), top_k)  # below 0, all are equal
        dead = view.dead if view.stamp.removed == head.removed else _removed_since(connection, view)
        if len(dead) == len(view.keys):
            keys, scores = np.empty(0, np.int64), np.empty(0, np.float32)
        elif len(view.keys) - len(dead) <= self.exact_below:
            keys, scores = view.keys, np.maximum(np.vecdot(view.rows(slice(None)), query), 0)
            scores[dead] = -np.inf
        else:
            chosen = None if selection is None else _rows_of(view, selection.keys)
            keys, scores = _nearly_nearest(view, query, top_k, dead, chosen)
        if head.next_key > view.stamp.next_key:
            newer, vectors = _matrix_of(vectors_from(connection, view.stamp.next_key, head.next_key), head.dimension)
            keys, scores = (
                np.concatenate([keys, newer]),
                np.concatenate([scores, np.maximum(np.vecdot(vectors, query), 0)]),
            )
        if selection is not None:
            scores[~np.isin(keys, selection.keys)] = -np.inf
        keys, scores = best(keys, scores, top_k)
        present = scores > -np.inf
        return keys[present], scores[present]

    def _matrix(self, connection: sqlite3.Connection, head: Head, view: VectorView, keys: Keys) -> tuple[Keys, Vectors]:
        """Return the vectors ``(n, d)`` of the chunks that have one, all from this snapshot."""
        rows = _rows_of(view, keys)
        if len(rows) == len(keys):
            return keys, view.rows(rows)
        other = np.setdiff1d(keys, view.keys[rows], assume_unique=True)
        other, vectors = _matrix_of(vectors_of(connection, other.tolist()), head.dimension)
        if not len(rows):
            return other, vectors
        return np.concatenate([view.keys[rows], other]), np.concatenate([view.rows(rows), vectors])

    # The files

    def end(self, head: Any) -> int:
        return int(head.settled)  # rows are appended in the order of the keys

    def load(self, folder: Path, stamp: Stamp, signature: Signature) -> VectorView:
        count = stamp.files["rows"]
        arrays = _arrays(folder, count, stamp.files["dimension"])
        dead = np.fromfile(folder / stamp.files["dead"], np.int64) if stamp.files["dead"] else np.empty(0, np.int64)
        if _checksums(arrays, dead) != stamp.files["checksums"]:
            raise Stale("damaged", broken=True)
        checked = np.zeros(count, dtype=bool)
        checked[dead] = True  # removed rows are overwritten and not used
        mapped = MappedFiles({folder / name: array.nbytes for name, array in arrays.items()})
        view = VectorView(stamp, signature, mapped, dead=dead, checked=checked, **arrays)
        if view.vectors.nbytes <= READ_AHEAD:
            view.rows(slice(None))
        return view

    def write(
        self, folder: Path, connection: sqlite3.Connection, head: Head, since: VectorView | None
    ) -> dict[str, Any]:
        dead: NDArray[np.int64] = np.empty(0, np.int64)
        first, count = 0, 0
        if since is not None:
            dead, first, count = _removed_since(connection, since), since.stamp.next_key, len(since.keys)
            if len(dead) > DEAD_SHARE * count:
                raise Stale("mostly rows of removed chunks")
        if since is None or since.planes.shape[1] != head.dimension:
            planes_of(head.dimension).tofile(folder / "planes")
        count = _append(folder, vectors_from(connection, first, head.settled), count, head.dimension)
        if since is None and (lost := _expected(connection, head.settled) - count):
            raise sqlite3.DatabaseError(f"{lost:,} chunks have lost their vectors")
        name = f"dead-{head.version}" if len(dead) else ""
        if name:
            dead.tofile(folder / name)
        checksums = _checksums(_arrays(folder, count, head.dimension), dead)
        return {"rows": count, "dimension": head.dimension, "dead": name, "checksums": checksums}

    def settle(self, folder: Path, stamp: Stamp) -> None:
        """Overwrite the vectors of removed chunks, which are not read anymore."""
        for path in folder.glob("dead-*"):
            if path.name != stamp.files["dead"]:
                path.unlink()
        if stamp.files["dead"]:
            vectors = np.memmap(
                folder / "vectors", np.float32, "r+", shape=(stamp.files["rows"], stamp.files["dimension"])
            )
            vectors[np.fromfile(folder / stamp.files["dead"], np.int64)] = 0

    def check(self, connection: sqlite3.Connection, view: VectorView) -> str:
        stored = np.array(
            connection.execute("SELECT key FROM vectors WHERE key < ?", (view.stamp.next_key,)).fetchall(), np.int64
        ).reshape(-1)
        alive = np.ones(len(view.keys), dtype=bool)
        alive[view.dead] = False
        gone = view.keys[alive][~np.isin(view.keys[alive], stored)]
        waiting = connection.execute("SELECT key FROM removed WHERE number > ?", (view.stamp.removed,)).fetchall()
        if not np.isin(stored, view.keys[alive]).all() or not np.isin(gone, np.array(waiting)).all():
            raise Stale("not equal to the chunks of the database", broken=True)
        for start in range(0, len(view.keys), READ_AT_ONCE):
            rows = np.flatnonzero(alive[start : start + READ_AT_ONCE]) + start
            view.rows(rows)
        return ""


def best(keys: Keys, scores: Scores, top_k: int) -> tuple[Keys, Scores]:
    """Select the ``top_k`` best, and all ties with the last."""
    if len(scores) <= top_k:
        return keys, scores
    last = np.partition(scores, -top_k)[-top_k]
    rows = np.flatnonzero(scores >= last)
    return keys[rows], scores[rows]


def _nearly_nearest(
    view: VectorView, query: NDArray[np.float32], top_k: int, dead: NDArray[np.int64], chosen: NDArray[np.int64] | None
) -> tuple[Keys, Scores]:
    """Return the best rows among those with near sketches; ``chosen``: among these rows only.

    The radius grows until it covers every vector that may be as near as the last of the best so far.
    """
    differing = differing_bits(view.sketches, len(view.keys), query, view.planes)
    differing[dead] = 2 * BITS
    if chosen is not None:
        differing = differing[chosen]
    inside, radius = -1, min(BITS, first_radius(differing, max(AT_LEAST, 2 * top_k)))
    rows, scores = np.empty(0, np.int64), np.empty(0, np.float32)
    while True:
        found = np.flatnonzero((differing <= radius) & (differing > inside) if inside >= 0 else differing <= radius)
        found = found if chosen is None else chosen[found]
        rows = np.concatenate([rows, found])
        scores = np.concatenate([scores, np.vecdot(view.rows(found), query)])
        rows, scores = best(rows, scores, top_k)
        inside, radius = radius, reach(float(scores.min())) if len(scores) >= top_k else min(BITS, radius + STEP)
        if radius <= inside:
            return view.keys[rows], scores


def _rows_of(view: VectorView, keys: Keys) -> NDArray[np.int64]:
    """Return the rows of the keys that are in the view."""
    if not len(view.keys):
        return np.empty(0, np.int64)
    at = np.minimum(np.searchsorted(view.keys, keys), len(view.keys) - 1)
    rows: NDArray[np.int64] = at[view.keys[at] == keys]
    return rows


def _removed_since(connection: sqlite3.Connection, view: VectorView) -> NDArray[np.int64]:
    """Return the rows of removed chunks, ascending."""
    rows = connection.execute("SELECT key FROM removed WHERE number > ?", (view.stamp.removed,)).fetchall()
    dead: NDArray[np.int64] = np.union1d(view.dead, _rows_of(view, np.array(rows, dtype=np.int64).reshape(-1)))
    return dead


def _expected(connection: sqlite3.Connection, end: int) -> int:
    """Count the chunks before a key that do not wait for their vectors."""
    before = "INDEXED BY chunks_by_hash WHERE key < ? AND key NOT IN (SELECT key FROM waiting)"  # reads no texts
    return int(connection.execute(f"SELECT count(*) FROM chunks {before}", (end,)).fetchone()[0])


def _matrix_of(rows: Iterable[tuple[int, Vectors]], dimension: int) -> tuple[Keys, Vectors]:
    """Return keys, and vectors ``(n, d)``."""
    found = dict(rows)
    matrix = np.array(list(found.values()), dtype=np.float32).reshape(-1, dimension)
    return np.array(list(found), dtype=np.int64), matrix


def _append(folder: Path, rows: Iterator[tuple[int, Vectors]], count: int, dimension: int) -> int:
    """Write rows after the first ``count``, and return the new number of rows."""
    planes = _mapped(folder / "planes", np.float32, (BITS, dimension))
    with ExitStack() as opened:
        files = {name: opened.enter_context(_writable(folder / name)) for name in _shapes(0, 0)}
        while page := list(islice(rows, READ_AT_ONCE)):
            matrix = np.stack([vector for _, vector in page])
            keys = np.array([key for key, _ in page], dtype=np.int64)
            for name, data in (("keys", keys), ("sums", sums_of(matrix)), ("vectors", matrix)):
                files[name].seek(count * data[:1].nbytes)
                files[name].write(data.tobytes())
            _put_sketches(files["sketches"], sketches_of(matrix, planes), count)
            count += len(page)
        files["sketches"].truncate(-(-count // BLOCK) * WORDS * BLOCK * 8)
    return count


def _writable(path: Path) -> BinaryIO:
    path.touch()
    return path.open("r+b")


def _put_sketches(file: BinaryIO, sketches: NDArray[np.uint64], start: int) -> None:
    """Write sketches ``(WORDS, n)`` to their columns in the blocks from row ``start`` on."""
    done = 0
    while done < sketches.shape[1]:
        block, column = divmod(start + done, BLOCK)
        part = sketches[:, done : done + BLOCK - column]
        for word in range(WORDS):
            file.seek(((block * WORDS + word) * BLOCK + column) * 8)
            file.write(part[word].tobytes())
        done += part.shape[1]


def _shapes(count: int, dimension: int) -> dict[str, tuple[Any, tuple[int, ...]]]:
    """Return type and shape of the data in each file."""
    return {
        "keys": (np.int64, (count,)),
        "sums": (np.uint32, (count,)),
        "vectors": (np.float32, (count, dimension)),
        "sketches": (np.uint64, (-(-count // BLOCK), WORDS, BLOCK)),
        "planes": (np.float32, (BITS, dimension)),
    }


def _arrays(folder: Path, count: int, dimension: int) -> dict[str, Any]:
    """Map the files into memory, read-only."""
    return {name: _mapped(folder / name, *shape) for name, shape in _shapes(count, dimension).items()}


def _mapped(path: Path, kind: Any, shape: tuple[int, ...]) -> Any:
    """Map a file as a plain `numpy.ndarray`, whose slices cost less than those of `numpy.memmap`."""
    return np.memmap(path, kind, "r", shape=shape).view(np.ndarray) if math.prod(shape) else np.empty(shape, kind)


def sums_of(vectors: Vectors) -> NDArray[np.uint32]:
    """Compute a checksum per row: the sum of its 32-bit words, each times its own odd number, modulo 2³²."""
    words = np.ascontiguousarray(vectors).view(np.uint32)
    weights = np.arange(words.shape[1], dtype=np.uint32) * np.uint32(2_654_435_769) | np.uint32(1)
    sums: NDArray[np.uint32] = np.vecdot(words, weights)
    return sums


def _checksums(arrays: dict[str, Any], dead: Any) -> list[int]:
    """Compute the CRC-32 of the files except the vectors; for sketches, without columns that have no row yet."""
    full, rest = divmod(len(arrays["keys"]), BLOCK)
    crc = zlib.crc32(arrays["sketches"][:full])
    if rest:
        for word in range(WORDS):
            crc = zlib.crc32(arrays["sketches"][full, word, :rest], crc)
    return [crc, *(zlib.crc32(array) for array in (arrays["keys"], arrays["sums"], arrays["planes"], dead))]


@lru_cache(maxsize=2)
def planes_of(dimension: int) -> Planes:
    """Return ``(BITS, dimension)``: normals of random planes, orthogonal as far as the dimension allows.

    Computing them takes longer than thousands of searches, so an index stores them with its sketches. The array is not
    writable, because all indexes of a process share it.
    """
    if not dimension:
        return np.empty((BITS, 0), dtype=np.float32)
    random = np.random.default_rng(0)
    size = (min(dimension, BITS), dimension)
    bases = [_orthogonal(random.standard_normal(size)) for _ in range(math.ceil(BITS / size[0]))]
    planes = np.concatenate(bases)[:BITS].astype(np.float32)
    planes.flags.writeable = False
    return planes


def _orthogonal(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Make rows orthogonal and of unit length, by modified Gram-Schmidt.

    `numpy.linalg.qr` takes fifty times the CPU time on a busy machine, because the threads of BLAS wait for each other.
    """
    for number, row in enumerate(rows):
        row /= np.sqrt(np.vecdot(row, row))
        others = rows[number + 1 :]
        others -= np.vecdot(others, row)[:, None] * row
    return rows


def sketches_of(vectors: NDArray[np.float32], planes: Planes) -> Bits:
    """Compute the sketches of vectors ``(n, d)``, as ``(WORDS, n)``."""
    sides = vectors @ planes.T > 0
    return np.ascontiguousarray(np.packbits(sides, axis=1).view(np.uint64).T)


def differing_bits(blocks: Bits, count: int, query: NDArray[np.float32], planes: Planes) -> NDArray[np.uint16]:
    """Count the different bits of each of the first ``count`` sketches in ``blocks``, ``(b, WORDS, BLOCK)``."""
    # Plane by plane: for one product, BLAS would use several threads, which wait for each other on a busy machine.
    code = np.packbits(np.vecdot(planes, query) > 0).view(np.uint64)[:, None]
    counts = np.empty(count, dtype=np.uint16)
    for number, block in enumerate(blocks):
        part = counts[number * BLOCK : (number + 1) * BLOCK]
        np.sum(np.bitwise_count(block[:, : len(part)] ^ code), axis=0, dtype=np.uint16, out=part)
    return counts


def first_radius(differing: NDArray[np.uint16], count: int) -> int:
    """Estimate from a sample the number of bits within which ``count`` or more sketches lie."""
    step = max(1, len(differing) // SAMPLE)
    sample = np.sort(differing[::step])
    return int(sample[min(max(math.ceil(count / step), ENOUGH), len(sample)) - 1])


def reach(score: float) -> int:
    """Return the maximum number of bits by which a vector of this cosine similarity may differ from the query."""
    share = math.acos(min(1.0, max(-1.0, score))) / math.pi
    return math.ceil(BITS * share + DEVIATIONS * math.sqrt(BITS * share * (1 - share)))
