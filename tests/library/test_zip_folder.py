"""A zip file is read as a folder of its members, and one that is dangerous is refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

from ragistry import Workspace
from ragistry.errors import SourceError
from ragistry.library.ingest import zip_folder
from ragistry.library.ingest.folder_sync import absence
from tests.conftest import Corpus, everywhere
from tests.messages import check_message, refused
from tests.readers.raw_pdf import one_page

pytestmark = pytest.mark.usefixtures("embedder")


def packed(path: Path, members: Mapping[str, str | bytes]) -> Path:
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


MEMBERS = {
    "guide/tea.md": "# Tea\n\nSteep green tea for two minutes.",
    "guide/report.pdf": one_page("Otters swim."),
    "__MACOSX/guide/._tea.md": "junk",
    "guide/.hidden.md": "junk",
    "guide/old.pages": "junk",
    "picture.png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
}


def test_each_member_is_a_source_that_follows_its_zip_file(workspace: Workspace, tmp_path: Path) -> None:
    library, path = workspace.library, packed(tmp_path / "notes.zip", MEMBERS)
    report = library.ingest_paths([path], "notes")
    assert (report.added, report.failed) == (["notes.zip/guide/report.pdf", "notes.zip/guide/tea.md"], [])
    assert (report.unread, report.left_out, len(report.warnings)) == ({".pages": 1}, {".png": 1}, 1)
    found = workspace.search("how long to steep green tea", technique="bm25").documents[0]
    assert found.metadata["source"] == f"{path}/guide/tea.md"
    assert library.ingest_paths([path], "notes").skipped == report.added
    packed(path, {"guide/tea.md": "# Tea\n\nSteep it for three minutes."})
    again = library.ingest_paths([path], "notes", prune=True)
    assert (again.updated, again.deleted) == (["notes.zip/guide/tea.md"], ["notes.zip/guide/report.pdf"])


@everywhere
@pytest.mark.parametrize("method", ["ingest_file", "ingest_folder", "ingest_paths"])
def test_every_method_takes_a_zip_file(workspace: Workspace, tmp_path: Path, method: str) -> None:
    path = packed(tmp_path / "notes.zip", {"tea.md": "Green tea.", "otter.md": "Otters."})
    getattr(workspace.library, method)(path, "notes", metadata={"year": 2024})
    assert [info.metadata["year"] for info in workspace.library.sources("notes")] == [2024, 2024]
    assert workspace.library.ingest_file(path, "notes") == 0


@pytest.mark.parametrize("workspace", ["local", "client"], indirect=True)
def test_a_zip_file_in_a_zip_file_fails_alone(workspace: Workspace, tmp_path: Path) -> None:
    inner = packed(tmp_path / "inner.zip", {"deep.md": "Deep."}).read_bytes()
    outer = packed(tmp_path / "outer.zip", {"inner.zip": inner, "snow.md": "Snow."})
    with refused(SourceError, "inner.zip"):
        workspace.library.ingest_file(outer, "notes")
    assert workspace.library.list_sources("notes") == ["outer.zip/snow.md"]


def test_a_zip_file_in_a_folder_is_a_folder_below_it(workspace: Workspace, corpus: Corpus) -> None:
    folder = corpus({"rain.txt": "Rain gauges."})
    packed(folder / "notes.zip", {"tea.md": "Green tea."})
    report = workspace.library.ingest_paths([folder, folder / "notes.zip"], "notes")
    assert (report.added, report.failed) == (["notes.zip/tea.md", "rain.txt"], [])
    (folder / "notes.zip").write_bytes(b"PK damaged")
    damaged = workspace.library.ingest_folder(folder, "notes", prune=True)
    check_message(damaged.failed[0].error, folder / "notes.zip")
    assert damaged.deleted == [], "what it held is not known"
    (folder / "notes.zip").unlink()
    assert workspace.library.ingest_folder(folder, "notes", prune=True).deleted == ["notes.zip/tea.md"]


def test_a_member_of_a_zip_file_that_is_there_is_not_gone(workspace: Workspace, tmp_path: Path, corpus: Corpus) -> None:
    folder = corpus({"rain.txt": "Rain gauges."})
    hidden = packed(folder / ".notes.zip", {"tea.md": "Green tea.", "otter.md": "Otters."})
    workspace.library.ingest_paths([folder, hidden], "notes")
    assert workspace.library.ingest_folder(folder, "notes", prune=True).vanished == []
    place = workspace.library.source(".notes.zip/tea.md", "notes").source_path
    assert (absence(place), absence(f"{hidden}/no.md")) == ("", "does not exist now")
    other = packed(tmp_path / ".notes.zip", {"tea.md": "Black tea."})
    check_message(workspace.library.ingest_paths([other], "notes").failed[0].error, other, hidden)


def test_what_cannot_be_read_is_named_with_its_zip_file(workspace: Workspace, tmp_path: Path) -> None:
    inner = packed(tmp_path / "inner.zip", {"a.md": "a"}).read_bytes()
    path = packed(tmp_path / "notes.zip", {"tea.md": "Green tea.", "inner.zip": inner, "bad.pdf": b"no PDF"})
    report = workspace.library.ingest_paths([path], "notes")
    errors = {failure.source: failure.error for failure in report.failed}
    assert report.added == ["notes.zip/tea.md"]
    for name in ("bad.pdf", "inner.zip"):
        check_message(errors[f"{path}/{name}"], f"{path}/{name}")
    data = bytearray(packed(path, {"secret.md": "Green tea."}).read_bytes())
    data[6] |= 1  # encrypted, in the member's header
    data[data.index(b"PK\x01\x02") + 8] |= 1  # and in the directory
    path.write_bytes(data)
    check_message(workspace.library.ingest_paths([path], "notes").failed[0].error, path)


def test_limits_of_members_and_sizes(workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = packed(tmp_path / "bomb.zip", {"zeros.txt": b"0" * 12_000_000})
    check_message(workspace.library.ingest_paths([bomb], "notes").failed[0].error, bomb, "12,000,000")
    monkeypatch.setattr(zip_folder, "MEMBERS", 2)
    many = packed(tmp_path / "many.zip", {f"{number}.md": "a" for number in range(3)})
    check_message(workspace.library.ingest_paths([many], "notes").failed[0].error, many, 3, 2)
