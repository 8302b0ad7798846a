"""What the methods of a library are given: of the right type, or told by the argument's name, its value, the remedy."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from ragistry.errors import (
    CollectionNotFoundError,
    ConfigError,
    InvalidCollectionNameError,
    QueryError,
    RagistryError,
    SourceError,
    UnknownTechniqueError,
)
from ragistry.library.source import SourceBytes
from ragistry.protocols import Engine
from ragistry.utils.shown import shown


class Rule(NamedTuple):
    """What an argument must be, how that is said, and what to do."""

    fits: Callable[[Any], bool]
    expected: str
    remedy: str
    error: type[RagistryError]


def check_given(**arguments: Any) -> None:
    """Raise what the argument's `RULES` say for the first value of a wrong type."""
    for name, value in arguments.items():
        rule = RULES[name]
        if not rule.fits(value):
            raise rule.error(f"{name} must be {rule.expected}, got {shown(value)}; {rule.remedy}")


def check_optional(**arguments: Any) -> None:
    """The same of those that are not None."""
    check_given(**{name: value for name, value in arguments.items() if value is not None})


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_list(value: Any, fits: Callable[[Any], bool]) -> bool:
    return isinstance(value, Collection) and not isinstance(value, str | bytes | Mapping) and all(map(fits, value))


def _is_path(value: Any) -> bool:
    try:
        return not isinstance(value, bytes) and b"\0" not in os.fsencode(value)
    except (TypeError, UnicodeEncodeError):
        return False


_COLLECTION = Rule(_is_text, "text", "give the name of a collection", CollectionNotFoundError)
_WORDS = Rule(_is_text, "text", "write what people and models are to read", ConfigError)
_FLAG = Rule(_is_flag, "True or False", "give one of the two", ConfigError)
_PATH = "the path of a file or folder as text or a Path, without half characters and NUL"
RULES = {
    "path": Rule(_is_path, _PATH, "check the path", SourceError),
    "paths": Rule(
        lambda paths: _is_list(paths, lambda path: isinstance(path, SourceBytes) or _is_path(path)),
        f"a list, each {_PATH}", "write [path]", SourceError,
    ),
    "changed": Rule(lambda paths: _is_list(paths, _is_path), f"a list, each {_PATH}", "write [path]", SourceError),
    "text": Rule(_is_text, "text", "decode bytes first: data.decode('utf-8')", SourceError),
    "source": Rule(
        lambda name: _is_text(name) and name != "", "text, one character or more", "give the name of a source",
        SourceError,
    ),
    "sources": Rule(
        lambda names: _is_list(names, _is_text), "a list of text", "give names of sources: ['a.md']", SourceError
    ),
    "technique": Rule(_is_text, "text", "give the name of a technique of techniques.yaml", UnknownTechniqueError),
    "progress": Rule(callable, "a function (name, done, of)", "give one, or None", ConfigError),
    "on_piece": Rule(callable, "a function (text)", "give one, or None", ConfigError),
    "engine": Rule(
        lambda engine: isinstance(engine, Engine), "an engine, such as RayEngine()", "leave it out for this process",
        ConfigError,
    ),
    "query": Rule(_is_text, "text", "give at least one word", QueryError),
    **dict.fromkeys(("collection", "from_col", "to_col"), _COLLECTION),
    **dict.fromkeys(("name", "new_name"), _COLLECTION._replace(error=InvalidCollectionNameError)),
    **dict.fromkeys(("description", "display_name"), _WORDS),
    **dict.fromkeys(("prune", "follow_links", "replace", "overwrite", "allow_private"), _FLAG),
}  # fmt: skip
"""By the names of the arguments."""
