"""The chunks that meet a condition, remembered by a store while it is written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from ragistry.stores.local import LocalStore, selecting
from ragistry.types import Document, EmbeddedChunk, EmbedderFingerprint

CONDITIONS: list[dict[str, Any]] = [
    {"collection": "a"},
    {"year": {"$gte": 2010}},
    {"page": {"$lt": 3}},
    {"$and": [{"collection": {"$ne": "a"}}, {"page": {"$in": [1, 2]}}]},
    {"source_file": {"$in": ["1.md", "2.md"]}},
]
DICE = np.random.default_rng(0)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LocalStore]:
    with closing(LocalStore(tmp_path)) as opened:
        opened.use_embedder(EmbedderFingerprint("testing", "random", "", 8))
        yield opened


def chunks(collection: str, source: str, number: int, year: int) -> list[EmbeddedChunk]:
    place = {"collection": collection, "source_file": source, "source_hash": str(year), "year": year}
    return [
        EmbeddedChunk(f"apple {page} of {year}", {**place, "chunk_index": page, "page": page}, DICE.normal(size=8))
        for page in range(number)
    ]


def write(store: LocalStore, dice: Random) -> None:
    collection, source, year = dice.choice("ab"), f"{dice.randrange(5)}.md", 2000 + dice.randrange(20)
    match dice.randrange(8):
        case 0:
            store.replace_source(collection, source, [])
        case 1:
            store.delete(where={"page": dice.randrange(5)})
        case 2:
            store.move_source("moved.md", *dice.sample("ab", 2))
        case 3:
            store.add_documents(
                [EmbeddedChunk(f"loose apple of {year}", {"year": year, "page": 1}, DICE.normal(size=8))]
            )
        case 4:
            store.add_documents([])
        case _:
            store.replace_source(collection, source, chunks(collection, source, dice.randrange(1, 6), year))


def found(store: LocalStore, where: dict[str, Any]) -> list[list[Document]]:
    return [store.search(np.ones(8), 50, where=where), store.search_text("apple", 50, where=where)]


def test_a_selection_follows_every_kind_of_write(store):
    dice = Random(0)
    store.replace_source("a", "moved.md", chunks("a", "moved.md", 4, 2015))
    for _ in range(60):
        write(store, dice)
        for where in dice.sample(CONDITIONS, 3):
            with closing(LocalStore(store.folder)) as other:
                assert found(store, where) == found(other, where)


def test_after_a_write_only_the_new_chunks_are_selected(store, monkeypatch):
    for number in range(5):
        store.replace_source("a", f"{number}.md", chunks("a", f"{number}.md", 5, 2010 + number))
    found(store, {"page": {"$lt": 3}})
    firsts = []
    select = selecting.selected_keys
    monkeypatch.setattr(
        selecting, "selected_keys", lambda at, where, first=0: firsts.append(first) or select(at, where, first=first)
    )
    store.replace_source("b", "new.md", chunks("b", "new.md", 5, 2020))
    [by_vectors, by_words] = found(store, {"page": {"$lt": 3}})
    assert len(by_vectors) == len(by_words) == 18
    assert firsts == [26], "the chunks before the write are known"
