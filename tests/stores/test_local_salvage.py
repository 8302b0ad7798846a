"""A damaged store.db: `verify` reports it, `repair` keeps every readable row and says what is lost."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragistry.errors import StoreCorruptError, StoreError
from ragistry.library.embedding import reembed
from ragistry.stores.local import LocalStore
from ragistry.testing.hashed import HashingEmbedder
from ragistry.types import EmbeddedChunk, Repair
from tests.conftest import full_run
from tests.messages import refused
from tests.stores.local_stores import garble, put, vector_of
from tests.stores.pages import PAGE, pages_of
from tests.stores.scripts import run

DIMENSION = 48
Content = dict[str, tuple[str, dict[str, Any], bytes]]
"""Text, metadata and vector of each chunk by id."""


class Embedding(HashingEmbedder):
    """Vectors as the sources below have them."""

    def embed(self, texts: Sequence[str], *, role: str = "document") -> Any:
        return np.array([vector_of(text, DIMENSION) for text in texts])


EMBEDDING = Embedding(DIMENSION, model="salvage")


def source(number: int, chunks: int) -> list[EmbeddedChunk]:
    """A file, or a note that was ingested as text and has no file; one chunk in 30 is longer than a page."""
    name = f"note {number}" if number % 4 == 0 else f"{number}.md"
    origin = {"collection": f"c{number % 3}", "source_file": name, "source_hash": f"hash {number}"}
    origin |= {} if number % 4 == 0 else {"source": f"/in/{name}", "title": f"title of {number}"}
    texts = [
        f"part{index} of source{number} " + "word " * (2_500 if (number + index) % 30 == 7 else 12)
        for index in range(chunks)
    ]
    return [
        EmbeddedChunk(text, {**origin, "chunk_index": index, "page": index}, vector_of(text, DIMENSION))
        for index, text in enumerate(texts)
    ]


LOOSE = [EmbeddedChunk(f"loose {i}", {"page": i}, vector_of(f"loose {i}", DIMENSION)) for i in range(20)]
SMALL = [source(number, 1 + number % 5) for number in range(40)]
LARGE = [source(number, 40) for number in range(120 if full_run() else 12)]
"""A store in which the tables have several pages of rows."""


def made(folder: Path, sources: Sequence[list[EmbeddedChunk]]) -> Path:
    with closing(LocalStore(folder)) as store:
        store.use_embedder(EMBEDDING.fingerprint)
        store.add_documents(LOOSE, ids=[f"loose {number}" for number in range(len(LOOSE))])
        put(store, *sources)
    return folder


@pytest.fixture(scope="module")
def small(module_path: Path) -> Path:
    return made(module_path / "small", SMALL)


@pytest.fixture(scope="module")
def large(module_path: Path) -> Path:
    return made(module_path / "large", LARGE)


def content(store: LocalStore) -> Content:
    documents = list(store.scan())
    vectors = store.vectors([document.id for document in documents])
    return {d.id: (d.content, d.metadata, v.tobytes()) for d, v in zip(documents, vectors, strict=True)}


def readable(path: Path, truth: Content) -> tuple[set[str], set[str]]:
    """Ids of the chunks, and of the vectors, that SQL still returns as they were, read by ranges of row ids."""

    def rows_of(connection: sqlite3.Connection, table: str, low: int, high: int) -> list[tuple[Any, ...]]:
        try:
            return connection.execute(f"SELECT * FROM {table} WHERE key BETWEEN ? AND ?", (low, high)).fetchall()
        except (sqlite3.Error, UnicodeError):
            if low == high:
                return []
            return [row for key in range(low, high + 1) for row in rows_of(connection, table, key, key)]

    with closing(sqlite3.connect(path)) as connection:
        chunks, vectors = (
            [row for start in range(0, 5_000, 50) for row in rows_of(connection, table, start, start + 49)]
            for table in ("chunks", "vectors")
        )
    id_of_key = {key: id for key, id, _, _, _, text in chunks if id in truth and truth[id][0] == text}
    sound = {id_of_key[key] for key, blob, _ in vectors if key in id_of_key and blob == truth[id_of_key[key]][2]}
    return set(id_of_key.values()), sound


def names_of(ids: set[str], truth: Content) -> set[tuple[str, str]]:
    metadatas = [truth[id][1] for id in ids]
    return {(each["collection"], each["source_file"]) for each in metadatas if "collection" in each}


def is_intact(folder: Path, truth: Content) -> bool:
    try:
        with closing(LocalStore(folder)) as store:
            return content(store) == truth and store.embedder() == EMBEDDING.fingerprint
    except StoreError:
        return False


def assert_repaired(folder: Path, truth: Content, sources: Sequence[list[EmbeddedChunk]], where: str) -> None:
    """`folder` is a store with a damaged page."""
    path = folder / "store.db"
    with closing(LocalStore(folder)) as store:
        reported = store.verify()
    if not reported:
        assert is_intact(folder, truth), where
        return
    chunks, vectors = readable(path, truth)
    damaged = path.read_bytes()
    with closing(LocalStore(folder)) as store:
        repair = store.repair()
        kept = {document.id for document in store.scan()}
        assert kept >= chunks, f"{where}: {len(chunks - kept)} readable chunks are gone"
        lost_vectors = {document.id for _, document in store.waiting(limit=len(truth))}
        assert all(store.vectors([id]).tobytes() == truth[id][2] for id in kept - lost_vectors)
        assert not lost_vectors & vectors, f"{where}: {len(lost_vectors & vectors)} readable vectors are gone"
        assert {(d.id, d.content) for d in store.scan()} == {(id, truth[id][0]) for id in kept}
        lost = (truth.keys() - kept) | lost_vectors
        assert Path(repair.kept).read_bytes() == damaged
        assert store.verify() == []
        assert store.repair() == Repair()  # nothing more to repair
        assert len(store.search(vector_of("any", DIMENSION), 1000)) == min(1000, len(kept - lost_vectors))
        assert len(store.search_text("source1 loose word", 1000)) == min(1000, len(kept))
        unchanged = not lost and store.embedder() == EMBEDDING.fingerprint and content(store) == truth
        assert (repair.lost == ()) is unchanged, f"{where}: {repair.lost}"
        if chunks:
            assert names_of(truth.keys() - kept, truth) <= set(repair.again), where
        store.use_embedder(EMBEDDING.fingerprint)
        put(store, *(s for s in sources if (s[0].metadata["collection"], s[0].metadata["source_file"]) in repair.again))
        reembed(store, EMBEDDING)
        store.discard_kept()
        assert not list(folder.glob("*damaged*"))
        again = truth.keys() if chunks else set()
        restored = content(store)
        assert {id for id in again if truth[id][1].get("collection")} <= restored.keys(), where
        assert all(restored[id] == truth[id] for id in restored), where
        assert store.verify() == []


def destroy(base: Path, target: Path, page: range, kind: str) -> Path:
    folder = Path(shutil.copytree(base, target))
    wreck = bytes(PAGE) if kind == "zeros" else random.Random(page.start).randbytes(PAGE)
    garble(folder / "store.db", page.start, wreck)
    return folder


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["zeros", "random bytes"])
def test_repair_keeps_all_that_is_readable_beside_a_destroyed_page(small: Path, tmp_path: Path, kind: str) -> None:
    with closing(LocalStore(small)) as store:
        truth = content(store)
    pages = list(enumerate(pages_of(small / "store.db")))
    assert len(pages) > 30
    for number, page in pages if full_run() else random.Random(kind).sample(pages, 5):
        folder = destroy(small, tmp_path / str(number), page, kind)
        assert_repaired(folder, truth, SMALL, f"page {number + 1} of {len(pages)}, {kind}")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("table", ["chunks", "vectors", "chunks_by_id", "chunks_by_source", "sources", "head"])
def test_repair_of_a_large_store_keeps_all_that_is_readable(
    large: Path, tmp_path: Path, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The root page, a page below it and a page of rows; where the root is lost, so is the table."""
    monkeypatch.setattr("ragistry.stores.local.salvage.AT_ONCE", 150)  # so that rows are read in several ranges
    with closing(LocalStore(large)) as store:
        truth = content(store)
    pages = pages_of(large / "store.db", table)
    chosen = {0, 1, len(pages) // 2} if full_run() else {0, len(pages) // 2}
    for number in sorted(chosen & set(range(len(pages)))):
        folder = destroy(large, tmp_path / str(number), pages[number], "random bytes")
        assert_repaired(folder, truth, LARGE, f"page {number} of {table}")


UNREADABLE: dict[str, Callable[[Path], object]] = {
    "garbled head": lambda path: garble(path, 0, 100),
    "first page": lambda path: garble(path, 0, random.Random(1).randbytes(PAGE)),
    "another file": lambda path: path.write_bytes(b"This is not a database. " * 1_000),
    "truncated": lambda path: os.truncate(path, 1_000),
}


@pytest.mark.parametrize("damage", UNREADABLE)
def test_file_that_cannot_be_read_is_an_error_until_repair_keeps_it_and_begins_anew(
    small: Path, tmp_path: Path, damage: str
) -> None:
    folder = Path(shutil.copytree(small, tmp_path / "local"))
    path = folder / "store.db"
    UNREADABLE[damage](path)
    damaged = path.read_bytes()
    with closing(LocalStore(folder)) as store:
        assert store.verify()
        assert all(line.startswith("store.db: ") for line in store.verify())
        for call in (store.count, lambda: store.search_text("word"), lambda: put(store, SMALL[0])):
            with refused(StoreCorruptError, path):
                call()
        assert path.read_bytes() == damaged
        repair = store.repair()
        assert repair.lost[0].startswith("everything")
        assert Path(repair.kept).read_bytes() == damaged
        assert (store.verify(), store.count()) == ([], 0)
        put(store, *SMALL)
        assert store.count() == sum(map(len, SMALL))


def test_repair_of_a_sound_store_changes_nothing(small: Path) -> None:
    before = {path.name: path.read_bytes() for path in small.rglob("*") if path.is_file()}
    with closing(LocalStore(small)) as store:
        assert store.verify() == []
        assert store.repair() == Repair()
    assert {path.name: path.read_bytes() for path in small.rglob("*") if path.is_file()} == before


def test_second_repair_keeps_the_first_file_too_until_both_are_discarded(small: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(small, tmp_path / "local"))
    kept = []
    with closing(LocalStore(folder)) as store:
        for _ in range(2):
            garble(folder / "store.db", pages_of(folder / "store.db", "chunks_by_hash")[0].start, bytes(PAGE))
            store.close()
            store = LocalStore(folder)
            kept.append(store.repair().kept)
        assert len({Path(name).name for name in kept}) == 2
        assert all(Path(name).exists() for name in kept)
        assert store.discard_kept() == sorted(Path(name).name for name in kept)
        assert (store.discard_kept(), list(folder.glob("*damaged*"))) == ([], [])
        assert store.verify() == []
        store.close()


def test_rows_in_the_write_ahead_log_are_salvaged(small: Path, tmp_path: Path) -> None:
    """The process was killed after a write, and then a page was destroyed."""
    folder = Path(shutil.copytree(small, tmp_path / "local"))
    code = (
        "import os, sys; from tests.stores.local_stores import *\n"
        "chunk = EmbeddedChunk('the newest', {}, vector_of('newest', 48))\n"
        "LocalStore(sys.argv[1]).add_documents([chunk], ids=['new']); os._exit(0)"
    )
    run(code, folder)
    assert (folder / "store.db-wal").stat().st_size
    garble(folder / "store.db", pages_of(small / "store.db", "chunks")[-1].start, bytes(PAGE))
    with closing(LocalStore(folder)) as store:
        assert store.repair().lost
        assert [document.content for document in store.get(["new"])] == ["the newest"]
        assert [document.id for document in store.search_text("newest")] == ["new"]
