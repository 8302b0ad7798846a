"""The two indexes of a `LocalStore`: words in tantivy, vectors in ChromaDB; each is opened when it is first needed."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragistry.errors import StoreCorruptError
from ragistry.stores.database import Database
from ragistry.stores.row_checksums import checked_vectors, text_hash, undecoded
from ragistry.stores.upkeep import Upkeep

if TYPE_CHECKING:
    from ragistry.protocols import Vectors
    from ragistry.stores.lexical import LexicalIndex
    from ragistry.stores.vector_index import VectorIndex


class Indexes:
    """What can be made again from the database. Whatever writes is called by the holder of the store's lock."""

    def __init__(self, database: Database, folder: Path, vector_folder: Path, language: str) -> None:
        self.lexical = Upkeep["LexicalIndex"](
            database,
            folder / "lexical",
            "lexical_outbox",
            partial(_open_lexical, language=language),
            partial(_build_lexical, language=language),
            _texts,
        )
        self.vectors = Upkeep["VectorIndex"](
            database, vector_folder, "vector_outbox", _open_vectors, _build_vectors, _vectors, of_vectors=True
        )

    def problems(self) -> list[str]:
        """What is wrong with the indexes, one line each."""
        return [f"{keeper.folder.name}: {problem}" for keeper in self._keepers() if (problem := _problem(keeper))]

    def repair(self) -> list[str]:
        """Make again what is broken, or keeps what was deleted, and return what was wrong."""
        return [
            f"{keeper.folder.name}: {problem}{_rebuilt(keeper, problem)}"
            for keeper in self._keepers()
            if (problem := _problem(keeper) or keeper.remains())
        ]

    def discard(self) -> None:
        """Remove both indexes, and all that they say of what was stored."""
        for keeper in self._keepers():
            keeper.discard()

    def close(self) -> None:
        """Let go of the indexes' files."""
        for keeper in self._keepers():
            keeper.close()

    def _keepers(self) -> list[Upkeep[Any]]:
        return [self.lexical, self.vectors]


def _problem(keeper: Upkeep[Any]) -> str:
    try:
        return keeper.problem()
    except StoreCorruptError:
        return "not compared with the database, which is damaged"


def _rebuilt(keeper: Upkeep[Any], problem: str) -> str:
    """Make an index again; why it cannot be, where the database is damaged."""
    try:
        keeper.rebuild(problem)
    except StoreCorruptError as error:
        return f"; it cannot be made again: {error}"
    return ""


def _open_lexical(folder: Path, language: str) -> LexicalIndex:
    from ragistry.stores.lexical import LexicalIndex

    return LexicalIndex(folder, language=language)


def _build_lexical(folder: Path, pairs: Iterable[tuple[int, str]], language: str) -> None:
    from ragistry.stores.lexical import LexicalIndex

    LexicalIndex.build(folder, pairs, language=language)


def _build_vectors(folder: Path, pairs: Iterable[tuple[int, Vectors]]) -> None:
    from ragistry.stores.vector_index import VectorIndex

    VectorIndex.build(folder, pairs)


def _open_vectors(folder: Path) -> VectorIndex:
    from ragistry.stores.vector_index import VectorIndex

    return VectorIndex(folder)


def _texts(connection: sqlite3.Connection, keys: list[int] | None) -> Iterable[tuple[int, str]]:
    if keys is None:
        rows = connection.execute("SELECT key, text, text_hash FROM chunks ORDER BY key")
    else:
        rows = connection.execute(
            "SELECT key, text, text_hash FROM chunks WHERE key IN (SELECT value FROM json_each(?))", (json.dumps(keys),)
        )
    with undecoded(connection):
        for key, text, hash in rows:  # the words of all others are to be found, whatever became of one
            yield key, text if text_hash(text) == hash else ""


def _vectors(connection: sqlite3.Connection, keys: list[int] | None) -> Iterable[tuple[int, Vectors]]:
    wanted = None if keys is None else set(keys)
    rows = connection.execute(
        "SELECT s.first, s.id, s.chunks, v.data, v.checksum FROM sources AS s JOIN vectors AS v ON v.source = s.id"
        + ("" if keys is None else " WHERE s.first <= ? AND s.first + s.chunks > ?")
        + " ORDER BY s.first",
        () if not keys else (max(keys), min(keys)),
    )
    for first, *stored in rows:
        for key, vector in enumerate(checked_vectors(*stored), first):
            if wanted is None or key in wanted:
                yield key, vector
