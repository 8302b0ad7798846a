"""Clients of Chroma servers, one for each database that archives lie in: made on first use, kept, shared by threads."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock
from typing import NamedTuple

from ragistry.errors import ChromaDBConnectionError, CollectionNotFoundError, DatabaseNotFoundError
from ragistry.stores.chroma_client import Connection, connect
from ragistry.stores.forking import brief_lock

DEFAULT_PORT = 8000
"""Where an address has none."""


class Place(NamedTuple):
    """A database of a server, and what is sent to a proxy before it."""

    url: str
    tenant: str
    database: str
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class _Kept:
    lock: Lock = field(default_factory=brief_lock)
    connection: Connection | None = None


class Clients:
    """``timeout``: seconds, for connecting and for each wait for an answer."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._lock = brief_lock()
        self._kept: dict[Place, _Kept] = {}

    def connection(self, place: Place) -> Connection:
        """The one client of a place; it survives a restart of the server.

        Raises `ChromaDBConnectionError`, `DatabaseNotFoundError`.
        """
        with self._lock:
            kept = self._kept.setdefault(place, _Kept())
        if not kept.lock.acquire(timeout=self._timeout):
            raise ChromaDBConnectionError(f"ChromaDB at {place.url} does not answer; check that the server runs")
        try:
            if kept.connection is None:
                kept.connection = _connected(place, self._timeout)
            return kept.connection
        finally:
            kept.lock.release()

    def close(self) -> None:
        """Close every client; none of them can be used afterwards."""
        with self._lock:
            kept, self._kept = self._kept, {}
        for one in kept.values():
            if one.connection is not None:
                one.connection.close()


def _connected(place: Place, timeout: float) -> Connection:
    try:
        return connect(
            place.url, DEFAULT_PORT, ssl=False, headers=dict(place.headers), tenant=place.tenant,
            database=place.database, timeout=timeout,
        )  # fmt: skip
    except CollectionNotFoundError as error:  # no collection was asked for yet
        raise DatabaseNotFoundError(
            f"ChromaDB at {place.url} has no tenant {place.tenant!r} with a database {place.database!r}; correct the "
            "archive's tenant and database, or CHROMA_TENANT and CHROMA_DATABASE"
        ) from error
