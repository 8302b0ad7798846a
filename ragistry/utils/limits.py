"""Check the arguments of a search, once, at the call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from ragistry.errors import EmptyQueryError, InvalidLimitError, QueryError
from ragistry.types import TOP_K_LIMIT
from ragistry.utils.wording import shown


def check_query(query: Any, name: str = "the query") -> str:
    """Return the query. Raises `EmptyQueryError` if it is empty, `QueryError` for invalid text.

    ``name``: its name in messages.
    """
    if not isinstance(query, str):
        raise EmptyQueryError(f"{name} must be text, got {shown(query)}; write at least one word")
    if not query.strip():
        raise EmptyQueryError(f"{name} is empty: {shown(query)}; write at least one word")
    return _whole_characters(query, name)


def check_previous(previous: Any) -> str | None:
    """Return the question before; None for none or a blank text. Raises `QueryError` for invalid text."""
    if previous is None or (isinstance(previous, str) and not previous.strip()):
        return None
    if not isinstance(previous, str):
        raise QueryError(f"previous must be text, got {shown(previous)}; pass the question before, or leave it out")
    return _whole_characters(previous, "previous")


def _whole_characters(text: str, name: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise QueryError(
            f"{name} has half a character at {error.start}: {shown(text)}; send whole characters, in UTF-8"
        ) from error
    return text


QUERIES, QUERIES_BYTES = 1_000, 1_000_000
"""Maximum number and size of the queries of one `search_many`."""


def check_queries(queries: Any) -> list[str]:
    """Return queries as a list, each checked by `check_query`. Raises `QueryError` for too many or too long ones."""
    if isinstance(queries, str | bytes | Mapping) or not isinstance(queries, Iterable):
        raise QueryError(f"queries must be a list of texts, got {shown(queries)}; for one query call `search`")
    texts = list(islice(queries, QUERIES + 1))
    if len(texts) > QUERIES:
        raise QueryError(f"there are more than {QUERIES:,} queries; pass at most {QUERIES:,} in one call")
    size = sum(len(check_query(text, f"query {number}").encode()) for number, text in enumerate(texts, start=1))
    if size > QUERIES_BYTES:
        raise QueryError(f"the queries have {size:,} bytes; pass at most {QUERIES_BYTES:,} in one call")
    return texts


def check_top_k(top_k: Any, limit: int = TOP_K_LIMIT, *, name: str = "top_k") -> int:
    """Return ``top_k``. Raises `InvalidLimitError` unless it is a whole number from 1 to ``limit``.

    ``name``: its name in messages.
    """
    if not _is_whole(top_k) or not 1 <= top_k <= limit:
        raise InvalidLimitError(f"{name} must be a whole number from 1 to {limit:,}, got {shown(top_k)}")
    return int(top_k)


def check_batch(batch: Any) -> None:
    """Raise `InvalidLimitError` unless the batch size of a scan is a whole number, 1 or more."""
    if not _is_whole(batch) or batch < 1:
        raise InvalidLimitError(f"batch must be a whole number, 1 or more, got {shown(batch)}")


def check_ids(ids: Any) -> list[Any]:
    """Return the requested ids as a list; values that are not text are kept and match nothing.

    Raises `QueryError` if it is not a list.
    """
    try:
        if isinstance(ids, str | bytes | Mapping):
            raise TypeError("it would be read as a list of its parts")
        values = list(ids)
        hash(tuple(values))
    except TypeError as error:
        raise QueryError(f"ids must be a list of text, got {shown(ids)}; pass ids as a search returns them") from error
    return values


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
