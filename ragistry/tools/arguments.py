"""What a model passes to ``search_library``, checked; where it will not do, one line says what to mend."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ragistry.errors import QueryError
from ragistry.tools.cursor import check_cursor
from ragistry.tools.failures import CallError
from ragistry.utils.limits import check_query
from ragistry.utils.wording import did_you_mean, listed

QUERY_CHARACTERS = 10_000
KNOWN = ("query", "collection", "cursor")


class SearchArguments(NamedTuple):
    """A search that a model asks for."""

    query: str
    collection: str | None = None
    cursor: str | None = None


def parse_arguments(arguments: Any, collections: Sequence[str]) -> SearchArguments:
    """The arguments of a call, a mapping or its JSON. Raises `CallError` for anything else.

    ``collections``: the names that may be searched; one that is not among them is refused like one that nobody knows.
    """
    given = read_object(arguments, KNOWN)
    query = _text(given, "query") or ""
    try:
        check_query(query)
    except QueryError as error:
        raise CallError(str(error)) from error
    if len(query) > QUERY_CHARACTERS:
        raise CallError(f"the query has {len(query):,} characters; {QUERY_CHARACTERS:,} are allowed, make it shorter")
    # A model that has to fill in everything says "" where it means nothing; neither is ever called that.
    collection, cursor = _text(given, "collection") or None, _text(given, "cursor") or None
    if collection is not None and collection not in collections:
        raise CallError(
            f"no collection {collection[:100]!r}{did_you_mean(collection[:100], collections)}; "
            f"there are {listed(collections)}; choose one, or leave it out to search all"
        )
    return SearchArguments(query, collection, None if cursor is None else check_cursor(cursor))


def read_object(arguments: Any, known: Sequence[str]) -> Mapping[str, Any]:
    """Arguments as a mapping with no keys but ``known``. Raises `CallError`."""
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
            raise CallError(f"unknown argument {name!r}{did_you_mean(name, known)}; there are {', '.join(known)}")
    return arguments


def _example(known: Sequence[str]) -> str:
    return f'give {{"{known[0]}": "…"}}'


def _text(given: Mapping[str, Any], name: str) -> str | None:
    value = given.get(name)
    if value is not None and not isinstance(value, str):
        raise CallError(f"{name} must be text, got {repr(value)[:100]}; put it in quotation marks")
    try:
        (value or "").encode()
    except UnicodeEncodeError as error:
        raise CallError(f"{name} has half of a character at {error.start}; send whole characters") from error
    return value
