"""Which text of a source a model refused: others go on, unless the model refuses whatever it is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ragistry.errors import EmbeddingGenerationError, ModelConnectionError, ModelError, ModelNotFoundError

PLAIN = "word"
"""A text that no model has a reason to refuse."""
EXCERPT = 60

Embed = Callable[[Sequence[str]], object]
"""Embeds texts, or raises `ModelError`."""


def explained(
    error: ModelError, name: str, chunks: Sequence[str], unknown: Sequence[str], embed: Embed
) -> EmbeddingGenerationError:
    """What is wrong with a source: the first of its ``unknown`` texts that is refused, its place among the chunks, why.

    Raises ``error`` itself where a plain word is refused like it, `ModelConnectionError`, `ModelNotFoundError`.
    """
    if not isinstance(error, EmbeddingGenerationError) and _refusal([PLAIN], embed) is not None:
        raise error
    text = unknown[_first_refused(unknown, embed)]
    reason = _refusal([text], embed)
    if reason is None:  # each by itself is taken in
        return EmbeddingGenerationError(f"{name!r} cannot be embedded: {error}")
    place, start = f"chunk {chunks.index(text) + 1} of {len(chunks)}", " ".join(text.split())[:EXCERPT]
    return EmbeddingGenerationError(f"{name!r} cannot be embedded: {place} ({start!r}) was refused: {reason}")


def _first_refused(texts: Sequence[str], embed: Embed) -> int:
    """Halved until it stands alone, which takes few calls where each may be tried several times."""
    first, end = 0, len(texts)
    while end - first > 1:
        middle = (first + end) // 2
        if _refusal(texts[first:middle], embed) is None:
            first = middle
        else:
            end = middle
    return first


def _refusal(texts: Sequence[str], embed: Embed) -> ModelError | None:
    try:
        embed(texts)
    except (ModelConnectionError, ModelNotFoundError):
        raise
    except ModelError as error:
        return error
    return None
