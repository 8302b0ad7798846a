"""The embedded store: one SQLite file that is the truth, and indexes that can be made again from it."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING

import numpy as np

from ragistry.errors import InvalidFilterError, StoreError, StoreLockedError
from ragistry.stores import embedder_record as record
from ragistry.stores import exact, groups, integrity, reembedding
from ragistry.stores.database import ReplacedError
from ragistry.stores.flushing import Flusher
from ragistry.stores.group_reading import vectors_of_texts
from ragistry.stores.indexes import Indexes
from ragistry.stores.options import store_folder
from ragistry.stores.reading import documents_of, keys_of
from ragistry.stores.scanning import scanned
from ragistry.stores.selecting import count_selected, selected_keys
from ragistry.stores.state import State
from ragistry.stores.text_hits import TextHits
from ragistry.stores.vector_search import VectorSearch
from ragistry.stores.word_search import WordSearch
from ragistry.types import Document, EmbeddedChunk, EmbedderFingerprint, SourceInfo, Where
from ragistry.utils.chunk_checks import check_chunks, check_source, listed
from ragistry.utils.languages import canonical_language
from ragistry.utils.limits import check_batch, check_ids, check_query, check_seconds, check_sizes, check_top_k
from ragistry.utils.shown import shown
from ragistry.utils.where import normalise

if TYPE_CHECKING:
    from ragistry.protocols import Vectors

log = logging.getLogger(__name__)

EXACT_BELOW = 10_000
"""Chunks up to which every vector is compared without a look at sketches: these save little where vectors are few, and
nothing for a query that lies far from all of them."""
GRAPH_ABOVE = 200_000
"""Chunks above which an exclusive store searches a graph of the vectors, which takes 1.2 ms a chunk to make."""
MEMORY = 256_000_000
"""Bytes of matrices of hot selections that are kept."""


class LocalStore:
    """A folder with everything in it. Meets every protocol of a store; safe for threads.

    Any number of processes may read; one at a time writes, and a second waits ``lock_timeout`` seconds before it
    gets `StoreLockedError`. ``exclusive``: keep the right to write, as a server does.

    A search with a condition compares every vector that meets it. One without does so up to ``exact_below`` chunks,
    and above them compares those that a sketch shows to be near, which finds 99.9 % of the nearest or more. Above
    ``graph_above``, or where the vectors do not fit in ``memory``, an exclusive store asks ChromaDB; others take tens
    of milliseconds. ``memory``: bytes for matrices of hot selections. ``language``: of the index of words
    (`utils.analysis`). ``vector_folder``: of ChromaDB's index, if not in ``folder``.

    A condition on what all chunks of a source share (``collection``, ``source_file``, ``type``, ``title``, ``tags`` …)
    is settled without reading any; ``page``, ``section`` and ``has_code`` have an index. Text in other keys, as in
    ``tags``, is looked for in SQL, below 1 µs a chunk in question when a condition is first used; for the rest their
    metadata are read, some 8 µs each.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        exclusive: bool = False,
        exact_below: int = EXACT_BELOW,
        graph_above: int = GRAPH_ABOVE,
        memory: int = MEMORY,
        language: str = "english",
        vector_folder: str | os.PathLike[str] | None = None,
        lock_timeout: float = 2.0,
    ) -> None:
        self.folder = store_folder(folder)
        vectors = store_folder(vector_folder) / "ragistry" if vector_folder else self.folder / "chroma"
        check_sizes(memory=memory, exact_below=exact_below, graph_above=graph_above)
        check_seconds(lock_timeout=lock_timeout)
        canonical_language(language)
        self._state = State(self.folder, exclusive=exclusive, lock_timeout=lock_timeout)
        self._flusher = Flusher(self._flush_if_possible) if exclusive else None
        self._embedder: EmbedderFingerprint | None = None
        self._indexes = Indexes(self._state.database, self.folder, vectors, language)
        matrices = exact.Matrices(memory)
        self._by_words = WordSearch(self._state, self._indexes.lexical, matrices)
        self._by_vector = VectorSearch(
            self._state, self._indexes.vectors, matrices,
            exact_below=exact_below, graph_above=graph_above if exclusive else None,
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"<LocalStore: {str(self.folder)!r}>"

    # What follows is the protocols; each method is documented there.

    def add_documents(self, chunks: Sequence[EmbeddedChunk], *, ids: Sequence[str] | None = None) -> int:
        with self._state.write() as connection:
            catalog = self._state.catalog(connection)
            checked = check_chunks(chunks, ids, dimension=record.check_to_write(connection, self._embedder))
            if checked.ids:
                record.record_dimension(connection, checked.vectors.shape[1])
                groups.add(connection, catalog, checked)
        self._written()
        return len(checked.ids)

    def replace_source(self, collection: str, source_file: str, chunks: Sequence[EmbeddedChunk]) -> None:
        chunks = listed("chunks", chunks)
        with self._state.write() as connection:
            embedder = self._embedder if chunks else None  # whoever removes needs none
            checked = check_chunks(chunks, dimension=record.check_to_write(connection, embedder))
            check_source(collection, source_file, chunks)
            if checked.ids:
                record.record_dimension(connection, checked.vectors.shape[1])
            groups.replace(connection, (collection, source_file), checked)
        if not checked.ids:
            self._state.database.erase()
        self._written()

    def move_source(self, source_file: str, from_collection: str, to_collection: str) -> int:
        check_source(to_collection, source_file, ())
        with self._state.write() as connection:
            return groups.move(connection, self._state.catalog(connection), source_file, from_collection, to_collection)

    def move_collection(self, from_collection: str, to_collection: str) -> int:
        check_source(to_collection, "any", ())
        with self._state.write() as connection:
            return groups.move_all(connection, self._state.catalog(connection), from_collection, to_collection)

    def delete(self, *, ids: Sequence[str] | None = None, where: Where | None = None) -> int:
        if (ids is None) == (where is None):
            raise InvalidFilterError("delete takes ids or where, one of the two; clear_collection() removes everything")
        condition = None if where is None else normalise(where)
        known = [] if ids is None else check_ids(ids)
        with self._state.write() as connection:
            catalog = self._state.catalog(connection)
            if condition is None:
                keys = list(keys_of(connection, known).values())
            else:
                keys = selected_keys(connection, catalog.select(condition)).tolist()
            removed = groups.remove(connection, catalog, keys)
        self._state.database.erase()
        self._written()
        return removed

    def clear_collection(self) -> None:
        with self._state.locked():
            with self._state.write() as connection:
                catalog = self._state.catalog(connection)
                groups.remove(connection, catalog, selected_keys(connection, catalog.select(None)).tolist())
                record.forget_embedder(connection)
            self._embedder = None
            self._state.database.erase()
            self._indexes.discard()

    def use_embedder(self, fingerprint: EmbedderFingerprint) -> None:
        with self._state.read() as (connection, _):
            record.check_recorded(connection, fingerprint)
            known = record.recorded_embedder(connection) is not None
        if not known:
            with self._state.write() as connection:
                record.check_recorded(connection, fingerprint)  # another may have been faster
                record.record_embedder(connection, fingerprint)
        self._embedder = fingerprint

    def check_embedder(self, fingerprint: EmbedderFingerprint) -> None:
        with self._state.read() as (connection, _):
            record.check_recorded(connection, fingerprint)

    def search(self, query_vector: Sequence[float], top_k: int = 10, *, where: Where | None = None) -> list[Document]:
        check_top_k(top_k)
        condition = None if where is None else normalise(where)
        return self._by_vector.documents(query_vector, top_k, condition)

    def search_text(self, query: str, top_k: int = 10, *, where: Where | None = None) -> list[Document]:
        check_query(query)
        check_top_k(top_k)
        return self._by_words.documents(query, top_k, None if where is None else normalise(where))

    def text_hits(self, query: str, top_k: int = 10, *, where: Where | None = None) -> TextHits:
        """What `search_text` finds, to look at before any of it is read."""
        check_query(query)
        check_top_k(top_k)
        return self._by_words.hits(query, top_k, None if where is None else normalise(where))

    def get(self, ids: Sequence[str]) -> list[Document]:
        ids = check_ids(ids)
        with self._state.read() as (connection, catalog):
            return documents_of(connection, catalog, ids)

    def vectors(self, ids: Sequence[str]) -> Vectors:
        ids = check_ids(ids)
        with self._state.read() as (connection, catalog):
            keys = keys_of(connection, ids)
            missing = [id for id in ids if id not in keys]
            if missing:
                raise StoreError(
                    f"{str(self.folder)!r}: {len(missing)} of the ids are not stored: {shown(missing[:3])}"
                )
            wanted = np.array([keys[id] for id in ids], dtype=np.int64)
            held = catalog.holding(wanted.tolist())
            matrix = exact.load(connection, held, np.unique(wanted), catalog.dimension)
        return matrix.vectors[np.searchsorted(matrix.keys, wanted)]

    def vectors_of_texts(self, texts: Sequence[str]) -> dict[str, Vectors]:
        with self._state.read() as (connection, _):
            return vectors_of_texts(connection, texts)

    def scan(self, where: Where | None = None, *, batch: int = 1000) -> Iterator[Document]:
        condition = None if where is None else normalise(where)
        check_batch(batch)
        return scanned(self._state, condition, batch)

    def count(self, where: Where | None = None) -> int:
        condition = None if where is None else normalise(where)
        with self._state.read() as (connection, catalog):
            return count_selected(connection, catalog.select(condition))

    def sources(self, collection: str | None = None) -> list[SourceInfo]:
        with self._state.read() as (_, catalog):
            return catalog.sources(collection)

    def writing(self) -> AbstractContextManager[None]:
        return self._state.locked()

    # What a library and its owner need beside the protocols.

    def begin_reembedding(self, fingerprint: EmbedderFingerprint) -> list[int]:
        """The groups of chunks that lack vectors of this embedder; what an interrupted attempt made is kept."""
        with self._state.write() as connection:
            reembedding.begin(connection, fingerprint)
            return reembedding.missing(connection)

    def texts_of_group(self, group: int) -> list[str]:
        """The texts of a group of chunks, in order; none where it was replaced meanwhile; see `reembedding.texts`."""
        with self._state.read() as (connection, catalog):
            return reembedding.texts(connection, catalog.groups.get(group))

    def put_reembedded(self, group: int, vectors: Vectors, fingerprint: EmbedderFingerprint) -> None:
        """Keep the new vectors of a group, ``(n, d)``, beside those that are searched; see `reembedding.put`."""
        with self._state.write() as connection:
            reembedding.put(connection, group, vectors, fingerprint)

    def finish_reembedding(self, fingerprint: EmbedderFingerprint) -> bool:
        """Search the new vectors from now on; False where groups that came meanwhile have none yet."""
        with self._state.write() as connection:
            done = reembedding.finish(connection, fingerprint)
        if done:
            self._indexes.close()
            self._state.database.erase()
        return done

    def flush(self) -> None:
        """Let the index of words hear of everything that was written; a search does so by itself."""
        with self._state.locked():
            self._indexes.lexical.brought_up()

    def _written(self) -> None:
        if self._flusher:  # others that search by words cannot bring their index up
            self._flusher.written()

    def _flush_if_possible(self) -> None:
        try:
            self.flush()
        except (StoreLockedError, ReplacedError):
            pass  # whoever writes now does it; of a store that is gone nobody has to
        except StoreError as error:
            log.warning("what was written is safe, but has still to be indexed, by whoever searches next: %s", error)

    def verify(self) -> list[str]:
        """What is wrong with the files of the store, one line each; nothing where all is well. Reads all of them.

        An index first hears of what was written. Where another process is writing, or this one may not, the database
        alone is read, which is the truth, and that the indexes were not is logged.
        """
        self._state.database.check_file()
        found = integrity.told(self._state.database.faults())
        with ExitStack() as held:
            try:
                held.enter_context(self._state.locked())
            except StoreError as error:
                log.warning("only store.db was looked at, the indexes were not: %s", error)
                return found
            return [*found, *self._indexes.problems()]

    def repair(self) -> list[str]:
        """Make every index again that is broken or keeps deleted vectors, and return what was wrong with it.

        What is damaged in the database and follows from the rest is made again. What does not is said with its remedy:
        its source is from now on taken for one that changed, so that it is ingested again. Whatever has to be taken
        out so that the rest can be used leaves its sound texts in a file ``rescued-….jsonl`` beside the database: a
        chunk a line, with its id, its text (null where it is lost) and its metadata as they were found.
        """
        told: dict[str, str] = {}
        with self._state.locked():
            # Again and again: only what is mended lets the rest be read.
            while faults := [fault for fault in self._state.database.faults() if fault.said not in told]:
                told |= {fault.said: "" for fault in faults}
                if any(fault.mend for fault in faults):
                    with self._state.write() as connection:
                        told |= integrity.mended(connection, faults)
                else:
                    told |= {fault.said: integrity.beyond_repair(fault) for fault in faults}
            return [*filter(None, told.values()), *self._indexes.repair()]

    def close(self) -> None:
        if self._state.closed:
            return
        if self._flusher:
            self._flusher.close()
        try:
            if self._state.changed:
                self._flush_if_possible()  # so that the next process finds its index ready
        finally:
            try:
                self._indexes.close()
            finally:
                self._state.close()
