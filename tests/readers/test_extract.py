from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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


def test_the_suffix_counts_in_any_case(tmp_path: Path) -> None:
    assert extract_text(written(tmp_path / "README.MD", "# Read me")) == "# Read me"


def test_a_pdf_is_read_by_its_suffix(tmp_path: Path) -> None:
    extracted = extract(written(tmp_path / "a.PDF", one_page("Hello")))
    assert (extracted.text, extracted.format, extracted.places) == ("Hello", "pdf", ((0, Place(page=1)),))


def test_all_line_ends_become_newlines(tmp_path: Path) -> None:
    assert extract_text(written(tmp_path / "a.txt", "one\r\ntwo\rthree\nfour")) == "one\ntwo\nthree\nfour"


def test_the_source_is_the_path_as_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "a.txt", "text")
    monkeypatch.chdir(tmp_path)
    assert extract("./a.txt") == Extracted("text", "./a.txt", "text", line_numbers=range(1, 2))


def test_a_relative_pdf_is_found_by_the_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "a.pdf", one_page("Hello"))
    monkeypatch.chdir(tmp_path)
    assert extract("a.pdf").source == "a.pdf"


def test_an_uncertain_encoding_is_a_warning(tmp_path: Path) -> None:
    extracted = extract(written(tmp_path / "a.txt", "Le café est fermé".encode("cp1252")))
    assert extracted.text == "Le café est fermé"
    assert "cp1252" in extracted.warnings[0]


@pytest.mark.parametrize("content", ["", " \n\t\n", "---\ntags: [a]\n---\n"])
def test_an_empty_document_is_a_warning(tmp_path: Path, content: str) -> None:
    extracted = extract(written(tmp_path / "a.md", content))
    assert not extracted.text.strip()
    assert "empty" in extracted.warnings[-1]


def test_front_matter_becomes_metadata_and_leaves_the_text(tmp_path: Path) -> None:
    page = "---\ntitle: Install\ntags: [linux, go]\nweight: 3\n---\n\n# Heading\n\nText.\n"
    extracted = extract(written(tmp_path / "a.md", page))
    assert extracted.text == "# Heading\n\nText.\n"
    assert extracted.metadata == {"title": "Install", "tags": ["linux", "go"], "weight": 3}


def test_an_odd_line_of_front_matter_is_a_warning(tmp_path: Path) -> None:
    extracted = extract(written(tmp_path / "a.md", "---\ntitle: [\nauthor: Ann\n---\nText.\n"))
    assert (extracted.text, extracted.metadata) == ("Text.\n", {"title": "[", "author": "Ann"})
    assert extracted.warnings[0].startswith("front matter was not read completely")


def test_front_matter_is_only_looked_for_in_markdown(tmp_path: Path) -> None:
    documents = "---\ntitle: x\n---\nb: 1\n"
    assert extract(written(tmp_path / "a.yaml", documents)).text == documents


@pytest.mark.parametrize(
    ("body", "title"),
    [
        ("# Read me #\n", "Read me"),
        ("Intro\n\n## Second\n\n# First\n", "First"),
        ("```sh\n# a comment\n```\n\n# Title\n", "Title"),
        ("```sh\n~~~\n# a comment\n```\n\n# Title\n", "Title"),
        ("#no blank\n    # code\n", None),
    ],
)
def test_the_first_heading_is_the_title_where_none_is_given(tmp_path: Path, body: str, title: str | None) -> None:
    assert extract(written(tmp_path / "a.md", body)).metadata.get("title") == title


def test_a_binary_file_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "a.txt", b"MZ\x90\x00\x03\x00\x00\x00")
    with refused(ExtractionError):
        extract(path)


def test_a_missing_file_is_not_found(tmp_path: Path) -> None:
    with refused(SourceNotFoundError):
        extract(tmp_path / "missing.txt")


def test_a_link_to_nowhere_is_not_found(tmp_path: Path) -> None:
    (tmp_path / "link.txt").symlink_to(tmp_path / "gone.txt")
    with pytest.raises(SourceNotFoundError):
        extract(tmp_path / "link.txt")


def test_a_link_to_a_file_is_followed(tmp_path: Path) -> None:
    written(tmp_path / "a.txt", "text")
    (tmp_path / "link.txt").symlink_to(tmp_path / "a.txt")
    assert extract_text(tmp_path / "link.txt") == "text"


@pytest.mark.parametrize(("name", "what"), [("a.pages", r"the suffix '\.pages'"), ("tool", "no suffix")])
def test_an_unknown_suffix_lists_the_formats(tmp_path: Path, name: str, what: str) -> None:
    with pytest.raises(UnsupportedFormatError, match=what) as refused:
        extract(written(tmp_path / name, b"\x7fELF\x02\x01\x01" + bytes(9)))
    assert " ".join(SUPPORTED_FORMATS) in str(refused.value)


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with refused(SourceError):
        extract(tmp_path)


def test_a_pipe_is_refused_instead_of_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.txt")
    with refused(SourceError):
        extract(tmp_path / "a.txt")


def test_a_link_to_an_endless_device_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").symlink_to("/dev/zero")
    with refused(SourceError):
        extract(tmp_path / "a.txt")


@pytest.mark.parametrize("name", ["a" * 300 + ".txt", "nul\0.txt", "loop.txt"])
def test_a_path_that_the_system_refuses_is_a_source_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "loop.txt").symlink_to("loop.txt")
    with refused(SourceError):
        extract(tmp_path / name)


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
def test_a_limit_that_is_no_positive_number_is_refused(limits: dict) -> None:
    with pytest.raises(ConfigError, match=f"the limit '{next(iter(limits))}'"):
        ExtractLimits(**limits)


def test_an_unknown_pdf_engine_is_refused(tmp_path: Path) -> None:
    with refused(ConfigError):
        extract(written(tmp_path / "a.pdf", one_page("Hello")), pdf_engine="pdftotext")


def test_an_attached_text_comes_as_text(tmp_path: Path) -> None:
    path = written(tmp_path / "notes.txt", "Grüße")
    assert extract_for_attachment(str(path)) == {"type": "text", "name": "notes.txt", "data": "Grüße"}


def test_an_attached_pdf_comes_as_text(tmp_path: Path) -> None:
    attachment = extract_for_attachment(written(tmp_path / "a.pdf", one_page("Hello")))
    assert attachment == {"type": "text", "name": "a.pdf", "data": "Hello"}


@pytest.mark.parametrize("suffix", sorted(IMAGE_EXTS))
def test_an_attached_image_comes_as_base64(tmp_path: Path, suffix: str) -> None:
    attachment = extract_for_attachment(written(tmp_path / f"photo{suffix}", SMALLEST_PNG))
    assert (attachment["type"], attachment["name"]) == ("image", f"photo{suffix}")
    assert base64.b64decode(attachment["data"]) == SMALLEST_PNG


def test_an_image_has_no_text(tmp_path: Path) -> None:
    with refused(UnsupportedFormatError):
        extract_text(written(tmp_path / "photo.png", SMALLEST_PNG))


def test_an_attachment_of_unknown_kind_is_refused_unless_it_is_text(tmp_path: Path) -> None:
    with refused(UnsupportedFormatError):
        extract_for_attachment(written(tmp_path / "a.exe", b"MZ\x90\0\3\0\0\0\4\0"))
    assert extract_for_attachment(written(tmp_path / "a.log", "Started."))["data"] == "Started."
