"""What a search of words found, before it is read: whose it is, and that it is read as a search would read it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragistry.errors import QueryError
from ragistry.stores.local import LocalStore
from ragistry.types import EmbeddedChunk

NAMES = ["tea", "coffee", "milk", None]
VECTOR = np.array([1.0, 0.0], dtype=np.float32)


def chunk(text: str, name: str | None, number: int, *, loose: bool = False) -> EmbeddedChunk:
    source = {} if loose else {"source_file": f"{number // 20}.txt", "chunk_index": number}
    return EmbeddedChunk(text, source | ({} if name is None else {"collection": name}), VECTOR)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStore]:
    """Chunks of sources and others, among them many that score the same."""
    dice = random.Random(3)
    with closing(LocalStore(tmp_path_factory.mktemp("hits"))) as opened:
        opened.add_documents(
            [
                chunk(" ".join(dice.choices("abcdefg", k=dice.randint(1, 3))), NAMES[number % 4], number, loose=loose)
                for number in range(160)
                for loose in (False, True)
            ],
            ids=[f"{dice.randint(0, 9_999):04}-{number}" for number in range(320)],
        )
        yield opened


@settings(max_examples=60, deadline=None)
@given(
    st.text("abcdefg ", min_size=1, max_size=6).filter(str.strip),
    st.integers(1, 60),
    st.integers(1, 20),
    st.lists(st.sampled_from(["tea", "coffee", "milk", "water"]), min_size=1, max_size=3, unique=True),
)
def test_hits_are_read_as_a_search_of_their_collections_finds_them(
    store: LocalStore, query: str, hits: int, top_k: int, names: list[str]
) -> None:
    found = store.text_hits(query, hits)
    assert list(found.scores) == [hit.score for hit in store.search_text(query, len(found.scores) or 1)]
    read = found.documents(names, top_k)
    if read is None:
        assert sum(name in names for name in found.collections) < top_k
    else:
        assert read == store.search_text(query, top_k, where={"collection": {"$in": names}})


def test_hits_say_whose_they_are_and_meet_the_condition(store: LocalStore) -> None:
    everything = store.text_hits("a", 320)
    assert sorted(map(str, everything.collections)) == sorted(
        str(hit.metadata.get("collection")) for hit in store.search_text("a", 320)
    )
    assert set(store.text_hits("a", 320, where={"collection": {"$ne": "tea"}}).collections) == {"coffee", "milk", None}
    assert list(store.text_hits("z").scores) == []
    with pytest.raises(QueryError):
        store.text_hits(" ")


def test_hits_are_not_read_when_the_store_has_changed(tmp_path: Path) -> None:
    with closing(LocalStore(tmp_path)) as store:
        assert store.text_hits("green").documents(["tea"], 1) is None, "of a store that is empty"
        store.add_documents([chunk("green", "tea", 0), chunk("green green", "tea", 1)])
        found = store.text_hits("green")
        assert [hit.content for hit in found.documents(["tea"], 2) or ()] == ["green green", "green"]
        store.add_documents([chunk("green green green", "tea", 2)])
        assert found.documents(["tea"], 1) is None
        tied = [chunk("black", "tea", number) for number in range(3, 9)]
        store.add_documents(tied)
        found = store.text_hits("black", 6)
        store.delete(where={"collection": "tea"})
        store.add_documents(tied)
        assert found.documents(["tea"], 2) is None, "more tie than are wanted, and their keys are gone"
