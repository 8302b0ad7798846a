"""Suggestions for unknown names in messages: the probably intended name, or all known ones."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """``"; did you mean 'naive'?"`` if a known name is close to ``name``, else empty.

    Case is ignored: ``Naive`` matches ``naive``.
    """
    spelled = {candidate.casefold(): candidate for candidate in known}
    close = get_close_matches(str(name).casefold(), spelled, n=1)
    return f"; did you mean {spelled[close[0]]!r}?" if close else ""


def listed(names: Iterable[str], limit: int = 20) -> str:
    """``"'bm25', 'naive'"``: at most ``limit`` names in order and a count of the rest; ``"none"`` without names."""
    ordered = sorted(names)
    shown = ", ".join(repr(name) for name in ordered[:limit])
    rest = len(ordered) - limit
    return f"{shown} and {rest} more" if rest > 0 else shown or "none"
