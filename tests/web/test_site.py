"""What the page may read, what it keeps of files that were dropped on it, and how a job ends with it."""

from __future__ import annotations

import errno
import os
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ragistry import Workspace, open_workspace
from ragistry.errors import SourceError
from ragistry.web.jobs import NICENESS, Job, give_way
from ragistry.web.site import Site
from tests.web.loops import run


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with open_workspace(tmp_path) as opened:
        opened.library.create_collection("notes")
        yield opened


@pytest.fixture
def site(workspace: Workspace, tmp_path: Path) -> Iterator[Site]:
    made = Site(workspace, (tmp_path / "papers",))
    (tmp_path / "papers").mkdir()
    yield made
    made.jobs.close()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "no folder is named"),
        ("a\0b", "is not a path"),
        ("~nobody-of-that-name/x", "is not a path"),
        ("..", "is outside of"),
        ("papers/../..", "is outside of"),
        ("papers/link", "is outside of"),
        ("/etc", "start `ragistry ui` with --root '/etc' to allow it"),
        ("papers/none", "no such folder"),
        ("x" * 5000, "is "),
    ],
)
def test_a_folder_outside_of_the_roots_is_refused_however_it_is_spelt(site: Site, name: str, said: str) -> None:
    (site.roots[0] / "link").symlink_to("/etc")
    with pytest.raises(SourceError, match=said):
        site.folder(name)


def test_a_folder_inside_is_found_from_the_workspace_too(site: Site, tmp_path: Path) -> None:
    assert site.folder("papers") == site.folder(str(tmp_path / "papers")) == (tmp_path / "papers").resolve()


def test_only_files_that_were_dropped_on_the_page_go_with_their_sources(site: Site, workspace: Workspace) -> None:
    dropped, own = site.uploads.folder / "1f" / "dropped.md", site.roots[0] / "own.md"
    dropped.parent.mkdir(parents=True)
    for file in (dropped, own):
        file.write_text(f"The file {file.name}.")
        workspace.library.ingest_file(file, "notes")
    workspace.library.create_collection("moved")
    known = workspace.library.sources("notes")
    workspace.library.move_source("dropped.md", "notes", "moved")
    site.forget_uploads(known)
    assert dropped.exists()  # a source stands on it, if not the one that the visitor was shown
    workspace.library.delete_source("dropped.md", "moved")
    workspace.library.delete_source("own.md", "notes")
    site.forget_uploads(known)
    assert own.exists()
    assert not dropped.parent.exists()
    assert site.uploads.folder.exists()


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


def wait_for(job: Job, *states: str) -> None:
    end = time.monotonic() + 60
    while job.state not in states and time.monotonic() < end:
        time.sleep(0.01)
    assert job.state in states


def test_a_job_ends_with_the_page_and_what_it_wrote_is_whole(site: Site, workspace: Workspace) -> None:
    for number in range(600):
        (site.roots[0] / f"{number}.md").write_text(f"Note of number {number}.")
    job = site.jobs.add("notes", [site.roots[0]], "papers")
    assert site.jobs.pending("notes") == [site.roots[0]]
    wait_for(job, "running")
    site.jobs.close()
    assert (job.state, job.error) == ("failed", "the page was stopped; add the files again when it runs")
    assert workspace.library.count() < 600
    assert all(info.chunks == 1 and info.source_hash for info in workspace.library.sources("notes"))


def test_what_vanished_from_a_folder_is_told_until_it_is_removed(site: Site) -> None:
    for name in ("one.md", "two.md"):
        (site.roots[0] / name).write_text(name)
    wait_for(site.jobs.add("notes", [site.roots[0]], "papers"), "done")
    (site.roots[0] / "two.md").unlink()
    told = site.jobs.add("notes", [site.roots[0]], "papers")
    wait_for(told, "done")
    assert told.failures == ["1 no longer in the folder: two.md; tick Remove, and add it again"]
    pruned = site.jobs.add("notes", [site.roots[0]], "papers", prune=True)
    wait_for(pruned, "done")
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
