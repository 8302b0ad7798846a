"""Pages without text are read by tesseract where it is installed, and called what they are where it is not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from fpdf import FPDF
from PIL import Image, ImageDraw, ImageFont

from ragistry import open_workspace
from ragistry.errors import ExtractionError
from ragistry.readers import pdf
from ragistry.readers.extract import extract
from ragistry.readers.extracted import ExtractLimits
from tests import skips
from tests.messages import refused
from tests.readers.raw_pdf import CATALOG, FONT, ONE_PAGE, content, page, raw_pdf, stream

WORDS = "Otters swim in clear rivers"


@pytest.fixture
def scan(tmp_path: Path) -> Path:
    """A page of text, an empty one, and one that is an image."""
    image = Image.new("L", (1200, 300), "white")
    ImageDraw.Draw(image).text((40, 100), WORDS, fill="black", font=ImageFont.load_default(70))
    pdf = FPDF()
    pdf.set_font("Helvetica")
    pdf.add_page()
    pdf.cell(text="Typed text.")
    pdf.add_page()
    pdf.add_page()
    pdf.image(image, w=180)
    pdf.output(str(tmp_path / "scan.pdf"))
    return tmp_path / "scan.pdf"


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tesseract that reads nothing and says what it was given."""
    path = tmp_path / "bin" / "tesseract"
    path.parent.mkdir()
    path.write_text(
        '#!/bin/sh\nif [ "$1" = --list-langs ]; then echo eng; echo deu; exit; fi\n'
        'head -c 2 "$1"; echo " is its kind;" "$2" "$3" "$4"\n'
    )
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{path.parent}:/usr/bin:/bin")
    pdf._languages.cache_clear()
    return path


def test_a_page_without_text_is_called_what_it_is(scan: Path) -> None:
    found = extract(scan)
    assert found.text == "Typed text."
    assert found.warnings[0].startswith("page 3 has an image or a drawing and no text; to read it, install")
    assert found.warnings[1:] == ("page 2 is empty",)


def test_a_page_goes_to_the_program_as_an_image_with_the_language(scan: Path, program: Path) -> None:
    found = extract(scan, ocr="de")
    assert found.text == "Typed text.\n\nP5 is its kind; stdout -l deu"
    assert found.warnings == ("page 3 was read by OCR, which may have misread words", "page 2 is empty")
    assert [start for start, _ in found.places] == [0, 13, 13]
    assert extract(scan, ocr="finnish").text.endswith("stdout"), "whose data is not installed"


def test_a_program_that_fails_or_hangs_is_given_up(scan: Path, program: Path) -> None:
    program.write_text("#!/bin/sh\necho No data >&2\nexit 1\n")
    assert "page 3: tesseract failed (No data)" in extract(scan, ocr="english").warnings[0]
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    extract(scan)  # a worker that is ready
    limits = ExtractLimits(seconds=1)
    assert "page 3: tesseract took longer than 1 s" in extract(scan, ocr="english", limits=limits).warnings[0]


def test_a_picture_without_words_is_not_counted_as_lost(scan: Path, program: Path) -> None:
    program.write_text("#!/bin/sh\nexit 0\n")
    found = extract(scan, ocr="english")
    assert found.warnings[0] == "page 3 has an image or a drawing in which OCR found no text"
    assert (found.lost, len(extract(scan).lost)) == ((), 1)


def test_a_workspace_reads_scans_as_soon_as_the_program_is_there(
    scan: Path, program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for setting, read in (("never", False), ("auto", True)):
        with open_workspace(tmp_path, ocr=setting) as opened:
            if not read:
                opened.library.create_collection("notes", "Notes")
            report = opened.library.ingest_paths([scan], "notes")
            assert (report.added, report.updated) == (([], ["scan.pdf"]) if read else (["scan.pdf"], []))
            assert bool(opened.search("kind", technique="bm25").documents) == read


def test_an_xfa_form_is_called_that(tmp_path: Path) -> None:
    root = CATALOG[:-2] + b"/NeedsRendering true /AcroForm << /Fields [] /XFA 6 0 R >> >>"
    path = tmp_path / "form.pdf"
    waits = content("Please wait...", "You need Adobe Reader to see this form.")
    path.write_bytes(raw_pdf(root, ONE_PAGE, page(), waits, FONT, stream(b"<xdp/>")))
    with refused(ExtractionError):
        extract(path)


@pytest.mark.skipif(shutil.which("tesseract") is None, reason=skips.TESSERACT)
def test_tesseract_reads_a_scan(scan: Path) -> None:
    pdf._languages.cache_clear()
    assert WORDS in extract(scan, ocr="english").text
