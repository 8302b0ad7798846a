"""Samples of several targets as one matrix, so that a query is compared to all of them at once."""

from __future__ import annotations

import operator
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from ragistry.protocols import Vectors


class Stack(NamedTuple):
    """``parts``: the vectors of each target, ``(n, d)``, None where they cannot be read; ``rows``: all of them."""

    parts: list[Vectors | None]
    rows: Vectors
    ends: list[int]

    @classmethod
    def of(cls, parts: list[Vectors | None]) -> Stack:
        """``parts`` one below the other; None and what has no rows takes none."""
        filled = [part for part in parts if part is not None and len(part)]
        rows = np.concatenate(filled) if filled else np.empty((0, 0), dtype=np.float32)
        return cls(parts, rows, list(accumulate(0 if part is None else len(part) for part in parts)))

    def is_of(self, parts: list[Vectors | None]) -> bool:
        """Whether it is made of the same arrays."""
        return len(parts) == len(self.parts) and all(map(operator.is_, parts, self.parts))

    def cosines(self, query: Vectors) -> list[Vectors | None]:
        """Of each part the cosines of its rows with a query of unit length; None where the part is None."""
        # Not `rows @ query`: one thread has multiplied so few rows sooner than several have waited for each other.
        flat = np.matmul(self.rows[:, None, :], query[:, None])[:, 0, 0] if len(self.rows) else self.rows.ravel()
        starts = [0, *self.ends[:-1]]
        return [
            None if part is None else flat[start:end]
            for part, start, end in zip(self.parts, starts, self.ends, strict=True)
        ]
