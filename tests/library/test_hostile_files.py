"""Files that their reader refuses, or that lie about themselves, in a folder and in a zip file."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZIP_LZMA, ZIP_STORED

import pytest

from ragistry import Workspace
from ragistry.errors import ExtractionError
from ragistry.library.ingest import zip_folder
from ragistry.library.ingest.source import ReadOptions
from ragistry.library.ingest.zip_folder import members_of
from tests.conftest import Corpus
from tests.readers.hostile_files import CASES, Scale, packed, zip_of
from tests.readers.office_files import WORDS


@pytest.mark.usefixtures("embedder")
def test_each_refused_file_is_one_line_and_the_others_go_in(workspace: Workspace, corpus: Corpus) -> None:
    small = Scale(8_000_000, 10_000, 20_000, "/etc/passwd", "http://127.0.0.1:9/")
    refusals = {
        *((".docx", "length-large"), (".odt", "nesting"), (".odt", "length")),
        *((".msg", "nesting"), (".pdf", "nesting-content")),
        *((".eml", "nesting"), (".zip", "length"), (".zip", "length-bz2")),
    }
    files = {f"{attack}{suffix}": CASES[suffix, attack](small) for suffix, attack in refusals}
    texts = {"rain.txt": WORDS, "tea.md": WORDS, "last.html": f"<p>{WORDS}</p>"}
    report = workspace.library.ingest_folder(corpus({**files, **texts}), "notes")
    assert sorted(report.added) == sorted(texts)
    assert len(report.failed) == len(files)
    for failure in report.failed:
        assert "\n" not in failure.error
        assert failure.source in failure.error


def test_directory_of_a_zip_file_is_not_read_above_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "many.zip"
    path.write_bytes(zip_of({f"{number:04}.md": b"" for number in range(100)}))
    assert len(members_of(str(path), "many.zip").members) == 100
    monkeypatch.setattr(zip_folder, "DIRECTORY", 5_000)
    with pytest.raises(ExtractionError, match="has a directory of 5,300 bytes") as refusal:
        members_of(str(path), "many.zip")
    assert str(path) in str(refusal.value)


@pytest.mark.parametrize("method", [ZIP_STORED, ZIP_DEFLATED, ZIP_BZIP2, ZIP_LZMA])
def test_member_of_each_method_is_read_whole(method: int, tmp_path: Path) -> None:
    data = (WORDS + "\n").encode() * 30_000
    path = tmp_path / "notes.zip"
    path.write_bytes(zip_of({"a.txt": packed(data, method), "b.txt": packed(b"", method)}))
    whole, empty = members_of(str(path), "notes.zip").members
    assert whole.read(ReadOptions(1_000, 0))[0].text.encode() == data
    assert empty.read(ReadOptions(1_000, 0))[0].text == ""
