"""What an embedder takes in, checked before any model sees it."""

from __future__ import annotations

from collections.abc import Sequence
from reprlib import repr as short
from typing import Any

from ragistry.errors import EmbeddingGenerationError


def check_texts(texts: Sequence[str]) -> list[str]:
    """The texts as a list.

    Raises `EmbeddingGenerationError` that names the position where something is not a string, or holds half of a
    surrogate pair, which no encoding can carry; and where ``texts`` is one string, whose letters nobody meant.
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
