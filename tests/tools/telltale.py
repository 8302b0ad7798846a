"""A technique that tells whatever it can find out, in every way that there is."""

from __future__ import annotations

from typing import Any

from ragistry.errors import EmptyQueryError, ModelConnectionError, QueryError, StoreError
from ragistry.trace import degraded, stage

ERRORS = {"query": QueryError, "empty": EmptyQueryError, "model": ModelConnectionError, "store": StoreError}


class Telltale:
    """``way``: one of `ERRORS`, "bug", or "note"."""

    def __init__(self, config: Any, *, base: Any, library: Any) -> None:
        self.way = config["way"]
        self.base = base
        self.library = library

    def retrieve(self, query: str, *, top_k: int | None = None, where: Any = None) -> Any:
        said = f"{self.library.collections.entries()} in {self.library.collections.path}: http://127.0.0.1:9"
        if self.way == "bug":
            raise ValueError(said)
        if self.way != "note":
            raise ERRORS[self.way](said)
        with stage("inner", found=said):
            degraded(f"{said}; {said} was not searched: {said}")
        return self.base.retrieve(query, top_k=top_k, where=where)
