"""Read a PDF: pages, form fields and annotations, and doubtful pages with both engines. Runs in the worker process."""

from __future__ import annotations

import re
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from ragistry.readers.blocks import UnreadableFileError, longest_text
from ragistry.readers.pdf_engines import ENGINES, Pdf, PdfPage, inspect_pages
from ragistry.readers.pdf_forms import Field, lines_of, read_fields
from ragistry.readers.pdf_letters import MISSING, faults, is_better, restore
from ragistry.readers.pdf_pages import clean, rejoin, without_running_heads
from ragistry.utils.wording import numbered

_UNMAPPED = re.compile("[\x00\x01\x03-\x08\x0e-\x1f\ufffd\ue000-\uf8ff]")  # 2 is a hyphen of pdfium
_WORD_WITH_MISSING = re.compile(rf"[^\W_]+{MISSING}|{MISSING}[^\W_]")
LONGEST_INFO = 10_000
"""Characters of a title, an author and the like; `extract` keeps fewer."""
XFA_CHARACTERS = 2_000
"""In a file with more text than that, an XFA form has pages of its own besides."""
SHARE_OF_TIME = 0.25
"""Of the time limit of a file, what a second reading of pages and the reading of form fields may each take."""
_PAGE_BREAK = "\f"  # among the characters that `clean` removes


class _TooSlowError(BaseException):
    """The time for a second reading is over. No `Exception`, so that the engine does not catch it."""


def read(data: bytes, engine: str, request: dict[str, Any]) -> dict[str, Any]:
    """Read a PDF with one engine, and pages that show a fault with the other engine too.

    Returns:
        ``pages``: text of each page; ``notes``: ``[page, text]`` of form fields and annotations; ``labels``: number of
        each page as it is printed, empty where that is its number; ``unreadable`` and ``pictured``: pages;
        ``unmapped``: number of characters that fonts do not map; ``xfa``; ``info``; ``title`` on the first page;
        ``replaced``: ``[page, sign]`` of pages of which the reading by the other engine, ``second``, is better;
        ``unchecked``: number of doubtful pages for which there was no time; ``lost``: number of annotations, form
        fields and words with missing letters that were not read.

    Raises:
        UnreadableFileError: The file is damaged, encrypted, or over a limit.
    """
    pdf = ENGINES[engine](data)
    if pdf.pages > request["pages"]:
        raise UnreadableFileError(
            f"has {pdf.pages:,} pages, more than the limit of {request['pages']:,}; split it or raise limits.pages"
        )
    pages, unreadable, unmapped = _pages(pdf, request["characters"], len(data))
    if engine == "pypdfium2":
        annotated = pdf
    else:
        pages, annotated = _annotated(data, pages, pdf)
    texts = [clean(page.text) for page in pages]
    second = next(name for name in ENGINES if name != engine)
    replaced, unchecked = _read_again(data, second, texts, request["seconds"] * SHARE_OF_TIME)
    spots = [{} if number in replaced else page.spots for number, page in enumerate(pages)]
    labels = _labels(annotated, len(texts))
    texts = without_running_heads(restore(texts), spots, labels)
    notes, lost = _notes(data, pages, request["seconds"] * SHARE_OF_TIME)
    lost["glyphs"] = sum(len(_WORD_WITH_MISSING.findall(text)) for text in texts)
    _check_characters(sum(map(len, texts)) + sum(len(text) for _, text in notes), request["characters"])
    texts = [page.strip() for page in rejoin(_PAGE_BREAK.join(texts)).split(_PAGE_BREAK)] if texts else []
    empty = [index for index, page in enumerate(texts) if not page]
    suspicious = empty or sum(map(len, texts)) < XFA_CHARACTERS
    pictured, xfa = inspect_pages(data, empty) if suspicious else ([], False)
    return {
        "pages": texts,
        "notes": notes,
        "labels": labels,
        "unreadable": unreadable,
        "pictured": pictured,
        "unmapped": unmapped,
        "xfa": xfa,
        "info": {key: value[:LONGEST_INFO] for key, value in pdf.info.items()},
        "title": clean(pages[0].title) if pages and 0 not in replaced else "",
        "replaced": [[number + 1, sign] for number, sign in replaced.items()],
        "second": second,
        "unchecked": unchecked,
        "lost": {kind: count for kind, count in lost.items() if count},
    }


def _pages(pdf: Pdf, most: int, size: int) -> tuple[list[PdfPage], list[int], int]:
    """Return the pages, those of them that are unreadable, and the number of characters that fonts do not map."""
    pages, unreadable, characters, unmapped = [], [], 0, 0
    for index in range(pdf.pages):
        page = _page(pdf, index)
        if page is None:
            unreadable.append(index + 1)
            page = PdfPage("", {}, [])
        characters += len(page.text)
        _check_characters(characters, most)
        if characters > longest_text(size):
            raise UnreadableFileError(
                f"draws its text again and again: {characters:,} characters on {numbered(index + 1, 'page[|s]')} from "
                f"{size:,} bytes; print it as a new PDF"
            )
        unmapped += len(_UNMAPPED.findall(page.text))
        pages.append(page)
    return pages, unreadable, unmapped


def _check_characters(characters: int, most: int) -> None:
    if characters > most:
        raise UnreadableFileError(f"has more than {most:,} characters, the limit; split it or raise limits.characters")


def _page(pdf: Pdf, index: int) -> PdfPage | None:
    try:
        return pdf.read(index)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - one damaged page is reported and the others are read
        return None


def _annotated(data: bytes, pages: Sequence[PdfPage], pdf: Pdf) -> tuple[list[PdfPage], Pdf]:
    """Return the pages of pypdf with pdfium's annotations and title, and the source of the page labels."""
    try:
        other = ENGINES["pypdfium2"](data)
    except UnreadableFileError:
        return list(pages), pdf
    found = []
    for index, page in enumerate(pages):
        seen = _page(other, index) if index < other.pages else None
        if seen:
            page = page._replace(annotations=seen.annotations, skipped=seen.skipped, title=seen.title)
        found.append(page)
    return found, other


def _labels(pdf: Pdf, pages: int) -> list[str]:
    """Return the number of each page as it is printed, empty if that is how it is counted; no list if all are."""
    labels = []
    for index in range(pages):
        label = ""
        with suppress(Exception):  # a damaged tree of labels says nothing
            label = pdf.label(index)[:LONGEST_INFO]
        labels.append("" if label == str(index + 1) else label)
    return labels if any(labels) else []


def _read_again(data: bytes, engine: str, texts: list[str], seconds: float) -> tuple[dict[int, str], int]:
    """Read pages with faults by the other engine, and put its reading in place of one that is worse.

    Returns the sign for each page, counted from 0, of which the text was replaced, and the number of pages that were
    not read again because the time was over.
    """
    doubtful = {index: found for index, text in enumerate(texts) if (found := faults(text))}
    if not doubtful:
        return {}, 0
    replaced: dict[int, str] = {}
    done = 0
    with suppress(_TooSlowError, UnreadableFileError, MemoryError), _at_most(seconds) as end:
        pdf = ENGINES[engine](data)
        for index, found in doubtful.items():
            if time.monotonic() > end:
                break
            page = _page(pdf, index) if index < pdf.pages else None
            done += 1
            if page is not None and is_better(texts[index], text := clean(page.text)):
                texts[index] = text
                replaced[index] = max(found, key=lambda fault: fault.times).sign
    return replaced, len(doubtful) - done


@contextmanager
def _at_most(seconds: float) -> Iterator[float]:
    """Raise `_TooSlowError` in the block after some seconds, where the system and the thread allow it."""
    end = time.monotonic() + seconds

    def stop(*_: object) -> None:
        raise _TooSlowError

    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield end
        return
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield end
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _notes(data: bytes, pages: Sequence[PdfPage], seconds: float) -> tuple[list[tuple[int, str]], dict[str, int]]:
    """Return the form fields and annotations of each page with some, and the number of unread ones by kind."""
    widgets = {
        number: needed
        for number, page in enumerate(pages)
        if (needed := [one.number for one in page.annotations if one.kind == "field"])
    }
    fields = _fields(data, widgets, seconds) if widgets else defaultdict(dict)
    notes, seen = [], set[str]()
    for number, page in enumerate(pages):
        if lines := lines_of(page.annotations, None if fields is None else fields[number], seen):
            notes.append((number + 1, "\n".join(lines)))
    unread = [one for page in pages for one in page.annotations if one.kind == "field" and not one.text]
    lost = {"annotations": sum(page.skipped for page in pages), "form fields": len(unread) if fields is None else 0}
    return notes, lost


def _fields(data: bytes, widgets: dict[int, list[int]], seconds: float) -> defaultdict[int, dict[int, Field]] | None:
    """Return the fields of each page by their numbers in the list of annotations; None if that is unreadable."""
    fields: defaultdict[int, dict[int, Field]] = defaultdict(dict)
    try:
        with _at_most(seconds):
            for (page, index), field in read_fields(data, widgets).items():
                fields[page][index] = field
    except (_TooSlowError, MemoryError, Exception):  # noqa: BLE001 - pdfium's own view of the fields is the remedy
        return None
    return fields
