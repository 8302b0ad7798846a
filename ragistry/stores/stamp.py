"""The mark that tells whether an index was made from this database, as it is now.

Each time that an index has heard, folder and database are given the same random mark. A database that was put back
from a backup, or copied from elsewhere, has another one, however much was written to it since.
"""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path
from typing import Any
from uuid import uuid4

from ragistry.errors import StoreCorruptError
from ragistry.stores import meta
from ragistry.stores.catalog import generation_of, state_of

FILE = "made-from.json"
OUTDATED = "made from vectors of another embedder, or of an older format"


class OutdatedIndexError(StoreCorruptError):
    """The index is of another format than this program makes: no damage, it is made again when it is next needed."""


def _content(file: str) -> bytes:
    """At most a page, at a third of the time that a file object takes: every search by words reads it."""
    descriptor = os.open(file, os.O_RDONLY)
    try:
        return os.read(descriptor, 4096)
    finally:
        os.close(descriptor)


class Stamp:
    """The mark of one index: in a file of its folder, and under ``name`` in the database.

    ``of_vectors``: the index is of no use once all vectors are those of another embedder.
    """

    def __init__(self, folder: Path, name: str, *, of_vectors: bool) -> None:
        self._name = name
        self._of_vectors = of_vectors
        self._file = str(folder / FILE)
        self._seen: tuple[bytes, dict[str, Any]] = (b"", {})

    def mismatch(self, connection: sqlite3.Connection) -> str:
        """Why the index is none of this database; empty where it is."""
        stamp = self._read()
        if not stamp:
            return "without a record of the database that it was made from"
        now = self._now(connection)
        if stamp.get("generation") != now["generation"]:
            return OUTDATED
        # What was being applied when the process ended is applied again, unless the database went on without it.
        halfway = (stamp.get("before"), stamp.get("state")) == (now["mark"], now["state"])
        return "" if stamp.get("mark") == now["mark"] or halfway else "made from another state of the database"

    def is_of(self, mark: str | None) -> bool:
        """Whether the folder has this mark."""
        return mark is not None and mark == self._read().get("mark")

    @property
    def forgotten(self) -> int:
        """How many chunks the index was told to forget since it was made."""
        return int(self._read().get("forgotten", 0))

    def write(self, folder: Path, connection: sqlite3.Connection, forgotten: int = 0) -> str:
        """Write into a folder what is about to be applied; the mark that the database is to get afterwards."""
        now = self._now(connection)
        stamp = {**now, "mark": uuid4().hex, "before": now["mark"], "forgotten": forgotten}
        (folder / FILE).write_text(json.dumps(stamp), encoding="utf-8")
        return str(stamp["mark"])

    def confirm(self, connection: sqlite3.Connection, mark: str) -> None:
        """Give the mark to the database."""
        meta.put(connection, self._name, mark)

    def _read(self) -> dict[str, Any]:
        """What the folder says of itself; nothing where it says nothing that can be read."""
        try:
            content = _content(self._file)
            seen, stamp = self._seen
            if content != seen:
                stamp = json.loads(content)
                self._seen = content, stamp
        except (OSError, ValueError, RecursionError):
            return {}
        return stamp if isinstance(stamp, dict) and isinstance(stamp.get("forgotten"), int) else {}

    def _now(self, connection: sqlite3.Connection) -> dict[str, Any]:
        return {
            "mark": meta.value(connection, self._name) or "",
            "state": state_of(connection),
            "generation": generation_of(connection) if self._of_vectors else 0,
        }
