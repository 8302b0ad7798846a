"""Sketches choose which vectors are compared: the nearest are among them, whatever the vectors are."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ragistry.stores.local import LocalStore
from ragistry.stores.local.vectors import BITS, BLOCK, planes_of, reach, sketches_of
from ragistry.types import EmbeddedChunk
from tests.conftest import full_run

Vectors = NDArray[np.float32]


def random(count: int, dimension: int) -> np.random.Generator:
    return np.random.default_rng([count, dimension])


def unit(rows: Vectors) -> Vectors:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def clustered(count: int, dimension: int) -> Vectors:
    """As embeddings of topics."""
    centres, generator = random(0, dimension).normal(size=(50, dimension)), random(count, dimension)
    return unit(centres[generator.integers(50, size=count)] + generator.normal(size=(count, dimension)))


def uniform(count: int, dimension: int) -> Vectors:
    return unit(random(count, dimension).normal(size=(count, dimension)))


def in_a_cone(count: int, dimension: int) -> Vectors:
    """As the embeddings of many models: every two are similar."""
    return unit(uniform(count, dimension) + 1.5 * np.eye(1, dimension))


def sparse(count: int, dimension: int) -> Vectors:
    """As counts of words: few numbers are not zero, and no number is negative."""
    rows = np.zeros((count, dimension))
    rows[np.arange(count)[:, None], random(count, dimension).integers(dimension, size=(count, 3))] = 1.0
    return unit(rows)


def add(store: LocalStore, vectors: Vectors, first: int = 0) -> None:
    chunks = [EmbeddedChunk(f"text {first + row}", {"page": first + row}, vector) for row, vector in enumerate(vectors)]
    store.add_documents(chunks, ids=[f"{first + row:06}" for row in range(len(vectors))])


def found(store: LocalStore, query: Vectors, top_k: int = 10) -> list[int]:
    return [document.metadata["page"] for document in store.search(query, top_k)]


def nearest(vectors: Vectors, query: Vectors, top_k: int = 10, without: Iterable[int] = ()) -> list[int]:
    scores = np.vecdot(vectors, query)
    scores[list(without)] = -2
    return np.lexsort((np.arange(len(vectors)), -scores))[:top_k].tolist()


SHAPES, DIMENSIONS = (clustered, uniform, in_a_cone, sparse), (384, 8, 100, 800)


@pytest.mark.parametrize(
    ("shape", "dimension"), [*product(SHAPES, DIMENSIONS)] if full_run() else [*zip(SHAPES, DIMENSIONS, strict=True)]
)
def test_nearest_are_found(tmp_path: Path, shape: Callable[[int, int], Vectors], dimension: int) -> None:
    vectors, queries = shape(1_500, dimension), shape(12, dimension)
    with closing(LocalStore(tmp_path / "local", exact_below=0)) as store:
        add(store, vectors)
        store.flush()
        right = 0
        for query in queries:
            best = np.sort(np.vecdot(vectors, query))[-10]
            right += sum(np.vecdot(vectors[row], query) >= best - 1e-6 for row in found(store, query))
        assert right >= 0.96 * 10 * len(queries)


def test_rows_appended_across_blocks_and_removed_rows_are_searched_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store grows past a block of sketches in steps, in several processes' worth of stores, and shrinks."""
    block = BLOCK if full_run() else 1_024
    monkeypatch.setattr("ragistry.stores.local.vectors.BLOCK", block)
    count = block + 1_500
    vectors, queries = uniform(count, 16), uniform(6, 16)
    steps = [0, 100, block - 300, block - 3, block, block + 1, count]
    removed: set[int] = set()
    for start, end in pairwise(steps):
        with closing(LocalStore(tmp_path / "local", exact_below=50)) as store:
            add(store, vectors[start:end], start)
            store.flush()
            gone = set(range(start, end, 7)) - removed
            store.delete(ids=[f"{number:06}" for number in gone])
            removed |= gone
            for query in queries[: 6 if end == count else 2]:
                assert set(found(store, query)) == set(nearest(vectors[:end], query, without=removed))
    with closing(LocalStore(tmp_path / "local", exact_below=50)) as store:
        assert store.verify() == []
        for query in queries:
            expected = nearest(vectors, query, without=removed)
            assert set(found(store, query)) == set(expected)
            where = {"page": {"$nin": expected[:5]}}
            assert not set(expected[:5]) & {d.metadata["page"] for d in store.search(query, 10, where=where)}


def test_store_of_which_most_chunks_were_removed_is_searched_right(tmp_path: Path) -> None:
    vectors = clustered(1_000, 32)
    with closing(LocalStore(tmp_path / "local", exact_below=10)) as store:
        add(store, vectors)
        store.flush()
        for end in (300, 600, 985, 995):
            store.delete(where={"page": {"$lt": end}})
            for query in clustered(2, 32):
                assert set(found(store, query)) == {end + row for row in nearest(vectors[end:], query)}
            store.flush()


@pytest.mark.parametrize("selected", [60_000, 200])
def test_a_condition_that_many_chunks_meet_is_searched_by_sketches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, selected: int
) -> None:
    """Above a number of selected chunks, sketches choose among these."""
    monkeypatch.setattr("ragistry.stores.local.vectors.EXACT_SELECTION", 100)
    vectors = clustered(2_000, 32)
    with closing(LocalStore(tmp_path / "local", exact_below=50)) as store:
        add(store, vectors)
        store.flush()
        add(store, uniform(40, 32), 2_000)  # which the index does not hold
        everything = np.concatenate([vectors, uniform(40, 32)])
        low = max(0, 2_040 - selected)
        for query in clustered(5, 32):
            expected = nearest(everything, query, without=range(low))
            assert {d.metadata["page"] for d in store.search(query, where={"page": {"$gte": low}})} == set(expected)


def test_bits_differ_as_the_angle_says() -> None:
    """Of the planes, the share that separates two vectors is their angle over π; `reach` is rarely exceeded."""
    vectors = in_a_cone(400, 384)
    sketches = sketches_of(vectors, planes_of(384))
    differing = np.bitwise_count(sketches[:, 1:] ^ sketches[:, :1]).sum(axis=0)
    scores = np.vecdot(vectors[1:], vectors[0])
    expected = BITS * np.arccos(np.clip(scores, -1, 1)) / np.pi
    assert abs((differing - expected).mean()) < 3
    assert np.mean([bits > reach(float(score)) for bits, score in zip(differing, scores, strict=True)]) < 0.1
