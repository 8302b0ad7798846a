"""Embeddings of texts that Ollama took in whole, which it does not promise by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ragistry.ollama.batches import Embeddings
from ragistry.ollama.failures import TooLongError

Ask = Callable[[Sequence[str]], tuple[Embeddings, int]]
"""Sends ``/api/embed`` with ``truncate: false``: the vectors, and how many tokens the server read."""

_ALWAYS_FITS = 126
"""Bytes. A text has no more tokens than bytes and two special ones, and no model takes in fewer than 128."""
_MORE = " and" * 32


def embed_whole(texts: Sequence[str], ask: Ask, window: Callable[[], int]) -> Embeddings:
    """The vectors of texts that were read to their ends; else raises `TooLongError`.

    A server that honours ``truncate: false`` refuses what is too long. One that cuts all the same gives itself away
    only by its count of tokens, which is one for the whole batch. So a text that may fill the window (``window``
    tokens, 0: not known) goes alone, and where its count reaches the window, the server is asked to take the text with
    some words more: one that takes these as well has cut both.
    """
    longest = max(len(text.encode()) for text in texts)
    limit = window() if longest > _ALWAYS_FITS else 0
    if len(texts) > 1 and limit and longest > 4 * limit:
        raise TooLongError(f"a text of {longest:,} bytes may fill the window of {limit:,} tokens")
    vectors, tokens = ask(texts)
    if len(texts) == 1 and limit and tokens >= limit - 2 and _takes(texts[0] + _MORE, ask):
        raise TooLongError(f"the server read {tokens:,} tokens of a text of {longest:,} bytes and left out the rest")
    return vectors


def _takes(text: str, ask: Ask) -> bool:
    try:
        ask([text])
    except TooLongError:
        return False
    return True
