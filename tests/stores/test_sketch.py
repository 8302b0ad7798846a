"""Sketches show which vectors are worth comparing: what is nearest is among them, whatever the vectors are."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ragistry.stores.exact import Matrix, nearest
from ragistry.stores.local import LocalStore
from ragistry.stores.sketch import BITS, Sketch, made, nearly_nearest
from ragistry.types import EmbeddedChunk, EmbedderFingerprint
from tests.stores.local_stores import put

Vectors = NDArray[np.float32]


def random(count: int, dimension: int) -> np.random.Generator:
    return np.random.default_rng([count, dimension])


def unit(rows: Vectors) -> Vectors:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def around_centres(count: int, dimension: int) -> Vectors:
    """As embeddings of topics lie: near one another in groups, the groups at right angles."""
    centres, generator = random(0, dimension).normal(size=(50, dimension)), random(count, dimension)
    return unit(centres[generator.integers(50, size=count)] + generator.normal(size=(count, dimension)))


def everywhere(count: int, dimension: int) -> Vectors:
    return unit(random(count, dimension).normal(size=(count, dimension)))


def in_a_cone(count: int, dimension: int) -> Vectors:
    """As those of many models lie: every two of them much alike."""
    return unit(everywhere(count, dimension) + 1.5 * np.eye(1, dimension))


def few_numbers(count: int, dimension: int) -> Vectors:
    """As counts of words are: most of each is zero, and nothing is negative."""
    rows = np.zeros((count, dimension))
    rows[np.arange(count)[:, None], random(count, dimension).integers(dimension, size=(count, 3))] = 1.0
    return unit(rows)


class Rows:
    """Vectors under keys with holes between them."""

    def __init__(self, vectors: Vectors) -> None:
        self.matrix = Matrix(np.arange(len(vectors)) * 3 + 7, vectors)
        self.compared = 0

    def of(self, keys: NDArray[np.int64]) -> Matrix:
        self.compared += len(keys)
        return self.matrix.picked(keys)


def found(sketch: Sketch, rows: Rows, query: Vectors, top_k: int) -> set[int]:
    return set(nearly_nearest(sketch, query, top_k, rows.of)[0].tolist())


@pytest.mark.parametrize("shape", [around_centres, everywhere, in_a_cone, few_numbers])
@pytest.mark.parametrize("dimension", [8, 100, 384, 500])
def test_what_is_nearest_is_found(shape, dimension: int) -> None:
    rows, queries = Rows(shape(2_000, dimension)), shape(10, dimension)
    sketch = made(rows.matrix.keys, rows.of)
    missed = wanted = 0
    for query in queries:
        right = set(nearest(rows.matrix, query, 10)[0].tolist())
        wanted += len(right)
        missed += len(right - found(sketch, rows, query, 10))
    assert missed <= wanted / 100


def test_few_are_compared_where_the_nearest_stand_out() -> None:
    rows = Rows(around_centres(20_000, 384))
    sketch = made(rows.matrix.keys, rows.of)
    rows.compared = 0
    found(sketch, rows, around_centres(1, 384)[0], 10)
    assert 100 <= rows.compared < 4_000


def test_all_that_tie_with_the_last_are_found() -> None:
    vectors = everywhere(2_000, 64)
    vectors[500:900] = vectors[3]
    rows = Rows(vectors)
    sketch = made(rows.matrix.keys, rows.of)
    equal = {int(rows.matrix.keys[row]) for row in (3, *range(500, 900))}
    assert found(sketch, rows, vectors[3], 5) == equal


def test_a_sketch_grows_and_shrinks_as_one_made_anew() -> None:
    rows = Rows(everywhere(500, 32))
    keys = rows.matrix.keys
    old = made(keys[100:300], rows.of)
    rows.compared = 0
    grown = made(keys[200:], rows.of, old)
    assert rows.compared == 200  # of the others there was one
    assert np.array_equal(grown.codes, made(keys[200:], rows.of).codes)
    assert np.array_equal(made(keys[:0], rows.of, old).codes, np.empty((BITS // 64, 0)))


def chunks_of(number: int, vectors: Vectors) -> list[EmbeddedChunk]:
    origin = {"collection": "c", "source_file": f"{number}.md", "source_hash": "h"}
    return [
        EmbeddedChunk(f"part {row} of {number}", {**origin, "chunk_index": row}, vector)
        for row, vector in enumerate(vectors)
    ]


@pytest.mark.parametrize(
    "options", [{"memory": 0}, {}, {"exclusive": True}], ids=["vectors on disk", "vectors in memory", "as a server"]
)
def test_a_store_finds_by_sketches_what_it_holds_now(tmp_path: Path, options: dict) -> None:
    vectors = around_centres(1_500, 48)
    with closing(LocalStore(tmp_path / "s", exact_below=100, **options)) as store:

        def check() -> None:
            for query in around_centres(5, 48):
                expected = store.search(query, 10, where={"collection": "c"})  # with a condition all are compared
                assert [store.search(query, 10) for _ in range(3)] == [expected] * 3

        for number in range(5):
            put(store, chunks_of(number, vectors[300 * number : 300 * (number + 1)]))
        check()
        put(store, chunks_of(2, everywhere(10, 48)))
        check()
        store.delete(where={"source_file": "0.md"})
        check()
        store.move_source("1.md", "c", "d")
        store.move_source("1.md", "d", "c")
        check()
        store.clear_collection()
        assert store.search(vectors[0]) == []
        put(store, chunks_of(3, everywhere(200, 20)))  # of another embedder
        assert len(store.search(everywhere(1, 20)[0], 10)) == 10
    assert not (tmp_path / "s" / "chroma").exists()


@pytest.mark.parametrize(
    ("options", "graph"),
    [({"graph_above": 150}, True), ({"memory": 1_000}, True), ({}, False), ({"exact_below": 500}, False)],
)
def test_a_server_asks_a_graph_where_sketches_are_slow(tmp_path: Path, options: dict, *, graph: bool) -> None:
    with closing(LocalStore(tmp_path / "s", exclusive=True, **{"exact_below": 100, **options})) as store:
        put(store, chunks_of(1, vectors := everywhere(200, 16)))
        for _ in range(2):
            assert store.search(vectors[7], 1)[0].metadata["chunk_index"] == 7
    assert (tmp_path / "s" / "chroma").exists() is graph


def test_vectors_of_another_embedder_get_sketches_of_their_own(tmp_path: Path) -> None:
    fingerprint = EmbedderFingerprint("test", "other", "", 48)
    with closing(LocalStore(tmp_path / "s", exact_below=100)) as store:
        put(store, chunks_of(1, around_centres(400, 48)))
        for query in everywhere(3, 48):
            store.search(query)
        new = everywhere(400, 48)
        for group in store.begin_reembedding(fingerprint):
            store.put_reembedded(group, new, fingerprint)
        assert store.finish_reembedding(fingerprint)
        for row in range(0, 400, 40):
            assert store.search(new[row], 1)[0].metadata["chunk_index"] == row
