"""Embeddings without a model: deterministic, and near for texts that share words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np

from ragistry.testing.loopback import Failure

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TOKEN = re.compile(r"\w+|[^\w\s]")
SPECIAL_TOKENS = 2
"""Number of special tokens around every text."""


def tokens_of(text: str) -> list[str]:
    """Words and punctuation, in lower case."""
    return _TOKEN.findall(text.lower())


def count_tokens(text: str) -> int:
    """Number of tokens of a text, including special ones."""
    return len(tokens_of(text)) + SPECIAL_TOKENS


def beginning(text: str, window: int) -> str:
    """The beginning of the text that fits in this number of tokens."""
    return " ".join(tokens_of(text)[: max(0, window - SPECIAL_TOKENS)])


def hashed_embedding(text: str, dimension: int) -> list[float]:
    """A unit vector: the sum of a direction for every token, determined by its hash."""
    total = sum((_direction(token, dimension) for token in tokens_of(text)), start=_direction("", dimension) * 1e-3)
    return [float(value) for value in total / np.linalg.norm(total)]


@lru_cache(maxsize=10_000)
def _direction(token: str, dimension: int) -> NDArray[np.float64]:
    number = int.from_bytes(sha256(token.encode("utf-8", "replace")).digest()[:8], "big")
    return np.random.default_rng(number).standard_normal(dimension)


def flawed(vectors: Sequence[list[float]], flaw: Failure | None) -> list[list[Any]]:
    """The vectors with the given flaw of a failing model."""
    if flaw == "short":
        return list(vectors[:-1])
    if flaw == "nan":
        return [[float("nan")] * len(vector) for vector in vectors]
    if flaw == "zeros":
        return [[0.0] * len(vector) for vector in vectors]
    if flaw == "booleans":
        return [[True, *vector[1:]] for vector in vectors]
    return list(vectors)
