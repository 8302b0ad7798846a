"""Opening ChromaDB: a directory, or a server with a time-out on every call."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ragistry.errors import CollectionNotFoundError, ConfigError, DatabaseNotFoundError
from ragistry.stores import lock
from ragistry.stores.chroma_errors import translated
from ragistry.stores.chroma_files import check_files
from ragistry.utils.forking import brief_lock
from ragistry.utils.urls import split_login

if TYPE_CHECKING:
    from chromadb.api.client import Client

DEFAULT_TENANT = "default_tenant"
DEFAULT_DATABASE = "default_database"
LAST_PORT = 65_535
_WITH_PORT = re.compile(r"(\[[^\]]+\]|[^:\[\]]+):(\d{1,5})")

_opening = brief_lock()  # ChromaDB's table of open directories is not thread-safe


@dataclass(frozen=True, slots=True)
class Connection:
    """An open ChromaDB: its client, how messages call it, its directory where it has one."""

    client: Client
    place: str
    directory: Path | None
    close: Callable[[], None]


def open_directory(path: str | os.PathLike[str], lock_timeout: float) -> Connection:
    """Open a Chroma directory, and make it if it is not there.

    Every spelling of a path gives the one engine that this process has on it. Raises `StoreLockedError` when
    another process has the directory, after ``lock_timeout`` seconds.
    """
    directory = Path(os.path.realpath(Path(path).expanduser()))
    place = f"ChromaDB at {str(directory)!r}"
    with translated(place):
        directory.mkdir(parents=True, exist_ok=True)
        lock.hold(directory, lock_timeout)
        try:
            check_files(directory)
            with _opening:
                client = _persistent_client(str(directory))
        except BaseException:
            lock.release(directory)
            raise

    def close() -> None:
        try:
            with _opening:
                client.close()
        finally:
            lock.release(directory)

    return Connection(client, place, directory, close)


def _persistent_client(directory: str) -> Client:
    import chromadb
    from chromadb.api.shared_system_client import SharedSystemClient

    known = directory in SharedSystemClient._identifier_to_system
    try:
        settings = _embedded_settings().model_copy()
        return cast("Client", chromadb.PersistentClient(directory, settings=settings))
    except BaseException:
        if not known:  # or the next attempt would get the engine that did not start
            SharedSystemClient._identifier_to_system.pop(directory, None)
        raise


def connect(
    host: str,
    port: int,
    *,
    ssl: bool,
    headers: Mapping[str, str] | None,
    tenant: str,
    database: str,
    timeout: float,
) -> Connection:
    """Connect to a ChromaDB server; ``host`` may be a URL, which then says port and scheme, and whom to log in.

    Without a scheme it may end in a port too.

    ``timeout``: seconds, for connecting and for each wait for an answer. Raises `ChromaDBConnectionError`,
    `DatabaseNotFoundError`.
    """
    if not timeout > 0:
        raise ConfigError(f"the time-out for ChromaDB must be above 0 seconds, got {timeout!r}")
    host, login = split_login(host)
    is_url = "://" in host
    if with_port := None if is_url else _WITH_PORT.fullmatch(host):
        host, port = with_port[1], int(with_port[2])
    if not 1 <= port <= LAST_PORT:
        raise ConfigError(f"the port of ChromaDB must be 1 to {LAST_PORT:,}, got {port!r} with the host {host!r}")
    bracketed = f"[{host}]" if ":" in host and not is_url and not host.startswith("[") else host
    place = f"ChromaDB at {host}" if is_url else f"ChromaDB at {'https' if ssl else 'http'}://{bracketed}:{port}"
    settings = _settings(
        chroma_api_impl="chromadb.api.fastapi.FastAPI",
        chroma_server_host=bracketed,
        chroma_server_http_port=port,
        chroma_server_ssl_enabled=host.startswith("https://") if is_url else ssl,
        chroma_server_headers={**({"Authorization": login.header} if login else {}), **(headers or {})},
    )
    try:
        with translated(place):
            client = _timed_client(settings, tenant, database, timeout)
    except CollectionNotFoundError as error:
        raise DatabaseNotFoundError(
            f"{place} has no tenant {tenant!r} with a database {database!r}; correct CHROMA_TENANT and CHROMA_DATABASE "
            "(or `tenant` and `database` in vector_stores.yaml), or make them on the server"
        ) from error
    return Connection(client, place, None, client.close)


@cache
def _embedded_settings() -> Any:
    """Made once: of the 27 ms in which a directory opens, 18 go by with it."""
    return _settings()


def _settings(**values: Any) -> Any:
    from chromadb.config import Settings

    # A file .env in the current folder, somebody else's, would be read as ChromaDB's.
    source: dict[str, Any] = {"_env_file": None}
    return Settings(**source, anonymized_telemetry=False, **values)


def _timed_client(settings: Any, tenant: str, database: str, timeout: float) -> Client:
    """An HTTP client whose sessions have a time-out from their first request on, and are closed with it.

    ChromaDB takes no time-out, asks the server several things in the constructor, and never closes its two sessions.
    """
    from chromadb.api.client import Client
    from chromadb.auth import UserIdentity

    sessions: list[Any] = []

    def limit(owner: Any) -> None:
        session = owner._server._session
        session.timeout = timeout
        sessions.append(session)

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
