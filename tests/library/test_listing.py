"""Which files of a folder are taken in: links out of it are named and left out, unless they are to be followed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ragistry import Workspace, open_workspace
from ragistry.errors import SourceError, SourceNotFoundError
from ragistry.library.listing import list_folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two files, and one beside it that is nobody's business."""
    inside, outside = tmp_path / "in", tmp_path / "outside"
    (inside / "sub").mkdir(parents=True)
    outside.mkdir()
    (inside / "tea.txt").write_text("Tea from the hills.", encoding="utf-8")
    (inside / "sub" / "milk.txt").write_text("The price of milk.", encoding="utf-8")
    (outside / "secret.txt").write_text("The password is xyzzy.", encoding="utf-8")
    return inside


def names(folder: Path, *, follow_links: bool = False) -> list[str]:
    return [file.source_file for file in list_folder(folder, follow_links=follow_links).files]


def link(path: Path, target: Path | str) -> None:
    path.symlink_to(target)


def test_a_file_behind_a_link_out_of_the_folder_is_not_taken_in(workspace: Workspace, folder: Path) -> None:
    link(folder / "note.txt", folder.parent / "outside" / "secret.txt")
    link(folder / "sub" / "more", folder.parent / "outside")
    link(folder / "relative.txt", "../outside/secret.txt")
    report = workspace.library.ingest_folder(folder, "notes")
    assert (report.added, report.failed) == (["sub/milk.txt", "tea.txt"], [])
    [warning] = report.warnings
    assert warning.startswith(f"{str(folder)!r}: 3 of its links lead out of it and were left out ")
    assert f"{str(folder / 'note.txt')!r} to {str(folder.parent / 'outside' / 'secret.txt')!r}" in warning
    assert "xyzzy" not in "".join(document.content for document in workspace.store.scan())


def test_with_follow_links_they_are_taken_in_and_pruned(workspace: Workspace, folder: Path) -> None:
    link(folder / "note.txt", folder.parent / "outside" / "secret.txt")
    link(folder / "sub" / "more", folder.parent / "outside")
    library = workspace.library
    report = library.ingest_folder(folder, "notes", follow_links=True)
    assert (report.added, report.warnings) == (["note.txt", "sub/milk.txt", "sub/more/secret.txt", "tea.txt"], [])
    assert library.ingest_folder(folder, "notes", prune=True).deleted == [], "nothing goes for want of the option"
    (folder.parent / "outside" / "secret.txt").unlink()
    (folder / "note.txt").unlink()
    gone = library.ingest_folder(folder, "notes", prune=True, follow_links=True)
    assert gone.deleted == ["sub/more/secret.txt"]


def test_links_that_stay_inside_are_as_they_were(folder: Path) -> None:
    link(folder / "again.txt", folder / "tea.txt")
    link(folder / "a", folder / "sub")
    expected = ["again.txt", "sub/milk.txt", "tea.txt"]
    assert (names(folder), names(folder, follow_links=True)) == (expected, expected)
    assert list_folder(folder).links == []


@pytest.mark.parametrize("follow_links", [False, True])
def test_loops_of_links_end(folder: Path, follow_links: bool) -> None:
    link(folder / "self.txt", "self.txt")
    link(folder / "here", ".")
    link(folder / "sub" / "up", "..")
    link(folder / "a", "b")
    link(folder / "b", "a")
    assert names(folder, follow_links=follow_links) == ["self.txt", "sub/milk.txt", "tea.txt"]


def test_a_loop_through_another_folder_ends_and_keeps_the_names(folder: Path) -> None:
    link(folder / "above", folder.parent)
    link(folder.parent / "outside" / "back", folder / "sub")
    link(folder.parent / "outside" / "round", folder.parent / "outside")
    assert names(folder, follow_links=True) == ["above/outside/secret.txt", "sub/milk.txt", "tea.txt"]


def test_a_folder_is_listed_through_a_link_to_it(folder: Path) -> None:
    link(folder.parent / "door", folder)
    assert names(folder.parent / "door") == ["sub/milk.txt", "tea.txt"]


def test_a_folder_of_links_alone_says_so(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "links").mkdir()
    (tmp_path / "secret.txt").write_text("xyzzy", encoding="utf-8")
    link(tmp_path / "links" / "one.txt", tmp_path / "secret.txt")
    report = workspace.library.ingest_folder(tmp_path / "links", "notes")
    assert (report.added, len(report.warnings)) == ([], 1)


def test_a_link_that_leads_nowhere_is_reported(workspace: Workspace, folder: Path) -> None:
    link(folder / "gone.txt", folder / "nothing.txt")
    [failure] = workspace.library.ingest_folder(folder, "notes").failed
    assert isinstance(failure.cause, SourceNotFoundError)
    assert "gone.txt" in failure.error


def test_a_special_file_does_not_hold_the_ingest_up(workspace: Workspace, folder: Path) -> None:
    os.mkfifo(folder / "pipe.txt")
    [failure] = workspace.library.ingest_folder(folder, "notes").failed
    assert isinstance(failure.cause, SourceError)


def test_a_name_that_is_not_utf8_is_reported_and_keeps_nothing_from_being_pruned(
    workspace: Workspace, folder: Path
) -> None:
    library = workspace.library
    library.ingest_folder(folder, "notes")
    try:
        latin = Path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9"))
        latin.mkdir()
    except OSError:
        pytest.skip("the system takes no such name")
    (latin / "a.txt").write_text("Coffee.", encoding="utf-8")
    (folder / "tea.txt").unlink()
    report = library.ingest_folder(folder, "notes", prune=True)
    [failure] = report.failed
    assert failure.error == f"'{folder}/caf\\xe9/a.txt': the name 'caf\\xe9' is not UTF-8; rename it"
    assert (report.added, report.deleted) == ([], ["tea.txt"])
    assert library.list_sources("notes") == ["sub/milk.txt"]
    with pytest.raises(SourceError, match="is not UTF-8; rename it"):
        library.ingest_file(latin / "a.txt", "notes")


def test_links_to_the_configuration_are_left_out_with_it(folder: Path) -> None:
    config = folder / "config"
    (config / "schemas").mkdir(parents=True)
    for name in ("documents.yaml", "techniques.yaml", "vector_stores.yaml", "schemas/documents.schema.json"):
        (config / name).write_text("{}", encoding="utf-8")
    (config / "more.yaml").write_text("{}", encoding="utf-8")
    link(folder / "shown.yaml", config / "documents.yaml")
    found = [file.source_file for file in list_folder(folder, config=config).files]
    assert found == ["config/more.yaml", "sub/milk.txt", "tea.txt"]
    assert "config/documents.yaml" in names(folder), "that of another workspace is a file like any other"


def test_a_configuration_that_is_kept_elsewhere_is_no_link_to_warn_of(folder: Path) -> None:
    (folder / "config").mkdir()
    link(folder / "config" / "documents.yaml", folder.parent / "outside" / "secret.txt")
    listing = list_folder(folder, config=folder / "config")
    assert (len(listing.files), listing.warnings()) == (2, [])


def test_what_a_store_keeps_in_the_folder_is_left_out(folder: Path) -> None:
    data = folder / "data"
    with open_workspace(folder, data_dir="data") as opened:
        opened.library.create_collection("notes")
        report = opened.library.ingest_folder(folder, "notes")
        assert report.added == ["sub/milk.txt", "tea.txt"]
        opened.library.search("price of milk", technique="bm25")
        assert (data / "words" / "meta.json").exists()
        (data / "own.txt").write_text("The owner may keep documents beside it.", encoding="utf-8")
        assert opened.library.ingest_folder(folder, "notes").added == ["data/own.txt"]
        assert opened.library.ingest_paths([data], "notes").added == ["own.txt"]
        (data / "own.txt").unlink()
        done = opened.library.ingest_paths([data, folder / "tea.txt"], "notes")
        assert (done.skipped, done.failed) == (["tea.txt"], [])
