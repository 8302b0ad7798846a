"""Commands while another process has the right to write to the store: they change nothing, and say who has it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Done
from tests.library.locking import locked

Run = Callable[..., Done]


@pytest.fixture
def busy(ragistry: Run, tmp_path: Path) -> Iterator[Run]:
    """A library of one file, which another process writes to."""
    (tmp_path / "tea.txt").write_text("Tea is steeped.", encoding="utf-8")
    assert ragistry("ingest", "tea.txt", "-c", "brewing", "--create", "How tea is made").code == 0
    with locked(tmp_path):
        yield ragistry


def test_an_ingest_leaves_no_collection_that_was_made_for_it(busy: Run, tmp_path: Path) -> None:
    before = (tmp_path / "config" / "documents.yaml").read_bytes()
    done = busy("ingest", "tea.txt", "-c", "new", "--create", "Something new")
    assert done.code == 1
    assert done.err.count("error: ") == 1
    assert "is being written by process" in done.err
    after = (tmp_path / "config" / "documents.yaml").read_bytes()
    assert b"new" not in after
    assert [row["name"] for row in busy("collections", "list", "--json").json["collections"]] == ["brewing"]
    assert before.count(b"- name:") == after.count(b"- name:")


def test_a_rename_changes_nothing(busy: Run, tmp_path: Path) -> None:
    before = (tmp_path / "config" / "documents.yaml").read_bytes()
    done = busy("collections", "rename", "brewing", "pouring")
    assert (done.code, "is being written by process" in done.err) == (1, True)
    assert (tmp_path / "config" / "documents.yaml").read_bytes() == before
    assert busy("search", "tea", "-c", "brewing").code == 0


def test_an_empty_collection_is_deleted(busy: Run) -> None:
    assert busy("collections", "add", "empty").code == 0
    assert busy("collections", "delete", "empty", "--yes").code == 0
    done = busy("collections", "delete", "brewing", "--yes")
    assert (done.code, "is being written by process" in done.err) == (1, True)
    names = [row["name"] for row in busy("collections", "list", "--json").json["collections"]]
    assert names == ["brewing"]
