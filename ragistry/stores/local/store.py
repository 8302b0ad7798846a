"""`LocalStore`: one SQLite file with all data, and two indexes derived from it."""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field

from ragistry.errors import StoreError
from ragistry.stores import records
from ragistry.stores.chunk_checks import as_list, check_chunks, check_source
from ragistry.stores.local import embedding, rows
from ragistry.stores.local.database import FILE, Database, Head, advance, opening, read_head, store_folder, translated
from ragistry.stores.local.index import DerivedIndex, Stale, View
from ragistry.stores.local.salvage import discard_kept, faults, rebuilt_indexes, salvage
from ragistry.stores.local.selecting import Change, Selection, Selections, selected_keys
from ragistry.stores.local.vectors import VectorIndex
from ragistry.stores.local.words import WordIndex
from ragistry.stores.lock import WriterLock
from ragistry.stores.unsearchable import Rows, UnsearchableRows, put
from ragistry.stores.vectors import query_vector as unit_query
from ragistry.text.languages import canonical_language
from ragistry.trace import degraded
from ragistry.types import (
    Chunk,
    Document,
    EmbeddedChunk,
    EmbedderFingerprint,
    Ranking,
    Repair,
    ScoreKind,
    SourceInfo,
    Unsearchable,
    Where,
)
from ragistry.utils.fingerprints import check_same_embedder, from_json
from ragistry.utils.limits import check_batch, check_ids, check_query, check_top_k
from ragistry.utils.where import Condition, normalise

if TYPE_CHECKING:
    from ragistry.protocols import Vectors

log = logging.getLogger(__name__)
Read = TypeVar("Read")

ATTEMPTS = 6
"""Number of attempts of a search if the store is written or an index is rebuilt meanwhile."""
LAG, LAG_SHARE = 2_000, 0.05
"""Number of chunks, or share of all, by which indexes may lag before a writer updates them."""
SCORES: dict[str, tuple[str, ScoreKind]] = {"words": ("bm25", "bm25"), "vectors": ("dense", "cosine")}
"""Stage and kind of the scores of each index."""


class LocalStore(UnsearchableRows, embedding.FitRecord):
    """A store in one folder. Thread-safe; a forked child has to open it again.

    Acknowledged writes survive a kill and a power cut. A source is its old version or its new one. Indexes are checked
    before use and rebuilt from the database; a damaged database is salvaged. Deleting erases. A chunk may wait for its
    vector (`protocols.WordsFirstStore`); a vector is never that of another text. Files are mapped into
    memory: another program that truncates one during a search, or ``store.db-shm`` at any time, ends the process.

    Any number of processes may read, also without write permission; one at a time writes. A second writer waits
    ``lock_timeout`` seconds and then gets `StoreLockedError`. ``exclusive``: keep the write lock, as a server does. Its
    searches do not wait for chunks that were written without vectors and not flushed yet; they say so.

    A search under a condition compares up to 50,000 matching vectors, and a search without a condition up to
    ``exact_below``. Above that, sketches preselect vectors, which finds at least 98 % of the nearest.
    ``language``: language of the words (`text.analysis`).
    """

    abilities = frozenset({"text", "repair", "reembed", "words_first", "fit", "unsearchable"})

    class Config(BaseModel):
        model_config = ConfigDict(extra="forbid")

        lock_timeout: float = Field(default=2.0, ge=0, description="seconds to wait for another writer")

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        exclusive: bool = False,
        language: str = "english",
        exact_below: int = 10_000,
        lock_timeout: float = 2.0,
    ) -> None:
        self.folder = store_folder(folder)
        canonical_language(language)
        self._lock = lock = WriterLock(self.folder / "lock", f"the store {str(self.folder)!r}", wait=lock_timeout)
        self._exclusive = False
        with opening(self.folder):
            self._database = Database(self.folder, lock)
            if exclusive:
                lock.hold()
                self._exclusive = True
        self._words = WordIndex(self._database, self.folder, language=language)
        self._vectors = VectorIndex(self._database, self.folder, exact_below=exact_below)
        self._indexes: tuple[DerivedIndex[Any], ...] = self._words, self._vectors
        self._embedder: EmbedderFingerprint | None = None
        self._selections = Selections()
        self._wrote = False
        self._last: tuple[int, Condition | None, Head, records.Keys | None] | None = None
        self._unfinished: int | None = None  # the first key of an ingest that has not flushed its words

    def __repr__(self) -> str:
        return f"<LocalStore: {str(self.folder)!r}>"

    @staticmethod
    def exists(folder: str | os.PathLike[str]) -> bool:
        """Return whether the folder contains a store."""
        return Path(folder, FILE).is_file()

    # Writing

    def add_documents(self, chunks: Sequence[EmbeddedChunk], *, ids: Sequence[str] | None = None) -> int:
        with self._database.write() as connection:
            head = self._head_to_write(connection)
            checked = check_chunks(chunks, ids, dimension=head.dimension or None, may_wait=True)
            self._database.room.check_write(checked)
            self._unfinished = None
            if checked.ids:
                rows.add_chunks(connection, checked, head.next_key)
                advance(connection, head, checked)
            change = Change.since(connection, head)
        self._written(change.after, change)
        return len(checked.ids)

    def replace_source(
        self,
        collection: str,
        source_file: str,
        chunks: Sequence[EmbeddedChunk],
        *,
        unsearchable: Sequence[Unsearchable] = (),
    ) -> None:
        chunks = as_list("chunks", chunks)
        with self._database.write() if chunks else self._database.delete() as connection:
            head = self._head_to_write(connection, adds=bool(chunks))
            checked = check_chunks(chunks, dimension=head.dimension or None, may_wait=True)
            check_source(collection, source_file, chunks)
            if chunks:
                self._database.room.check_write(checked)
            else:
                self._database.room.check_deletion(rows.size_of(connection, (collection, source_file)))
            is_unfinished = self._exclusive and not checked.vectors.any(axis=1).all()
            self._unfinished = (self._unfinished or head.next_key) if is_unfinished else None
            rows.put_source(connection, (collection, source_file), checked, head.next_key)
            put(connection, unsearchable)
            advance(connection, head, checked)
            change = Change.since(connection, head)
        self._written(change.after, change)

    def add_vectors(
        self, numbers: Sequence[int], vectors: Vectors, *, embedder: EmbedderFingerprint | None = None
    ) -> None:
        with self._database.write() as connection:
            fingerprint = embedder or records.recorded_embedder(self._head_to_write(connection))
            if fingerprint is None:
                raise StoreError("no embedder is recorded; call use_embedder first")
            embedding.keep(connection, fingerprint, numbers, vectors)
            head = read_head(connection)
        self._written(head)

    def refuse_vectors(self, numbers: Sequence[int]) -> None:
        with self._database.write() as connection:
            connection.executemany("UPDATE waiting SET refused = 1 WHERE key = ?", ((number,) for number in numbers))
            advance(connection, read_head(connection))

    def move_source(self, source_file: str, from_collection: str, to_collection: str) -> int:
        check_source(to_collection, source_file, ())
        with self._database.write() as connection:
            advance(connection, read_head(connection))
            return rows.move(connection, (from_collection, source_file), to_collection)

    def move_collection(self, from_collection: str, to_collection: str) -> int:
        check_source(to_collection, "any", ())
        with self._database.write() as connection:
            advance(connection, read_head(connection))
            return rows.move_collection(connection, from_collection, to_collection)

    def delete(self, *, ids: Sequence[str] | None = None, where: Where | None = None) -> int:
        known, condition = records.check_deletion(ids, where)
        with self._database.delete() as connection:
            head = read_head(connection)
            if condition is None:
                keys = list(rows.keys_of(connection, known).values())
            else:
                keys = selected_keys(connection, condition).tolist()
            self._database.room.check_deletion(len(keys))
            removed = rows.remove(connection, keys)
            advance(connection, head)
            change = Change.since(connection, head)
        self._written(change.after, change)
        return removed

    def clear_collection(self) -> None:
        with self._lock.writing():
            with self._database.delete() as connection:
                self._database.room.check_deletion(rows.count(connection))
                rows.clear(connection)
                advance(connection, read_head(connection))
            self._embedder = None
            for index in self._indexes:
                index.discard()

    def use_embedder(self, fingerprint: EmbedderFingerprint) -> None:
        with self._database.read() as connection:
            known = records.check_embedder(read_head(connection), fingerprint)
        if not known:
            with self._database.write() as connection:
                # another process may have been faster
                if not records.check_embedder(read_head(connection), fingerprint):
                    embedding.record_embedder(connection, fingerprint)
        self._embedder = fingerprint

    def writing(self) -> AbstractContextManager[None]:
        return self._lock.writing()

    def flush(self) -> None:
        with self.writing():
            for index in self._indexes:
                index.bring_up(unless=index.may_lag)
            self._unfinished = None
            self._database.erase()

    def _head_to_write(self, connection: sqlite3.Connection, *, adds: bool = True) -> Head:
        """Read the counters before a write; another process may have recorded another embedder meanwhile."""
        head = read_head(connection)
        if adds and self._embedder is not None and not records.check_embedder(head, self._embedder):
            embedding.record_embedder(connection, self._embedder)
            head = read_head(connection)
        return head

    def _written(self, head: Head, change: Change | None = None) -> None:
        """Update the indexes from time to time, so that no search has to wait long for it."""
        self._wrote = True
        if change is not None:
            self._selections.follow(change)
        for index in self._indexes:
            lag = index.behind(head)
            if lag > LAG and lag > LAG_SHARE * head.next_key:
                self._bring_up_if_possible(index)

    def _bring_up_if_possible(self, index: DerivedIndex[Any]) -> None:
        try:
            index.bring_up()
        except StoreError as error:
            log.warning("your data is saved; the next search updates the index %r: %s", index.name, error)

    def _change(self, work: Callable[[Rows], None], *, erases: bool) -> None:
        with self._database.delete() if erases else self._database.write() as connection:
            work(connection)

    # Searching

    def search(
        self,
        query_vector: Sequence[float],
        top_k: int = 10,
        *,
        where: Where | None = None,
        embedder: EmbedderFingerprint | None = None,
    ) -> list[Document]:
        check_top_k(top_k)
        found = self._search(self._vectors, query_vector, top_k, normalise(where), embedder=embedder)
        return cast("list[Document]", found)

    def search_text(
        self, query: str, top_k: int = 10, *, where: Where | None = None, every: bool = False
    ) -> list[Document]:
        check_query(query)
        check_top_k(top_k)
        return cast("list[Document]", self._search(self._words, query, top_k, normalise(where), every=every))

    def unknown_words(self, query: str, *, where: Where | None = None) -> list[str]:
        check_query(query)
        condition, view, last, self._last = normalise(where), self._words.opened, self._last, None
        if view and last and last[:2] == (self._database.commits, condition) and not self._words.lag(view, last[2]):
            with suppress(Stale):  # what the search before this call saw need not be read again
                return self._words.unknown(view, query, last[3])
        return cast("list[str]", self._search(self._words, query, 1, condition, unknown=True))

    def rank(
        self,
        query: str | Sequence[float],
        top_k: int,
        *,
        where: Condition | None = None,
        embedder: EmbedderFingerprint | None = None,
    ) -> Ranking:
        index: DerivedIndex[Any] = self._words if isinstance(query, str) else self._vectors
        return cast("Ranking", self._search(index, query, top_k, where, embedder=embedder, reads=False))

    def _search(
        self,
        index: DerivedIndex[Any],
        query: Any,
        top_k: int,
        where: Condition | None,
        *,
        every: bool = False,
        unknown: bool = False,
        embedder: EmbedderFingerprint | None = None,
        reads: bool = True,
    ) -> Any:
        """Search an index in a snapshot for which it is valid; read the documents there, or return a `Ranking`."""
        stage, kind = SCORES[index.name]
        behind = ""  # why the index cannot be updated
        for _ in range(ATTEMPTS):
            commits = self._database.commits
            with self._database.read() as connection:
                head, view = read_head(connection), None
                if embedder is not None and head.embedder is not None:
                    check_same_embedder(from_json(head.embedder), embedder)
                try:
                    view = index.view(connection, head)
                    lags = view.stamp.version != head.version and index.lag(view, head) > index.may_lag
                    if lags and not behind and not self._is_unfinished(index, view, head):
                        raise Stale("")
                    selection = None if where is None else self._selections.of(connection, head, where)
                    if isinstance(index, WordIndex):
                        if selection is None and head.removed > view.stamp.removed:
                            selection = Selection(selected_keys(connection, None))  # the index still has removed chunks
                        allowed = None if selection is None else selection.keys
                        if unknown:
                            return [] if lags else index.unknown(view, query, allowed)
                        found = index.best(view, query, top_k, allowed, every=every)
                    else:
                        vector = unit_query(query, head.dimension or None)
                        found = self._vectors.nearest(connection, head, view, vector, top_k, selection)
                    index.confirm(view, head)
                    ids_of, documents_of = partial(rows.ids_of, connection), partial(rows.documents, connection)
                    if reads:
                        made: Any = records.best_documents(
                            found, top_k, stage, kind, ids_of=ids_of, documents_of=documents_of
                        )
                    else:
                        scores = records.best_scores(found, top_k, kind, ids_of=ids_of)
                        made = Ranking(
                            scores, stage, kind, snapshot=(self, head.version), fit=records.recorded_fit(head.fit),
                            read=partial(self._read_ranked, rows.documents, head.version),
                            places=partial(self._read_ranked, rows.places, head.version),
                        )  # fmt: skip
                except Stale as stale:
                    # otherwise the apparent damage is a row removed meanwhile
                    reason = str(stale) if stale.broken and view is not None and index.is_current(view) else ""
                else:
                    self._last = commits, where, head, None if selection is None else selection.keys
                    if index is self._words and head.next_key > view.stamp.next_key:
                        degraded(f"the newest chunks are not searched yet: {behind or 'an ingest is adding them'}")
                    if index is self._vectors and head.waiting:
                        keys = None if selection is None else selection.keys
                        if waiting := rows.count_waiting(connection, keys):
                            degraded(records.waiting_line(waiting))
                    if not len(found[0]) and not connection.execute("SELECT 1 FROM chunks LIMIT 1").fetchone():
                        log.warning("%s: the store is empty; ingest something first", self.folder)
                    return made
            try:
                index.bring_up(reason)
            except StoreError as error:
                if behind:
                    index.build_privately()
                behind = str(error)
        raise StoreError(f"the store {str(self.folder)!r} is written so often that no search succeeds; try again")

    def _is_unfinished(self, index: DerivedIndex[Any], view: View, head: Head) -> bool:
        """Return whether the index only lacks words that an ingest is adding: to update it now takes a search long."""
        first = self._unfinished
        is_added = first is not None and first <= view.stamp.next_key and view.stamp.removed == head.removed
        return is_added and index is self._words

    def _read_ranked(
        self, read: Callable[[sqlite3.Connection, Sequence[int]], Read], version: int, keys: Sequence[int]
    ) -> Read | None:
        """See `Ranking.read` and `Ranking.places`."""
        with self._database.read() as connection:
            return read(connection, keys) if read_head(connection).version == version else None

    # Reading

    def get(self, ids: Sequence[str]) -> list[Document]:
        ids = check_ids(ids)
        with self._database.read() as connection:
            keys = rows.keys_of(connection, ids)
            found = rows.documents(connection, list(keys.values()))
        return records.in_order(ids, keys, found)

    def vectors(self, ids: Sequence[str]) -> Vectors:
        with self._database.read() as connection:
            return rows.vectors_by_id(connection, check_ids(ids), read_head(connection), repr(str(self.folder)))

    def waiting(self, after: int = 0, limit: int = 256) -> list[tuple[int, Document]]:
        with self._database.read() as connection:
            return rows.waiting(connection, after, limit)

    def known_vectors(self, collection: str, source_file: str, chunks: Sequence[Chunk]) -> dict[str, Vectors]:  # noqa: ARG002
        with self._database.read() as connection:
            return rows.vectors_of_equals(connection, chunks)

    def scan(self, where: Where | None = None, *, batch: int = 1000) -> Iterator[Document]:
        check_batch(batch)
        return self._scan(normalise(where), batch)

    def _scan(self, where: Where | None, batch: int) -> Iterator[Document]:
        with self._database.read() as connection:
            keys = selected_keys(connection, where).tolist()
            for start in range(0, len(keys), batch):
                yield from rows.documents(connection, keys[start : start + batch]).values()

    def texts(self, sources: Sequence[tuple[str, str]]) -> dict[tuple[str, str], str]:
        """Return the whole texts of sources by collection and name; one whose chunks lack offsets is left out."""
        with self._database.read() as connection:
            return rows.texts_of(connection, sources)

    def count(self, where: Where | None = None) -> int:
        condition = normalise(where)
        with self._database.read() as connection:
            return rows.count(connection) if condition is None else len(selected_keys(connection, condition))

    def sources(self, collection: str | None = None, *, in_part: bool = False) -> list[SourceInfo]:
        with self._database.read() as connection:
            return rows.list_sources(connection, collection, in_part=in_part)

    def _rows(self, query: str, *values: Any) -> list[Any]:
        with self._database.read() as connection:
            return connection.execute(query, values).fetchall()

    def embedder(self) -> EmbedderFingerprint | None:
        with self._database.read() as connection:
            return records.recorded_embedder(read_head(connection))

    def version(self) -> int:
        """Return a number that grows with every write of any process."""
        with self._database.read() as connection:
            return read_head(connection).version

    def copy_to(self, folder: Path) -> None:
        """Copy a snapshot of the database to another folder; its indexes are built there when needed."""
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / FILE
        with self._database.read() as connection, translated(target), closing(sqlite3.connect(target)) as copy:
            connection.backup(copy)

    # Maintenance

    def begin_vectors(self, fingerprint: EmbedderFingerprint) -> None:
        with self._database.write() as connection:
            embedding.begin(connection, fingerprint)

    def lacking_vectors(
        self, fingerprint: EmbedderFingerprint, after: int = 0, limit: int = 128
    ) -> tuple[list[tuple[int, Chunk]], int]:
        with self._database.read() as connection:
            return embedding.lacking(connection, fingerprint, after, limit)

    def switch_vectors(self, fingerprint: EmbedderFingerprint) -> bool:
        with self._database.write() as connection:
            is_complete = embedding.switch(connection, fingerprint)
        if is_complete:
            self._database.erase()
            self._embedder = fingerprint
        return is_complete

    def verify(self) -> list[str]:
        """Read every file and return the faults, one line each."""
        self._database.migrate_if_possible()
        found = list(faults(self._database.path))
        return found or [f"the index {index.name!r} is {why}" for index in self._indexes if (why := index.problem())]

    def repair(self) -> Repair:
        self._database.migrate_if_possible()
        with self._lock.writing():
            broken = list(faults(self._database.path))
            lost: Repair = Repair()
            if broken:
                self._database.close()
                try:
                    lost = salvage(self._database.path)
                finally:
                    self._database = self._words.database = self._vectors.database = Database(self.folder, self._lock)
            rebuilt = rebuilt_indexes(self._indexes, is_broken=bool(broken))
            return Repair((*lost.rebuilt, *rebuilt), lost.lost, lost.again, lost.kept)

    def discard_kept(self) -> list[str]:
        """Remove the damaged files kept by `repair`, and return their names."""
        return discard_kept(self.folder)

    def close(self) -> None:
        """Update the indexes and close all files. Closing twice is harmless."""
        if self._database.closed or self._lock.is_inherited:
            return
        if self._wrote:
            for index in self._indexes:
                self._bring_up_if_possible(index)
        for index in self._indexes:
            index.close()
        self._database.close()
        if self._exclusive:
            self._lock.release()
