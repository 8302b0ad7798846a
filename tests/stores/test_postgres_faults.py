"""Faults of the server and of the connection: what is said, what is tried again, and that nothing is half written.

Also standbys: what a store reads from one, and that it holds all that was acknowledged when the primary is killed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from itertools import islice
from typing import Any

import psycopg
import pytest
from psycopg import errors

from ragistry.errors import (
    ConfigError,
    InvalidChunkError,
    StoreConnectionError,
    StoreCorruptError,
    StoreError,
    StoreLockedError,
)
from ragistry.stores.chunk_checks import check_chunks
from ragistry.stores.postgres import PostgresStore, rows
from ragistry.stores.postgres.database import translation
from ragistry.trace import collect, stage
from tests.messages import check_message, refused
from tests.postgres_server import PostgresServer, postgres_server, standby_server
from tests.stores.local_stores import ALL, check_searches, held, put, same, truth_of, version_of
from tests.stores.scripts import start

Opener = Callable[..., PostgresStore]
A, B, C = (version_of(name, 1) for name in ("a.md", "b.md", "c.md"))


SOURCES, ACKNOWLEDGED = 200, 15


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    """A server of its own, which tests may stop."""
    with postgres_server() as running:
        yield running


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[PostgresServer, PostgresServer]]:
    """A primary and its synchronous standby. The last test of the module kills the primary."""
    with postgres_server() as primary, standby_server(primary, synchronous=True) as standby:
        yield primary, standby


# The server is gone


def test_server_that_is_down_is_named_and_no_message_shows_the_password() -> None:
    for url in ("postgresql://someone:secret@127.0.0.1:9/db", "postgresql://someone:secret@[::1", "secret"):
        with refused((StoreConnectionError, ConfigError)) as caught:
            PostgresStore(url)
        assert "secret" not in str(caught.value)


def test_restart_between_two_calls_is_not_noticed(stored: PostgresStore, postgres: PostgresServer) -> None:
    put(stored, A)
    check_searches(stored, truth_of(A))
    for call in (lambda: put(stored, B), lambda: check_searches(stored, truth_of(A, B)), stored.count):
        postgres.stop()
        with refused(StoreConnectionError):
            stored.count()
        with refused(StoreConnectionError):
            put(stored, C)
        postgres.start()
        call()
    check_searches(stored, truth_of(A, B))
    postgres.stop()
    postgres.start()
    put(stored, C)  # over connections of the old server
    check_searches(stored, truth_of(A, B, C))


class Losing:
    """Ends every connection of stores while a function runs, the first times that it is called."""

    def __init__(self, postgres: PostgresServer, losses: int, call: Callable[[Any], Any]) -> None:
        self.postgres, self.losses, self.call = postgres, losses, call
        self.tried = 0

    def __call__(self, connection: Any) -> Any:
        self.tried += 1
        result = self.call(connection)
        if self.tried <= self.losses:
            name = "application_name = 'ragistry'"
            self.postgres.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {name}")
            self.call(connection)
        return result


def test_read_or_write_whose_connection_is_lost_is_tried_again_once(
    stored: PostgresStore, postgres: PostgresServer
) -> None:
    new = version_of("a.md", 2)

    def read(connection: psycopg.Connection[Any]) -> int:
        return len(connection.execute("SELECT FROM chunks").fetchall())

    def replace(write: Any) -> None:
        rows.put_source(write, ("c", "a.md"), check_chunks(new, dimension=8))

    put(stored, A)
    for call, use in ((read, stored._primary.read), (replace, stored._primary.write)):
        losing = Losing(postgres, 9, call)
        with refused(StoreConnectionError):
            use(losing)
        assert losing.tried == 2
        assert same(held(stored), truth_of(A))  # the old state
        losing = Losing(postgres, 1, call)
        result = use(losing)
        assert (result, losing.tried) == (3, 2) if call is read else losing.tried == 2
    assert same(held(stored), truth_of(new))
    check_searches(stored, truth_of(new))


def test_a_write_of_unknown_outcome_is_repeated_only_where_that_does_no_harm(
    stored: PostgresStore, postgres: PostgresServer
) -> None:
    """The server is killed by a trigger that runs when the transaction is committed."""
    put(stored, A)
    schema = stored._primary.schema
    postgres.execute(f'CREATE TABLE "{schema}".kills (left_over integer); INSERT INTO "{schema}".kills VALUES (1)')
    postgres.execute(
        f"""CREATE FUNCTION "{schema}".die() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF nextval('"{schema}".deaths') = 1 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;
        RETURN NULL; END $$"""
    )
    postgres.execute(f'CREATE SEQUENCE "{schema}".deaths')
    postgres.execute(
        f'CREATE CONSTRAINT TRIGGER die AFTER INSERT ON "{schema}".changes DEFERRABLE INITIALLY DEFERRED '
        f'FOR EACH ROW EXECUTE FUNCTION "{schema}".die()'
    )
    put(stored, B)
    assert same(held(stored), truth_of(A, B))
    postgres.execute(f"SELECT setval('\"{schema}\".deaths', 1, false)")
    with refused(StoreConnectionError):
        stored.delete(where={"source_file": "b.md"})
    assert stored.delete(where={"source_file": "b.md"}) == 3


# Other states of the server


@pytest.mark.parametrize("change", ["UPDATE {}.head SET format = 99", "DROP SCHEMA {} CASCADE"])
def test_tables_of_another_version_or_none_are_refused_with_the_remedy(
    stored: PostgresStore, postgres: PostgresServer, change: str
) -> None:
    postgres.execute(change.format(f'"{stored._primary.schema}"'))
    for call in (stored.count, lambda: put(stored, A), lambda: stored.search(ALL)):
        with refused(StoreError):
            call()


def test_tables_of_the_earlier_version_are_migrated_once(
    stored: PostgresStore, postgres: PostgresServer, another: Opener
) -> None:
    put(stored, A)
    schema = f'"{stored._primary.schema}"'
    head = f"{schema}.head"
    postgres.execute(f"ALTER TABLE {head} DROP COLUMN fit")
    postgres.execute(f"DROP TABLE {schema}.unsearchable, {schema}.folders")
    postgres.execute(f"UPDATE {head} SET format = 1")
    assert another().count() == another().count() == stored.count() == 3
    assert (another().unsearchable(), another().folders()) == ([], [])


def test_statement_that_takes_too_long_is_ended(stored: PostgresStore, another: Opener) -> None:
    put(stored, A)
    store = another(timeout=0.2)
    with refused(StoreError):
        store._primary.read(lambda connection: connection.execute("SELECT pg_sleep(20)"))
    assert store.count() == 3


def test_writer_waits_for_another_of_the_same_source_and_then_gives_up(stored: PostgresStore, another: Opener) -> None:
    holds, go_on = threading.Event(), threading.Event()

    def hold(write: Any) -> None:
        rows.put_source(write, ("c", "a.md"), check_chunks(A, dimension=8))
        holds.set()
        assert go_on.wait(60)

    put(stored, B)
    with ThreadPoolExecutor(1) as pool:
        holding = pool.submit(stored._primary.write, hold)
        assert holds.wait(60)
        try:
            store = another(lock_timeout=0.1)
            with refused(StoreLockedError):
                put(store, version_of("a.md", 2))
            put(store, C)
        finally:
            go_on.set()
        holding.result()
    check_searches(stored, truth_of(A, B, C))


def test_all_connections_in_use_is_said(stored: PostgresStore, another: Opener) -> None:
    put(stored, A)
    store = another(connections=1, timeout=0.2)
    scan = store.scan(batch=1)
    next(scan)
    with refused(StoreConnectionError):
        store.count()
    scan.close()  # type: ignore[attr-defined]
    assert store.count() == 3


@pytest.mark.parametrize(
    ("error", "ours"),
    [
        (errors.DiskFull, StoreError), (errors.TooManyConnections, StoreConnectionError),
        (errors.CannotConnectNow, StoreConnectionError), (errors.InvalidPassword, StoreConnectionError),
        (errors.InvalidCatalogName, StoreConnectionError), (errors.InsufficientPrivilege, StoreError),
        (errors.FeatureNotSupported, StoreError), (errors.UndefinedFile, StoreError),
        (errors.DeadlockDetected, StoreLockedError), (errors.DataCorrupted, StoreCorruptError),
        (errors.IndexCorrupted, StoreCorruptError), (errors.ProgramLimitExceeded, InvalidChunkError),
        (errors.InternalError_, StoreError),
    ],
)  # fmt: skip
def test_each_state_of_the_server_has_its_error_and_remedy(error: type[psycopg.Error], ours: type[StoreError]) -> None:
    with refused(ours, "place") as caught:
        raise translation("place", error("what it said"))
    assert type(caught.value) is ours


def test_login_or_database_that_does_not_exist_is_named(postgres: PostgresServer) -> None:
    for url in (postgres.url.replace("postgres@", "nobody_knows@"), f"{postgres.url}_unknown"):
        with refused(StoreConnectionError):
            PostgresStore(url)


def test_a_name_that_no_index_takes_is_refused_and_nothing_is_written(stored: PostgresStore) -> None:
    name = "".join(chr(0x4E00 + n * 7919 % 20_000) for n in range(9_000))
    chunk = A[0]._replace(metadata={**A[0].metadata, "source_file": name})
    with refused(InvalidChunkError):
        stored.replace_source("c", name, [chunk])
    assert stored.count() == 0


# Standbys


@contextmanager
def paused(standby: PostgresServer) -> Iterator[None]:
    """A standby that applies nothing meanwhile."""
    standby.execute("SELECT pg_wal_replay_pause()")
    try:
        yield
    finally:
        standby.execute("SELECT pg_wal_replay_resume()")


def test_standby_is_read_and_refuses_writes_with_the_remedy(pair: tuple[PostgresServer, PostgresServer]) -> None:
    primary, standby = pair
    with closing(PostgresStore(primary.url, collection="read")) as first:
        put(first, A)
        with closing(PostgresStore(primary.url, collection="read", read_url=standby.url)) as reader:
            reader.catch_up()
    with closing(PostgresStore(standby.url, collection="read")) as store:
        check_searches(store, truth_of(A))
        with refused(StoreError):
            put(store, B)
    with refused(StoreError):
        PostgresStore(standby.url, collection="none there")


def test_standby_answers_and_a_writer_still_reads_its_own_writes(pair: tuple[PostgresServer, PostgresServer]) -> None:
    primary, standby = pair
    with ExitStack() as stack:

        def opened(url: str, **settings: Any) -> PostgresStore:
            return stack.enter_context(closing(PostgresStore(url, collection="both", **settings)))

        put(opened(primary.url), A)
        both, reader = opened(primary.url, read_url=standby.url), opened(primary.url, read_url=standby.url)
        reader.catch_up()
        check_searches(reader, truth_of(A))
        with paused(standby):
            put(both, B)
            check_searches(both, truth_of(A, B))
            with collect() as trace, stage("both"):
                check_searches(reader, truth_of(A))
            check_message(trace.stages()[0].degraded, "bytes of changes still to apply")
            with refused(StoreConnectionError):
                reader.catch_up(timeout=0.1)
        reader.catch_up()
        check_searches(reader, truth_of(A, B))
        assert both._current() is both._reading
        alone = opened("postgresql://postgres@127.0.0.1:9/postgres", read_url=standby.url)  # no primary there
        check_searches(alone, truth_of(A, B))
        with refused(StoreConnectionError):
            put(alone, C)


INGEST = """
import sys
from contextlib import closing
from ragistry.errors import StoreConnectionError
from ragistry.stores.postgres import PostgresStore
from tests.stores.local_stores import *
with closing(PostgresStore(sys.argv[1])) as store:
    for n in range(int(sys.argv[2])):
        try:
            put(store, version_of(f"f{n}.md", 1))
        except StoreConnectionError as error:
            print("lost", error, flush=True)
            break
        print("stored", n, flush=True)
"""


def test_nothing_that_was_acknowledged_is_missing_after_a_failover(pair: tuple[PostgresServer, PostgresServer]) -> None:
    """The primary is killed while another process ingests; its synchronous standby takes over, and has all of it."""
    primary, standby = pair
    sources = [version_of(f"f{n}.md", 1) for n in range(SOURCES)]
    with start(INGEST, primary.url, SOURCES) as process:
        assert process.stdout is not None
        told = list(islice(process.stdout, ACKNOWLEDGED))
        primary.kill()
        told += list(process.stdout)
    acknowledged = [int(line.split()[1]) for line in told if line.startswith("stored")]
    assert told[-1].startswith("lost"), told[-1]
    assert ACKNOWLEDGED <= len(acknowledged) < SOURCES
    standby.promote()
    both = f"postgresql://postgres@127.0.0.1:{primary.port},127.0.0.1:{standby.port}/postgres"
    with closing(PostgresStore(f"{both}?target_session_attrs=read-write")) as store:
        found = held(store)
        assert {f"f{n}.md" for n in acknowledged} <= {name for _, name in found}
        assert same(found, {name: chunks for name, chunks in truth_of(*sources).items() if name in found})
        check_searches(store, found, every=7)
        put(store, *sources[:40])
        check_searches(store, held(store), every=31)
