"""The rule for metadata that people set on a source: which keys and values are allowed, and how values are stored.

A value is text, a whole number, a decimal, true or false, a date, or a list of values of one of these types. Keys and
texts are stored in composed Unicode, because a name of a file on macOS, or its part, is decomposed. Dates are
stored as ISO 8601 text. A date with a time is stored in UTC, in seconds: ``2026-05-01T10:00:00Z``. So the order of the
texts is the order of the times. A time without an offset is taken as UTC.

The metadata of a source are merged in this order, and the first wins: an argument or `set_metadata`, a
``metadata.jsonl`` or ``metadata.csv`` next to the file, the front matter, the properties of the document, and the
modification time of the file.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

from ragistry.errors import InvalidMetadataError
from ragistry.utils.ids import composed
from ragistry.utils.metadata import OWN_PREFIX, key_problem, plain, scalar_problem
from ragistry.utils.wording import shown

SET_KEYS = "set_keys"
"""Key of the list of keys that an argument or `set_metadata` has set; an ingest without metadata keeps their values."""
RESERVED = frozenset({
    SET_KEYS, "archive", "breadcrumb", "chapter", "chunk_index", "collection", "copies", "copy_places", "end",
    "file_path", "has_code", "heading_context", "ingested_at", "language", "line", "line_feeds", "lost", "outside",
    "page", "page_label", "part", "places", "processed_at", "repository", "section", "sent_from", "sentence_after",
    "sentence_before", "sheet", "source", "source_file", "source_hash", "source_path", "source_url", "start",
    "table_header", "token_count", "type",
})  # fmt: skip
"""Keys that Ragistry sets itself."""
INTERNAL = frozenset({
    SET_KEYS, "breadcrumb", "copies", "copy_places", "end", "line_feeds", "lost", "outside", "places",
    "sentence_after", "sentence_before", "source_hash", "start", "table_header",
})  # fmt: skip
"""Those of them that are of no use in a condition, so that no message suggests them."""
UNLISTED = frozenset({
    "title", "description", "created", "modified",
    "aliases", "layout", "linkTitle", "nav_order", "permalink", "sidebar_label", "sidebar_position", "slug", "weight",
})  # fmt: skip
"""Keys that describe one source, or its place on a web site; results, lists and filters leave them out if they are from
the source itself."""
MAX_KEYS = 64
MAX_CHARACTERS = 2_000
MAX_ITEMS = 200

_WHOLE = re.compile(r"-?(?:0|[1-9]\d*)")
_DECIMAL = re.compile(r"-?(?:0|[1-9]\d*)\.\d+(?:[eE][+-]?\d+)?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_TIME = re.compile(rf"{_DATE.pattern}[Tt ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?(?:[Zz]|[+-]\d\d(?::?\d\d)?))?", re.ASCII)


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
    number = sum(key not in RESERVED for key in metadata)
    if number > MAX_KEYS:
        raise InvalidMetadataError(f"there are {number:,} metadata keys, the limit is {MAX_KEYS}; leave some out")


def accepted_metadata(
    metadata: Mapping[Any, Any], reserved: Collection[str] = RESERVED
) -> tuple[dict[str, Any], list[str]]:
    """Return the metadata that can be stored, without empty ones, and the problems of the others, one phrase each."""
    found: dict[str, Any] = {}
    problems: list[str] = []
    for name, content in metadata.items():
        key = plain(name)
        key = composed(key) if isinstance(key, str) else key
        value, problem = _stored_value(content)
        if isinstance(key, str) and key in reserved:
            problems.append(f"{shown(key, 80)} is a name that Ragistry uses itself; choose another name")
        elif faulty := key_problem(key) or problem:
            problems.append(f"{shown(key, 80)} {faulty}")
        elif value is not None and value != []:
            found[key] = value
    return found, problems


def _stored_value(value: Any) -> tuple[Any, str]:
    """Return a value as it is stored, and why it cannot be; the reason is empty if it can."""
    if value is None:
        return None, ""
    if isinstance(value, list | tuple):
        pairs = [_stored_scalar(item) for item in value]
        problem = next((problem for _, problem in pairs if problem), "")
        return _of_one_type([item for item, _ in pairs]) if not problem else (None, f"has a value that {problem}")
    return _stored_scalar(value)


def _stored_scalar(value: Any) -> tuple[Any, str]:
    value = plain(value)
    if isinstance(value, date | str) and (text := date_text(value)):
        return text, ""
    if isinstance(value, date):
        return None, f"is {value.isoformat()}, which has no equivalent in UTC; correct the date"
    if isinstance(value, Mapping | list | tuple):
        return None, "is nested; use text, a number, true or false, a date, or a list of one of these types"
    problem = scalar_problem(value)
    return composed(value) if isinstance(value, str) and not problem else value, problem


def _of_one_type(values: list[Any]) -> tuple[list[Any], str]:
    kinds = {type(value) for value in values}
    if kinds == {int, float}:
        return [float(value) for value in values], ""
    if len(kinds) > 1:
        return [], f"is a list of several types ({', '.join(sorted(kind.__name__ for kind in kinds))}); use one type"
    return values, ""


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
