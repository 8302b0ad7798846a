"""Files that were dropped on the page: which are kept, and which go."""

from __future__ import annotations

from contextlib import closing
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import pytest

from ragistry import Workspace
from ragistry.server.app import saved_jobs
from ragistry.server.jobs import SavedJob
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


def test_replaced_upload_is_deleted(state: AppState, workspace: Workspace) -> None:
    drop(state, ("a.md", b"The first."), ("b.md", b"Beside it."))
    assert status(drop(state, ("a.md", b"The second."), replace=True)) == "1 updated"
    assert kept(state) == {"a.md": b"The second.", "b.md": b"Beside it."}
    assert Path(workspace.library.source("a.md", "notes").source_path).read_bytes() == b"The second."


def test_upload_that_cannot_be_ingested_is_deleted(state: AppState) -> None:
    assert status(drop(state, ("bad.pdf", BROKEN), ("good.md", b"Good."))) == "1 added, 1 failed"
    assert drop(state, ("late.md", b"Too late."), collection="gone").state == "failed"
    assert kept(state) == {"good.md": b"Good."}


def test_own_files_are_never_deleted(state: AppState, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "bad.pdf").write_bytes(BROKEN)
    (own / "good.md").write_bytes(b"Good.")
    assert ended(state.jobs.ingest("notes", [own, own / "bad.pdf"], "own")).state == "done"
    assert kept(state) == {}
    assert {file.name for file in own.iterdir()} == {"bad.pdf", "good.md"}


def test_only_uploads_are_deleted_with_their_sources(state: AppState, workspace: Workspace) -> None:
    dropped, own = state.uploads.folder / "1f" / "dropped.md", state.roots[0] / "own.md"
    dropped.parent.mkdir(parents=True)
    for file in (dropped, own):
        file.write_text(f"The file {file.name}.")
        workspace.library.ingest_file(file, "notes")
    workspace.library.create_collection("moved")
    known = workspace.library.sources("notes")
    workspace.library.move_source("dropped.md", "notes", "moved")
    state.forget_uploads(known)
    assert dropped.exists()  # a source stands on it, if not the one that the visitor was shown
    workspace.library.delete_source("dropped.md", "moved")
    workspace.library.delete_source("own.md", "notes")
    state.forget_uploads(known)
    assert own.exists()
    assert not dropped.parent.exists()
    assert state.uploads.folder.exists()


def zipped(**members: str) -> bytes:
    data = BytesIO()
    with ZipFile(data, "w") as made:
        for name, text in members.items():
            made.writestr(f"{name}.md", text)
    return data.getvalue()


def test_zip_file_is_kept_while_one_of_its_sources_needs_it(state: AppState, workspace: Workspace) -> None:
    job = drop(state, ("a.zip", zipped(one="One.", two="Two.")), ("bad.zip", b"PK nothing"), ("none.zip", zipped()))
    assert status(job) == "2 added, 2 failed"
    assert job.stages["a.zip"] == "searchable: 2 added"
    for name in ("bad.zip", "none.zip"):
        check_message(job.stages[name], name)
    assert set(kept(state)) == {"a.zip"}
    drop(state, ("a.zip", zipped(one="One more.", three="Three.")), replace=True)
    assert workspace.library.list_sources("notes") == ["a.zip/one.md", "a.zip/three.md", "a.zip/two.md"]
    assert len(list(state.uploads.folder.glob("*/a.zip"))) == 2  # the first has the second source
    for name in ("one", "two", "three"):
        [info] = [info for info in workspace.library.sources("notes") if info.source_file == f"a.zip/{name}.md"]
        workspace.library.delete_source(info.source_file, "notes")
        state.forget_uploads([info])
        assert len(list(state.uploads.folder.glob("*/a.zip"))) == {"one": 2, "two": 1, "three": 0}[name]


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


def test_files_of_a_stopped_page_are_added_by_the_next_one(state: AppState, workspace: Workspace) -> None:
    """Also those of a job that replaces a file: the replaced one is deleted at the end, not at the stop."""
    drop(state, ("old.md", b"The old text."))
    for number in range(300):
        (state.roots[0] / f"{number}.md").write_text(f"Note of number {number}.")
    jobs = [state.jobs.ingest("notes", [state.roots[0]], "papers")]
    for name in ("waiting.md", "old.md", "late.md"):
        with state.saved.new_folder() as folder:
            (folder / name).write_bytes(f"The new text of {name}.".encode())
            if name == "late.md":
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
    assert len(workspace.library.list_sources("notes")) == 303
    assert kept(state)["old.md"] == b"The new text of old.md."
    assert len(list(state.uploads.folder.iterdir())) == 3
