"""Work in this process, one item at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ragistry.errors import RagistryError
from ragistry.protocols import Item, Result


class LocalEngine:
    """Run work in this process, one item at a time, when its result is needed. Meets `Engine`."""

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result | RagistryError]:
        for item in items:
            try:
                result: Result | RagistryError = work(item)
            except RagistryError as error:
                result = error
            yield result
