"""Open ChromaDB: a directory, or a server with a time-out for every call, and a collection in either."""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragistry.config.archives import checked_url
from ragistry.errors import CollectionNotFoundError, ConfigError, DatabaseNotFoundError, StoreCorruptError, StoreError
from ragistry.stores.chroma.errors import RESTORE, translated
from ragistry.stores.lock import WriterLock
from ragistry.transport import adopt_client
from ragistry.utils.urls import split_login

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.client import Client
    from chromadb.api.models.Collection import Collection

INDEX = {"space": "cosine", "max_neighbors": 48, "ef_construction": 200, "ef_search": 200}
"""The HNSW graph. With ChromaDB's default of 16 neighbours, 500 equal vectors (a footer on every page) hid up to half
of 500 others; with 48 neighbours 97 % of them are found, and building takes 20 % longer."""
SAMPLES = 4
HEADER = struct.Struct("<i4Q")
"""The start of an index's header.bin: version, offset, capacity, number of vectors, bytes per vector."""

_opening = threading.Lock()  # ChromaDB's table of open directories is not thread-safe


@dataclass(frozen=True, slots=True)
class Connection:
    """An open ChromaDB: its client, its name in messages, and, for a directory, the lock that this process holds."""

    client: Client
    place: str
    close: Callable[[], None]
    lock: WriterLock | None = None


def open_directory(path: str | os.PathLike[str], lock_timeout: float) -> Connection:
    """Open or create a Chroma directory. All spellings of a path share one engine.

    Raises `StoreLockedError` after ``lock_timeout`` seconds if another process has it open: ChromaDB would let both
    write and lose vectors of both.
    """
    directory = Path(os.path.realpath(Path(path).expanduser()))
    place = f"ChromaDB at {str(directory)!r}"
    with translated(place):
        directory.mkdir(parents=True, exist_ok=True)
    lock = WriterLock(directory / "ragistry.lock", place, wait=lock_timeout)
    lock.hold()
    try:
        _check_files(directory, place)
        with translated(place), _opening:
            client = _persistent_client(str(directory))
    except BaseException:
        lock.release()
        raise

    def close() -> None:
        try:
            with _opening:
                client.close()
        finally:
            lock.release()

    return Connection(client, place, close, lock)


def _check_files(directory: Path, place: str) -> None:
    """Raise `StoreCorruptError` for damaged files that ChromaDB would open: a lost database would seem empty, and a
    truncated index would crash the process.
    """
    headers = list(directory.glob("*/header.bin"))
    if headers and not (directory / "chroma.sqlite3").exists():
        raise StoreCorruptError(f"{place} has lost its chroma.sqlite3; {RESTORE}")
    for header in headers:
        data = header.with_name("data_level0.bin")
        try:
            *_, vectors, size = HEADER.unpack_from(header.read_bytes())
            is_whole = data.stat().st_size >= vectors * size
        except (OSError, struct.error):
            is_whole = False
        if not is_whole:
            raise StoreCorruptError(f"{place}: the index in {str(header.parent)!r} is damaged; {RESTORE}")


def _persistent_client(directory: str) -> Any:
    import chromadb
    from chromadb.api.shared_system_client import SharedSystemClient

    known = directory in SharedSystemClient._identifier_to_system
    try:
        return chromadb.PersistentClient(directory, settings=_settings())
    except BaseException:
        if not known:  # else the next attempt would get the engine that failed to start
            SharedSystemClient._identifier_to_system.pop(directory, None)
        raise


def connect(url: str, *, headers: Mapping[str, str] | None, tenant: str, database: str, timeout: float) -> Connection:
    """Connect to a ChromaDB server at ``http://[USER:PASSWORD@]HOST:PORT``.

    ``timeout``: seconds, for connecting and for each wait for an answer. Raises `ChromaDBConnectionError`,
    `DatabaseNotFoundError`.
    """
    if not timeout > 0:
        raise ConfigError(f"the time-out for ChromaDB must be above 0 seconds, got {timeout!r}")
    try:
        address, login = split_login(checked_url(url))
    except ValueError as error:
        raise ConfigError(f"the host of ChromaDB: {error}") from error
    place = f"ChromaDB at {address}"
    settings = _settings(
        chroma_api_impl="chromadb.api.fastapi.FastAPI",
        chroma_server_host=address,
        chroma_server_http_port=8000,  # required, and not used for an address with a scheme
        chroma_server_ssl_enabled=address.startswith("https://"),
        chroma_server_headers={**({"Authorization": login.header} if login else {}), **(headers or {})},
    )
    try:
        with translated(place):
            client = _timed_client(settings, tenant, database, timeout)
    except CollectionNotFoundError as error:
        raise DatabaseNotFoundError(
            f"{place} has no tenant {tenant!r} with a database {database!r}; correct CHROMA_TENANT and CHROMA_DATABASE "
            "(or `tenant` and `database` in vector_stores.yaml), or create them on the server"
        ) from error
    return Connection(client, place, client.close)


def _settings(**values: Any) -> Any:
    from chromadb.config import Settings

    # ChromaDB would read a file .env in the current folder, which may belong to another program.
    source: dict[str, Any] = {"_env_file": None}
    return Settings(**source, anonymized_telemetry=False, **values)


def _timed_client(settings: Any, tenant: str, database: str, timeout: float) -> Client:
    """Build an HTTP client whose sessions have a time-out from the first request on, and are closed with it.

    ChromaDB has no time-out setting, sends requests in the constructor, and never closes its two sessions.
    """
    from chromadb.api.client import Client
    from chromadb.auth import UserIdentity

    sessions: list[Any] = []

    def limit(owner: Any) -> None:
        sessions.append(owner._server._session)
        adopt_client(sessions[-1], owner._server._api_url, timeout)

    def close_sessions() -> None:
        for session in sessions:
            session.close()

    class TimedClient(Client):
        def get_user_identity(self) -> UserIdentity:
            limit(self)
            return super().get_user_identity()

        def _validate_tenant_database(self, tenant: str, database: str) -> None:
            limit(self._admin_client)
            super()._validate_tenant_database(tenant, database)

        def close(self) -> None:
            close_sessions()
            super().close()

    try:
        return TimedClient(tenant=tenant, database=database, settings=settings)
    except BaseException:
        close_sessions()
        raise


def open_collection(client: ClientAPI, name: str, place: str) -> Collection:
    """Open the collection, or create it. Raises `StoreError` if its space is not cosine."""
    configuration: Any = {"hnsw": dict(INDEX)}
    rows = client.get_or_create_collection(name, configuration=configuration, embedding_function=None)
    if (space := space_of(rows)) != "cosine":
        raise StoreError(
            f"{place}: its space is {space!r}, expected 'cosine'; use another collection name, "
            "or delete the collection and ingest again"
        )
    return rows


def space_of(rows: Collection) -> Any:
    """Return the space of a collection's distances; None if it records none."""
    index: Any = rows.configuration_json.get("hnsw") or rows.configuration_json.get("spann") or {}
    return index.get("space")


def check_index(rows: Collection, place: str) -> None:
    """Raise `StoreCorruptError` if most of a dozen vectors, old and new, do not find themselves.

    An index that lost its files returns wrong rows or none, without an error. A valid one may miss a few.
    """
    count = rows.count()
    found = tried = 0
    for offset in sorted({0, count // 2, max(count - SAMPLES, 0)} if count else ()):
        embeddings = rows.get(limit=SAMPLES, offset=offset, include=["embeddings"])["embeddings"]
        nearest = rows.query(query_embeddings=embeddings, n_results=1, include=["distances"])["distances"] or ()
        tried += len(nearest)
        found += sum(bool(distances) and abs(distances[0]) < 1e-3 for distances in nearest)
    if found < tried / 4:
        raise StoreCorruptError(
            f"{place}: only {found} of {tried} vectors find themselves, the index is damaged; {RESTORE}"
        )
