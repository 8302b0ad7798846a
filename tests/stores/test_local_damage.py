"""Files of a store that are cut, garbled, deleted or put back: what can be made again is, the rest is said plainly."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from ragistry.errors import StoreCorruptError
from ragistry.stores.local import GRAPH_ABOVE, LocalStore
from ragistry.types import Where
from tests.stores.local_stores import ALL, Truth, check, check_searches, held, ids_of, put, same, truth_of, version_of

A, B, A2, NEW = version_of("a.md", 1), version_of("b.md", 1), version_of("a.md", 2), version_of("new.md", 1)
TRUTH = truth_of(A, B)
LARGE = truth_of(version_of("a.md", 1, 600), version_of("b.md", 1, 500))


def opened(folder: Path, *, both: bool = True) -> LocalStore:
    """A store that uses both indexes, or that of words alone."""
    return LocalStore(folder, exclusive=both, graph_above=0 if both else GRAPH_ABOVE)


def filled(folder: Path, truth: Truth) -> Path:
    with closing(opened(folder)) as store:
        for source in truth.values():
            put(store, source)
        check_searches(store, truth, every=20)
    return folder


@pytest.fixture(scope="module")
def small(quick_folder: Path) -> Path:
    return filled(quick_folder / "small", TRUTH)


@pytest.fixture(scope="module")
def large(quick_folder: Path) -> Path:
    """ChromaDB writes its index to disk every 1,000 vectors."""
    return filled(quick_folder / "large", LARGE)


@pytest.fixture
def copy(small: Path, quick_path: Path) -> Path:
    return Path(shutil.copytree(small, quick_path / "local"))


def garble(path: Path, start: float = 0.5, length: int = 64) -> None:
    content = bytearray(path.read_bytes())
    first = int(len(content) * start)
    for position in range(first, min(first + length, len(content))):
        content[position] ^= 0xA5
    path.write_bytes(content)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "deleted": Path.unlink,
    "emptied": lambda path: os.truncate(path, 0),
    "cut": lambda path: os.truncate(path, int(path.stat().st_size * 0.6)),
    "garbled": garble,
    "of another shape": lambda path: path.write_bytes(b"[" * 4_000),
}
INDEX_DAMAGE: dict[str, Callable[[Path], object]] = {
    **DAMAGE,
    "a folder": lambda path: (path.unlink(), path.mkdir()),  # as what the disk refuses to read
}
FILES = (
    "lexical/meta.json", "lexical/.managed.json", "lexical/analysis.json", "lexical/made-from.json",
    "lexical/*.term", "lexical/*.idx", "lexical/*.pos", "lexical/*.store", "lexical/*.fast", "lexical/*.fieldnorm",
    "chroma/chroma.sqlite3", "chroma/made-from.json", "chroma/checksums.json",
    "chroma/*/data_level0.bin", "chroma/*/header.bin", "chroma/*/length.bin", "chroma/*/link_lists.bin",
)  # fmt: skip
LARGE_FILES = (*(name for name in FILES if name.startswith("chroma/*/")), "chroma/*/index_metadata.pickle")
EMPTY_LOCKS = ("lexical/.tantivy-meta.lock", "lexical/.tantivy-writer.lock")


def mended(folder: Path, truth: Truth, *, every: int = 1) -> None:
    """A search is right, or `verify` says that it need not be; after `repair` all is well, now and later."""
    both = (folder / "chroma").exists()
    with closing(opened(folder, both=both)) as store:
        try:
            check_searches(store, truth, every=every)
        except AssertionError:
            assert store.verify() != []
        store.repair()
        assert store.verify() == []
    with closing(opened(folder, both=both)) as store:
        check(store, truth, every=every)


def test_every_file_of_the_indexes_is_damaged_below(small: Path, large: Path) -> None:
    for folder, patterns in ((small, FILES), (large, FILES + LARGE_FILES)):
        known = {path for pattern in (*patterns, *EMPTY_LOCKS) for path in folder.glob(pattern)}
        present = {path for name in ("lexical", "chroma") for path in (folder / name).rglob("*") if path.is_file()}
        assert present - known == set()
        assert all(any(folder.glob(pattern)) for pattern in patterns)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", INDEX_DAMAGE)
def test_a_damaged_index_is_made_again(copy: Path, name: str, damage: str) -> None:
    if name.startswith("lexical"):
        shutil.rmtree(copy / "chroma")
    for path in copy.glob(name):
        INDEX_DAMAGE[damage](path)
    mended(copy, TRUTH)


@pytest.mark.parametrize("name", ["lexical", "chroma"])
@pytest.mark.parametrize("record", ['{"mark": "a", "forgotten": null}', '{"forgotten": "x"}', "[1]", "7", "[" * 4_000])
def test_a_record_of_another_shape_is_none(copy: Path, name: str, record: str) -> None:
    (copy / name / "made-from.json").write_text(record)
    mended(copy, TRUTH)


@pytest.mark.parametrize("name", LARGE_FILES)
def test_a_garbled_index_on_disk_does_not_end_the_process(large: Path, quick_path: Path, name: str) -> None:
    folder = Path(shutil.copytree(large, quick_path / "local"))
    for path in folder.glob(name):
        garble(path, 0.3, 2_000)
    mended(folder, LARGE, every=40)


@pytest.mark.parametrize("name", ["lexical", "chroma"])
@pytest.mark.parametrize("content", ["nothing", "a file", "other files", "another store's"])
def test_an_index_folder_that_is_gone_or_another_is_made_again(
    copy: Path, name: str, content: str, tmp_path: Path
) -> None:
    shutil.rmtree(copy / name)
    if content == "a file":
        (copy / name).write_text("file")
    if content == "other files":
        (copy / name).mkdir()
        (copy / name / "notes.txt").write_text("text")
    if content == "another store's":
        other = filled(tmp_path / "other", truth_of(NEW))
        shutil.copytree(other / name, copy / name)
    mended(copy, TRUTH)


def test_damage_while_a_store_is_open_is_mended_by_repair(copy: Path) -> None:
    with closing(opened(copy)) as store:
        check(store, TRUTH)
        for path in copy.glob("lexical/*.idx"):
            garble(path)
        for path in copy.glob("chroma/*/*.bin"):
            path.unlink()
        assert len(store.verify()) == 2
        assert len(store.repair()) == 2
        check(store, TRUTH)


def test_the_folder_of_words_may_vanish_while_it_is_searched(copy: Path) -> None:
    with closing(opened(copy)) as store:
        assert store.search_text("source")
        shutil.rmtree(copy / "lexical")
        check_searches(store, TRUTH)
        shutil.rmtree(copy / "lexical")
        put(store, NEW)
        check(store, truth_of(A, B, NEW))


# The database


def another_database(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE notes (text)")


DATABASE_DAMAGE: dict[str, Callable[[Path], object]] = {
    **DAMAGE,
    "cut in its first page": lambda path: os.truncate(path, 100),
    "cut by a byte": lambda path: os.truncate(path, path.stat().st_size - 1),
    "cut by half a page": lambda path: os.truncate(path, path.stat().st_size - 8192),
    "cut by a page": lambda path: os.truncate(path, path.stat().st_size - 16384),
    "garbled head": lambda path: garble(path, 0),
    "another file": lambda path: path.write_text("This is no database. " * 5_000),
    "another database": another_database,
}
HARMLESS = ("cut by a byte", "cut by half a page")
"""If what is cut off is empty."""


def told_of(folder: Path) -> str:
    """What is said of the database of a store when it is used; whatever is not told of does no harm."""
    try:
        with closing(LocalStore(folder)) as store:
            found = held(store)
            check_searches(store, found)
            told = "; ".join(line for line in store.verify() if "store.db" in line)
            assert told or same(found, TRUTH)
    except StoreCorruptError as error:
        assert "store.db" in str(error)  # noqa: PT017
        assert "put" in str(error)  # noqa: PT017
        return str(error)
    return told


@pytest.mark.parametrize("damage", DATABASE_DAMAGE)
def test_a_damaged_database_is_said_plainly_and_never_replaced(copy: Path, damage: str) -> None:
    path = copy / "store.db"
    DATABASE_DAMAGE[damage](path)
    before = path.read_bytes() if path.exists() else None
    for _ in range(2):
        assert told_of(copy) or damage in HARMLESS
        assert (path.read_bytes() if path.exists() else None) == before


def test_garbled_text_and_vectors_are_told_by_verify(copy: Path) -> None:
    text = A[1].text.encode()
    path = copy / "store.db"
    with closing(LocalStore(copy)) as store:
        vector = store.vectors([ids_of([A[1]])[0]]).tobytes()
    content = path.read_bytes()
    assert content.count(text) == 1
    path.write_bytes(content.replace(text, text.replace(b"part1", b"part7")))
    with closing(LocalStore(copy)) as store:
        assert "text of chunk" in store.verify()[0]
        with pytest.raises(StoreCorruptError, match=r"store\.db' is damaged: chunk .* is not what was written"):
            list(store.scan())
        assert [document.content for document in store.get(ids_of([A[0], A[2]]))]
    path.write_bytes(content.replace(vector, b"\x00" * 8 + vector[8:]))
    with closing(LocalStore(copy)) as store:
        assert "vectors of source 'a.md' of collection 'c'" in store.verify()[0]
    path.write_bytes(content)
    with closing(LocalStore(copy)) as store:
        assert store.verify() == []


@pytest.mark.parametrize("where", [None, {"collection": "c"}, {"source_file": "a.md"}], ids=repr)
def test_a_search_of_vectors_that_were_cut_says_so(copy: Path, where: Where | None) -> None:
    with closing(sqlite3.connect(copy / "store.db")) as connection, connection:
        connection.execute("UPDATE vectors SET data = substr(data, 1, length(data) / 2) WHERE source = 1")
    with closing(LocalStore(copy)) as store:
        store.count()
        for _ in range(2):
            with pytest.raises(
                StoreCorruptError, match=r"the vectors of source 'a\.md' .* have 4 numbers in place of 8"
            ):
                store.search(ALL, where=where)


@pytest.mark.parametrize("page", range(1, 12))
def test_no_garbled_page_of_the_database_goes_unnoticed(copy: Path, page: int) -> None:
    path = copy / "store.db"
    content = bytearray(path.read_bytes())
    if page * 16384 >= len(content):
        pytest.skip("the database has fewer pages")
    if not any(content[page * 16384 : (page + 1) * 16384]):
        pytest.skip("an empty page")
    path.write_bytes(content)
    garble(path, page * 16384 / len(content), 16384)
    assert told_of(copy)


def test_names_that_cannot_be_decoded_are_said_plainly(copy: Path) -> None:
    path = copy / "store.db"
    content = path.read_bytes()
    at = content.index(b"CREATE TABLE chunks") + len(b"CREATE TABLE ")
    path.write_bytes(content[:at] + b"\x96\xff" + content[at + 2 :])
    with pytest.raises(StoreCorruptError, match=r"store\.db' is damaged"):
        LocalStore(copy)


def test_a_store_that_was_killed_before_its_mark_is_marked_when_it_is_opened(copy: Path) -> None:
    (copy / "store.version").unlink()
    LocalStore(copy).close()
    (copy / "store.db").unlink()
    with pytest.raises(StoreCorruptError, match="gone, though there was a store here"):
        LocalStore(copy)


@pytest.mark.parametrize("left", ["lexical", "chroma", "store.db-wal"])
def test_a_database_that_is_gone_is_said_to_be_gone_as_long_as_anything_is_left_of_it(copy: Path, left: str) -> None:
    (copy / "store.db").unlink()
    (copy / "store.version").unlink()
    (copy / "store.db-wal").write_bytes(b"what was written last")
    for name in {"lexical", "chroma", "store.db-wal"} - {left}:
        shutil.rmtree(copy / name) if (copy / name).is_dir() else (copy / name).unlink()
    for _ in range(2):
        with pytest.raises(StoreCorruptError, match="gone, though there was a store here; put the file back"):
            LocalStore(copy)
    assert not (copy / "store.db").exists()


def test_a_folder_in_which_nothing_is_left_of_a_store_is_a_new_one(copy: Path) -> None:
    for path in copy.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    (copy / "notes.txt").write_text("mine")
    with closing(LocalStore(copy)) as store:
        assert store.count() == 0


# Put back from a backup


def backup(folder: Path, target: Path) -> Path:
    """The database of a closed store."""
    return Path(shutil.copy(folder / "store.db", target))


def test_indexes_follow_a_database_that_was_put_back(copy: Path, tmp_path: Path) -> None:
    old = backup(copy, tmp_path / "old.db")
    with closing(opened(copy)) as store:
        put(store, A2)
        put(store, NEW)
        store.replace_source("c", "b.md", [])
        check(store, truth_of(A2, NEW))
    new = backup(copy, tmp_path / "new.db")
    for database, truth in ((old, TRUTH), (new, truth_of(A2, NEW)), (old, TRUTH)):
        shutil.copy(database, copy / "store.db")
        with closing(opened(copy)) as store:
            check(store, truth)


def test_indexes_follow_a_database_that_was_put_back_and_written_to(copy: Path, tmp_path: Path) -> None:
    old = backup(copy, tmp_path / "old.db")
    with closing(opened(copy)) as store:
        put(store, A2)
        check(store, truth_of(A2, B))
    shutil.copy(old, copy / "store.db")
    third = version_of("third.md", 1)
    with closing(opened(copy)) as store:
        for source in (NEW, third, version_of("b.md", 2)):
            put(store, source)
        check(store, truth_of(A, version_of("b.md", 2), NEW, third))


def test_indexes_follow_the_database_of_a_copy_that_went_on_elsewhere(copy: Path, tmp_path: Path) -> None:
    elsewhere = Path(shutil.copytree(copy, tmp_path / "elsewhere"))
    with closing(opened(elsewhere)) as store:
        put(store, A2)
        store.delete(where={"source_file": "b.md"})
        check(store, truth_of(A2))
    shutil.copy(elsewhere / "store.db", copy / "store.db")
    with closing(opened(copy)) as store:
        check(store, truth_of(A2))


def test_a_database_without_its_indexes_is_a_whole_backup(copy: Path, tmp_path: Path) -> None:
    (tmp_path / "restored").mkdir()
    backup(copy, tmp_path / "restored" / "store.db")
    with closing(opened(tmp_path / "restored")) as store:
        check(store, TRUTH)


# Other people's files


def test_a_vector_folder_with_other_files_is_not_removed(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("precious")
    with closing(
        LocalStore(tmp_path / "local", vector_folder=tmp_path / "mine", exclusive=True, graph_above=0)
    ) as store:
        put(store, A)
        check(store, truth_of(A))
        store.clear_collection()
        put(store, B)
        check(store, truth_of(B))
    assert (tmp_path / "mine" / "notes.txt").read_text() == "precious"
    assert len(list((tmp_path / "mine").iterdir())) > 1
