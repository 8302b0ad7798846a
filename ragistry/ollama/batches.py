"""Many texts to many vectors, through a server that takes only so many and only so long ones at a time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from ragistry.errors import EmbeddingGenerationError
from ragistry.ollama.failures import TooLongError
from ragistry.trace import degraded

OnLong = Literal["raise", "truncate"]
"""What to do with a text that is longer than the model takes in: refuse it, or embed its beginning and say so."""
Embeddings = list[list[float]]
Send = Callable[[Sequence[str]], Embeddings]
Alone = Callable[[int, str, TooLongError], list[float]]

_log = logging.getLogger(__name__)


def embed_texts(
    texts: Sequence[str],
    send: Send,
    *,
    model: str,
    window: Callable[[], int],
    batch_size: int,
    on_long: OnLong,
    send_beginning: Send | None = None,
) -> Embeddings:
    """One vector a text, in the order of ``texts``.

    ``send`` embeds one batch, or raises `TooLongError`: then the batch is halved until a text stands alone, and a
    text that is refused alone is dealt with by ``on_long``. ``send_beginning``: embeds what fits of a text, where the
    server can do that itself. ``window``: how many tokens the model takes in, 0 where that is not known; asked only
    when it is needed. Raises `EmbeddingGenerationError`.
    """
    check_texts(texts)
    cut: list[int] = []

    def alone(position: int, text: str, refusal: TooLongError) -> list[float]:
        try:
            if on_long == "raise":
                raise refusal
            vector = _beginning(text, window(), send, send_beginning)
        except TooLongError as error:
            raise EmbeddingGenerationError(
                f"texts[{position}], {len(text):,} characters, is too long for {model!r}{_tokens(window())}: {error}; "
                "make the chunks smaller, or allow on_long='truncate'"
            ) from error
        cut.append(len(text))
        return vector

    vectors: Embeddings = []
    for start in range(0, len(texts), batch_size):
        vectors += _halving(start, texts[start : start + batch_size], send, alone)
    if len({len(vector) for vector in vectors}) > 1:
        raise EmbeddingGenerationError(f"the server's embeddings by {model!r} differ in length; was its model changed?")
    if cut:
        _report(cut, model, window())
    return vectors


def check_texts(texts: Any) -> None:
    """Raise `EmbeddingGenerationError` unless this is a list of texts that can be sent."""
    if isinstance(texts, str):
        raise EmbeddingGenerationError(f"texts must be a list of texts, got one string: {texts[:40]!r}; write [text]")
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            raise EmbeddingGenerationError(f"texts[{position}] is not text: {text!r}")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise EmbeddingGenerationError(
                f"texts[{position}] holds half a surrogate pair, which is no character: {text[:40]!r}; decode it anew"
            ) from error


def check_vectors(vectors: Any, count: int) -> Embeddings:
    """The vectors; raises `EmbeddingGenerationError` unless there are ``count``, finite, of one length, none zero."""
    first = vectors[0] if isinstance(vectors, list) and vectors else None
    if isinstance(first, list) and first and isinstance(first[0], list):
        raise EmbeddingGenerationError(
            "the server gives a vector for each token, not one for each text; start it with a model that is made for "
            "embeddings, or with pooling (llama.cpp: `--pooling mean`)"
        )
    try:
        matrix = np.asarray(vectors, dtype=np.float64)
    except (OverflowError, TypeError, ValueError) as error:
        raise EmbeddingGenerationError(f"the server's embeddings are not vectors of one length: {error}") from error
    if matrix.ndim != 2 or len(matrix) != count or not matrix.size:
        raise EmbeddingGenerationError(
            f"asked the server for {count} embeddings, got an array of shape {matrix.shape}; look into its log"
        )
    if not np.isfinite(matrix).all():
        raise EmbeddingGenerationError("the server's embeddings hold NaN or infinity; reload the model")
    if not matrix.any(axis=1).all():
        raise EmbeddingGenerationError("the server gave an embedding of zeros only; the text may be too long for it")
    floats: Embeddings = matrix.tolist()
    return floats


def _halving(first: int, texts: Sequence[str], send: Send, alone: Alone) -> Embeddings:
    try:
        return check_vectors(send(texts), len(texts))
    except TooLongError as refusal:
        if len(texts) == 1:
            return [alone(first, texts[0], refusal)]
    middle = len(texts) // 2
    return _halving(first, texts[:middle], send, alone) + _halving(first + middle, texts[middle:], send, alone)


def _beginning(text: str, window: int, send: Send, send_beginning: Send | None) -> list[float]:
    if send_beginning is not None:
        try:
            return check_vectors(send_beginning([text]), 1)[0]
        except EmbeddingGenerationError:
            pass  # some versions of Ollama refuse all the same, or answer with zeros
    # Six characters a token are more than any language's average; each next try keeps three quarters of the last.
    kept = min(len(text), 6 * (window or 8_192))
    while True:
        try:
            return check_vectors(send([text[:kept]]), 1)[0]
        except TooLongError:
            kept = kept * 3 // 4
            if not kept:
                raise


def _report(lengths: Sequence[int], model: str, window: int) -> None:
    message = (
        f"{len(lengths)} of the texts, up to {max(lengths):,} characters, are longer than {model!r} takes in"
        f"{_tokens(window)}: only their beginnings were embedded; make the chunks smaller"
    )
    _log.warning("%s", message)
    degraded(message)


def _tokens(window: int) -> str:
    return f" ({window:,} tokens)" if window else ""
