"""An embedder that tells how far it is and can be stopped between batches: a long document takes minutes."""

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
    """Calls ``check`` before each few texts; what that raises ends the call.

    ``counted`` is told how many texts were counted in tokens, which an ingest does before it embeds them, and
    ``embedded`` how many have got their vectors.
    """

    def __init__(
        self,
        embedder: Embedder,
        check: Callable[[], None],
        counted: Callable[[int], object] = lambda _: None,
        embedded: Callable[[int], object] = lambda _: None,
    ) -> None:
        self.embedder = embedder
        self._check = check
        self._counted = counted
        self._embedded = embedded

    @property
    def fingerprint(self) -> EmbedderFingerprint:
        return self.embedder.fingerprint

    def embed(self, texts: Sequence[str], *, role: Role = "document") -> Vectors:
        import numpy as np

        rows = []
        for first in range(0, max(1, len(texts)), TEXTS_AT_ONCE):
            self._check()
            rows.append(self.embedder.embed(texts[first : first + TEXTS_AT_ONCE], role=role))
            self._embedded(len(rows[-1]))
        return np.concatenate(rows)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        self._counted(len(texts))
        return self.embedder.count_tokens(texts)
