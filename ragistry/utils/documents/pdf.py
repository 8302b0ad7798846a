"""Read the text of PDFs, page by page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ragistry.errors import ConfigError, ExtractionError
from ragistry.utils.documents.extracted import FEW, Extracted, ExtractLimits
from ragistry.utils.documents.ocr import HOW, read_page
from ragistry.utils.documents.reader_process import read_in_worker
from ragistry.utils.wording import agreeing, numbered

PDF_ENGINES = ("pypdfium2", "pypdf")

XFA = "is an XFA form, which only Adobe Reader can show; open it there and print it as PDF"
NOTHING_READ = "OCR found no text either; get a better scan"
PLACEHOLDER = 2_000
"""Maximum length of the text "Please wait…" in a form for Adobe Reader."""
_PAGE_SEPARATOR = "\n\n"
_NO_TITLE = re.compile(
    r"(?i)\W*|untitled.*|microsoft (word|powerpoint) - .*|.*\.(docx?|dvi|indd|pdf|pptx?|qxd|tex|wpd)"
)
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_RIGHT_TO_LEFT_SHARE = 0.3
_DATE = re.compile(r"D:(\d{4})(\d\d)(\d\d)")


def read_pdf(path: str, engine: str, limits: ExtractLimits, ocr: str = "") -> Extracted:
    """Read the text of a PDF, with two newlines between pages; words hyphenated at line ends are rejoined.

    Args:
        path: Path of the PDF.
        engine: One of `PDF_ENGINES`.
        limits: Limits of size and time.
        ocr: Language in which tesseract reads pages with an image or a drawing and no text; empty for no OCR.

    Raises:
        ExtractionError: The file is damaged, encrypted, over a limit, or has no text.
        ConfigError: The engine is unknown.
    """
    if engine not in PDF_ENGINES:
        raise ConfigError(f"unknown pdf_engine {engine!r}; use {' or '.join(PDF_ENGINES)}")
    answer = read_in_worker(path, engine, limits, "repair it (qpdf in.pdf out.pdf)")
    pages, unreadable, pictured = answer["pages"], answer["unreadable"], answer["pictured"]
    if answer["xfa"] and _is_placeholder(" ".join(pages)):
        raise ExtractionError(f"{path!r} {XFA}")
    recognised, failure = _recognised(path, pages, pictured, ocr, limits) if ocr else ([], "")
    if not any(pages):
        reason = failure or (NOTHING_READ if ocr else HOW)
        raise ExtractionError(f"{path!r} {_no_text(len(pages), unreadable, pictured, reason)}")
    text, page_starts = _join(pages)
    silent = [page for page in pictured if not pages[page - 1]]
    unread = [] if ocr and not failure else silent
    lost = _lost(unreadable, unread, failure or HOW) + _unmapped(answer["unmapped"], len(text))
    warnings = lost + _warnings(pages, unreadable, silent, unread, recognised) + _right_to_left(text, engine)
    return Extracted(text, path, "pdf", page_starts, describe(answer["info"]), warnings, lost, answer["digest"])


def _is_placeholder(text: str) -> bool:
    """Return whether this is the placeholder text of an XFA form, or empty."""
    return not text.strip() or ("Adobe" in text and len(text) < PLACEHOLDER)


def _recognised(
    path: str, pages: list[str], pictured: Sequence[int], language: str, limits: ExtractLimits
) -> tuple[list[int], str]:
    """Add text of OCR to the pages. Return the pages that it read, and why it did not read all."""
    read: list[int] = []
    for page in pictured:
        try:
            text = read_page(path, page, language, limits).strip()
        except ExtractionError as error:
            return read, f"page {page}: {error}"
        if text:
            pages[page - 1] = text
            read.append(page)
    return read, ""


def _no_text(pages: int, unreadable: Sequence[int], pictured: Sequence[int], reason: str) -> str:
    if pages == 0 or unreadable:
        return f"has no readable page, of {pages:,}; repair it: qpdf in.pdf out.pdf"
    if pictured:
        return f"has no text layer ({numbered(len(pictured), 'scanned or drawn page[|s]')}); {reason}"
    return f"is empty: nothing is on its {numbered(pages, 'page[|s]')}; get the file again"


def _join(pages: Sequence[str]) -> tuple[str, tuple[int, ...]]:
    starts, offset = [], 0
    for page in pages:
        starts.append(offset)
        offset += len(page) + len(_PAGE_SEPARATOR) if page else 0
    text = _PAGE_SEPARATOR.join(filter(None, pages))
    return text, tuple(min(start, len(text)) for start in starts)


def _lost(unreadable: Sequence[int], unread: Sequence[int], reason: str) -> tuple[str, ...]:
    """Describe the pages that may have text but could not be read."""
    lines = []
    if unread:
        lines.append(f"{_numbers(unread, 'has|have')} an image or a drawing and no text; {reason}")
    if unreadable:
        lines.append(
            f"{_numbers(unreadable, 'has|have')} been omitted because of damage; repair the file: qpdf in.pdf out.pdf"
        )
    return tuple(lines)


def _unmapped(unmapped: int, characters: int) -> tuple[str, ...]:
    """Describe a text whose fonts do not map characters to letters."""
    share = unmapped / (unmapped + characters)
    if share <= FEW:
        return ()
    return (f"{share:.0%} of its characters are in fonts that do not map them to letters; ocrmypdf --redo-ocr helps",)


def _warnings(
    pages: Sequence[str],
    unreadable: Sequence[int],
    silent: Sequence[int],
    unread: Sequence[int],
    recognised: Sequence[int],
) -> tuple[str, ...]:
    empty = [number for number, page in enumerate(pages, 1) if not page and number not in {*unreadable, *silent}]
    warnings = []
    if recognised:
        warnings.append(f"{_numbers(recognised, 'was|were')} read by OCR, which may have misread words")
    if silent and not unread:
        warnings.append(f"{_numbers(silent, 'has|have')} an image or a drawing in which OCR found no text")
    if empty:
        warnings.append(f"{_numbers(empty, 'is|are')} empty")
    return tuple(warnings)


def _numbers(pages: Sequence[int], verb: str) -> str:
    numbers = ", ".join(map(str, pages[:10])) + (", …" if len(pages) > 10 else "")
    subject = f"page {numbers}" if len(pages) == 1 else f"{len(pages):,} pages ({numbers})"
    return f"{subject} {agreeing(len(pages), f'[{verb}]')}"


def _right_to_left(text: str, engine: str) -> tuple[str, ...]:
    start = text[:10_000]
    if engine == "pypdf" or len(_RIGHT_TO_LEFT.findall(start)) < _RIGHT_TO_LEFT_SHARE * len(start):
        return ()
    return ("the text runs from right to left, for which pypdfium2 swaps letters; set pdf_engine: pypdf",)


def describe(info: dict[str, str]) -> dict[str, Any]:
    """Convert the metadata of a PDF; a title that is a file name or a placeholder is omitted."""
    values = {key: " ".join(re.sub("[\x00-\x1f\ud800-\udfff]", " ", value).split()) for key, value in info.items()}
    date = _DATE.match(values.get("CreationDate", ""))
    described = {
        "title": "" if _NO_TITLE.fullmatch(values.get("Title", "")) else values["Title"],
        "description": values.get("Subject", ""),
        "author": values.get("Author", ""),
        "date": "-".join(date.groups()) if date else "",
        "keywords": [word.strip() for word in re.split("[,;]", values.get("Keywords", "")) if word.strip()],
    }
    return {key: value for key, value in described.items() if value}
