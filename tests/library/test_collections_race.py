"""A write and the end of its collection, by two processes in a known order: no chunk is left that belongs to nobody."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ragistry import Workspace, open_workspace
from ragistry.errors import CollectionNotFoundError, SourceNotFoundError

SECONDS = 60.0

WRITER = """
import sys, time
from pathlib import Path
from ragistry import open_workspace
from ragistry.errors import CollectionNotFoundError

root, place, work = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
with open_workspace(root) as opened:
    part, name = {"before": (opened.library, "_complete_renames"), "within": (opened.store, sys.argv[4])}[place]
    go_on = getattr(part, name)
    def paused(*words):
        done = go_on(*words) if place == "before" else None
        (root / "ready").touch()
        while not (root / "go").exists():
            time.sleep(0.005)
        return done if place == "before" else go_on(*words)
    setattr(part, name, paused)
    try:
        if work == "ingest":
            opened.library.ingest_text("Tea from the hills.", "tea.txt", "notes")
        else:
            opened.library.move_source("milk.txt", "econ", "notes")
        print("written")
    except CollectionNotFoundError as error:
        print(error)
"""


class Writer:
    """A process that stops before it looks at documents.yaml for its write, or within the write itself."""

    def __init__(self, root: Path, place: str, work: str) -> None:
        self.root = root
        method = "replace_source" if work == "ingest" else "move_source"
        self.process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(root), place, work, method],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def wait_until_ready(self) -> None:
        end = time.monotonic() + SECONDS
        while not (self.root / "ready").exists():
            assert self.process.poll() is None, self.process.communicate()[1]
            assert time.monotonic() < end
            time.sleep(0.005)

    def go_on(self) -> str:
        (self.root / "go").touch()
        said, wrong = self.process.communicate(timeout=SECONDS)
        assert self.process.returncode == 0, wrong
        return said.strip()


@contextmanager
def writer(root: Path, place: str, work: str = "ingest") -> Iterator[Writer]:
    started = Writer(root, place, work)
    try:
        started.wait_until_ready()
        yield started
    finally:
        started.process.kill()
        started.process.communicate()


@pytest.fixture
def filled(workspace: Workspace) -> Workspace:
    workspace.library.create_collection("econ", "Money")
    workspace.library.ingest_text("The price of milk.", "milk.txt", "econ")
    return workspace


def assert_nothing_is_left(workspace: Workspace) -> None:
    library = workspace.library
    assert library.orphans() == []
    assert workspace.store.count({"collection": "notes"}) == 0
    assert {document.metadata["collection"] for document in library.search("tea").documents} <= {"econ", "shelf"}


ENDS: dict[str, Callable[[Workspace], object]] = {
    "delete": lambda workspace: workspace.library.delete_collection("notes"),
    "rename": lambda workspace: workspace.library.rename_collection("notes", "shelf"),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_write_that_comes_after_the_end_of_its_collection_is_refused(filled: Workspace, end: str) -> None:
    with writer(filled.root, "before") as late:
        ENDS[end](filled)
        filled.library.search("tea")  # what is orphaned is asked for, and remembered
        assert "no collection 'notes'" in late.go_on()
    assert_nothing_is_left(filled)
    assert filled.library.list_sources() == ["milk.txt"]


@pytest.mark.parametrize("work", ["ingest", "move"])
@pytest.mark.parametrize("end", ENDS)
def test_the_end_of_a_collection_waits_for_a_write_to_it(filled: Workspace, end: str, work: str) -> None:
    with writer(filled.root, "within", work) as early:
        ending = threading.Thread(target=ENDS[end], args=(filled,))
        ending.start()
        ending.join(0.4)
        assert ending.is_alive()
        assert early.go_on() == "written"
        ending.join(SECONDS)
        assert not ending.is_alive()
    assert_nothing_is_left(filled)
    sources = {"ingest": "tea.txt", "move": "milk.txt"}
    assert (sources[work] in filled.library.list_sources()) == (end == "rename")


def test_what_is_written_while_its_collection_is_taken_out_by_hand_does_not_stay(
    filled: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    library, path = filled.library, filled.library.collections.path
    write = filled.store.replace_source

    def edited(*words: object) -> None:
        monkeypatch.undo()
        path.write_text(path.read_text(encoding="utf-8").replace("name: notes", "name: paper"), encoding="utf-8")
        library.search("tea")
        write(*words)

    monkeypatch.setattr(filled.store, "replace_source", edited)
    with pytest.raises(CollectionNotFoundError, match="no collection 'notes'"):
        library.ingest_text("Tea from the hills.", "tea.txt", "notes")
    assert_nothing_is_left(filled)


def test_an_ingest_goes_on_where_documents_yaml_cannot_be_edited(filled: Workspace) -> None:
    lock = filled.library.collections.path.with_name(".documents.yaml.lock")
    lock.unlink()
    lock.mkdir()  # stands for a folder that is mounted to be read only
    assert filled.library.ingest_text("Tea from the hills.", "tea.txt", "notes") == 1
    with pytest.raises(SourceNotFoundError):
        filled.library.move_source("nothing.txt", "econ", "notes")


def test_a_rename_that_two_complete_at_once_is_complete(filled: Workspace) -> None:
    with open_workspace(filled.root) as other:
        end_rename = filled.library.collections.end_rename

        def late(name: str) -> None:
            filled.library.collections.end_rename = end_rename
            other.library.delete_collection("shelf")
            end_rename(name)

        filled.library.collections.end_rename = late
        filled.library.rename_collection("notes", "shelf")
    assert_nothing_is_left(filled)
