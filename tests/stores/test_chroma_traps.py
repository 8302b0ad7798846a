"""What ChromaDB does in silence, or breaks on: each is handled, or refused with a message that helps.

What a trap has in common with every store is in the conformance suite; here each is met head-on.
"""

from __future__ import annotations

import logging
import math
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
    EmbeddingMismatchError,
    InvalidChunkError,
    InvalidCollectionNameError,
    InvalidFilterError,
    QueryError,
    StoreCorruptError,
    StoreError,
    StoreLockedError,
)
from ragistry.stores.chroma import ChromaStore
from ragistry.stores.chroma_records import batches
from ragistry.testing.stores.chunks import EAST, NORTH, chunk
from ragistry.types import EmbeddedChunk, EmbedderFingerprint
from tests.stores.scripts import run, start


def random_chunks(count: int, dimension: int = 16, variant: int = 0) -> list[EmbeddedChunk]:
    rows = np.random.default_rng(variant).normal(size=(count, dimension))
    return [EmbeddedChunk(f"text {i}", {"number": i}, row) for i, row in enumerate(rows)]


def filled(path, count: int = 1200) -> list[EmbeddedChunk]:
    """A closed directory whose index has been written to disk, which ChromaDB does every 1,000 rows."""
    chunks = random_chunks(count)
    with closing(ChromaStore(path)) as store:
        store.add_documents(chunks, ids=[str(i) for i in range(count)])
    return chunks


def index_folder(path):
    [folder] = [entry for entry in path.iterdir() if entry.is_dir()]
    return folder


# How it is opened


def test_chromadb_takes_long_to_import():
    loaded = "import sys, ragistry.stores.chroma; print({'chromadb', 'httpx', 'numpy'} & set(sys.modules))"
    assert run(loaded) == "{'numpy'}\n"


def test_no_embedding_function_that_would_download_a_model(embedded):
    assert embedded._rows._embedding_function is None
    assert embedded._rows.configuration_json["embedding_function"] == {"type": "legacy"}


def test_the_default_space_is_not_cosine(tmp_path):
    with chromadb.PersistentClient(str(tmp_path)) as client:
        client.create_collection("documents", embedding_function=None)
    with pytest.raises(StoreError, match="space 'l2', expected 'cosine'.*another collection name"):
        ChromaStore(tmp_path)


def test_a_collection_made_by_another_program_in_cosine_space_is_taken(tmp_path):
    with chromadb.PersistentClient(str(tmp_path)) as client:
        made = client.create_collection("documents", metadata={"hnsw:space": "cosine", "by": "them"})
        made.add(ids=["a"], embeddings=[EAST], documents=["text"], metadatas=[{"page": 1}])
    with closing(ChromaStore(tmp_path)) as store:
        store.use_embedder(EmbedderFingerprint("embedded", "minilm", "abc", 3))
        assert [(d.id, d.content, d.metadata) for d in store.search(EAST)] == [("a", "text", {"page": 1})]
        assert store._rows.metadata["by"] == "them"


def test_an_existing_collection_keeps_its_own_configuration(tmp_path, caplog):
    with chromadb.PersistentClient(str(tmp_path)) as client:
        client.create_collection("documents", configuration={"hnsw": {"space": "cosine", "ef_search": 10}})
    with closing(ChromaStore(tmp_path)):
        assert "made with ef_search 10" in caplog.text


@pytest.mark.parametrize("name", ["", "ab", "a b", "-abc", "abc.", "a" * 513, "ünï"])
def test_names_of_collections_have_rules(tmp_path, name):
    with pytest.raises(InvalidCollectionNameError, match="3 to 512"):
        ChromaStore(tmp_path / "chroma", collection=name)
    assert list(tmp_path.iterdir()) == []


def test_a_file_env_of_somebody_else_is_not_read(tmp_path, monkeypatch):
    (tmp_path / ".env").write_text("IS_PERSISTENT=nonsense\nCHROMA_SERVER_HTTP_PORT=nonsense\n")
    monkeypatch.chdir(tmp_path)
    with closing(ChromaStore("chroma")) as store:
        assert store.count() == 0


def test_a_directory_that_cannot_be_made_is_an_error_every_time(tmp_path):
    (tmp_path / "file").write_text("")
    for _ in range(2):
        with pytest.raises(StoreError, match="file/chroma.*whose parent is a folder"):
            ChromaStore(tmp_path / "file" / "chroma")


# Two at once


def test_one_path_spelled_in_several_ways_is_one_engine(tmp_path, monkeypatch):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.chdir(tmp_path)
    spellings = [tmp_path / "real", tmp_path / "link", "real", "./x/../real/", str(tmp_path) + "//real"]
    stores = [ChromaStore(spelling) for spelling in spellings]
    for i, store in enumerate(stores):
        store.add_documents([chunk(f"text {i}")], ids=[str(i)])
    assert [store.count() for store in stores] == [5] * 5
    assert len({id(store._connection.client._system) for store in stores}) == 1
    for store in stores[:-1]:
        store.close()
    assert len(stores[-1].search(EAST)) == 5
    stores[-1].close()


def test_two_processes_on_one_path(tmp_path):
    holding = (
        "import sys; from ragistry.stores.chroma import ChromaStore; store = ChromaStore(sys.argv[1]); "
        "print('open', flush=True); __import__('time').sleep(60)"
    )
    with start(holding, tmp_path / "chroma") as other:
        assert other.stdout.readline() == "open\n"
        with pytest.raises(StoreLockedError, match=rf"in use by process {other.pid} on .*end that process"):
            ChromaStore(tmp_path / "chroma", lock_timeout=0.1)
        other.kill()
    with closing(ChromaStore(tmp_path / "chroma")) as store:
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
    for call in (store.count, lambda: store.search([1.0, 0.0]), lambda: ChromaStore(sys.argv[1])):
        try:
            call()
        except StoreError as error:
            print("spawn" in str(error), flush=True)
    store.close()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print(store.count())
"""


def test_calls_after_a_fork_hang(tmp_path):
    assert run(FORKED, tmp_path / "chroma").split() == ["True", "True", "True", "1"]


def test_the_interpreter_stands_still_during_a_write():
    assert [part.stop - part.start for part in batches(["text"] * 2_500, 1_000)] == [1_000, 1_000, 500]


def test_threads_may_share_a_store(embedded):
    chunks = random_chunks(80)
    parts = [range(i, 80, 4) for i in range(4)]

    def work(part):
        for i in part:
            embedded.add_documents([chunks[i]], ids=[str(i)])
            assert embedded.search(chunks[i].embedding, 1)[0].id == str(i)

    threads = [threading.Thread(target=work, args=(part,)) for part in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(int(document.id) for document in embedded.scan()) == list(range(80))


# Limits


def test_a_batch_has_a_limit(embedded):
    limit = embedded._connection.client.get_max_batch_size()
    directory, name = embedded._connection.directory, embedded._name
    with closing(ChromaStore(directory, collection=name, batch_size=100_000)) as store:
        assert store.add_documents(random_chunks(limit + 1, 2), ids=[str(i) for i in range(limit + 1)]) == limit + 1
        assert store.count() == limit + 1
        assert sum(1 for _ in store.scan(batch=100_000)) == limit + 1


def test_a_server_takes_forty_megabytes_in_one_request(served):
    assert [part.stop - part.start for part in batches(["x" * 3_000_000] * 5, 1_000)] == [2, 2, 1]
    longest = "x" * 10_000_000
    served.add_documents([chunk(longest)], ids=["a"])
    assert served.get(["a"])[0].content == longest


def test_a_record_of_too_many_values_poisons_its_collection(embedded):
    for metadata in ({f"k{i}": i for i in range(5_462)}, {"k": [0] * 10_000}, {f"k{i}": [0] * 100 for i in range(60)}):
        with pytest.raises(InvalidChunkError, match="the limit is"):
            embedded.add_documents([EmbeddedChunk("text", metadata, EAST)])
    most = {f"k{i:03}": [1] * 40 for i in range(100)}
    embedded.add_documents([EmbeddedChunk("text", most, EAST)], ids=["a"])
    assert embedded.get(["a"])[0].metadata == most


def test_recall_holds_for_many_results(embedded):
    chunks = random_chunks(3_000, 48)
    embedded.add_documents(chunks, ids=[str(i) for i in range(3_000)])
    matrix = np.array([chunk.embedding for chunk in chunks])
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    for top_k in (10, 1_000):
        query = matrix[7] + matrix[8]
        expected = {str(i) for i in np.argsort(-matrix @ query)[:top_k]}
        found = [document.id for document in embedded.search(query, top_k)]
        assert len(expected & set(found)) >= 0.98 * top_k
        filtered = embedded.search(query, top_k, where={"number": {"$lt": 1_500}})
        assert len(filtered) == top_k


# Metadata and vectors


def test_upsert_merges_metadata(embedded):
    embedded.add_documents([chunk("old", EAST, a=1, b=[1], c="x"), chunk("kept", a=1)], ids=["a", "b"])
    embedded.add_documents([chunk("new", NORTH, c="y"), chunk("first", d=1)], ids=["a", "c"])
    assert {d.id: d.metadata for d in embedded.scan()} == {"a": {"c": "y"}, "b": {"a": 1}, "c": {"d": 1}}


def test_add_of_an_existing_id_is_ignored(embedded):
    embedded.add_documents([chunk("old")], ids=["a"])
    embedded.add_documents([chunk("new")], ids=["a"])
    assert embedded.get(["a"])[0].content == "new"


def test_deleting_a_missing_id_reports_one_deleted(embedded):
    assert embedded.delete(ids=["missing"]) == 0


def test_get_ignores_the_order(embedded):
    embedded.add_documents([chunk(text) for text in "abc"], ids=list("abc"))
    assert [document.id for document in embedded.get(["c", "a", "b"])] == ["c", "a", "b"]


def test_there_is_no_count_with_a_filter(embedded):
    embedded.add_documents([chunk(str(i), page=i % 3) for i in range(10)])
    assert embedded.count({"page": 0}) == 4


def test_ne_and_nin_include_records_without_the_key(embedded):
    embedded.add_documents([chunk("with", page=1), chunk("without")], ids=["a", "b"])
    assert [embedded.count({"page": {"$ne": 1}}), embedded.count({"page": {"$nin": [1]}})] == [1, 1]
    assert embedded.count({"page": {"$nin": []}}) == 2


def test_true_never_equals_one(embedded):
    embedded.add_documents([chunk("true", flag=True), chunk("one", flag=1)], ids=["a", "b"])
    assert [document.id for document in embedded.scan({"flag": True})] == ["a"]
    assert [document.id for document in embedded.scan({"flag": 1})] == ["b"]


def test_conditions_of_no_key_of_two_keys_and_joins_of_one_are_refused_bare(embedded):
    embedded.add_documents([chunk("text", a=1, b=2)])
    assert embedded.count({"a": 1, "b": 2}) == 1
    assert embedded.count({"$and": [{"a": 1}]}) == 1
    assert embedded.count({"a": {"$gt": 0, "$lt": 2}}) == 1
    with pytest.raises(InvalidFilterError, match="empty"):
        embedded.search(EAST, where={})


def test_a_broken_number_is_cut_where_whole_ones_are_stored(embedded):
    embedded.add_documents([chunk("whole", n=1), chunk("broken", n=1.5)], ids=["a", "b"])
    assert embedded._rows.get(where={"n": 1.5}, include=[])["ids"] == ["a", "b"]
    assert [document.id for document in embedded.scan({"n": 1.5})] == ["b"]


def test_the_last_of_seventeen_digits_may_change(embedded):
    numbers = {"few": 0.1, "third": 1 / 3, "time": 1795301639.1075003, "many": 123456789.123456789, "near": 1 - 2**-53}
    embedded.add_documents([EmbeddedChunk("text", numbers, EAST)], ids=["a"])
    found = embedded.get(["a"])[0].metadata
    assert found == pytest.approx(numbers, rel=2**-52, abs=0)
    assert (found["few"], found["third"]) == (0.1, 1 / 3)
    assert [embedded.count({key: value}) for key, value in numbers.items()] == [1] * len(numbers)


def test_text_has_no_order(embedded):
    embedded.add_documents([chunk("text", day="2024-05-01"), chunk("text 2", day="2024-06-01")], ids=["a", "b"])
    assert [document.id for document in embedded.search(EAST, where={"day": {"$gte": "2024-05-15"}})] == ["b"]


def test_a_deep_or_wide_condition_breaks_the_query(embedded):
    embedded.add_documents([chunk("text", page=1)])
    deep = {"page": {"$gte": 0}}
    for i in range(31):
        deep = {("$and", "$or")[i % 2]: [deep, {"page": 1}]}
    assert embedded.count(deep) == 1
    with pytest.raises(InvalidFilterError, match="levels"):
        embedded.count({"$and": [deep, {"page": 1}]})
    assert embedded.count({"$or": [{"page": {"$in": [i, i + 0.5, str(i)]}} for i in range(700)]}) == 1


@pytest.mark.parametrize("value", [math.nan, 2**63, "\ud800"])
def test_nan_vanishes_integers_lose_digits_surrogates_raise(embedded, value):
    with pytest.raises(InvalidChunkError, match="metadata 'key'"):
        embedded.add_documents([chunk("text", key=value)])


def test_empty_metadata_are_refused(embedded):
    embedded.add_documents([chunk("text", page=1)], ids=["a"])
    embedded.add_documents([chunk("text")], ids=["a"])
    assert embedded.get(["a"])[0].metadata == {}


def test_a_nan_query_gives_nan_distances(embedded):
    embedded.add_documents([chunk("text")])
    with pytest.raises(QueryError, match="NaN"):
        embedded.search([math.nan, 0.0, 0.0])


def test_the_length_of_a_vector_overflows(embedded):
    embedded.add_documents([chunk("huge", [1e30, 1e30, 0]), chunk("tiny", [1e-30, 1e-30, 0])], ids=["a", "b"])
    assert [round(document.score, 4) for document in embedded.search(EAST)] == [0.7071, 0.7071]


def test_another_dimension_is_told_by_chroma_alone_where_no_embedder_is_on_record(embedded):
    embedded.add_documents([chunk("text")])
    with pytest.raises(EmbeddingMismatchError, match="dimension of 3, got 2.*another Chroma collection"):
        embedded.add_documents([chunk("text", [1.0, 0.0])])


def test_a_list_in_the_metadata_of_a_collection_panics(tmp_path):
    with (
        closing(ChromaStore(tmp_path / "chroma")) as store,
        pytest.raises(StoreError, match="unreachable"),
        store._use() as rows,
    ):
        rows.modify(metadata={"list": [1]})


# Damage


def test_delete_collection_leaves_its_folder(tmp_path):
    filled(tmp_path / "chroma")
    old = index_folder(tmp_path / "chroma").name
    with closing(ChromaStore(tmp_path / "chroma")) as store:
        store.clear_collection()
        store.add_documents([chunk("text")])
        assert store.count() == 1
        assert not (tmp_path / "chroma" / old).exists()
    with closing(ChromaStore(tmp_path / "chroma")) as store:
        assert store.search(EAST)[0].content == "text"


@pytest.mark.parametrize("count", [3, 1200])
def test_a_deleted_database_is_an_empty_one(tmp_path, count):
    filled(tmp_path / "chroma", count)
    (tmp_path / "chroma" / "chroma.sqlite3").unlink()
    with pytest.raises(StoreCorruptError, match="lost its chroma.sqlite3; restore"):
        ChromaStore(tmp_path / "chroma")


def test_a_collection_that_something_else_dropped_is_an_empty_one(tmp_path):
    filled(tmp_path, 3)
    with chromadb.PersistentClient(str(tmp_path)) as client:
        client.delete_collection("documents")
    with pytest.raises(StoreCorruptError, match="'documents'.*removed"):
        ChromaStore(tmp_path)


@pytest.mark.parametrize("content", [b"", b"garbage" * 1000])
def test_a_cut_database(tmp_path, content):
    filled(tmp_path / "chroma", 3)
    path = tmp_path / "chroma" / "chroma.sqlite3"
    path.write_bytes(content or path.read_bytes()[:5000])
    with pytest.raises(StoreCorruptError, match="restore the folder"):
        ChromaStore(tmp_path / "chroma")
    shutil.rmtree(tmp_path / "chroma")
    with closing(ChromaStore(tmp_path / "chroma")) as store:
        assert store.add_documents([chunk("text")]) == 1


def test_a_deleted_index_folder_gives_one_hit(tmp_path):
    filled(tmp_path / "chroma")
    shutil.rmtree(index_folder(tmp_path / "chroma"))
    with pytest.raises(StoreCorruptError, match="restore the folder"):
        ChromaStore(tmp_path / "chroma")


@pytest.mark.parametrize("name", ["data_level0.bin", "header.bin", "length.bin", "index_metadata.pickle"])
@pytest.mark.parametrize("part", [0.0, 0.6])
def test_a_cut_index_file_gives_wrong_hits(tmp_path, name, part):
    filled(tmp_path / "chroma")
    path = index_folder(tmp_path / "chroma") / name
    os.truncate(path, int(path.stat().st_size * part))
    with pytest.raises(StoreCorruptError, match="restore"):
        ChromaStore(tmp_path / "chroma")


WRITER = """
import sys
from ragistry.stores.chroma import ChromaStore
store = ChromaStore(sys.argv[1], batch_size=300)
for start in range(0, 100_000, 300):
    chunks = [(f"text {i}", {}, [float(i % 7), float(i % 11), float(i % 13), 1.0]) for i in range(start, start + 300)]
    store.add_documents(chunks, ids=[str(i) for i in range(start, start + 300)])
    print(start + 300, flush=True)
"""


def test_a_killed_writer_leaves_all_it_acknowledged_or_a_clear_error(tmp_path):
    with start(WRITER, tmp_path / "chroma") as writer:
        for _ in range(random.randint(4, 7)):
            acknowledged = int(writer.stdout.readline())
        writer.send_signal(signal.SIGKILL)
    try:
        store = ChromaStore(tmp_path / "chroma")
    except StoreCorruptError as error:
        assert "restore" in str(error)  # noqa: PT017
        return
    with closing(store):
        assert store.count() >= acknowledged
        assert len(store.get([str(i) for i in range(acknowledged)])) == acknowledged


# Ties


def test_many_that_share_the_last_place_are_ranked_by_id(embedded):
    ids = [f"{i:04}" for i in range(300)]
    shuffled = random.Random(1).sample(ids, len(ids))
    embedded.add_documents([chunk("nearest", EAST)], ids=["z"])
    embedded.add_documents([chunk(f"copy {i}", [1.0, 0.2, 0.0]) for i in shuffled], ids=shuffled)
    assert [document.id for document in embedded.search(EAST, 5)] == ["z", *ids[:4]]


def test_many_equal_vectors_hide_the_others(tmp_path):
    chunks = random_chunks(500, 32)
    copies = [EmbeddedChunk(f"copy {i}", {}, np.ones(32)) for i in range(500)]
    shares = []
    for number in range(3):  # several threads make the graph, so that it differs from time to time
        with closing(ChromaStore(tmp_path / str(number))) as store:
            store.add_documents([*chunks, *copies], ids=[str(i) for i in range(1_000)])
            found = [store.search(chunk.embedding, 1)[0].content == chunk.text for chunk in chunks[::2]]
        shares.append(sum(found) / len(found))
    assert median(shares) >= 0.92


def test_an_empty_store_is_said_to_be_empty(embedded, caplog):
    with caplog.at_level(logging.WARNING):
        assert embedded.search(EAST) == []
    assert "the store is empty; ingest something first" in caplog.text
    embedded.add_documents([chunk("text")])
    caplog.clear()
    assert embedded.search(EAST, where={"page": 1}) == []
    assert caplog.text == ""
