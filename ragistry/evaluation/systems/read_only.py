"""What techniques get during a comparison: the reads of its index, or of the library and its collections."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Any, NoReturn

from ragistry.errors import UnsupportedError
from ragistry.protocols import as_ranking_store

STORE = frozenset(
    {"abilities", "search", "search_text", "rank", "get", "vectors", "scan", "count", "sources", "embedder", "fit"}
)
"""It has no ``version``, so that techniques remember no answers and each query costs what it costs alone."""
LIBRARY = frozenset({"collections", "sources", "list_sources", "list_sources_detail", "list_collections", "count"})
COLLECTIONS = frozenset({"entries", "entry", "version"})


class ReadOnly:
    """The named reads of an object. Every other public call of it raises `UnsupportedError`."""

    def __init__(self, of: Any, reads: Collection[str]) -> None:
        # Attributes, because neither protocols nor `as_ranking_store` see what `__getattr__` passes on.
        for name in dir(of):
            if name.startswith("_") or (name == "rank" and not as_ranking_store(of)):
                continue
            if name in reads:
                setattr(self, name, getattr(of, name))
            elif name != "version":
                setattr(self, name, partial(_refused, name))


def read_only_library(library: Any) -> ReadOnly:
    """Return the reads of a library and of its collections."""
    found = ReadOnly(library, LIBRARY)
    found.collections = ReadOnly(library.collections, COLLECTIONS)  # type: ignore[attr-defined]
    return found


def _refused(name: str, *_: Any, **__: Any) -> NoReturn:
    raise UnsupportedError(f"a technique only reads while it is compared; remove its call of {name!r}")
