"""A damaged store.db: `verify` reports it, `repair` keeps every readable row and says what is lost."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragistry.errors import StoreError
from ragistry.stores.local import LocalStore
from ragistry.types import Document, EmbeddedChunk, EmbedderFingerprint, Repair
from ragistry.utils.ids import chunk_id
from tests.stores.local_stores import garble, put, vector_of
from tests.stores.pages import PAGE, pages_of
from tests.stores.scripts import run

DIMENSION = 48
Content = dict[str, tuple[str, dict[str, Any], bytes]]
"""Text, metadata and vector of each chunk by id."""


class Embedding:
    """Vectors as the sources below have them."""

    fingerprint = EmbedderFingerprint("test", "salvage", "", DIMENSION)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    def embed(self, texts: Sequence[str], *, role: str = "document") -> Any:
        return np.array([vector_of(text, DIMENSION) for text in texts])


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
LARGE = [source(number, 40) for number in range(120)]


def made(folder: Path, sources: Sequence[list[EmbeddedChunk]]) -> Path:
    with closing(LocalStore(folder)) as store:
        store.use_embedder(Embedding.fingerprint)
        store.add_documents(LOOSE, ids=[f"loose {number}" for number in range(len(LOOSE))])
        put(store, *sources)
    return folder


@pytest.fixture(scope="module")
def small(quick_folder: Path) -> Path:
    return made(quick_folder / "small", SMALL)


@pytest.fixture(scope="module")
def large(quick_folder: Path) -> Path:
    return made(quick_folder / "large", LARGE)


def content(store: LocalStore) -> Content:
    documents = list(store.scan())
    vectors = store.vectors([document.id for document in documents])
    return {d.id: (d.content, d.metadata, v.tobytes()) for d, v in zip(documents, vectors, strict=True)}


def readable(path: Path, truth: Content) -> tuple[set[str], set[str]]:
    """Ids of the chunks, and of the vectors, that SQL still returns as they were, read by ranges of row ids."""
    id_of_key: dict[int, str] = {}
    found: dict[str, dict[int, Any]] = {"chunks": {}, "vectors": {}}
    with closing(sqlite3.connect(path)) as connection:
        for table, rows in found.items():
            for start in range(0, 5_000, 50):
                try:
                    parts = [
                        connection.execute(
                            f"SELECT * FROM {table} WHERE key BETWEEN ? AND ?", (start, start + 49)
                        ).fetchall()
                    ]
                except (sqlite3.Error, UnicodeError):
                    parts = []
                    for key in range(start, start + 50):
                        try:
                            parts.append(connection.execute(f"SELECT * FROM {table} WHERE key = ?", (key,)).fetchall())
                        except (sqlite3.Error, UnicodeError):
                            continue
                rows.update({row[0]: row for part in parts for row in part})
    for key, (_, id, _, _, _, text) in found["chunks"].items():
        if id in truth and truth[id][0] == text:
            id_of_key[key] = id
    vectors = {
        id_of_key[key]
        for key, row in found["vectors"].items()
        if key in id_of_key and row[1] == truth[id_of_key[key]][2]
    }
    return set(id_of_key.values()), vectors


def names_of(ids: set[str], truth: Content) -> set[tuple[str, str]]:
    metadatas = [truth[id][1] for id in ids]
    return {(each["collection"], each["source_file"]) for each in metadatas if "collection" in each}


def is_intact(folder: Path, truth: Content) -> bool:
    try:
        with closing(LocalStore(folder)) as store:
            return content(store) == truth and store.embedder() == Embedding.fingerprint
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
        lost_vectors = set()
        for id in kept:
            try:
                assert store.vectors([id]).tobytes() == truth[id][2]
            except StoreError as error:
                assert "run `ragistry reembed`" in str(error)  # noqa: PT017
                lost_vectors.add(id)
        assert not lost_vectors & vectors, f"{where}: {len(lost_vectors & vectors)} readable vectors are gone"
        assert {(d.id, d.content) for d in store.scan()} == {(id, truth[id][0]) for id in kept}
        lost = (truth.keys() - kept) | lost_vectors
        assert Path(repair.kept).read_bytes() == damaged
        assert all("reembed" in line for line in store.verify())
        assert bool(store.verify()) is bool(lost_vectors)
        assert store.repair() == Repair()  # nothing more to repair
        assert len(store.search(vector_of("any", DIMENSION), 1000)) == min(1000, len(kept - lost_vectors))
        assert len(store.search_text("source1 loose word", 1000)) == min(1000, len(kept))
        unchanged = not lost and store.embedder() == Embedding.fingerprint and content(store) == truth
        assert (repair.lost == ()) is unchanged, f"{where}: {repair.lost}"
        if chunks:
            assert names_of(lost, truth) <= set(repair.again), where
        store.use_embedder(Embedding.fingerprint)
        put(store, *(s for s in sources if (s[0].metadata["collection"], s[0].metadata["source_file"]) in repair.again))
        store.reembed(Embedding())
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


@pytest.mark.parametrize("kind", ["zeros", "random bytes"])
def test_of_every_destroyed_page_repair_keeps_all_that_is_readable(small: Path, quick_path: Path, kind: str) -> None:
    with closing(LocalStore(small)) as store:
        truth = content(store)
    pages = pages_of(small / "store.db")
    assert len(pages) > 30
    for number, page in enumerate(pages):
        if kind == "zeros" and number % 3:
            continue
        folder = destroy(small, quick_path / str(number), page, kind)
        assert_repaired(folder, truth, SMALL, f"page {number + 1} of {len(pages)}, {kind}")
        shutil.rmtree(folder)


@pytest.mark.parametrize("table", ["chunks", "vectors", "chunks_by_id", "chunks_by_source", "sources", "head"])
def test_of_a_large_store_repair_keeps_all_that_is_readable(large: Path, quick_path: Path, table: str) -> None:
    """The root page, a page below it and a page of rows; where the root is lost, so is the table."""
    with closing(LocalStore(large)) as store:
        truth = content(store)
    pages = pages_of(large / "store.db", table)
    for number in sorted({0, 1, len(pages) // 2} & set(range(len(pages)))):
        folder = destroy(large, quick_path / str(number), pages[number], "random bytes")
        assert_repaired(folder, truth, LARGE, f"page {number} of {table}")
        shutil.rmtree(folder)


@pytest.mark.parametrize("work", ["first page", "another file", "truncated"])
def test_a_file_that_cannot_be_read_at_all_is_kept_and_everything_is_lost(
    small: Path, quick_path: Path, work: str
) -> None:
    folder = Path(shutil.copytree(small, quick_path / "local"))
    path = folder / "store.db"
    if work == "first page":
        garble(path, 0, random.Random(1).randbytes(PAGE))
    elif work == "another file":
        path.write_bytes(b"This is not a database. " * 1_000)
    else:
        os.truncate(path, 1_000)
    damaged = path.read_bytes()
    with closing(LocalStore(folder)) as store:
        assert store.verify() != []
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


def test_a_second_repair_keeps_the_first_file_too_until_both_are_discarded(small: Path, quick_path: Path) -> None:
    folder = Path(shutil.copytree(small, quick_path / "local"))
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


def test_rows_in_the_write_ahead_log_are_salvaged(small: Path, quick_path: Path) -> None:
    """The process was killed after a write, and then a page was destroyed."""
    folder = Path(shutil.copytree(small, quick_path / "local"))
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


def test_ids_of_salvaged_chunks_stay(small: Path, quick_path: Path) -> None:
    folder = Path(shutil.copytree(small, quick_path / "local"))
    garble(folder / "store.db", pages_of(folder / "store.db", "vectors")[-1].start, bytes(PAGE))
    with closing(LocalStore(folder)) as store:
        repair = store.repair()
        assert repair.lost
        assert all("vectors" in line for line in repair.lost)
        [document] = store.get([chunk_id("c1", "1.md", 0)])
        assert isinstance(document, Document)
        assert document.metadata["title"] == "title of 1"
