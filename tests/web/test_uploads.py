"""Files that were dropped on the page: which are kept, and which go."""

from __future__ import annotations

from contextlib import closing, suppress
from io import BytesIO
from pathlib import Path
from random import Random
from threading import Event
from zipfile import ZipFile

import pytest

from ragistry import Workspace
from ragistry.errors import CollectionNotFoundError
from ragistry.server.app import saved_jobs
from ragistry.server.jobs import SavedJob
from ragistry.testing.hashed import HashingEmbedder
from ragistry.web.app_state import AppState
from ragistry.web.jobs import status
from tests.messages import check_message
from tests.web.conftest import ended

BROKEN = b"%PDF-1.4 nothing"


def kept(state: AppState) -> dict[str, bytes]:
    """The content of every file that is kept, by its name; no folder is left without one."""
    files = list(state.uploads.folder.glob("*/*"))
    assert {file.parent for file in files} == set(state.uploads.folder.iterdir())
    return {file.name: file.read_bytes() for file in files}


def drop(state: AppState, *contents: tuple[str, bytes], collection: str = "notes", replace: bool = False) -> SavedJob:
    """Take in files as the page does, and wait until that has ended."""
    with state.saved.new_folder() as folder:
        for name, content in contents:
            (folder / name).write_bytes(content)
        places = [folder / name for name, _ in contents]
        return ended(state.jobs.ingest(collection, places, "files", replace=replace, uploaded=folder))


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
def test_file_without_text_does_not_replace_a_source(
    state: AppState, workspace: Workspace, blank: bytes, summary: str
) -> None:
    drop(state, ("a.md", b"The first."), ("b.md", b"Beside it."))
    job = drop(state, ("a.md", blank), ("b.md", b"Instead of it."), ("new.md", blank), replace=True)
    assert status(job) == summary
    check_message(job.stages["a.md"], "a.md")
    assert job.stages["b.md"] == "searchable"
    check_message(job.stages["new.md"])
    assert kept(state) == {"a.md": b"The first.", "b.md": b"Instead of it."}
    assert status(drop(state, ("a.md", blank), replace=True)) == "1 failed"
    assert Path(workspace.library.source("a.md", "notes").source_path).read_bytes() == b"The first."
    assert [document.content for document in workspace.library.search("first", "notes", 1).documents] == ["The first."]


def zipped(**members: str) -> bytes:
    data = BytesIO()
    with ZipFile(data, "w") as made:
        for name, text in members.items():
            made.writestr(f"{name}.md", text)
    return data.getvalue()


@pytest.mark.parametrize("seed", range(2))
def test_uploads_are_kept_as_long_as_a_source_needs_them(state: AppState, workspace: Workspace, seed: int) -> None:
    """After any sequence of uploads, deletions and moves; files that were not uploaded are never deleted."""
    library, random = workspace.library, Random(seed)
    library.create_collection("more")
    own = {state.roots[0] / name for name in ("own.md", "bad.pdf")}
    for file in own:
        file.write_bytes(BROKEN if file.suffix == ".pdf" else b"My own.")
    ended(state.jobs.ingest("notes", [state.roots[0], *own], "papers"))
    for step in range(15):
        known = library.sources()
        chosen = random.choice(known)
        action = random.choice(["drop", "drop", "delete", "move", "broken"])
        if action in ("drop", "broken"):
            members = {name: f"{name} of step {step}." for name in random.sample(["one", "two", "three"], 2)}
            contents = {"a.md": f"Text {step}.".encode(), "b.md": b"The same.", "c.zip": zipped(**members)}
            bad = {"a.md": b"text \xff\xfe\x00", "bad.pdf": BROKEN, "c.zip": b"PK nothing", "none.zip": zipped()}
            files = random.sample([*(contents if action == "drop" else bad).items()], 2)
            target = random.choice(["notes", "more", "gone"])
            with suppress(CollectionNotFoundError):
                drop(state, *files, collection=target, replace=random.random() < 0.7)
        elif action == "delete":
            library.delete_source(chosen.source_file, chosen.collection)
        else:
            target = "more" if chosen.collection == "notes" else "notes"
            library.move_source(chosen.source_file, chosen.collection, target, overwrite=True)
        state.forget_uploads(known)
        needed = {state.uploads.file_of(info.source_path) for info in library.sources()} - {None}
        assert {*state.uploads.folder.glob("*/*")} == needed, (step, action)
        assert {file.parent for file in needed if file} == {*state.uploads.folder.iterdir()}
        if not library.sources():
            library.ingest_text("No file.", "text", "notes")
    assert {*state.roots[0].iterdir()} == own


def test_zip_file_is_reported_by_its_members(state: AppState) -> None:
    job = drop(state, ("a.zip", zipped(one="One.", two="Two.")), ("bad.zip", b"PK nothing"), ("none.zip", zipped()))
    assert status(job) == "2 added, 2 failed"
    assert job.stages["a.zip"] == "searchable: 2 added"
    for name in ("bad.zip", "none.zip"):
        check_message(job.stages[name], name)
    assert drop(state, ("late.md", b"Too late."), collection="gone").state == "failed"
    assert set(kept(state)) == {"a.zip"}


def test_uploads_of_another_page_stay(state: AppState) -> None:
    with state.saved.new_folder() as folder:
        (folder / "other.md").write_bytes(b"On its way.")
        drop(state, ("bad.pdf", BROKEN))
        assert kept(state) == {"other.md": b"On its way."}
    assert kept(state) == {}


def test_upload_stays_if_its_collection_was_removed_by_hand(state: AppState, workspace: Workspace) -> None:
    workspace.library.create_collection("hidden")
    drop(state, ("a.md", b"Hidden."), collection="hidden")
    file = workspace.library.collections.path
    text = file.read_text(encoding="utf-8")
    file.write_text(text[: text.index("  - name: hidden")], encoding="utf-8")
    drop(state, ("b.md", b"Shown."))
    assert set(kept(state)) == {"a.md", "b.md"}


def test_files_of_a_stopped_page_are_added_by_the_next_one(
    state: AppState,
    workspace: Workspace,
    embedder: HashingEmbedder,
) -> None:
    """Also those of a job that replaces a file: the replaced one is deleted at the end, not at the stop."""
    drop(state, ("old.md", b"The old text."))
    go_on = Event()
    embedder.check = lambda texts: go_on.wait(60)
    for number in range(20):
        (state.roots[0] / f"{number}.md").write_text(f"Note of number {number}.")
    jobs = [state.jobs.ingest("notes", [state.roots[0]], "papers")]
    for name in ("waiting.md", "old.md", "late.md"):
        with state.saved.new_folder() as folder:
            (folder / name).write_bytes(f"The new text of {name}.".encode())
            if name == "late.md":
                state.saved.stop()
                go_on.set()
                state.saved.close()
            jobs.append(state.jobs.ingest("notes", [folder / name], name, replace=True, uploaded=folder))
    assert [job.id for job in state.saved.unfinished()] == [job.id for job in jobs]
    assert {file.name for file in state.uploads.folder.glob("*/*")} == {"waiting.md", "old.md", "late.md"}
    with closing(saved_jobs(workspace)) as saved:
        saved.start()
        again = AppState(workspace, state.roots, saved)
        assert again.jobs.pending("notes")
        assert [status(ended(job)) for job in reversed(again.jobs.ingests())][1:] == [
            "1 added",
            "1 updated",
            "1 added",
        ]
    assert len(workspace.library.list_sources("notes")) == 23
    assert kept(state)["old.md"] == b"The new text of old.md."
    assert len(list(state.uploads.folder.iterdir())) == 3
