"""What ChromaDB does silently, or breaks on: each is handled, or refused with a message that helps.

Traps that any store could fall into are in the conformance suite.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import threading
from contextlib import closing
from statistics import median

import chromadb
import numpy as np
import pytest

from ragistry.errors import (
    ConfigError,
    EmbeddingMismatchError,
    InvalidCollectionNameError,
    StoreCorruptError,
    StoreError,
    StoreLockedError,
)
from ragistry.stores.chroma import ChromaStore
from ragistry.testing.stores.chunks import EAST, chunk
from ragistry.types import EmbeddedChunk, EmbedderFingerprint
from tests.stores.scripts import run, start


def random_chunks(count: int, dimension: int = 16) -> list[EmbeddedChunk]:
    rows = np.random.default_rng(0).normal(size=(count, dimension))
    return [EmbeddedChunk(f"text {i}", {"number": i}, row) for i, row in enumerate(rows)]


def numbers(count: int) -> list[str]:
    return [str(i) for i in range(count)]


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "chroma"


@pytest.fixture
def filled(folder):
    """A closed directory whose index has been written to disk, which ChromaDB does every 1,000 rows."""
    with closing(ChromaStore(folder)) as store:
        store.add_documents(random_chunks(1_200), ids=numbers(1_200))
    return folder


# Opening


def test_importing_the_store_does_not_import_chromadb():
    assert run("import sys, ragistry.stores.chroma; print({'chromadb', 'httpx'} & set(sys.modules))") == "set()\n"


@pytest.mark.parametrize("place", [{}, {"path": "a", "host": "b"}])
def test_a_store_takes_a_path_or_a_host(place):
    with pytest.raises(ConfigError, match="a path or a host, one of the two"):
        ChromaStore(**place)


def test_a_collection_that_is_not_in_cosine_space_is_refused(folder):
    with chromadb.PersistentClient(str(folder)) as client:
        client.create_collection("documents", embedding_function=None)
    with pytest.raises(StoreError, match="space 'l2', expected 'cosine'.*another collection name"):
        ChromaStore(folder)


def test_a_cosine_collection_of_another_program_is_used_and_keeps_its_metadata(folder):
    with chromadb.PersistentClient(str(folder)) as client:
        made = client.create_collection("documents", metadata={"hnsw:space": "cosine", "by": "them"})
        made.add(ids=["a"], embeddings=[EAST], documents=["text"], metadatas=[{"page": 1}])
    with closing(ChromaStore(folder)) as store:
        store.use_embedder(EmbedderFingerprint("embedded", "minilm", "abc", 3))
        assert [(d.id, d.content, d.metadata) for d in store.search(EAST)] == [("a", "text", {"page": 1})]
    with chromadb.PersistentClient(str(folder)) as client:
        assert client.get_collection("documents", embedding_function=None).metadata["by"] == "them"


@pytest.mark.parametrize("name", ["", "ab", "a b", "-abc", "abc.", "a" * 513, "ünï"])
def test_a_bad_name_of_a_collection_is_refused(engine, name):
    with pytest.raises(InvalidCollectionNameError, match="choose another name"):
        ChromaStore(engine, collection=name)


def test_a_dot_env_file_of_another_program_is_not_read(tmp_path, monkeypatch):
    (tmp_path / ".env").write_text("IS_PERSISTENT=nonsense\nCHROMA_SERVER_HTTP_PORT=nonsense\n")
    monkeypatch.chdir(tmp_path)
    with closing(ChromaStore("chroma")) as store:
        assert store.count() == 0


def test_a_directory_that_cannot_be_made_is_an_error_every_time(tmp_path):
    (tmp_path / "file").write_text("")
    for _ in range(2):
        with pytest.raises(StoreError, match="file/chroma.*whose parent is a folder"):
            ChromaStore(tmp_path / "file" / "chroma")


# Several processes and threads


def test_every_spelling_of_a_path_gives_one_engine(tmp_path, monkeypatch):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.chdir(tmp_path)
    spellings = [tmp_path / "real", tmp_path / "link", "real", "./x/../real/", str(tmp_path) + "//real"]
    stores = [ChromaStore(spelling) for spelling in spellings]
    for i, store in enumerate(stores):
        store.add_documents([chunk(f"text {i}")], ids=[str(i)])
    assert [store.count() for store in stores] == [5] * 5
    for store in stores[:-1]:
        store.close()
    assert len(stores[-1].search(EAST)) == 5
    stores[-1].close()


def test_a_second_process_is_refused_and_told_who_has_the_directory(folder):
    holding = (
        "import sys; from ragistry.stores.chroma import ChromaStore; store = ChromaStore(sys.argv[1]); "
        "print('open', flush=True); __import__('time').sleep(60)"
    )
    with start(holding, folder) as other:
        assert other.stdout.readline() == "open\n"
        with pytest.raises(StoreLockedError, match=rf"process {other.pid} on .*end that process"):
            ChromaStore(folder, lock_timeout=0.1)
        other.kill()
    with closing(ChromaStore(folder)) as store:
        assert store.count() == 0


FORKED = """
import os, sys, warnings
warnings.simplefilter("ignore")  # Python 3.12 warns of every fork beside threads
from ragistry.errors import StoreError
from ragistry.stores.chroma import ChromaStore
store = ChromaStore(sys.argv[1])
store.add_documents([("text", {}, [1.0, 0.0])])
child = os.fork()
if child == 0:
    for call in (store.count, lambda: store.search([1.0, 0.0]), lambda: ChromaStore(sys.argv[1], lock_timeout=0.1)):
        try:
            call()
        except StoreError as error:
            print("process" in str(error), flush=True)
    store.close()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print(store.count())
"""


def test_a_forked_child_gets_an_error_where_chromadb_would_hang(folder):
    assert run(FORKED, folder).split() == ["True", "True", "True", "1"]


def test_threads_may_share_a_store(embedded):
    chunks = random_chunks(80)

    def work(part):
        for i in part:
            embedded.add_documents([chunks[i]], ids=[str(i)])
            assert embedded.search(chunks[i].embedding, 1)[0].id == str(i)

    threads = [threading.Thread(target=work, args=(range(i, 80, 4),)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(int(document.id) for document in embedded.scan()) == list(range(80))


# Limits


def test_more_than_one_batch_of_chromadb_can_be_added_and_scanned(engine):
    with closing(ChromaStore(engine, collection="batches", batch_size=100_000)) as store:
        assert store.add_documents(random_chunks(6_000, 2), ids=numbers(6_000)) == 6_000
        assert sum(1 for _ in store.scan(batch=100_000)) == 6_000


def test_a_server_gets_no_more_in_one_request_than_it_takes(served):
    served.add_documents([chunk("x" * 10_000_000) for _ in range(6)], ids=numbers(6))
    assert len(served.get(["5"])[0].content) == 10_000_000


def test_the_largest_allowed_metadata_do_not_break_the_collection(embedded):
    most = {f"k{i:03}": [1] * 40 for i in range(100)}
    embedded.add_documents([EmbeddedChunk("text", most, EAST)], ids=["a"])
    assert embedded.get(["a"])[0].metadata == most


def test_the_last_of_seventeen_digits_may_change(embedded):
    given = {"few": 0.1, "third": 1 / 3, "time": 1795301639.1075003, "many": 123456789.123456789, "near": 1 - 2**-53}
    embedded.add_documents([EmbeddedChunk("text", given, EAST)], ids=["a"])
    assert embedded.get(["a"])[0].metadata == pytest.approx(given, rel=2**-52, abs=0)
    assert [embedded.count({key: value}) for key, value in given.items()] == [1] * len(given)


def test_lists_in_metadata_do_not_return_after_a_collection_is_cleared(folder):
    with closing(ChromaStore(folder)) as store:
        store.add_documents([chunk("old", tags=["a", "b"])], ids=["old"])
        store.clear_collection()
        store.add_documents([chunk("new", page=1)], ids=["new"])
        assert store.get(["new"])[0].metadata == {"page": 1}


def test_another_dimension_is_refused_when_no_embedder_is_recorded(embedded):
    embedded.add_documents([chunk("text")])
    with pytest.raises(EmbeddingMismatchError, match="dimension of 3, got 2.*another Chroma collection"):
        embedded.add_documents([chunk("text", [1.0, 0.0])])


# Recall and ties


def test_recall_holds_for_many_results_and_under_a_condition(embedded):
    chunks = random_chunks(3_000, 48)
    embedded.add_documents(chunks, ids=numbers(3_000))
    matrix = np.array([chunk.embedding for chunk in chunks])
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    query = matrix[7] + matrix[8]
    for top_k in (10, 1_000):
        expected = {str(i) for i in np.argsort(-matrix @ query)[:top_k]}
        assert len(expected & {document.id for document in embedded.search(query, top_k)}) >= 0.98 * top_k
        assert len(embedded.search(query, top_k, where={"number": {"$lt": 1_500}})) == top_k


def test_many_that_share_the_last_place_are_ranked_by_id(embedded):
    ids = [f"{i:04}" for i in range(300)]
    shuffled = random.Random(1).sample(ids, len(ids))
    embedded.add_documents([chunk("nearest", EAST)], ids=["z"])
    embedded.add_documents([chunk(f"copy {i}", [1.0, 0.2, 0.0]) for i in shuffled], ids=shuffled)
    assert [document.id for document in embedded.search(EAST, 5)] == ["z", *ids[:4]]


def test_many_equal_vectors_do_not_hide_the_others(tmp_path):
    chunks = random_chunks(500, 32)
    copies = [EmbeddedChunk(f"copy {i}", {}, np.ones(32)) for i in range(500)]
    shares = []
    for number in range(3):  # several threads make the graph, so that it differs from run to run
        with closing(ChromaStore(tmp_path / str(number))) as store:
            store.add_documents([*chunks, *copies], ids=numbers(1_000))
            found = [store.search(chunk.embedding, 1)[0].content == chunk.text for chunk in chunks[::2]]
        shares.append(sum(found) / len(found))
    assert median(shares) >= 0.92


# Damage


def test_a_directory_that_lost_its_database_is_not_opened_as_an_empty_one(filled):
    (filled / "chroma.sqlite3").unlink()
    with pytest.raises(StoreCorruptError, match="lost its chroma.sqlite3; restore"):
        ChromaStore(filled)


@pytest.mark.parametrize("content", [b"", b"garbage" * 1000])
def test_a_damaged_database_is_reported_and_a_new_one_can_be_made_in_its_place(filled, content):
    path = filled / "chroma.sqlite3"
    path.write_bytes(content or path.read_bytes()[:5000])
    with pytest.raises(StoreCorruptError, match="restore the folder"):
        ChromaStore(filled)
    shutil.rmtree(filled)
    with closing(ChromaStore(filled)) as store:
        assert store.add_documents([chunk("text")]) == 1


@pytest.mark.parametrize(
    ("file", "share"), [("data_level0.bin", 0), ("data_level0.bin", 0.6), ("header.bin", 0.3), ("", 0)]
)
def test_an_index_that_lost_its_vectors_is_reported(filled, file, share):
    [index] = [entry for entry in filled.iterdir() if entry.is_dir()]
    if file:
        os.truncate(index / file, int((index / file).stat().st_size * share))
    else:
        shutil.rmtree(index)
    with pytest.raises(StoreCorruptError, match="restore the folder"):
        ChromaStore(filled)


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
        for _ in range(random.randint(4, 7)):
            acknowledged = int(writer.stdout.readline())
        writer.send_signal(signal.SIGKILL)
    try:
        store = ChromaStore(folder)
    except StoreCorruptError as error:
        assert "restore" in str(error)  # noqa: PT017
        return
    with closing(store):
        assert store.count() >= acknowledged
        assert len(store.get(numbers(acknowledged))) == acknowledged
