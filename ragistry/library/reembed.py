"""Another embedder for a store that is in use: its vectors are made beside the old ones, which serve until all are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ragistry.library.ingest import Progress
from ragistry.protocols import Embedder
from ragistry.types import EmbedderFingerprint

if TYPE_CHECKING:
    from ragistry.protocols import Vectors


class Reembeddable(Protocol):
    """A store that can hold the vectors of two embedders while one takes the other's place."""

    def begin_reembedding(self, fingerprint: EmbedderFingerprint) -> list[int]: ...
    def texts_of_group(self, group: int) -> list[str]: ...
    def put_reembedded(self, group: int, vectors: Vectors, fingerprint: EmbedderFingerprint) -> None: ...
    def finish_reembedding(self, fingerprint: EmbedderFingerprint) -> bool: ...


def reembed(store: Reembeddable, embedder: Embedder, progress: Progress | None = None) -> int:
    """Embed every chunk again and return how many groups were embedded now.

    What an interrupted attempt with the same embedder made is used. Chunks that are added meanwhile are embedded
    before the change. Raises `ModelError`, `InvalidChunkError` for vectors that cannot be stored, and
    `EmbeddingMismatchError` where another call with another embedder came later; the old vectors then stay in use.
    """
    fingerprint, embedded = embedder.fingerprint, 0
    while True:
        groups = store.begin_reembedding(fingerprint)
        for done, group in enumerate(groups):
            if progress is not None:
                progress(f"group {group}", done, len(groups))
            texts = store.texts_of_group(group)
            if texts:
                store.put_reembedded(group, embedder.embed(texts, role="document"), fingerprint)
                embedded += 1
        if store.finish_reembedding(fingerprint):
            return embedded
