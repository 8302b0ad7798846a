"""A library is copied between stores with its vectors, and both sides are compared."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest

from ragistry.errors import EmbeddingMismatchError
from ragistry.library.copying import CopyReport, copy_library
from ragistry.protocols import LibraryStore
from ragistry.stores.chroma import ChromaStore
from ragistry.stores.local import LocalStore
from ragistry.stores.postgres import PostgresStore
from ragistry.types import EmbeddedChunk, EmbedderFingerprint
from tests.messages import refused
from tests.stores.local_stores import DIMENSION, marker, put, vector_of, version_of

MODEL = EmbedderFingerprint("test", "directions", "d1", DIMENSION, "query: ", max_tokens=64, probe="0.5 0.25")
OTHER_MODEL = EmbedderFingerprint("test", "other", "d2", DIMENSION)
ODD: dict[str, Any] = {
    "page": 3, "score": 0.1, "whole": 2.0, "draft": True, "tags": ["a", "b"], "ranks": [1, 2],
    "ingested_at": 1763911971.1234567,
    "source_path": "/in/ö ü.md", "title": "Größe: 3 < 4 “quoted”\n\t…", "large": 2**53 + 1, "zero": -0.0,
}  # fmt: skip


def odd(source_file: str) -> list[EmbeddedChunk]:
    """A source whose metadata have every type that there is."""
    return [chunk._replace(metadata={**ODD, **chunk.metadata}) for chunk in version_of(source_file, 1, 5)]


SOURCES = [
    *(version_of(f"{name}.md", 1, collection=collection) for name in "abc" for collection in ("c", "d")),
    version_of("large.md", 1, 120),
    odd("ö/ü.md"),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a store with all sources; only to be read."""
    folder = tmp_path_factory.mktemp("made") / "local"
    with closing(LocalStore(folder)) as store:
        store.use_embedder(MODEL)
        put(store, *SOURCES)
    return folder


@pytest.fixture
def old(made: Path, tmp_path: Path) -> Iterator[LocalStore]:
    with closing(LocalStore(shutil.copytree(made, tmp_path / "old"))) as store:
        yield store


@pytest.fixture
def new(tmp_path: Path) -> Iterator[LocalStore]:
    with closing(LocalStore(tmp_path / "new")) as store:
        yield store


@pytest.fixture
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[str], LibraryStore]]:
    """Open the target of this kind; a second call opens the same one again."""
    name = f"c{uuid4().hex}"
    with ExitStack() as stack:

        def store(kind: str) -> LibraryStore:
            if kind == "local":
                return stack.enter_context(closing(LocalStore(tmp_path / "target")))
            server = request.getfixturevalue(kind)
            if kind == "postgres":
                return stack.enter_context(closing(PostgresStore(server.url, collection=name)))
            return stack.enter_context(closing(ChromaStore(host=server.url, collection=name)))

        yield store


def content(store: LibraryStore) -> dict[str, tuple[str, list[tuple[str, str]]]]:
    """Text and metadata of every chunk by its id, with the types of their values."""
    return {
        d.id: (d.content, sorted((key, repr(value).replace("-0.0", "0.0")) for key, value in d.metadata.items()))
        for d in store.scan()
    }


def assert_equal(one: LibraryStore, other: LibraryStore) -> None:
    held = content(one)
    assert content(other) == held
    assert np.allclose(one.vectors(list(held)), other.vectors(list(held)), rtol=0, atol=1e-6)
    assert one.sources() == other.sources()
    assert one.embedder() == other.embedder()


@pytest.mark.parametrize("target", ["local", "chroma", "postgres"])
def test_library_is_copied_to_any_store_and_back(
    old: LocalStore, new: LocalStore, reopen: Callable[[str], LibraryStore], target: str
) -> None:
    middle = reopen(target)
    for source, copy in ((old, middle), (middle, new)):
        assert copy_library(source, copy) == CopyReport(copied=len(SOURCES), chunks=143)
        assert_equal(source, copy)
        assert copy_library(source, copy) == CopyReport(skipped=len(SOURCES), chunks=143)
    assert_equal(old, new)
    word = marker("large.md", 1)
    assert [d.id for d in new.search_text(word, 5)] == [d.id for d in old.search_text(word, 5)]


@pytest.mark.parametrize("target", ["local", "postgres"])
def test_interrupted_copy_continues(old: LocalStore, reopen: Callable[[str], LibraryStore], target: str) -> None:
    steps: list[tuple[str, int, int]] = []
    for last in (2, 5):

        def stop(name: str, done: int, of: int, last: int = last) -> None:
            steps.append((name, done, of))
            if done == last:
                raise KeyboardInterrupt

        with closing(reopen(target)) as new, pytest.raises(KeyboardInterrupt):
            copy_library(old, new, progress=stop)
    assert (steps[0], [done for _, done, _ in steps]) == (("a.md", 0, len(SOURCES)), [0, 1, 2, 0, 1, 2, 3, 4, 5])
    with closing(reopen(target)) as new:
        assert len(new.sources()) == 5
        report = copy_library(old, new)
        assert (report.copied, report.skipped, report.differences) == (len(SOURCES) - 5, 5, [])
        assert_equal(old, new)


def test_second_copy_transfers_what_changed(old: LocalStore, new: LocalStore) -> None:
    copy_library(old, new)
    put(old, version_of("a.md", 2, 2), version_of("new.md", 1))
    old.move_source("b.md", "c", "e")
    report = copy_library(old, new, prune=True)
    assert (report.copied, report.removed, report.differences) == (3, 1, [])
    assert_equal(old, new)


def test_source_that_only_the_target_has_is_a_difference_until_it_is_pruned(old: LocalStore, new: LocalStore) -> None:
    put(new, version_of("extra.md", 1))
    new.use_embedder(MODEL)
    assert copy_library(old, new).differences == ["c/extra.md: only in the copy"]
    assert copy_library(old, new, prune=True).removed == 1
    assert_equal(old, new)


def test_change_during_a_copy_is_a_difference_until_the_next_copy(old: LocalStore, new: LocalStore) -> None:
    def change(name: str, done: int, of: int) -> None:
        if done == 5:
            put(old, version_of("a.md", 2), version_of("late.md", 1))

    report = copy_library(old, new, progress=change)
    assert [line.partition(":")[0] for line in report.differences] == ["c/a.md", "c/late.md"]
    assert copy_library(old, new).differences == []
    assert_equal(old, new)


@pytest.mark.parametrize("part", ["text", "metadata", "vector"])
def test_source_that_is_listed_as_equal_but_differs_is_copied_again(
    old: LocalStore, new: LocalStore, part: str
) -> None:
    copy_library(old, new)
    first, *rest = version_of("a.md", 1)
    changed = {
        "text": first._replace(text="something else"),
        "metadata": first._replace(metadata={**first.metadata, "page": 0.0}),
        "vector": first._replace(embedding=vector_of("something else")),
    }[part]
    put(new, [changed, *rest])
    assert new.sources() == old.sources()
    report = copy_library(old, new)
    assert (report.copied, report.differences) == (1, [])
    assert_equal(old, new)


def test_incomplete_source_stays_incomplete(old: LocalStore, new: LocalStore) -> None:
    old.delete(where={"$and": [{"source_file": "large.md"}, {"chunk_index": {"$gte": 7}}]})
    assert copy_library(old, new).differences == []
    assert_equal(old, new)
    [info] = [info for info in new.sources() if info.source_file == "large.md"]
    assert (info.chunks, info.source_hash) == (7, ""), "the next ingest completes it"


def test_chunks_without_a_source_are_copied_with_their_ids(
    old: LocalStore, new: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragistry.library.copying.PAGE", 2)
    loose = [EmbeddedChunk(f"loose {index}", {"page": index}, vector_of(f"loose {index}")) for index in range(3)]
    old.add_documents(loose, ids=["one", "two", "three"])
    for _ in range(2):
        assert copy_library(old, new).differences == []
        assert_equal(old, new)
    assert [document.content for document in new.get(["two"])] == ["loose 1"]


def test_vectors_of_another_model_are_refused(old: LocalStore, new: LocalStore) -> None:
    new.use_embedder(OTHER_MODEL)
    put(new, version_of("mine.md", 1))
    with refused(EmbeddingMismatchError, "other", "directions"):
        copy_library(old, new)
    assert [info.source_file for info in new.sources()] == ["mine.md"]


class Careless(LocalStore):
    """A store that rounds numbers and forgets the end of long sources."""

    def replace_source(self, collection: str, source_file: str, chunks: Any) -> None:
        kept = [c._replace(metadata={**c.metadata, "page": float(c.metadata["page"])}) for c in chunks[:100]]
        super().replace_source(collection, source_file, kept)


def test_what_a_store_does_not_keep_is_reported(old: LocalStore, tmp_path: Path) -> None:
    with closing(Careless(tmp_path / "careless")) as careless:
        report = copy_library(old, careless)
    assert "c/large.md: 20 chunks are missing and 0 are not in the original" in report.differences
    assert "c/a.md: the metadata of 3 chunks differ" in report.differences
    assert "c/large.md: listed differently on the two sides; it may have changed meanwhile" in report.differences
