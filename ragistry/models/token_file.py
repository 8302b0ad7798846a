"""Keep the token vectors of a library's chunks in one SQLite file, so that `maxsim` need not compute them again.

The file is derived from the store: if it is damaged or has another format, it is deleted and built again. The vectors
reveal much of their text, so removed ones are overwritten (``secure_delete``) and their pages released.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from ragistry.chunking.breadcrumb import searched_text
from ragistry.errors import StoreError
from ragistry.types import Role, SourceInfo

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ragistry.protocols import LibraryStore

FORMAT = 1
AT_ONCE = 500
"""Number of texts per statement; SQLite limits the number of values."""
CHUNKS_AT_ONCE = 256
TABLES = """
CREATE TABLE versions (key TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE tokens (version TEXT, text BLOB, scale BLOB, numbers BLOB, checksum INT, PRIMARY KEY (version, text));
CREATE INDEX tokens_of_text ON tokens (text);
"""


class TokenVectors(NamedTuple):
    """The vectors of a text's tokens: ``values`` ``(n, d)`` int8 times ``scale`` ``(n, 1)`` float32."""

    values: NDArray[np.int8]
    scale: NDArray[np.float32]

    @property
    def size(self) -> int:
        """Size in bytes."""
        return self.values.nbytes + self.scale.nbytes


class TokenEmbedder(Protocol):
    """A model with a vector for each token. ``token_key``: its key in the file, empty for the packaged one."""

    @property
    def token_key(self) -> str: ...

    def token_vectors(self, texts: Sequence[str], *, role: Role = "document") -> list[NDArray[np.float32]]: ...


def in_8_bits(vectors: NDArray[np.float32]) -> TokenVectors:
    """Quantise ``(n, d)`` to 127 steps of each row's largest number; cosines change by about .001."""
    scale = np.abs(vectors).max(axis=1, keepdims=True) / np.float32(127)
    return TokenVectors(np.rint(vectors / scale).astype(np.int8), scale)


def text_key(text: str, model: str = "") -> bytes:
    """Return the key of a text in memory and on disk; ``model``: a key of the model, empty for the packaged one."""
    return blake2b(text.encode(), digest_size=16, key=model.encode()[:64]).digest()


def _packed(vectors: TokenVectors) -> tuple[bytes, bytes, int]:
    scale, numbers = vectors.scale.tobytes(), vectors.values.tobytes()
    return scale, numbers, zlib.crc32(scale + numbers)


def _unpacked(scale: bytes, numbers: bytes, checksum: int) -> TokenVectors:
    if zlib.crc32(scale + numbers) != checksum:
        raise sqlite3.DatabaseError("wrong checksum")
    scales, values = np.frombuffer(scale, np.float32), np.frombuffer(numbers, np.int8)
    return TokenVectors(values.reshape(len(scales), values.size // max(1, len(scales))), scales[:, np.newaxis])


class TokenFile:
    """The file ``path``, created when the first version is added. Threads and processes may share it.

    A version is a set of texts that are added and removed together: those of one version of a source. Every method
    raises `StoreError` if the disk is full or the file cannot be read or written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None
        self._lock = RLock()

    def versions(self) -> set[str]:
        """Return the complete versions in the file."""
        with self._database() as database:
            return set() if database is None else {key for (key,) in database.execute("SELECT key FROM versions")}

    def add(self, version: str, vectors: Mapping[bytes, TokenVectors]) -> None:
        """Add a version, in one transaction; its texts by `text_key`."""
        with self._database(make=True) as database:
            assert database is not None
            database.execute("INSERT OR IGNORE INTO versions VALUES (?)", [version])
            rows = [(version, key, *_packed(one)) for key, one in vectors.items()]
            database.executemany("INSERT OR REPLACE INTO tokens VALUES (?, ?, ?, ?, ?)", rows)

    def remove(self, versions: Collection[str]) -> None:
        """Remove versions and overwrite their content."""
        with self._database() as database:
            if database is not None:
                for table, column in (("tokens", "version"), ("versions", "key")):
                    database.executemany(f"DELETE FROM {table} WHERE {column} = ?", [(key,) for key in versions])

    def get(self, keys: Sequence[bytes]) -> dict[bytes, TokenVectors]:
        """Read the vectors of the texts that the file contains."""
        found: dict[bytes, TokenVectors] = {}
        with self._database() as database:
            for start in range(0, len(keys) if database is not None else 0, AT_ONCE):
                some = keys[start : start + AT_ONCE]
                marks = ", ".join("?" * len(some))
                assert database is not None
                rows = database.execute(
                    f"SELECT text, scale, numbers, checksum FROM tokens WHERE text IN ({marks})", some
                )
                found |= {text: _unpacked(*packed) for text, *packed in rows}
        return found

    def delete(self) -> None:
        """Delete the file."""
        with self._lock:
            self.close()
            self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file; the next call opens it again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    @contextmanager
    def _database(self, *, make: bool = False) -> Iterator[sqlite3.Connection | None]:
        """Provide a transaction; None if the file does not exist and should not be created."""
        with self._lock:
            try:
                if self._connection is None and (make or self.path.exists()):
                    self._connection = self._opened()
                if self._connection is None:
                    yield None
                    return
                with self._connection:
                    yield self._connection
            except sqlite3.OperationalError as error:  # locked, full, not readable: the file itself may be valid
                raise StoreError(
                    f"{str(self.path)!r} cannot be used: {error}; free some space, or try again"
                ) from error
            except sqlite3.DatabaseError as error:
                self.delete()
                raise StoreError(f"{str(self.path)!r} was damaged ({error}) and has been deleted; try again") from error
            except OSError as error:
                raise StoreError(f"{str(self.path)!r} cannot be written: {error.strerror}; make it writable") from error

    def _opened(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self.path, timeout=5, check_same_thread=False)
        try:
            [found] = connection.execute("PRAGMA user_version").fetchone()
            if found != FORMAT:
                if found or connection.execute("SELECT count(*) FROM sqlite_master").fetchone() != (0,):
                    raise sqlite3.DatabaseError("of another format")
                connection.execute("PRAGMA auto_vacuum = FULL")
                connection.executescript(f"BEGIN; {TABLES} PRAGMA user_version = {FORMAT}; COMMIT")
            connection.execute("PRAGMA secure_delete = ON")
        except sqlite3.Error:
            connection.close()
            raise
        return connection


class TokenVectorKeeper:
    """Adds vectors of new chunks to the file, and removes those of deleted ones.

    The versions of the sources in the store are compared with those in the file. A moved or renamed source keeps its
    vectors. After a crash, the next call completes the work.
    """

    def __init__(self, file: TokenFile, embedders: Sequence[TokenEmbedder]) -> None:
        self.file = file
        self._embedders = embedders

    def follow(self, store: LibraryStore) -> None:
        """Update the file after a write to the store.

        The file has each source completely or not at all.

        Raises:
            StoreError: The store or the file cannot be read or written.
            ModelError: The token vectors cannot be computed.
        """
        models = {embedder.token_key: embedder for embedder in self._embedders}
        stored = {
            _version(info, model): (info, model) for info in store.sources() if info.source_hash for model in models
        }
        there = self.file.versions()
        self.file.remove(there - stored.keys())
        for version in sorted(stored.keys() - there):
            info, model = stored[version]
            self._add(store, version, info, model, models[model])

    def discard(self) -> None:
        """Delete the file, because its vectors would no longer be updated."""
        self.file.delete()

    def _add(self, store: LibraryStore, version: str, info: SourceInfo, model: str, embedder: TokenEmbedder) -> None:
        where = {"$and": [{"collection": info.collection}, {"source_file": info.source_file}]}
        chunks = list(store.scan(where, batch=CHUNKS_AT_ONCE))
        texts = list(dict.fromkeys(searched_text(one.content, one.metadata) for one in chunks))
        vectors = {}
        for start in range(0, len(texts), CHUNKS_AT_ONCE):
            some = texts[start : start + CHUNKS_AT_ONCE]
            for text, rows in zip(some, embedder.token_vectors(some), strict=True):
                vectors[text_key(text, model)] = in_8_bits(rows)
        if len(chunks) == info.chunks:  # otherwise another process is writing it, and will update the file
            self.file.add(version, vectors)


def _version(info: SourceInfo, model: str) -> str:
    return f"{info.source_hash} {info.chunks} {model}".rstrip()
