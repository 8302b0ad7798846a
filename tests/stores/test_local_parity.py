"""Random operations, played on a `LocalStore` and on the plainest store there is: both answer the same.

The store is closed and opened again in between, each time with other settings. See `test_parity` for the games.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ragistry.stores.local import LocalStore
from ragistry.utils.analysis import analyse
from tests.stores.test_parity import GAMES, Game, answer, condition

SETTINGS: tuple[dict[str, Any], ...] = (
    {},
    {"memory": 0},
    {"memory": 600},
    {"exact_below": 0},
    {"exact_below": 0, "memory": 600},
    {"exclusive": True},
    {"exclusive": True, "graph_above": 0},
    {"exclusive": True, "exact_below": 5, "graph_above": 15, "memory": 600},
)


class LocalGame(Game):
    def __init__(self, number: int, folder: Path) -> None:
        self.folder = folder
        super().__init__(number, LocalStore(folder))
        self.store = self.chroma

    def reopen(self) -> None:
        self.store.close()
        self.store = self.chroma = LocalStore(self.folder, **self.rng.choice(SETTINGS))

    def search_words(self) -> None:
        texts = [row.text for row in self.memory.rows.values()]
        query = self.rng.choice([*texts, "text", "f g", "nothing"])
        where = condition(self.rng) if self.rng.random() < 0.5 else None
        if isinstance(answer(self.memory, "count", (where,), {}), type):
            return  # no condition
        terms = set(analyse(query))
        expected = {d.id for d in self.memory.scan(where) if terms & set(analyse(d.content))}
        found = self.store.search_text(query, 1000, where=where)
        assert {document.id for document in found} == expected, (query, where)
        assert [(-d.score, d.id) for d in found] == sorted((-d.score, d.id) for d in found)
        assert self.store.search_text(query, 3, where=where) == found[:3]

    def read_vectors(self) -> None:
        ids = list(self.memory.rows)
        ids = [self.rng.choice(ids) for _ in range(self.rng.randint(0, 8) if ids else 0)]
        assert self.store.vectors(ids).tolist() == self.memory.vectors(ids).tolist()

    def clear(self) -> None:
        self.same("clear_collection")

    def list_sources(self) -> None:
        """When a source was ingested that lost its first chunk is for each store to say."""
        local, memory = self.both("sources", self.rng.choice((None, "x", "y")))
        assert [replace(info, ingested_at=0.0) for info in local] == [replace(info, ingested_at=0.0) for info in memory]

    def move(self) -> None:
        moves = (self.add, self.add, self.delete_ids, self.delete_where, self.search, self.search, self.read)
        rare = (self.replace_source, self.replace_source, self.move_source, self.search_words, self.read_vectors)
        self.rng.choice((*moves, *rare, self.search_words, self.reopen))()
        if self.rng.random() < 0.01:
            self.clear()

    def play(self) -> None:
        for _ in range(60):
            self.move()
            self.list_sources()
        self.same("scan")
        self.same("count")
        assert self.store.verify() == []


@pytest.mark.parametrize("number", range(GAMES))
def test_a_local_store_answers_as_the_plain_store(number: int, tmp_path: Path) -> None:
    game = LocalGame(number, tmp_path / "local")
    try:
        game.play()
    finally:
        game.store.close()
