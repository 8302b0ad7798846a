"""A store of the version before is brought to this one when it is opened, wholly or not at all."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock

from ragistry.errors import StoreError, StoreLockedError
from ragistry.stores import database
from ragistry.stores.database_migration import NONE
from ragistry.stores.local import LocalStore
from ragistry.types import EmbeddedChunk
from ragistry.utils.fingerprints import to_json
from tests.stores.local_stores import check, held, ids_of, put, same, truth_of, version_of
from tests.stores.test_local_integrity import FINGERPRINT

A, B, NEW = version_of("a.md", 1), version_of("b.md", 1, 4), version_of("new.md", 1)
TRUTH = truth_of(A, B)
SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE sources (
    id INTEGER PRIMARY KEY AUTOINCREMENT, collection TEXT, source_file TEXT, first INTEGER NOT NULL,
    chunks INTEGER NOT NULL, common TEXT NOT NULL, varying TEXT NOT NULL, whole INTEGER NOT NULL,
    version INTEGER NOT NULL, UNIQUE (collection, source_file)
) STRICT;
CREATE TABLE chunks (
    key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,
    source INTEGER NOT NULL REFERENCES sources (id) ON DELETE CASCADE,
    text_hash INTEGER NOT NULL, text TEXT NOT NULL, own TEXT NOT NULL, page ANY, section ANY, has_code ANY
) STRICT;
CREATE INDEX chunks_by_source ON chunks (source);
CREATE INDEX chunks_by_text ON chunks (text_hash);
CREATE INDEX chunks_by_page ON chunks (page) WHERE page IS NOT NULL;
CREATE INDEX chunks_by_section ON chunks (section) WHERE section IS NOT NULL;
CREATE INDEX chunks_by_code ON chunks (has_code) WHERE has_code IS NOT NULL;
CREATE TABLE vectors (
    source INTEGER PRIMARY KEY REFERENCES sources (id) ON DELETE CASCADE, data BLOB NOT NULL
) STRICT;
CREATE TABLE next_vectors (
    source INTEGER PRIMARY KEY REFERENCES sources (id) ON DELETE CASCADE, data BLOB NOT NULL
) STRICT;
CREATE TABLE lexical_outbox (key INTEGER PRIMARY KEY) STRICT;
CREATE TABLE vector_outbox (key INTEGER PRIMARY KEY) STRICT;
"""


def units(chunks: Sequence[EmbeddedChunk]) -> bytes:
    vectors = np.array([chunk.embedding for chunk in chunks], dtype=np.float32)
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32).tobytes()


def former_store(folder: Path, *sources: list[EmbeddedChunk]) -> Path:
    """A store as version 1 wrote it, closed."""
    folder.mkdir()
    first = 1
    with closing(sqlite3.connect(folder / "store.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA page_size=16384")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.executescript(SCHEMA)
        for number, chunks in enumerate(sources, 1):
            common = {key: value for key, value in chunks[0].metadata.items() if key not in ("chunk_index", "page")}
            row = (number, common["collection"], common["source_file"], first, len(chunks), json.dumps(common))
            connection.execute(
                "INSERT INTO sources VALUES (?,?,?,?,?,?,?,1,?)", (*row, '["chunk_index", "page"]', number)
            )
            for key, (chunk, id) in enumerate(
                zip(chunks, [ids_of([chunk])[0] for chunk in chunks], strict=True), first
            ):
                own = {key: chunk.metadata[key] for key in ("chunk_index", "page")}
                hash = int.from_bytes(blake2b(chunk.text.encode(), digest_size=8).digest(), "little", signed=True)
                connection.execute(
                    "INSERT INTO chunks VALUES (?,?,?,?,?,?,?,NULL,NULL)",
                    (key, id, number, hash, chunk.text, json.dumps(own), own["page"]),
                )
                connection.execute("INSERT INTO lexical_outbox VALUES (?)", (key,))
            connection.execute("INSERT INTO vectors VALUES (?,?)", (number, units(chunks)))
            first += len(chunks)
        connection.execute("INSERT INTO next_vectors SELECT * FROM vectors WHERE source = 1")
        meta = {"version": 1, "store": "f00", "state": len(sources), "generation": 0, "next_key": first, "dimension": 8}
        connection.executemany("INSERT INTO meta VALUES (?,?)", [(key, str(value)) for key, value in meta.items()])
        connection.execute("INSERT INTO meta VALUES ('next_embedder', ?)", (to_json(FINGERPRINT),))
    (folder / "store.version").write_text("1\n")
    return folder


def triggers(folder: Path) -> list[str]:
    with closing(sqlite3.connect(folder / "store.db")) as connection:
        return [
            " ".join(sql.split())
            for (sql,) in connection.execute("SELECT sql FROM sqlite_schema WHERE type = 'trigger'")
        ]


def columns(folder: Path) -> dict[str, list[tuple[str, str]]]:
    with closing(sqlite3.connect(folder / "store.db")) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return {name: [row[1:3] for row in connection.execute(f"PRAGMA table_info({name})")] for name in tables}


def test_a_store_of_the_version_before_is_brought_to_this_one(quick_path: Path) -> None:
    folder = former_store(quick_path / "local", A, B)
    with closing(LocalStore(folder)) as store:
        check(store, TRUTH)
        assert [info.source_hash for info in store.sources()] == ["hash 1", "hash 1"]
        assert len(store.vectors_of_texts([A[0].text])) == 1
        put(store, NEW)
        assert store.begin_reembedding(FINGERPRINT) == [2, 3]  # what was begun is gone on with
        check(store, truth_of(A, B, NEW))
    with closing(LocalStore(folder)) as store:
        check(store, truth_of(A, B, NEW))
    LocalStore(quick_path / "new").close()
    assert columns(folder) == columns(quick_path / "new")
    assert triggers(folder) == triggers(quick_path / "new") != []


def test_damage_that_the_version_before_would_have_told_is_told_still(quick_path: Path) -> None:
    folder = former_store(quick_path / "local", A, B)
    with closing(sqlite3.connect(folder / "store.db")) as connection, connection:
        connection.execute("UPDATE chunks SET text = 'other' WHERE key = 1")
        connection.execute("UPDATE chunks SET own = '{' WHERE key = 2")
        connection.execute("UPDATE vectors SET data = substr(data, 2) WHERE source = 2")
    with closing(LocalStore(folder)) as store:
        told = " ".join(store.verify())
        assert all(f"the {part}" in told for part in ("text of chunk", "metadata of chunk", "vectors of source 'b.md'"))
        assert len(store.repair()) == 2
        put(store, A)
        put(store, B)
        check(store, TRUTH)


@pytest.mark.parametrize("part", ["text", "own", "id"])
def test_a_text_that_cannot_be_decoded_is_damage_and_no_hindrance(quick_path: Path, part: str) -> None:
    folder = former_store(quick_path / "local", A, B)
    with closing(sqlite3.connect(folder / "store.db")) as connection, connection:
        connection.execute(f"UPDATE chunks SET {part} = CAST(x'22f822' AS TEXT) WHERE key = 2")
    with closing(LocalStore(folder)) as store:
        assert store.count() == 7
        [line] = store.verify()
        assert "of source 'a.md'" in line
    with closing(sqlite3.connect(folder / "store.db")) as connection:
        connection.text_factory = bytes
        [damaged] = connection.execute(f"SELECT key FROM chunks WHERE {NONE} IN (text_hash, checksum)")
    assert damaged == (2,)


def test_a_store_that_another_process_writes_stays_of_the_version_before(quick_path: Path) -> None:
    folder = former_store(quick_path / "local", A)
    with FileLock(folder / "store.lock"), pytest.raises(StoreLockedError, match="wait until it is done"):
        LocalStore(folder, lock_timeout=0)
    assert "checksum" not in dict(columns(folder)["chunks"])
    with closing(LocalStore(folder, exclusive=True)) as store:
        assert same(held(store), truth_of(A))
    assert not (folder / "store.holder").exists()


WRITES_OF_THE_VERSION_BEFORE = (
    "UPDATE meta SET value = value + 1 WHERE key = 'state'",
    "INSERT OR REPLACE INTO meta VALUES ('dimension', '8')",
    "INSERT INTO vectors VALUES (2, x'00')",
)


@pytest.mark.parametrize("write", WRITES_OF_THE_VERSION_BEFORE)
def test_a_process_of_the_version_before_that_is_still_open_changes_nothing(quick_path: Path, write: str) -> None:
    folder = former_store(quick_path / "local", A, B)
    with closing(sqlite3.connect(folder / "store.db", isolation_level=None)) as other:
        other.execute("SELECT value FROM meta").fetchone()
        with closing(LocalStore(folder)) as store:
            other.execute("BEGIN IMMEDIATE")
            other.execute("DELETE FROM sources WHERE id = 1")
            with pytest.raises(sqlite3.DatabaseError, match="of a newer version|has 3 columns"):
                other.execute(write)
            other.execute("ROLLBACK")
            assert store.verify() == []
            put(store, NEW)
            check(store, truth_of(A, B, NEW))


def test_an_index_of_another_format_is_no_damage_and_is_made_again(
    quick_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = quick_path / "local"
    with closing(LocalStore(folder)) as store:
        put(store, A)
        assert len(store.search_text("source")) == 3
    record = folder / "lexical" / "analysis.json"
    was = json.loads(record.read_text())
    record.write_text(json.dumps({key: value for key, value in was.items() if key != "block"}))
    with closing(LocalStore(folder)) as store:
        assert store.verify() == store.repair() == []
        assert len(store.search_text("source")) == 3
        assert json.loads(record.read_text()) == was
        assert store.verify() == []
    assert "making it again" not in caplog.text


def test_a_process_that_ends_in_the_middle_leaves_the_version_before(
    quick_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = former_store(quick_path / "local", A, B)

    def half(connection: sqlite3.Connection) -> None:
        add_checksums(connection)
        raise KeyboardInterrupt

    add_checksums = database.add_checksums
    with monkeypatch.context() as patch:
        patch.setattr(database, "add_checksums", half)
        with pytest.raises(KeyboardInterrupt):
            LocalStore(folder)
    assert "checksum" not in dict(columns(folder)["chunks"])
    with closing(LocalStore(folder)) as store:
        assert same(held(store), TRUTH)


@pytest.mark.skipif(os.geteuid() == 0 if hasattr(os, "geteuid") else True, reason="whoever may do all may write")
def test_a_reader_who_may_not_write_is_told_to_open_it_where_it_may_be_written(quick_path: Path) -> None:
    folder = former_store(quick_path / "local", A)
    folder.chmod(0o500)
    try:
        with pytest.raises(StoreError, match="of the version before"):
            LocalStore(folder)
    finally:
        folder.chmod(0o700)


def test_a_store_of_another_version_is_refused(quick_path: Path) -> None:
    folder = former_store(quick_path / "local", A)
    with closing(sqlite3.connect(folder / "store.db")) as connection, connection:
        connection.execute("UPDATE meta SET value = '3' WHERE key = 'version'")
    with pytest.raises(StoreError, match="has version '3', this program reads version 2"):
        LocalStore(folder)
