"""What `repair` does about damage in the database: what follows from the rest is made again, what is sound is kept."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from ragistry.errors import StoreCorruptError, StoreError
from ragistry.stores import mending
from ragistry.stores.local import LocalStore
from ragistry.stores.row_checksums import vectors_checksum
from ragistry.types import EmbeddedChunk, EmbedderFingerprint
from tests.stores.local_stores import ALL, check, ids_of, put, truth_of, vector_of, version_of
from tests.stores.test_local_integrity import CHUNK_CHANGES, LOST, SOURCE_CHANGES, change

A, B = version_of("a.md", 1), version_of("b.md", 1, 4)
LOOSE = [EmbeddedChunk(f"loose {number}", {"number": number}, vector_of(str(number))) for number in range(5)]
LOOSE_IDS = [f"l{number}" for number in range(5)]
FINGERPRINT = EmbedderFingerprint("test", "one", "", 8)
OTHER = EmbedderFingerprint("test", "other", "", 8)


@pytest.fixture(scope="module")
def base(quick_folder: Path) -> Path:
    folder = quick_folder / "base"
    with closing(LocalStore(folder)) as store:
        store.use_embedder(FINGERPRINT)
        put(store, A)
        put(store, B)
        store.add_documents(LOOSE, ids=LOOSE_IDS)
        store.begin_reembedding(OTHER)
        store.put_reembedded(1, [vector_of(chunk.text) for chunk in A], OTHER)
        assert len(store.search_text("source")) == 7
    return folder


@pytest.fixture
def copy(base: Path, quick_path: Path) -> Path:
    return Path(shutil.copytree(base, quick_path / "local"))


def check_without_loose(store: LocalStore) -> None:
    """The sources are as they were, and every loose chunk that is there is."""
    for document in store.scan({"number": {"$gte": 0}}):
        assert (document.content, document.id) == (f"loose {document.metadata['number']}", f"l{document.id[1:]}")
    store.delete(ids=LOOSE_IDS)
    check(store, truth_of(A, B))


RECORDS = {
    "state": "nothing is lost",
    "generation": "nothing is lost",
    "next_key": "nothing is lost",
    "dimension": "nothing is lost",
    "store": "nothing is lost",
    "version": "nothing is lost",
    "lexical_outbox": "nothing is lost",
    "embedder": "which embedder the vectors are of",
    "next_embedder": "`ragistry reembed` starts anew",
}


@pytest.mark.parametrize("name", RECORDS)
@pytest.mark.parametrize("garbled", ["key, value, 5", "key, '5', checksum", "key, '1', checksum"])
def test_a_damaged_record_of_the_store_is_made_again_or_its_remedy_said(copy: Path, name: str, garbled: str) -> None:
    change(copy, f"REPLACE INTO meta SELECT {garbled} FROM meta WHERE key = ?", name)
    with closing(LocalStore(copy)) as store:
        assert any(f"the record {name!r} is not what was written" in line for line in store.verify())
        line = store.repair()[0]
        assert f"the record {name!r}" in line
        assert RECORDS[name] in line
        assert store.verify() == []
    with closing(LocalStore(copy)) as store:
        put(store, version_of("new.md", 1))
        store.replace_source("c", "new.md", [])
        assert store.count() == 12
        check_without_loose(store)


def rename_record(folder: Path, name: str, to: str, garbled: str = "value") -> None:
    """As a disk does that garbles a key; SQL would not, see `database_file.META_IS_CHECKED`."""
    change(folder, f"INSERT INTO meta SELECT ?, {garbled}, checksum FROM meta WHERE key = ?", to, name)
    change(folder, "DELETE FROM meta WHERE key = ?", name)


def records(folder: Path) -> dict[str, str]:
    with closing(sqlite3.connect(folder / "store.db")) as connection:
        return dict(connection.execute("SELECT key, value FROM meta"))


def test_every_record_that_a_store_writes_is_one_that_repair_knows(copy: Path) -> None:
    assert records(copy).keys() <= set(mending.RECORDS)


@pytest.mark.parametrize("name", sorted(RECORDS.keys() - {"version"}))
def test_a_record_of_which_only_the_name_is_damaged_is_as_it_was(copy: Path, name: str) -> None:
    was = records(copy)
    rename_record(copy, name, "other")
    with closing(LocalStore(copy)) as store:
        assert "the record 'other' is not what was written; it was made again: nothing is lost" in store.repair()[0]
        assert store.verify() == []
    assert {key: value for key, value in records(copy).items() if key in ("embedder", "next_embedder", "store")} == {
        key: value for key, value in was.items() if key in ("embedder", "next_embedder", "store")
    }


def test_a_record_that_nothing_proves_may_have_been_that_of_the_embedder(copy: Path) -> None:
    rename_record(copy, "embedder", "other", "'x'")
    with closing(LocalStore(copy)) as store:
        assert "use that with which the store was filled" in store.repair()[0]
        check_without_loose(store)


@pytest.mark.parametrize("name", ["state", "generation", "next_key", "dimension"])
def test_a_record_that_is_gone_is_made_again(copy: Path, name: str) -> None:
    change(copy, "DELETE FROM meta WHERE key = ?", name)
    with closing(LocalStore(copy)) as store:
        assert f"the record {name!r} is gone" in store.repair()[0]
        check_without_loose(store)


def test_a_damaged_source_hides_no_dimension(copy: Path) -> None:
    change(copy, "DELETE FROM meta WHERE key = 'dimension'")
    change(copy, "UPDATE sources SET chunks = 69 WHERE id = 3")
    with closing(LocalStore(copy)) as store:
        assert len([line for line in store.repair() if "nothing is lost" in line]) == 2
        check_without_loose(store)


def test_chunks_that_come_after_a_repair_get_keys_of_their_own(copy: Path) -> None:
    change(copy, "REPLACE INTO meta SELECT key, '1', checksum FROM meta WHERE key = 'next_key'")
    with closing(LocalStore(copy)) as store:
        store.repair()
        put(store, version_of("new.md", 1))
        store.delete(ids=LOOSE_IDS)
        check(store, truth_of(A, B, version_of("new.md", 1)))


def spoil(folder: Path, old: bytes, new: bytes) -> None:
    """Bytes of the database's file in the place of others."""
    content = (folder / "store.db").read_bytes()
    assert old in content
    (folder / "store.db").write_bytes(content.replace(old, new))


def test_bytes_that_are_no_text_are_told_of_their_source_which_is_ingested_again(copy: Path) -> None:
    spoil(copy, b"amdv1 part1", b"amdv1 p\xf8rt1")
    with closing(LocalStore(copy)) as store:
        [line] = store.verify()
        assert "the text of chunk" in line
        [line] = store.repair()
        assert "source 'a.md' of collection 'c'" in line
        assert line.count("ingest") == 2, line
        assert {info.source_file: info.source_hash for info in store.sources("c")} == {"a.md": "", "b.md": "hash 1"}
        assert sorted(store.vectors_of_texts([chunk.text for chunk in A])) == [A[0].text, A[2].text]
        with pytest.raises(StoreCorruptError):
            store.search(ALL)
        put(store, A)
        check_without_loose(store)


@pytest.mark.parametrize("new", [b"amdv1 pxrt1", b"amdv1 p\xf8rt1"])
def test_a_damaged_text_hides_no_other_from_a_search_by_words(copy: Path, new: bytes) -> None:
    spoil(copy, b"amdv1 part1", new)
    shutil.rmtree(copy / "lexical")
    with closing(LocalStore(copy)) as store:
        assert sorted(document.id for document in store.search_text("source")) == ids_of([A[0], A[2], *B])
        store.repair()
        put(store, A)
        assert sorted(document.id for document in store.search_text("source")) == ids_of([*A, *B])


@pytest.mark.parametrize(("old", "new"), [(b"loose 3", b"lopse 3"), (b"loose 3", b"l\xf8ose 3")])
def test_a_damaged_loose_chunk_is_taken_out_and_the_others_stay(copy: Path, old: bytes, new: bytes) -> None:
    spoil(copy, old, new)
    with closing(LocalStore(copy)) as store:
        [line] = store.repair()
        assert "1 of 5 chunks (['l3'])" in line
        assert "add them again" in line
        assert store.verify() == []
        store.add_documents([LOOSE[3]], ids=["l3"])
        assert store.delete(ids=["l1"]) == 1
        assert sorted(document.id for document in store.scan({"number": {"$gte": 0}})) == ["l0", "l2", "l3", "l4"]
        [found] = store.search(LOOSE[4].embedding, 1)
        assert found.id == "l4"
        check_without_loose(store)


def test_loose_chunks_whose_vectors_are_none_of_this_store_are_taken_out(copy: Path) -> None:
    with closing(sqlite3.connect(copy / "store.db")) as connection, connection:
        [data] = connection.execute("SELECT data FROM vectors WHERE source = 3").fetchone()
        changed = np.frombuffer(data, dtype=np.float32).copy()
        changed[0] = 9
        # As in a store that was brought to this version when they were damaged already.
        row = (changed.tobytes(), vectors_checksum(3, changed.tobytes()))
        connection.execute("UPDATE vectors SET data = ?, checksum = ? WHERE source = 3", row)
    with closing(LocalStore(copy)) as store:
        [line] = store.repair()
        assert "1 of 5 chunks (['l0'])" in line
        assert store.verify() == []
        assert len(store.get(LOOSE_IDS)) == 4
        check_without_loose(store)


DERIVED = {
    "page": "UPDATE chunks SET page = 7 WHERE id = 'l3'",
    "section": "UPDATE chunks SET section = 'x' WHERE id = 'l3'",
    "text_hash": "UPDATE chunks SET text_hash = 7 WHERE id = 'l3'",
    "of a source": "UPDATE chunks SET text_hash = 7, page = 9 WHERE key = 2",
}


@pytest.mark.parametrize("what", DERIVED)
def test_what_follows_from_the_rest_of_a_chunk_is_made_again(copy: Path, what: str) -> None:
    change(copy, DERIVED[what])
    with closing(LocalStore(copy)) as store:
        [line] = store.repair()
        assert "it was made again: nothing is lost" in line
        assert store.verify() == []
        assert len(store.get(LOOSE_IDS)) == 5
        assert [info.source_hash for info in store.sources()] == ["hash 1", "hash 1"]
        check_without_loose(store)
    assert list(copy.glob("rescued-*")) == []


def test_a_chunk_that_came_to_another_source_leaves_its_text_in_a_file(copy: Path) -> None:
    change(copy, "UPDATE chunks SET source = 1 WHERE id = 'l3'")
    with closing(LocalStore(copy)) as store:
        assert len(store.repair()) == 2
        assert [row["text"] for row in rescued(copy)] == ["loose 3"]
        assert store.verify() == []
        check_without_loose(store)


def rescued(folder: Path) -> list[dict[str, object]]:
    [file] = folder.glob("rescued-*.jsonl")
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_loose_texts_whose_vectors_are_lost_are_kept_in_a_file(copy: Path) -> None:
    change(copy, "DELETE FROM vectors WHERE source = 3")
    with closing(LocalStore(copy)) as store:
        [line] = store.repair()
        assert "rescued-" in line
        assert "out of which no deletion takes them: remove that file" in line
        assert rescued(copy) == [
            {"id": id, "text": chunk.text, "metadata": chunk.metadata}
            for id, chunk in zip(LOOSE_IDS, LOOSE, strict=True)
        ]
        check(store, truth_of(A, B))


@pytest.mark.parametrize("what", LOST)
def test_what_is_damaged_of_a_source_stays_until_it_is_ingested_again(copy: Path, what: str) -> None:
    change(copy, CHUNK_CHANGES[what][0])
    with closing(LocalStore(copy)) as store:
        store.repair()
        assert store.count() == 12
        assert list(copy.glob("rescued-*")) == []


@pytest.mark.parametrize("what", sorted(SOURCE_CHANGES.keys() - {"common"}))
def test_a_record_of_a_source_that_its_chunks_prove_is_made_again(copy: Path, what: str) -> None:
    change(copy, SOURCE_CHANGES[what][0])
    with closing(LocalStore(copy)) as store:
        with pytest.raises(StoreCorruptError, match="what is recorded of source"):
            store.sources()
        [line] = store.repair()
        assert "it was made again: nothing is lost" in line
        assert store.count() == 12
        check_without_loose(store)


def test_a_source_of_a_collection_called_none_stays_in_it(copy: Path) -> None:
    chunks = version_of("n.md", 1, collection="None")
    with closing(LocalStore(copy)) as store:
        put(store, chunks)
    change(copy, "UPDATE sources SET varying = '[]' WHERE collection = 'None'")
    with closing(LocalStore(copy)) as store:
        assert "nothing is lost" in store.repair()[0]
        store.delete(ids=LOOSE_IDS)
        check(store, truth_of(A, B, chunks))


def test_a_record_of_loose_chunks_is_made_again(copy: Path) -> None:
    change(copy, "UPDATE sources SET first = 2, varying = '[]' WHERE id = 3")
    with closing(LocalStore(copy)) as store:
        [line] = store.repair()
        assert "group 3 of chunks without a source" in line
        assert store.verify() == []
        assert len(store.get(LOOSE_IDS)) == 5


@pytest.mark.parametrize("damage", [SOURCE_CHANGES["common"][0], "UPDATE sources SET common = '{' WHERE id = 1"])
def test_a_source_that_nothing_proves_is_taken_out_and_its_texts_kept_in_a_file(copy: Path, damage: str) -> None:
    change(copy, damage)
    change(copy, "UPDATE chunks SET text = 'other' WHERE key = 2")
    with closing(LocalStore(copy)) as store:
        [line] = store.repair()
        assert "ingest the source again" in line
        assert [row["text"] for row in rescued(copy)] == [A[0].text, None, A[2].text]
        assert [info.source_file for info in store.sources("c")] == ["b.md"]
        put(store, A)
        check_without_loose(store)


@pytest.mark.skipif(os.name == "nt", reason="rights are other ones there")
def test_a_file_of_texts_is_for_those_who_may_read_the_database(copy: Path) -> None:
    change(copy, "DELETE FROM vectors WHERE source = 3")
    (copy / "store.db").chmod(0o600)
    with closing(LocalStore(copy)) as store:
        store.repair()
    [file] = copy.glob("rescued-*")
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_repair_that_is_begun_again_writes_no_text_twice(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change(copy, SOURCE_CHANGES["common"][0])
    change(copy, "UPDATE sources SET common = '{' WHERE id = 2")
    fsync, calls = os.fsync, []

    def full_at_the_second(file: int) -> None:
        calls.append(file)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        fsync(file)

    with closing(LocalStore(copy)) as store:
        with monkeypatch.context() as patch:
            patch.setattr("ragistry.stores.mending.os.fsync", full_at_the_second)
            with pytest.raises(StoreError, match="nothing was changed"):
                store.repair()
        lines = store.repair()
    files = list(copy.glob("rescued-*"))
    assert len(files) == 2
    assert all(any(repr(str(file)) in line for line in lines) for file in files)


def test_nothing_is_taken_out_where_no_file_can_be_written(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change(copy, SOURCE_CHANGES["common"][0])

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with closing(LocalStore(copy)) as store:
        monkeypatch.setattr("ragistry.stores.mending.os.fsync", full)
        with pytest.raises(StoreError, match="nothing was changed: cannot write"):
            store.repair()
        assert list(copy.glob("rescued-*")) == []
        with closing(sqlite3.connect(copy / "store.db")) as connection:
            assert connection.execute("SELECT count(*) FROM chunks").fetchone() == (12,)


def lose_entries(folder: Path, index: str) -> None:
    """As a disk that loses a write: an index of SQLite's knows nothing of what is in its table."""
    with closing(sqlite3.connect(folder / "store.db", isolation_level=None)) as connection:
        [sql] = connection.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (index,)).fetchone()
        for written in (f"{sql} WHERE key < 0", sql):
            connection.execute("PRAGMA writable_schema = ON")
            connection.execute("UPDATE sqlite_schema SET sql = ? WHERE name = ?", (written, index))
            connection.execute("PRAGMA writable_schema = RESET")
            if written != sql:
                connection.execute(f"REINDEX {index}")


def test_an_index_of_sqlite_that_disagrees_with_its_table_is_made_again(copy: Path) -> None:
    lose_entries(copy, "chunks_by_source")
    with closing(LocalStore(copy)) as store:
        assert any("missing from index chunks_by_source" in line for line in store.verify())
        [line] = store.repair()
        assert line.endswith("it was made again: nothing is lost")
        assert store.verify() == []
        check_without_loose(store)


@pytest.mark.parametrize("damage", ["DELETE FROM sources WHERE id = 3", "UPDATE sources SET id = 33 WHERE id = 3"])
def test_what_belongs_to_a_source_that_is_gone_is_taken_out_and_its_texts_kept_in_a_file(
    copy: Path, damage: str
) -> None:
    change(copy, damage)
    with closing(LocalStore(copy)) as store:
        assert "what is recorded of source number 3 is gone; what belonged to it was taken out" in store.repair()[0]
        assert [row["text"] for row in rescued(copy)] == [chunk.text for chunk in LOOSE]
        assert store.verify() == []
        check(store, truth_of(A, B))


def test_a_chunk_that_got_lost_is_in_no_index_once_its_source_is_ingested_again(copy: Path) -> None:
    with closing(LocalStore(copy)) as store:
        assert len(store.search_text("amdv1")) == 3
    change(copy, "DELETE FROM chunks WHERE key = 2")
    with closing(LocalStore(copy)) as store:
        store.repair()
        put(store, A)
        assert store.verify() == []
        check_without_loose(store)


def test_verify_and_repair_say_what_is_wrong_with_a_file_that_sqlite_finds_broken(copy: Path) -> None:
    content = bytearray((copy / "store.db").read_bytes())
    content[16384 * 3 : 16384 * 5] = bytes(16384 * 2)
    (copy / "store.db").write_bytes(content)
    with closing(LocalStore(copy)) as store:
        assert store.verify() != []
        lines = store.repair()
        assert any("put the file back from a backup" in line for line in lines)
        assert all(line.count("backup") <= 1 for line in lines), lines


def test_where_a_chunk_got_lost_the_index_of_words_is_made_again_once(copy: Path) -> None:
    with closing(sqlite3.connect(copy / "store.db")) as connection, connection:
        connection.execute("DELETE FROM chunks WHERE key = (SELECT first FROM sources WHERE source_file = 'a.md')")
    shutil.rmtree(copy / "lexical")
    made = []
    for number in range(3):
        with closing(LocalStore(copy)) as store:
            put(store, version_of("new.md", number + 1))
            assert {d.metadata["source_file"] for d in store.search_text("source", 50)} >= {"b.md", "new.md"}
            made.append((copy / "lexical" / "analysis.json").stat().st_mtime_ns)
    assert len(set(made)) == 1
