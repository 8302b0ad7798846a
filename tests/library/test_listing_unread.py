"""What is told of files of a folder that are left out because their format is not read."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragistry import Workspace
from ragistry.errors import SourceError
from ragistry.library.unread import UNREAD_FORMATS
from ragistry.utils.extract import SUPPORTED_FORMATS


def write(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("Green tea.", encoding="utf-8")
    return folder


def test_documents_of_other_formats_are_counted_in_one_warning(workspace: Workspace, tmp_path: Path) -> None:
    names = ("a.ppt", "sub/b.PPT", "a.doc", "sub/b.doc", "sub/c.doc", "sheet.xls")
    folder = write(tmp_path / "in", "tea.md", *names)
    report = workspace.library.ingest_folder(folder, "notes")
    assert (report.added, report.failed) == (["tea.md"], [])
    assert report.warnings == [
        f"{str(folder)!r}: 6 of its files have a format that is not read and were left out (3 .doc, 2 .ppt, 1 .xls)"
        "; convert them to PDF, Markdown or plain text"
    ]


def test_one_such_file_is_told_in_the_singular(workspace: Workspace, tmp_path: Path) -> None:
    [warning] = workspace.library.ingest_paths([write(tmp_path / "in", "tea.md", "a.pages")], "notes").warnings
    assert ": 1 of its files has a format that is not read and was left out (1 .pages); convert it to PDF" in warning


def test_nobody_is_told_of_pictures_hidden_files_and_what_a_store_keeps(workspace: Workspace, tmp_path: Path) -> None:
    names = (
        "logo.png",
        "style.css",
        "song.mp3",
        "LICENSE",
        ".hidden.docx",
        ".drafts/a.docx",
        "~$tea.docx",
        "~$tea.doc",
    )
    folder = write(tmp_path / "in", "tea.md", *names, "store.db", "lock", "repositories/page.html")
    assert workspace.library.ingest_folder(folder, "notes").warnings == []


def test_a_folder_of_nothing_else_is_an_error_still(workspace: Workspace, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no readable files in"):
        workspace.library.ingest_folder(write(tmp_path / "in", "a.doc"), "notes")


def test_no_format_is_both_read_and_left_out() -> None:
    assert UNREAD_FORMATS.isdisjoint(SUPPORTED_FORMATS)
