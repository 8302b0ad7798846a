"""A custom embedder without a model: it uses the letters of words, so that misspelt words are near the correct ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from ragistry.models.texts import check_texts, estimate_tokens
from ragistry.types import EmbedderFingerprint, Role

Vectors = NDArray[np.float32]
DIMENSION = 512


class LetterEmbedder:
    """Hashes every three consecutive letters to a coordinate, as in feature hashing.

    Weinberger et al., "Feature Hashing for Large Scale Multitask Learning", 2009.
    """

    fingerprint = EmbedderFingerprint("example", "letters", digest="", dimension=DIMENSION)

    def embed(self, texts: Sequence[str], *, role: Role = "document") -> Vectors:  # noqa: ARG002, both are embedded alike
        """``(n, 512)`` float32 of unit length."""
        checked = check_texts(texts)
        return np.stack([_vector(text) for text in checked]) if checked else np.empty((0, DIMENSION), np.float32)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """An estimate, because this embedder has no tokens."""
        return estimate_tokens(texts)


def _vector(text: str) -> Vectors:
    padded = f"  {' '.join(text.lower().split())} "
    row = np.zeros(DIMENSION, dtype=np.float32)
    for letters, count in Counter(zip(padded, padded[1:], padded[2:], strict=False)).items():
        number = int.from_bytes(blake2b("".join(letters).encode(), digest_size=8).digest(), "big")
        row[number % DIMENSION] += (1 if number >> 63 else -1) * count**0.5
    length = float(np.linalg.norm(row))
    if length == 0:  # the values of a very short text may cancel out
        row[0] = length = 1.0
    return row / np.float32(length)
