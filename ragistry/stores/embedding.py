"""Check the embedder recorded in a store, and embed its chunks again for another one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from ragistry.chunking.breadcrumb import searched_text
from ragistry.errors import EmbeddingMismatchError, InvalidChunkError
from ragistry.stores.vectors import unit_vectors
from ragistry.types import Chunk, EmbedderFingerprint, Progress
from ragistry.utils.fingerprints import check_same_embedder, differences, from_json

if TYPE_CHECKING:
    from ragistry.protocols import Embedder, Vectors

AT_ONCE = 128
"""Number of chunks embedded in one call."""


class EmbedderRecord(Protocol):
    """The embedder recorded in a store: its fingerprint as JSON, and the dimension, 0 before the first vector."""

    @property
    def embedder(self) -> str | None: ...
    @property
    def dimension(self) -> int: ...


class NextEmbedderRecord(EmbedderRecord, Protocol):
    """Also the embedder whose vectors are being computed."""

    @property
    def next_embedder(self) -> str | None: ...


def recorded_embedder(record: EmbedderRecord) -> EmbedderFingerprint | None:
    """Return the recorded embedder."""
    return None if record.embedder is None else from_json(record.embedder)


def check_embedder(record: EmbedderRecord, fingerprint: EmbedderFingerprint) -> bool:
    """Return whether an embedder is recorded. Raises `EmbeddingMismatchError` if it is another one."""
    if recorded := recorded_embedder(record):
        check_same_embedder(recorded, fingerprint)
        return True
    if record.dimension not in (0, fingerprint.dimension):
        raise EmbeddingMismatchError(
            f"the vectors in the store have {record.dimension} numbers, those of {fingerprint.model!r} have "
            f"{fingerprint.dimension}; set embed_model in documents.yaml to the embedder that the store was filled "
            "with, or run `ragistry reembed`"
        )
    return False


def is_of(recorded: str | None, fingerprint: EmbedderFingerprint) -> bool:
    """Return whether the recorded fingerprint is of this embedder."""
    return recorded is not None and not differences(from_json(recorded), fingerprint)


def embed_missing(
    embedder: Embedder,
    progress: Progress | None,
    *,
    missing: Callable[[], tuple[list[tuple[int, Chunk]], int]],
    keep: Callable[[list[int], Vectors], bool],
    switch: Callable[[], bool],
) -> int:
    """Embed the chunks that lack a vector of the embedder, then switch to the new vectors.

    Args:
        embedder: Computes the vectors.
        progress: Called before each batch.
        missing: Returns up to `AT_ONCE` keys and chunks without a new vector, and the number of all such chunks.
        keep: Stores the vectors of these keys. Returns False if another run has finished the work.
        switch: Switches to the new vectors. Returns False if chunks were added meanwhile.

    Returns:
        Number of chunks embedded.

    Raises:
        EmbeddingMismatchError: The embedder returned vectors of another dimension.
        InvalidChunkError: The embedder returned vectors that cannot be stored.
    """
    done = 0
    while True:
        chunks, left = missing()
        if progress is not None:
            progress("chunks", done, done + left)
        if chunks:
            vectors = _embedded(embedder, [searched_text(*chunk) for _, chunk in chunks])
            if not keep([key for key, _ in chunks], vectors):
                return done
            done += len(chunks)
        elif switch():
            return done


def superseded_error(record: NextEmbedderRecord, fingerprint: EmbedderFingerprint) -> EmbeddingMismatchError:
    """Return the error for a run that a later run with another embedder replaced."""
    other = from_json(record.next_embedder or record.embedder or "").model
    return EmbeddingMismatchError(
        f"the vectors of {fingerprint.model!r} are not in use: another `ragistry reembed`, with {other!r}, started "
        "later; run it again with the model that you want"
    )


def _embedded(embedder: Embedder, texts: list[str]) -> Vectors:
    """Embed the texts; return vectors of unit length."""
    fingerprint = embedder.fingerprint
    remedy = "the old vectors stay in use; check the model, then run `ragistry reembed` again"
    vectors: Any = embedder.embed(texts, role="document")
    try:
        units = unit_vectors(vectors, len(texts))
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
