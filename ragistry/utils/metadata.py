"""Check the metadata of a chunk: text, numbers, truth values, and flat lists of one type."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from ragistry.utils.wording import shown

MAX_KEYS = 100
MAX_KEY_LENGTH = 256
MAX_LIST = 1_000
MAX_VALUES = 4_000
"""Maximum number of values of a chunk, including those in lists: above about 5,400, a Chroma collection breaks."""
MAX_VALUE_BYTES = 1_000_000
MAX_INTEGER = 2**63

_BUILT_IN = frozenset({str, int, float, bool})

OWN_PREFIX = "ragistry:"
"""Prefix of keys that stores use internally; they are neither returned nor accepted."""


def stored_metadata(metadata: Any) -> tuple[dict[str, Any], list[str]]:
    """Return the metadata to store, and their errors, one phrase each.

    None and empty lists are omitted; tuples become lists, and values `plain`.
    """
    if not isinstance(metadata, Mapping):
        return {}, [f"metadata are {shown(metadata, 80)}, not a mapping"]
    kept: dict[str, Any] = {}
    problems: list[str] = []
    for name, content in metadata.items():
        if type(name) is str and len(name) <= MAX_KEY_LENGTH:
            key, problem = name, _known_key_problem(name)
        else:
            key = plain(name)
            problem = key_problem(key)
        value: Any = content
        if type(content) is str and content.isascii() and len(content) <= MAX_VALUE_BYTES:
            pass  # nearly all values: valid without a look at each character
        elif type(content) in _BUILT_IN:  # no need to convert them
            problem = problem or scalar_problem(content)
        else:
            value = [plain(item) for item in content] if isinstance(content, list | tuple) else plain(content)
            problem = problem or value_problem(value)
        if problem:
            problems.append(f"metadata {shown(key, 80)} {problem}")
        elif value is not None and value != []:
            kept[key] = value
    if len(kept) > MAX_KEYS:
        problems.append(f"has {len(kept)} metadata keys, the limit is {MAX_KEYS}")
    values = sum(len(value) if isinstance(value, list) else 1 for value in kept.values())
    if values > MAX_VALUES:
        problems.append(f"has {values:,} metadata values, the limit is {MAX_VALUES:,}")
    return kept, problems


def plain(value: Any) -> Any:
    """Convert a value to a built-in text, number or truth value; return other values unchanged.

    Enumeration members and NumPy numbers equal built-in values but have another type, so they would differ from stored
    ones.
    """
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):
        return float.__float__(value)
    return value.item() if getattr(value, "shape", None) == () and hasattr(value, "item") else value


def key_problem(key: Any) -> str:
    """Return why this is not a valid metadata key; empty if it is."""
    if not isinstance(key, str) or not key.strip():
        return "is not a key; a key is text"
    if key[0] in "#$" or key.startswith(OWN_PREFIX) or key == "chroma:document":
        return f"is a reserved key; choose one that does not begin with '#', '$' or {OWN_PREFIX!r}"
    if len(key) > MAX_KEY_LENGTH:
        return f"is a key of {len(key):,} characters, the limit is {MAX_KEY_LENGTH}"
    return text_problem(key, MAX_VALUE_BYTES)


_known_key_problem = lru_cache(maxsize=1_000)(key_problem)
"""The same few keys are in every chunk."""


def value_problem(value: Any) -> str:
    """Return why this is not a valid metadata value; empty if it is."""
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        return _list_problem(value)
    return scalar_problem(value)


def _list_problem(values: Sequence[Any]) -> str:
    if len(values) > MAX_LIST:
        return f"is a list of {len(values):,} values, the limit is {MAX_LIST:,}"
    problem = next(filter(None, map(scalar_problem, values)), "")
    if problem:
        return f"has a value that {problem}"
    kinds = {bool if isinstance(value, bool) else type(value) for value in values}
    if len(kinds) > 1:
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        return f"is a list of several types ({names}); use one type"
    return ""


def scalar_problem(value: Any) -> str:
    """Return why this cannot be stored as a single value; empty if it can."""
    if isinstance(value, str):
        return text_problem(value, MAX_VALUE_BYTES)
    if isinstance(value, float):
        return "" if math.isfinite(value) else f"is {value!r}; omit unknown values"
    if isinstance(value, bool | int):
        return "" if -MAX_INTEGER <= value < MAX_INTEGER else "is a whole number of more than 64 bits; store it as text"
    return f"is of type {type(value).__name__}; use text, a number, a truth value, or a list of one of these types"


def text_problem(text: str, limit: int) -> str:
    """Return why this text cannot be stored; empty if it can. ``limit``: bytes in UTF-8."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        return f"has half a character (a lone surrogate) at position {error.start:,}; remove it"
    return "" if size <= limit else f"has {size:,} bytes, the limit is {limit:,}"
