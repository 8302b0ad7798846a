"""Texts to vectors: what every embedder checks, and how one that asks a server sends, cuts and counts them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from reprlib import repr as short
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ragistry.errors import EmbeddingGenerationError
from ragistry.trace import degraded

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ragistry.protocols import Vectors

OnLong = Literal["raise", "truncate"]
"""What to do with a text that is longer than the model takes in: refuse it, or embed its beginning and report it."""
Send = Callable[[Sequence[str]], Any]
"""Sends one batch to a server and returns its vectors, unchecked, or raises `TooLongError`."""

BYTES_A_TOKEN = 4
BYTES_A_VECTOR = 500_000
"""Of JSON, at most: 20,000 numbers of 25 characters."""

_log = logging.getLogger(__name__)


class TooLongError(EmbeddingGenerationError):
    """The server takes this input in smaller parts, or shorter, or not at all."""


def check_texts(texts: Sequence[str]) -> list[str]:
    """The texts as a list.

    Raises `EmbeddingGenerationError` that names the position where something is not a string, or holds half of a
    surrogate pair, which no encoding can carry; and where ``texts`` is one string instead of a list.
    """
    given: Any = texts
    if isinstance(given, str | bytes):
        raise EmbeddingGenerationError(f"texts must be a list of strings, got one: {short(given)}; write [text]")
    for position, text in enumerate(given):
        if not isinstance(text, str):
            raise EmbeddingGenerationError(
                f"texts[{position}] is not a string: {short(text)}; give text, an empty string where there is none"
            )
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise EmbeddingGenerationError(
                f"texts[{position}] has half a surrogate pair, {text[error.start]!r}, at character {error.start}; "
                "decode its source with errors='replace'"
            ) from error
    return list(given)


def estimate_tokens(texts: Sequence[str]) -> list[int]:
    """About how many tokens each text has, for a model whose tokenizer is not at hand.

    One for every four bytes of UTF-8, and two special ones. English text has about four characters a token; scripts
    with two or three bytes a character have fewer characters a token, and vocabularies of several languages too.
    """
    return [-(-len(text.encode()) // BYTES_A_TOKEN) + 2 for text in check_texts(texts)]


def check_vectors(vectors: Any, count: int) -> NDArray[np.float64]:
    """``(count, d)``; raises `EmbeddingGenerationError` unless the numbers are finite and no vector is zero."""
    first = vectors[0] if isinstance(vectors, list) and vectors else None
    if isinstance(first, list) and first and isinstance(first[0], list):
        raise EmbeddingGenerationError(
            "the server gives a vector for each token, not one for each text; start it with a model that is made for "
            "embeddings, or with pooling (llama.cpp: `--pooling mean`)"
        )
    try:
        matrix = np.asarray(vectors)
    except (OverflowError, RecursionError, TypeError, ValueError) as error:
        raise EmbeddingGenerationError(f"the server's embeddings are not vectors of one length: {error}") from error
    if matrix.ndim != 2 or len(matrix) != count or not matrix.size:
        raise EmbeddingGenerationError(
            f"asked the server for {count} embeddings, got an array of shape {matrix.shape}; look into its log"
        )
    # numpy takes a boolean among numbers as 0 or 1
    if matrix.dtype.kind not in "fiu" or any(bool in set(map(type, row)) for row in vectors):
        raise EmbeddingGenerationError("the server's embeddings hold values that are not numbers; look into its log")
    if not np.isfinite(matrix).all():
        raise EmbeddingGenerationError("the server's embeddings hold NaN or infinity; reload the model")
    if not matrix.any(axis=1).all():
        raise EmbeddingGenerationError("the server gave an embedding of zeros only; the text may be too long for it")
    return matrix.astype(np.float64)


def unit_rows(vectors: NDArray[np.float64], dimension: int) -> Vectors:
    """``(n, dimension)`` float32, rows of unit length, of vectors that `check_vectors` accepted.

    Raises `EmbeddingGenerationError` where the server has changed the dimension.
    """
    if not len(vectors):
        return np.empty((0, dimension), dtype=np.float32)
    if vectors.shape[1] != dimension:
        raise EmbeddingGenerationError(
            f"the server now gives {vectors.shape[1]} dimensions, where it gave {dimension} before; "
            "was its model changed?"
        )
    rows = vectors / np.abs(vectors).max(axis=1, keepdims=True)  # squares of huge or tiny numbers would not fit
    unit: Vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit


def embed_texts(
    texts: Sequence[str], send: Send, *, model: str, window: Callable[[], int], batch_size: int, on_long: OnLong
) -> NDArray[np.float64]:
    """``(n, d)``: one vector a text, in the order of ``texts``, not scaled; ``(0, 0)`` for no texts.

    A batch that is refused with `TooLongError` is halved, down to a single text, and ``on_long`` decides on a text
    that is refused alone. ``window``: how many tokens the model takes in, 0 where that is not known; asked only when it
    is needed. Raises `EmbeddingGenerationError`.
    """
    texts = check_texts(texts)
    cut: list[int] = []

    def embed(start: int, batch: Sequence[str]) -> list[NDArray[np.float64]]:
        try:
            return list(check_vectors(send(batch), len(batch)))
        except TooLongError as refusal:
            if len(batch) == 1:
                return [alone(start, batch[0], refusal)]
        half = len(batch) // 2
        return embed(start, batch[:half]) + embed(start + half, batch[half:])

    def alone(position: int, text: str, refusal: TooLongError) -> NDArray[np.float64]:
        # Six characters a token are more than the average of any language; each next try keeps three quarters.
        kept = min(len(text), 6 * (window() or 8_192))
        while on_long == "truncate" and kept:
            try:
                vector: NDArray[np.float64] = check_vectors(send([text[:kept]]), 1)[0]
            except TooLongError:
                kept = kept * 3 // 4
            else:
                cut.append(len(text))
                return vector
        raise EmbeddingGenerationError(
            f"texts[{position}], {len(text):,} characters, is too long for {model!r}{_tokens(window())}: {refusal}; "
            "make the chunks smaller, or allow on_long='truncate'"
        ) from refusal

    rows = [
        row for start in range(0, len(texts), batch_size) for row in embed(start, texts[start : start + batch_size])
    ]
    if len({len(row) for row in rows}) > 1:
        raise EmbeddingGenerationError(f"the server's embeddings by {model!r} differ in length; was its model changed?")
    if cut:
        message = (
            f"{len(cut)} of the texts, up to {max(cut):,} characters, are longer than {model!r} takes in"
            f"{_tokens(window())}: only their beginnings were embedded; make the chunks smaller"
        )
        _log.warning("%s", message)
        degraded(message)
    return np.stack(rows) if rows else np.empty((0, 0))


def _tokens(window: int) -> str:
    return f" ({window:,} tokens)" if window else ""
