"""Values that look like others to one part and not to the next: on every store they mean one thing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragistry.errors import QueryError, RagistryError
from ragistry.stores.local import LocalStore
from ragistry.testing.stores.chunks import EAST, chunk, source
from ragistry.types import EmbeddedChunk


class Collection(StrEnum):
    OPEN = "open"
    SECRET = "secret"


@pytest.fixture(params=["local", "chroma"])
def store(request: pytest.FixtureRequest, quick_path: Path) -> Iterator[Any]:
    with closing(
        LocalStore(quick_path / "s") if request.param == "local" else request.getfixturevalue("embedded")
    ) as opened:
        yield opened


def marked(name: str, **metadata: Any) -> list[EmbeddedChunk]:
    [only] = source(name, name, [f"text of {name}"])
    return [only._replace(metadata=only.metadata | metadata)]


def test_an_id_with_a_nul_is_that_one_and_no_other(store: Any) -> None:
    store.add_documents([chunk("short"), chunk("long"), chunk("third")], ids=["a", "a\0b", "c"])
    assert [document.content for document in store.get(["a\0b", "a"])] == ["long", "short"]
    assert store.vectors(["a\0b"]).shape == (1, 3)
    assert store.delete(ids=["c\0", "\0"]) == 0
    store.add_documents([chunk("long again")], ids=["a\0b"])
    assert store.delete(ids=["a\0b"]) == 1
    assert sorted(document.id for document in store.scan()) == ["a", "c"]


def test_text_with_a_nul_is_whole_in_metadata_and_conditions(store: Any) -> None:
    for name in ("x", "x\0y"):
        store.replace_source(name, name, marked(name, page=name, other=name, **{name: 1}))
        store.add_documents([chunk("loose", page=name, other=name)], ids=[f"loose {name}"])
    for key in ("page", "other"):
        for condition in ("x", {"$in": ["x"]}, {"$ne": "x\0y"}, {"$nin": ["x\0y"]}):
            found = list(store.scan({key: condition}))
            assert [document.metadata[key] for document in found] == ["x", "x"], condition
    assert store.count({"collection": "x"}) == store.count({"source_file": "x\0y"}) == store.count({"x\0y": 1}) == 1
    assert [info.collection for info in store.sources("x")] == ["x"]


def test_a_zero_keeps_its_sign(quick_path: Path) -> None:
    zeros = [0.0, -0.0, 0.0]
    origin = {"collection": "c", "source_file": "f", "source_hash": "h"}
    chunks = [chunk(f"text {n}", **origin, chunk_index=n, value=zero) for n, zero in enumerate(zeros)]
    with closing(LocalStore(quick_path / "s")) as store:
        store.replace_source("c", "f", chunks)
        found = sorted(store.scan(), key=lambda document: document.content)
    assert [str(document.metadata["value"]) for document in found] == ["0.0", "-0.0", "0.0"]


def test_a_member_of_an_enumeration_closes_what_its_text_closes(store: Any) -> None:
    for name in ("open", "secret"):
        store.replace_source(name, name, marked(name, page=1 + (name == "secret")))
    for where in (
        {"collection": Collection.OPEN}, {"collection": {"$ne": Collection.SECRET}},
        {"collection": {"$nin": [np.str_("secret")]}}, {"page": np.int64(1)}, {"page": {"$lt": np.float32(1.5)}},
    ):  # fmt: skip
        assert [document.content for document in store.search(EAST, where=where)] == ["text of open"], where
        assert store.count(where) == 1


@pytest.mark.parametrize("call", [
    lambda store: store.get(None), lambda store: store.get([["a"]]), lambda store: store.vectors(3),
    lambda store: store.delete(ids=[{}]), lambda store: store.scan(batch="x"), lambda store: store.scan(batch=1.5),
    lambda store: store.add_documents(None), lambda store: store.add_documents([chunk("x")], ids=3),
    lambda store: store.add_documents([np.eye(30)]), lambda store: store.search(EAST, np.eye(30)),
    lambda store: store.count({"a": {"$in": np.eye(30)}}), lambda store: store.vectors(["x" * 1_000_000] * 3),
    lambda store: store.replace_source("c\nd", "f" * 1_000_000, [chunk("x")]),
], ids=range(13))  # fmt: skip
def test_an_odd_argument_is_refused_on_one_short_line(store: Any, call: Callable[[Any], object]) -> None:
    with pytest.raises(RagistryError) as caught:
        call(store)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1_000


def test_chunks_and_ids_may_come_one_by_one(store: Any) -> None:
    assert store.add_documents((chunk(text) for text in "ab"), ids=(text for text in "ab")) == 2
    assert [document.content for document in store.get(text for text in "ba")] == ["b", "a"]
    with pytest.raises(RagistryError, match="expected 'c'"):
        store.replace_source("c", "f.md", iter(source("d", "f.md", ["text"])))
    store.replace_source("c", "f.md", iter(source("c", "f.md", ["text"])))
    assert store.count({"collection": "c"}) == 1


def test_a_refused_list_of_ids_is_a_query_error(store: Any) -> None:
    with pytest.raises(QueryError, match="ids must be a list of text, got None; give ids"):
        store.get(None)
