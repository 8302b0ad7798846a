"""Which chunks of a `LocalStore` meet a condition: most of it is settled by what the catalog says of their sources."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from typing import Any

import numpy as np

from ragistry.stores.catalog import Group, Selection
from ragistry.stores.narrowing import Narrowing, narrowed
from ragistry.stores.reading import CHUNK, Keys
from ragistry.stores.row_checksums import Damaged, check_chunk
from ragistry.utils.where import matches


def selected_keys(connection: sqlite3.Connection, selection: Selection) -> Keys:
    """The keys of a selection, ascending."""
    parts = [np.arange(group.first, group.first + group.chunks, dtype=np.int64) for group in selection.whole]
    by_condition: dict[str, list[Group]] = {}
    for group, left in selection.partial:
        by_condition.setdefault(json.dumps(left, sort_keys=True), []).append(group)
    parts += [
        np.fromiter(_matching(connection, groups, json.loads(left)), dtype=np.int64)
        for left, groups in by_condition.items()
    ]
    keys = np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)
    keys.sort()
    return keys


def count_selected(connection: sqlite3.Connection, selection: Selection) -> int:
    """How many chunks are selected."""
    partial = Selection([], selection.partial)
    return sum(group.chunks for group in selection.whole) + len(selected_keys(connection, partial))


def _matching(connection: sqlite3.Connection, groups: list[Group], where: dict[str, Any]) -> Iterator[int]:
    """The keys of chunks that meet a condition, by the columns it names, else by reading those that may meet it."""
    sources = json.dumps([group.id for group in groups])
    narrowing = narrowed(where)
    chosen = f"FROM chunks WHERE source IN (SELECT value FROM json_each(?)) AND {narrowing.sql}"
    values = (sources, *narrowing.values)
    if narrowing.column and (found := _in_index(connection, groups, narrowing)) is not None:
        yield from found
        return
    if narrowing.exact:
        yield from (key for (key,) in connection.execute(f"SELECT key {chosen}", values))
        return
    common = {group.id: group.common for group in groups}
    for row in connection.execute(f"SELECT {CHUNK} {chosen}", values):
        check_chunk(*row)
        key, _, source, _, own, _ = row
        if source in common and matches(where, common[source] | json.loads(own)):
            yield key
    there = connection.execute(
        "SELECT count(*) FROM chunks WHERE source IN (SELECT value FROM json_each(?))", (sources,)
    )
    lacking = sum(group.chunks for group in groups) - there.fetchone()[0]
    if lacking:
        raise Damaged(f"{lacking:,} chunks of the sources in question are gone")


def _in_index(connection: sqlite3.Connection, groups: list[Group], narrowing: Narrowing) -> list[int] | None:
    """The keys that an index finds in these groups; None where it has more of other groups than these have chunks."""
    most = sum(group.chunks for group in groups)
    rows = connection.execute(f"SELECT key FROM chunks WHERE {narrowing.sql} LIMIT ?", (*narrowing.values, most + 1))
    keys = np.fromiter((key for (key,) in rows), dtype=np.int64)
    if len(keys) > most:
        return None
    ranges = np.array(sorted((group.first, group.first + group.chunks) for group in groups), dtype=np.int64)
    places = np.searchsorted(ranges[:, 0], keys, side="right") - 1
    found: list[int] = keys[(places >= 0) & (keys < ranges[places, 1])].tolist()
    return found
