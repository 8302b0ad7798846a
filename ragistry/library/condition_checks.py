"""Check the keys and values of a condition against the metadata of the chunks that were searched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from time import monotonic
from typing import Any

from ragistry.errors import InvalidFilterError
from ragistry.protocols import LibraryStore
from ragistry.types import SourceInfo, Where
from ragistry.utils.metadata import INTERNAL, RESERVED, date_text
from ragistry.utils.where import JOINS, Condition, matches
from ragistry.utils.wording import did_you_mean, shown

SAMPLE = 2_000
"""Maximum number of chunks from which the known keys and types are collected."""
REMEMBERED = 60.0
"""Seconds for which the kinds of values are remembered, in which another process may write other ones."""
_NEGATIONS = frozenset({"$ne", "$nin", "$not_contains"})
_IN_LISTS = frozenset({"$contains", "$not_contains"})
_EACH_KIND: dict[str, Where] = {
    "text": {"$gte": ""},
    "number": {"$gte": -1e308},
    "true or false": {"$in": [True, False]},
}
"""Operators that match every value of a kind."""
_LIST = "list of "
_PLURAL = {"number": "numbers", "list of text": "lists of text", "list of number": "lists of numbers"}

Comparison = tuple[str, str, Any]
"""A key, an operator and an operand."""


def with_stored_dates(condition: Condition) -> Condition:
    """Return the condition with times as the library stores them: in UTC, with ``Z``."""
    return Condition(_with_stored_dates(condition))


def _with_stored_dates(where: Where) -> dict[str, Any]:
    [(key, value)] = where.items()
    if key in JOINS:
        return {key: [_with_stored_dates(part) for part in value]}
    if key in RESERVED:
        return {key: value}
    [(op, operand)] = value.items()
    return {key: {op: [_stored(one) for one in operand] if isinstance(operand, list) else _stored(operand)}}


def _stored(operand: Any) -> Any:
    return (isinstance(operand, str) and date_text(operand)) or operand


class ValueKinds:
    """The kinds of values of each key, by collection; read from the sources of a store, and remembered for a time."""

    def __init__(self, store: LibraryStore) -> None:
        self._store = store
        self._counts: dict[str, dict[str, Counter[str]]] = {}
        self._changed: set[str] = set()
        self._until = 0.0

    def forget(self, *collections: str) -> None:
        """Read the sources of these collections again at the next use; without collections, all."""
        self._changed.update(collections)
        if not collections:
            self._until = 0.0

    def uncompared(self, where: Condition, scope: Condition | None) -> str:
        """Describe the keys of a condition whose values have several kinds, some of which it does not compare.

        Returns one line, or an empty text. Arguments as of `check_condition`.
        """
        compared: dict[str, set[str]] = {}
        for key, op, operand in _comparisons(where):
            kinds = map(_kind, operand if isinstance(operand, list) else [operand])
            compared.setdefault(key, set()).update(_LIST + kind if op in _IN_LISTS else kind for kind in kinds)
        if compared.keys() <= RESERVED:
            return ""
        limits = [*([scope] if scope else []), *_collections(where)]
        counts: dict[str, Counter[str]] = {}
        for of_keys in self._read(lambda name: all(matches(limit, {"collection": name}) for limit in limits)):
            for key in compared.keys() & of_keys.keys():
                counts.setdefault(key, Counter()).update(of_keys[key])
        return "; ".join(
            f"the values of {shown(key)} are {_amounts(kinds)}; "
            f"the condition compares only {' and '.join(_plural(kind) for kind in sorted(compared[key]))}"
            for key, kinds in sorted(counts.items())
            if kinds.keys() - compared[key] and kinds.keys() & compared[key]
        )

    def _read(self, is_within: Callable[[str], bool]) -> list[dict[str, Counter[str]]]:
        """Return the counts of the keys of each collection within a condition."""
        if monotonic() > self._until:
            self._changed.clear()
            self._counts, self._until = _counted(self._store.sources()), monotonic() + REMEMBERED
        for collection in filter(is_within, list(self._changed)):
            self._changed.discard(collection)
            counts = _counted(self._store.sources(collection))
            self._counts = {**self._counts, collection: counts.get(collection, {})}
        return [of_keys for collection, of_keys in self._counts.items() if is_within(collection)]


def _counted(sources: Iterable[SourceInfo]) -> dict[str, dict[str, Counter[str]]]:
    """Count the kinds of values of each key in each collection."""
    counts: dict[str, dict[str, Counter[str]]] = {}
    for info in sources:
        of_keys = counts.setdefault(info.collection, {})
        for key, value in info.metadata.items():
            of_keys.setdefault(key, Counter())[_kind(value)] += 1
    return counts


def check_condition(store: LibraryStore, where: Condition, scope: Condition | None, *, found: bool) -> str:
    """Describe the keys of a condition that no chunk has.

    Args:
        store: Store of the chunks.
        where: The caller's condition.
        scope: Condition of the chunks that are searched; None for all. Conditions on ``collection`` are added, because
            they also limit what a caller may see.
        found: Whether the search has results. Then only negated comparisons are checked, because chunks without such a
            key or value meet the condition.

    Returns:
        One line, or an empty text if all keys exist.

    Raises:
        InvalidFilterError: A value has another type than all values of its key.
    """
    comparisons = [one for one in _comparisons(where) if not found or one[1] in _NEGATIONS]
    if not comparisons:
        return ""
    limits = [*([scope] if scope else []), *_collections(where)]
    within = {"$and": limits} if limits else None
    examples = _examples(store, within)
    for key in {key for key, _, _ in comparisons} - examples.keys():
        if rare := _rare_examples(store, within, key):
            examples[key] = rare
    for key, op, operand in comparisons:
        if kinds := examples.get(key):
            _check_kind(store, within, key, op, operand, kinds)
    missing = list(dict.fromkeys(key for key, _, _ in comparisons if key not in examples))
    if not missing or not examples:
        return ""
    known = sorted(examples.keys() - INTERNAL)
    names = " and ".join(shown(key) + did_you_mean(key, known) for key in missing)
    return f"no chunk has the key {names}; keys are {', '.join(known)}"


def _comparisons(where: Mapping[str, Any]) -> Iterator[Comparison]:
    for key, value in where.items():
        if key in JOINS:
            for part in value:
                yield from _comparisons(part)
        else:
            [(op, operand)] = value.items()
            yield key, op, operand


def _collections(where: Mapping[str, Any]) -> list[Where]:
    """Return the parts of a condition that limit the collection of every result."""
    if "$and" in where:
        return [limit for part in where["$and"] for limit in _collections(part)]
    return [where] if "collection" in where else []


def _examples(store: LibraryStore, scope: Where | None) -> dict[str, dict[str, Any]]:
    """Return a value of each kind of each key of the first chunks."""
    examples: dict[str, dict[str, Any]] = {}
    for document in islice(store.scan(scope), SAMPLE):
        for key, value in document.metadata.items():
            examples.setdefault(key, {}).setdefault(_kind(value), value)
    return examples


def _rare_examples(store: LibraryStore, scope: Where | None, key: str) -> dict[str, Any]:
    """Return a value of each kind of a key that the first chunks lack; values that are lists are not found."""
    found = {}
    for kind, operators in _EACH_KIND.items():
        for document in islice(store.scan(_within(scope, {key: operators}), batch=1), 1):
            found[kind] = document.metadata[key]
    return found


def _check_kind(
    store: LibraryStore, scope: Where | None, key: str, op: str, operand: Any, kinds: Mapping[str, Any]
) -> None:
    """Raise `InvalidFilterError` if no value of the key has the type of the operand."""
    for one in operand if isinstance(operand, list) else [operand]:
        kind = _kind(one)
        if (_LIST + kind if op in _IN_LISTS else kind) in kinds:
            continue
        if op not in _IN_LISTS and store.count(_within(scope, {key: _EACH_KIND[kind]})):
            continue
        types = " or ".join(f"{_plural(known)}, such as {shown(kinds[known], 60)}" for known in sorted(kinds))
        in_lists = any(known.startswith(_LIST) for known in kinds)
        remedy = ""
        if in_lists != (op in _IN_LISTS):
            remedy = "; use $contains" if in_lists else "; use $eq or $in"
        raise InvalidFilterError(
            f"{op} compares {shown(key)} with {shown(one, 60)} ({kind}), but its values are {types}{remedy}"
        )


def _plural(kind: str) -> str:
    return _PLURAL.get(kind, kind)


def _amounts(kinds: Counter[str]) -> str:
    """Name the kinds with their numbers of sources, the commonest first."""
    [(first, number), *others] = kinds.most_common()
    sources = f"{number:,} source{'s' * (number != 1)}"
    return " and ".join([f"{_plural(first)} in {sources}", *(f"{_plural(kind)} in {n:,}" for kind, n in others)])


def _kind(value: Any) -> str:
    if isinstance(value, list):
        return _LIST + (_kind(value[0]) if value else "text")
    if isinstance(value, bool):
        return "true or false"
    return "number" if isinstance(value, int | float) else "text"


def _within(scope: Where | None, where: Where) -> Where:
    return where if scope is None else {"$and": [scope, where]}
