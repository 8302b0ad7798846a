"""Files that were dropped on the page: which are kept, and which go."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragistry import Workspace
from ragistry.web.jobs import Job
from ragistry.web.site import Site
from tests.messages import check_message
from tests.web.conftest import ended

BROKEN = b"%PDF-1.4 nothing"


def kept(site: Site) -> dict[str, bytes]:
    """The content of every file that is kept, by its name; no folder is left without one."""
    files = list(site.uploads.folder.glob("*/*"))
    assert {file.parent for file in files} == set(site.uploads.folder.iterdir())
    return {file.name: file.read_bytes() for file in files}


def drop(site: Site, *contents: tuple[str, bytes], collection: str = "notes", replace: bool = False) -> Job:
    """Take in files as the page does, and wait until that has ended."""
    places = [site.uploads.place(name) for name, _ in contents]
    for place, (_, content) in zip(places, contents, strict=True):
        place.parent.mkdir(parents=True)
        place.write_bytes(content)
    return ended(site.jobs.add(collection, places, "files", replace=replace))


@pytest.mark.parametrize(
    ("blank", "summary"),
    [
        (b"", "1 updated, 1 skipped, 1 failed"),
        (b" \n\n", "1 updated, 1 skipped, 1 failed"),
        (b"---\ndate: 2026-01-01\n---\n", "1 updated, 1 skipped, 1 failed"),
        (b"text \xff\xfe\x00\x81", "1 updated, 2 failed"),
    ],
    ids=["empty", "blank", "front matter", "damaged"],
)
def test_a_file_without_text_replaces_nothing(site: Site, workspace: Workspace, blank: bytes, summary: str) -> None:
    drop(site, ("a.md", b"The first."), ("b.md", b"Beside it."))
    job = drop(site, ("a.md", blank), ("b.md", b"Instead of it."), ("new.md", blank), replace=True)
    assert job.summary == summary
    check_message(job.stages["a.md"], "a.md")
    assert job.stages["b.md"] == "searchable"
    check_message(job.stages["new.md"])
    assert kept(site) == {"a.md": b"The first.", "b.md": b"Instead of it."}
    assert drop(site, ("a.md", blank), replace=True).summary == "1 failed"
    assert Path(workspace.library.source("a.md", "notes").source_path).read_bytes() == b"The first."
    assert [document.content for document in workspace.library.search("first", "notes", 1).documents] == ["The first."]


def test_what_was_replaced_goes_and_what_replaces_it_stays(site: Site, workspace: Workspace) -> None:
    drop(site, ("a.md", b"The first."), ("b.md", b"Beside it."))
    assert drop(site, ("a.md", b"The second."), replace=True).summary == "1 updated"
    assert kept(site) == {"a.md": b"The second.", "b.md": b"Beside it."}
    assert Path(workspace.library.source("a.md", "notes").source_path).read_bytes() == b"The second."


def test_what_could_not_be_taken_in_is_not_kept(site: Site) -> None:
    assert drop(site, ("bad.pdf", BROKEN), ("good.md", b"Good.")).summary == "1 added, 1 failed"
    assert drop(site, ("late.md", b"Too late."), collection="gone").state == "failed"
    assert kept(site) == {"good.md": b"Good."}


def test_files_that_are_no_uploads_stay_whatever_becomes_of_them(site: Site, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "bad.pdf").write_bytes(BROKEN)
    (own / "good.md").write_bytes(b"Good.")
    assert ended(site.jobs.add("notes", [own, own / "bad.pdf"], "own")).state == "done"
    assert {file.name for file in own.iterdir()} == {"bad.pdf", "good.md"}


def test_only_dropped_files_go_with_their_sources(site: Site, workspace: Workspace) -> None:
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


def test_a_file_that_another_page_is_keeping_stays(site: Site) -> None:
    other = site.uploads.place("other.md")
    other.parent.mkdir(parents=True)
    other.write_bytes(b"On its way.")
    drop(site, ("bad.pdf", BROKEN))
    assert kept(site) == {"other.md": b"On its way."}


def test_a_file_stays_when_its_collection_was_removed_by_hand(site: Site, workspace: Workspace) -> None:
    workspace.library.create_collection("hidden")
    drop(site, ("a.md", b"Hidden."), collection="hidden")
    file = workspace.library.collections.path
    text = file.read_text(encoding="utf-8")
    file.write_text(text[: text.index("  - name: hidden")], encoding="utf-8")
    drop(site, ("b.md", b"Shown."))
    assert set(kept(site)) == {"a.md", "b.md"}


def test_what_waits_or_arrives_when_the_page_stops_is_not_kept_and_reported(site: Site) -> None:
    for number in range(300):
        (site.roots[0] / f"{number}.md").write_text(f"Note of number {number}.")
    running = site.jobs.add("notes", [site.roots[0]], "papers")
    place = site.uploads.place("waiting.md")
    place.parent.mkdir(parents=True)
    place.write_bytes(b"Waiting.")
    waiting = site.jobs.add("notes", [place], "waiting.md")
    site.jobs.close()
    assert site.jobs.stopped() == [running, waiting]
    late = drop(site, ("late.md", b"Too late."))
    assert (late.state, site.jobs.open()) == ("failed", [])
    assert late in site.jobs.stopped()
    assert kept(site) == {}
