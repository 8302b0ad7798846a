"""Ids are decided by where a chunk comes from, else by what it says."""

from __future__ import annotations

from hashlib import sha256

import pytest

from ragistry.utils.ids import chunk_id, content_id, id_of


def test_an_id_is_the_hash_of_collection_source_and_index():
    assert chunk_id("mba", "strategy.pdf", 3) == sha256(b"mba::strategy.pdf::3").hexdigest()


def test_an_id_differs_by_each_of_its_parts():
    ids = {chunk_id(c, f, i) for c in ("a", "b") for f in ("x", "y") for i in (0, 1)}
    assert len(ids) == 8


def test_a_chunk_of_a_source_has_the_id_of_its_place():
    metadata = {"collection": "mba", "source_file": "strategy.pdf", "chunk_index": 3, "page": 7}
    assert id_of("one text", metadata) == id_of("another", metadata) == chunk_id("mba", "strategy.pdf", 3)


@pytest.mark.parametrize("missing", ["collection", "source_file", "chunk_index"])
def test_without_a_place_the_text_decides(missing):
    metadata = {"collection": "mba", "source_file": "strategy.pdf", "chunk_index": 3}
    del metadata[missing]
    assert id_of("Ünïcödé", metadata) == content_id("Ünïcödé") == sha256("Ünïcödé".encode()).hexdigest()
