"""What every search is asked for must be answerable: checked once, at the call."""

from __future__ import annotations

from typing import Any

from ragistry.errors import EmptyQueryError, InvalidLimitError
from ragistry.types import TOP_K_LIMIT


def check_query(query: Any) -> str:
    """The query itself; raises `EmptyQueryError` where it has nothing to search for."""
    if not isinstance(query, str) or not query.strip():
        raise EmptyQueryError(f"the query is empty: {query!r}; give at least one word")
    return query


def check_top_k(top_k: Any, limit: int = TOP_K_LIMIT) -> int:
    """``top_k`` itself; raises `InvalidLimitError` unless it is a whole number from 1 to ``limit``."""
    if isinstance(top_k, bool) or not isinstance(top_k, int) or not 1 <= top_k <= limit:
        raise InvalidLimitError(f"top_k must be a whole number from 1 to {limit:,}, got {top_k!r}")
    return top_k
