"""Whatever lies in a folder is one failed file, and the rest goes in."""

from __future__ import annotations

import io
import random
import shutil
from pathlib import Path
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZIP_LZMA, ZipFile

import pytest

from ragistry import Workspace
from ragistry.errors import ExtractionError, RagistryError
from ragistry.library.ingest.methods import IngestObserver
from ragistry.library.ingest.source import SourceFile
from tests.conftest import Corpus, full_run
from tests.library.shelf import Content, Shelf, step
from tests.messages import check_message


def zipped(kind: int) -> bytes:
    """A zip file of five pages with names that are not ASCII."""
    with io.BytesIO() as stream:
        with ZipFile(stream, "w", kind) as archive:
            for number in range(5):
                archive.writestr(f"größe {number}.md", f"# Page {number}\n\n" + "A sentence of text. " * 50)
        return stream.getvalue()


@pytest.mark.parametrize("kind", [ZIP_DEFLATED, ZIP_BZIP2, ZIP_LZMA])
def test_damaged_zip_files_fail_alone(workspace: Workspace, corpus: Corpus, kind: int) -> None:
    chance, whole = random.Random(kind), zipped(kind)
    files: dict[str, str | bytes] = {"fine.md": "Green tea."}
    for number in range(400 if full_run() else 30):
        damaged = bytearray(whole)
        for _ in range(chance.choice((1, 3, 10))):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        files[f"{number}.zip"] = bytes(damaged)
    report = workspace.library.ingest_folder(corpus(files), "notes")
    assert "fine.md" in report.added
    assert all(isinstance(one.cause, RagistryError) for one in report.failed)


def test_any_error_of_a_reader_is_one_failed_file(
    workspace: Workspace, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Panic(BaseException):
        """As extensions in Rust raise it."""

    def broken(source: SourceFile, *_: object) -> object:
        raise Panic("index out of bounds") if "b.txt" in source.path else MemoryError

    folder = corpus({"a.txt": "Green tea.", "b.txt": "Rain.", "c.txt": "Snow."})
    original = SourceFile.read
    monkeypatch.setattr(
        SourceFile, "read", lambda self, *args: original(self, *args) if "a.txt" in self.path else broken(self)
    )
    report = workspace.library.ingest_folder(folder, "notes")
    assert report.added == ["a.txt"]
    assert [type(one.cause) for one in report.failed] == [ExtractionError, ExtractionError]
    for failure in report.failed:
        check_message(failure.error, failure.source)


@pytest.mark.parametrize("new", ["The new text.", None, {}], ids=["changed", "gone", "a zip file"])
def test_a_file_that_changes_after_the_plan_is_read_as_it_is_then(shelf: Shelf, new: Content) -> None:
    class Changer(IngestObserver):
        def planned(self, report: object) -> None:
            shelf.write({"a.txt": new})

    shelf.play(step({"a.txt": "The old text.", "kept.txt": "Kept."}, added="a.txt kept.txt"))
    outcome = {"updated" if new == "The new text." else "failed": "a.txt"}
    shelf.play(
        step({"b.txt": "New."}, observer=Changer(), added="b.txt", skipped="kept.txt", **outcome),
        step({}, "b.txt", skipped="b.txt"),
    )


def test_folder_that_vanishes_is_one_failure(workspace: Workspace, corpus: Corpus) -> None:
    folder = corpus({f"{number:03}.txt": f"Text {number}." for number in range(50)})

    class Remover(IngestObserver):
        def progress(self, source_file: str, done: int, total: int) -> None:
            if done == 10:
                shutil.rmtree(folder)

    report = workspace.library.ingest_paths([folder], "notes", observer=Remover())
    assert len(report.added) >= 10
    [failure] = report.failed
    check_message(failure.error, folder)
    assert Path(failure.source) == folder
