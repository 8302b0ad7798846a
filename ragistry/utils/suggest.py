"""What a message says about a name that nobody knows: the one that was probably meant, or all that there are."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """``"; did you mean 'naive'?"`` where a known name is close to ``name``, else nothing.

    Upper and lower case do not count: ``Naive`` is as close to ``naive`` as can be.
    """
    spelled = {candidate.casefold(): candidate for candidate in known}
    close = get_close_matches(str(name).casefold(), spelled, n=1)
    return f"; did you mean {spelled[close[0]]!r}?" if close else ""


def listed(names: Iterable[str], limit: int = 20) -> str:
    """``"'bm25', 'naive'"``: the names in order, as many as ``limit`` and a count of the rest; ``"none"`` for none."""
    ordered = sorted(names)
    shown = ", ".join(repr(name) for name in ordered[:limit])
    rest = len(ordered) - limit
    return f"{shown} and {rest} more" if rest > 0 else shown or "none"
