"""What the page may read, and how a job ends with it."""

from __future__ import annotations

import errno
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from ragistry import Workspace, open_workspace
from ragistry.errors import SourceError
from ragistry.library.ingest.methods import TEXTS_AT_ONCE, IngestObserver, ObservedEmbedder
from ragistry.testing.hashed import HashingEmbedder
from ragistry.web.holdings import holdings
from ragistry.web.jobs import NICENESS, STOPPED, give_way
from ragistry.web.site import Site
from tests.messages import check_message, refused
from tests.web.conftest import ended
from tests.web.loops import run


@pytest.mark.parametrize(
    "name",
    ["", "a\0b", "~nobody-of-that-name/x", "..", "../papers/../..", "../papers/link", "/etc", "../papers/none",
     "x" * 5000],
)  # fmt: skip
def test_a_folder_outside_of_the_roots_is_refused(site: Site, name: str) -> None:
    (site.roots[0] / "link").symlink_to("/etc")
    with refused(SourceError, repr(name)[1:20] if name else ""):
        site.folder(name)


def test_a_folder_inside_is_found_from_the_workspace_too(site: Site, tmp_path: Path) -> None:
    assert site.folder("../papers") == site.folder(str(tmp_path / "papers")) == (tmp_path / "papers").resolve()


def test_holdings_are_every_collection_with_its_own_sources(workspace: Workspace) -> None:
    library = workspace.library
    library.create_collection("full", "What is full", "Full")
    library.ingest_text("One.", "one", "full")
    library.ingest_text("Two.", "two", "full")
    empty, full = holdings(library)
    assert (full.display_name, full.description, full.chunks) == ("Full", "What is full", 2)
    assert [info.source_file for info in full.sources] == ["one", "two"]
    assert (empty.display_name, empty.sources, empty.chunks) == ("notes", (), 0)
    assert holdings(library) == (empty, full)


@pytest.mark.parametrize("root", ["workspace", "link"])
def test_a_file_that_the_disk_has_no_room_for_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: str
) -> None:
    (tmp_path / "workspace").mkdir()
    (tmp_path / "link").symlink_to("workspace")
    monkeypatch.chdir(tmp_path)

    async def save(place: Path) -> None:
        place.parent.mkdir(parents=True)
        place.write_bytes(b"The beginning")
        raise OSError(errno.ENOSPC, "No space left on device")

    with open_workspace(Path(root)) as workspace:
        site = Site(workspace, (tmp_path,))
        with pytest.raises(OSError, match="No space"):
            run(site.uploads.keep("large.md", save))
        site.close()
    assert not list((tmp_path / "workspace" / ".ragistry" / "uploads").glob("*/"))


def many_files(folder: Path) -> None:
    for number in range(300):
        (folder / f"{number}.md").write_text(f"Note of number {number}.")


def long_source(folder: Path) -> None:
    (folder / "book.md").write_text("".join(f"{f'Sentence {number}. ' * 90}\n\n" for number in range(200)))


@pytest.mark.parametrize("fill", [many_files, long_source])
def test_a_job_ends_with_the_page(
    site: Site, workspace: Workspace, embedder: HashingEmbedder, fill: Callable[[Path], None]
) -> None:
    started, go_on = threading.Event(), threading.Event()
    embedder.check = lambda texts: (started.set(), go_on.wait(60))
    fill(site.roots[0])
    job = site.jobs.add("notes", [site.roots[0]], "papers")
    assert site.jobs.pending("notes") == [site.roots[0]]
    assert started.wait(60)
    site.jobs.stop()
    go_on.set()
    site.jobs.close()
    assert (job.state, job.error) == ("failed", STOPPED)
    assert workspace.library.count() < 200
    assert all(info.chunks == 1 and info.source_hash for info in workspace.library.sources("notes"))


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


def test_what_vanished_from_a_folder_is_reported_until_it_is_removed(site: Site) -> None:
    for name in ("one.md", "two.md"):
        (site.roots[0] / name).write_text(name)
    ended(site.jobs.add("notes", [site.roots[0]], "papers"))
    (site.roots[0] / "two.md").unlink()
    [failure] = ended(site.jobs.add("notes", [site.roots[0]], "papers")).failures
    check_message(failure, "two.md")
    pruned = ended(site.jobs.add("notes", [site.roots[0]], "papers", prune=True))
    assert (pruned.failures, pruned.summary) == ([], "1 skipped, 1 deleted")
    assert site.jobs.pending("notes") == []


@pytest.mark.skipif(sys.platform != "linux", reason="niceness belongs to a thread on Linux only")
def test_taking_in_gives_way_to_questions() -> None:
    def niceness() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    before = niceness()

    def in_a_thread_of_its_own() -> int:
        with ThreadPoolExecutor(1) as inner:
            return inner.submit(niceness).result()

    with ThreadPoolExecutor(1, initializer=give_way) as worker:
        of_its_own_thread = worker.submit(in_a_thread_of_its_own).result()
    assert (of_its_own_thread, niceness()) == (NICENESS, before)
