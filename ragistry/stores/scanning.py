"""Every chunk that meets a condition, as the store was when the scan began."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import chain

from ragistry.errors import StoreError
from ragistry.stores.reading import documents, selected_keys
from ragistry.stores.state import State
from ragistry.types import Document, Where


def scanned(state: State, where: Where | None, batch: int) -> Iterator[Document]:
    """The chunks that meet a condition in its normal form, read ``batch`` at a time; the first of them at once.

    As long as it is not at its end or given up, what is deleted meanwhile cannot vanish from the disk.
    """
    with state.read() as (connection, catalog):
        selection = catalog.select(where)
        if sum(group.chunks for group in selection.groups()) <= batch:  # usually those of one source
            return iter(documents(connection, catalog, selected_keys(connection, selection).tolist()))
    batches = _batches(state, where, batch)
    return chain(next(batches, ()), chain.from_iterable(batches))


def _batches(state: State, where: Where | None, batch: int) -> Iterator[list[Document]]:
    pid = os.getpid()
    with state.lasting() as (connection, catalog):
        keys = selected_keys(connection, catalog.select(where)).tolist()
        for start in range(0, len(keys), batch):
            if pid != os.getpid():
                raise StoreError(f"{str(state.folder)!r}: a scan goes on in the process that began it; begin another")
            yield documents(connection, catalog, keys[start : start + batch])
