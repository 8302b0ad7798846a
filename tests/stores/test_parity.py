"""Random operations, played on a store and on the plainest store there is: both answer the same.

Each game is decided by its number, which a failure shows; a full run plays more of them.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from examples.own_store import DictStore
from ragistry.errors import RagistryError
from ragistry.protocols import LibraryStore
from ragistry.text.analysis import analyse
from ragistry.types import EmbeddedChunk
from ragistry.utils.where import COMPARISONS
from tests.conftest import full_run
from tests.stores.local_stores import place_of, store_at

GAMES = 12 if full_run() else 1
MOVES = 50
DIMENSION = 6
SCALARS: tuple[Any, ...] = (0, 1, 2, 1.0, 0.5, -1.5, True, False, "", "a", "b")
VALUES: tuple[Any, ...] = (*SCALARS, [1, 2], [1.0], ["a", "b"], [True], None, [])
KEYS = ("k", "page", "has_code")


def vector(rng: random.Random) -> list[float]:
    numbers = [float(rng.choice((-1, 0, 1))) if rng.random() < 0.5 else rng.gauss(0, 1) for _ in range(DIMENSION)]
    return numbers if any(numbers) else [1.0] * DIMENSION


def metadata(rng: random.Random) -> dict[str, Any]:
    return {key: rng.choice(VALUES) for key in KEYS if rng.random() < 0.7}


def condition(rng: random.Random, depth: int = 2) -> dict[str, Any]:
    if depth and rng.random() < 0.3:
        parts = [condition(rng, depth - 1) for _ in range(rng.randint(1, 3))]
        return {rng.choice(("$and", "$or")): parts}
    key, op = rng.choice(KEYS), rng.choice(COMPARISONS)
    if op in ("$in", "$nin"):
        return {key: {op: rng.choices(SCALARS, k=rng.randint(0, 4))}}
    return {key: {op: rng.choice(SCALARS)}}


def answer(store: Any, call: str, *arguments: Any, **options: Any) -> Any:
    """What the call gives, in an order that is the same for both; the kind of error if it raises one."""
    try:
        result = getattr(store, call)(*arguments, **options)
    except RagistryError as error:
        return type(error)
    if call == "sources":  # each store decides what it knows of a source that lost chunks
        return [replace(info, ingested_at=0.0, metadata=info.metadata if info.source_hash else {}) for info in result]
    return sorted(result, key=lambda document: document.id) if call == "scan" else result


class Game:
    """``opened``: opens a store on the same data; ``stores``: how many are open, of which each call takes one."""

    def __init__(self, number: int, opened: Callable[[random.Random], LibraryStore], stores: int) -> None:
        self.rng = random.Random(number)
        self.stores, self.plain, self.open = [opened(self.rng) for _ in range(stores)], DictStore(), opened
        self.common = [condition(self.rng) for _ in range(3)]

    @property
    def store(self) -> Any:
        return self.rng.choice(self.stores)

    def where(self) -> dict[str, Any]:
        """A condition, often one that the store has met before and may remember while it is written."""
        return self.rng.choice(self.common) if self.rng.random() < 0.5 else condition(self.rng)

    def same(self, call: str, *arguments: Any, **options: Any) -> None:
        found, expected = (answer(store, call, *arguments, **options) for store in (self.store, self.plain))
        assert found == expected, f"{call}{arguments!r:.300} {options!r:.300}"

    def ids(self) -> list[str]:
        return [f"id{self.rng.randrange(30)}" for _ in range(self.rng.randint(1, 8))]

    def add(self) -> None:
        ids = self.ids()
        chunks = [EmbeddedChunk(f"text {self.rng.random()}", metadata(self.rng), vector(self.rng)) for _ in ids]
        self.same("add_documents", chunks, ids=ids)

    def delete_ids(self) -> None:
        self.same("delete", ids=self.ids()[:3])

    def delete_where(self) -> None:
        self.same("delete", where={"$and": [condition(self.rng), {"k": self.rng.choice(SCALARS)}]})

    def search(self) -> None:
        query, top_k = vector(self.rng), self.rng.choice((1, 3, 10, 50))
        where = self.where() if self.rng.random() < 0.7 else None
        found, expected = (answer(store, "search", query, top_k, where=where) for store in (self.store, self.plain))
        if isinstance(expected, type):
            assert found is expected
            return
        true = {document.id: document for document in self.plain.search(query, 1000, where=where)}
        assert [d.score for d in found] == pytest.approx([d.score for d in expected], abs=1e-4), (top_k, where)
        assert [d.score for d in found] == pytest.approx([true[d.id].score for d in found], abs=1e-4), (top_k, where)
        assert [(d.content, d.metadata) for d in found] == [(true[d.id].content, true[d.id].metadata) for d in found]
        assert found == sorted(found, key=lambda document: (-document.score, document.id))

    def search_words(self) -> None:
        query = self.rng.choice([*(document.content for document in self.plain.scan()), "text", "f g", "nothing"])
        where = self.where() if self.rng.random() < 0.5 else None
        if "text" not in self.store.abilities or isinstance(answer(self.plain, "count", where), type):
            return
        terms = set(analyse(query))
        expected = {d.id for d in self.plain.scan(where) if terms & set(analyse(d.content))}
        found = self.store.search_text(query, 1000, where=where)
        assert {document.id for document in found} == expected, (query, where)
        assert [(-d.score, d.id) for d in found] == sorted((-d.score, d.id) for d in found)
        assert self.store.search_text(query, 3, where=where) == found[:3]

    def read(self) -> None:
        self.same("get", self.ids())
        where = condition(self.rng)
        self.same("count", where)
        self.same("scan", where, batch=self.rng.choice((1, 4, 1000)))
        ids = self.rng.choices(list(self.plain.rows), k=5) if self.plain.rows else []
        if ids:  # ChromaDB makes unit vectors of them once more
            assert self.store.vectors(ids) == pytest.approx(self.plain.vectors(ids), abs=1e-6)

    def replace_source(self) -> None:
        collection, name = self.rng.choice("xy"), self.rng.choice(("f", "g"))
        common = {"collection": collection, "source_file": name, "source": f"/{name}", "ingested_at": 1.5}
        texts = [f"{name} {self.rng.random()}" for _ in range(self.rng.randint(0, 5))]
        chunks = [
            EmbeddedChunk(
                text, {**metadata(self.rng), **common, "chunk_index": i, "source_hash": texts[0]}, vector(self.rng)
            )
            for i, text in enumerate(texts)
        ]
        self.same("replace_source", collection, name, chunks)

    def move_source(self) -> None:
        self.same("move_source", self.rng.choice(("f", "g")), self.rng.choice("xy"), self.rng.choice("xy"))

    def move_collection(self) -> None:
        self.same("move_collection", self.rng.choice("xy"), self.rng.choice("xy"))

    def flush(self) -> None:
        self.store.flush()

    def clear(self) -> None:
        if self.rng.random() < 0.2:
            self.same("clear_collection")

    def reopen(self) -> None:
        self.stores.pop(self.rng.randrange(len(self.stores))).close()
        self.stores.append(self.open(self.rng))

    def play(self) -> None:
        often = (self.add, self.delete_ids, self.delete_where, self.search, self.read, self.replace_source)
        rare = (self.move_source, self.move_collection, self.search_words, self.clear, self.reopen, self.flush)
        with closing(self):
            for _ in range(MOVES):
                self.rng.choice((*often, *often, self.search, self.search_words, *rare))()
                self.same("sources", self.rng.choice((None, "x", "y")))
            self.same("scan")
            self.same("count")
            if "repair" in self.store.abilities:
                assert self.store.verify() == []

    def close(self) -> None:
        for store in self.stores:
            store.close()


SETTINGS: dict[str, tuple[dict[str, Any], ...]] = {
    "local": ({}, {"exact_below": 0}, {"exact_below": 5}, {"exclusive": True}),
    "postgres": ({}, {"exact_below": 0}, {"exact_below": 5}),
    "embedded": ({},),
    "chroma": ({},),
}
"""The settings with which a store is opened anew."""


@pytest.mark.parametrize(
    ("kind", "number"),
    [(kind, number) for kind, games in {"local": 4, "postgres": 2, "embedded": 1, "chroma": 1}.items()
     for number in range(games * GAMES)],
)  # fmt: skip
def test_store_answers_as_the_plain_store(
    kind: str, number: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    place, folder = place_of(kind, request), {"folder": tmp_path} if kind == "postgres" else {}

    def opened(rng: random.Random) -> LibraryStore:
        return store_at(place, **folder, **rng.choice(SETTINGS[kind]))

    Game(number, opened, 2 if kind in ("local", "postgres") else 1).play()
