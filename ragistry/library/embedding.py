"""Embed the chunks of a store: those that wait for their vectors, and all again for another embedder."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ragistry.chunking.breadcrumb import searched_text
from ragistry.errors import (
    EmbeddingGenerationError,
    ModelConnectionError,
    ModelError,
    ModelNotFoundError,
    UnsupportedError,
)
from ragistry.library.fit import measure_if_due
from ragistry.stores.vectors import unit_vectors
from ragistry.types import Chunk, Document, Progress
from ragistry.utils.fingerprints import REFILL, differences
from ragistry.utils.wording import agreeing, numbered

if TYPE_CHECKING:
    from ragistry.protocols import Embedder, LibraryStore, ReembedStore, Vectors, WordsFirstStore

_log = logging.getLogger(__name__)

MEASURED = 16
"""Number of chunks that are embedded to estimate the time of all."""


def reembed(store: LibraryStore, embedder: Embedder, progress: Progress | None = None) -> int:
    """Embed every chunk that has no vector of this embedder, switch to the new vectors, and return their number.

    Searches use the old vectors until all new ones exist; an interrupted run is continued. A chunk that the embedder
    refuses ends it, unless it waited for its vector anyway.

    Args:
        store: A store with the ability ``"reembed"``.
        embedder: Computes the vectors.
        progress: Called before each batch.

    Raises:
        UnsupportedError: The store lacks this ability.
        EmbeddingMismatchError: The embedder returned vectors of another dimension, or a later run has another embedder.
        InvalidChunkError: The embedder returned vectors that cannot be stored.
        ModelError: The embedder failed.
    """
    if "reembed" not in store.abilities:
        raise UnsupportedError(
            f"the store {type(store).__name__!r} cannot replace its vectors; {REFILL}, or set "
            "`store: {use: local}` in vector_stores.yaml"
        )
    target, fingerprint = cast("ReembedStore", store), embedder.fingerprint
    target.begin_vectors(fingerprint)
    done = after = 0
    while True:
        chunks, left = target.lacking_vectors(fingerprint, after)
        if progress is not None:
            progress("chunks", done, done + left)
        if chunks:
            done += _reembed_batch(target, embedder, chunks)
            after = chunks[-1][0]
        elif target.switch_vectors(fingerprint):
            measure_if_due(store, embedder)
            return done
        else:  # chunks were added meanwhile
            after = 0


def _reembed_batch(store: ReembedStore, embedder: Embedder, chunks: Sequence[tuple[int, Chunk]]) -> int:
    """Give these chunks vectors, and return the number of those that have one."""
    texts = {number: searched_text(*chunk) for number, chunk in chunks}
    embed = partial(embedder.embed, role="document")
    try:
        vectors = embed(list(texts.values()))
    except ModelError:
        made, refused = embed_each(list(texts.values()), embed)
        waiting = [number for number, text in texts.items() if text in refused]
        if not all(_waits(store, number) for number in waiting):
            raise
        cast("WordsFirstStore", store).refuse_vectors(waiting)
        _log.warning(
            "%s refuses %s; %s only found by words", embedder.fingerprint.model, numbered(len(waiting), "chunk[|s]"),
            agreeing(len(waiting), "[it stays|they stay]"),
        )  # fmt: skip
        texts = {number: text for number, text in texts.items() if text in made}
        vectors = np.array([made[text] for text in texts.values()], dtype=np.float32)
    if texts:
        store.add_vectors(list(texts), vectors, embedder=embedder.fingerprint)
    return len(texts)


def _waits(store: LibraryStore, number: int) -> bool:
    """Return whether this chunk has no vector of the recorded embedder either."""
    if "words_first" not in store.abilities:
        return False
    return any(found == number for found, _ in cast("WordsFirstStore", store).waiting(number - 1, 1))


def reembed_seconds(store: LibraryStore, embedder: Embedder) -> float | None:
    """Estimate how long `reembed` takes by embedding a few chunks; None if they have such vectors."""
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
