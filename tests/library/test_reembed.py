"""Replace the embedder of a local store: searched only when all vectors are there, continued after a stop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragistry import open_workspace
from ragistry.errors import EmbeddingMismatchError, InvalidChunkError, ModelConnectionError
from ragistry.library.embedding import reembed, reembed_seconds
from ragistry.models.queries import QueryEmbedder
from ragistry.stores.local import LocalStore
from ragistry.testing.hashed import HashingEmbedder
from ragistry.types import EmbeddedChunk
from tests.messages import check_message, refused
from tests.models import folders

CHUNKS = 100


class Model(HashingEmbedder):
    """Vectors that differ for each model. ``stop_at``: number of calls after which the server is gone.

    ``meanwhile`` is called once, ``flaw`` is applied to all vectors.
    """

    def __init__(
        self,
        model: str,
        dimension: int = 8,
        *,
        stop_at: int = 1000,
        meanwhile: Callable[[], object] | None = None,
        flaw: Callable[[Any], Any] = lambda rows: rows,
    ) -> None:
        super().__init__(dimension, model=model)
        self.stop_at, self.meanwhile, self.flaw = stop_at, meanwhile, flaw

    def embed(self, texts: Sequence[str], **options: Any) -> Any:
        if self.calls == self.stop_at:
            raise ModelConnectionError("gone")
        if self.meanwhile is not None:
            once, self.meanwhile = self.meanwhile, None
            once()
        return self.flaw(super().embed([f"{self.fingerprint.model} {text}" for text in texts], **options))


OLD, A, B = (Model(name) for name in ("old", "a", "b"))


def put(store: LocalStore, name: str, embedder: Model, chunks: int = CHUNKS) -> None:
    texts = [f"{name} part {index}" for index in range(chunks)]
    origin = {"collection": "c", "source_file": name, "source_hash": "h"}
    store.replace_source("c", name, [
        EmbeddedChunk(text, {**origin, "chunk_index": index}, vector)
        for index, (text, vector) in enumerate(zip(texts, embedder.embed(texts), strict=True))
    ])  # fmt: skip


def assert_all_of(store: LocalStore, embedder: Model) -> None:
    """Every vector, also of those that are searched, comes from this embedder."""
    assert store.embedder() == embedder.fingerprint
    documents = list(store.scan())
    vectors = embedder.embed([document.content for document in documents])
    [best] = store.search(vectors[7], 1)
    assert (best.content, best.score > 0.999) == (documents[7].content, True)
    assert np.allclose(store.vectors([document.id for document in documents]), vectors, atol=1e-6)
    assert store.verify() == []


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LocalStore]:
    with closing(LocalStore(tmp_path / "store", lock_timeout=30)) as opened:
        opened.use_embedder(OLD.fingerprint)
        for name in "xyz":
            put(opened, name, OLD)
        yield opened


@pytest.mark.parametrize("length", [1, 3])
@pytest.mark.parametrize("dimension", [8, 16])
def test_afterwards_the_new_vectors_are_searched(store: LocalStore, dimension: int, length: int) -> None:
    assert_all_of(store, OLD)  # and are in memory
    new = Model("new", dimension, flaw=lambda rows: (rows * length).astype(np.float64).tolist())
    assert reembed(store, new) == 3 * CHUNKS
    assert_all_of(store, Model("new", dimension))
    with pytest.raises(EmbeddingMismatchError):
        store.use_embedder(OLD.fingerprint)


def test_an_interrupted_run_leaves_the_old_vectors_and_is_continued_by_the_same_model(store: LocalStore) -> None:
    stopped = Model("new", stop_at=2)
    with pytest.raises(ModelConnectionError):
        reembed(store, stopped)
    assert_all_of(store, OLD)
    assert reembed(store, Model("new")) == 3 * CHUNKS - len(stopped.texts) < 3 * CHUNKS
    assert_all_of(store, Model("new"))
    with pytest.raises(ModelConnectionError):
        reembed(store, Model("other", stop_at=2))
    assert reembed(store, A) == 3 * CHUNKS, "another model begins again"
    assert_all_of(store, A)


def test_chunks_that_are_written_meanwhile_are_embedded_too(store: LocalStore) -> None:
    def ingest() -> None:
        put(store, "x", OLD, 3)
        put(store, "new", OLD, 3)

    reembed(store, Model("a", meanwhile=ingest))
    assert store.count() == 2 * CHUNKS + 6
    assert_all_of(store, A)


FLAWS: dict[str, Callable[[Any], Any]] = {
    "NaN": lambda rows: rows * [[np.nan]],
    "zeros": lambda rows: rows * 0,
    "one too few": lambda rows: rows[:-1],
    "one too many": lambda rows: np.vstack([rows, rows[:1]]),
    "unequal": lambda rows: [*rows[:-1], rows[-1][:-1]],
    "nothing": lambda rows: None,
    "text": lambda rows: ["a"] * len(rows),
    "another length": lambda rows: rows[:, :7],
}


@pytest.mark.parametrize("name", FLAWS)
def test_flawed_vectors_are_refused_and_the_old_ones_stay(store: LocalStore, name: str) -> None:
    with refused((InvalidChunkError, EmbeddingMismatchError), "'new'", "the old vectors stay in use"):
        reembed(store, Model("new", flaw=FLAWS[name]))
    assert_all_of(store, OLD)


def test_of_two_runs_at_once_the_later_embedder_wins_and_equal_ones_agree(store: LocalStore) -> None:
    with closing(LocalStore(store.folder)) as other:
        with refused(EmbeddingMismatchError):
            reembed(store, Model("a", meanwhile=lambda: reembed(other, B)))
        assert_all_of(other, B)
        assert_all_of(store, B)
        reembed(store, Model("a", meanwhile=lambda: reembed(other, A)))
        assert_all_of(other, A)
    assert_all_of(store, A)
    assert reembed(store, A) == 0


def test_vectors_of_the_old_embedder_are_refused_afterwards(store: LocalStore) -> None:
    """An ingest that began before the run continues after it."""
    with closing(LocalStore(store.folder)) as other:
        reembed(other, A)
    for call in (
        lambda: put(store, "x", OLD),
        lambda: store.add_documents([EmbeddedChunk("new", {}, OLD.embed(["new"])[0])]),
    ):
        with refused(EmbeddingMismatchError):
            call()
    assert_all_of(store, A)
    store.replace_source("c", "x", [])
    assert store.count({"source_file": "x"}) == 0
    store.use_embedder(A.fingerprint)
    put(store, "x", A)
    assert_all_of(store, A)


def test_a_store_that_another_process_cleared_takes_the_embedder_again(store: LocalStore) -> None:
    with closing(LocalStore(store.folder)) as other:
        other.clear_collection()
    put(store, "x", OLD)
    assert_all_of(store, OLD)
    with pytest.raises(EmbeddingMismatchError):
        store.use_embedder(replace(OLD.fingerprint, model="a"))


def test_a_process_with_another_embed_model_searches_with_the_recorded_one(tmp_path: Path) -> None:
    folders.table(tmp_path / "models" / "mine")
    new = {"embed_model": "folder:models/mine"}
    with open_workspace(tmp_path) as first:
        first.library.create_collection("notes", "Notes")
        for text in ("green tea", "a car on the road"):
            first.library.ingest_text(text, collection="notes", source=text)
        expected = first.search("tea", technique="hybrid")
    with open_workspace(tmp_path, **new) as started:
        for technique in ("hybrid", "hybrid", {"use": "naive"}):
            found = started.search("tea", technique=technique)
            assert found.documents[0].content == "green tea"
            assert len(found.degraded) == 1
            check_message(found.degraded[0], "all-MiniLM-L6-v2", "mine")
        assert [one.score for one in started.search("tea", technique="hybrid").documents] == [
            one.score for one in expected.documents
        ]
        assert started.search("tea", technique="bm25").degraded == (), "words need no vectors"
        with refused(EmbeddingMismatchError, "mine"):
            started.library.ingest_text("water", collection="notes", source="water")
        with open_workspace(tmp_path, **new) as other:
            assert reembed_seconds(other.store, other.embedder) is not None
            reembed(other.store, other.embedder)
            assert reembed_seconds(other.store, other.embedder) is None
        found = started.search("tea", technique="hybrid")
        assert (found.documents[0].content, found.degraded) == ("green tea", ())
    with open_workspace(tmp_path) as back:  # the folder below `models` is found by its name
        check_message(back.search("tea", technique="naive").degraded[0], "mine", "all-MiniLM-L6-v2")
        folders.table(tmp_path / "models" / "mine", **{"model.safetensors": {"embeddings": np.eye(10, 8)}})
    with open_workspace(tmp_path) as changed, refused(EmbeddingMismatchError, "mine"):
        changed.search("tea", technique="naive")


@pytest.mark.parametrize("dimension", [8, 16])
@pytest.mark.parametrize("technique", ["naive", "hybrid"])
@pytest.mark.parametrize("settings", ["old", "new"])
def test_a_search_during_which_the_vectors_are_replaced_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: str, technique: str, dimension: int
) -> None:
    folders.table(tmp_path / "models" / "old")
    numbers = np.random.default_rng(1).normal(size=(10, dimension)).astype(np.float32)
    folders.table(tmp_path / "models" / "new", **{"model.safetensors": {"embeddings": numbers}})
    plain = QueryEmbedder.embed
    meanwhile: list[Callable[[], object]] = []

    def embed(self: QueryEmbedder, texts: Sequence[str], **options: Any) -> Any:
        vectors = plain(self, texts, **options)
        if meanwhile:
            meanwhile.pop()()
        return vectors

    with open_workspace(tmp_path, embed_model="folder:models/old") as old:
        old.library.create_collection("notes", "Notes")
        for text in ("green tea", "a car on the road"):
            old.library.ingest_text(text, collection="notes", source=text)
    with (
        open_workspace(tmp_path, embed_model=f"folder:models/{settings}") as searching,
        open_workspace(tmp_path, embed_model="folder:models/new") as new,
        open_workspace(tmp_path, embed_model="folder:models/old") as back,
    ):
        monkeypatch.setattr(QueryEmbedder, "embed", embed)
        for number in range(6):  # the first search uses the vectors that were written first
            if number:
                chosen = new if number % 2 else back
                meanwhile.append(lambda chosen=chosen: reembed(chosen.store, chosen.embedder))
            found = searching.search(f"green tea {number}", technique=technique)
            assert (found.documents[0].content, meanwhile) == ("green tea", [])
            assert len(set(found.degraded)) <= 1
