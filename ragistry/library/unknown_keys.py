"""Report conditions on metadata keys that no chunk has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from ragistry.protocols import LibraryStore
from ragistry.types import Where
from ragistry.utils.where import JOINS, normalise
from ragistry.utils.wording import did_you_mean, shown

SAMPLE = 2_000
"""Maximum number of chunks from which the known keys are collected."""
_NEGATIONS = frozenset({"$ne", "$nin", "$not_contains"})


def unknown_keys(store: LibraryStore, where: Where, scope: Where | None, *, found: bool) -> str:
    """Describe the keys of a condition that no chunk has.

    Args:
        store: Store of the chunks.
        where: The caller's condition.
        scope: Condition of the chunks that are searched; None for all. Conditions on ``collection`` are added, because
            they also limit what a caller may see.
        found: Whether the search has results. Then only negated keys are checked, because chunks without such a key
            meet the condition.

    Returns:
        One line, or an empty text if all keys exist.
    """
    where = normalise(where)
    keys = {key for key, operators in _keys(where) if not found or operators & _NEGATIONS}
    if not keys:
        return ""
    limits = [*([scope] if scope else []), *_collections(where)]
    scope = {"$and": limits} if limits else None
    known: set[str] = set()
    for document in islice(store.scan(scope), SAMPLE):
        known |= document.metadata.keys()
    missing = [key for key in keys if key not in known and not store.count(_exists(key, scope))]
    if not missing or not known:
        return ""
    names = " and ".join(shown(key) + did_you_mean(key, sorted(known)) for key in missing)
    return f"no chunk has the key {names}; keys are {', '.join(sorted(known))}"


def _keys(where: Mapping[str, Any]) -> Iterator[tuple[str, frozenset[str]]]:
    for key, value in where.items():
        if key in JOINS:
            for part in value:
                yield from _keys(part)
        else:
            yield key, frozenset(value)


def _collections(where: Mapping[str, Any]) -> list[Where]:
    """Return the parts of a condition that limit the collection of every result."""
    if "$and" in where:
        return [limit for part in where["$and"] for limit in _collections(part)]
    return [where] if "collection" in where else []


def _exists(key: str, scope: Where | None) -> Where:
    """Return a condition that matches chunks with this key, except list values."""
    of_any_type = {"$or": [{key: {"$gte": ""}}, {key: {"$gte": -1e308}}, {key: {"$in": [True, False]}}]}
    return of_any_type if scope is None else {"$and": [scope, of_any_type]}
