"""A Postgres database: its tables, connections, transactions and errors."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from threading import BoundedSemaphore
from typing import Any, TypeVar
from uuid import uuid4

import psycopg
from psycopg import conninfo
from psycopg.pq import TransactionStatus

from ragistry.errors import (
    ConfigError,
    EmbeddingMismatchError,
    InvalidChunkError,
    StoreConnectionError,
    StoreCorruptError,
    StoreError,
    StoreLockedError,
)
from ragistry.stores.records import half_character_error
from ragistry.utils.wording import one_line

FORMAT = 4
UNSEARCHABLE = """
CREATE TABLE unsearchable (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    collection text NOT NULL,
    file text NOT NULL,                      -- the place, else the name
    source_file text NOT NULL,
    place text NOT NULL,                     -- path or address
    folder text NOT NULL,
    kind text NOT NULL, reason text NOT NULL,
    at double precision NOT NULL
);
CREATE INDEX unsearchable_by_file ON unsearchable USING hash (file);  -- which may be too long for other indexes
CREATE TABLE folders (
    collection text COLLATE "C" NOT NULL,
    folder text COLLATE "C" NOT NULL,
    counts text NOT NULL,                    -- number of files that were left out, by reason
    exclude text NOT NULL                    -- patterns
);
"""
"""The tables that format 4 has added; a later format changes them by a step."""
STEPS: Mapping[int, str] = {
    1: "SELECT",  # chunks have ``line_feeds`` in their metadata; earlier ones have none
    2: "ALTER TABLE head ADD COLUMN fit text",
    3: UNSEARCHABLE,
}
"""From each format that can be migrated, the statements that lead to the next one. All steps are one transaction."""
CONNECT_SECONDS = 5
ATTEMPTS = 4
"""Number of attempts of a write that conflicts with other writers."""
KEPT_CHANGES = 10_000
"""Number of recorded changes; a word index older than these is rebuilt."""
LONGEST_NAME = 63
T = TypeVar("T")
Connection = psycopg.Connection[Any]
Ours = type[StoreError]

SCHEMA = f"""
CREATE EXTENSION IF NOT EXISTS vector SCHEMA public;
CREATE SCHEMA IF NOT EXISTS {{schema}};
CREATE SEQUENCE keys;                        -- of chunks; a key is never used twice
CREATE TABLE head (
    one integer PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    format integer NOT NULL DEFAULT {FORMAT},
    number bigint NOT NULL DEFAULT 0,        -- of the last change
    mark text NOT NULL,                      -- of the last change
    generation integer NOT NULL DEFAULT 0,   -- names the table of vectors; grows when all are replaced
    chunks bigint NOT NULL DEFAULT 0,
    dimension integer NOT NULL DEFAULT 0,    -- numbers in a vector; 0 before the first
    embedder text,                           -- fingerprint, JSON
    next_embedder text,                      -- the one whose vectors are in the table of the next generation
    fit text                                 -- how well the embedder knows the texts, JSON
) WITH (fillfactor = 10);
CREATE TABLE changes (                       -- the numbers follow the order of commits: see `Database.write`
    number bigint PRIMARY KEY,
    mark text NOT NULL,                      -- random: distinguishes this history from another, as after a restore
    added bigint[] NOT NULL,
    removed bigint[] NOT NULL
);
CREATE TABLE sources (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    collection text COLLATE "C" NOT NULL,
    source_file text COLLATE "C" NOT NULL,
    chunks integer NOT NULL,
    whole boolean NOT NULL,                  -- exactly the chunks that were ingested
    info text NOT NULL,                      -- metadata for `sources()`, JSON
    UNIQUE (collection, source_file)
);
CREATE TABLE chunks (
    key bigint PRIMARY KEY,
    id text COLLATE "C" NOT NULL UNIQUE,
    source bigint,                           -- NULL: belongs to no source
    collection text COLLATE "C",             -- of the metadata, if it is text; so is the next
    source_file text COLLATE "C",
    hash bytea NOT NULL,                     -- of the text
    metadata text NOT NULL,                  -- the other metadata, JSON
    facets jsonb NOT NULL,                   -- the same, for conditions
    text text NOT NULL
);
CREATE INDEX chunks_by_source ON chunks (source);
CREATE INDEX chunks_by_collection ON chunks (collection);
CREATE INDEX chunks_by_file ON chunks (source_file);
CREATE INDEX chunks_by_hash ON chunks (hash);
CREATE INDEX chunks_by_facet ON chunks USING gin (facets jsonb_path_ops);
{UNSEARCHABLE}
"""

HEAD = """
SELECT format, number, mark, generation, chunks, dimension, embedder, next_embedder, fit,
       coalesce((SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('nearest_' || generation)), false),
       CASE WHEN pg_is_in_recovery()
       THEN coalesce(pg_wal_lsn_diff(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()), 0)::bigint ELSE 0 END
FROM head
"""

SESSION = """
SELECT set_config('search_path', quote_ident(%(schema)s) || ', ' || quote_ident(coalesce((
           SELECT nspname FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace
           WHERE extname = 'vector'), 'public')), false),
       set_config('statement_timeout', %(timeout)s, false), set_config('lock_timeout', %(lock_timeout)s, false),
       set_config('jit', 'off', false), set_config('hnsw.ef_search', '200', false),
       set_config('hnsw.iterative_scan', 'relaxed_order', false),
       CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', false) END
"""


@dataclass(frozen=True, slots=True)
class Head:
    """The state of the store in one snapshot.

    ``has_index``: vectors can be searched by HNSW. ``behind``: bytes that a standby has received but not applied.
    """

    number: int
    mark: str
    generation: int
    chunks: int
    dimension: int
    embedder: str | None
    next_embedder: str | None
    fit: str | None
    has_index: bool
    behind: int

    @property
    def vectors(self) -> str:
        """Name of the table of vectors."""
        return f"vectors_{self.generation}"

    @property
    def next_vectors(self) -> str:
        """Name of the next table of vectors; it exists while ``next_embedder`` is set."""
        return f"vectors_{self.generation + 1}"


@dataclass(slots=True)
class Transaction:
    """One write. ``added``, ``removed``: keys of chunks, for followers of the changes."""

    connection: Connection
    head: Head
    added: list[int] = field(default_factory=list)
    removed: list[int] = field(default_factory=list)


class Database:
    """Connections to one schema of a database, opened on demand and kept. Thread-safe.

    ``timeout``, ``lock_timeout``: seconds for a statement, and for waiting on locks. A connection lost between two
    calls is replaced silently; a read that loses its connection is repeated once.
    """

    def __init__(self, url: str, schema: str, *, timeout: float, lock_timeout: float, connections: int) -> None:
        try:
            known = conninfo.conninfo_to_dict(url)
        except psycopg.Error as error:
            raise ConfigError(
                "the url of the Postgres store cannot be read; write 'postgresql://user@host:5432/database'"
            ) from error
        if len(schema.encode()) > LONGEST_NAME or "\0" in schema:
            raise ConfigError(f"the schema {schema!r} is longer than {LONGEST_NAME} bytes; shorten `collection`")
        self.schema = schema
        self.place = f"Postgres {known.get('host', 'localhost')}:{known.get('port', 5432)}/{known.get('dbname', '')}"
        self.place = f"{self.place}, schema {schema!r}"
        defaults: dict[str, Any] = {
            "connect_timeout": CONNECT_SECONDS, "application_name": "ragistry", "client_encoding": "utf8",
            "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3,
            "tcp_user_timeout": int(timeout * 1000),
        }  # fmt: skip
        self._conninfo = conninfo.make_conninfo(url, **{k: v for k, v in defaults.items() if k not in known})
        self._session = {
            "schema": schema, "timeout": str(int(timeout * 1000)), "lock_timeout": str(int(lock_timeout * 1000)),
        }  # fmt: skip
        self._wait = timeout
        self._free = BoundedSemaphore(connections)
        self._idle: list[Connection] = []
        self._pid = os.getpid()
        self.closed = False

    # Connections

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        self.check_usable()
        if not self._free.acquire(timeout=self._wait):
            raise StoreConnectionError(
                f"{self.place}: all connections are in use for {self._wait:g} s; raise `connections` of the store"
            )
        connection = None
        try:
            try:
                connection = self._idle.pop()
            except IndexError:
                connection = psycopg.connect(self._conninfo, autocommit=True)
                connection.execute(SESSION, self._session)
            yield connection
        except BaseException as error:
            if isinstance(error, Exception) and is_lost(error):
                self._close_idle()  # the server was restarted: the other connections are lost too
            raise
        finally:
            if connection is not None:
                self._give_back(connection)
            self._free.release()

    def _give_back(self, connection: Connection) -> None:
        with suppress(psycopg.Error):
            if connection.info.transaction_status != TransactionStatus.IDLE:
                connection.execute("ROLLBACK")
            if not self.closed and connection.info.transaction_status == TransactionStatus.IDLE:
                self._idle.append(connection)
                return
        connection.close()

    def check_usable(self) -> None:
        """Raise `StoreError` if the store is closed, or was opened before this process was forked."""
        if self.closed:
            raise StoreError(f"{self.place}: the store is closed; open it again")
        if self._pid != os.getpid():
            raise StoreError(
                f"{self.place}: opened by process {self._pid}; a process forked from it has to open it again"
            )

    def _close_idle(self) -> None:
        while self._idle:
            with suppress(IndexError):
                self._idle.pop().close()

    def close(self) -> None:
        """Close every unused connection; the others close when they are returned."""
        self.closed = True
        if self._pid == os.getpid():
            self._close_idle()

    # Transactions

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """Provide a connection with one snapshot of the store."""
        with translated(self.place), self._snapshot() as connection:
            yield connection

    @contextmanager
    def _snapshot(self) -> Iterator[Connection]:
        with self._connection() as connection:
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield connection
            connection.execute("COMMIT")

    def read(self, work: Callable[[Connection], T]) -> T:
        """Run ``work`` in one snapshot of the store; again if the connection is lost or a table is dropped."""
        try:
            with self._snapshot() as connection:
                return work(connection)
        except psycopg.Error as error:
            if not is_lost(error) and not isinstance(error, psycopg.errors.UndefinedTable):
                raise translation(self.place, error) from error
        with self.snapshot() as connection:
            return work(connection)

    def write(self, work: Callable[[Transaction], T], *, alone: bool = False, repeatable: bool = True) -> tuple[T, int]:
        """Run ``work`` in one transaction.

        Changes are numbered while the row `head` is locked, from just before the commit until its end. So numbers
        follow the order in which changes become visible: a reader who sees a number sees all smaller ones.

        Args:
            work: Writes within the transaction.
            alone: Exclude other writes meanwhile.
            repeatable: The work is idempotent, so it is repeated if the connection is lost during the commit and the
                outcome is unknown.

        Returns:
            The result of ``work``, and the number of the change.
        """
        lost = False
        for attempt in range(1, ATTEMPTS + 1):
            committing = False
            try:
                with self._connection() as connection:
                    connection.execute("BEGIN")
                    lock(connection, self.schema, shared=not alone)
                    transaction = Transaction(connection, read_head(connection, self.place))
                    result = work(transaction)
                    number = _log(transaction)
                    committing = True
                    connection.execute("COMMIT")
                return result, number
            except psycopg.Error as error:
                if is_lost(error) and not lost and (repeatable or not committing):
                    lost = True
                elif is_lost(error) and committing:
                    raise StoreConnectionError(
                        f"{self.place}: the connection was lost while a write was being confirmed; check whether it is "
                        "stored, and write again if it is not"
                    ) from error
                elif not is_conflict(error) or attempt == ATTEMPTS:
                    raise translation(self.place, error) from error
        raise AssertionError("unreachable")

    @contextmanager
    def outside(self) -> Iterator[Connection]:
        """Provide a connection without transaction and time limit, to build an index."""
        with translated(self.place), self._connection() as connection:
            try:
                connection.execute("SET statement_timeout = 0")
                yield connection
            finally:
                if not connection.broken:
                    connection.execute(SESSION, self._session)

    # The schema

    def open(self) -> None:
        """Create the tables if they are missing, or migrate those of an earlier version; else raise `StoreError`."""
        try:
            self._migrate()
            self.read(lambda connection: read_head(connection, self.place))
        except StoreError as error:
            if not isinstance(error.__cause__, psycopg.errors.UndefinedTable | psycopg.errors.InvalidSchemaName):
                raise
            self._create()

    def _migrate(self) -> None:
        if self.read(_format) not in STEPS:
            return
        with translated(self.place), self._connection() as connection, connection.transaction():
            lock(connection, self.schema, shared=False)
            while (found := _format(connection)) in STEPS:  # another process may have been faster
                connection.execute(STEPS[found])
                connection.execute("UPDATE head SET format = %s", (found + 1,))

    def _create(self) -> None:
        with translated(self.place), self._connection() as connection, connection.transaction():
            lock(connection, self.schema, shared=False)
            if connection.execute("SELECT to_regclass('head')").fetchone() != (None,):
                return  # another process was faster
            if connection.execute("SHOW server_encoding").fetchone() != ("UTF8",):
                raise StoreError(f"{self.place}: the database is not in UTF-8; create one with `createdb -E UTF8`")
            lock(connection, "vector")  # two schemas cannot create the extension at the same time
            quoted = psycopg.sql.Identifier(self.schema).as_string(connection)
            connection.execute(SCHEMA.format(schema=quoted))
            connection.execute("INSERT INTO head (mark) VALUES (%s)", (uuid4().hex,))
            connection.execute("INSERT INTO changes SELECT number, mark, '{}', '{}' FROM head")
            create_vectors(connection, "vectors_0")


def create_vectors(connection: Connection, table: str) -> None:
    """Create a table of vectors; rows stay on their page, so that comparing all vectors reads one file."""
    connection.execute(f"CREATE TABLE {table} (key bigint PRIMARY KEY, vector vector NOT NULL)")
    connection.execute(f"ALTER TABLE {table} SET (toast_tuple_target = 8160)")


def _format(connection: Connection) -> int:
    return int((connection.execute("SELECT format FROM head").fetchone() or (0,))[0])


def read_head(connection: Connection, place: str) -> Head:
    """Read the state of the store. Raises `StoreError` for tables of another version."""
    found, *fields = connection.execute(HEAD).fetchone() or (0, 0, "", 0, 0, 0, None, None, None, False, 0)
    if found > FORMAT:
        raise StoreError(
            f"{place}: written by a newer version of Ragistry (format {found}, this one has {FORMAT}); update "
            "Ragistry, or set another `collection` in documents.yaml"
        )
    if found != FORMAT:
        raise StoreError(
            f"{place}: written by an earlier version of Ragistry (format {found}, this one has {FORMAT}); open it once "
            "on the primary server with the right to change tables, or ingest into another `collection`"
        )
    return Head(*fields)


def lock(connection: Connection, *names: str, shared: bool = False) -> None:
    """Take a named lock until the transaction ends."""
    digest = blake2b("\0".join(names).encode(), digest_size=8).digest()
    function = "pg_advisory_xact_lock_shared" if shared else "pg_advisory_xact_lock"
    connection.execute(f"SELECT {function}(%s)", (int.from_bytes(digest, signed=True),))


def _log(transaction: Transaction) -> int:
    """Number and record the change."""
    connection, mark = transaction.connection, uuid4().hex
    [number] = connection.execute(
        "UPDATE head SET number = number + 1, mark = %s, chunks = chunks + %s RETURNING number",
        (mark, len(transaction.added) - len(transaction.removed)),
    ).fetchone() or (0,)
    connection.execute(
        "INSERT INTO changes VALUES (%s, %s, %s, %s)", (number, mark, transaction.added, transaction.removed)
    )
    connection.execute("DELETE FROM changes WHERE number = %s", (number - KEPT_CHANGES,))
    return int(number)


RUNNING = "check that the server runs, and the host and port in the store's url"
AGAIN = "try again; acknowledged writes are stored"

BY_STATE: dict[str, tuple[Ours, str, str]] = {
    "08": (StoreConnectionError, "the connection failed", RUNNING),
    "28": (StoreConnectionError, "the server refused the login", "check the user in url, and PGPASSWORD or ~/.pgpass"),
    "3D000": (StoreConnectionError, "the database does not exist", "create it with `createdb`, or change url"),
    "3F": (StoreError, "the tables are missing", "another program dropped them; open the store again"),
    "42P01": (StoreError, "the tables are missing", "another program dropped them; open the store again"),
    "42501": (StoreError, "the user lacks a permission", "ask the administrator to grant it"),
    "53100": (StoreError, "no space left on the server", "the last write was undone; free some space and try again"),
    "53200": (StoreError, "the server is out of memory", AGAIN),
    "53300": (StoreConnectionError, "the server has no connection left", "lower `connections`, or raise its limit"),
    "57014": (StoreError, "the server took too long", "raise `timeout` of the store"),
    "57P03": (StoreConnectionError, "the server is starting or stopping", AGAIN),
    "57P": (StoreConnectionError, "the server ended the connection", AGAIN),
    "55P03": (StoreLockedError, "another writer changes the same source", "try again when it is done"),
    "40": (StoreLockedError, "another writer changes the same chunks", "try again when it is done"),
    "25006": (
        StoreError,
        "the server is a read-only standby",
        "set `url` to the primary, `read_url` to the standby",
    ),
    "58P01": (StoreError, "a file of the server is missing", "install pgvector on the server"),
    "0A000": (StoreError, "the server lacks an extension", "install pgvector on the server"),
    "54": (InvalidChunkError, "a name is too long for an index", "shorten the name of the collection or source"),
    "XX001": (StoreCorruptError, "the database is damaged", "restore a backup"),
    "XX002": (StoreCorruptError, "an index of the database is damaged", "run REINDEX"),
    "22000": (EmbeddingMismatchError, "the vector does not fit", "use the embedder that the store was filled with"),
}
"""What is wrong and the remedy, by the longest matching prefix of the SQLSTATE."""

WITHOUT_STATE = (
    ("authentication failed|no password|role .* does not exist|no pg_hba.conf entry", "28"),
    ("database .* does not exist", "3D000"),
    ("starting up|shutting down|recovery mode|not yet accepting", "57P03"),
    ("too many clients|remaining connection slots", "53300"),
)
"""Errors of refused connections that libpq reports only as text, as regular expressions, with their SQLSTATE."""


@contextmanager
def translated(place: str) -> Iterator[None]:
    """Translate errors of psycopg in the block to `StoreError`; ``place``: the database."""
    try:
        yield
    except (psycopg.Error, UnicodeError) as error:
        raise translation(place, error) from error


def translation(place: str, error: Exception) -> StoreError:
    """Return the `StoreError` for an error of psycopg."""
    if isinstance(error, UnicodeEncodeError):
        return half_character_error(error)
    text = one_line(str(error)).rstrip(".")
    state = getattr(error, "sqlstate", None) or next((s for words, s in WITHOUT_STATE if re.search(words, text)), "")
    for length in (5, 3, 2):
        if found := BY_STATE.get(state[:length]):
            ours, what, remedy = found
            return ours(f"{place}: {what} ({text}); {remedy}")
    if is_lost(error):
        return StoreConnectionError(f"{place}: cannot be reached ({text}); {RUNNING}")
    return StoreError(f"{place}: {text}; see the log of the server (SQLSTATE {state or 'none'})")


def is_lost(error: Exception) -> bool:
    """Return whether the connection is lost, so that a new one may work."""
    state = getattr(error, "sqlstate", None) or ""
    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) and (
        not state or state.startswith(("08", "57P"))
    )


def is_conflict(error: Exception) -> bool:
    """Return whether the transaction was undone because of other writers."""
    return getattr(error, "sqlstate", None) in ("40001", "40P01")
