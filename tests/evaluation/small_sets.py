"""Small test sets and techniques whose answers are known beforehand."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ragistry import Workspace, open_workspace
from ragistry.evaluation import Dataset, Text
from ragistry.testing.hashed import HashingEmbedder
from ragistry.types import Document

TOPICS = {
    "tea": "Green tea is steeped for two minutes in water of eighty degrees, or it turns bitter.",
    "bread": "Dough of wheat and rye rises overnight in a cold kitchen before it is baked in the oven.",
    "bees": "A colony of honey bees survives the winter as a cluster around its queen.",
    "bicycle": "The chain of a bicycle lasts longer when it is cleaned and oiled every few weeks.",
    "glacier": "A glacier flows slowly downhill under its own weight and grinds the rock below.",
    "violin": "The strings of a violin are tuned in fifths, and the bow is rubbed with rosin.",
    "volcano": "Lava of a volcano that holds little silica runs far before it becomes stone.",
    "harbour": "Pilots guide large ships through the shallow harbour at high tide.",
    "potato": "Potatoes are planted when the soil has eight degrees, with the sprouts upwards.",
    "telescope": "A telescope with a wide mirror gathers more light from faint galaxies.",
}
QUESTIONS = {
    "tea": "how hot should the water for tea be",
    "bread": "when does dough rise",
    "bees": "how do insects get through the cold season",
    "bicycle": "looking after a bike",
    "glacier": "ice that moves",
    "violin": "what is a bow rubbed with",
    "volcano": "how far does lava run",
    "harbour": "who steers ships into port",
    "potato": "growing vegetables in spring",
    "telescope": "instrument for looking at distant stars",
}


def topics(name: str = "topics") -> Dataset:
    """Ten documents, and a question for each."""
    corpus = [Text(f"d-{topic}", topic, text) for topic, text in TOPICS.items()]
    qrels = {f"q-{topic}": {f"d-{topic}": 1} for topic in QUESTIONS}
    return Dataset(name, corpus, {f"q-{topic}": text for topic, text in QUESTIONS.items()}, qrels)


def numbered(queries: int) -> Dataset:
    """As many queries as asked for, each answered by the document of its own number."""
    corpus = [Text(f"d{number}", "", f"document {number}") for number in range(queries)]
    qrels = {f"q{number}": {f"d{number}": 1} for number in range(queries)}
    return Dataset("numbered", corpus, {f"q{number}": f"query {number}" for number in range(queries)}, qrels)


class Answers:
    """A technique over `numbered` that puts the right document at the rank that a function says; 0: nowhere."""

    stable_order = True

    def __init__(self, rank: Callable[[int], int], documents: int = 1_000) -> None:
        self.rank = rank
        self.documents = documents

    def retrieve(
        self, query: str, *, top_k: int | None = None, where: Mapping[str, Any] | None = None
    ) -> list[Document]:
        number, rank = int(query.split()[-1]), self.rank(int(query.split()[-1]))
        wrong = [f"x{other}" for other in range(self.documents)][: (top_k or 10)]
        names = [*wrong[: rank - 1], f"d{number}", *wrong[rank - 1 :]] if rank else wrong
        return [Document("", {}, 1 - at / 1_000, name) for at, name in enumerate(names[:top_k])]


def first(_: int) -> int:
    """For `Answers`: always right."""
    return 1


def hashed_workspace(root: Path, **settings: Any) -> Workspace:
    """A workspace whose embedder is a `HashingEmbedder`, for comparisons in which vectors do not matter."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ragistry.workspace.choose_embedder", lambda *_, **__: HashingEmbedder(16))
        opened = open_workspace(root, **settings)
        assert opened.embedder.fingerprint.model == "hashing"
    return opened


def with_sql(statement: str) -> Callable[[Path], None]:
    """A damage: run a statement on the database at a path, or on the one of a store in a folder."""

    def damage(path: Path) -> None:
        with closing(sqlite3.connect(path / "store.db" if path.is_dir() else path)) as connection, connection:
            connection.execute(statement)

    return damage
