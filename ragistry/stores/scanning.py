"""Every chunk that meets a condition, as the store was when the scan began."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing

from ragistry.errors import StoreError
from ragistry.stores.reading import documents
from ragistry.stores.selecting import selected_keys
from ragistry.stores.state import State
from ragistry.types import Document, Where


def scanned(state: State, where: Where | None, batch: int) -> Iterator[Document]:
    """The chunks that meet a condition in its normal form, read ``batch`` at a time; the first of them at once.

    As long as it is not at its end or given up, what is deleted meanwhile cannot vanish from the disk. Raises
    `StoreError` at the first step after the store was closed.
    """
    with state.read() as (connection, catalog):
        selection = catalog.select(where)
        if sum(group.chunks for group in selection.groups()) <= batch:  # usually those of one source
            only = documents(connection, catalog, selected_keys(connection, selection).tolist())
            return _while_open(state, only)
    batches = _batches(state, where, batch)
    return _joined(state, next(batches, []), batches)


def _joined(state: State, first: Sequence[Document], rest: Generator[Sequence[Document]]) -> Iterator[Document]:
    with closing(rest):  # and with it the connection, also where what was raised is kept
        yield from _while_open(state, first)
        for batch in rest:
            yield from _while_open(state, batch)


def _while_open(state: State, batch: Sequence[Document]) -> Iterator[Document]:
    for document in batch:
        if state.closed:
            raise StoreError(f"{str(state.folder)!r}: the store is closed; open it again")
        yield document


def _batches(state: State, where: Where | None, batch: int) -> Generator[Sequence[Document]]:
    pid = os.getpid()
    with state.lasting() as (connection, catalog):
        keys = selected_keys(connection, catalog.select(where)).tolist()
        for start in range(0, len(keys), batch):
            if pid != os.getpid():
                raise StoreError(f"{str(state.folder)!r}: a scan goes on in the process that began it; begin another")
            yield documents(connection, catalog, keys[start : start + batch])
