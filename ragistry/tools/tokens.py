"""Estimate the tokens of a text without the model's tokenizer; estimates are rather too high."""

from __future__ import annotations

import re
from collections.abc import Callable

_TOKENS = re.compile(r"[A-Za-z0-9]{1,3}|[ \t\n]{2,16}|[\t\n]|[^A-Za-z0-9 \t\n]")

LONGEST = 17
"""Maximum characters of a token, with the blank before it."""


def estimated_tokens(text: str) -> int:
    """Count a token for every three letters or digits of a plain word, for a run of blanks, and for other characters.

    A single blank belongs to the word after it. A longer beginning of a text never has fewer tokens.
    """
    return len(_TOKENS.findall(text))


def cut_to_tokens(text: str, tokens: int, length: Callable[[str], int] = estimated_tokens) -> str:
    """Return the longest beginning of a text whose ``length`` is at most ``tokens``."""
    low, high = 0, min(len(text), (tokens + 1) * LONGEST)
    while low < high:
        middle = (low + high + 1) // 2
        if length(text[:middle]) <= tokens:
            low = middle
        else:
            high = middle - 1
    return text[:low]
