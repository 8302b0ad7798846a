"""Embeddings without a model: deterministic, and near for texts that share words."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np

from ragistry.testing.loopback import Failure
from ragistry.types import EmbedderFingerprint, Role

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TOKEN = re.compile(r"\w+|[^\w\s]")
SPECIAL_TOKENS = 2
"""Number of special tokens around every text."""


class HashingEmbedder:
    """An `Embedder` without a model: texts that share words have near vectors.

    Args:
        dimension: Length of a vector.
        model: Name in the fingerprint. Embedders of different names are different models to a store.
        max_tokens: Limit of a text in tokens; 0 for none.
        check: Called with the texts of every call of `embed` before they are embedded. It may raise, wait, or count.

    Attributes:
        texts: All texts embedded so far, in order.
        calls: Number of calls of `embed`, including those that raised.
    """

    def __init__(
        self,
        dimension: int = 32,
        *,
        model: str = "hashing",
        max_tokens: int = 0,
        check: Callable[[Sequence[str]], None] | None = None,
    ) -> None:
        self.fingerprint = EmbedderFingerprint(
            provider="testing", model=model, digest="", dimension=dimension, max_tokens=max_tokens
        )
        self.check = check
        self.texts: list[str] = []
        self.calls = 0

    def embed(self, texts: Sequence[str], *, role: Role = "document") -> NDArray[np.float32]:  # noqa: ARG002, both alike
        """As `Embedder.embed`."""
        self.calls += 1
        if self.check is not None:
            self.check(texts)
        self.texts.extend(texts)
        dimension = self.fingerprint.dimension
        vectors = [hashed_embedding(text, dimension) for text in texts]
        return np.array(vectors, dtype=np.float32).reshape(len(texts), dimension)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """As `Embedder.count_tokens`."""
        return [count_tokens(text) for text in texts]


def tokens_of(text: str) -> list[str]:
    """Split a text into words and punctuation, in lower case."""
    return _TOKEN.findall(text.lower())


def count_tokens(text: str) -> int:
    """Count the tokens of a text, including special ones."""
    return len(tokens_of(text)) + SPECIAL_TOKENS


def beginning(text: str, window: int) -> str:
    """Return the beginning of the text that fits in this number of tokens."""
    return " ".join(tokens_of(text)[: max(0, window - SPECIAL_TOKENS)])


def hashed_embedding(text: str, dimension: int) -> list[float]:
    """Compute a unit vector: the sum of a direction for every token, determined by its hash."""
    total = sum((_direction(token, dimension) for token in tokens_of(text)), start=_direction("", dimension) * 1e-3)
    return [float(value) for value in total / np.linalg.norm(total)]


@lru_cache(maxsize=10_000)
def _direction(token: str, dimension: int) -> NDArray[np.float64]:
    number = int.from_bytes(sha256(token.encode("utf-8", "replace")).digest()[:8], "big")
    return np.random.default_rng(number).standard_normal(dimension)


def flawed(vectors: Sequence[list[float]], flaw: Failure | None) -> list[list[Any]]:
    """Return the vectors with this flaw of a failing model."""
    if flaw == "short":
        return list(vectors[:-1])
    if flaw == "nan":
        return [[float("nan")] * len(vector) for vector in vectors]
    if flaw == "zeros":
        return [[0.0] * len(vector) for vector in vectors]
    if flaw == "booleans":
        return [[True, *vector[1:]] for vector in vectors]
    return list(vectors)
