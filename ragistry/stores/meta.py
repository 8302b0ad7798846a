"""What a `LocalStore`'s database says of the store as a whole: a value by its name, each with a checksum."""

from __future__ import annotations

import sqlite3

from ragistry.stores.row_checksums import Damaged, row_checksum


def value(connection: sqlite3.Connection, name: str) -> str | None:
    """The value of this name, where there is one."""
    found = connection.execute("SELECT value, checksum FROM meta WHERE key = ?", (name,)).fetchone()
    if found is None:
        return None
    if row_checksum(name, found[0]) != found[1]:
        raise Damaged(f"the record {name!r} is not what was written")
    return str(found[0])


def number(connection: sqlite3.Connection, name: str) -> int:
    """The number of this name, which every store has."""
    found = value(connection, name)
    if found is None:
        raise Damaged(f"the record {name!r} is gone")
    return int(found)


def put(connection: sqlite3.Connection, name: str, new: str | int) -> None:
    """Give a value to a name."""
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", (name, str(new), row_checksum(name, new)))


def raised(connection: sqlite3.Connection, name: str, by: int = 1) -> int:
    """Add to the number of this name, and return what it is now."""
    new = number(connection, name) + by
    put(connection, name, new)
    return new


def forget(connection: sqlite3.Connection, *names: str) -> None:
    """Take names away."""
    connection.executemany("DELETE FROM meta WHERE key = ?", [(name,) for name in names])
