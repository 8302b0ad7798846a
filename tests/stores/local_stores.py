"""Sources for tests of `LocalStore`, and what a store must show of them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from ragistry.stores.local import LocalStore
from ragistry.types import EmbeddedChunk
from ragistry.utils.ids import chunk_id

DIMENSION = 8
Truth = dict[tuple[str, str], list[EmbeddedChunk]]
"""The chunks of each source by collection and name."""


def vector_of(text: str) -> list[float]:
    """A direction that the text decides."""
    return np.random.default_rng(random.Random(text).randrange(2**32)).normal(size=DIMENSION).tolist()


def marker(source_file: str, version: int) -> str:
    """A word that stands in every chunk of this version of a source, and nowhere else."""
    return f"{source_file.replace('.', '')}v{version}"


def version_of(source_file: str, version: int, chunks: int = 3, collection: str = "c") -> list[EmbeddedChunk]:
    """The chunks of one version of a source."""
    texts = [f"{marker(source_file, version)} part{index} of a source" for index in range(chunks)]
    origin = {"collection": collection, "source_file": source_file, "source": f"/in/{source_file}"}
    return [
        EmbeddedChunk(
            text, {**origin, "chunk_index": index, "source_hash": f"hash {version}", "page": index}, vector_of(text)
        )
        for index, text in enumerate(texts)
    ]


def moved(chunks: Sequence[EmbeddedChunk], collection: str) -> list[EmbeddedChunk]:
    """The same chunks in another collection."""
    return [chunk._replace(metadata={**chunk.metadata, "collection": collection}) for chunk in chunks]


def put(store: Any, chunks: Sequence[EmbeddedChunk]) -> None:
    """Ingest a source."""
    origin = chunks[0].metadata
    store.replace_source(origin["collection"], origin["source_file"], chunks)


def truth_of(*sources: Sequence[EmbeddedChunk]) -> Truth:
    """What a store holds that has these sources."""
    return {(s[0].metadata["collection"], s[0].metadata["source_file"]): list(s) for s in sources if s}


def ids_of(chunks: Sequence[EmbeddedChunk]) -> list[str]:
    keys = ("collection", "source_file", "chunk_index")
    return sorted(chunk_id(*(chunk.metadata[key] for key in keys)) for chunk in chunks)


def held(store: LocalStore) -> Truth:
    """What a store holds by its own account; each source must be whole, as `sources` and `scan` tell it."""
    found: Truth = {}
    for document in store.scan():
        key = (document.metadata["collection"], document.metadata["source_file"])
        [vector] = store.vectors([document.id])
        found.setdefault(key, []).append(EmbeddedChunk(document.content, document.metadata, vector))
    for chunks in found.values():
        chunks.sort(key=lambda chunk: chunk.metadata["chunk_index"])
    listed = {(info.collection, info.source_file): (info.chunks, info.source_hash) for info in store.sources()}
    assert listed == {key: (len(chunks), chunks[0].metadata["source_hash"]) for key, chunks in found.items()}
    return found


def same(found: Truth, expected: Truth) -> bool:
    """Whether texts and metadata are the same."""
    return {k: [c[:2] for c in v] for k, v in found.items()} == {k: [c[:2] for c in v] for k, v in expected.items()}


def check_searches(store: LocalStore, truth: Truth, *, recall: float = 1.0) -> None:
    """Every chunk is found by its own vector and by its words, and nothing else is."""
    chunks = [chunk for source in truth.values() for chunk in source]
    first = [store.search(chunk.embedding, 1)[0] for chunk in chunks]
    right = [d.content == c.text and d.score == pytest.approx(1, abs=1e-3) for d, c in zip(first, chunks, strict=True)]
    assert sum(right) >= recall * len(right), f"{sum(right)} of {len(right)} find themselves"
    assert len(store.search([1.0] * DIMENSION, 1000)) == min(len(chunks), 1000)
    for (collection, source_file), source in truth.items():
        word = source[0].text.split()[0]
        where = {"collection": collection, "source_file": source_file}
        assert sorted(d.id for d in store.search_text(word, 1000)) == ids_of(source), (word, source_file)
        assert sorted(d.id for d in store.search_text("source", 1000, where=where)) == ids_of(source)
        assert sorted(d.id for d in store.search([1.0] * DIMENSION, 1000, where=where)) == ids_of(source)
    assert len(store.search_text("source", 1000)) == min(len(chunks), 1000)


def check(store: LocalStore, truth: Truth, *, recall: float = 1.0) -> None:
    """All that the store says agrees with these sources and no others, and its files are sound."""
    found = held(store)
    assert same(found, truth), (sorted(found), sorted(truth))
    check_searches(store, truth, recall=recall)
    assert store.verify() == []
