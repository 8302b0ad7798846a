"""Sentences with a number, in the singular or the plural."""

from __future__ import annotations

import re


def numbered(number: int, text: str) -> str:
    """``numbered(1, "[query has|queries have] no text")``: ``1 query has no text``."""
    return f"{number:,} {agreeing(number, text)}"


def agreeing(number: float, text: str) -> str:
    """A text with the first of each ``[one|several]`` if the number is 1, else with the second."""
    return re.sub(r"\[([^|\]]*)\|([^|\]]*)\]", lambda forms: forms[1 if number == 1 else 2], text)
