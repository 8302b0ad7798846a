"""The rule for metadata: which keys and values are allowed, and how those that people set on a source are stored.

A chunk has text, numbers, truth values, and flat lists of one type; it is stored as it is.

A value is text, a whole number, a decimal, true or false, a date, or a list of values of one of these types. Keys and
texts are stored in composed Unicode, because a name of a file on macOS, or its part, is decomposed. Dates are
stored as ISO 8601 text. A date with a time is stored in UTC, in seconds: ``2026-05-01T10:00:00Z``. So the order of the
texts is the order of the times. A time without an offset is taken as UTC.

The metadata of a source are merged in this order, and the first wins: an argument or `set_metadata`, a
``metadata.jsonl`` or ``metadata.csv`` next to the file, the front matter, the properties of the document, and the
modification time of the file.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Any

from ragistry.errors import InvalidMetadataError
from ragistry.utils.ids import composed
from ragistry.utils.wording import shown

SET_KEYS = "set_keys"
"""Key of the list of keys that an argument or `set_metadata` has set; an ingest without metadata keeps their values."""
RESERVED = frozenset({
    SET_KEYS, "archive", "breadcrumb", "chapter", "chunk_index", "collection", "copies", "copy_places", "end",
    "file_path", "has_code", "heading_context", "ingested_at", "language", "line", "line_feeds", "lost",
    "older_version_of", "outside", "page", "page_label", "part", "places", "processed_at", "repository", "section",
    "sent_from", "sentence_after", "sentence_before", "sheet", "source", "source_file", "source_hash", "source_path",
    "source_url", "start", "table_header", "token_count", "type",
})  # fmt: skip
"""Keys that Ragistry sets itself."""
INTERNAL = frozenset({
    SET_KEYS, "breadcrumb", "copies", "copy_places", "end", "line_feeds", "lost", "older_version_of", "outside",
    "places", "sentence_after", "sentence_before", "source_hash", "start", "table_header",
})  # fmt: skip
"""Those of them that are of no use in a condition, so that no message suggests them."""
UNLISTED = frozenset({
    "title", "description", "created", "modified",
    "aliases", "layout", "linkTitle", "nav_order", "permalink", "sidebar_label", "sidebar_position", "slug", "weight",
})  # fmt: skip
"""Keys that describe one source, or its place on a web site; results, lists and filters leave them out if they are from
the source itself."""
MAX_KEYS = 100
"""Maximum number of keys, not counting `RESERVED` ones."""
MAX_KEY_LENGTH = 256
MAX_LIST = 1_000
MAX_VALUES = 4_000
"""Maximum number of values of a chunk, including those in lists: above about 5,400, a Chroma collection breaks."""
MAX_VALUE_BYTES = 1_000_000
MAX_INTEGER = 2**63
MAX_CHARACTERS = 2_000
MAX_ITEMS = 200

_WHOLE = re.compile(r"-?(?:0|[1-9]\d*)")
_DECIMAL = re.compile(r"-?(?:0|[1-9]\d*)\.\d+(?:[eE][+-]?\d+)?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_TIME = re.compile(rf"{_DATE.pattern}[Tt ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?(?:[Zz]|[+-]\d\d(?::?\d\d)?))?", re.ASCII)

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
            if isinstance(value, list) and len(value) > MAX_LIST:
                problem = problem or f"is a list of {len(value):,} values, the limit is {MAX_LIST:,}"
        if problem:
            problems.append(f"metadata {shown(key, 80)} {problem}")
        elif value is not None and value != []:
            kept[key] = value
    if problem := _number_problem(kept):
        problems.append(problem)
    values = sum(len(value) if isinstance(value, list) else 1 for value in kept.values())
    if values > MAX_VALUES:
        problems.append(f"has {values:,} metadata values, the limit is {MAX_VALUES:,}")
    return kept, problems


def _number_problem(metadata: Mapping[Any, Any]) -> str:
    number = len(metadata)
    if number > MAX_KEYS:
        number = len(metadata.keys() - RESERVED)
    return f"has {number:,} metadata keys, the limit is {MAX_KEYS}" if number > MAX_KEYS else ""


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
    if isinstance(value, date):
        return f"is {value.isoformat()}; write this date as text"
    if isinstance(value, Mapping | list | tuple):
        return "is nested; use text, a number, true or false, a date, or a list of one of these types"
    return f"is of type {type(value).__name__}; use text, a number, a truth value, or a list of one of these types"


def text_problem(text: str, limit: int) -> str:
    """Return why this text cannot be stored; empty if it can. ``limit``: bytes in UTF-8."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        return f"has half a character (a lone surrogate) at position {error.start:,}; remove it"
    return "" if size <= limit else f"has {size:,} bytes, the limit is {limit:,}"


def checked_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Check metadata from an argument, and return them as they are stored; None removes a key.

    Raises:
        InvalidMetadataError: A key is reserved, or a key or value is not allowed.
    """
    if not isinstance(metadata, Mapping):
        raise InvalidMetadataError(f"metadata must be a mapping of keys to values, got {shown(metadata, 80)}")
    check_number(metadata)
    found, problems = accepted_metadata(metadata)
    problems += [f"{shown(key, 80)} {problem}" for key, value in found.items() if (problem := _too_long(value))]
    if problems:
        raise InvalidMetadataError(f"metadata cannot be stored: {'; '.join(problems[:10])}")
    return dict.fromkeys(composed(plain(key)) for key in metadata) | found


def check_number(metadata: Mapping[str, Any]) -> None:
    """Raise `InvalidMetadataError` if there are more than `MAX_KEYS`, not counting those that Ragistry sets itself."""
    if problem := _number_problem(metadata):
        raise InvalidMetadataError(f"the source {problem}; leave some out")


def accepted_metadata(
    metadata: Mapping[Any, Any], reserved: Collection[str] = RESERVED
) -> tuple[dict[str, Any], list[str]]:
    """Return the metadata that can be stored, without empty ones, and the problems of the others, one phrase each."""
    found: dict[str, Any] = {}
    problems: list[str] = []
    for name, content in metadata.items():
        key = plain(name)
        key = composed(key) if isinstance(key, str) else key
        value = _normalised(content)
        if isinstance(key, str) and key in reserved:
            problems.append(f"{shown(key, 80)} is a name that Ragistry uses itself; choose another name")
        elif problem := key_problem(key) or value_problem(value):
            problems.append(f"{shown(key, 80)} {problem}")
        elif value is not None and value != []:
            found[key] = value
    return found, problems


def _normalised(value: Any) -> Any:
    """Return a value, valid or not, with dates as text, composed texts, and one type for a list of numbers."""
    if not isinstance(value, list | tuple):
        return _normalised_scalar(value)
    items = [_normalised_scalar(item) for item in value]
    if {type(item) for item in items} == {int, float} and not any(map(scalar_problem, items)):
        return [float(item) for item in items]
    return items


def _normalised_scalar(value: Any) -> Any:
    value = plain(value)
    if not isinstance(value, date | str):
        return value
    return date_text(value) or (composed(value) if isinstance(value, str) else value)


def shortened(metadata: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Cut long texts and lists, because every chunk carries them; return the metadata, and a phrase about the cuts."""
    short = {key: _short(value) for key, value in metadata.items()}
    cut = [key for key, value in short.items() if value != metadata[key]]
    limits = f"{MAX_CHARACTERS:,} characters or {MAX_ITEMS} entries"
    return short, [f"{', '.join(cut)} in the metadata is cut to {limits}"] if cut else []


def _short(value: Any) -> Any:
    if isinstance(value, str):
        return value[:MAX_CHARACTERS]
    return [_short(one) for one in value[:MAX_ITEMS]] if isinstance(value, list) else value


def _too_long(value: Any) -> str:
    items: Sequence[Any] = value if isinstance(value, list) else [value]
    if len(items) > MAX_ITEMS:
        return f"is a list of {len(items):,} values, the limit is {MAX_ITEMS}"
    longest = max((len(item) for item in items if isinstance(item, str)), default=0)
    return f"has {longest:,} characters, the limit is {MAX_CHARACTERS:,}" if longest > MAX_CHARACTERS else ""


def date_text(value: date | str) -> str:
    """Return a date as it is stored; empty for a text that is not a date, and for a time outside the years of UTC."""
    try:
        if isinstance(value, str):
            if _DATE.fullmatch(value):
                return date.fromisoformat(value).isoformat()
            if not _TIME.fullmatch(value):
                return ""
            day, *others = value.upper().replace("T", " ").split()  # a space may precede the offset
            value = datetime.fromisoformat(f"{day} {''.join(others)}")
        if not isinstance(value, datetime):
            return value.isoformat()
        moment = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    except (ValueError, OverflowError):
        return ""
    return moment.replace(microsecond=0, tzinfo=None).isoformat() + "Z"


def parse_value(text: str) -> Any:
    """Parse a value of a command line or a table: whole number, decimal, true or false, date; any other is text."""
    if _WHOLE.fullmatch(text) and not scalar_problem(int(text[:30])):
        return int(text)
    if _DECIMAL.fullmatch(text) and not scalar_problem(float(text)):
        return float(text)
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    return date_text(text) or text


def parse_assignments(words: Sequence[str]) -> dict[str, Any]:
    """Parse words such as ``year=2026`` (see `parse_value`) and ``tags:=["a", "b"]`` (JSON); ``key:=null`` removes.

    Raises:
        InvalidMetadataError: A word is malformed, or breaks the rule for metadata.
    """
    found: dict[str, Any] = {}
    for word in words:
        key, equals, text = word.partition("=")
        is_json, key = key.endswith(":"), key.removesuffix(":")
        if not equals or not key:
            raise InvalidMetadataError(f"{word!r} is not metadata; write key=value, or key:=JSON")
        if key in found:
            raise InvalidMetadataError(f'{key!r} is set twice; for several values write {key}:=\'["one", "two"]\'')
        found[key] = parse_json(text, word) if is_json else parse_value(text)
    return checked_metadata(found)


def parse_json(text: str, what: str) -> Any:
    """Parse JSON. ``what``: name in errors. Raises `InvalidMetadataError`."""
    import json

    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidMetadataError(f"{what!r:.200} is not valid JSON ({error}); correct it") from error


def custom_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a chunk that are not set by Ragistry itself."""
    return {key: value for key, value in metadata.items() if key not in RESERVED and not key.startswith(OWN_PREFIX)}


def listed_metadata(metadata: Mapping[str, Any], set_keys: Collection[str] = ()) -> dict[str, Any]:
    """Return the metadata that results, lists and filters show: without `UNLISTED` ones from the source itself.

    Args:
        metadata: Metadata of a chunk or a source.
        set_keys: Keys that were set on the source; those of a chunk are in its metadata.
    """
    own = metadata.get(SET_KEYS)
    shown_keys = {*set_keys, *(map(str, own) if isinstance(own, list) else ())}
    return {key: value for key, value in custom_metadata(metadata).items() if key in shown_keys or key not in UNLISTED}


def shown_metadata(metadata: Mapping[str, Any]) -> str:
    """Return metadata on one line for display: ``client: acme, tags: a; b``."""
    return ", ".join(f"{key}: {_shown_value(value)}" for key, value in metadata.items())


def _shown_value(value: Any) -> str:
    if isinstance(value, list):
        return "; ".join(map(_shown_value, value))
    return str(value).lower() if isinstance(value, bool) else " ".join(str(value).split())


def shared_metadata(metadatas: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the keys with the same value, of the same type, in all of these metadata."""
    shared = dict(metadatas[0])
    for metadata in metadatas[1:]:
        for key in [key for key, value in shared.items() if key not in metadata or not _same(value, metadata[key])]:
            del shared[key]
    return shared


def _same(one: Any, other: Any) -> bool:
    """Return whether values are equal and of one type: 1 differs from True and 1.0, and 0.0 from -0.0."""
    if type(one) is not type(other) or one != other:
        return False
    return not isinstance(one, list | float) or repr(one) == repr(other)
