"""A condition on metadata of which some are known for many chunks at once: decided, or reduced to what is left."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ragistry.types import Where
from ragistry.utils.where import matches


def settle(where: Where, known: Mapping[str, Any], varying: Collection[str]) -> bool | dict[str, Any]:
    """True or False where ``known`` decides the condition for every chunk, else the condition that is left.

    ``where`` is in its normal form; ``known``: metadata that all chunks share; ``varying``: keys that differ among
    them. A key in neither is one that no chunk has.
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
