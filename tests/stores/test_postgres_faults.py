"""Faults of the server and of the connection: what is said, what is tried again, and that nothing is half written."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
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
from ragistry.stores.postgres import PostgresStore, rows
from ragistry.stores.postgres.errors import translation
from ragistry.testing.postgres_server import PostgresServer, postgres_server, standby_server
from ragistry.types import EmbeddedChunk
from ragistry.utils.chunk_checks import check_chunks
from tests.stores.local_stores import ALL, check_searches, held, put, same, truth_of, version_of

A, B, C = (version_of(name, 1) for name in ("a.md", "b.md", "c.md"))


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """One that may be stopped."""
    with postgres_server() as running:
        yield running


def name_of(store: PostgresStore) -> str:
    return store._primary.schema


# The server is gone


def test_a_server_that_is_down_is_named_with_the_remedy() -> None:
    with pytest.raises(StoreConnectionError, match=r"Postgres 127.0.0.1:9/db.*cannot be reached.*host and port"):
        PostgresStore("postgresql://someone:secret@127.0.0.1:9/db")


def test_no_message_shows_the_password() -> None:
    for url in ("postgresql://someone:secret@127.0.0.1:9/db", "postgresql://someone:secret@[::1", "secret"):
        with pytest.raises((StoreConnectionError, ConfigError)) as caught:
            PostgresStore(url)
        assert "secret" not in str(caught.value)


def test_a_restart_between_two_calls_is_not_noticed(server: PostgresServer) -> None:
    with closing(PostgresStore(server.url, collection="restart")) as store:
        put(store, A)
        check_searches(store, truth_of(A))
        for call in (lambda: put(store, B), lambda: check_searches(store, truth_of(A, B)), store.count):
            server.stop()
            with pytest.raises(StoreConnectionError, match="cannot be reached"):
                store.count()
            with pytest.raises(StoreConnectionError, match="cannot be reached"):
                put(store, C)
            server.start()
            call()
        check_searches(store, truth_of(A, B))
        server.stop()
        server.start()
        put(store, C)  # over connections of the old server
        check_searches(store, truth_of(A, B, C))


def terminate(postgres: PostgresServer) -> None:
    """End every connection of a store, in whatever it is doing."""
    postgres.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'ragistry'")


def test_a_connection_that_is_lost_in_a_read_is_read_again_once(
    stored: PostgresStore, postgres: PostgresServer
) -> None:
    put(stored, A)
    tried = []

    def count(connection: psycopg.Connection[Any]) -> int:
        tried.append(1)
        if len(tried) <= losses:
            terminate(postgres)
        return len(connection.execute("SELECT FROM chunks").fetchall())

    losses = 1
    assert (stored._primary.read(count), len(tried)) == (3, 2)
    losses, tried = 9, []
    with pytest.raises(StoreConnectionError, match="ended the connection"):
        stored._primary.read(count)
    assert len(tried) == 2


def test_a_connection_that_is_lost_in_a_write_leaves_the_old_state_or_all_of_the_new(
    stored: PostgresStore, postgres: PostgresServer
) -> None:
    put(stored, A)
    tried = []

    def replace(write: Any) -> None:
        tried.append(1)
        rows.put_source(write, ("c", "a.md"), check_chunks(version_of("a.md", 2), dimension=8))
        if len(tried) <= losses:
            terminate(postgres)

    losses = 9
    with pytest.raises(StoreConnectionError, match="ended the connection"):
        stored._primary.write(replace)
    assert len(tried) == 2
    assert same(held(stored), truth_of(A))
    losses, tried = 1, []
    stored._primary.write(replace)
    assert same(held(stored), truth_of(version_of("a.md", 2)))
    check_searches(stored, truth_of(version_of("a.md", 2)))


def test_a_write_of_unknown_outcome_is_repeated_only_where_that_does_no_harm(
    stored: PostgresStore, postgres: PostgresServer
) -> None:
    """The server is killed by a trigger that runs when the transaction is committed."""
    put(stored, A)
    schema = name_of(stored)
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
    with pytest.raises(StoreConnectionError, match="may be stored or not"):
        stored.delete(where={"source_file": "b.md"})
    assert stored.delete(where={"source_file": "b.md"}) == 3


# Other states of the server


def test_a_standby_is_read_and_refuses_writes_with_the_remedy(stored: PostgresStore, postgres: PostgresServer) -> None:
    put(stored, A)
    with standby_server(postgres) as standby:
        collection = name_of(stored).removeprefix("ragistry_")
        with closing(PostgresStore(standby.url, collection=collection)) as store:
            check_searches(store, truth_of(A))
            with pytest.raises(StoreError, match="read-only standby.*set `url` to the primary"):
                put(store, B)
        with pytest.raises(StoreError, match="read-only standby"):
            PostgresStore(standby.url, collection="none there")


def test_another_version_of_the_tables_is_refused_with_the_remedy(
    stored: PostgresStore, postgres: PostgresServer
) -> None:
    postgres.execute(f'UPDATE "{name_of(stored)}".head SET format = 99')
    for call in (lambda: stored.count(), lambda: put(stored, A), lambda: stored.search(ALL)):
        with pytest.raises(StoreError, match="format 99, this one has 1.*set another `collection`"):
            call()
    with pytest.raises(StoreError, match="format 99"):
        PostgresStore(postgres.url, collection=name_of(stored).removeprefix("ragistry_"))


def test_a_statement_that_takes_too_long_is_ended(stored: PostgresStore, postgres: PostgresServer) -> None:
    put(stored, A)
    collection = name_of(stored).removeprefix("ragistry_")
    with closing(PostgresStore(postgres.url, collection=collection, timeout=0.2)) as store:
        with pytest.raises(StoreError, match="took too long.*raise `timeout`"):
            store._primary.read(lambda connection: connection.execute("SELECT pg_sleep(20)"))
        assert store.count() == 3


def test_a_writer_waits_for_another_of_the_same_source_and_then_gives_up(
    stored: PostgresStore, postgres: PostgresServer
) -> None:
    collection = name_of(stored).removeprefix("ragistry_")
    holds, go_on = threading.Event(), threading.Event()

    def hold(write: Any) -> None:
        rows.put_source(write, ("c", "a.md"), check_chunks(A, dimension=8))
        holds.set()
        assert go_on.wait(30)

    put(stored, B)
    thread = threading.Thread(target=stored._primary.write, args=(hold,))
    thread.start()
    assert holds.wait(30)
    try:
        with closing(PostgresStore(postgres.url, collection=collection, lock_timeout=0.1)) as store:
            with pytest.raises(StoreLockedError, match="others write the same source"):
                put(store, version_of("a.md", 2))
            put(store, C)
    finally:
        go_on.set()
        thread.join()
    check_searches(stored, truth_of(A, B, C))


def test_all_connections_in_use_is_said(postgres: PostgresServer, stored: PostgresStore) -> None:
    put(stored, A)
    collection = name_of(stored).removeprefix("ragistry_")
    with closing(PostgresStore(postgres.url, collection=collection, connections=1, timeout=0.2)) as store:
        scan = store.scan(batch=1)
        next(scan)
        with pytest.raises(StoreConnectionError, match="raise `connections`"):
            store.count()
        scan.close()  # type: ignore[attr-defined]
        assert store.count() == 3


@pytest.mark.parametrize(
    ("error", "ours", "words"),
    [
        (errors.DiskFull, StoreError, "no space left.*free some space"),
        (errors.TooManyConnections, StoreConnectionError, "lower `connections`"),
        (errors.CannotConnectNow, StoreConnectionError, "try again"),
        (errors.InvalidPassword, StoreConnectionError, "PGPASSWORD"),
        (errors.InvalidCatalogName, StoreConnectionError, "createdb"),
        (errors.InsufficientPrivilege, StoreError, "grant"),
        (errors.FeatureNotSupported, StoreError, "install pgvector"),
        (errors.UndefinedFile, StoreError, "install pgvector"),
        (errors.DeadlockDetected, StoreLockedError, "try again"),
        (errors.DataCorrupted, StoreCorruptError, "backup"),
        (errors.IndexCorrupted, StoreCorruptError, "REINDEX"),
        (errors.ProgramLimitExceeded, InvalidChunkError, "shorten"),
        (errors.InternalError_, StoreError, "log of the server"),
    ],
)
def test_each_state_of_the_server_has_its_error_and_remedy(
    error: type[psycopg.Error], ours: type[StoreError], words: str
) -> None:
    with pytest.raises(ours, match=f"place: .*what it said.*{words}|place: .*{words}"):
        raise translation("place", error("what it said"))


def test_a_login_or_database_that_does_not_exist_is_named(postgres: PostgresServer) -> None:
    for url, words in (
        (postgres.url.replace("postgres@", "nobody_knows@"), "refused the login.*PGPASSWORD"),
        (f"{postgres.url}_unknown", "the database does not exist.*createdb"),
    ):
        with pytest.raises(StoreConnectionError, match=words):
            PostgresStore(url)


def test_what_another_program_dropped_is_said(stored: PostgresStore, postgres: PostgresServer) -> None:
    put(stored, A)
    postgres.execute(f'DROP SCHEMA "{name_of(stored)}" CASCADE')
    calls: list[Callable[[], object]] = [stored.count, lambda: put(stored, A), lambda: stored.search(ALL)]
    for call in calls:
        with pytest.raises(StoreError, match="tables are gone.*open the store again"):
            call()


def test_a_name_that_no_index_takes_is_refused_and_nothing_is_written(stored: PostgresStore) -> None:
    name = "".join(chr(0x4E00 + n * 7919 % 20_000) for n in range(9_000))
    chunk = A[0]._replace(metadata={**A[0].metadata, "source_file": name})
    with pytest.raises(InvalidChunkError, match="shorten the name"):
        stored.replace_source("c", name, [chunk])
    assert stored.count() == 0


def test_text_that_postgres_does_not_hold_comes_back(stored: PostgresStore) -> None:
    texts = ["\0", "\1", "\0\1", "\1\2", "\1\1\0\2", "a\0b"]
    for n, text in enumerate(texts):
        metadata = {"k": text, "list": [text], text: 1, "collection": text, "source_file": f"{text}f"}
        chunk = EmbeddedChunk(f"x{text}", {**metadata, "chunk_index": 0, "source_hash": "h"}, ALL)
        stored.replace_source(text, f"{text}f", [chunk])
        for where in ({"k": text}, {"list": {"$contains": text}}, {text: 1, "k": text}, {"collection": text}):
            [found] = stored.scan(where)
            assert (found.content, found.metadata) == (chunk.text, chunk.metadata), n
    assert sorted(texts) == [info.collection for info in stored.sources()]
    for bound in texts:
        expected = sorted(text for text in texts if text > bound)
        for key in ("k", "collection"):
            assert sorted(d.metadata["k"] for d in stored.scan({key: {"$gt": bound}})) == expected
