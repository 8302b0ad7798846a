"""What `repair` does about damage in the database: what follows from the rest is made again, what is sound is kept."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ragistry.errors import StoreCorruptError, StoreError
from ragistry.stores.local import LocalStore
from ragistry.types import EmbeddedChunk, EmbedderFingerprint
from tests.stores.local_stores import ALL, check, ids_of, put, truth_of, vector_of, version_of
from tests.stores.test_local_integrity import CHUNK_CHANGES, SOURCE_CHANGES, change

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
    "lexical_outbox": "nothing is lost",
    "embedder": "which embedder the vectors are of",
    "next_embedder": "`ragistry reembed` starts anew",
}


@pytest.mark.parametrize("name", RECORDS)
def test_a_damaged_record_of_the_store_is_made_again_or_its_remedy_said(copy: Path, name: str) -> None:
    change(copy, "REPLACE INTO meta SELECT key, '5', checksum FROM meta WHERE key = ?", name)
    with closing(LocalStore(copy)) as store:
        assert any(f"the record {name!r} is not what was written" in line for line in store.verify())
        line = store.repair()[0]
        assert f"the record {name!r}" in line
        assert RECORDS[name] in line
        assert store.verify() == []
        put(store, version_of("new.md", 1))
        store.replace_source("c", "new.md", [])
        assert store.count() == 12
        check_without_loose(store)


@pytest.mark.parametrize("name", ["state", "generation", "next_key", "dimension"])
def test_a_record_that_is_gone_is_made_again(copy: Path, name: str) -> None:
    change(copy, "DELETE FROM meta WHERE key = ?", name)
    with closing(LocalStore(copy)) as store:
        assert f"the record {name!r} is gone" in store.repair()[0]
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


def rescued(folder: Path) -> list[dict[str, object]]:
    [file] = folder.glob("rescued-*.jsonl")
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_loose_texts_whose_vectors_are_lost_are_kept_in_a_file(copy: Path) -> None:
    change(copy, "DELETE FROM vectors WHERE source = 3")
    with closing(LocalStore(copy)) as store:
        [line] = store.repair()
        assert "rescued-" in line
        assert rescued(copy) == [
            {"id": id, "text": chunk.text, "metadata": chunk.metadata}
            for id, chunk in zip(LOOSE_IDS, LOOSE, strict=True)
        ]
        check(store, truth_of(A, B))


@pytest.mark.parametrize("what", [*CHUNK_CHANGES])
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


def test_verify_and_repair_say_what_is_wrong_with_a_file_that_sqlite_finds_broken(copy: Path) -> None:
    content = bytearray((copy / "store.db").read_bytes())
    content[16384 * 3 : 16384 * 5] = bytes(16384 * 2)
    (copy / "store.db").write_bytes(content)
    with closing(LocalStore(copy)) as store:
        assert store.verify() != []
        lines = store.repair()
        assert any("put the file back from a backup" in line for line in lines)
        assert all(line.count("backup") <= 1 for line in lines), lines
