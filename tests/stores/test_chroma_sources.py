"""Sources in ChromaDB, which has no transactions: what is found and listed of one whose write was interrupted."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from threading import Thread
from uuid import uuid4

import chromadb
import pytest
from chromadb.api.models.Collection import Collection

from ragistry.errors import DuplicateChunkIDError, StoreError
from ragistry.stores.chroma import ChromaStore
from ragistry.testing.stores.chunks import EAST, NORTH_EAST, chunk, source
from tests.messages import refused


class InterruptedWriteError(StoreError):
    pass


@pytest.fixture(params=["embedded", "served"])
def small(request, engine, chroma):
    """A store that writes two chunks at a time: of a directory or of a server."""
    place = {"path": engine} if request.param == "embedded" else {"host": chroma.url}
    with closing(ChromaStore(**place, collection=f"c{uuid4().hex}", batch_size=2)) as store:
        yield store


@pytest.fixture
def interrupted(monkeypatch):
    """Run a write, and let a method of ChromaDB's collection fail after so many calls."""

    def run(write, method: str, after: int) -> None:
        original, done = getattr(Collection, method), []

        def failing(self, *arguments, **options):
            if len(done) == after:
                raise InterruptedWriteError("interrupted")
            done.append(1)
            return original(self, *arguments, **options)

        with monkeypatch.context() as patch:
            patch.setattr(Collection, method, failing)
            with pytest.raises(InterruptedWriteError):
                write()

    return run


def put(store: ChromaStore, version: str, chunks: int, collection: str = "c") -> None:
    texts = [f"{version} {i}" for i in range(chunks)]
    store.replace_source(collection, "f.md", source(collection, "f.md", texts, version))


def found(store: ChromaStore, top_k: int = 10, **options) -> list[str]:
    return sorted(document.content for document in store.search(EAST, top_k, **options))


def listed(store: ChromaStore) -> list[tuple[str, int, str]]:
    return [(info.collection, info.chunks, info.source_hash) for info in store.sources()]


@pytest.mark.parametrize(("old", "new", "method", "after", "hashes", "seen"), [
    (0, 5, "upsert", 0, [], ""), (0, 5, "upsert", 1, [""], "new 1 2"), (3, 5, "upsert", 1, [""], "old 0"),
    (7, 5, "upsert", 0, [""], "old 0 1 2 3 4 5 6"), (7, 5, "upsert", 2, [""], "old 0 5 6"),
    (6, 6, "upsert", 1, [""], "old 0 3 4 5"), (6, 6, "upsert", 2, [""], "old 0 5"),
    (2, 2, "upsert", 0, ["old"], "old 0 1"), (5, 2, "delete", 0, [""], "new 0 1"),
])  # fmt: skip
def test_interrupted_source_shows_one_version_and_no_hash_until_the_next_ingest(
    small, interrupted, old, new, method, after, hashes, seen
):
    """Once the last batch of a new version is written, no old chunk is found, also if it is still there."""
    put(small, "old", old)
    interrupted(lambda: put(small, "new", new), method, after)
    assert [source_hash for _, _, source_hash in listed(small)] == hashes
    version, _, numbers = seen.partition(" ")
    assert found(small) == [f"{version} {number}" for number in numbers.split()]
    put(small, "new", new)
    assert listed(small) == [("c", new, "new")]
    assert found(small) == [f"new {i}" for i in range(new)]


def test_search_finds_other_chunks_in_place_of_outdated_ones(small, interrupted):
    put(small, "old", 9)
    interrupted(lambda: put(small, "new", 1), "delete", 0)
    small.add_documents([chunk(f"other {i}", NORTH_EAST, collection="c", source_file="g.md") for i in range(4)])
    for where in (None, {"collection": "c"}, {"source_file": {"$gt": "a"}}):
        assert [text.split()[0] for text in found(small, 3, where=where)] == ["new", "other", "other"]


def test_chunks_that_were_added_one_by_one_are_found_and_their_source_is_incomplete(small):
    small.add_documents(source("c", "f.md", ["one", "two"], "1") + source("c", "g.md", ["three"], "2")[1:])
    small.add_documents([chunk("alone", collection="c", source_file="h.md", chunk_index=3, source_hash="9")])
    assert found(small) == ["alone", "one", "two"]
    assert [source_hash for _, _, source_hash in listed(small)] == ["", ""]


def test_a_vector_without_its_text_is_not_found(chroma):
    name = f"c{uuid4().hex}"
    with closing(ChromaStore(host=chroma.url, collection=name)) as store:
        client = chromadb.HttpClient(chroma.host, chroma.port)
        client.get_collection(name, embedding_function=None).add(ids=["bare"], embeddings=[EAST])
        client._server._session.close()
        store.add_documents([chunk("text")])
        assert found(store) == ["text"]


@pytest.mark.parametrize(("method", "after"), [("upsert", 0), ("upsert", 1), ("delete", 0)])
def test_an_interrupted_move_is_completed_by_a_repeated_one(small, interrupted, method, after):
    put(small, "v", 3, "a")
    interrupted(lambda: small.move_collection("a", "b"), method, after)
    assert ("a", 3, "v") in listed(small)
    assert small.move_collection("a", "b") == 3
    assert listed(small) == [("b", 3, "v")]
    assert found(small) == ["v 0", "v 1", "v 2"]


def test_an_interrupted_move_does_not_overwrite_a_newer_source(small, interrupted):
    put(small, "v", 3, "a")
    interrupted(lambda: small.move_source("f.md", "a", "b"), "upsert", 1)
    put(small, "newer", 2, "b")
    with refused(DuplicateChunkIDError):
        small.move_source("f.md", "a", "b")
    assert listed(small) == [("a", 3, "v"), ("b", 2, "newer")]


def test_readers_of_a_server_see_one_version_while_a_source_is_replaced(chroma):
    name = f"c{uuid4().hex}"
    with closing(ChromaStore(host=chroma.url, collection=name)) as reader:
        put(reader, "a", 40)

        def write() -> None:
            with closing(ChromaStore(host=chroma.url, collection=name)) as writer:
                for turn in range(8):
                    put(writer, *(("b", 30), ("a", 40))[turn % 2])

        writing, seen = Thread(target=write), Counter[frozenset[str]]()
        writing.start()
        while writing.is_alive():
            seen[frozenset(document.content[:1] for document in reader.search(EAST, 100))] += 1
        writing.join()
    assert seen.keys() <= {frozenset("a"), frozenset("b")}
    assert sum(seen.values()) > 2
