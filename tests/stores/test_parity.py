"""Random operations, played on ChromaDB and on the plainest store there is: both answer the same.

Each game is decided by its number, which a failure shows; `RAGISTRY_PARITY_GAMES=100` plays more of them.
"""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

from ragistry.errors import RagistryError
from ragistry.stores.chroma import ChromaStore
from ragistry.types import EmbeddedChunk
from ragistry.utils.where import COMPARISONS
from tests.stores.memory_store import MemoryStore

GAMES = int(os.environ.get("RAGISTRY_PARITY_GAMES", "3"))
MOVES = 40
DIMENSION = 6
VALUES: tuple[Any, ...] = (
    0,
    1,
    2,
    1.0,
    0.5,
    -1.5,
    True,
    False,
    "",
    "a",
    "b",
    [1, 2],
    [1.0],
    ["a", "b"],
    [True],
    None,
    [],
)
SCALARS = tuple(value for value in VALUES if value is not None and not isinstance(value, list))
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


class Game:
    def __init__(self, number: int, chroma: ChromaStore) -> None:
        self.rng = random.Random(number)
        self.chroma, self.memory = chroma, MemoryStore()

    def both(self, call: str, *arguments: Any, **options: Any) -> tuple[Any, Any]:
        return answer(self.chroma, call, arguments, options), answer(self.memory, call, arguments, options)

    def same(self, call: str, *arguments: Any, **options: Any) -> None:
        chroma, memory = self.both(call, *arguments, **options)
        assert chroma == memory, f"{call}{arguments!r:.300} {options!r:.300}"

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
        where = condition(self.rng) if self.rng.random() < 0.7 else None
        found, expected = self.both("search", query, top_k, where=where)
        if isinstance(expected, type):
            assert found is expected
            return
        true = {document.id: document for document in self.memory.search(query, 1000, where=where)}
        assert [d.score for d in found] == pytest.approx([d.score for d in expected], abs=1e-4), (top_k, where)
        assert [d.score for d in found] == pytest.approx([true[d.id].score for d in found], abs=1e-4), (top_k, where)
        assert [(d.content, d.metadata) for d in found] == [(true[d.id].content, true[d.id].metadata) for d in found]
        assert found == sorted(found, key=lambda document: (-document.score, document.id))

    def read(self) -> None:
        self.same("get", self.ids())
        where = condition(self.rng)
        self.same("count", where)
        self.same("scan", where, batch=self.rng.choice((1, 4, 1000)))

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

    def play(self) -> None:
        moves = (self.add, self.add, self.delete_ids, self.delete_where, self.search, self.search, self.read)
        for _ in range(MOVES):
            self.rng.choice((*moves, self.replace_source, self.move_source))()
            self.same("sources", self.rng.choice((None, "x", "y")))
        self.same("scan")
        self.same("count")


def answer(store: Any, call: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """What the call gives, in an order that is the same for both; the kind of error where it raises one."""
    try:
        result = getattr(store, call)(*arguments, **options)
    except RagistryError as error:
        return type(error)
    return sorted(result, key=lambda document: document.id) if call == "scan" else result


@pytest.mark.parametrize("number", range(GAMES))
def test_an_embedded_chroma_answers_as_the_plain_store(number: int, embedded: ChromaStore) -> None:
    Game(number, embedded).play()


@pytest.mark.parametrize("number", range(100, 100 + (GAMES + 2) // 3))
def test_a_served_chroma_answers_as_the_plain_store(number: int, served: ChromaStore) -> None:
    Game(number, served).play()
