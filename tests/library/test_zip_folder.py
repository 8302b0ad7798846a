"""A zip file is read as a folder of its members, and one that is dangerous is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragistry import Workspace
from ragistry.errors import SourceError
from ragistry.library.ingest import zip_folder
from ragistry.library.ingest.folder_sync import absence
from tests.conftest import everywhere
from tests.library.shelf import Shelf, Step, bytes_of, step
from tests.messages import refused
from tests.readers.raw_pdf import one_page

pytestmark = pytest.mark.usefixtures("embedder")

MEMBERS: dict[str, str | bytes] = {
    "guide/tea.md": "# Tea\n\nSteep green tea for two minutes.",
    "guide/report.pdf": one_page("Otters swim."),
    "__MACOSX/guide/._tea.md": "junk",
    "guide/.hidden.md": "junk",
    "guide/old.pages": "junk",
    "picture.png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
}
TEA = {"tea.md": "Green tea."}


def encrypted(content: bytes) -> bytes:
    """The zip file of one member, which is marked as encrypted in its header and in the directory."""
    data = bytearray(content)
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    return bytes(data)


CASES: dict[str, tuple[Step, ...]] = {
    "each member is a source that follows its zip file": (
        step({"n.zip": MEMBERS}, "n.zip", added="n.zip/guide/report.pdf n.zip/guide/tea.md", unread={".pages": 1},
             left_out=1, warnings=1),
        step({"n.zip": {"guide/tea.md": "Changed"}}, "n.zip", prune=True, updated="n.zip/guide/tea.md",
             deleted="n.zip/guide/report.pdf"),
    ),
    "a zip file in a folder is a folder below it": (
        step({"rain.txt": "Rain.", "n.zip": TEA}, "", "n.zip", added="n.zip/tea.md rain.txt"),
        step({"n.zip": b"PK damaged"}, prune=True, skipped="rain.txt", failed="n.zip"),
        step({"n.zip": None}, prune=True, skipped="rain.txt", deleted="n.zip/tea.md"),
    ),
    "what cannot be read is named with its zip file": (
        step({"n.zip": TEA | {"in.zip": bytes_of(TEA), "bad.pdf": b"no"}}, "n.zip", added="n.zip/tea.md",
             failed="n.zip/bad.pdf n.zip/in.zip"),
        step({"n.zip": encrypted(bytes_of(TEA))}, "n.zip", failed="n.zip/tea.md"),
    ),
    "a member of a hidden zip file that is there is not gone": (
        step({"rain.txt": "Rain.", ".n.zip": TEA}, "", ".n.zip", added=".n.zip/tea.md rain.txt"),
        step(prune=True, skipped="rain.txt"),
        step({"b/.n.zip": {"tea.md": "Black tea."}}, "b/.n.zip", failed="b/.n.zip/tea.md"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_zip_file_is_a_folder(shelf: Shelf, case: str) -> None:
    shelf.play(*CASES[case])
    for info in shelf.workspace.library.sources("notes"):
        assert info.source_path == str(shelf.root / info.source_file)
        assert (absence(info.source_path), absence(f"{info.source_path}/no")) == ("", "does not exist now")


@everywhere
@pytest.mark.parametrize("method", ["ingest_file", "ingest_folder", "ingest_paths"])
def test_every_method_takes_a_zip_file(workspace: Workspace, tmp_path: Path, method: str) -> None:
    path = tmp_path / "notes.zip"
    path.write_bytes(bytes_of(TEA | {"otter.md": "Otters."}))
    getattr(workspace.library, method)(path, "notes", metadata={"year": 2024})
    assert [info.metadata["year"] for info in workspace.library.sources("notes")] == [2024, 2024]
    assert workspace.library.ingest_file(path, "notes") == 0


@pytest.mark.parametrize("workspace", ["local", "client"], indirect=True)
def test_a_zip_file_in_a_zip_file_fails_alone(workspace: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "outer.zip"
    path.write_bytes(bytes_of({"inner.zip": bytes_of(TEA), "snow.md": "Snow."}))
    with refused(SourceError, "inner.zip"):
        workspace.library.ingest_file(path, "notes")
    assert workspace.library.list_sources("notes") == ["outer.zip/snow.md"]


def test_limits_of_members_and_sizes(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zip_folder, "MEMBERS", 2)
    shelf.play(
        step({"bomb.zip": {"zeros.txt": b"0" * 12_000_000}}, "bomb.zip", failed="bomb.zip"),
        step({"many.zip": {f"{number}.md": "a" for number in range(3)}}, "many.zip", failed="many.zip"),
    )
