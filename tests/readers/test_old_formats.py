"""Old formats of Office, converted by LibreOffice where it is installed."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ragistry.errors import ExtractionError, UnsupportedFormatError
from ragistry.readers import formats
from ragistry.readers.extract import extract
from tests.messages import refused
from tests.readers.office_files import docx_of

CONVERTS = """
import pathlib, sys
words = sys.argv
folder, source = pathlib.Path(words[words.index("--outdir") + 1]), pathlib.Path(words[-1])
folder.mkdir()
(folder / source.with_suffix(".docx").name).write_bytes(source.read_bytes())
"""
FAILS = "import sys; sys.exit({!r}.replace('FOLDER', sys.argv[sys.argv.index('--outdir') + 1]))"
LOAD = "Error: source file could not be loaded"
Install = Callable[[str], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Put a program in the place of LibreOffice, which is large; without a call, none is there."""
    programs = tmp_path / "programs"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    formats.libreoffice.cache_clear()

    def put(code: str) -> None:
        program = programs / "soffice"
        program.write_text(f"#!{sys.executable}\n{code}", encoding="utf-8")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        formats.libreoffice.cache_clear()

    yield put
    formats.libreoffice.cache_clear()


def test_old_document_is_converted_and_read(tmp_path: Path, install: Install) -> None:
    install(CONVERTS)
    path = tmp_path / "lease.doc"
    path.write_bytes(docx_of("The lease ends in May."))
    found = extract(path)
    assert (found.text, found.source) == ("The lease ends in May.", str(path))


def test_without_libreoffice_the_remedy_is_named(tmp_path: Path, install: Install) -> None:
    path = tmp_path / "lease.doc"
    path.write_bytes(b"old")
    with refused(UnsupportedFormatError, path):
        extract(path)


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (LOAD, "source file could not be loaded"),
        (
            f"Warning: failed to launch javaldx - java may not function correctly\n{LOAD}",
            "source file could not be loaded",
        ),
        (
            "Error: no filter for FOLDER/source.xlsx found\nError: no filter\n",
            "no filter for source.xlsx found no filter",
        ),
        ("warn:vcl: no display\n", "it gave no reason"),
    ],
)
def test_failed_conversion_is_refused_with_its_reason(
    tmp_path: Path, install: Install, output: str, reason: str
) -> None:
    install(FAILS.format(output))
    path = tmp_path / "budget.ppt"
    path.write_bytes(b"old")
    with refused(ExtractionError, path, f"({reason})"):
        extract(path)


@pytest.mark.skipif(not formats.libreoffice() or os.name == "nt", reason="LibreOffice is not installed")
def test_libreoffice_reads_a_document_that_it_wrote(tmp_path: Path) -> None:
    import subprocess

    (tmp_path / "lease.docx").write_bytes(docx_of("The lease ends in May."))
    command = [formats.libreoffice(), "--headless", f"-env:UserInstallation={(tmp_path / 'profile').as_uri()}"]
    command += ["--convert-to", "doc", "--outdir", str(tmp_path), str(tmp_path / "lease.docx")]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    assert "The lease ends in May." in extract(tmp_path / "lease.doc").text
