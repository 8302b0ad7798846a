"""PDF to text, page by page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ragistry.errors import ConfigError, ExtractionError
from ragistry.utils.extracted import Extracted, ExtractLimits
from ragistry.utils.reader_process import read_in_worker

PDF_ENGINES = ("pypdfium2", "pypdf")

_PAGE_SEPARATOR = "\n\n"
_NO_TITLE = re.compile(
    r"(?i)\W*|untitled.*|microsoft (word|powerpoint) - .*|.*\.(docx?|dvi|indd|pdf|pptx?|qxd|tex|wpd)"
)
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_RIGHT_TO_LEFT_SHARE = 0.3
_DATE = re.compile(r"D:(\d{4})(\d\d)(\d\d)")


def read_pdf(path: str, engine: str, limits: ExtractLimits) -> Extracted:
    """The text of a PDF, pages two newlines apart, words that line ends had hyphenated in one piece.

    Raises `ExtractionError` for a file that is broken, encrypted, over a limit or without any text, and `ConfigError`
    for an unknown engine.
    """
    if engine not in PDF_ENGINES:
        raise ConfigError(f"unknown pdf_engine {engine!r}; there are {', '.join(PDF_ENGINES)}")
    answer = read_in_worker(path, engine, limits, "repair it (qpdf in.pdf out.pdf)")
    pages = answer["pages"]
    if not any(pages):
        raise ExtractionError(f"{path!r} {_no_text(len(pages), answer['unreadable'])}")
    text, page_starts = _join(pages)
    warnings = _warnings(pages, answer["unreadable"]) + _right_to_left(text, engine)
    return Extracted(text, path, "pdf", page_starts, describe(answer["info"]), warnings)


def _no_text(pages: int, unreadable: Sequence[int]) -> str:
    if pages == 0 or unreadable:
        return f"has no page that can be read, of {pages:,}; repair it: qpdf in.pdf out.pdf"
    scanned = "1 scanned page" if pages == 1 else f"{pages:,} scanned pages"
    return f"has no text layer ({scanned}?); run OCR first: ocrmypdf in.pdf out.pdf"


def _join(pages: Sequence[str]) -> tuple[str, tuple[int, ...]]:
    starts, offset = [], 0
    for page in pages:
        starts.append(offset)
        offset += len(page) + len(_PAGE_SEPARATOR) if page else 0
    text = _PAGE_SEPARATOR.join(filter(None, pages))
    return text, tuple(min(start, len(text)) for start in starts)


def _warnings(pages: Sequence[str], unreadable: Sequence[int]) -> tuple[str, ...]:
    empty = [number for number, page in enumerate(pages, 1) if not page and number not in set(unreadable)]
    warnings = []
    if empty:
        warnings.append(f"{_numbers(empty)} no text (scanned?); run OCR to have it searched: ocrmypdf in.pdf out.pdf")
    if unreadable:
        warnings.append(f"{_numbers(unreadable)} been left out, damaged; repair the file: qpdf in.pdf out.pdf")
    return tuple(warnings)


def _numbers(pages: Sequence[int]) -> str:
    listed = ", ".join(map(str, pages[:10])) + (", …" if len(pages) > 10 else "")
    return f"page {listed} has" if len(pages) == 1 else f"{len(pages):,} pages ({listed}) have"


def _right_to_left(text: str, engine: str) -> tuple[str, ...]:
    start = text[:10_000]
    if engine == "pypdf" or len(_RIGHT_TO_LEFT.findall(start)) < _RIGHT_TO_LEFT_SHARE * len(start):
        return ()
    return ("the text runs from right to left, where pypdfium2 swaps letters; pypdf reads it better (pdf_engine)",)


def describe(info: dict[str, str]) -> dict[str, Any]:
    """Metadata from what a PDF says about itself; a title that is a file's name or a program's filler is none."""
    given = {key: " ".join(re.sub("[\x00-\x1f\ud800-\udfff]", " ", value).split()) for key, value in info.items()}
    date = _DATE.match(given.get("CreationDate", ""))
    described = {
        "title": "" if _NO_TITLE.fullmatch(given.get("Title", "")) else given["Title"],
        "description": given.get("Subject", ""),
        "author": given.get("Author", ""),
        "date": "-".join(date.groups()) if date else "",
        "keywords": [word.strip() for word in re.split("[,;]", given.get("Keywords", "")) if word.strip()],
    }
    return {key: value for key, value in described.items() if value}
