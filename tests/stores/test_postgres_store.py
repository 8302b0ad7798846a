"""What `PostgresStore` does beyond the suites: scores as of the local store, indexes, many writers, standbys."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import numpy as np
import pytest

from ragistry.errors import ConfigError, InvalidFilterError
from ragistry.stores.chunk_checks import check_chunks
from ragistry.stores.local import LocalStore
from ragistry.stores.postgres import PostgresStore, rows, vectors
from ragistry.stores.postgres.vectors import MORE_MEMORY
from ragistry.trace import collect, stage
from ragistry.types import EmbeddedChunk
from tests.messages import check_message, refused
from tests.postgres_server import PostgresServer
from tests.stores.local_stores import check_searches, put, store_at, truth_of, vector_of, version_of
from tests.stores.scripts import HOLD, started

A, B, C = (version_of(name, 1) for name in ("a.md", "b.md", "c.md"))


# The same answers as of the local store


def words(dice: random.Random) -> str:
    return " ".join(f"w{int(dice.paretovariate(0.7)) % 300}" for _ in range(dice.randint(3, 60)))


def test_words_and_vectors_score_as_in_the_local_store(stored: PostgresStore, tmp_path: Path) -> None:
    dice = random.Random(3)
    chunks = [
        EmbeddedChunk(words(dice), {"page": n % 7, "language": dice.choice(("en", "de"))}, vector_of(f"v{n % 350}"))
        for n in range(400)
    ]
    with closing(LocalStore(tmp_path / "local")) as local:
        for store in (local, stored):
            store.add_documents(chunks, ids=[f"{n:03}" for n in range(400)])
            store.flush()
            store.add_documents(chunks[:40], ids=[f"more {n:03}" for n in range(40)])
            store.delete(where={"page": 3})
        for n in range(20):
            where = dice.choice((None, {"page": {"$gte": 5}}, {"language": "de"}))
            query, top_k = f"{words(dice)} w1", dice.choice((1, 5, 50, 1000))
            found, expected = (store.search_text(query, top_k, where=where) for store in (stored, local))
            assert [d.id for d in found] == [d.id for d in expected]
            assert [d.score for d in found] == pytest.approx([d.score for d in expected], abs=1e-6)
            assert stored.search(vector_of(f"q{n}"), top_k, where=where) == local.search(
                vector_of(f"q{n}"), top_k, where=where
            )


# The index of vectors

FORCED = quote("-c enable_sort=off -c enable_seqscan=off -c enable_bitmapscan=off -c enable_hashjoin=off")


@pytest.fixture(scope="module")
def spread(postgres: PostgresServer) -> Iterator[tuple[Callable[..., PostgresStore], np.ndarray]]:
    """Opens stores on 3,000 chunks of random directions, of which every fiftieth is rare; and the directions."""
    matrix = np.random.default_rng(4).normal(size=(3_000, 24))
    chunks = [EmbeddedChunk(f"text {n}", {"rare": n % 50 == 0}, vector.tolist()) for n, vector in enumerate(matrix)]
    collection = uuid4().hex
    with ExitStack() as stack:

        def opened(options: str = "", **settings: object) -> PostgresStore:
            return stack.enter_context(closing(store_at(f"{postgres.url}{options}#{collection}", **settings)))

        opened().add_documents(chunks, ids=[f"{n:05}" for n in range(3_000)])
        opened(exact_below=10).flush()
        yield opened, matrix / np.linalg.norm(matrix, axis=1, keepdims=True)


QUERIES = np.random.default_rng(5).normal(size=(10, 24))


def nearest(vectors: np.ndarray, query: np.ndarray, top_k: int) -> set[str]:
    return {f"{row:05}" for row in np.argsort(-(vectors @ query))[:top_k]}


def test_hnsw_finds_nearly_all_that_a_comparison_of_everything_finds(
    spread: tuple[Callable[..., PostgresStore], np.ndarray],
) -> None:
    opened, matrix = spread
    indexed, exact = opened(exact_below=500), opened()
    assert indexed._primary.read(indexed._head).has_index
    with indexed._primary.snapshot() as connection:  # the planner knows how many chunks there are
        counted = connection.execute("SELECT reltuples FROM pg_class WHERE oid = 'chunks'::regclass").fetchone()
    assert counted == (indexed.count(),)
    overlap = [len({d.id for d in indexed.search(q.tolist())} & nearest(matrix, q, 10)) for q in QUERIES]
    assert sum(overlap) >= 0.95 * 10 * len(QUERIES)
    for query in QUERIES:
        scores = {d.id: d.score for d in exact.search(query.tolist(), 1000)}
        assert all(scores.get(d.id, d.score) == d.score for d in indexed.search(query.tolist(), 100))
        rare = {"rare": True}  # 60 chunks meet the condition, so that all are compared
        assert indexed.search(query.tolist(), where=rare) == exact.search(query.tolist(), where=rare)


def test_index_is_not_used_where_it_would_read_more_rows_than_meet_the_condition(
    spread: tuple[Callable[..., PostgresStore], np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    by_index = vectors._by_index
    monkeypatch.setattr(vectors, "_by_index", lambda *given: asked.append(given) or by_index(*given))
    indexed = spread[0](exact_below=10)
    assert len(indexed.search(QUERIES[0].tolist(), where={"rare": True})) == 10  # 60 chunks meet it
    assert asked == []
    assert len(indexed.search(QUERIES[0].tolist())) == 10
    assert len(asked) == 1


def test_each_search_is_planned_for_its_own_condition(spread: tuple[Callable[..., PostgresStore], np.ndarray]) -> None:
    indexed = spread[0](exact_below=10, connections=1)
    for where in (None, {"rare": False}, {"rare": True}):
        for _ in range(12):  # psycopg prepares a statement at its sixth time, and the server plans five
            assert len(indexed.search(QUERIES[0].tolist(), where=where)) == 10
    with indexed._primary.snapshot() as connection:
        prepared = [one for (one,) in connection.execute("SELECT statement FROM pg_prepared_statements")]
    assert [one for one in prepared if "<#>" in one] == []


def test_fewer_rows_from_hnsw_than_there_are_make_it_compare_everything(
    spread: tuple[Callable[..., PostgresStore], np.ndarray],
) -> None:
    opened, matrix = spread
    hasty = f"?options={FORCED}{quote(' -c hnsw.max_scan_tuples=1 -c hnsw.scan_mem_multiplier=1')}"
    indexed = opened(hasty, exact_below=0)
    for query in QUERIES:
        found = indexed.search(query.tolist(), where={"rare": True})
        assert {d.id for d in found} == {f"{int(i) * 50:05}" for i in nearest(matrix[::50], query, 10)}


def test_a_vector_of_more_numbers_than_hnsw_takes_is_still_found(
    stored: PostgresStore, another: Callable[..., PostgresStore]
) -> None:
    vector = np.random.default_rng(7).normal(size=(3, 4_100)).tolist()
    stored.add_documents([EmbeddedChunk(f"text {n}", {}, vector[n]) for n in range(3)], ids=list("abc"))
    store = another(exact_below=0)
    store.flush()
    assert [d.id for d in store.search(vector[1], 1)] == ["b"]


# Several stores on one schema


def test_first_stores_of_a_database_are_opened_at_once(postgres: PostgresServer) -> None:
    """Each creates its schema; the extension belongs to all of them."""
    name = f"fresh_{uuid4().hex}"
    postgres.execute(f"CREATE DATABASE {name}")
    url = postgres.url.rpartition("/")[0] + f"/{name}"

    def count(number: int) -> int:
        with closing(PostgresStore(url, collection=f"c{number}")) as store:
            return store.count()

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(count, range(8))) == [0] * 8


def test_each_collection_is_a_schema_of_its_own(stored: PostgresStore, postgres: PostgresServer) -> None:
    put(stored, A)
    with closing(PostgresStore(postgres.url, collection="my.Library ü")) as other:
        assert other.count() == 0
        put(other, B)
        assert [d.metadata["source_file"] for d in other.search_text("source", 1)] == ["b.md"]
    assert [info.source_file for info in stored.sources()] == ["a.md"]
    with refused(ConfigError):
        PostgresStore(postgres.url, collection="x" * 64)


# Readers that follow


def test_a_write_that_began_earlier_and_ends_later_is_not_missed(
    stored: PostgresStore, another: Callable[..., PostgresStore]
) -> None:
    """The chunks of the longer write have the lower keys, and come after higher ones were applied."""
    reader, slow = another(), another()
    written, go_on = threading.Event(), threading.Event()

    def long_write(write: object) -> None:
        rows.put_source(write, ("c", "a.md"), check_chunks(A, dimension=8))  # type: ignore[arg-type]
        written.set()
        assert go_on.wait(30)

    put(stored, C)
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(slow._primary.write, long_write)
        assert written.wait(60)
        put(stored, B)  # does not wait for the other
        check_searches(reader, truth_of(B, C))
        go_on.set()
        writing.result()
    check_searches(reader, truth_of(A, B, C))


def test_an_index_that_another_process_holds_answers_as_it_is_and_says_so(
    stored: PostgresStore, another: Callable[..., PostgresStore], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragistry.stores.postgres.words.LOCK_SECONDS", 0.1)
    reader, late = another(folder=tmp_path), another(folder=tmp_path)
    put(stored, A)
    check_searches(reader, truth_of(A))
    put(stored, B)
    stored.delete(where={"source_file": "a.md", "chunk_index": 0})
    [folder] = tmp_path.glob("postgres/*")
    with started(HOLD, folder / "lock"):
        for store in (reader, late):
            with collect() as trace, stage("bm25"):
                found = store.search_text("source")
            assert sorted(d.metadata["chunk_index"] for d in found) == [1, 2]
            check_message(trace.stages()[0].degraded, "the last 2 changes")
    with collect() as trace, stage("bm25"):
        assert len(reader.search_text("source")) == 5
    assert trace.stages()[0].degraded == ""


def test_an_index_of_another_history_is_built_anew(
    stored: PostgresStore, postgres: PostgresServer, tmp_path: Path
) -> None:
    """As after a restore from a backup, with as many changes."""
    collection = stored._primary.schema.removeprefix("ragistry_")
    for chunks in (A, B):
        with closing(PostgresStore(postgres.url, collection=collection, folder=tmp_path)) as store:
            put(store, chunks)
            check_searches(store, truth_of(chunks))
        with closing(PostgresStore(postgres.url, collection=collection, folder=tmp_path)) as store:
            check_searches(store, truth_of(chunks))
        postgres.execute(f'DROP SCHEMA "ragistry_{collection}" CASCADE')


# Conditions


def test_a_wide_condition_is_answered_and_a_wider_one_refused(stored: PostgresStore) -> None:
    put(stored, A)
    wide = [{"page": number} for number in range(2, 600)]
    assert [d.metadata["page"] for d in stored.scan({"$or": wide})] == [2]
    assert stored.count({"page": {"$in": list(range(1, 50_000))}}) == 2
    with refused(InvalidFilterError):
        stored.count({"$or": [{"page": number} for number in range(70_000)]})


def test_an_open_scan_does_not_hang_the_build_of_an_index(
    stored: PostgresStore, another: Callable[..., PostgresStore], caplog: pytest.LogCaptureFixture
) -> None:
    put(stored, A, B)
    store = another(exact_below=0, lock_timeout=0.1)
    scan = store.scan(batch=1)
    next(scan)
    store.flush()
    check_message(caplog.messages[-1])
    assert len(list(scan)) == 5
    store.flush()
    assert store._primary.read(store._head).has_index
    check_searches(store, truth_of(A, B))


@pytest.mark.parametrize(("server", "used"), [("1MB", "256MB"), ("300MB", "300MB")])
def test_an_index_is_built_with_the_memory_of_the_server_but_not_with_little(
    stored: PostgresStore, server: str, used: str
) -> None:
    with stored._primary.outside() as connection:
        connection.execute(f"SET maintenance_work_mem = '{server}'")
        connection.execute(MORE_MEMORY)
        assert connection.execute("SHOW maintenance_work_mem").fetchone() == (used,)
        connection.execute("RESET maintenance_work_mem")
