"""Office documents, books, web pages, mails and notebooks become Markdown, in a process that may be killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragistry.errors import ExtractionError
from ragistry.utils.chunker import chunk_document, chunk_extracted
from ragistry.utils.extract import SUPPORTED_FORMATS, extract
from ragistry.utils.extracted import ExtractLimits
from ragistry.utils.office import OFFICE_EXTS
from tests.utils.office_files import HEADING, MAKERS, TITLE, WORDS

WITHOUT_TITLE = {".rtf"}
"""Formats whose title is not known and whose headings are not either."""
PACKED = (".docx", ".pptx", ".xlsx", ".odt", ".epub")


@pytest.fixture(params=MAKERS)
def document(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / f"report{request.param}"
    MAKERS[request.param](path)
    return path


def test_text_title_and_headings_are_taken_in(document: Path) -> None:
    found = extract(document)
    assert found.format == "markdown"
    assert WORDS in found.text
    assert found.warnings == ()
    if document.suffix not in WITHOUT_TITLE:
        assert found.metadata["title"] == TITLE
    if document.suffix not in (*WITHOUT_TITLE, ".eml"):
        [chunk] = [chunk for chunk in chunk_extracted(found, 60) if WORDS[:10] in chunk.text]
        assert HEADING in chunk.metadata["heading_context"]
    assert document.suffix in SUPPORTED_FORMATS


def test_slides_have_pages_and_their_notes(tmp_path: Path) -> None:
    MAKERS[".pptx"](tmp_path / "a.pptx")
    chunks = chunk_document(tmp_path / "a.pptx", 1000)
    whole = "\n".join(chunk.text for chunk in chunks)
    assert "Say this slowly." in whole
    assert [chunk.metadata["page"] for chunk in chunk_document(tmp_path / "a.pptx", 40)][-1] == 2


def test_tables_are_rows_and_sheets_are_headings(tmp_path: Path) -> None:
    MAKERS[".xlsx"](tmp_path / "a.xlsx")
    text = extract(tmp_path / "a.xlsx").text
    assert f"## {HEADING}" in text
    assert "| May | 40 |" in text
    MAKERS[".docx"](tmp_path / "a.docx")
    assert "| May | 40 mm |" in extract(tmp_path / "a.docx").text


def test_a_page_has_no_head_and_no_scripts(tmp_path: Path) -> None:
    MAKERS[".html"](tmp_path / "a.html")
    text = extract(tmp_path / "a.html").text
    assert text.startswith(f"# {HEADING}")
    assert "Grüße" in text
    assert "alert" not in text
    assert "author" not in text


@pytest.mark.parametrize("suffix", PACKED)
def test_a_broken_document_is_called_that(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"broken{suffix}"
    MAKERS[suffix](path)
    for damaged in (path.read_bytes()[: path.stat().st_size // 2], b"PK\x03\x04garbage", b"\x00" * 100):
        path.write_bytes(damaged)
        with pytest.raises(ExtractionError, match="save it again"):
            extract(path)
    path.write_bytes(b"")
    with pytest.raises(ExtractionError, match="0 bytes"):
        extract(path)


def test_limits_hold(tmp_path: Path) -> None:
    MAKERS[".docx"](tmp_path / "a.docx")
    with pytest.raises(ExtractionError, match=r"limits\.characters"):
        extract(tmp_path / "a.docx", limits=ExtractLimits(characters=10))
    with pytest.raises(ExtractionError, match=r"limits\.megabytes"):
        extract(tmp_path / "a.docx", limits=ExtractLimits(bytes=10))


def test_nothing_is_left_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ragistry.utils.reader_process import close_workers

    home = tmp_path / "home"
    home.mkdir()
    close_workers()
    for name in ("HOME", "XDG_CACHE_HOME", "TMPDIR"):
        monkeypatch.setenv(name, str(home))
    MAKERS[".docx"](tmp_path / "a.docx")
    assert WORDS in extract(tmp_path / "a.docx").text
    close_workers()
    assert list(home.rglob("*")) == []


def test_every_format_is_tried() -> None:
    also = {".docm", ".pptm", ".xlsm", ".ods", ".htm", ".xhtml", ".msg"}  # read as one of these; .msg is Outlook's
    assert MAKERS.keys() | also == OFFICE_EXTS
