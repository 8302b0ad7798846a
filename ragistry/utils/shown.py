"""Format values for messages: on one line, with limited length."""

from __future__ import annotations

from typing import Any

LONGEST = 200


def shown(value: Any, longest: int = LONGEST) -> str:
    """The value's ``repr`` on one line, cut to ``longest`` characters and an ellipsis."""
    try:
        return one_line(repr(value), longest)
    except (RecursionError, ValueError):  # nested too deeply; a whole number of thousands of digits
        return f"a value of type {type(value).__name__}"


def one_line(text: str, longest: int = LONGEST) -> str:
    """A foreign text on one line, cut if it is long."""
    text = " ".join(line.strip() for line in text.splitlines())
    return text if len(text) <= longest else f"{text[:longest]}…"
