"""Format values for messages: on one line, numbers with nouns, suggestions, times."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from difflib import get_close_matches
from typing import Any

from ragistry.utils.quoting import visible_line


def numbered(number: int, text: str) -> str:
    """Write a number with its noun: ``numbered(1, "[query has|queries have] no text")``."""
    return f"{number:,} {agreeing(number, text)}"


def agreeing(number: float, text: str) -> str:
    """Choose the first of each ``[one|several]`` in a text if the number is 1, else the second."""
    return re.sub(r"\[([^|\]]*)\|([^|\]]*)\]", lambda forms: forms[1 if number == 1 else 2], text)


LONGEST = 200


def shown(value: Any, longest: int = LONGEST) -> str:
    """Write a value's ``repr`` on one line, cut to ``longest`` characters and an ellipsis."""
    try:
        return one_line(repr(value), longest)
    except (RecursionError, ValueError):  # nested too deeply; a whole number of thousands of digits
        return f"a value of type {type(value).__name__}"


def one_line(text: str, longest: int = LONGEST) -> str:
    """Write foreign text on one line, cut if it is long."""
    text = " ".join(line.strip() for line in text.splitlines())
    return text if len(text) <= longest else f"{text[:longest]}…"


_PROBLEMS = {
    "missing": "is missing",
    "greater_than_equal": "must be {ge} or more",
    "greater_than": "must be more than {gt}",
    "less_than_equal": "must be {le} or less",
    "less_than": "must be less than {lt}",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float", "int_parsing_size"), "must be a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "must be a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "must be true or false"),
    "string_type": "must be text",
    "list_type": "must be a list",
    "dict_type": "must be a mapping",
}
_LIMITS = ("ge", "gt", "le", "lt")


def problem_of(error: Any) -> str:
    """Describe one error of pydantic, a mapping, without the place and the value."""
    limits = {key: f"{value:,}".removesuffix(".0") for key, value in error.get("ctx", {}).items() if key in _LIMITS}
    wording = _PROBLEMS.get(error["type"])
    return wording.format(**limits) if wording else str(error["msg"])


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return ``"; did you mean 'naive'?"`` if a known name is close to ``name``, else an empty text.

    Case is ignored: ``Naive`` matches ``naive``.
    """
    close = closest(name, known)
    return "" if close is None else f"; did you mean {close!r}?"


def closest(name: object, known: Iterable[str]) -> str | None:
    """Return the known name that is most like ``name``, ignoring case; None if none is close."""
    spelled = {candidate.casefold(): candidate for candidate in known}
    close = get_close_matches(str(name).casefold(), spelled, n=1)
    return spelled[close[0]] if close else None


def listed(names: Iterable[str], limit: int = 20) -> str:
    """List at most ``limit`` names in order, and count the rest: ``"'bm25', 'naive'"``; ``"none"`` without names."""
    ordered = sorted(names)
    named = ", ".join(repr(name) for name in ordered[:limit])
    rest = len(ordered) - limit
    return f"{named} and {rest} more" if rest > 0 else named or "none"


def no_passage(words: Sequence[str], limit: int = 5) -> str:
    """Say that no passage contains a word, of the first ``limit`` ones; empty without words."""
    named = [f'"{visible_line(word, 40)}"' for word in words[:limit]]
    rest = [f"{len(words) - limit} more words"] if len(words) > limit else []
    return f"no passage contains {' or '.join(named + rest)}" if words else ""


def no_collection(name: object, known: Iterable[str]) -> str:
    """Say that a collection does not exist, with the nearest name and the known ones."""
    names = list(known)
    there = f"existing collections: {listed(names)}" if names else "no collection exists yet"
    return f"no collection {name!r}{did_you_mean(name, names)}; {there}"


def duration(seconds: float) -> str:
    """Write a duration roughly: ``40 s``, ``5 min``, ``2.5 h``."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def local_time(moment: float | str) -> str:
    """Write a time as local ``2026-11-23 21:15``; empty for 0.

    ``moment``: seconds since 1970, or ISO 8601 with a zone.
    """
    if not moment:
        return ""
    read = datetime.fromisoformat(moment) if isinstance(moment, str) else datetime.fromtimestamp(moment)
    return f"{read.astimezone():%Y-%m-%d %H:%M}"
