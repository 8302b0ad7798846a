"""`PostgresStore`: a library in a Postgres database, for many writers and readers on many machines."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import psycopg
from pydantic import BaseModel, ConfigDict, Field

from ragistry.config.numbers import Number, Whole
from ragistry.errors import StoreConnectionError, StoreError, UnsupportedError
from ragistry.stores.chunk_checks import as_list, check_chunks, check_source
from ragistry.stores.local.index import Stale
from ragistry.stores.local.words import WordView
from ragistry.stores.postgres import embedding, rows
from ragistry.stores.postgres.database import Connection, Database, Head, Transaction, create_vectors, read_head
from ragistry.stores.postgres.embedding import record_embedder
from ragistry.stores.postgres.vectors import build_index, nearest
from ragistry.stores.postgres.where import EscapedRows, condition
from ragistry.stores.postgres.words import ChangePosition, FollowingWords
from ragistry.stores.records import (
    Keys,
    Scores,
    best_documents,
    check_deletion,
    check_embedder,
    in_order,
    recorded_embedder,
    recorded_fit,
)
from ragistry.stores.unsearchable import Rows, UnsearchableRows, put
from ragistry.stores.vectors import query_vector as unit_query
from ragistry.text.languages import canonical_language
from ragistry.trace import degraded
from ragistry.types import (
    Chunk,
    Document,
    EmbeddedChunk,
    EmbedderFingerprint,
    Fit,
    Repair,
    ScoreKind,
    SourceInfo,
    Unsearchable,
    Where,
)
from ragistry.utils.limits import check_batch, check_ids, check_query, check_top_k

if TYPE_CHECKING:
    from ragistry.protocols import Vectors

log = logging.getLogger(__name__)
T = TypeVar("T")

EXACT_BELOW = 10_000
POLL_SECONDS = 0.02


class PostgresStore(UnsearchableRows):
    """Chunks, vectors and metadata in one schema of a Postgres database with pgvector. Thread-safe.

    ``url``: address of the database for libpq; the password may come from ``PGPASSWORD`` or ``~/.pgpass``.
    ``read_url``: a standby for searches and reads, used once it has this store's last write. ``collection``: names the
    schema, ``ragistry_NAME``, so that several libraries can share a database. ``folder``: for the word index; None for
    a temporary one. ``timeout``, ``lock_timeout``: seconds for a statement, and to wait for writers of the same source.
    ``connections``: maximum number to each server. Up to ``exact_below`` matching chunks are all compared; above that,
    HNSW preselects. ``language``: language of the words (`text.analysis`).

    It keeps these promises of the local store:

    - Acknowledged writes survive, as far as the server guarantees; ``synchronous_commit = off`` is overruled.
    - Old or new, never between: a source is replaced in one transaction.
    - Indexes can be rebuilt: the word index from the database; HNSW by the server (``REINDEX``).
    - Many writers, many readers: writers of different sources wait for each other only to number their commits.
    - Bad input gets one line.

    A source is embedded before it is written, so it is found by nothing until then.

    It does not keep: a damaged database is salvaged (restore a backup), and deleting erases: a deleted text stays in
    dead rows until the server vacuums, and in its write-ahead log and backups.
    """

    abilities = frozenset({"text", "reembed", "fit", "unsearchable"})
    METADATA = "info"

    class Config(BaseModel):
        model_config = ConfigDict(extra="forbid")

        url: str = Field(repr=False, description="address of the database: postgresql://user@host:5432/database")
        read_url: str | None = Field(default=None, repr=False, description="address of a standby for searches")
        timeout: Number = Field(default=30.0, gt=0, description="seconds for one statement")
        lock_timeout: Number = Field(default=10.0, gt=0, description="seconds to wait for writers of the same source")
        connections: Whole = Field(default=10, ge=1, description="maximum number of connections to each server")
        exact_below: Whole = Field(
            default=EXACT_BELOW, ge=0, description="number of chunks up to which all are compared"
        )

    def __init__(
        self,
        url: str,
        *,
        read_url: str | None = None,
        collection: str = "documents",
        folder: str | os.PathLike[str] | None = None,
        language: str = "english",
        timeout: float = 30.0,
        lock_timeout: float = 10.0,
        connections: int = 10,
        exact_below: int = EXACT_BELOW,
    ) -> None:
        canonical_language(language)
        schema = f"ragistry_{collection}"

        def database(address: str) -> Database:
            return Database(address, schema, timeout=timeout, lock_timeout=lock_timeout, connections=connections)

        self._primary = database(url)
        self._reading = self._primary if read_url is None else database(read_url)
        self._folder, self._language, self._exact_below = folder, language, exact_below
        self._temporary: TemporaryDirectory[str] | None = None
        self._words: FollowingWords | None = None
        self._making = Lock()
        self._embedder: EmbedderFingerprint | None = None
        self._own = 0  # the number of the last change that this store made
        self._replayed = 0  # the last change seen on the standby
        try:
            if not self._has_tables():
                self._primary.open()
        except BaseException:
            self.close()
            raise

    def _has_tables(self) -> bool:
        """Return whether the standby has the store, so that the primary is not needed."""
        if self._reading is self._primary:
            return False
        try:
            self._reading.read(lambda connection: read_head(connection, self._reading.place))
        except StoreError:
            return False
        return True

    def __repr__(self) -> str:
        return f"<PostgresStore: {self._primary.place}>"

    # Writing

    def _write(self, work: Callable[[Transaction], T], *, alone: bool = False, repeatable: bool = True) -> T:
        result, number = self._primary.write(work, alone=alone, repeatable=repeatable)
        self._own = max(self._own, number)
        return result

    def add_documents(self, chunks: Sequence[EmbeddedChunk], *, ids: Sequence[str] | None = None) -> int:
        chunks = as_list("chunks", chunks)

        def add(write: Transaction) -> int:
            self._check_own_embedder(write)
            checked = check_chunks(chunks, ids, dimension=write.head.dimension or None)
            if checked.ids:
                rows.add_chunks(write, checked)
            return len(checked.ids)

        return self._write(add)

    def replace_source(
        self,
        collection: str,
        source_file: str,
        chunks: Sequence[EmbeddedChunk],
        *,
        unsearchable: Sequence[Unsearchable] = (),
    ) -> None:
        chunks = as_list("chunks", chunks)

        def replace(write: Transaction) -> None:
            if chunks:
                self._check_own_embedder(write)
            checked = check_chunks(chunks, dimension=write.head.dimension or None)
            check_source(collection, source_file, chunks)
            rows.put_source(write, (collection, source_file), checked)
            put(EscapedRows(write.connection), unsearchable)

        self._write(replace)

    def _change(self, work: Callable[[Rows], None], *, erases: bool) -> None:  # noqa: ARG002, the server erases
        self._write(lambda write: work(EscapedRows(write.connection)))

    def _check_own_embedder(self, write: Transaction) -> None:
        """Check the recorded embedder: another process may have recorded another one, or cleared the store."""
        if self._embedder is not None and not check_embedder(write.head, self._embedder):
            record_embedder(write, self._embedder)
            write.head = read_head(write.connection, self._primary.place)

    def move_source(self, source_file: str, from_collection: str, to_collection: str) -> int:
        check_source(to_collection, source_file, ())
        name = (from_collection, source_file)
        return self._write(lambda write: rows.move(write, name, to_collection), repeatable=False)

    def move_collection(self, from_collection: str, to_collection: str) -> int:
        check_source(to_collection, "any", ())
        return self._write(lambda write: rows.move_collection(write, from_collection, to_collection), repeatable=False)

    def delete(self, *, ids: Sequence[str] | None = None, where: Where | None = None) -> int:
        known, normalised = check_deletion(ids, where)
        which = condition(normalised)

        def delete(write: Transaction) -> int:
            if where is None:
                keys = list(rows.keys_of(write.connection, known).values())
            else:
                keys = rows.selected_keys(write.connection, which).tolist()
            return rows.remove(write, keys)

        return self._write(delete, repeatable=False)

    def clear_collection(self) -> None:
        def clear(write: Transaction) -> None:
            connection, head = write.connection, write.head
            connection.execute("TRUNCATE chunks, sources, changes, unsearchable, folders")
            connection.execute(f"DROP TABLE {head.vectors}")
            connection.execute(f"DROP TABLE IF EXISTS {head.next_vectors}")
            create_vectors(connection, head.next_vectors)
            connection.execute(
                "UPDATE head SET generation = generation + 1, chunks = 0, dimension = 0, embedder = NULL, "
                "next_embedder = NULL, fit = NULL"
            )

        self._write(clear, alone=True)
        self._embedder = None

    def use_embedder(self, fingerprint: EmbedderFingerprint) -> None:
        if not self._read(lambda connection: check_embedder(self._head(connection), fingerprint)):
            self._write(lambda write: record_embedder(write, fingerprint))
        self._embedder = fingerprint

    def writing(self) -> AbstractContextManager[None]:
        """Do not lock: all processes may write."""
        return nullcontext()

    def flush(self) -> None:
        """Update the word index, and build the vector index if there are enough vectors."""
        build_index(self._primary, self._exact_below)
        self._bring_up()

    def catch_up(self, timeout: float = 30.0) -> None:
        """Wait until searches include every write acknowledged before this call.

        Raises `StoreConnectionError` if the standby still lags after ``timeout`` seconds.
        """
        self._own = max(self._own, self._primary.read(self._number))
        end = time.monotonic() + timeout
        while not self._has_caught_up():
            if time.monotonic() > end:
                raise StoreConnectionError(
                    f"{self._reading.place}: the standby is behind by {self._own - self._replayed:,} changes after "
                    f"{timeout:g} s; check its replication"
                )
            time.sleep(POLL_SECONDS)
        self._bring_up()

    def _has_caught_up(self) -> bool:
        try:
            return self._current() is self._reading
        except StoreError as error:
            if isinstance(error.__cause__, psycopg.errors.UndefinedTable | psycopg.errors.InvalidSchemaName):
                return False  # the standby does not have the tables yet
            raise

    # Searching

    def search(self, query_vector: Sequence[float], top_k: int = 10, *, where: Where | None = None) -> list[Document]:
        check_top_k(top_k)
        which = condition(where)

        def find(connection: Connection) -> list[Document]:
            head = self._head(connection)
            vector = unit_query(query_vector, head.dimension or None)
            self._report(head)
            if not head.chunks:
                return []
            found = nearest(connection, head, vector, top_k, which, self._exact_below)
            return _ranked(connection, found, top_k, "dense", "cosine")

        return self._read(find)

    def search_text(
        self, query: str, top_k: int = 10, *, where: Where | None = None, every: bool = False
    ) -> list[Document]:
        check_query(query)
        check_top_k(top_k)
        which = None if where is None else condition(where)
        words = self._word_index()

        def found(connection: Connection, view: WordView) -> list[Document]:
            best = words.found(connection, view, query, top_k, which, every=every)
            return _ranked(connection, best, top_k, "bm25", "bm25")

        return self._by_words(words, found)

    def unknown_words(self, query: str, *, where: Where | None = None) -> list[str]:
        check_query(query)
        which = None if where is None else condition(where)
        words = self._word_index()
        return self._by_words(words, lambda connection, view: words.lacking(connection, view, query, which))

    def _by_words(self, words: FollowingWords, find: Callable[[Connection, WordView], list[T]]) -> list[T]:
        """Search the index of words when it has followed the database."""

        def best(connection: Connection, behind: str = "") -> list[T]:
            head = self._head(connection)
            view = words.view(connection, ChangePosition(head))
            lag = head.number - view.stamp.version
            if lag and not behind:
                raise Stale("")
            found = find(connection, view)
            if lag:
                degraded(f"the last {lag:,} changes are not searched yet: {behind}")
            self._report(head)
            return found

        def brought_up(connection: Connection) -> list[T]:
            words.bring_up_in(connection, reason)
            return best(connection)

        try:
            return self._read(best)
        except Stale as stale:
            reason = str(stale) if stale.broken else ""
        try:
            with self._following(words):
                return self._read(brought_up)
        except StoreError as error:
            behind = str(error)
            try:
                return self._read(lambda connection: best(connection, behind))
            except Stale:
                raise error from error.__cause__

    def _bring_up(self) -> None:
        words = self._word_index()
        with self._following(words):
            self._read(words.bring_up_in)

    @contextmanager
    def _following(self, words: FollowingWords) -> Iterator[None]:
        """Lock the index for updates; snapshots must begin inside the block, so that the index is never ahead."""
        with words.source.lock.writing():
            self._own = max(self._own, words.reached())  # other processes may have used a server that is ahead
            yield

    def _word_index(self) -> FollowingWords:
        """Return the word index, created on first use: writers and vector searches do not need it."""
        self._primary.check_usable()
        with self._making:
            if self._words is None:
                self._words = self._new_word_index()
        return self._words

    def _new_word_index(self) -> FollowingWords:
        name = blake2b(self._primary.place.encode(), digest_size=8).hexdigest()
        if self._folder is None:
            self._temporary = TemporaryDirectory(prefix="ragistry-", ignore_cleanup_errors=True)
        home = Path(self._folder or self._temporary.name, "postgres", name)  # type: ignore[union-attr]
        try:
            return FollowingWords(home, self._primary.place, language=self._language)
        except OSError as error:
            raise StoreError(
                f"the word index {str(home)!r} cannot be written ({error.strerror or error}); make the folder "
                "writable, or name another in data_dir"
            ) from error

    # Reading

    def _current(self) -> Database:
        """Return the server to read from: the standby, once it has this store's own last write."""
        if self._replayed < self._own and self._reading is not self._primary:
            self._replayed = self._reading.read(self._number)
            if self._replayed < self._own:
                return self._primary
        return self._reading

    def _read(self, work: Callable[[Connection], T]) -> T:
        return self._current().read(work)

    def _head(self, connection: Connection) -> Head:
        return read_head(connection, self._primary.place)

    def _report(self, head: Head) -> None:
        """Report that the answer is degraded, or that the store is empty."""
        if head.behind:
            degraded(f"the standby has {head.behind:,} bytes of changes still to apply")
        if not head.chunks:
            log.warning("%s: the store is empty; ingest something first", self._primary.place)

    def _number(self, connection: Connection) -> int:
        return self._head(connection).number

    def get(self, ids: Sequence[str]) -> list[Document]:
        ids = check_ids(ids)

        def find(connection: Connection) -> list[Document]:
            keys = rows.keys_of(connection, ids)
            return in_order(ids, keys, rows.documents(connection, list(keys.values())))

        return self._read(find)

    def vectors(self, ids: Sequence[str]) -> Vectors:
        ids = check_ids(ids)
        return self._read(
            lambda connection: rows.vectors_by_id(connection, ids, self._head(connection), self._primary.place)
        )

    def known_vectors(self, collection: str, source_file: str, chunks: Sequence[Chunk]) -> dict[str, Vectors]:  # noqa: ARG002
        return self._read(lambda connection: rows.vectors_of_equals(connection, self._head(connection).vectors, chunks))

    def scan(self, where: Where | None = None, *, batch: int = 1000) -> Iterator[Document]:
        which = condition(where)
        check_batch(batch)

        def pages() -> Iterator[Document]:
            with self._current().snapshot() as connection:
                keys = rows.selected_keys(connection, which).tolist()
                for start in range(0, len(keys), batch):
                    yield from rows.documents(connection, keys[start : start + batch]).values()

        return pages()

    def count(self, where: Where | None = None) -> int:
        if where is None:
            return self._read(lambda connection: self._head(connection).chunks)
        which = condition(where)
        statement = f"SELECT count(*) FROM chunks WHERE {which.text}"
        return self._read(lambda connection: int(connection.execute(statement, which.values).fetchone()[0]))  # type: ignore[index]

    def sources(self, collection: str | None = None, *, in_part: bool = False) -> list[SourceInfo]:
        return self._read(lambda connection: rows.list_sources(connection, collection, in_part=in_part))

    def _rows(self, query: str, *values: Any) -> list[Any]:
        return self._read(lambda connection: EscapedRows(connection).execute(query, values))

    def embedder(self) -> EmbedderFingerprint | None:
        return self._read(lambda connection: recorded_embedder(self._head(connection)))

    def fit(self) -> Fit | None:
        return self._read(lambda connection: recorded_fit(self._head(connection).fit))

    def record_fit(self, fit: Fit, fingerprint: EmbedderFingerprint) -> None:
        self._write(lambda write: embedding.record_fit(write, fit, fingerprint))

    # Maintenance

    def begin_vectors(self, fingerprint: EmbedderFingerprint) -> None:
        self._write(lambda write: embedding.begin(write, fingerprint), alone=True)

    def lacking_vectors(
        self, fingerprint: EmbedderFingerprint, after: int = 0, limit: int = 128
    ) -> tuple[list[tuple[int, Chunk]], int]:
        return self._primary.read(
            lambda connection: embedding.lacking(connection, self._head(connection), fingerprint, after, limit)
        )

    def add_vectors(self, numbers: Sequence[int], vectors: Vectors, *, embedder: EmbedderFingerprint) -> None:
        self._write(lambda write: embedding.keep(write, embedder, numbers, vectors))

    def switch_vectors(self, fingerprint: EmbedderFingerprint) -> bool:
        if is_complete := self._write(lambda write: embedding.switch(write, fingerprint), alone=True):
            self._embedder = fingerprint
        return is_complete

    def verify(self) -> list[str]:
        self._refuse()

    def repair(self) -> Repair:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise UnsupportedError(
            f"{self._primary.place}: the server maintains this store; use `pg_amcheck` and its backups, or "
            "the local store (`store: {use: local}` in vector_stores.yaml)"
        )

    def close(self) -> None:
        """Close all connections and files. Closing twice is harmless."""
        for database in (self._primary, self._reading):
            database.close()
        if self._words is not None:
            self._words.close()
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None


def _ranked(
    connection: Connection, found: tuple[Keys, Scores], top_k: int, stage: str, kind: ScoreKind
) -> list[Document]:
    return best_documents(
        found, top_k, stage, kind,
        ids_of=partial(rows.ids_of, connection), documents_of=partial(rows.documents, connection),
    )  # fmt: skip
