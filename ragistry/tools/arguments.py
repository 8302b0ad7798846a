"""Check the arguments that a model passes to ``search_library``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from ragistry.errors import QueryError
from ragistry.tools.cursor import check_cursor
from ragistry.tools.failures import CallError
from ragistry.tools.schema import FEWEST_TOKENS, MODEL_OPTIONS
from ragistry.types import SearchRequest, Where
from ragistry.utils.dataclass_json import from_json
from ragistry.utils.limits import check_query
from ragistry.utils.where import normalise
from ragistry.utils.wording import did_you_mean, listed, problem_of

QUERY_CHARACTERS = 10_000
KNOWN = ("query", "collection", *(one.name for one in MODEL_OPTIONS), "max_tokens", "cursor")


@dataclass(frozen=True, slots=True)
class SearchArguments(SearchRequest):
    """The arguments of a search by a model.

    Attributes:
        max_tokens: Maximum size of the answer; None for that of the tool.
        cursor: Where to continue an answer that was cut.
    """

    max_tokens: int | None = field(default=None, metadata={"ge": FEWEST_TOKENS})
    cursor: str | None = None


def parse_arguments(arguments: Any, collections: Sequence[str]) -> SearchArguments:
    """Parse the arguments of a call, a mapping or its JSON.

    Args:
        arguments: The arguments.
        collections: Names that may be searched. Others are refused as if they did not exist.

    Raises:
        CallError: The arguments are invalid.
    """
    values = read_object(arguments, KNOWN)
    query = _text(values, "query") or ""
    try:
        check_query(query)
    except QueryError as error:
        raise CallError(str(error)) from error
    if len(query) > QUERY_CHARACTERS:
        raise CallError(f"the query has {len(query):,} characters, the limit is {QUERY_CHARACTERS:,}; shorten it")
    # A model that must pass every argument may pass "" for none.
    collection, cursor = _text(values, "collection") or None, _text(values, "cursor") or None
    if collection is not None and collection not in collections:
        raise CallError(
            f"no collection {collection[:100]!r}{did_you_mean(collection[:100], collections)}; "
            f"use {listed(collections)}, or leave it out to search all"
        )
    names = (*(one.name for one in MODEL_OPTIONS), "max_tokens")
    options = {name: values[name] for name in names if values.get(name) is not None}
    options |= {"query": query, "collection": collection, "where": _where(values.get("where"))}
    try:
        return from_json(SearchArguments, options | {"cursor": None if cursor is None else check_cursor(cursor)})
    except ValidationError as error:
        wrong = error.errors()[0]
        raise CallError(
            f"{wrong['loc'][0]}: {problem_of(wrong)}, got {repr(wrong['input'])[:100]}; correct it"
        ) from error


def _where(value: Any) -> Where | None:
    """Parse a condition, a mapping or its JSON; an empty one is none."""
    try:
        condition = json.loads(value) if isinstance(value, str) and value.strip() else value
        return normalise(condition) if condition else None
    except (ValueError, RecursionError) as error:  # InvalidFilterError is a ValueError
        raise CallError(f'where: {error}; write a condition such as {{"page": {{"$gte": 3}}}}') from error


def read_object(arguments: Any, known: Sequence[str]) -> Mapping[str, Any]:
    """Return the arguments as a mapping with no keys but ``known``. Raises `CallError`."""
    if isinstance(arguments, str | bytes):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError) as error:
            raise CallError(f"the arguments are not JSON: {str(arguments[:100])!r}; {_example(known)}") from error
    if not isinstance(arguments, Mapping):
        raise CallError(f"the arguments must be an object, got {repr(arguments)[:100]}; {_example(known)}")
    for key in arguments:
        if key not in known:
            name = str(key)[:100]
            raise CallError(f"unknown argument {name!r}{did_you_mean(name, known)}; use {', '.join(known)}")
    return arguments


def _example(known: Sequence[str]) -> str:
    return f'pass {{"{known[0]}": "…"}}'


def _text(values: Mapping[str, Any], name: str) -> str | None:
    value = values.get(name)
    if value is not None and not isinstance(value, str):
        raise CallError(f"{name} must be text, got {repr(value)[:100]}; put it in quotation marks")
    try:
        (value or "").encode()
    except UnicodeEncodeError as error:
        raise CallError(f"{name} has half a character at {error.start}; send whole characters") from error
    return value
