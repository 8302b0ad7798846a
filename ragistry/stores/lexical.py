"""BM25 over chunks by their row keys: a tantivy index of terms that `utils.analysis` makes.

It keeps no text and is never the truth: whatever is wrong with it, it can be built again from the store.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from tantivy import Index, Query

from ragistry.errors import StoreCorruptError, StoreError
from ragistry.stores.lexical_errors import REBUILD, translated
from ragistry.stores.lexical_files import META, check_record, damage, place_to_open, write_record
from ragistry.stores.lexical_query import Keys, Scores, all_keys, any_of, best, fetched
from ragistry.stores.lexical_writing import schema, write
from ragistry.stores.rights import is_writable
from ragistry.utils.analysis import query_terms
from ragistry.utils.forking import brief_lock

WRITE_MEMORY = 50_000_000
BUILD_MEMORY = 128_000_000
"""Bytes of terms that are gathered before a segment is written; about 20,000 and 50,000 chunks."""


class LexicalIndex:
    """The lexical index in a folder: searches of several threads at once, one writer at a time on the machine.

    ``language``: see `utils.analysis.analyse`. Opening raises `StoreCorruptError` where the folder holds no index,
    a damaged one, or one of another language or analysis: `build` makes it anew.
    """

    def __init__(self, folder: Path, *, language: str = "english") -> None:
        self._folder = Path(folder)
        self._meta = self._folder / META
        self._language = language
        self._reading = brief_lock()
        self._writing = brief_lock()
        with translated(self._folder):
            self._seen = self._state()
            self._index: Index | None = self._opened()

    @staticmethod
    def build(folder: Path, rows: Iterable[tuple[int, str]], *, language: str = "english") -> None:
        """Make an index of ``(key, text)`` in a folder that is empty or not there; it is durable on return.

        Raises `StoreError` where the folder holds something.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise StoreError(f"the folder {str(folder)!r} is not empty; remove what it holds, or choose another")
        with translated(folder):
            write(Index(schema(), str(folder)), rows, (), language, BUILD_MEMORY)
            write_record(folder, language)

    def apply(self, add: Sequence[tuple[int, str]], delete: Sequence[int]) -> None:
        """Delete these keys, then add these ``(key, text)`` in the place of what they had; durable on return.

        Doing it twice is doing it once. One commit, whose cost is that of the disk's `fsync`: about eight of them,
        however little is written. Raises `StoreLockedError`, `StoreCorruptError`, `StoreError`; what was there
        before is then still there.
        """
        texts = dict(add)
        if texts or delete:
            with self._writing, translated(self._folder):
                self._check_open()
                # Opened anew, because another process may have written: tantivy keeps the list of files in memory.
                index = Index.open(str(self._folder))
                write(index, texts.items(), {*delete, *texts}, self._language, WRITE_MEMORY)

    def search(self, query: str, top_k: int, *, allowed: Keys | None = None) -> tuple[Keys, Scores]:
        """The best keys and their BM25 scores (k1 1.2, b 0.75), ordered by ``(-score, key)``.

        At most ``top_k`` (1 or more), and after them whatever scores the same as the last, so that a caller who
        orders equal scores otherwise has them all. Any text is a query; what has none of its terms is not found.
        ``allowed``: the keys that may be returned, ascending, each once; the answer is the best of these. What any
        process has applied before is found.
        Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009.
        """
        with translated(self._folder):
            index = self._current()
            return best(index.searcher(), index.schema, query_terms(query, self._language), top_k, allowed)

    def keys(self) -> Keys:
        """Every key in the index, ascending."""
        with translated(self._folder):
            return all_keys(self._current().searcher())

    def count(self) -> int:
        """How many keys the index has."""
        with translated(self._folder):
            return int(self._current().searcher().num_docs)

    def check(self, expected_count: int | None = None) -> str:
        """What is wrong with the index, in one line, every byte of its files read; empty if it is sound."""
        try:
            while True:
                with translated(self._folder):
                    before = self._state()
                    problem = damage(self._folder)
                    count = LexicalIndex(self._folder, language=self._language).count()
                    if before == self._state():  # else another process wrote in between
                        break
        except StoreCorruptError as error:
            return str(error)
        if not problem and expected_count not in (None, count):
            problem = f"it has {count:,} chunks, the store has {expected_count:,}"
        return f"the lexical index at {str(self._folder)!r}: {problem}; {REBUILD}" if problem else ""

    def close(self) -> None:
        """Let go of the files; closing twice is harmless."""
        with self._reading:
            self._index = None

    def _opened(self) -> Index:
        check_record(self._folder, self._language)
        with place_to_open(self._folder) as place:
            index = Index.open(str(place))
            index.config_reader("manual")
            # Some damage shows only when the dictionary and the column of keys are read.
            for query in (any_of(index.schema, {"": 1}), Query.all_query()):
                fetched(index.searcher(), query, 1)
        return index

    def _current(self) -> Index:
        """The index as it was last committed by anybody: each commit puts a new file in the place of the old."""
        with self._reading:
            index = self._check_open()
            state = self._state()
            if state != self._seen:
                if is_writable(self._folder):
                    check_record(self._folder, self._language)
                    index.reload()
                else:
                    index = self._index = self._opened()
                self._seen = state
            return index

    def _state(self) -> tuple[int, int, int]:
        status = self._meta.stat()
        return status.st_ino, status.st_mtime_ns, status.st_size

    def _check_open(self) -> Index:
        if self._index is None:
            raise StoreError(f"the lexical index at {str(self._folder)!r} is closed; open the store again")
        return self._index
