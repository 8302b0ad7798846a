"""What the page may read, and how a job ends with it."""

from __future__ import annotations

import errno
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from ragistry import Workspace, open_workspace
from ragistry.errors import SourceError
from ragistry.library.ingest.methods import TEXTS_AT_ONCE, IngestObserver, ObservedEmbedder
from ragistry.server.app import saved_jobs
from ragistry.server.jobs import NICENESS, lower_priority
from ragistry.testing.hashed import HashingEmbedder
from ragistry.web.app_state import AppState, load_collections
from ragistry.web.jobs import failures, status
from tests.messages import check_message, refused
from tests.web.conftest import ended


@pytest.mark.parametrize(
    "name",
    ["", "a\0b", "~nobody-of-that-name/x", "..", "../papers/../..", "../papers/link", "/etc", "../papers/none"],
)
def test_folder_outside_the_roots_is_refused(state: AppState, name: str) -> None:
    (state.roots[0] / "link").symlink_to("/etc")
    with refused(SourceError, repr(name)[1:20] if name else ""):
        state.folder(name)
    with pytest.raises(SourceError, match="^'xxx"):  # what is wrong depends on the system
        state.folder("x" * 5000)


def test_folder_may_be_relative_to_the_workspace(state: AppState, tmp_path: Path) -> None:
    assert state.folder("../papers") == state.folder(str(tmp_path / "papers")) == (tmp_path / "papers").resolve()


def test_load_collections_returns_each_collection_with_its_sources(workspace: Workspace) -> None:
    library = workspace.library
    library.create_collection("full", "What is full", "Full")
    library.ingest_text("One.", "one", "full")
    library.ingest_text("Two.", "two", "full")
    empty, full = load_collections(library)
    assert (full.display_name, full.description, full.chunks) == ("Full", "What is full", 2)
    assert [info.source_file for info in full.sources] == ["one", "two"]
    assert (empty.display_name, empty.sources, empty.chunks) == ("notes", (), 0)
    assert load_collections(library) == (empty, full)


def test_failed_save_leaves_no_upload(state: AppState) -> None:
    def save() -> None:
        with state.saved.new_folder() as folder:
            (folder / "large.md").write_bytes(b"The beginning")
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        save()
    assert not list(state.uploads.folder.glob("*"))


@pytest.mark.parametrize("root", ["workspace", "link"])
def test_upload_is_found_through_a_relative_or_linked_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: str
) -> None:
    (tmp_path / "workspace").mkdir()
    (tmp_path / "link").symlink_to("workspace")
    monkeypatch.chdir(tmp_path)
    with (
        open_workspace(Path(root)) as workspace,
        closing(saved_jobs(workspace)) as saved,
        saved.new_folder() as folder,
    ):
        assert saved.uploads.file_of(folder / "a.md") == folder / "a.md"
        assert folder.parent == tmp_path / "workspace" / ".ragistry" / "uploads"


def many_files(folder: Path) -> None:
    for number in range(300):
        (folder / f"{number}.md").write_text(f"Note of number {number}.")


def long_source(folder: Path) -> None:
    (folder / "book.md").write_text("".join(f"{f'Sentence {number}. ' * 90}\n\n" for number in range(200)))


@pytest.mark.parametrize("fill", [many_files, long_source])
def test_job_stops_with_the_page(
    state: AppState, workspace: Workspace, embedder: HashingEmbedder, fill: Callable[[Path], None]
) -> None:
    started, go_on = threading.Event(), threading.Event()
    embedder.check = lambda texts: (started.set(), go_on.wait(60))
    fill(state.roots[0])
    job = state.jobs.ingest("notes", [state.roots[0]], "papers")
    assert state.jobs.pending("notes") == ["papers"]
    assert started.wait(60)
    state.saved.stop()
    go_on.set()
    state.saved.close()
    assert not job.ended
    sources = workspace.library.sources("notes")
    assert sum(info.chunks - info.waiting for info in sources) < 200
    assert all(info.source_hash for info in sources)


def test_observed_vectors_are_the_same() -> None:
    class Observer(IngestObserver):
        def check(self) -> None:
            calls.append(1)

    embedder, calls = HashingEmbedder(), list[int]()
    texts = [f"Text {number}" for number in range(2 * TEXTS_AT_ONCE + 1)]
    made = ObservedEmbedder(embedder, Observer())
    assert np.allclose(made.embed(texts), embedder.embed(texts), atol=1e-6)
    assert len(calls) == 3
    assert made.fingerprint == embedder.fingerprint
    assert made.count_tokens(["one two"]) == embedder.count_tokens(["one two"])


def test_vanished_files_are_reported_until_pruned(state: AppState) -> None:
    for name in ("one.md", "two.md"):
        (state.roots[0] / name).write_text(name)
    ended(state.jobs.ingest("notes", [state.roots[0]], "papers"))
    (state.roots[0] / "two.md").unlink()
    [failure] = failures(ended(state.jobs.ingest("notes", [state.roots[0]], "papers")))
    check_message(failure, "two.md")
    pruned = ended(state.jobs.ingest("notes", [state.roots[0]], "papers", prune=True))
    assert (failures(pruned), status(pruned)) == ([], "1 skipped, 1 deleted")
    assert state.jobs.pending("notes") == []


@pytest.mark.skipif(sys.platform != "linux", reason="niceness belongs to a thread on Linux only")
def test_threads_of_jobs_have_a_lower_priority() -> None:
    def niceness() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    before = niceness()

    def in_a_thread_of_its_own() -> int:
        with ThreadPoolExecutor(1) as inner:
            return inner.submit(niceness).result()

    with ThreadPoolExecutor(1, initializer=lower_priority) as worker:
        of_its_own_thread = worker.submit(in_a_thread_of_its_own).result()
    assert (of_its_own_thread, niceness()) == (NICENESS, before)
