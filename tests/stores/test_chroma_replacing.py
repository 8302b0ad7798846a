"""What a search of ChromaDB finds of a source that is being replaced: one version of it, and never a bare vector."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from threading import Thread
from uuid import uuid4

import pytest

from ragistry.stores.chroma import ChromaStore
from ragistry.testing.stores.chunks import EAST, NORTH_EAST, chunk, source
from tests.stores.test_chroma_sources import InterruptedWriteError, interrupt


@pytest.fixture
def small(server, tmp_path, request):
    """A store that writes two chunks at a time: of a directory or of a server."""
    if request.param == "embedded":
        store = ChromaStore(tmp_path / "chroma", batch_size=2)
    else:
        store = ChromaStore.connect(server.host, port=server.port, collection=f"c{uuid4().hex}", batch_size=2)
    with closing(store):
        yield store


both = pytest.mark.parametrize("small", ["embedded", "served"], indirect=True)


def replaced(old: int, new: int, store: ChromaStore, monkeypatch, call: str, after: int) -> None:
    """Replace a source of so many chunks by another, and be interrupted when `call` has succeeded so many times."""
    store.replace_source("c", "f.md", source("c", "f.md", [f"old {i}" for i in range(old)], "1"))
    with monkeypatch.context() as patch:
        interrupt(patch, call, after)
        with pytest.raises(InterruptedWriteError):
            store.replace_source("c", "f.md", source("c", "f.md", [f"new {i}" for i in range(new)], "2"))


def texts(store: ChromaStore, top_k: int = 10, **options) -> list[str]:
    return sorted(document.content for document in store.search(EAST, top_k, **options))


@both
def test_old_chunks_that_have_still_to_go_are_not_found(small, monkeypatch):
    replaced(5, 2, small, monkeypatch, "delete", 0)
    assert small.count() == 5
    assert texts(small) == ["new 0", "new 1"]


@both
@pytest.mark.parametrize("after", [1, 2])
def test_new_chunks_are_not_found_before_the_last_of_them_is_written(small, monkeypatch, after):
    replaced(6, 6, small, monkeypatch, "upsert", after)
    assert texts(small) == ["old 0", *(f"old {i}" for i in range(1 + 2 * after, 6))]


@both
@pytest.mark.parametrize("where", [None, {"collection": "c"}, {"source_file": {"$gt": "a"}}])
def test_more_is_asked_for_in_the_place_of_what_is_not_found(small, monkeypatch, where):
    replaced(9, 1, small, monkeypatch, "delete", 0)
    small.add_documents([chunk(f"other {i}", NORTH_EAST, collection="c", source_file="g.md") for i in range(4)])
    found = texts(small, 3, where=where)
    assert (found[0], [text[:5] for text in found[1:]]) == ("new 0", ["other", "other"])


@both
def test_a_vector_without_its_text_is_not_found(small):
    small._rows.add(ids=["bare"], embeddings=[EAST])
    small.add_documents([chunk("text")])
    assert texts(small) == ["text"]


@both
def test_chunks_that_were_added_one_by_one_are_all_found(small):
    small.add_documents(source("c", "f.md", ["one", "two"], "1") + source("c", "g.md", ["three"], "2")[1:])
    small.add_documents([chunk("alone", collection="c", source_file="h.md", chunk_index=3, source_hash="9")])
    assert texts(small) == ["alone", "one", "two"]


def test_readers_of_a_server_see_one_version_while_a_source_is_replaced(server, served):
    versions = [source("c", "s", [f"{name} {i}" for i in range(n)], name) for name, n in (("a", 40), ("b", 30))]
    served.replace_source("c", "s", versions[0])

    def write() -> None:
        with closing(ChromaStore.connect(server.host, port=server.port, collection=served._name)) as writer:
            for turn in range(16):
                writer.replace_source("c", "s", versions[(turn + 1) % 2])

    writing, seen = Thread(target=write), Counter[frozenset[str]]()
    writing.start()
    while writing.is_alive():
        seen[frozenset(document.content[:1] for document in served.search(EAST, 100))] += 1
    writing.join()
    assert seen.keys() <= {frozenset("a"), frozenset("b")}
    assert sum(seen.values()) > 10
