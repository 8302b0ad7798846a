"""Data that a technique derives from each chunk, kept in step with the store.

A technique that needs more than the vector and the words of a chunk (its entities, its weighted terms) computes rows of
numbers for it. `DerivedRows` keeps them in memory and, with a folder, in one file. Before a search it compares its
sources with those of the store, and adds or removes rows. With a store that has ``version()``, it reads only this
number unless something was written.

The first line of the file has a stamp and a checksum. A file with another stamp or a wrong checksum is rebuilt from the
store. It contains hashes, numbers and chunk ids, so that no text of a deleted chunk stays on disk.
"""

from __future__ import annotations

import json
import logging
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from io import BytesIO
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ragistry.protocols import LibraryStore
from ragistry.types import Document, SourceInfo, Where
from ragistry.utils.where import matches, normalise

log = logging.getLogger(__name__)

Rows = NDArray[Any]
Compute = Callable[[Sequence[Document]], Sequence[Rows]]
"""Computes the rows of chunks, ``(n, ...)`` each with its own n (0 is allowed), all of one type and width."""

BATCH = 1_000
"""Number of chunks computed in one call."""
FEW = 50
"""Number of new sources up to which they are read one by one; more are read by one scan of the store."""
FORMAT = "ragistry derived rows 1"


class Table(NamedTuple):
    """The rows of all chunks: those of ``ids[i]`` are ``rows[starts[i]:starts[i + 1]]``. Immutable."""

    ids: list[str]
    starts: NDArray[np.int64]
    rows: Rows


class _Part(NamedTuple):
    """The chunks of one source, or one chunk without a source."""

    ids: list[str]
    lengths: list[int]
    rows: Rows


class DerivedRows:
    """The rows of every chunk of a store, current at every call of `table`. Safe for threads and processes.

    A source counts as changed if its hash, its time or its number of chunks differ. Chunks without ``source_hash`` are
    compared by text, so they are read again after every write, or at every call if the store has no ``version()``.

    Args:
        store: The store.
        compute: Computes the rows of chunks; see `Compute`.
        name: Name of the file.
        stamp: A line that identifies format and model of the rows.
        empty: The rows of no chunk, ``(0, ...)``.
        folder: Folder of the file; None: in memory only.
    """

    def __init__(
        self, store: LibraryStore, compute: Compute, *, name: str, stamp: str, empty: Rows, folder: Path | None = None
    ) -> None:
        self.store = store
        self.compute = compute
        self.stamp = stamp
        self.empty = empty
        self.path = None if folder is None else folder / f"{name}.rows"
        self._parts: dict[str, _Part] | None = None
        self._table = Table([], np.zeros(1, np.int64), empty)
        self._seen: Any = None
        self._lock = Lock()

    def table(self) -> Table:
        """Return the current rows: the same object as before if nothing was written.

        Rows that were computed before an error are kept.

        Raises:
            StoreError: The store cannot be read. Errors of ``compute`` are raised too.
        """
        with self._lock:
            version = getattr(self.store, "version", None)
            now = version() if callable(version) else None
            if self._parts is None or now is None or now != self._seen:
                self._bring_up()
                self._seen = now  # read before the sources, so that the next call notices a write in between
            return self._table

    def _bring_up(self) -> None:
        first, kept = self._parts is None, self._loaded() if self._parts is None else self._parts
        sources = {_key_of_source(info): info for info in self.store.sources() if info.source_hash}
        places = {(info.collection, info.source_file): key for key, info in sources.items()}
        parts = {key: part for key, part in kept.items() if key in sources}
        found: defaultdict[str, list[tuple[str, Rows]]] = defaultdict(list)
        try:
            for documents in _batches(self._documents(sources, parts)):
                belongs = [(places.get(_place(one)) or _key_of_chunk(one), one) for one in documents]
                parts |= {key: kept[key] for key, _ in belongs if key in kept}
                new = [(key, one) for key, one in belongs if key not in parts]
                rows_of_new = self.compute([one for _, one in new]) if new else ()
                for (key, one), rows in zip(new, rows_of_new, strict=True):
                    found[key].append((one.id, rows))
        finally:
            # a source with a different number of chunks is being written; the next call reads it again
            parts |= {
                key: _part(rows, self.empty)
                for key, rows in found.items()
                if len(rows) == (sources[key].chunks if key in sources else 1)
            }
            parts = dict(sorted(parts.items()))  # the same table for any order of writes
            changed = parts.keys() != kept.keys()
            if first or changed:
                self._table = _joined(parts.values(), self.empty)
            self._parts = parts
            if changed:
                self._write(parts)

    def _documents(self, sources: Mapping[str, SourceInfo], parts: Mapping[str, _Part]) -> Iterator[Document]:
        """Read the chunks of sources that are not among the parts, and those without a source; may include others."""
        missing = [info for key, info in sources.items() if key not in parts]
        if len(missing) > FEW or self.store.count() > sum(info.chunks for info in sources.values()):
            yield from self.store.scan(batch=BATCH)
            return
        for info in missing:
            one = {"$and": [{"collection": info.collection}, {"source_file": info.source_file}]}
            yield from self.store.scan(one, batch=BATCH)

    def _loaded(self) -> dict[str, _Part]:
        """Read the file; empty if it is missing, damaged, or has another stamp."""
        if self.path is None:
            return {}
        try:
            head, _, content = self.path.read_bytes().partition(b"\n")
            if head != self._head(content):
                raise ValueError("damaged, or of another version")
            with np.load(BytesIO(content), allow_pickle=False) as arrays:
                return _unpacked(arrays)
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError) as error:
            log.warning("%s cannot be used (%s); it is rebuilt from the store", self.path, error)
            return {}

    def _write(self, parts: Mapping[str, _Part]) -> None:
        if self.path is None:
            return
        buffer = BytesIO()
        np.savez(buffer, **_packed(parts, self._table))
        content = buffer.getvalue()
        temporary = self.path.with_suffix(".new")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_bytes(self._head(content) + b"\n" + content)
            temporary.replace(self.path)
        except OSError as error:
            log.warning("%s cannot be written (%s); it is kept in memory", self.path, error.strerror or error)

    def _head(self, content: bytes) -> bytes:
        return f"{FORMAT} {zlib.crc32(content):08x} {self.stamp!r}".encode("ascii", "backslashreplace")


def documents_meeting(store: LibraryStore, ids: Sequence[str], where: Where | None) -> Iterator[Document]:
    """Read the chunks of these ids that meet the condition, lazily and in this order."""
    condition = normalise(where)
    start, size = 0, 16
    while start < len(ids):
        for document in store.get(ids[start : start + size]):
            if condition is None or matches(condition, document.metadata):
                yield document
        start, size = start + size, 2 * size


def hashed(text: str) -> int:
    """Hash a text to 64 bits, the same in every process; the hash is stored instead of the text."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def _batches(documents: Iterator[Document]) -> Iterator[list[Document]]:
    while batch := list(islice(documents, BATCH)):
        yield batch


def _place(document: Document) -> tuple[str, str]:
    return str(document.metadata.get("collection")), str(document.metadata.get("source_file"))


def _key_of_source(info: SourceInfo) -> str:
    return _digest(info.collection, info.source_file, info.source_hash, info.chunks, info.ingested_at)


def _key_of_chunk(document: Document) -> str:
    return _digest(document.id, document.content, sorted(document.metadata.items()))


def _digest(*values: object) -> str:
    return blake2b(repr(values).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _part(found: Sequence[tuple[str, Rows]], empty: Rows) -> _Part:
    rows = [rows for _, rows in found]
    return _Part([id for id, _ in found], list(map(len, rows)), np.concatenate([empty, *rows]))


def _joined(parts: Iterable[_Part], empty: Rows) -> Table:
    parts = list(parts)
    ids = [id for part in parts for id in part.ids]
    lengths = np.array([length for part in parts for length in part.lengths], dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Table(ids, starts, np.concatenate([empty, *(part.rows for part in parts)]))


def _packed(parts: Mapping[str, _Part], table: Table) -> dict[str, Any]:
    return {
        "keys": np.array(list(parts), dtype="S32"),
        "chunks": np.array([len(part.ids) for part in parts.values()], dtype=np.int64),
        "ids": np.frombuffer(json.dumps(table.ids).encode(), dtype=np.uint8),
        "starts": table.starts,
        "rows": table.rows,
    }


def _unpacked(arrays: Mapping[str, Any]) -> dict[str, _Part]:
    ids, starts, rows = json.loads(arrays["ids"].tobytes()), arrays["starts"], arrays["rows"]
    parts, chunk = {}, 0
    for key, count in zip(arrays["keys"].tolist(), arrays["chunks"].tolist(), strict=True):
        bounds = starts[chunk : chunk + count + 1]
        parts[key.decode()] = _Part(ids[chunk : chunk + count], np.diff(bounds).tolist(), rows[bounds[0] : bounds[-1]])
        chunk += count
    return parts
