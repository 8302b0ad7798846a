"""The title of a PDF is its metadata, or the largest lines of the first page, if they look like a title."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragistry.readers.extract import extract
from tests.readers.raw_pdf import CATALOG, FONT, ONE_PAGE, page, raw_pdf, stream

BODY = [(11, "Salt softens the water of a dishwasher, and rinse aid"), (11, "dries the glasses that stand in it.")] * 3
UP = "1 0 0 1"
LEFT = "0 1 -1 0"
"""Text that runs upwards, as the stamp of arXiv does, or on a page that is shown turned by 90 degrees."""


def pdf(lines: list[tuple[int, str]], *, first: str = "", rotate: int = 0, top: int = 720, **about: str) -> bytes:
    """A page with lines of these sizes, one below the other; ``first`` is drawn before them."""
    turned, shown, across, down = LEFT if rotate == 90 else UP, [first], 0 if rotate == 90 else 72, top
    for size, text in lines:
        place = f"{612 - down} 72" if rotate == 90 else f"{across} {down}"
        shown.append(f"BT /F1 {size} Tf {turned} {place} Tm ({text}) Tj ET")
        down -= int(1.3 * max(size, 18))
    one = page().replace(b"/Type /Page ", b"/Type /Page /Rotate %d " % rotate, 1)
    info = " ".join(f"/{key} ({value})" for key, value in about.items())
    objects = (CATALOG, ONE_PAGE, one, stream("\n".join(shown).encode("cp1252")), FONT, f"<< {info} >>".encode())
    return raw_pdf(*objects, trailer=b"/Info 6 0 R")


def title(tmp_path: Path, data: bytes, engine: str = "pypdfium2") -> str:
    path = tmp_path / "scan0001.pdf"
    path.write_bytes(data)
    return str(extract(path, pdf_engine=engine).metadata.get("title", ""))


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([(20, "Care of dishwashers"), *BODY], "Care of dishwashers"),
        ([(20, "Care of dishwashers"), (20, "and glasses"), *BODY], "Care of dishwashers and glasses"),
        ([(9, "Drysdale, 2024"), (20, "Care of dishwashers"), (14, "A guide"), *BODY], "Care of dishwashers"),
        ([(40, "7"), (30, "+ |"), (20, "Care of dishwashers"), *BODY], "Care of dishwashers"),
        ([(11, "Care of dishwashers"), *BODY], ""),
        ([(20, "Salt softens the water."), *BODY], ""),
        ([(9, "MONTH TOTAL AMOUNT"), *[(7, "January 4,410 8,102 and more")] * 8], ""),
        ([(16, "Salt"), *BODY, (16, "Rinse aid"), *BODY, (16, "Tablets"), *BODY], ""),
        ([*BODY * 4, (20, "Thank you for reading")], ""),
        ([(20, "Long words " * 20), *BODY], ""),
    ],
)  # fmt: skip
def test_the_largest_lines_are_the_title_if_they_look_like_one(
    tmp_path: Path, lines: list[tuple[int, str]], expected: str
) -> None:
    assert title(tmp_path, pdf(lines)) == expected


def test_a_stamp_at_the_side_is_no_title_and_a_turned_page_has_one(tmp_path: Path) -> None:
    lines = [(20, "Care of dishwashers"), *BODY]
    stamp = f"BT /F1 30 Tf {LEFT} 30 200 Tm (arXiv:2602.01234v1 [cs.CL] 26 Feb 2026) Tj ET"
    assert title(tmp_path, pdf(lines, first=stamp)) == "Care of dishwashers"
    assert title(tmp_path, pdf(lines, rotate=90, top=560)) == "Care of dishwashers"


@pytest.mark.parametrize(
    "known",
    ["", "Microsoft Word - draft.docx", "PowerPoint Presentation", "Document1", "https://example.org/a", "Slide 1"],
)
def test_metadata_that_say_nothing_leave_the_title_to_the_page(tmp_path: Path, known: str) -> None:
    lines = [(20, "Care of dishwashers"), *BODY]
    assert title(tmp_path, pdf(lines, Title=known)) == "Care of dishwashers"
    assert title(tmp_path, pdf(lines, Title="Marlow 1200")) == "Marlow 1200"


def test_both_engines_find_the_same_title(tmp_path: Path) -> None:
    assert title(tmp_path, pdf([(20, "Care of dishwashers"), *BODY]), "pypdf") == "Care of dishwashers"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("acl-two-column", "An Evaluation Dataset for Intent Classification and Out-of-Scope Prediction"),
        ("arxiv-two-column-long", "MTRAG-UN: A Benchmark for Open Challenges in Multi-Turn RAG Conversations"),
        ("nics-wide-table", "NICS Firearm Background Checks"),
        ("senate-expenditures", None),
        ("attachment", None),
        ("german-geometry-book", "Geometrie und Topologie"),
    ],
)
def test_titles_of_real_files(data: Path, name: str, expected: str | None) -> None:
    assert extract(data / "pdfs" / f"{name}.pdf").metadata.get("title") == expected
