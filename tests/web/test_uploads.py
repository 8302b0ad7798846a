"""Files that were dropped on the page: which are kept, and which go."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from ragistry import Workspace, open_workspace
from ragistry.web.jobs import Job
from ragistry.web.site import Site
from tests.web.test_collections import add_collection, upload

BROKEN = b"%PDF-1.4 nothing"


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with open_workspace(tmp_path) as opened:
        opened.library.create_collection("notes")
        yield opened


@pytest.fixture
def site(workspace: Workspace, tmp_path: Path) -> Iterator[Site]:
    made = Site(workspace, (tmp_path,))
    yield made
    made.jobs.close()


def kept(root: Path) -> dict[str, bytes]:
    """The content of every file that is kept, by its name; no folder is left without one."""
    files = list((root / ".ragistry" / "uploads").glob("*/*"))
    assert {file.parent for file in files} == set((root / ".ragistry" / "uploads").iterdir())
    return {file.name: file.read_bytes() for file in files}


def drop(site: Site, *contents: tuple[str, bytes], collection: str = "notes", replace: bool = False) -> Job:
    """Take in files as the page does, and wait until that has ended."""
    places = [site.uploads.place(name) for name, _ in contents]
    for place, (_, content) in zip(places, contents, strict=True):
        place.parent.mkdir(parents=True)
        place.write_bytes(content)
    return ended(site.jobs.add(collection, places, "files", replace=replace))


def ended(job: Job) -> Job:
    until = time.monotonic() + 60
    while not job.ended and time.monotonic() < until:
        time.sleep(0.01)
    assert job.ended
    return job


def test_a_file_that_cannot_be_read_leaves_the_one_that_it_should_replace(
    page: Page, address: str, root: Path, fixtures: Path, tmp_path: Path
) -> None:
    good = next((fixtures / "manuals").glob("*.pdf")).read_bytes()
    add_collection(page, address, "replaced")
    page.goto(f"{address}/collection/replaced")
    (tmp_path / "doc.pdf").write_bytes(good)
    upload(page, tmp_path / "doc.pdf")
    expect(page.get_by_text("1 added")).to_be_visible()
    page.get_by_text("Replace sources of the same name").click()
    (tmp_path / "doc.pdf").write_bytes(BROKEN)
    upload(page, tmp_path / "doc.pdf")
    expect(page.get_by_text("1 failed")).to_be_visible()
    assert kept(root)["doc.pdf"] == good
    with open_workspace(root) as workspace:
        assert Path(workspace.library.source("doc.pdf", "replaced").source_path).read_bytes() == good


@pytest.mark.parametrize("blank", [b"", b" \n\n", b"---\ndate: 2026-01-01\n---\n"])
def test_a_file_without_text_replaces_nothing(site: Site, workspace: Workspace, tmp_path: Path, blank: bytes) -> None:
    drop(site, ("a.md", b"The first."), ("b.md", b"Beside it."))
    job = drop(site, ("a.md", blank), ("b.md", b"Instead of it."), ("new.md", blank), replace=True)
    assert job.summary == "1 updated, 1 skipped, 1 failed"
    assert job.stages["a.md"].startswith("failed: 'a.md' has no text; the earlier source of this name stays, delete it")
    assert job.stages["b.md"] == "searchable"
    assert "nothing to search" in job.stages["new.md"]
    assert kept(tmp_path) == {"a.md": b"The first.", "b.md": b"Instead of it."}
    assert drop(site, ("a.md", blank), replace=True).summary == "1 failed"
    assert Path(workspace.library.source("a.md", "notes").source_path).read_bytes() == b"The first."
    assert [document.content for document in workspace.library.search("first", "notes", 1).documents] == ["The first."]


def test_what_was_replaced_goes_and_what_replaces_it_stays(site: Site, workspace: Workspace, tmp_path: Path) -> None:
    drop(site, ("a.md", b"The first."), ("b.md", b"Beside it."))
    assert drop(site, ("a.md", b"The second."), replace=True).summary == "1 updated"
    assert kept(tmp_path) == {"a.md": b"The second.", "b.md": b"Beside it."}
    assert Path(workspace.library.source("a.md", "notes").source_path).read_bytes() == b"The second."


def test_what_could_not_be_taken_in_is_not_kept(site: Site, tmp_path: Path) -> None:
    assert drop(site, ("bad.pdf", BROKEN), ("good.md", b"Good.")).summary == "1 added, 1 failed"
    assert kept(tmp_path) == {"good.md": b"Good."}
    assert drop(site, ("late.md", b"Too late."), collection="gone").state == "failed"
    assert kept(tmp_path) == {"good.md": b"Good."}


def test_files_that_are_no_uploads_stay_whatever_becomes_of_them(site: Site, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "bad.pdf").write_bytes(BROKEN)
    (own / "good.md").write_bytes(b"Good.")
    assert ended(site.jobs.add("notes", [own, own / "bad.pdf"], "own")).state == "done"
    assert {file.name for file in own.iterdir()} == {"bad.pdf", "good.md"}


def test_a_file_that_another_page_is_keeping_stays(site: Site, tmp_path: Path) -> None:
    other = site.uploads.place("other.md")
    other.parent.mkdir(parents=True)
    other.write_bytes(b"On its way.")
    drop(site, ("bad.pdf", BROKEN))
    assert kept(tmp_path) == {"other.md": b"On its way."}


def test_the_file_of_a_source_whose_collection_was_taken_out_by_hand_stays(
    site: Site, workspace: Workspace, tmp_path: Path
) -> None:
    workspace.library.create_collection("hidden")
    drop(site, ("a.md", b"Hidden."), collection="hidden")
    file = tmp_path / "config" / "documents.yaml"
    text = file.read_text(encoding="utf-8")
    file.write_text(text[: text.index("  - name: hidden")], encoding="utf-8")
    drop(site, ("b.md", b"Shown."))
    assert set(kept(tmp_path)) == {"a.md", "b.md"}


def test_what_waits_when_the_page_stops_is_not_kept_and_said_to_be_out(site: Site, tmp_path: Path) -> None:
    for number in range(600):
        (tmp_path / f"{number}.md").write_text(f"Note of number {number}.")
    running = site.jobs.add("notes", [tmp_path], "papers")
    place = site.uploads.place("waiting.md")
    place.parent.mkdir(parents=True)
    place.write_bytes(b"Waiting.")
    waiting = site.jobs.add("notes", [place], "waiting.md")
    site.jobs.close()
    assert site.jobs.stopped() == [running, waiting]
    assert kept(tmp_path) == {}


def test_a_file_that_arrives_when_the_page_has_stopped_is_not_kept_and_said_to_be_out(
    site: Site, tmp_path: Path
) -> None:
    site.jobs.close()
    job = drop(site, ("late.md", b"Too late."))
    assert (job.state, site.jobs.stopped(), site.jobs.open()) == ("failed", [job], [])
    assert kept(tmp_path) == {}
