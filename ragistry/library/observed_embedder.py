"""An embedder that reports how far it is, and that can be stopped: a long document takes minutes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ragistry.protocols import Embedder
from ragistry.types import EmbedderFingerprint, Role

if TYPE_CHECKING:
    from ragistry.library.ingesting import IngestObserver
    from ragistry.protocols import Vectors

TEXTS_AT_ONCE = 32
"""A second or two of work for a model on a small machine, and several batches for each of its cores."""


class ObservedEmbedder:
    """Tells an observer about every few texts; what its ``check`` raises ends the call."""

    def __init__(self, embedder: Embedder, observer: IngestObserver) -> None:
        self.embedder = embedder
        self._observer = observer

    @property
    def fingerprint(self) -> EmbedderFingerprint:
        return self.embedder.fingerprint

    def embed(self, texts: Sequence[str], *, role: Role = "document") -> Vectors:
        """As `Embedder.embed`."""
        import numpy as np

        rows = []
        for first in range(0, max(1, len(texts)), TEXTS_AT_ONCE):
            self._observer.check()
            rows.append(self.embedder.embed(texts[first : first + TEXTS_AT_ONCE], role=role))
            self._observer.embedded(len(rows[-1]))
        return np.concatenate(rows)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """As `Embedder.count_tokens`."""
        self._observer.counted(len(texts))
        return self.embedder.count_tokens(texts)
