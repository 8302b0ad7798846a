"""PDFs made for the test, by fpdf2 or by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fpdf import FPDF
from fpdf.enums import AccessPermission, EncryptionMethod
from PIL import Image

from ragistry.errors import ExtractionError
from ragistry.readers.extract import extract
from ragistry.readers.extracted import ExtractLimits
from ragistry.readers.pdf import describe
from ragistry.readers.pdf_reader import clean
from tests.messages import refused
from tests.readers.raw_pdf import CATALOG, FONT, ONE_PAGE, content, one_page, page, raw_pdf, stream

ENGINES = ["pypdfium2", "pypdf"]


def fpdf(*pages: str) -> FPDF:
    pdf = FPDF()
    pdf.set_font("Helvetica", size=12)
    for text in pages:
        pdf.add_page()
        if text:
            pdf.multi_cell(0, 6, text)
    return pdf


def saved(pdf: FPDF, path: Path) -> Path:
    pdf.output(str(path))
    return path


@pytest.mark.parametrize("engine", ENGINES)
def test_each_page_starts_where_it_says(tmp_path: Path, engine: str) -> None:
    path = saved(fpdf("First page.", "", "Third page.", "Fourth page.", ""), tmp_path / "a.pdf")
    extracted = extract(path, pdf_engine=engine)
    assert extracted.text == "First page.\n\nThird page.\n\nFourth page."
    assert [(start, place.page) for start, place in extracted.places] == [(0, 1), (13, 2), (13, 3), (26, 4), (38, 5)]
    assert extracted.warnings == ("2 pages (2, 5) are empty",)


@pytest.mark.parametrize("engine", ENGINES)
def test_words_broken_at_line_ends_are_mended(tmp_path: Path, engine: str) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(one_page("It is about retrie-", "val, and state-of-the-", "art search. Non-", "English too."))
    text = " ".join(extract(path, pdf_engine=engine).text.split())
    assert text == "It is about retrieval, and state-of-the-art search. Non-English too."


def scan() -> FPDF:
    pdf = fpdf("", "")
    pdf.image(Image.new("RGB", (40, 40), "grey"), w=100)
    return pdf


def encrypted(text: str, **settings: Any) -> FPDF:
    pdf = fpdf(text)
    pdf.set_encryption(owner_password="owner", encryption_method=EncryptionMethod.RC4, **settings)
    return pdf


REFUSED: dict[str, tuple[FPDF | None, dict[str, int]]] = {
    "a page of images": (scan(), {}),
    "empty pages": (fpdf("", ""), {}),
    "a PDF with a password": (encrypted("Secret", user_password="user"), {}),
    "an empty file": (None, {}),
    "more pages than the limit": (fpdf("1", "2", "3"), {"pages": 2}),
    "more characters than the limit": (fpdf("Twenty characters..."), {"characters": 10}),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", REFUSED)
def test_a_pdf_without_a_text_to_search_is_refused(tmp_path: Path, kind: str, engine: str) -> None:
    pdf, limits = REFUSED[kind]
    (tmp_path / "a.pdf").write_bytes(bytes(pdf.output()) if pdf else b"")
    with refused(ExtractionError):
        extract(tmp_path / "a.pdf", pdf_engine=engine, limits=ExtractLimits(**limits))
    if limits:
        within = ExtractLimits(**{name: limit + 10 for name, limit in limits.items()})
        assert extract(tmp_path / "a.pdf", pdf_engine=engine, limits=within).text


@pytest.mark.parametrize("engine", ENGINES)
def test_a_pdf_that_anybody_may_open_is_read(tmp_path: Path, engine: str) -> None:
    pdf = encrypted("Not to be printed", permissions=AccessPermission.none())
    assert extract(saved(pdf, tmp_path / "a.pdf"), pdf_engine=engine).text == "Not to be printed"


def test_a_damaged_page_is_left_out_with_a_warning(tmp_path: Path) -> None:
    pages = b"<< /Type /Pages /Kids [3 0 R 99 0 R] /Count 2 >>"
    (tmp_path / "a.pdf").write_bytes(raw_pdf(CATALOG, pages, page(), content("Readable"), FONT))
    extracted = extract(tmp_path / "a.pdf")
    assert (extracted.text, [start for start, _ in extracted.places]) == ("Readable", [0, 8])
    assert extracted.warnings[0].startswith("page 2 has been omitted because of damage")


def test_characters_beyond_the_basic_plane_are_kept(tmp_path: Path) -> None:
    mapping = b"1 beginbfchar <41> <D835DC65> endbfchar"
    cmap = b"begincmap 1 begincodespacerange <00> <FF> endcodespacerange " + mapping + b" endcmap"
    font = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode 6 0 R >>"
    path = tmp_path / "a.pdf"
    path.write_bytes(raw_pdf(CATALOG, ONE_PAGE, page(), content("A + B"), font, stream(cmap)))
    assert extract(path).text == "\U0001d465 + B"


def test_a_page_is_cleaned_of_what_no_reader_sees() -> None:
    assert clean("e\ufb03cient \x0c\r\nso\u00adft \t\rend\x00\ud800\ufffe") == "efficient\nsoft\nend\ufffe"


@pytest.mark.parametrize(
    "title", ["", "untitled", "Untitled document", "Microsoft Word - thesis_v3.doc", "a.dvi", " - "]
)
def test_a_title_that_says_nothing_is_none(title: str) -> None:
    assert describe({"Title": title}) == {}


def test_metadata_are_tidy_text() -> None:
    info = {"Title": "On\x00 Words\r\n", "Keywords": "a; b,, c", "CreationDate": "yesterday", "Producer": "x"}
    assert describe(info) == {"title": "On Words", "keywords": ["a", "b", "c"]}


@pytest.mark.parametrize("engine", ENGINES)
def test_metadata_come_from_the_file(tmp_path: Path, engine: str) -> None:
    path = tmp_path / "a.pdf"
    times = {"CreationDate": b"D:20240501120000+02'00'", "ModDate": b"D:20240502"}
    path.write_bytes(one_page("Hello", Title=b"On Words", Author=b"Ada", **times))
    assert extract(path, pdf_engine=engine).metadata == {
        "title": "On Words",
        "author": "Ada",
        "date": "2024-05-01",
        "created": "2024-05-01T10:00:00Z",
        "modified": "2024-05-02",
    }
