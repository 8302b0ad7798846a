"""An embedder that can be stopped between its batches, where a long document would keep it busy for minutes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ragistry.protocols import Embedder
from ragistry.types import EmbedderFingerprint, Role

if TYPE_CHECKING:
    from ragistry.protocols import Vectors

TEXTS_AT_ONCE = 32
"""A second or two of work for a model on the cores of a small machine; each core still gets several batches of it."""


class Stoppable:
    """Calls ``check`` before each few texts; what that raises ends the call."""

    def __init__(self, embedder: Embedder, check: Callable[[], None]) -> None:
        self.embedder = embedder
        self._check = check

    @property
    def fingerprint(self) -> EmbedderFingerprint:
        return self.embedder.fingerprint

    def embed(self, texts: Sequence[str], *, role: Role = "document") -> Vectors:
        import numpy as np

        self._check()
        if len(texts) <= TEXTS_AT_ONCE:
            return self.embedder.embed(texts, role=role)
        rows = []
        for first in range(0, len(texts), TEXTS_AT_ONCE):
            self._check()
            rows.append(self.embedder.embed(texts[first : first + TEXTS_AT_ONCE], role=role))
        return np.concatenate(rows)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return self.embedder.count_tokens(texts)
