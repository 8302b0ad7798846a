"""Normalise vectors for a store: float32 of unit length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ragistry.errors import EmbeddingMismatchError, InvalidChunkError, QueryError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ragistry.types import EmbedderFingerprint

AT_ONCE = 1_024
"""Number of vectors that are scaled together."""


def unit_vector(vector: Any) -> NDArray[np.float32]:
    """Scale a vector ``(d,)`` to length 1, as float32.

    Raises:
        ValueError: The vector has no direction; the message continues the name of the vector.
    """
    row = np.asarray(vector)
    if row.ndim != 1 or row.size == 0 or row.dtype.kind not in "fiu":
        raise ValueError(f"is not a list of numbers (shape {row.shape}, type {row.dtype})")
    row = row.astype(np.float64)
    if not np.isfinite(row).all():
        raise ValueError("contains NaN or infinity")
    largest = np.abs(row).max()
    if largest == 0:
        raise ValueError("is all zeros and has no direction")
    row /= largest  # the squares of very large or very small numbers would overflow or vanish
    unit: NDArray[np.float32] = (row / np.linalg.norm(row)).astype(np.float32)
    return unit


def units_at_once(rows: Sequence[Any]) -> NDArray[np.float32] | None:
    """Scale valid float32 vectors of one length as `unit_vector` does; None: look at each."""
    kind = np.dtype(np.float32)
    if not rows or not all(
        type(row) is np.ndarray and row.dtype == kind and row.ndim == 1 and 0 < row.size == rows[0].size for row in rows
    ):
        return None
    parts = []
    for start in range(0, len(rows), AT_ONCE):
        part = np.stack(rows[start : start + AT_ONCE]).astype(np.float64)
        largest = np.abs(part).max(axis=1, keepdims=True)
        if not np.isfinite(largest).all() or not largest.all():
            return None
        part /= largest
        parts.append((part / np.linalg.norm(part, axis=1, keepdims=True)).astype(np.float32))
    return np.concatenate(parts)


def unit_vectors(vectors: Any, count: int) -> NDArray[np.float32]:
    """Scale ``count`` vectors of one length to unit length: ``(count, d)`` float32.

    Raises:
        ValueError: Their number or a vector is wrong; the message is complete.
        TypeError: They are not a list.
    """
    rows = list(vectors)
    if len(rows) != count:
        raise ValueError(f"{len(rows):,} vectors for {count:,} texts")
    if (at_once := units_at_once(rows)) is not None:
        return at_once
    units = []
    for index, row in enumerate(rows):
        try:
            units.append(unit_vector(row))
        except (TypeError, ValueError) as error:
            raise ValueError(f"vector {index} {error}") from error
    if len({len(unit) for unit in units}) > 1:
        raise ValueError("vectors of unequal lengths")
    return np.stack(units)


def query_vector(vector: Any, dimension: int | None) -> NDArray[np.float32]:
    """Scale the vector of a query to unit length.

    Args:
        vector: The vector.
        dimension: Dimension of the store's vectors, if known.

    Raises:
        QueryError: The vector has no direction.
        EmbeddingMismatchError: The vector has another dimension.
    """
    try:
        unit = unit_vector(vector)
    except (TypeError, ValueError) as error:
        raise QueryError(f"the query's vector {error}; pass a vector of the embedder") from error
    if dimension is not None and len(unit) != dimension:
        raise EmbeddingMismatchError(
            f"the query's vector has {len(unit)} numbers, those in the store have {dimension}; "
            "use the embedder that the store was filled with"
        )
    return unit


def checked_vectors(fingerprint: EmbedderFingerprint, vectors: Any, count: int) -> NDArray[np.float32]:
    """Return vectors of the embedder in unit length.

    Raises:
        InvalidChunkError: They cannot be stored.
        EmbeddingMismatchError: They have another dimension.
    """
    remedy = "the old vectors stay in use; check the model, then run `ragistry reembed` again"
    try:
        units = unit_vectors(vectors, count)
    except (TypeError, ValueError) as error:
        raise InvalidChunkError(
            f"{fingerprint.model!r} returned vectors that cannot be stored: {error}; {remedy}"
        ) from error
    if units.shape[1] != fingerprint.dimension:
        raise EmbeddingMismatchError(
            f"{fingerprint.model!r} returned vectors of {units.shape[1]} numbers instead of {fingerprint.dimension}; "
            f"{remedy}"
        )
    return units
