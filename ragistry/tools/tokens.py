"""How long a text is for a language model, without that model's tokenizer: an estimate that is rather too high."""

from __future__ import annotations

import re
from collections.abc import Callable

_TOKENS = re.compile(r"[A-Za-z0-9]{1,3}|[ \t\n]{2,16}|[\t\n]|[^A-Za-z0-9 \t\n]")

LONGEST = 17
"""Characters of a token at most, with the blank before it."""


def estimated_tokens(text: str) -> int:
    """One token for every three letters or digits of a plain word, for blanks in a row, and for any other character.

    A single blank belongs to the word after it. Longer beginnings of a text never have fewer tokens.
    """
    return len(_TOKENS.findall(text))


def cut_to_tokens(text: str, tokens: int, length: Callable[[str], int] = estimated_tokens) -> str:
    """The longest beginning of a text whose ``length`` is ``tokens`` or fewer."""
    low, high = 0, min(len(text), (tokens + 1) * LONGEST)
    while low < high:
        middle = (low + high + 1) // 2
        if length(text[:middle]) <= tokens:
            low = middle
        else:
            high = middle - 1
    return text[:low]
