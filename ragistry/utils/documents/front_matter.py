"""The block of metadata at the start of a Markdown file: YAML between ``---``, TOML between ``+++``, or JSON.

`SCALARS` (text, numbers, truth values; dates as ISO 8601) and `LISTS` (of text; a single text is split at commas) are
kept, with keys in any case; ``linkTitle`` replaces a missing title. All other keys, which are for site generators, are
ignored.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Mapping
from datetime import date, datetime, time
from itertools import accumulate
from typing import Any, NamedTuple

SCALARS = ("title", "description", "author", "date", "section", "weight")
LISTS = ("tags", "categories", "keywords")

_LIMIT = 65_536  # characters; YAML and TOML take a second for every 200,000
_ALIASES = 10  # of YAML with merged mappings; twelve lines that merge each other ten times have 10 ** 12 keys
_BRACKETS = re.compile(r"[\[\]{}]")
_DEEPEST = 1_000  # the time of YAML grows with the square of the depth
_MERGE = re.compile(r"<<|merge")  # the second is the name of its tag
_DEEP_KEY = re.compile(r"^(?:[^.\n]*\.){200}", re.MULTILINE)  # of TOML, whose time grows with the square of the depth
_LARGEST = 2**63 - 1  # the largest integer of stores and JSON
_FENCED = re.compile(r"(---|\+\+\+)[ \t]*\n(.*?)^(?:\1|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_LOOKS_MEANT = re.compile(r"(?:---[ \t]*\n[\w-]+:(?:\s|$)|\+\+\+[ \t]*\n|\{\s*\")")


class FrontMatter(NamedTuple):
    """The metadata, the text after the block, and a warning if the block is malformed."""

    metadata: dict[str, Any]
    body: str
    warning: str = ""


def split(text: str) -> FrontMatter:
    """Split the front matter from ``text`` (newlines ``\\n``); malformed front matter stays in the body with a warning.

    A line of dashes at the start is not front matter and causes no warning.
    """
    try:
        fields, end = _parse(text)
        kept = None if fields is None else _kept(fields)
    except _parser_errors() as error:
        return FrontMatter({}, text, f"front matter cannot be read and was kept as text: {_one_line(error)}")
    if kept is not None:
        return FrontMatter(kept, text[end:].lstrip("\n"))
    return FrontMatter({}, text, _why_text(text) if _LOOKS_MEANT.match(text) else "")


def _why_text(text: str) -> str:
    """Return why apparent front matter is read as text."""
    found = _FENCED.match(text)
    if (found and found.end() > _LIMIT) or (text.startswith("{") and len(text) > _LIMIT):
        return (
            f"front matter has no end within its first {_LIMIT:,} characters, the limit, and was kept as text: "
            "shorten it"
        )
    return "front matter has no end and was kept as text: close it with the line that opened it"


def _parse(text: str) -> tuple[Mapping[Any, Any] | None, int]:
    """Parse the fields and the start of the body; None without front matter."""
    if re.match(r'\{\s*"', text):
        try:
            fields, end = json.JSONDecoder().raw_decode(text[:_LIMIT])
        except ValueError:
            if len(text) > _LIMIT:
                return None, 0
            raise
        return fields, end
    found = _FENCED.match(text[:_LIMIT])
    if found is None:
        return None, 0
    fields = _load_yaml(found[2]) if found[1] == "---" else _load_toml(found[2])
    if fields is None and not found[2].strip():
        fields = {}
    return fields if isinstance(fields, Mapping) else None, found.end()


def _load_yaml(block: str) -> Any:
    from ruamel.yaml import YAML
    from ruamel.yaml.events import AliasEvent

    if _depth(block) > _DEEPEST:
        raise RecursionError(f"lists and mappings are nested more than {_DEEPEST:,} deep")
    yaml = YAML(typ="safe", pure=True)
    yaml.composer.warn_double_anchors = False
    if _MERGE.search(block) and sum(isinstance(event, AliasEvent) for event in yaml.parse(block)) > _ALIASES:
        raise ValueError(f"mappings are merged with more than {_ALIASES} aliases, the limit")
    return yaml.load(block)


def _depth(block: str) -> int:
    """Return the maximum number of open brackets, including those in texts."""
    return max(accumulate(1 if bracket in "[{" else -1 for bracket in _BRACKETS.findall(block)), default=0)


def _load_toml(block: str) -> dict[str, Any]:
    if _DEEP_KEY.search(block):
        raise ValueError("a line with more than 200 dots, the limit")
    return tomllib.loads(block)


def _parser_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions of the three parsers.

    All but the first two are of ruamel, for values such as ``!!int ''`` or ``2024-13-45``. An integer of thousands of
    digits raises `ValueError` when it is converted to text.
    """
    from ruamel.yaml.error import YAMLError

    return (YAMLError, RecursionError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


def _one_line(error: Exception) -> str:
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    reason = f"line {mark.line + 2}: {problem}" if mark and problem else f"{type(error).__name__}: {error}"
    return " ".join(reason.split())[:200]


def _kept(fields: Mapping[Any, Any]) -> dict[str, Any]:
    values = {str(key).lower(): value for key, value in fields.items()}
    values["title"] = values.get("title") or values.get("linktitle")
    kept = {key: _scalar(values.get(key)) for key in SCALARS} | {key: _texts(values.get(key)) for key in LISTS}
    for key in ("title", "description"):
        kept[key] = None if kept[key] is None else str(kept[key])
    return {key: value for key, value in kept.items() if value not in (None, "", [])}


def _scalar(value: Any) -> str | int | float | bool | None:
    if isinstance(value, date | datetime | time):
        return value.isoformat()
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, int) and abs(value) > _LARGEST:
        raise ValueError("a number of more than 64 bits")
    return value if isinstance(value, bool | int | float) else None


def _texts(value: Any) -> list[str]:
    values = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else [value]
    texts = (str(scalar) for scalar in map(_scalar, values) if scalar not in (None, ""))
    return list(dict.fromkeys(texts))
