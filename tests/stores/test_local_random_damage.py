"""Damage anywhere in the database: what is answered is right, and all else is said in the words of a store."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ragistry.errors import StoreCorruptError, StoreError
from ragistry.stores.local import LocalStore
from ragistry.types import Document, EmbeddedChunk
from tests.stores.local_stores import ALL, put, vector_of, version_of

PAGE = 16384
SEEDS = range(8)
SOURCES = [
    [
        chunk._replace(metadata={**chunk.metadata, "access": "open" if row % 3 else "secret"})
        for row, chunk in enumerate(s)
    ]
    for s in (version_of("a.md", 1, 40), version_of("b.md", 1, 7), version_of("c.md", 1, 120), version_of("d.md", 1, 1))
]
LOOSE = [EmbeddedChunk(f"loose {number}", {"number": number}, vector_of(str(number))) for number in range(5)]
WHERE = {"access": "open"}


@pytest.fixture(scope="module")
def base(quick_folder: Path) -> Path:
    folder = quick_folder / "base"
    with closing(LocalStore(folder)) as store:
        for source in SOURCES:
            put(store, source)
        store.add_documents(LOOSE, ids=[chunk.text for chunk in LOOSE])
        assert store.search_text("source")
    return folder


def flip(content: bytearray, random: random.Random) -> None:
    for _ in range(random.choice([1, 1, 16])):
        content[random.randrange(len(content))] ^= 1 << random.randrange(8)


def garble(content: bytearray, random: random.Random) -> None:
    start = random.randrange(len(content) - 512)
    content[start : start + 512] = random.randbytes(512)


def empty(content: bytearray, random: random.Random) -> None:
    size = random.choice([PAGE, 4096])
    start = size * random.randrange(len(content) // size)
    content[start : start + size] = bytes(size)


def cut(content: bytearray, random: random.Random) -> None:
    del content[random.randrange(len(content)) :]


def swap(content: bytearray, random: random.Random) -> None:
    one, other = (slice(page * PAGE, (page + 1) * PAGE) for page in random.sample(range(len(content) // PAGE), 2))
    content[one], content[other] = content[other], content[one]


CHECKED = ("get", "scan", "scan where")
TEXTS_CHECKED = ("search", "search where", "words", "words where")
KINDS = (flip, garble, empty, cut, swap)


def read(store: LocalStore, ids: list[str]) -> dict[str, Callable[[], Any]]:
    """Every way to read, by its name."""

    def told(documents: list[Document]) -> list[tuple[str, str, dict[str, Any]]]:
        return sorted(((d.id, d.content, d.metadata) for d in documents), key=lambda document: document[0])

    return {
        "count": store.count,
        "count where": lambda: store.count(WHERE),
        "count on column": lambda: store.count({"page": 3}),
        "sources": store.sources,
        "get": lambda: told(store.get(ids)),
        "vectors": lambda: store.vectors(ids).tolist(),
        "vectors of texts": lambda: sorted(store.vectors_of_texts([LOOSE[0].text, SOURCES[0][0].text])),
        "scan": lambda: told(list(store.scan())),
        "scan where": lambda: told(list(store.scan(WHERE, batch=9))),
        "search": lambda: told(store.search(ALL, 1000)),
        "search where": lambda: told(store.search(ALL, 1000, where=WHERE)),
        "words": lambda: told(store.search_text("source", 1000)),
        "words where": lambda: told(store.search_text("source", 1000, where={"source_file": "c.md"})),
    }


def write(store: LocalStore) -> dict[str, Callable[[], Any]]:
    """Every way to write, and to look after the store."""
    return {
        "put": lambda: put(store, version_of("new.md", 1)),
        "replace": lambda: put(store, version_of("a.md", 2, 40)),
        "add": lambda: store.add_documents([LOOSE[0]], ids=["more"]),
        "move": lambda: store.move_source("c.md", "c", "e"),
        "delete": lambda: store.delete(where={"source_file": "b.md"}),
        "repair": store.repair,
        "clear": store.clear_collection,
    }


def assert_is_plain(said: str) -> None:
    assert "store.db" in said or "nothing was changed" in said or "not stored" in said
    assert "\n" not in said


def answers(operations: dict[str, Callable[[], Any]]) -> dict[str, Any]:
    """What each operation returns; an error of the store is none, and any other fails the test."""
    found = {}
    for name, operation in operations.items():
        try:
            found[name] = operation()
        except StoreError as error:
            assert_is_plain(str(error))
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_damaged_database_answers_is_right_or_told(base: Path, quick_path: Path, kind: Any) -> None:
    folder = quick_path / "local"
    content = (base / "store.db").read_bytes()
    with closing(LocalStore(base)) as store:
        ids = sorted(document.id for document in store.scan())
        right = answers(read(store, ids))
    for seed in SEEDS:
        shutil.copytree(base, folder)
        damaged = bytearray(content)
        kind(damaged, random.Random(seed))
        (folder / "store.db").write_bytes(damaged)
        try:
            store = LocalStore(folder)
        except StoreCorruptError as error:
            assert_is_plain(str(error))
        else:
            found = answers(read(store, ids))
            shown = [document for name in CHECKED for document in found.get(name, ())]
            assert [document for document in shown if document not in right["scan"]] == [], seed
            texts = {text for name in TEXTS_CHECKED for _, text, _ in found.get(name, ())}
            assert texts <= {text for _, text, _ in right["scan"]}, seed
            assert all(answer == right[name] for name, answer in found.items()) or store.verify() != [], seed
            answers(write(store))
            store.close()
        shutil.rmtree(folder)
