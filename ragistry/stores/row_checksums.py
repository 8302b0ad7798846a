"""Checksums of what a `LocalStore` keeps in its database: SQLite finds pages that are broken, not bytes that changed.

They tell of damage, not of malice: whoever can write the file can write a checksum too.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

if TYPE_CHECKING:
    from ragistry.protocols import Vectors


class Damaged(sqlite3.DatabaseError):
    """What was read is not what was written; said as if by SQLite, so that one place translates both."""


@contextmanager
def undecoded(connection: sqlite3.Connection) -> Iterator[None]:
    """Inside, bytes that are no text are read as half characters, which no checksum fits, in place of an error."""
    usual = connection.text_factory
    connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
    try:
        yield
    finally:
        connection.text_factory = usual


def text_hash(text: str) -> int:
    """64 bits by which a text is checked and looked up; whoever looks it up compares the text itself."""
    data = f"{text}".encode("utf-8", "surrogatepass")  # what is damaged may be no text
    return (len(data) & 0x7FFFFFFF) << 32 | crc32(data)


def chunk_checksum(key: int, id: str, source: int, hash: int, own: str) -> int:
    """Of a chunk all but its text, of which ``hash`` is the hash, and the columns that follow from ``own``."""
    return crc32(f"{key}\0{id}\0{source}\0{hash}\0{own}".encode("utf-8", "surrogatepass"))


def check_chunk(key: int, id: str, source: int, hash: int, own: str, checksum: int) -> None:
    """Raise `Damaged` unless all this is what was written."""
    if chunk_checksum(key, id, source, hash, own) != checksum:
        raise damaged_chunk(id)


def damaged_chunk(id: str) -> Damaged:
    """What is raised for a chunk that is not what was written."""
    return Damaged(f"chunk {id!r} is not what was written")


def row_checksum(*values: Any) -> int:
    """Of the values of a row, in their order."""
    return crc32("\0".join(map(str, values)).encode("utf-8", "surrogatepass"))


def vectors_checksum(source: int, data: bytes) -> int:
    """Of the vectors of a source: the CRC, and above it a sum that takes a sixth of its time."""
    return _sum(data) << 32 | crc32(data, source)


def checked_vectors(source: int, chunks: int, data: bytes, checksum: int) -> Vectors:
    """The vectors of a source, ``(chunks, d)``, read only; raises `Damaged` where their sum tells.

    That is of all damage but such as leaves the sum as it was, as two numbers do whose signs changed.
    """
    if checksum >> 32 != _sum(data):
        raise _damaged(source)
    return as_vectors(source, chunks, data)


def as_vectors(source: int, chunks: int, data: bytes) -> Vectors:
    """The same, of which nothing but the size is looked at: a search is not to wait for more."""
    if not _fits(data, chunks):
        raise _damaged(source)
    return np.frombuffer(data, dtype=np.float32).reshape(chunks, -1)


def _damaged(source: int) -> Damaged:
    return Damaged(f"the vectors of source number {source} are not what was written")


def intact_vectors(source: int, chunks: int, data: bytes, checksum: int) -> bool:
    """Whether the vectors of a source are what was written."""
    return _fits(data, chunks) and vectors_checksum(source, data) == checksum


def _fits(data: Any, chunks: int) -> bool:
    return isinstance(data, bytes) and chunks > 0 and len(data) > 0 and len(data) % (4 * chunks) == 0


def _sum(data: bytes) -> int:
    """31 bits; 0 of what is no array of 32-bit numbers."""
    if not isinstance(data, bytes) or len(data) % 4:
        return 0
    return int(np.frombuffer(data, dtype=np.uint32).sum(dtype=np.uint32)) >> 1
