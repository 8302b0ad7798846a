"""Clients of Chroma servers, one for each database of archives, and parallel calls with a time limit."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future, wait
from contextvars import copy_context
from dataclasses import dataclass, field
from threading import Lock, Thread
from typing import Generic, NamedTuple, TypeVar

from ragistry.config.archives import ArchiveSettings, RagArchiveConfig
from ragistry.errors import ChromaDBConnectionError, CollectionNotFoundError, DatabaseNotFoundError, RagistryError
from ragistry.stores.chroma.client import Connection, connect
from ragistry.utils.urls import split_login

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


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
                kept.connection = connect(
                    place.url, headers=dict(place.headers), tenant=place.tenant, database=place.database,
                    timeout=self._timeout,
                )  # fmt: skip
            return kept.connection
        except CollectionNotFoundError as error:  # no collection was requested yet
            raise DatabaseNotFoundError(
                f"ChromaDB at {place.url} has no tenant {place.tenant!r} with a database {place.database!r}; correct "
                "the archive's tenant and database, or CHROMA_TENANT and CHROMA_DATABASE"
            ) from error
        finally:
            kept.lock.release()

    def close(self) -> None:
        """Close all clients. They cannot be used afterwards."""
        with self._lock:
            kept, self._kept = self._kept, {}
        for one in kept.values():
            if one.connection is not None:
                one.connection.close()


class LateError(RagistryError, TimeoutError):
    """A call did not return in time."""

    __str__ = Exception.__str__


@dataclass(frozen=True, slots=True)
class Outcomes(Generic[Key, Value]):
    """The result of each job, or its error."""

    values: dict[Key, Value] = field(default_factory=dict)
    errors: dict[Key, RagistryError] = field(default_factory=dict)


def concurrently(jobs: Mapping[Key, Callable[[], Value]], seconds: float) -> Outcomes[Key, Value]:
    """Run jobs in parallel, with a time limit for each.

    A job that has not returned in time gets a `LateError`. It continues in its daemon thread, which does not delay the
    end of the process. Errors other than `RagistryError` are raised.

    Args:
        jobs: Functions to call, by a key.
        seconds: The time limit.
    """
    outcomes: Outcomes[Key, Value] = Outcomes()
    futures = {key: _started(job) for key, job in jobs.items()}
    done, _ = wait(futures.values(), timeout=seconds)
    for key, future in futures.items():
        if future not in done:
            outcomes.errors[key] = LateError(f"no answer within {seconds:g} s; try again, or increase the time limit")
            continue
        try:
            outcomes.values[key] = future.result()
        except RagistryError as error:
            outcomes.errors[key] = error
    return outcomes


def in_time(job: Callable[[], Value], seconds: float) -> Value:
    """Return the result of a job.

    Raises:
        LateError: The job has not returned within ``seconds``.
    """
    outcomes = concurrently({"": job}, seconds)
    for error in outcomes.errors.values():
        raise error
    return outcomes.values[""]


def _started(job: Callable[[], Value]) -> Future[Value]:
    """Start the job in its own thread, so that a hanging job does not block others.

    The thread records to the caller's trace. Executors are unsuitable, because their threads delay the end of the
    process.
    """
    future: Future[Value] = Future()

    def run() -> None:
        try:
            future.set_result(job())
        except BaseException as error:  # noqa: BLE001, raised when the future is read
            future.set_exception(error)

    Thread(target=copy_context().run, args=(run,), name="archive", daemon=True).start()
    return future
