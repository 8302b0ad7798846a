"""Read the text of PDFs, page by page."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ragistry.errors import ConfigError, ExtractionError
from ragistry.readers.blocks import SEPARATOR, Place, with_notes
from ragistry.readers.extracted import FEW, Extracted, ExtractLimits, are_many
from ragistry.readers.formats import TESSERACT as PROGRAM
from ragistry.readers.reader_process import read_in_worker
from ragistry.text.languages import chunk_language
from ragistry.utils.metadata import date_text
from ragistry.utils.wording import agreeing, numbered

PDF_ENGINES = ("pypdfium2", "pypdf")

XFA = "is an XFA form, which only Adobe Reader can show; open it there and print it as PDF"
NOTHING_READ = "OCR found no text either; get a better scan"
PLACEHOLDER = 2_000
"""Maximum length of the text "Please wait…" in a form for Adobe Reader."""
REPAIR = "repair it (qpdf in.pdf out.pdf)"
_LOST_KINDS = {
    "annotations": "annotation[|s] could not be read, because the file has too many; split it",
    "glyphs": "word[|s] lack letters that their fonts do not map; ocrmypdf --redo-ocr helps",
}
_NO_TITLE = re.compile(
    r"(?i)\W*|untitled.*|microsoft (word|powerpoint) - .*|.*\.(docx?|dvi|indd|pdf|pptx?|qxd|tex|wpd)"
    r"|powerpoint presentation|(document|dokument|presentation|layout|slide|title|book|print)[ _-]?\d*"
    r"|(https?|file):\S*|about:blank|[a-z]:\\.*"
)
_DATE = re.compile(r"D:(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?(?:([+-]\d\d)'?(\d\d)?)?")


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
    answer = read_in_worker(path, engine, limits, REPAIR)
    pages, unreadable, pictured = answer["pages"], answer["unreadable"], answer["pictured"]
    if answer["xfa"] and _is_placeholder(" ".join(pages)):
        raise ExtractionError(f"{path!r} {XFA}")
    recognised, failure = _recognised(path, pages, pictured, ocr, limits) if ocr else ([], "")
    silent = [page for page in pictured if not pages[page - 1]]
    pages = with_notes(pages, answer["notes"])
    if not any(pages):
        reason = failure or (NOTHING_READ if ocr else HOW)
        raise ExtractionError(f"{path!r} {_no_text(len(pages), unreadable, pictured, reason)}")
    text, places = _join(pages, answer["labels"])
    unread = [] if ocr and not failure else silent
    unmapped = _unmapped(answer["unmapped"], len(text))
    lost = (
        *_lost(unreadable, unread, failure or HOW),
        *unmapped,
        *_lost_kinds(answer["lost"], text, bool(unmapped)),
    )
    warnings = (
        *lost,
        *_warnings(pages, unreadable, silent, unread, recognised),
        *_second_readings(answer, engine),
    )
    metadata = describe(answer["info"], answer["title"])
    return Extracted(text, path, "pdf", metadata, warnings, lost, answer["digest"], places)


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


def _join(pages: Sequence[str], labels: Sequence[str]) -> tuple[str, tuple[tuple[int, Place], ...]]:
    text, places, offset = SEPARATOR.join(filter(None, pages)), [], 0
    for number, (page, label) in enumerate(zip(pages, labels or [""] * len(pages), strict=True), 1):
        places.append((min(offset, len(text)), Place(page=number, label=label)))
        offset += len(page) + len(SEPARATOR) if page else 0
    return text, tuple(places)


def _lost(unreadable: Sequence[int], unread: Sequence[int], reason: str) -> Iterator[str]:
    """Describe the pages that may have text but could not be read."""
    if unread:
        yield f"{_numbers(unread, 'has|have')} an image or a drawing and no text; {reason}"
    if unreadable:
        yield f"{_numbers(unreadable, 'has|have')} been omitted because of damage; repair the file: qpdf in.pdf out.pdf"


def _unmapped(unmapped: int, characters: int) -> list[str]:
    """Describe a text whose fonts do not map characters to letters."""
    share = unmapped / (unmapped + characters)
    line = f"{share:.0%} of its characters are in fonts that do not map them to letters; ocrmypdf --redo-ocr helps"
    return [line] if share > FEW else []


def _warnings(
    pages: Sequence[str],
    unreadable: Sequence[int],
    silent: Sequence[int],
    unread: Sequence[int],
    recognised: Sequence[int],
) -> Iterator[str]:
    empty = [number for number, page in enumerate(pages, 1) if not page and number not in {*unreadable, *silent}]
    if recognised:
        yield f"{_numbers(recognised, 'was|were')} read by OCR, which may have misread words"
    if silent and not unread:
        yield f"{_numbers(silent, 'has|have')} an image or a drawing in which OCR found no text"
    if empty:
        yield f"{_numbers(empty, 'is|are')} empty"


def _numbers(pages: Sequence[int], verb: str) -> str:
    numbers = ", ".join(map(str, pages[:10])) + (", …" if len(pages) > 10 else "")
    subject = f"page {numbers}" if len(pages) == 1 else f"{len(pages):,} pages ({numbers})"
    return f"{subject} {agreeing(len(pages), f'[{verb}]')}"


def _lost_kinds(lost: Mapping[str, int], text: str, has_unmapped: bool) -> Iterator[str]:
    """Describe each kind of content of which enough is missing in the text."""
    words = len(text.split())
    for kind, count in lost.items():
        if are_many(count, words + count) and not (kind == "glyphs" and has_unmapped):
            yield numbered(count, _LOST_KINDS[kind])


def _second_readings(answer: Mapping[str, Any], engine: str) -> Iterator[str]:
    """Name the pages that the other engine read better, with the sign of the fault."""
    pages: dict[str, list[int]] = {}
    for page, sign in answer["replaced"]:
        pages.setdefault(sign, []).append(page)
    second = answer["second"]
    for sign, numbers in pages.items():
        yield f"{_numbers(numbers, 'was|were')} read by {second}, which is better there than {engine} ({sign})"
    if answer["unchecked"]:
        count = numbered(answer["unchecked"], "page[|s]")
        yield f"there was no time to read {count} with signs of faults by {second} too"


def _iso_date(text: str) -> str:
    """Convert a date of a PDF, such as ``D:20260501120000+02'00'``, to ISO 8601; return other texts unchanged."""
    found = _DATE.match(text)
    if found is None:
        return text
    year, month, day, hour, minute, second, offset, offset_minutes = (part or "" for part in found.groups())
    time = f"T{hour}:{minute or '00'}:{second or '00'}" if hour else ""
    zone = f"{offset}:{offset_minutes or '00'}" if time and offset else ""
    return f"{year}-{month or '01'}-{day or '01'}{time}{zone}"


def describe(info: dict[str, str], title: str = "", subject: str = "description") -> dict[str, Any]:
    """Convert the metadata of a document.

    Args:
        info: The metadata.
        title: Replaces a title that is a file name or a placeholder.
        subject: Key of the subject.
    """
    values = {key: " ".join(re.sub("[\x00-\x1f\ud800-\udfff]", " ", value).split()) for key, value in info.items()}
    created, modified = (
        _iso_date(values.get(of_pdf) or values.get(of_office) or "")
        for of_pdf, of_office in (("CreationDate", "Created"), ("ModDate", "Modified"))
    )
    described = {
        "title": title if _NO_TITLE.fullmatch(values.get("Title", "")) else values["Title"],
        subject: values.get("Subject", ""),
        "author": values.get("Author", ""),
        "date": values.get("Date") or date_text(created[:10]),
        "created": date_text(created) or date_text(created[:10]),
        "modified": date_text(modified) or date_text(modified[:10]),
        "keywords": [word.strip() for word in re.split("[,;]", values.get("Keywords", "")) if word.strip()],
    }
    return {key: value for key, value in described.items() if value}


# --- Pages without text, read with tesseract if it is installed ---


HOW = (
    "to read it, install tesseract (`apt install tesseract-ocr`, `brew install tesseract`), leave the setting "
    "`ocr` at auto, and ingest it again"
)
CODES = {
    "arabic": "ara", "armenian": "hye", "basque": "eus", "burmese": "mya", "catalan": "cat", "chinese": "chi_sim",
    "czech": "ces", "danish": "dan", "dutch": "nld", "english": "eng", "esperanto": "epo", "estonian": "est",
    "finnish": "fin", "french": "fra", "german": "deu", "greek": "ell", "hindi": "hin", "hungarian": "hun",
    "indonesian": "ind", "irish": "gle", "italian": "ita", "japanese": "jpn", "khmer": "khm", "korean": "kor",
    "lao": "lao", "lithuanian": "lit", "nepali": "nep", "norwegian": "nor", "persian": "fas", "polish": "pol",
    "portuguese": "por", "romanian": "ron", "russian": "rus", "serbian": "srp", "spanish": "spa", "swedish": "swe",
    "none": "eng", "sesotho": "eng", "tamil": "tam", "thai": "tha", "turkish": "tur", "yiddish": "yid",
}  # fmt: skip
"""Tesseract's codes of the languages of documents."""


def read_page(path: str, page: int, language: str, limits: ExtractLimits) -> str:
    """Read the text of a PDF page by OCR. The worker that reads PDFs draws the page.

    Args:
        path: Path of the PDF.
        page: Number of the page, from 1.
        language: Language by its name or code; English if it is unknown.
        limits: ``seconds`` limits each of the two steps.

    Raises:
        ExtractionError: The page cannot be read.
    """
    code = CODES[chunk_language({"language": language}, "english")]
    with TemporaryDirectory(prefix="ragistry-") as folder:
        image = str(Path(folder) / "page.pgm")
        read_in_worker(path, "draw", limits, REPAIR, page=page, image=image)
        command = [PROGRAM, image, "stdout", *(["-l", code] if code in _languages() else [])]
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, timeout=limits.seconds, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise ExtractionError(f"{PROGRAM} took longer than {limits.seconds:g} s; raise limits.seconds") from error
        except OSError as error:
            raise ExtractionError(f"{PROGRAM} cannot be run ({error.strerror}); install it again") from error
    if done.returncode:
        text = " ".join(done.stderr.decode(errors="replace").split())
        raise ExtractionError(f"{PROGRAM} failed ({text[:200]}); run it in a terminal")
    return done.stdout.decode(errors="replace").replace("\f", "")


@cache
def _languages() -> frozenset[str]:
    """Return the codes that tesseract has data for; without a code it reads English."""
    try:
        done = subprocess.run([PROGRAM, "--list-langs"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return frozenset()
    return frozenset(done.stdout.split())
