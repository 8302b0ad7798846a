"""Decide or simplify a condition if some metadata are known for many chunks at once."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ragistry.types import Where
from ragistry.utils.where import matches


def settle(where: Where, known: Mapping[str, Any], varying: Collection[str]) -> bool | dict[str, Any]:
    """True or False if ``known`` decides the condition for every chunk, else the remaining condition.

    ``where`` is in its normal form; ``known``: metadata shared by all chunks; ``varying``: keys that may differ. No
    chunk has any other key.
    """
    [(key, value)] = where.items()
    if key not in ("$and", "$or"):
        return dict(where) if key in varying else matches(where, known)
    decisive = key == "$or"  # one True decides $or, one False decides $and
    left = []
    for part in value:
        verdict = settle(part, known, varying)
        if verdict is decisive:
            return decisive
        if not isinstance(verdict, bool):
            left.append(verdict)
    if not left:
        return not decisive
    return left[0] if len(left) == 1 else {key: left}
