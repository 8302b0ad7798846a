from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ragistry.errors import (
    ConfigError,
    ExtractionError,
    SourceError,
    SourceNotFoundError,
    UnsupportedFormatError,
)
from ragistry.readers.blocks import Place
from ragistry.readers.extract import IMAGE_EXTS, TEXT_EXTS, extract, extract_for_attachment, extract_text
from ragistry.readers.extracted import Extracted, ExtractLimits
from ragistry.readers.formats import SUPPORTED_FORMATS
from ragistry.readers.reader_process import close_workers
from tests.messages import refused
from tests.readers.raw_pdf import one_page

SMALLEST_PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("suffix", sorted(TEXT_EXTS))
def test_every_text_suffix_is_read_as_it_stands(tmp_path: Path, suffix: str) -> None:
    assert extract_text(written(tmp_path / f"a{suffix}", "Grüße, 世界\n")) == "Grüße, 世界\n"


@pytest.mark.parametrize("suffix", [".txt", ".md", ".py", ".js", ".ts", ".yaml", ".json", ".csv", ".pdf"])
def test_the_first_formats_are_all_supported(suffix: str) -> None:
    assert suffix in SUPPORTED_FORMATS


def test_a_pdf_is_read_by_its_suffix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "a.PDF", one_page("Hello"))
    monkeypatch.chdir(tmp_path)  # where the worker looks for a relative path
    extracted = extract("a.PDF")
    assert (extracted.text, extracted.source, extracted.format) == ("Hello", "a.PDF", "pdf")
    assert extracted.places == ((0, Place(page=1)),)


def test_a_kept_worker_needs_no_folder_of_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "deleted later"
    folder.mkdir()
    written(tmp_path / "a.pdf", one_page("Hello"))
    written(tmp_path / "a.rst", b"Tea\n===\n\nGreen *tea*.\n")
    monkeypatch.chdir(folder)
    close_workers()
    assert extract(tmp_path / "a.pdf").text == "Hello"
    folder.rmdir()
    assert extract(tmp_path / "a.rst").warnings == ()
    monkeypatch.chdir(tmp_path)


def test_the_source_is_the_path_as_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "a.txt", "text")
    (tmp_path / "link.txt").symlink_to(tmp_path / "a.txt")
    monkeypatch.chdir(tmp_path)
    for source in ("./a.txt", "link.txt"):
        assert extract(source) == Extracted("text", source, "text", line_numbers=range(1, 2))


PAGE = "---\ntitle: Install\ntags: [linux, go]\nweight: 3\n---\n\n# Heading\n\nText.\n"
YAML = "---\ntitle: x\n---\nb: 1\n"
FILES: list[tuple[str, str | bytes, str | None, dict[str, Any], str]] = [
    # name, content, text if it is another one, metadata, what the last warning says
    ("README.MD", "Read me", None, {}, ""),
    ("a.txt", "one\r\ntwo\rthree\nfour", "one\ntwo\nthree\nfour", {}, ""),
    ("a.txt", "Le café est fermé".encode("cp1252"), "Le café est fermé", {}, "cp1252"),
    ("a.md", "", None, {}, "empty"),
    ("a.md", " \n\t\n", "", {}, "empty"),
    ("a.md", "---\ntags: [a]\n---\n", "", {"tags": ["a"]}, "empty"),
    ("a.md", PAGE, "# Heading\n\nText.\n", {"title": "Install", "tags": ["linux", "go"], "weight": 3}, ""),
    ("a.md", "---\ntitle: [\nauthor: Ann\n---\nText.\n", "Text.\n", {"title": "[", "author": "Ann"}, "completely"),
    ("a.yaml", YAML, None, {}, ""),
    ("a.md", "# Read me #\n", None, {"title": "Read me"}, ""),
    ("a.md", "Intro\n\n## Second\n\n# First\n", None, {"title": "First"}, ""),
    ("a.md", "```sh\n# a comment\n```\n\n# Title\n", None, {"title": "Title"}, ""),
    ("a.md", "```sh\n~~~\n# a comment\n```\n\n# Title\n", None, {"title": "Title"}, ""),
    ("a.md", "#no blank\n    # code\n", None, {}, ""),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "text", "metadata", "warning"), FILES)
def test_a_file_is_text_metadata_and_warnings(
    tmp_path: Path, name: str, content: str | bytes, text: str | None, metadata: dict[str, Any], warning: str
) -> None:
    found = extract(written(tmp_path / name, content))
    assert (found.text, found.metadata) == (content if text is None else text, metadata)
    assert (len(found.warnings), warning in " ".join(found.warnings)) == (bool(warning), True)


def linked(path: Path, to: str | Path) -> Path:
    path.symlink_to(to)
    return path


def piped(path: Path) -> Path:
    os.mkfifo(path)
    return path


UNREADABLE: dict[str, tuple[type[SourceError], Callable[[Path], Path]]] = {
    "a binary file": (ExtractionError, lambda path: written(path, b"MZ\x90\x00\x03\x00\x00\x00")),
    "a missing file": (SourceNotFoundError, lambda path: path),
    "a link to nowhere": (SourceNotFoundError, lambda path: linked(path, "gone.txt")),
    "a link to itself": (SourceError, lambda path: linked(path, path.name)),
    "a link to an endless device": (SourceError, lambda path: linked(path, "/dev/zero")),
    "a folder": (SourceError, lambda path: path.parent),
    "a pipe, which is not waited for": (SourceError, piped),
    "a long name": (SourceError, lambda path: path.with_stem("a" * 300)),
    "a name with NUL": (SourceError, lambda path: path.parent / "nul\0.txt"),
    "an image": (UnsupportedFormatError, lambda path: written(path.with_suffix(".png"), SMALLEST_PNG)),
}


@pytest.mark.parametrize("kind", UNREADABLE)
def test_what_is_no_readable_file_is_refused(tmp_path: Path, kind: str) -> None:
    error, make = UNREADABLE[kind]
    path = make(tmp_path / "a.txt")
    with refused(error):
        extract_text(path)


@pytest.mark.parametrize(("name", "what"), [("a.pages", r"the suffix '\.pages'"), ("tool", "no suffix")])
def test_an_unknown_suffix_lists_the_formats(tmp_path: Path, name: str, what: str) -> None:
    with pytest.raises(UnsupportedFormatError, match=what) as refused:
        extract(written(tmp_path / name, b"\x7fELF\x02\x01\x01" + bytes(9)))
    assert " ".join(SUPPORTED_FORMATS) in str(refused.value)


@contextmanager
def without_privileges() -> Iterator[None]:
    """Root may read everything; nobody may not."""
    user = os.geteuid()
    os.seteuid(65_534 if user == 0 else user)
    try:
        yield
    finally:
        os.seteuid(user)


@pytest.mark.parametrize("name", ["a.txt", "a.pdf"])
def test_a_file_without_permission_is_a_source_error(tmp_path: Path, name: str) -> None:
    path = written(tmp_path / name, one_page("Hello"))
    tmp_path.chmod(0)
    with without_privileges(), refused(SourceError):
        extract(path)
    tmp_path.chmod(0o700)


@pytest.mark.parametrize("name", ["a.txt", "a.pdf"])
def test_a_file_over_the_limit_of_bytes_is_refused(tmp_path: Path, name: str) -> None:
    path = written(tmp_path / name, one_page("Hello"))
    size = path.stat().st_size
    assert extract(path, limits=ExtractLimits(bytes=size)).text
    with pytest.raises(ExtractionError, match=rf"{size:,} bytes, more than the limit of {size - 1:,}"):
        extract(path, limits=ExtractLimits(bytes=size - 1))


@pytest.mark.parametrize("limits", [{"seconds": 0}, {"pages": -1}, {"bytes": "many"}, {"memory": True}])
def test_a_limit_that_is_no_positive_number_is_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"the limit '{next(iter(limits))}'"):
        ExtractLimits(**limits)


def test_an_unknown_pdf_engine_is_refused(tmp_path: Path) -> None:
    with refused(ConfigError):
        extract(written(tmp_path / "a.pdf", one_page("Hello")), pdf_engine="pdftotext")


@pytest.mark.parametrize(
    ("name", "content", "data"),
    [("a.txt", "Grüße", "Grüße"), ("a.pdf", one_page("Hello"), "Hello"), ("a.log", "Started.", "Started.")],
)
def test_an_attached_document_comes_as_text(tmp_path: Path, name: str, content: str | bytes, data: str) -> None:
    path = written(tmp_path / name, content)
    assert extract_for_attachment(str(path)) == {"type": "text", "name": name, "data": data}


@pytest.mark.parametrize("suffix", sorted(IMAGE_EXTS))
def test_an_attached_image_comes_as_base64(tmp_path: Path, suffix: str) -> None:
    attachment = extract_for_attachment(written(tmp_path / f"photo{suffix}", SMALLEST_PNG))
    assert (attachment["type"], attachment["name"]) == ("image", f"photo{suffix}")
    assert base64.b64decode(attachment["data"]) == SMALLEST_PNG


def test_an_attachment_of_unknown_kind_is_refused(tmp_path: Path) -> None:
    with refused(UnsupportedFormatError):
        extract_for_attachment(written(tmp_path / "a.exe", b"MZ\x90\0\3\0\0\0\4\0"))
