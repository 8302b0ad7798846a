"""Check the texts and vectors of embedders; send batches to a server, and cut long texts."""

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
"""What to do with a text longer than the model's limit: refuse it, or embed its beginning and report it."""
Send = Callable[[Sequence[str]], Any]
"""Sends one batch to a server and returns its vectors, unchecked, or raises `TooLongError`."""

BYTES_A_TOKEN = 4
ALWAYS_FITS = 126
"""Texts up to this size in bytes fit every model: a text has at most as many tokens as bytes plus two, and every model
takes at least 128."""
BYTES_A_VECTOR = 500_000
"""Maximum JSON size of a vector in bytes: 20,000 numbers of 25 characters."""

_log = logging.getLogger(__name__)


class TooLongError(EmbeddingGenerationError):
    """The server refused the size of the input; smaller batches or shorter texts may work."""


def check_texts(texts: Sequence[str]) -> list[str]:
    """Check texts and return them as a list.

    Raises:
        EmbeddingGenerationError: ``texts`` is a single string, or a value is not a string or has half a surrogate pair,
            which cannot be encoded. The message names its position.
    """
    values: Any = texts
    if isinstance(values, str | bytes):
        raise EmbeddingGenerationError(f"texts must be a list of strings, got one: {short(values)}; write [text]")
    for position, text in enumerate(values):
        if not isinstance(text, str):
            raise EmbeddingGenerationError(
                f"texts[{position}] is not a string: {short(text)}; pass text, or an empty string"
            )
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise EmbeddingGenerationError(
                f"texts[{position}] has half a surrogate pair, {text[error.start]!r}, at character {error.start}; "
                "decode its source with errors='replace'"
            ) from error
    return list(values)


def estimate_tokens(texts: Sequence[str]) -> list[int]:
    """Estimate the tokens of each text, for a model without an available tokenizer.

    One per four bytes of UTF-8, plus two special ones. English has about four characters per token; scripts with two or
    three bytes per character have fewer, and so do multilingual vocabularies.
    """
    return [-(-len(text.encode()) // BYTES_A_TOKEN) + 2 for text in check_texts(texts)]


def check_vectors(vectors: Any, count: int) -> NDArray[np.float64]:
    """Check vectors and return them as ``(count, d)``.

    Raises:
        EmbeddingGenerationError: The shape is wrong, a number is not finite, or a vector is zero.
    """
    first = vectors[0] if isinstance(vectors, list) and vectors else None
    if isinstance(first, list) and first and isinstance(first[0], list):
        raise EmbeddingGenerationError(
            "the server returns a vector for each token instead of each text; start it with an embedding model, or "
            "with pooling (llama.cpp: `--pooling mean`)"
        )
    try:
        matrix = np.asarray(vectors)
        if matrix.dtype.kind == "U":  # numbers as text
            matrix = matrix.astype(np.float64)
    except (OverflowError, RecursionError, TypeError, ValueError) as error:
        raise EmbeddingGenerationError(f"the server's embeddings are not vectors of one length: {error}") from error
    if matrix.ndim != 2 or len(matrix) != count or not matrix.size:
        raise EmbeddingGenerationError(
            f"asked the server for {count} embeddings, got an array of shape {matrix.shape}; check its log"
        )
    # numpy converts booleans to 0 or 1
    if matrix.dtype.kind not in "fiu" or any(bool in set(map(type, row)) for row in vectors):
        raise EmbeddingGenerationError("the server's embeddings have values that are not numbers; check its log")
    if not np.isfinite(matrix).all():
        raise EmbeddingGenerationError("the server's embeddings have NaN or infinity; reload the model")
    if not matrix.any(axis=1).all():
        raise EmbeddingGenerationError("the server returned an embedding of zeros; the text may be too long for it")
    return matrix.astype(np.float64)


def unit_rows(vectors: NDArray[np.float64], dimension: int) -> Vectors:
    """Scale vectors checked by `check_vectors` to unit length: ``(n, dimension)`` float32.

    Raises `EmbeddingGenerationError` if the server changed the dimension.
    """
    if not len(vectors):
        return np.empty((0, dimension), dtype=np.float32)
    if vectors.shape[1] != dimension:
        raise EmbeddingGenerationError(
            f"the server now returns {vectors.shape[1]} dimensions instead of {dimension}; check if its model changed"
        )
    rows = vectors / np.abs(vectors).max(axis=1, keepdims=True)  # squares of huge or tiny numbers would not fit
    unit: Vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit


def embed_texts(
    texts: Sequence[str], send: Send, *, model: str, window: Callable[[], int], batch_size: int, on_long: OnLong
) -> NDArray[np.float64]:
    """Embed texts on a server: ``(n, d)``, one vector per text, not scaled; ``(0, 0)`` without texts.

    A batch refused with `TooLongError` is halved, down to single texts.

    Args:
        texts: The texts.
        send: Sends one batch.
        model: Name of the model in messages.
        window: Returns the model's limit in tokens, 0 if unknown; called only if needed.
        batch_size: Maximum number of texts per request.
        on_long: What to do with a single text that is refused.

    Raises:
        EmbeddingGenerationError: A text is invalid or too long, or the vectors are invalid.
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
        # six characters per token exceed the average of any language; each retry keeps three quarters
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
            "make the chunks smaller, or set on_long='truncate'"
        ) from refusal

    rows = [
        row for start in range(0, len(texts), batch_size) for row in embed(start, texts[start : start + batch_size])
    ]
    if len({len(row) for row in rows}) > 1:
        raise EmbeddingGenerationError(
            f"the server's embeddings by {model!r} differ in length; check if its model changed"
        )
    if cut:
        message = (
            f"{len(cut)} of the texts, up to {max(cut):,} characters, are too long for {model!r}"
            f"{_tokens(window())}: only their beginnings were embedded; make the chunks smaller"
        )
        _log.warning("%s", message)
        degraded(message)
    return np.stack(rows) if rows else np.empty((0, 0))


def _tokens(window: int) -> str:
    return f" ({window:,} tokens)" if window else ""
