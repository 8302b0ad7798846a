"""Clients of Chroma servers, one for each database of archives, shared by threads."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock
from typing import NamedTuple

from ragistry.config.archives import ArchiveSettings, RagArchiveConfig
from ragistry.errors import ChromaDBConnectionError, CollectionNotFoundError, DatabaseNotFoundError
from ragistry.stores.chroma.client import Connection, connect
from ragistry.utils.urls import split_login


class RemotePlace(NamedTuple):
    """A database on a server.

    Attributes:
        url: Address of the server, without login.
        tenant: Tenant of the database.
        database: Name of the database.
        headers: Headers of every request.
    """

    url: str
    tenant: str
    database: str
    headers: tuple[tuple[str, str], ...] = ()


def place_of(archive: RagArchiveConfig, settings: ArchiveSettings) -> RemotePlace:
    """Return the place of an archive.

    A login in the address becomes a header, unless the archive's headers have one.
    """
    url, login = split_login(archive.chromadb_url or settings.chromadb_url)
    headers = dict(archive.headers)
    if login is not None and "authorization" not in map(str.lower, headers):
        headers["Authorization"] = login.header
    return RemotePlace(
        url, archive.tenant or settings.tenant, archive.database or settings.database, tuple(sorted(headers.items()))
    )


@dataclass(slots=True)
class _Kept:
    lock: Lock = field(default_factory=Lock)
    connection: Connection | None = None


class Clients:
    """Creates clients on first use and keeps them.

    Args:
        timeout: Maximum seconds for connecting, and for each wait for a response.
    """

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._lock = Lock()
        self._kept: dict[RemotePlace, _Kept] = {}

    def connection(self, place: RemotePlace) -> Connection:
        """Return the client of a place; it survives a restart of the server.

        Raises:
            ChromaDBConnectionError: The server cannot be reached.
            DatabaseNotFoundError: The server lacks the database.
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
        """Close all clients. They cannot be used afterwards."""
        with self._lock:
            kept, self._kept = self._kept, {}
        for one in kept.values():
            if one.connection is not None:
                one.connection.close()


def _connected(place: RemotePlace, timeout: float) -> Connection:
    try:
        return connect(
            place.url, headers=dict(place.headers), tenant=place.tenant, database=place.database, timeout=timeout
        )
    except CollectionNotFoundError as error:  # no collection was requested yet
        raise DatabaseNotFoundError(
            f"ChromaDB at {place.url} has no tenant {place.tenant!r} with a database {place.database!r}; correct the "
            "archive's tenant and database, or CHROMA_TENANT and CHROMA_DATABASE"
        ) from error
