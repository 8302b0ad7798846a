"""What ChromaDB does silently, or breaks on: each is handled, or refused with a message that helps.

Traps that any store could fall into are in the conformance suite.
"""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import chromadb
import numpy as np
import pytest

from ragistry.errors import ConfigError, InvalidCollectionNameError, StoreCorruptError, StoreError, StoreLockedError
from ragistry.stores.chroma import ChromaStore
from ragistry.testing.stores.chunks import EAST, chunk
from ragistry.types import EmbeddedChunk, EmbedderFingerprint
from tests.messages import check_message, refused
from tests.stores.scripts import HOLD, run, start, started


def random_chunks(count: int, dimension: int = 16) -> list[EmbeddedChunk]:
    rows = np.random.default_rng(0).normal(size=(count, dimension))
    return [EmbeddedChunk(f"text {i}", {"number": i}, row) for i, row in enumerate(rows)]


def numbers(count: int) -> list[str]:
    return [str(i) for i in range(count)]


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "chroma"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A closed directory whose index has been written to disk, which ChromaDB does every 1,000 rows."""
    folder = tmp_path_factory.mktemp("whole") / "chroma"
    with closing(ChromaStore(folder)) as store:
        store.add_documents(random_chunks(1_200), ids=numbers(1_200))
    return folder


@pytest.fixture
def filled(whole, folder):
    """A copy of it."""
    return shutil.copytree(whole, folder)


# Opening


def test_store_takes_a_path_or_a_host():
    for place in ({}, {"path": "a", "host": "b"}):
        with refused(ConfigError):
            ChromaStore(**place)


def test_cosine_collection_of_another_program_is_used_and_keeps_its_metadata(folder):
    with chromadb.PersistentClient(str(folder)) as client:
        client.create_collection("euclidean", embedding_function=None)
        made = client.create_collection("documents", metadata={"hnsw:space": "cosine", "by": "them"})
        made.add(ids=["a"], embeddings=[EAST], documents=["text"], metadatas=[{"page": 1}])
    with closing(ChromaStore(folder)) as store:
        store.use_embedder(EmbedderFingerprint("embedded", "minilm", "abc", 3))
        assert [(d.id, d.content, d.metadata) for d in store.search(EAST)] == [("a", "text", {"page": 1})]
    with chromadb.PersistentClient(str(folder)) as client:
        assert client.get_collection("documents", embedding_function=None).metadata["by"] == "them"
    with refused(StoreError, "'l2'", "'cosine'"):
        ChromaStore(folder, collection="euclidean")


def test_bad_name_of_a_collection_is_refused(engine):
    for name in ("", "ab", "a b", "-abc", "abc.", "a" * 513, "ünï"):
        with pytest.raises(InvalidCollectionNameError):
            ChromaStore(engine, collection=name)


def test_a_dot_env_file_of_another_program_is_not_read(tmp_path, monkeypatch):
    (tmp_path / ".env").write_text("IS_PERSISTENT=nonsense\nCHROMA_SERVER_HTTP_PORT=nonsense\n")
    monkeypatch.chdir(tmp_path)
    with closing(ChromaStore("chroma")) as store:
        assert store.count() == 0


def test_a_directory_that_cannot_be_made_is_an_error_every_time(tmp_path):
    (tmp_path / "file").write_text("")
    for _ in range(2):
        with refused(StoreError):
            ChromaStore(tmp_path / "file" / "chroma")


# Several processes and threads


def test_second_process_is_refused_and_told_who_has_the_directory(folder):
    folder.mkdir()
    with (
        started(HOLD, folder / "ragistry.lock") as other,
        refused(StoreLockedError, folder, f"process {other.pid} on "),
    ):
        ChromaStore(folder, lock_timeout=0.1)
    with closing(ChromaStore(folder)) as store:
        assert store.count() == 0


FORKED = """
import os, sys, warnings
warnings.simplefilter("ignore")  # Python 3.12 warns of every fork beside threads
from ragistry.errors import StoreError
from ragistry.stores.chroma import ChromaStore
store = ChromaStore(sys.argv[1])
store.add_documents([("text", {}, [1.0, 0.0])])
if os.fork() == 0:
    for call in (store.count, lambda: store.search([1.0, 0.0]), lambda: ChromaStore(sys.argv[1], lock_timeout=0.1)):
        try:
            call()
        except StoreError as error:
            print("process" in str(error), flush=True)
    os._exit(0)
assert os.wait()[1] == 0
print(store.count())
"""


def test_a_forked_child_gets_an_error_where_chromadb_would_hang(folder):
    assert run(FORKED, folder).split() == ["True", "True", "True", "1"]


def test_threads_may_share_a_store(embedded):
    chunks = random_chunks(40)

    def work(i):
        embedded.add_documents([chunks[i]], ids=[str(i)])
        assert embedded.search(chunks[i].embedding, 1)[0].id == str(i)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(40)))
    assert sorted(int(document.id) for document in embedded.scan()) == list(range(40))


# Limits


@pytest.mark.slow
def test_more_than_one_batch_of_chromadb_can_be_added_and_scanned(engine):
    with closing(ChromaStore(engine, collection="batches", batch_size=100_000)) as store:
        assert store.add_documents(random_chunks(6_000, 2), ids=numbers(6_000)) == 6_000
        assert sum(1 for _ in store.scan(batch=100_000)) == 6_000


def test_a_server_gets_no_more_in_one_request_than_it_takes(served):
    served.add_documents([chunk("x" * 10_000_000) for _ in range(5)], ids=numbers(5))
    assert len(served.get(["4"])[0].content) == 10_000_000


def test_the_largest_allowed_metadata_do_not_break_the_collection(embedded):
    most = {f"k{i:03}": [1] * 40 for i in range(100)}
    embedded.add_documents([EmbeddedChunk("text", most, EAST)], ids=["a"])
    assert embedded.get(["a"])[0].metadata == most


def test_the_last_of_seventeen_digits_may_change(embedded):
    given = {"few": 0.1, "third": 1 / 3, "time": 1795301639.1075003, "many": 123456789.123456789, "near": 1 - 2**-53}
    embedded.add_documents([EmbeddedChunk("text", given, EAST)], ids=["a"])
    assert embedded.get(["a"])[0].metadata == pytest.approx(given, rel=2**-52, abs=0)
    assert [embedded.count({key: value}) for key, value in given.items()] == [1] * len(given)


# Recall and ties


def test_recall_holds_for_many_results_and_under_a_condition(embedded):
    chunks = random_chunks(1_500, 48)
    embedded.add_documents(chunks, ids=numbers(1_500))
    matrix = np.array([chunk.embedding for chunk in chunks])
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    query = matrix[7] + matrix[8]
    for top_k in (10, 1_000):
        expected = {str(i) for i in np.argsort(-matrix @ query)[:top_k]}
        assert len(expected & {document.id for document in embedded.search(query, top_k)}) >= 0.98 * top_k
        assert len(embedded.search(query, top_k, where={"number": {"$lt": 1_100}})) == top_k


def test_many_equal_vectors_do_not_hide_the_others(folder):
    chunks = random_chunks(500, 32)
    copies = [EmbeddedChunk(f"copy {i}", {}, np.ones(32)) for i in range(500)]
    with closing(ChromaStore(folder)) as store:
        store.add_documents([*chunks, *copies], ids=numbers(1_000))
        found = [store.search(chunk.embedding, 1)[0].content == chunk.text for chunk in chunks[::2]]
    assert sum(found) / len(found) >= 0.8  # several threads make the graph, so that it differs from run to run


# Damage


def truncate(path, share):
    os.truncate(path, int(path.stat().st_size * share))


def index_of(folder):
    """The folder of the index of vectors."""
    [index] = [entry for entry in folder.iterdir() if entry.is_dir()]
    return index


DAMAGE = {
    "no database": lambda folder: (folder / "chroma.sqlite3").unlink(),
    "half a page of the database": lambda folder: os.truncate(folder / "chroma.sqlite3", 5_000),
    "another file": lambda folder: (folder / "chroma.sqlite3").write_bytes(b"garbage" * 1_000),
    "no vectors": lambda folder: truncate(index_of(folder) / "data_level0.bin", 0),
    "part of the vectors": lambda folder: truncate(index_of(folder) / "data_level0.bin", 0.6),
    "part of the header": lambda folder: truncate(index_of(folder) / "header.bin", 0.3),
    "no index": lambda folder: shutil.rmtree(index_of(folder)),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_directory_is_reported_and_a_new_one_can_be_made_in_its_place(filled, damage):
    DAMAGE[damage](filled)
    with refused(StoreCorruptError, filled):
        ChromaStore(filled)
    if damage in ("half a page of the database", "another file"):
        shutil.rmtree(filled)
        with closing(ChromaStore(filled)) as store:
            assert store.add_documents([chunk("text")]) == 1


WRITER = """
import sys
from ragistry.stores.chroma import ChromaStore
store = ChromaStore(sys.argv[1], batch_size=300)
for start in range(0, 100_000, 300):
    chunks = [(f"text {i}", {}, [float(i % 7), float(i % 11), float(i % 13), 1.0]) for i in range(start, start + 300)]
    store.add_documents(chunks, ids=[str(i) for i in range(start, start + 300)])
    print(start + 300, flush=True)
"""


def test_a_killed_writer_leaves_all_it_acknowledged_or_a_clear_error(folder):
    with start(WRITER, folder) as writer:
        acknowledged = [int(writer.stdout.readline()) for _ in range(5)][-1]
        writer.kill()
    try:
        store = ChromaStore(folder)
    except StoreCorruptError as error:
        check_message(str(error), folder)
        return
    with closing(store):
        assert store.count() >= acknowledged
        assert len(store.get(numbers(acknowledged))) == acknowledged
