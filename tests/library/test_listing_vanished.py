"""Which sources vanished with their files: those that were below the folder, whatever name they were taken in by."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from ragistry import Workspace
from ragistry.errors import SourceError, SourceNotFoundError


@pytest.fixture
def folder(workspace: Workspace, tmp_path: Path) -> Path:
    """A folder with a file, and one below it with another; the latter was taken in by itself, as ``rain.txt``."""
    folder = tmp_path / "in"
    write(folder / "tea.txt", folder / "sub" / "rain.txt")
    workspace.library.ingest_folder(folder / "sub", "notes")
    return folder


def write(*paths: Path) -> None:
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"What is to be known of {path.stem}.", encoding="utf-8")


def test_what_was_taken_in_with_a_folder_below_vanishes_with_it(workspace: Workspace, folder: Path) -> None:
    shutil.rmtree(folder / "sub")
    report = workspace.library.ingest_folder(folder, "notes")
    assert (report.added, report.vanished, report.deleted) == (["tea.txt"], ["rain.txt"], [])
    assert workspace.library.ingest_folder(folder, "notes", prune=True).deleted == ["rain.txt"]
    assert workspace.library.list_sources("notes") == ["tea.txt"]


def test_the_remedy_for_a_folder_that_is_gone_removes_all_that_it_counts(workspace: Workspace, folder: Path) -> None:
    library = workspace.library
    shutil.rmtree(folder / "sub")
    library.ingest_folder(folder, "notes")
    shutil.rmtree(folder)
    with pytest.raises(SourceNotFoundError, match=r"2 sources \('rain.txt', 'tea.txt'\) came from it: to delete them"):
        library.ingest_folder(folder, "notes")
    folder.mkdir()
    with pytest.raises(SourceError, match="has no file .* has 2 sources"):
        library.ingest_folder(folder, "notes", prune=True)
    library.delete_sources(library.ingest_folder(folder, "notes").vanished, "notes")
    assert library.list_sources("notes") == []


def test_a_file_that_is_there_does_not_vanish_though_its_folder_does_not_bring_it_in(
    workspace: Workspace, folder: Path
) -> None:
    library = workspace.library
    asked_for = [folder / ".drafts" / "hidden.txt", folder / "config" / "documents.yaml"]
    write(*asked_for)
    library.ingest_paths(asked_for, "notes")
    (folder / "config").rename(folder.parent / "config-before")
    (folder / "config").symlink_to(folder.parent / "config-before")  # now it leads out
    report = library.ingest_folder(folder, "notes", prune=True)
    assert (report.vanished, report.deleted) == ([], ["rain.txt"]), "that one has a longer name now"
    assert library.list_sources("notes") == ["documents.yaml", "hidden.txt", "sub/rain.txt", "tea.txt"]


def test_the_configuration_that_was_asked_for_stays_when_its_folder_is_ingested(
    workspace: Workspace, tmp_path: Path
) -> None:
    config = workspace.library.collections.path
    write(config.parent / "more.txt")
    workspace.library.ingest_file(config, "notes")
    report = workspace.library.ingest_folder(config.parent, "notes", prune=True)
    assert (report.added, report.vanished, report.deleted) == (["more.txt"], [], [])


def test_a_link_to_a_file_vanishes_with_both(workspace: Workspace, folder: Path) -> None:
    (folder / "also.txt").symlink_to(folder / "tea.txt")
    library = workspace.library
    library.ingest_folder(folder, "notes")
    (folder / "also.txt").unlink()
    assert library.ingest_folder(folder, "notes", prune=True).vanished == [], "what it led to is there"
    (folder / "tea.txt").unlink()
    assert library.ingest_folder(folder, "notes", prune=True).deleted == ["also.txt", "tea.txt"]


def test_of_a_file_that_cannot_be_looked_at_nobody_says_that_it_vanished(
    workspace: Workspace, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = folder / "drafts" / "hidden.txt"
    write(hidden, folder / "drafts" / "other.txt")
    workspace.library.ingest_file(hidden, "notes")
    hidden.unlink()
    lstat = os.lstat

    def refuse(path):
        if str(path) == str(hidden):
            raise PermissionError(13, "Permission denied", str(path))
        return lstat(path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "lstat", refuse)
        assert workspace.library.ingest_folder(folder, "notes", prune=True).vanished == []
    assert workspace.library.ingest_folder(folder, "notes", prune=True).vanished == ["hidden.txt"]


def test_what_another_file_is_called_now_does_not_vanish(workspace: Workspace, folder: Path) -> None:
    shutil.move(folder / "sub" / "rain.txt", folder / "rain.txt")
    (folder / "rain.txt").write_text("Another text.", encoding="utf-8")
    report = workspace.library.ingest_folder(folder, "notes", prune=True)
    assert ([failure.source for failure in report.failed], report.vanished) == ([str(folder / "rain.txt")], [])
    assert "rain.txt" in workspace.library.list_sources("notes")


def test_a_folder_whose_name_begins_alike_is_another(workspace: Workspace, folder: Path) -> None:
    other = folder.parent / "in-between"
    write(other / "snow.txt", other / "hail.txt")
    workspace.library.ingest_folder(other, "notes")
    (other / "snow.txt").unlink()
    assert workspace.library.ingest_folder(folder, "notes").vanished == []


def test_what_vanished_from_two_folders_of_which_one_lies_in_the_other_is_told_once(
    workspace: Workspace, folder: Path
) -> None:
    drafts = folder / ".drafts"
    write(drafts / "one.txt", drafts / "two.txt")
    workspace.library.ingest_folder(drafts, "notes")
    (drafts / "one.txt").unlink()
    assert workspace.library.ingest_paths([folder, drafts], "notes").vanished == ["one.txt"]


def test_what_lay_on_a_disk_that_is_not_mounted_below_is_kept(workspace: Workspace, folder: Path) -> None:
    (folder / "sub" / "rain.txt").unlink()  # and what is left is an empty mount point
    report = workspace.library.ingest_folder(folder, "notes", prune=True)
    assert (report.vanished, report.deleted) == ([], [])
    assert workspace.library.list_sources("notes") == ["rain.txt", "tea.txt"]


def test_what_a_hidden_folder_held_is_no_matter_of_the_one_above(workspace: Workspace, folder: Path) -> None:
    dropped = folder / ".kept" / "one" / "paper.txt"
    write(dropped)
    workspace.library.ingest_file(dropped, "notes")
    shutil.rmtree(dropped.parent)
    workspace.library.ingest_folder(folder, "notes", prune=True)
    assert "paper.txt" in workspace.library.list_sources("notes")
