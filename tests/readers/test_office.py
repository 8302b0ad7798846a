"""Office documents, books, web pages, mails and notebooks become Markdown, in a process that may be killed."""

from __future__ import annotations

import re
from html import escape
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import pytest

from ragistry.chunking.chunker import chunk_extracted
from ragistry.errors import ExtractionError
from ragistry.readers.extract import SUPPORTED_FORMATS, extract
from ragistry.readers.extracted import ExtractLimits
from ragistry.readers.formats import FORMATS, OFFICE_EXTS
from ragistry.readers.office_package import picture_text
from tests.messages import refused
from tests.readers import office_files
from tests.readers.office_builder import odf_file, p
from tests.readers.office_files import HEADING, MAKERS, TITLE, WORDS

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


@pytest.mark.parametrize("suffix", PACKED)
def test_a_broken_document_is_called_that(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"broken{suffix}"
    MAKERS[suffix](path)
    for damaged in (path.read_bytes()[: path.stat().st_size // 2], b"PK\x03\x04garbage", b"\x00" * 100):
        path.write_bytes(damaged)
        with refused(ExtractionError):
            extract(path)
    path.write_bytes(b"")
    with refused(ExtractionError):
        extract(path)


@pytest.mark.parametrize("suffix", sorted(MAKERS.keys() - {".html", ".xlsx"}))
def test_text_of_any_script_and_sign_comes_back(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for text in ("Die Zeder wächst. 雪松需要沙质土壤。 الأرز Кедр", "a b & c d # no heading | cell", "cedar " * 20_000):
        given = escape(text) if suffix in (".odt", ".epub") else text
        if suffix == ".rtf":
            given = "".join(char if char.isascii() else f"\\u{ord(char)}?" for char in text)
        monkeypatch.setattr(office_files, "WORDS", given)
        MAKERS[suffix](tmp_path / f"a{suffix}")
        assert letters(text) in letters(extract(tmp_path / f"a{suffix}").text)


def letters(text: str) -> str:
    return "".join(char for char in text if char.isalnum())


@pytest.mark.parametrize("suffix", sorted(MAKERS.keys() - {*PACKED}))
def test_another_program_s_file_is_refused(suffix: str, tmp_path: Path) -> None:
    MAKERS[".docx"](tmp_path / "a.docx")
    (tmp_path / f"a{suffix}").write_bytes((tmp_path / "a.docx").read_bytes())
    with refused(ExtractionError):
        extract(tmp_path / f"a{suffix}")


def test_limits_hold(tmp_path: Path) -> None:
    MAKERS[".docx"](tmp_path / "a.docx")
    with refused(ExtractionError):
        extract(tmp_path / "a.docx", limits=ExtractLimits(characters=10))
    with refused(ExtractionError):
        extract(tmp_path / "a.docx", limits=ExtractLimits(bytes=10))


def test_nothing_is_left_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ragistry.readers.reader_process import close_workers

    home = tmp_path / "home"
    home.mkdir()
    close_workers()
    for name in ("HOME", "XDG_CACHE_HOME", "TMPDIR"):
        monkeypatch.setenv(name, str(home))
    MAKERS[".docx"](tmp_path / "a.docx")
    assert WORDS in extract(tmp_path / "a.docx").text
    close_workers()
    assert list(home.rglob("*")) == []


NAMES_OF_FILES = [
    r"C:\Users\ann\Pictures\sunset over the bay.jpg",
    r"C:\Documents and Settings\ann\Desktop\logo",
    r"\\server\dept$\scan 1.tif",
    "D:/scans/page1",
    "/home/ann/plots/rain 2.pdf",
    "/Users/ann/Desktop/Screenshot 2020-01-01 at 10.00.png",
    "file:///C:/Users/ann/My%20Pictures/a.gif",
    "file:///home/ann/a b.png",
    "~/plots/rain",
    r"..\images\fig1.eps",
    "images/fig1.png",
    "IMG_1234.JPG",
    "Description: Macintosh HD:Users:ann:Desktop:logo",
    "cid:image001.png@01D0A1B2.C3D4E5F0",
]
DESCRIPTIONS = [
    "A cedar",
    "Pump and/or valve",
    "Folder C:\\Users in the tree",
    "https://example.org/logo.png",
    "/ 5 of 8",
    "Rain: May: 40 mm",
    "C:\\ is full, see the message of the system",
    "The dialog asks for the name of a file such as logo.png",
]


@pytest.mark.parametrize("text", [*NAMES_OF_FILES, *DESCRIPTIONS])
def test_the_path_of_a_picture_is_no_description(text: str) -> None:
    wanted = text in DESCRIPTIONS
    assert picture_text(text) == text * wanted
    assert picture_text("Rain", text) == (f"Rain: {text}" if wanted else "Rain")


TWINS = {
    suffix: next((one for one in MAKERS if FORMATS[one].module == FORMATS[suffix].module), "")
    for suffix in sorted(OFFICE_EXTS - MAKERS.keys())
    if FORMATS[suffix].module != "mail"
}


def test_every_format_is_tried() -> None:
    assert {suffix for suffix, twin in TWINS.items() if not twin} == {".ods", ".ots", ".xls", ".xlt", ".xlsb"}


@pytest.mark.parametrize("suffix", sorted(suffix for suffix in TWINS if TWINS[suffix]))
def test_templates_shows_and_files_with_macros_are_read_as_their_twins(suffix: str, tmp_path: Path) -> None:
    MAKERS[TWINS[suffix]](tmp_path / "twin")
    data = (tmp_path / "twin").read_bytes()
    if data.startswith(b"PK"):  # the type of its main part is all that differs
        copy = BytesIO()
        with ZipFile(BytesIO(data)) as old, ZipFile(copy, "w") as new:
            for name in old.namelist():
                part = old.read(name)
                new.writestr(name, re.sub(rb"(document|sheet|presentation)(?=\.main\+xml)", b"template", part))
        data = copy.getvalue()
    (tmp_path / f"a{suffix}").write_bytes(data)
    (tmp_path / f"a{TWINS[suffix]}").write_bytes((tmp_path / "twin").read_bytes())
    twin = extract(tmp_path / f"a{TWINS[suffix]}")
    found = extract(tmp_path / f"a{suffix}")
    assert (found.text, found.places, found.lost) == (twin.text, twin.places, twin.lost)
    assert len(found.text) > 20


def repeated(kind: str, rows: int, columns: int, cell: str) -> bytes:
    """A document of forty tables, each with one row and one cell that are repeated."""
    table = (
        f'<table:table table:name="Big"><table:table-row table:number-rows-repeated="{rows}">'
        f'<table:table-cell table:number-columns-repeated="{columns}">{p(cell)}</table:table-cell>'
        "</table:table-row></table:table>"
    )
    return odf_file(kind, table * 40)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.ods", repeated("spreadsheet", 1_000, 1_000, "valve" * 50)),
        ("b.ods", repeated("spreadsheet", 1_000, 1, 'a<text:s text:c="99"/>b' * 50)),
        ("c.odt", repeated("text", 1_000, 1_000, "valve" * 50)),
    ],
)
def test_repetitions_inside_each_other_are_cut_and_named(tmp_path: Path, name: str, data: bytes) -> None:
    assert len(data) < 5_000
    (tmp_path / name).write_bytes(data)
    found = extract(tmp_path / name)
    assert len(found.text) <= 1_000_000
    assert any(f"{len(data):,} bytes" in line for line in found.lost)
    assert all(start <= len(found.text) for start, _ in found.places)
