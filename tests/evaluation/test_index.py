"""The index of a corpus: made once, and made anew where it is damaged."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ragistry.errors import EmbeddingGenerationError
from ragistry.evaluation import compare
from ragistry.evaluation.data.library import library_sources
from ragistry.evaluation.data.testsets import known_items, make_testset
from ragistry.evaluation.systems.index import CARD, Corpus, open_index
from ragistry.evaluation.systems.recorded_answers import RecordedEmbedder, cached_embedder
from ragistry.evaluation.systems.variants import Chunking
from ragistry.stores.registry import open_local
from ragistry.testing.hashed import HashingEmbedder
from ragistry.types import EmbeddedChunk
from tests.evaluation.small_sets import TOPICS, topics, with_sql


@pytest.fixture
def vectors(tmp_path: Path) -> RecordedEmbedder:
    return cached_embedder(HashingEmbedder(16), tmp_path / "vectors.db")


def steps(vectors: RecordedEmbedder | None, folder: Path) -> list[str]:
    """What opening the index had to do."""
    done: list[str] = []
    found, store = open_index(
        Corpus(topics(), Chunking(), vectors), folder, lambda doing, *_: done.append(doing.split()[0])
    )
    assert found.store.count() == len(TOPICS)
    store.close()
    return list(dict.fromkeys(done))


def test_index_is_made_once_with_and_without_vectors(vectors, tmp_path):
    assert steps(vectors, tmp_path) == ["indexing", "embedding"]
    assert steps(None, tmp_path) == ["indexing"]
    assert steps(vectors, tmp_path) == steps(None, tmp_path) == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda home: (home / "store.db").unlink(),
        lambda home: (home / CARD).unlink(),
        lambda home: (home / "store.db").write_bytes(b"SQLite format 3\0" + b"\1" * 20_000),
        with_sql("UPDATE vectors SET vector = zeroblob(length(vector)) WHERE key = 3"),
        with_sql("PRAGMA user_version = 99"),
    ],
)
def test_damaged_index_is_made_anew(vectors, tmp_path, damage):
    steps(vectors, tmp_path)
    [card] = tmp_path.glob(f"*/{CARD}")
    damage(card.parent)
    assert steps(vectors, tmp_path) == ["indexing"]
    assert steps(vectors, tmp_path) == []


def test_text_that_the_model_refuses_stops_the_build_and_leaves_no_index(tmp_path):
    def refuse(texts: Sequence[str]) -> None:
        if any("queen" in text for text in texts):
            raise EmbeddingGenerationError("the text is refused")

    vectors = cached_embedder(HashingEmbedder(16, check=refuse), tmp_path / "vectors.db")
    with pytest.raises(EmbeddingGenerationError, match="d-bees"):
        open_index(Corpus(topics(), Chunking(), vectors), tmp_path)
    assert not list(tmp_path.glob(f"*/{CARD}"))


@pytest.mark.parametrize(
    ("library", "dimension", "taken"),
    [(topics().corpus, 16, len(TOPICS)), (topics().corpus[:3], 16, 3), ([], 16, 0), (topics().corpus, 8, 0)],
)
def test_vectors_of_equal_texts_come_from_the_library(tmp_path, library, dimension, taken):
    counting, reported = HashingEmbedder(16), []
    theirs = HashingEmbedder(dimension)
    with closing(open_local(tmp_path / "library")) as known:
        known.use_embedder(theirs.fingerprint)
        chunks = [(text.whole, {"collection": "c", "source_file": text.id, "chunk_index": 0}) for text in library]
        if chunks:
            vectors = theirs.embed([text for text, _ in chunks])
            known.add_documents([EmbeddedChunk(*chunk, row) for chunk, row in zip(chunks, vectors, strict=True)])
        corpus = Corpus(topics(), Chunking(), cached_embedder(counting, tmp_path / "vectors.db"), library=known)
        index, store = open_index(corpus, tmp_path, lambda *state: reported.append(state))
    alone = replace(corpus, vectors=cached_embedder(HashingEmbedder(16), tmp_path / "other.db"), library=None)
    with closing(store), closing(open_index(alone, tmp_path / "other")[1]) as plain:
        ids = [document.id for document in plain.scan()]
        assert np.allclose(store.vectors(ids), plain.vectors(ids))
    assert index.cost.from_library == taken
    wanted = {text.whole for text in topics().corpus} - {text for text, _ in chunks if taken}
    assert set(counting.texts) - {"warm up"} == wanted
    embedding = [state for state in reported if state[0].startswith("embedding")]
    assert bool(embedding) == bool(wanted)
    if wanted:
        assert embedding[0][1:] == (0, len(wanted)), "said before the start"
        assert embedding[0][0].startswith(f"embedding {len(wanted)} chunks")
        assert ", about " in embedding[0][0]
        assert f"({taken} of {len(TOPICS)} are known)" in embedding[0][0] or not taken


def test_chunks_have_the_metadata_of_an_ingest(vectors, tmp_path):
    index, store = open_index(Corpus(topics(), Chunking(40, 6), vectors), tmp_path)
    with closing(store):
        [tea] = [name for name, document in index.names.items() if document == "d-tea"]
        chunks = list(store.scan({"source_file": tea}))
    assert [chunk.metadata["chunk_index"] for chunk in chunks] == list(range(len(chunks)))
    assert {chunk.metadata["title"] for chunk in chunks} == {"tea"}
    assert all(chunk.metadata["token_count"] > 0 < chunk.metadata["ingested_at"] for chunk in chunks)
    assert index.cost.embed_seconds > 0 < index.cost.write_seconds


@pytest.mark.parametrize("workspace", ["local", "postgres", "chroma"], indirect=True)
def test_vectors_come_from_the_library_in_every_store(workspace, tmp_path):
    for name in ("tea", "rain", "soil"):
        text = f"# About {name}\n\nA page.\n\n## Behaviour\n\nIn wet seasons {name} changes a lot.\n\nSo.\n"
        workspace.library.ingest_text(text, f"{name}.md", "notes")
    sources = library_sources(workspace)
    made = make_testset("made", sources, known_items(sources), limit=1).dataset
    [index] = compare("naive", made, workspace=workspace, cache=tmp_path / "cache").indexes.values()
    assert (index.as_in_library, index.from_library) == (3, index.chunks - 1)
