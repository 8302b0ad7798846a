"""Real PDFs, each with one thing that readers of PDFs get wrong."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from ragistry.errors import ExtractionError
from ragistry.readers.extract import extract
from tests import skips

ENGINES = ["pypdfium2", "pypdf"]
READABLE = {  # pages, and words that only stand in the text if it was read in order, with its blanks, hyphens mended
    "acl-two-column.pdf": (6, ["supported intents, but current text classification", "queries that are out-of-scope"]),
    "arxiv-two-column-long.pdf": (7, ["a benchmark for exploring open challenges", "accompanying corpora"]),
    "federal-register-three-column.pdf": (15, ["The FAA proposes to\nsupersede", "FAA-approved"]),
    "latex-multicolumn.pdf": (3, ["consectetuer adipiscing elit", "vestibulum ut"]),
    "faa-handbook.pdf": (1, ["self-locking nuts are\nconsidered in this handbook", "Elastic stop nut"]),
    "multi-page-report.pdf": (5, ["The Evolution of the Word Processor", "carbon paper"]),
    "nics-wide-table.pdf": (1, ["Alaska 209 3,062 3,209"]),
    "irs-form-1040nr.pdf": (5, ["U.S. Nonresident Alien Income Tax Return"]),
    "latex-form.pdf": (1, ["Submit"]),
    "scan-with-ocr-layer.pdf": (1, ["No vote"]),
    "attachment.pdf": (1, ["no sea takimata sanctus"]),
    "broken-damaged-stream.pdf": (1, ["Potato"]),
}
ONLY_PYPDFIUM2 = {
    "senate-expenditures.pdf": (1, ["BAIN, J MATTHEW DISTRICT DIRECTOR 37,499.96\nSMITH, ALVARO R"]),
    "encrypted-empty-password.pdf": (1, ["pdf encryption test"]),
    "broken-xref.pdf": (1, ["Potato"]),
    "right-to-left.pdf": (1, ["البرمجة بلغة R"]),
    "arabic.pdf": (1, ["habibi"]),
    "german-geometry-book.pdf": (117, ["Fundamentalgruppe", "Mitschriften einiger Übungen", "Wegzusammenhang"]),
}
REFUSED = {
    "scan-two-column.pdf": r"no text layer \(1 scanned or drawn page\); to read it, install tesseract",
    "scan-book-page.pdf": r"no text layer",
    "encrypted-aes256-password.pdf": r"is encrypted; remove the password first",
    "encrypted-openpassword.pdf": r"is encrypted; remove the password first",
    "broken-header-only.pdf": r"is damaged or no PDF",
    "broken-five-bytes.pdf": r"is damaged or no PDF",
}
READABLE_BY = [("pypdfium2", name) for name in READABLE | ONLY_PYPDFIUM2] + [("pypdf", name) for name in READABLE]


@pytest.fixture
def pdfs(data: Path) -> Path:
    if not (data / "pdfs").is_dir():
        pytest.skip(skips.DATA)
    return data / "pdfs"


def test_every_file_is_expected_to_be_read_or_refused(pdfs: Path) -> None:
    assert {path.name for path in pdfs.glob("*.pdf")} == {*READABLE, *ONLY_PYPDFIUM2, *REFUSED}


@pytest.mark.parametrize(("engine", "name"), READABLE_BY)
def test_a_real_pdf_is_read_page_by_page(pdfs: Path, engine: str, name: str) -> None:
    extracted = extract(pdfs / name, pdf_engine=engine)
    pages, words = (READABLE | ONLY_PYPDFIUM2)[name]
    starts = [start for start, _ in extracted.places]
    assert len(starts) == pages
    assert starts[0] == 0
    assert starts == sorted(starts)
    assert all(extracted.text[start - 2 : start] == "\n\n" for start in starts[1:] if start < len(extracted.text))
    text = extracted.text if engine == "pypdfium2" else " ".join(extracted.text.split())
    assert [word for word in words if (word if engine == "pypdfium2" else " ".join(word.split())) not in text] == []
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\ufb00-\ufb06\ufffe\uffff]| \n", extracted.text)
    assert not re.search(r"[^\W\d_]-\n[^\W\d_]", extracted.text)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_refused_by_name_and_reason(pdfs: Path, engine: str, name: str) -> None:
    reason = REFUSED[name]
    if (engine, name) == ("pypdf", "encrypted-aes256-password.pdf") and find_spec("cryptography") is None:
        reason = "encrypted in a way that pypdf cannot read here .* use the engine pypdfium2"
    with pytest.raises(ExtractionError, match=reason) as refused:
        extract(pdfs / name, pdf_engine=engine)
    assert name in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("engine", ENGINES)
def test_what_a_pdf_says_about_itself_is_metadata(pdfs: Path, engine: str) -> None:
    assert extract(pdfs / "irs-form-1040nr.pdf", pdf_engine=engine).metadata == {
        "title": "2007 Form 1040NR",
        "description": "U.S. Nonresident Alien Income Tax Return",
        "author": "SE:W:CAR:MP:I:S",
        "date": "2007-12-06",
        "created": "2007-12-06T14:57:01Z",
        "modified": "2007-12-10T13:07:11Z",
        "keywords": ["Fillable"],
    }


@pytest.mark.parametrize(("name", "words"), [("right-to-left.pdf", "تعزز الإنتاجية"), ("arabic.pdf", "حَبيبي habibi")])
def test_right_to_left_page_keeps_the_better_reading(pdfs: Path, name: str, words: str) -> None:
    extracted = extract(pdfs / name)
    assert words in extracted.text
    assert extracted.warnings == (
        "page 1 was read by pypdf, which is better there than pypdfium2 (right-to-left text)",
    )
    assert extract(pdfs / name, pdf_engine="pypdf").warnings == ()


def test_page_labels_are_the_printed_numbers(pdfs: Path) -> None:
    places = extract(pdfs / "german-geometry-book.pdf").places
    assert [place.label for _, place in places[:5]] == ["i", "ii", "iii", "1", "2"]
    assert not any(place.label for _, place in extract(pdfs / "acl-two-column.pdf").places)


def test_split_words_are_read_by_the_other_engine(data: Path) -> None:
    path = data / "office" / "character-spacing.pdf"
    if not path.exists():
        pytest.skip(skips.DATA)
    extracted = extract(path)
    assert "The Metropolis Tower" in extracted.text
    assert extracted.warnings[0].startswith("3 pages (1, 2, 5) were read by pypdf")


def test_page_of_annotations_alone_is_read(data: Path) -> None:
    path = data / "office" / "free-text-annotations.pdf"
    if not path.exists():
        pytest.skip(skips.DATA)
    assert "[Note: Hello World from Acrobat]" in extract(path).text


def test_pypdf_reads_arabic_ligatures_in_order(pdfs: Path) -> None:
    assert "تعزز الإنتاجية" in extract(pdfs / "right-to-left.pdf", pdf_engine="pypdf").text
