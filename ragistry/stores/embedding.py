"""Check the embedder recorded in a store, and embed its chunks again for another one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ragistry.chunking.breadcrumb import searched_text
from ragistry.errors import (
    EmbeddingGenerationError,
    EmbeddingMismatchError,
    InvalidChunkError,
    ModelConnectionError,
    ModelError,
    ModelNotFoundError,
)
from ragistry.stores.vectors import unit_vectors
from ragistry.types import Chunk, Document, EmbedderFingerprint, Progress
from ragistry.utils.fingerprints import check_same_embedder, differences, from_json
from ragistry.utils.wording import agreeing, numbered

if TYPE_CHECKING:
    from ragistry.protocols import Embedder, LibraryStore, Vectors, WordsFirstStore

MEASURED = 16
"""Number of chunks that are embedded to estimate the time of all."""
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
    may_wait: Callable[[list[int]], bool] = lambda _: False,
) -> int:
    """Embed the chunks that lack a vector of the embedder, then switch to the new vectors.

    Args:
        embedder: Computes the vectors.
        progress: Called before each batch.
        missing: Returns up to `AT_ONCE` keys and chunks without a new vector, and the number of all such chunks.
        keep: Stores the vectors of these keys. Returns False if another run has finished the work.
        switch: Switches to the new vectors. Returns False if chunks were added meanwhile.
        may_wait: Returns whether all these chunks have no vector yet, so that the embedder may refuse them.

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
            keys, texts = [key for key, _ in chunks], [searched_text(*chunk) for _, chunk in chunks]
            try:
                vectors = _embedded(embedder, texts)
            except ModelError:
                made, refused = embed_each(texts, lambda part: _embedded(embedder, part))
                if not may_wait([key for key, text in zip(keys, texts, strict=True) if text in refused]):
                    raise
                keys = [key for key, text in zip(keys, texts, strict=True) if text in made]
                vectors = np.array([made[text] for text in texts if text in made], dtype=np.float32)
            if keys and not keep(keys, vectors):
                return done
            done += len(keys)
        elif switch():
            return done


def reembed_seconds(store: LibraryStore, embedder: Embedder) -> float | None:
    """Estimate how long `LibraryStore.reembed` takes by embedding a few chunks; None if they have such vectors."""
    recorded = store.embedder()
    texts = [searched_text(chunk.content, chunk.metadata) for chunk in islice(store.scan(), MEASURED)]
    if not texts or (recorded is not None and not differences(recorded, embedder.fingerprint)):
        return None
    try:
        embedder.embed(texts[:1])  # loads the model
        start = perf_counter()
        embedder.embed(texts)
    except ModelError:  # of a chunk that may be refused; `reembed` reports it
        return None
    return (perf_counter() - start) / len(texts) * store.count()


def superseded_error(record: NextEmbedderRecord, fingerprint: EmbedderFingerprint) -> EmbeddingMismatchError:
    """Return the error for a run that a later run with another embedder replaced."""
    other = from_json(record.next_embedder or record.embedder or "").model
    return EmbeddingMismatchError(
        f"the vectors of {fingerprint.model!r} are not in use: another `ragistry reembed`, with {other!r}, started "
        "later; run it again with the model that you want"
    )


PLAIN = "word"
"""A text that every model accepts."""

Embed = Callable[[list[str]], Any]
"""Embeds texts, or raises `ModelError`."""
Made = tuple[dict[str, "Vectors"], dict[str, ModelError]]
"""Vectors ``(d,)`` by text, and the errors of texts that were refused."""


def embed_waiting(store: WordsFirstStore, embed: Embed) -> Iterator[tuple[int, list[tuple[Document, ModelError]]]]:
    """Embed the chunks of a store that wait for their vectors, those of equal chunks excepted, a batch at a time.

    Yields:
        For each batch, the number of chunks embedded, and the refused chunks with the reason.

    Raises:
        ModelError: No text can be embedded.
    """
    after = 0
    while found := store.waiting(after):
        after = found[-1][0]
        chunks = [Chunk(document.content, document.metadata) for _, document in found]
        texts = {number: searched_text(*chunk) for (number, _), chunk in zip(found, chunks, strict=True)}
        vectors = dict(store.known_vectors("", "", chunks))
        made, refused = embed_each([text for text in dict.fromkeys(texts.values()) if text not in vectors], embed)
        vectors |= made
        settled = [number for number, text in texts.items() if text in vectors]
        if settled:
            store.add_vectors(settled, np.stack([vectors[texts[number]] for number in settled]))
        if refused:
            store.refuse_vectors([number for number in texts if number not in settled])
        yield len(made), [(document, refused[texts[number]]) for number, document in found if number not in settled]


def waiting_line(count: int) -> str:
    """Say that this many chunks wait for their vectors."""
    return (
        f"{numbered(count, 'chunk[|s]')} {agreeing(count, '[waits|wait]')} for vectors and "
        f"{agreeing(count, '[is|are]')} only found by words; ingest again, or run `ragistry reembed`"
    )


def embed_each(texts: Sequence[str], embed: Embed) -> Made:
    """Embed texts, and divide them where the model refuses them, so that only refused ones have no vector.

    Raises:
        ModelError: The model cannot be reached, or refuses a plain word too.
    """
    vectors: dict[str, Vectors] = {}
    refused: dict[str, ModelError] = {}
    parts = [list(texts)] if texts else []
    while parts:
        part = parts.pop()
        try:
            vectors.update(zip(part, _units(embed(part), len(part)), strict=True))
        except (ModelConnectionError, ModelNotFoundError):
            raise
        except ModelError as error:
            if not refused and not isinstance(error, EmbeddingGenerationError):
                _check_model(embed, error)
            middle = len(part) // 2
            if middle:
                parts += [part[middle:], part[:middle]]
            else:
                refused[part[0]] = error
    return vectors, refused


def _check_model(embed: Embed, error: ModelError) -> None:
    """Raise the error if the model refuses a plain word too."""
    try:
        embed([PLAIN])
    except ModelError:
        raise error from None


def _units(vectors: Any, count: int) -> Vectors:
    try:
        return unit_vectors(vectors, count)
    except (TypeError, ValueError) as error:
        raise EmbeddingGenerationError(f"the model returned vectors that cannot be stored: {error}") from error


def _embedded(embedder: Embedder, texts: list[str]) -> Vectors:
    """Embed the texts; return vectors of unit length."""
    return checked_vectors(embedder.fingerprint, embedder.embed(texts, role="document"), len(texts))


def checked_vectors(fingerprint: EmbedderFingerprint, vectors: Any, count: int) -> Vectors:
    """Return vectors of the embedder in unit length.

    Raises:
        InvalidChunkError: They cannot be stored.
        EmbeddingMismatchError: They have another dimension.
    """
    remedy = "the old vectors stay in use; check the model, then run `ragistry reembed` again"
    try:
        units = unit_vectors(vectors, count)
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
