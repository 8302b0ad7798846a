"""Which pages of a SQLite file belong to which table or index."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

PAGE = 8192


def pages_of(path: Path, table: str | None = None) -> list[range]:
    """The bytes of each page of a table or an index, its root first; None: of every page of the file."""
    if table is None:
        return [range(start, start + PAGE) for start in range(0, path.stat().st_size, PAGE)]
    with closing(sqlite3.connect(path)) as connection:
        [root] = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    content = path.read_bytes()
    found: list[range] = []
    waiting = [root]
    while waiting:
        number = waiting.pop()
        start = (number - 1) * PAGE
        found.append(range(start, start + PAGE))
        page, at = content[start : start + PAGE], 100 if number == 1 else 0
        if page[at] in (2, 5):  # an inner page: after 12 bytes the places of its cells, each with the page below it
            cells = int.from_bytes(page[at + 3 : at + 5])
            places = [int.from_bytes(page[at + 12 + 2 * cell :][:2]) for cell in range(cells)]
            waiting += [int.from_bytes(page[place : place + 4]) for place in places]
            waiting.append(int.from_bytes(page[at + 8 : at + 12]))
    return found
