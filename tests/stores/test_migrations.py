"""A library of an earlier version is migrated in one transaction, and one of a newer version is refused."""

from __future__ import annotations

import logging
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ragistry.errors import StoreError
from ragistry.stores.local import LocalStore, migrations
from ragistry.stores.local.database import FROZEN
from ragistry.types import EmbeddedChunk
from tests.messages import refused
from tests.stores.scripts import run

STEP = "ALTER TABLE sources ADD COLUMN lines INTEGER NOT NULL DEFAULT 0"
KILLED = f"""
import os, signal, sys
from ragistry.stores.local import LocalStore, migrations

def first(connection):
    connection.execute({STEP!r})

def second(connection):
    connection.execute("UPDATE chunks SET text = ''")
    os.kill(os.getpid(), signal.SIGKILL)

migrations.FORMAT += 2
migrations.STEPS = {{migrations.FORMAT - 2: first, migrations.FORMAT - 1: second}}
LocalStore(sys.argv[1]).count()
"""


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """The folder of a store with one chunk."""
    with closing(LocalStore(tmp_path / "local")) as store:
        store.add_documents([EmbeddedChunk("Boil the water.", {"page": 3}, [1.0, 0.0])])
    return tmp_path / "local"


@pytest.fixture
def next_format(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A next format with one more column; the list has an entry for each run of its step."""
    runs: list[int] = []

    def step(connection: sqlite3.Connection) -> None:
        connection.execute(STEP)
        runs.append(1)

    monkeypatch.setattr(migrations, "STEPS", {migrations.FORMAT: step})
    monkeypatch.setattr(migrations, "FORMAT", migrations.FORMAT + 1)
    return runs


def found(folder: Path) -> list[str]:
    with closing(LocalStore(folder)) as store:
        return [document.content for document in store.search_text("water", where={"page": 3})]


def columns(folder: Path) -> list[str]:
    with closing(sqlite3.connect(folder / "store.db")) as connection:
        return [row[1] for row in connection.execute("PRAGMA table_info(sources)")]


def test_earlier_format_is_migrated_once(
    filled: Path, next_format: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    for _ in range(3):
        assert found(filled) == ["Boil the water."]
    assert len(next_format) == 1
    assert "lines" in columns(filled)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    with closing(LocalStore(filled)) as store:
        assert store.verify() == []


@pytest.mark.parametrize("first", ["verify", "repair", "add"])
def test_every_first_call_migrates(filled: Path, next_format: list[int], first: str) -> None:
    with closing(LocalStore(filled)) as store:
        if first == "add":
            store.add_documents([EmbeddedChunk("Pour it.", {}, [0.0, 1.0])])
        else:
            assert not getattr(store, first)() or first == "repair"
    assert (len(next_format), found(filled)) == (1, ["Boil the water."])


def test_killed_migration_leaves_the_old_library(filled: Path) -> None:
    run(KILLED, filled, ends=-signal.SIGKILL)
    assert "lines" not in columns(filled)
    assert found(filled) == ["Boil the water."]


def test_failed_migration_changes_nothing(
    filled: Path, next_format: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(connection: sqlite3.Connection) -> None:
        connection.execute(STEP)
        connection.execute("UPDATE chunks SET no_column = 1")

    monkeypatch.setattr(migrations, "STEPS", {migrations.FORMAT - 1: failing})
    with closing(LocalStore(filled)) as store, refused(StoreError, "store.db", "ragistry backup"):
        store.count()
    monkeypatch.undo()
    assert "lines" not in columns(filled)
    assert found(filled) == ["Boil the water."]


def test_newer_format_is_refused_also_by_a_process_that_has_it_open(filled: Path) -> None:
    with closing(LocalStore(filled)) as store:
        assert store.count() == 1
        with closing(sqlite3.connect(filled / "store.db")) as connection:
            connection.execute(f"PRAGMA user_version = {migrations.FORMAT + 1}")
        with refused(StoreError, "store.db"):
            store.add_documents([EmbeddedChunk("Pour it.", {}, [0.0, 1.0])])
    with closing(LocalStore(filled)) as store, refused(StoreError, "store.db"):
        store.count()


def test_earlier_format_that_cannot_be_written_is_refused(
    filled: Path, next_format: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragistry.stores.local.database.reading_mode", lambda path: FROZEN)
    with closing(LocalStore(filled)) as store, refused(StoreError, "store.db", "ragistry backup"):
        store.count()
    assert not next_format
