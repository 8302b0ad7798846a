"""Sources for tests of `LocalStore`, and checks that a store holds them and finds them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest

from ragistry.stores.local import LocalStore
from ragistry.types import Document, EmbeddedChunk
from ragistry.utils.ids import chunk_id

DIMENSION = 8
LETTERS = str.maketrans("0123456789", "abcdefghij")
"""Words with digits are also found by their parts."""
ALL = [1.0] * DIMENSION
"""A query that every chunk answers."""
AS_FORMAT_13 = "ALTER TABLE head DROP COLUMN fit; DROP TABLE unsearchable; DROP TABLE folders"
"""Removes from a database what later formats added."""
Truth = dict[tuple[str, str], list[EmbeddedChunk]]
"""The chunks of each source by collection and name."""


def store_at(place: str, **settings: Any) -> Any:
    """The store in a folder, or at ``ADDRESS#COLLECTION`` of Postgres or of Chroma, a server or a directory."""
    address, _, collection = place.partition("#")
    if address.startswith("postgresql:"):
        from ragistry.stores.postgres import PostgresStore

        return PostgresStore(address, collection=collection, **settings)
    if collection:
        from ragistry.stores.chroma import ChromaStore

        settings["host" if address.startswith("http:") else "path"] = address
        return ChromaStore(collection=collection, **settings)
    return LocalStore(address, **{"lock_timeout": 60, **settings})


def place_of(kind: str, request: pytest.FixtureRequest) -> str:
    """A new place for a store of a kind, for `store_at`: local, embedded (in Chroma), chroma or postgres."""
    if kind == "local":
        return str(request.getfixturevalue("tmp_path_factory").mktemp("stores") / "local")
    server = request.getfixturevalue("engine" if kind == "embedded" else kind)
    return f"{getattr(server, 'url', server)}#c{uuid4().hex}"


def vector_of(text: str, dimension: int = DIMENSION) -> list[float]:
    """A direction that the text decides."""
    return np.random.default_rng(random.Random(text).randrange(2**32)).normal(size=dimension).tolist()


def marker(source_file: str, version: int) -> str:
    """A word in every chunk of this version of a source, and in no other."""
    return f"{source_file.replace('.', '')}v{version}".translate(LETTERS)


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


def put(store: Any, *sources: Sequence[EmbeddedChunk]) -> None:
    """Ingest sources."""
    for chunks in sources:
        origin = chunks[0].metadata
        store.replace_source(origin["collection"], origin["source_file"], chunks)


def truth_of(*sources: Sequence[EmbeddedChunk]) -> Truth:
    """What a store with these sources holds."""
    return {(s[0].metadata["collection"], s[0].metadata["source_file"]): list(s) for s in sources if s}


def ids_of(chunks: Sequence[EmbeddedChunk]) -> list[str]:
    keys = ("collection", "source_file", "chunk_index")
    return sorted(chunk_id(*(chunk.metadata[key] for key in keys)) for chunk in chunks)


def held(store: LocalStore) -> Truth:
    """What the store holds; `sources` and `scan` must agree."""
    found: Truth = {}
    documents = list(store.scan())
    vectors = store.vectors([document.id for document in documents])
    for document, vector in zip(documents, vectors, strict=True):
        key = (document.metadata["collection"], document.metadata["source_file"])
        found.setdefault(key, []).append(EmbeddedChunk(document.content, document.metadata, vector))
    for chunks in found.values():
        chunks.sort(key=lambda chunk: chunk.metadata["chunk_index"])
    listed = {(info.collection, info.source_file): info for info in store.sources()}
    assert {key: info.chunks for key, info in listed.items()} == {key: len(chunks) for key, chunks in found.items()}
    for key, info in listed.items():
        assert info.source_hash in ("", found[key][0].metadata["source_hash"])
    return found


def same(found: Truth, expected: Truth) -> bool:
    """Whether texts and metadata are equal."""
    return {k: [c[:2] for c in v] for k, v in found.items()} == {k: [c[:2] for c in v] for k, v in expected.items()}


def whole_versions(documents: Sequence[Document]) -> dict[str, str]:
    """The version of each source in a search that found all chunks; each source must be of one version and complete.

    A version has ``2 + version % 3`` chunks; the first version has three.
    """
    found: dict[str, list[str]] = {}
    for document in documents:
        found.setdefault(document.metadata["source_file"], []).append(document.metadata["source_hash"])
    for name, versions in found.items():
        number = int(versions[0].split()[1])
        assert versions == versions[:1] * (3 if number == 1 else 2 + number % 3), (name, versions)
    return {name: versions[0] for name, versions in found.items()}


def check_searches(store: LocalStore, truth: Truth, *, every: int = 1) -> None:
    """Every chunk, or one in ``every``, is found by its vector; every source is found by its words; nothing else is."""
    chunks = [chunk for source in truth.values() for chunk in source]
    for chunk in chunks[::every]:
        [found] = store.search(chunk.embedding, 1)
        assert (found.content, round(found.score, 3)) == (chunk.text, 1.0)
    assert len(store.search(ALL, 1000)) == min(len(chunks), 1000)
    for (collection, source_file), source in truth.items():
        word = source[0].text.split()[0]
        where = {"collection": collection, "source_file": source_file}
        assert sorted(d.id for d in store.search_text(word, 1000)) == ids_of(source), (word, source_file)
        assert sorted(d.id for d in store.search_text("source", 1000, where=where)) == ids_of(source)
        assert sorted(d.id for d in store.search(ALL, 1000, where=where)) == ids_of(source)
    assert len(store.search_text("source", 1000)) == min(len(chunks), 1000)


def check(store: LocalStore, truth: Truth, *, every: int = 1) -> None:
    """The store holds exactly these sources, finds them, and its files are sound."""
    found = held(store)
    assert same(found, truth), (sorted(found), sorted(truth))
    check_searches(store, truth, every=every)
    assert store.verify() == []


def garble(path: Path, start: int, content: bytes | int = 64) -> None:
    """Overwrite part of a file; a number inverts so many bytes."""
    with path.open("r+b") as file:
        file.seek(start)
        if isinstance(content, int):
            content = bytes(byte ^ 0xA5 for byte in file.read(content))
        file.seek(start)
        file.write(content)
