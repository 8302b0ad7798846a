"""Normalise vectors for a store: float32 of unit length."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ragistry.errors import EmbeddingMismatchError, QueryError

if TYPE_CHECKING:
    from numpy.typing import NDArray


def unit_vector(vector: Any) -> NDArray[np.float32]:
    """``(d,)`` float32 of length 1 in the direction of ``vector``, ``(d,)`` numbers of any size.

    Raises `ValueError`, worded to follow the name of the vector, if it has no direction.
    """
    row = np.asarray(vector)
    if row.ndim != 1 or row.size == 0 or row.dtype.kind not in "fiu":
        raise ValueError(f"is not a list of numbers (shape {row.shape}, type {row.dtype})")
    row = row.astype(np.float64)
    if not np.isfinite(row).all():
        raise ValueError("holds NaN or infinity")
    largest = np.abs(row).max()
    if largest == 0:
        raise ValueError("is all zeros and has no direction")
    row /= largest  # the squares of very large or very small numbers would overflow or vanish
    unit: NDArray[np.float32] = (row / np.linalg.norm(row)).astype(np.float32)
    return unit


def unit_vectors(vectors: Any, count: int) -> NDArray[np.float32]:
    """``count`` vectors of one length as ``(count, d)`` float32, each at unit length.

    Raises `ValueError` or `TypeError` for anything else, as a complete message.
    """
    rows = list(vectors)
    if len(rows) != count:
        raise ValueError(f"{len(rows):,} vectors for {count:,} texts")
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
    """The vector of a query at unit length; ``dimension``: that of the store's vectors, if known.

    Raises `QueryError` if it has no direction, `EmbeddingMismatchError` for another dimension.
    """
    try:
        unit = unit_vector(vector)
    except (TypeError, ValueError) as error:
        raise QueryError(f"the query's vector {error}; give one of the embedder's") from error
    if dimension is not None and len(unit) != dimension:
        raise EmbeddingMismatchError(
            f"the query's vector has {len(unit)} numbers, those in the store have {dimension}; "
            "use the embedder that the store was filled with"
        )
    return unit
