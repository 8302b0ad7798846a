"""A library is copied between stores with its vectors, and both sides are compared."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragistry.errors import EmbeddingMismatchError
from ragistry.library.copying import CopyReport, copy_library
from ragistry.protocols import LibraryStore
from ragistry.stores.local import LocalStore
from ragistry.types import EmbeddedChunk, EmbedderFingerprint
from tests.messages import refused
from tests.stores.local_stores import DIMENSION, marker, place_of, put, store_at, vector_of, version_of

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
def reopen(target: str, request: pytest.FixtureRequest) -> Iterator[Callable[[], LibraryStore]]:
    """Open the target of this kind; a second call opens the same one again."""
    place = place_of(target, request)
    with ExitStack() as stack:
        yield lambda: stack.enter_context(closing(store_at(place)))


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
    old: LocalStore, new: LocalStore, reopen: Callable[[], LibraryStore]
) -> None:
    middle = reopen()
    for source, copy in ((old, middle), (middle, new)):
        assert copy_library(source, copy) == CopyReport(copied=len(SOURCES), chunks=143)
        assert_equal(source, copy)
        assert copy_library(source, copy) == CopyReport(skipped=len(SOURCES), chunks=143)
    assert_equal(old, new)
    word = marker("large.md", 1)
    assert [d.id for d in new.search_text(word, 5)] == [d.id for d in old.search_text(word, 5)]


@pytest.mark.parametrize("target", ["local", "postgres"])
def test_interrupted_copy_continues(old: LocalStore, reopen: Callable[[], LibraryStore]) -> None:
    steps: list[tuple[str, int, int]] = []
    for last in (2, 5):

        def stop(name: str, done: int, of: int, last: int = last) -> None:
            steps.append((name, done, of))
            if done == last:
                raise KeyboardInterrupt

        with closing(reopen()) as new, pytest.raises(KeyboardInterrupt):
            copy_library(old, new, progress=stop)
    assert (steps[0], [done for _, done, _ in steps]) == (("a.md", 0, len(SOURCES)), [0, 1, 2, 0, 1, 2, 3, 4, 5])
    with closing(reopen()) as new:
        assert len(new.sources()) == 5
        report = copy_library(old, new)
        assert (report.copied, report.skipped, report.differences) == (len(SOURCES) - 5, 5, [])
        assert_equal(old, new)


FIRST, *OTHERS = version_of("a.md", 1)
"""The chunks of a source. Where the target has others in their place, it still lists the source as before."""
CHANGES: dict[str, tuple[Callable[[LocalStore, LocalStore], object], int, int]] = {
    "new version": (lambda old, new: put(old, version_of("a.md", 2, 2), version_of("new.md", 1)), 2, 0),
    "moved": (lambda old, new: old.move_source("b.md", "c", "e"), 1, 1),
    "incomplete": (lambda old, new: old.delete(where={"source_file": "large.md", "chunk_index": {"$gte": 7}}), 1, 0),
    "only in the target": (lambda old, new: put(new, version_of("extra.md", 1)), 0, 1),
    "text": (lambda old, new: put(new, [FIRST._replace(text="something else"), *OTHERS]), 1, 0),
    "metadata": (lambda old, new: put(new, [FIRST._replace(metadata={**FIRST.metadata, "page": 0.0}), *OTHERS]), 1, 0),
    "vector": (lambda old, new: put(new, [FIRST._replace(embedding=vector_of("something else")), *OTHERS]), 1, 0),
}
"""What changes after a copy, and how many sources the next copy copies and removes."""


@pytest.mark.parametrize("change", CHANGES)
def test_second_copy_transfers_what_differs(old: LocalStore, new: LocalStore, change: str) -> None:
    copy_library(old, new)
    make, copied, removed = CHANGES[change]
    make(old, new)
    report = copy_library(old, new)
    left = [line.partition(": ")[2] for line in report.differences]
    assert (report.copied, left) == (copied, ["only in the copy"] * removed)
    assert copy_library(old, new, prune=True).removed == removed
    assert_equal(old, new)


def test_change_during_a_copy_is_a_difference_until_the_next_copy(old: LocalStore, new: LocalStore) -> None:
    def change(name: str, done: int, of: int) -> None:
        if done == 5:
            put(old, version_of("a.md", 2), version_of("late.md", 1))

    report = copy_library(old, new, progress=change)
    assert [line.partition(":")[0] for line in report.differences] == ["c/a.md", "c/late.md"]
    assert copy_library(old, new).differences == []
    assert_equal(old, new)


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
