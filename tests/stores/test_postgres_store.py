"""What `PostgresStore` does beyond the suites: scores as of the local store, indexes, many writers, standbys."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import numpy as np
import pytest

from ragistry.errors import (
    ConfigError,
    DuplicateChunkIDError,
    EmbeddingMismatchError,
    InvalidFilterError,
    StoreConnectionError,
)
from ragistry.stores.local import LocalStore
from ragistry.stores.postgres import PostgresStore, rows, vectors
from ragistry.stores.postgres.vectors import MORE_MEMORY
from ragistry.testing.postgres_server import PostgresServer, standby_server
from ragistry.trace import collect, stage
from ragistry.types import EmbeddedChunk, EmbedderFingerprint
from ragistry.utils.chunk_checks import check_chunks
from tests.stores.local_stores import (
    ALL,
    check_searches,
    held,
    put,
    same,
    truth_of,
    vector_of,
    version_of,
    whole_versions,
)
from tests.stores.scripts import start

A, B, C = (version_of(name, 1) for name in ("a.md", "b.md", "c.md"))


@pytest.fixture
def another(stored: PostgresStore, postgres: PostgresServer) -> Iterator[Callable[..., PostgresStore]]:
    """More stores on the same schema."""
    collection = stored._primary.schema.removeprefix("ragistry_")
    with ExitStack() as stack:

        def opened(url: str = postgres.url, **settings: object) -> PostgresStore:
            store = PostgresStore(url, collection=collection, **settings)  # type: ignore[arg-type]
            return stack.enter_context(closing(store))

        yield opened


# The same answers as of the local store


def words(dice: random.Random) -> str:
    return " ".join(f"w{int(dice.paretovariate(0.7)) % 300}" for _ in range(dice.randint(3, 60)))


def test_words_and_vectors_score_as_in_the_local_store(stored: PostgresStore, quick_path: Path) -> None:
    dice = random.Random(3)
    chunks = [
        EmbeddedChunk(words(dice), {"page": n % 7, "language": dice.choice(("en", "de"))}, vector_of(f"v{n % 350}"))
        for n in range(400)
    ]
    with closing(LocalStore(quick_path / "local")) as local:
        for store in (local, stored):
            store.add_documents(chunks, ids=[f"{n:03}" for n in range(400)])
            store.flush()
            store.add_documents(chunks[:40], ids=[f"more {n:03}" for n in range(40)])
            store.delete(where={"page": 3})
        for n in range(30):
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


def spread(store: PostgresStore, count: int) -> np.ndarray:
    """Chunks of random directions, of which every fiftieth is rare."""
    dice = np.random.default_rng(4)
    vectors = dice.normal(size=(count, 24))
    chunks = [EmbeddedChunk(f"text {n}", {"rare": n % 50 == 0}, vector.tolist()) for n, vector in enumerate(vectors)]
    store.add_documents(chunks, ids=[f"{n:05}" for n in range(count)])
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def nearest(vectors: np.ndarray, query: np.ndarray, top_k: int) -> set[str]:
    return {f"{row:05}" for row in np.argsort(-(vectors @ query))[:top_k]}


def test_hnsw_finds_nearly_all_that_a_comparison_of_everything_finds(
    stored: PostgresStore, another: Callable[..., PostgresStore]
) -> None:
    vectors = spread(stored, 3_000)
    indexed = another(exact_below=500)
    indexed.flush()
    assert indexed._primary.read(indexed._head).has_index
    with indexed._primary.snapshot() as connection:  # the planner knows how many chunks there are
        counted = connection.execute("SELECT reltuples FROM pg_class WHERE oid = 'chunks'::regclass").fetchone()
    assert counted == (indexed.count(),)
    queries = np.random.default_rng(5).normal(size=(20, 24))
    overlap = [len({d.id for d in indexed.search(q.tolist())} & nearest(vectors, q, 10)) for q in queries]
    assert sum(overlap) >= 0.97 * 200
    for query in queries:
        exact = {d.id: d.score for d in stored.search(query.tolist(), 1000)}
        assert all(exact.get(d.id, d.score) == d.score for d in indexed.search(query.tolist(), 100))
    rare = {"rare": True}
    for query in queries:  # 60 chunks meet the condition, so that all are compared
        assert indexed.search(query.tolist(), where=rare) == stored.search(query.tolist(), where=rare)


def test_where_the_index_would_read_more_rows_all_that_meet_the_condition_are_compared(
    stored: PostgresStore, another: Callable[..., PostgresStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    spread(stored, 3_000)
    indexed = another(exact_below=10)
    indexed.flush()
    asked: list[Any] = []
    by_index = vectors._by_index
    monkeypatch.setattr(vectors, "_by_index", lambda *given: asked.append(given) or by_index(*given))
    query = np.random.default_rng(5).normal(size=24).tolist()
    assert len(indexed.search(query, where={"rare": True})) == 10  # 60 chunks meet it
    assert asked == []
    assert len(indexed.search(query)) == 10
    assert len(asked) == 1


def test_each_search_is_planned_for_its_own_condition(
    stored: PostgresStore, another: Callable[..., PostgresStore]
) -> None:
    spread(stored, 3_000)
    indexed = another(exact_below=10, connections=1)
    indexed.flush()
    query = np.random.default_rng(5).normal(size=24).tolist()
    for where in (None, {"rare": False}, {"rare": True}):
        for _ in range(12):  # psycopg prepares a statement at its sixth time, and the server plans five
            assert len(indexed.search(query, where=where)) == 10
    with indexed._primary.snapshot() as connection:
        prepared = [one for (one,) in connection.execute("SELECT statement FROM pg_prepared_statements")]
    assert [one for one in prepared if "<#>" in one] == []


def test_fewer_rows_from_hnsw_than_there_are_make_it_compare_everything(
    stored: PostgresStore, another: Callable[..., PostgresStore], postgres: PostgresServer
) -> None:
    vectors = spread(stored, 3_000)
    stored.flush()
    hasty = f"{postgres.url}?options={FORCED}{quote(' -c hnsw.max_scan_tuples=1 -c hnsw.scan_mem_multiplier=1')}"
    indexed = another(hasty, exact_below=0)
    indexed.flush()
    queries = np.random.default_rng(6).normal(size=(10, 24))
    for query in queries:
        found = indexed.search(query.tolist(), where={"rare": True})
        assert {d.id for d in found} == {f"{int(i) * 50:05}" for i in nearest(vectors[::50], query, 10)}


def test_a_vector_of_more_numbers_than_hnsw_takes_is_still_found(
    stored: PostgresStore, another: Callable[..., PostgresStore]
) -> None:
    vector = np.random.default_rng(7).normal(size=(3, 4_100)).tolist()
    stored.add_documents([EmbeddedChunk(f"text {n}", {}, vector[n]) for n in range(3)], ids=list("abc"))
    store = another(exact_below=0)
    store.flush()
    assert [d.id for d in store.search(vector[1], 1)] == ["b"]


# Several stores on one schema


def test_each_collection_is_a_schema_of_its_own(stored: PostgresStore, postgres: PostgresServer) -> None:
    put(stored, A)
    with closing(PostgresStore(postgres.url, collection="my.Library ü")) as other:
        assert other.count() == 0
        put(other, B)
        assert [d.metadata["source_file"] for d in other.search_text("source", 1)] == ["b.md"]
    assert [info.source_file for info in stored.sources()] == ["a.md"]
    with pytest.raises(ConfigError, match="63 bytes"):
        PostgresStore(postgres.url, collection="x" * 64)


def test_stores_that_start_at_once_make_one_schema(postgres: PostgresServer) -> None:
    collection, failures = uuid4().hex, []

    def open_one() -> None:
        try:
            with closing(PostgresStore(postgres.url, collection=collection)) as store:
                put(store, version_of(f"{threading.get_ident()}.md", 1))
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=open_one) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    with closing(PostgresStore(postgres.url, collection=collection)) as store:
        assert store.count() == 18


def test_a_store_sees_what_another_one_wrote(stored: PostgresStore, another: Callable[..., PostgresStore]) -> None:
    other = another()
    assert other.search_text("source") == []
    put(stored, A, B)
    check_searches(other, truth_of(A, B))
    stored.delete(where={"source_file": "a.md"})
    check_searches(other, truth_of(B))
    stored.clear_collection()
    assert other.search_text("source") == other.search(ALL) == []
    put(stored, C)
    check_searches(other, truth_of(C))


def test_the_first_vectors_decide_the_dimension_for_every_writer(
    stored: PostgresStore, another: Callable[..., PostgresStore]
) -> None:
    other = another()
    fingerprint = EmbedderFingerprint("embedded", "minilm", "abc", 8)
    stored.use_embedder(fingerprint)
    other.use_embedder(fingerprint)
    with pytest.raises(EmbeddingMismatchError):
        other.use_embedder(EmbedderFingerprint("embedded", "another", "abc", 8))
    other.clear_collection()
    put(stored, A)  # which puts its embedder on record again
    assert other.embedder() == fingerprint


WRITER = """
import sys
from contextlib import closing
from ragistry.stores.postgres import PostgresStore
from tests.stores.local_stores import *
url, collection, own = sys.argv[1:]
with closing(PostgresStore(url, collection=collection)) as store:
    print("ready", flush=True)
    sys.stdin.readline()
    for version in range(1, 9):
        for name in ("a.md", "b.md", own):
            put(store, version_of(name, version, 3 if version == 1 else 2 + version % 3))
        whole_versions(store.search(ALL, 1000))
        assert {d.metadata["source_hash"] for d in store.search_text(marker(own, version))} == {f"hash {version}"}
"""


def test_many_processes_write_the_same_and_other_sources(stored: PostgresStore, postgres: PostgresServer) -> None:
    collection = stored._primary.schema.removeprefix("ragistry_")
    with ExitStack() as stack:
        writers = [stack.enter_context(start(WRITER, postgres.url, collection, f"own{n}.md")) for n in range(3)]
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n"
        for writer in writers:
            assert writer.stdin is not None
            print("go", file=writer.stdin, flush=True)
        assert [writer.communicate(timeout=60)[0] for writer in writers] == ["", "", ""]
    chunks = 2 + 8 % 3
    own = [version_of(f"own{n}.md", 8, chunks) for n in range(3)]
    expected = truth_of(version_of("a.md", 8, chunks), version_of("b.md", 8, chunks), *own)
    assert same(held(stored), expected)
    check_searches(stored, expected)


def test_threads_that_add_the_same_chunks_leave_one_of_each(stored: PostgresStore) -> None:
    failures: list[Exception] = []

    def add(turn: int) -> None:
        try:
            for _ in range(5):
                chunks = [EmbeddedChunk(f"word {n} of {turn}", {}, vector_of(str(n))) for n in range(5)]
                stored.add_documents(chunks, ids=[str((n * (turn + 1)) % 5) for n in range(5)])
                stored.delete(ids=["0", "1"])
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=add, args=(turn,)) for turn in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert sorted(d.id for d in stored.scan()) == ["2", "3", "4"]
    assert stored.count() == len(stored.search_text("word", 100)) == 3


def test_an_id_of_another_source_is_not_taken_over(stored: PostgresStore) -> None:
    [first, *_] = A
    put(stored, A)
    [taken] = [d.id for d in stored.scan({"chunk_index": 0})]
    stored.delete(ids=[taken])
    stored.add_documents([first._replace(metadata={})], ids=[taken])
    with pytest.raises(DuplicateChunkIDError, match=taken[:8]):
        put(stored, A)
    assert stored.count() == 3


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
    thread = threading.Thread(target=slow._primary.write, args=(long_write,))
    thread.start()
    assert written.wait(30)
    put(stored, B)  # does not wait for the other
    check_searches(reader, truth_of(B, C))
    go_on.set()
    thread.join()
    check_searches(reader, truth_of(A, B, C))


HOLDER = """
import sys
from pathlib import Path
from ragistry.stores.lock import WriterLock
with WriterLock(Path(sys.argv[1]), "it").writing():
    print("ready", flush=True)
    sys.stdin.readline()
"""


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
    with start(HOLDER, folder / "lock") as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "ready\n"
        for store in (reader, late):
            with collect() as trace, stage("bm25"):
                found = store.search_text("source")
            assert sorted(d.metadata["chunk_index"] for d in found) == [1, 2]
            assert "the last 2 changes are not searched yet: the word index" in trace.stages()[0].degraded
        holder.communicate("", timeout=60)
    with collect() as trace, stage("bm25"):
        assert len(reader.search_text("source")) == 5
    assert trace.stages()[0].degraded == ""


def test_an_index_of_another_history_is_built_anew(
    stored: PostgresStore, postgres: PostgresServer, quick_path: Path
) -> None:
    """As after a restore from a backup, with as many changes."""
    collection = stored._primary.schema.removeprefix("ragistry_")
    for chunks in (A, B):
        with closing(PostgresStore(postgres.url, collection=collection, folder=quick_path)) as store:
            put(store, chunks)
            check_searches(store, truth_of(chunks))
        with closing(PostgresStore(postgres.url, collection=collection, folder=quick_path)) as store:
            check_searches(store, truth_of(chunks))
        postgres.execute(f'DROP SCHEMA "ragistry_{collection}" CASCADE')


def test_a_scan_sees_one_state_while_others_write(stored: PostgresStore, another: Callable[..., PostgresStore]) -> None:
    put(stored, A, B)
    other, seen = another(), []
    for document in stored.scan(batch=2):
        put(other, version_of("a.md", 2), version_of("b.md", 2))
        seen.append(document.metadata["source_hash"])
    assert seen == ["hash 1"] * 6


def test_a_reader_sees_every_source_old_or_new(stored: PostgresStore, another: Callable[..., PostgresStore]) -> None:
    put(stored, A, B, C)
    reader, done, seen = another(), threading.Event(), set()

    def write() -> None:
        for version in range(2, 30):
            put(stored, *(version_of(name, version, 2 + version % 3) for name in ("a.md", "b.md", "c.md")))
        done.set()

    thread = threading.Thread(target=write)
    thread.start()
    while not done.is_set():
        for documents in (reader.search(ALL, 1000), reader.search_text("source", 1000)):
            versions = whole_versions(documents)
            assert set(versions) == {"a.md", "b.md", "c.md"}
            seen |= set(versions.values())
    thread.join()
    assert set(whole_versions(reader.search_text("source", 1000)).values()) == {"hash 29"}
    assert len(seen) > 2


# Standbys


@contextmanager
def paused(standby: PostgresServer) -> Iterator[None]:
    """A standby that applies nothing meanwhile."""
    standby.execute("SELECT pg_wal_replay_pause()")
    try:
        yield
    finally:
        standby.execute("SELECT pg_wal_replay_resume()")


def test_a_standby_answers_and_a_writer_still_reads_its_own_writes(
    stored: PostgresStore, another: Callable[..., PostgresStore], postgres: PostgresServer
) -> None:
    put(stored, A)
    with standby_server(postgres) as standby:
        both, reader = another(read_url=standby.url), another(read_url=standby.url)
        check_searches(reader, truth_of(A))
        with paused(standby):
            put(both, B)
            check_searches(both, truth_of(A, B))
            with collect() as trace, stage("both"):
                check_searches(reader, truth_of(A))
            assert "bytes of changes still to apply" in trace.stages()[0].degraded
            with pytest.raises(StoreConnectionError, match="behind by 1 changes"):
                reader.catch_up(timeout=0.1)
        reader.catch_up()
        check_searches(reader, truth_of(A, B))
        assert both._current() is both._reading
        alone = another("postgresql://postgres@127.0.0.1:9/postgres", read_url=standby.url)  # no primary there
        check_searches(alone, truth_of(A, B))
        with pytest.raises(StoreConnectionError, match="cannot be reached"):
            put(alone, C)


# Conditions


def test_a_wide_condition_is_answered_and_a_wider_one_refused(stored: PostgresStore) -> None:
    put(stored, A)
    wide = [{"page": number} for number in range(2, 2_000)]
    assert [d.metadata["page"] for d in stored.scan({"$or": wide})] == [2]
    assert stored.count({"page": {"$in": list(range(1, 200_000))}}) == 2
    with pytest.raises(InvalidFilterError, match="use \\$in"):
        stored.count({"$or": [{"page": number} for number in range(70_000)]})


def test_an_open_scan_does_not_hang_the_build_of_an_index(
    stored: PostgresStore, another: Callable[..., PostgresStore], caplog: pytest.LogCaptureFixture
) -> None:
    put(stored, A, B)
    store = another(exact_below=0, lock_timeout=0.1)
    scan = store.scan(batch=1)
    next(scan)
    store.flush()
    assert "the next ingest tries again" in caplog.text
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
