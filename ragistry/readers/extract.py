"""Files to text: plain text in any encoding, Markdown with its front matter, LaTeX, PDF, office documents."""

from __future__ import annotations

import os
import stat
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from ragistry.errors import ExtractionError, SourceError, SourceNotFoundError, UnsupportedFormatError
from ragistry.plugins import resolve_object
from ragistry.readers import front_matter
from ragistry.readers.blocks import Place
from ragistry.readers.encoding import UndecodableError, decode, without_commands
from ragistry.readers.extracted import Extracted, ExtractLimits, read_at_most
from ragistry.readers.formats import FORMATS, MARKDOWN_EXTS, SUPPORTED_FORMATS, Format, added_reader, suffix_of
from ragistry.readers.formats import IMAGE_EXTS as IMAGE_EXTS
from ragistry.readers.formats import TEXT_EXTS as TEXT_EXTS
from ragistry.readers.line_numbers import line_numbers
from ragistry.readers.markdown import outline
from ragistry.readers.text_files import SAMPLE, is_text
from ragistry.utils.metadata import shortened

_READERS = {"worker": "office:read_office", "converted": "office:read_old"}
_UNKNOWN, _ADDED = Format("", "", ""), Format("", "worker", "")
_DEFAULT_LIMITS = ExtractLimits()


def extract(
    path: str | os.PathLike[str],
    *,
    pdf_engine: str = "pypdfium2",
    limits: ExtractLimits = _DEFAULT_LIMITS,
    ocr: str = "",
) -> Extracted:
    """Return the text of a file with newlines ``\\n``, and what the file says about itself.

    A file without text is not an error, unless it is a PDF: ``warnings`` of the result say so.

    Args:
        path: The file.
        pdf_engine: ``"pypdfium2"`` or ``"pypdf"``.
        limits: Limits of size, time and memory.
        ocr: Language of OCR; see `read_pdf`.

    Raises:
        SourceNotFoundError: The file does not exist.
        UnsupportedFormatError: Its suffix is not in `SUPPORTED_FORMATS`, and it is not text.
        ExtractionError: It is damaged, encrypted, binary, or over a limit.
        SourceError: It is a folder or a device, or it must not be read.
    """
    source = os.fspath(path)
    _check(source, limits)
    found = _extracted(source, pdf_engine, limits, ocr)
    # Every chunk carries the metadata, so a title of a megabyte would multiply the document's size.
    metadata, cut = shortened(found.metadata)
    return replace(found, metadata=metadata, warnings=(*found.warnings, *(f"its {phrase}" for phrase in cut)))


def _extracted(source: str, pdf_engine: str, limits: ExtractLimits, ocr: str) -> Extracted:
    suffix = suffix_of(source)
    known = _ADDED if added_reader(suffix) else FORMATS.get(suffix, _UNKNOWN)
    if known.place == "pdf":
        from_pdf: Extracted = _by_name("pdf:read_pdf", source, pdf_engine, limits, ocr)
        return from_pdf
    if known.place in _READERS:
        found: Extracted = _by_name(_READERS[known.place], source, limits)
        if known.text == "lines":
            found = _numbered(found, limits)
        return outlined(found)
    data = _bytes(source, limits)
    if known.place != "here" and (known.place == "unread" or not is_text(data[:SAMPLE])):
        raise _unsupported(source, suffix)
    text, warning = text_of(source, data)
    if suffix in MARKDOWN_EXTS:
        found = markdown(text, source, warning)
    else:
        numbers = range(1, text.count("\n") + 2)
        found = Extracted(text, source, "text", warnings=_warned(text, warning), line_numbers=numbers)
    return replace(found, digest=sha256(data).hexdigest())


def _by_name(spec: str, *arguments: object) -> Any:
    """Call a function of a reader that is imported now: text and Markdown need none."""
    return resolve_object(f"ragistry.readers.{spec}")(*arguments)


def _numbered(found: Extracted, limits: ExtractLimits) -> Extracted:
    """Add the numbers of the lines of a file that is a text."""
    source, _ = text_of(found.source, _bytes(found.source, limits))
    return replace(found, line_numbers=line_numbers(found.text, source))


def extract_text(path: str | os.PathLike[str]) -> str:
    """Return the text of a file; raises what `extract` raises."""
    return extract(path).text


def extract_for_attachment(path: str | os.PathLike[str]) -> dict[str, str]:
    """``{"type": "image" | "text", "name": the file's name, "data": base64 of the image, or the text}``.

    Also takes the suffixes of `IMAGE_EXTS`; raises what `extract` raises.
    """
    source = os.fspath(path)
    name = Path(source).name
    _check(source, _DEFAULT_LIMITS)
    if suffix_of(source) in IMAGE_EXTS:
        return {"type": "image", "name": name, "data": b64encode(_bytes(source, _DEFAULT_LIMITS)).decode("ascii")}
    if suffix_of(source) in MARKDOWN_EXTS:
        with_front_matter, _ = text_of(source, _bytes(source, _DEFAULT_LIMITS))
        return {"type": "text", "name": name, "data": with_front_matter}
    return {"type": "text", "name": name, "data": extract_text(source)}


def _unsupported(source: str, suffix: str) -> UnsupportedFormatError:
    what = f"the suffix {suffix!r}" if suffix else "no suffix"
    return UnsupportedFormatError(
        f"{source!r} has {what} and is not plain text; there are readers for {' '.join(SUPPORTED_FORMATS)}"
    )


def _check(source: str, limits: ExtractLimits) -> None:
    """Refuse what cannot be read to an end, before anything is opened: a pipe would never return."""
    try:
        status = Path(source).stat()
    except FileNotFoundError as error:
        raise SourceNotFoundError(f"no file {source!r}; check the path") from error
    except (OSError, ValueError) as error:
        raise SourceError(f"{source!r} cannot be read: {error}; check the path and its permissions") from error
    if stat.S_ISDIR(status.st_mode):
        raise SourceError(f"{source!r} is a folder; give the files in it one by one")
    if not stat.S_ISREG(status.st_mode):
        raise SourceError(f"{source!r} is a device, pipe or socket; give a regular file")
    if status.st_size > limits.bytes:
        raise _too_large(source, status.st_size, limits)


def _too_large(source: str, size: int, limits: ExtractLimits) -> ExtractionError:
    return ExtractionError(
        f"{source!r} has {size:,} bytes, more than the limit of {limits.bytes:,}; split it or raise limits.megabytes"
    )


def _bytes(source: str, limits: ExtractLimits) -> bytes:
    try:
        data = read_at_most(source, int(limits.bytes))
    except OSError as error:
        raise SourceError(f"{source!r} cannot be read: {error.strerror}; check its permissions") from error
    if len(data) > limits.bytes:  # it grows, or has another size than its file system says
        raise _too_large(source, len(data), limits)
    return data


def text_of(source: str, data: bytes) -> tuple[str, str]:
    """Return the text of a file that is not a PDF, newlines ``\\n``, and what was uncertain about its encoding."""
    try:
        decoded = decode(data)
    except UndecodableError as error:
        raise ExtractionError(f"{source!r} is not a text file: {error}") from error
    return without_commands(decoded.text).replace("\r\n", "\n").replace("\r", "\n"), decoded.warning


def markdown(text: str, source: str, warning: str, clean: Callable[[str], str] | None = None) -> Extracted:
    """Return a Markdown text without its front matter, and the metadata in it. ``clean``: removes marks from it."""
    metadata, body, malformed = front_matter.split(text)
    first = text.count("\n") - body.count("\n")
    numbers: Sequence[int] = range(first + 1, text.count("\n") + 2)
    if clean is not None:
        written, body = body, clean(body)
        numbers = [first + number for number in line_numbers(body, written)]
    if not body.strip():
        body, numbers = metadata.get("title", ""), range(1, 2)  # a page that is only a name can still be found by it
    warnings = _warned(body, warning, malformed)
    return outlined(Extracted(body, source, "markdown", metadata=metadata, warnings=warnings, line_numbers=numbers))


def outlined(found: Extracted) -> Extracted:
    """Add the outline of a Markdown text, and the first heading of level 1 as title if there is no other."""
    sketch = outline(found.text, _heading_breaks(found.places))
    title = found.metadata.get("title") or next((s.title for s in sketch.sections if s.level == 1 and s.title), "")
    return replace(found, metadata={"title": title, **found.metadata} if title else found.metadata, outline=sketch)


def _heading_breaks(places: Sequence[tuple[int, Place]]) -> list[int]:
    """Return the offsets at which another slide, sheet, chapter or part begins, to which no earlier heading applies."""
    breaks, last = [], None
    for offset, place in places:
        current = (None if place.part else place.page, place.sheet, place.chapter, place.part)
        if current != last and last is not None:
            breaks.append(offset)
        last = current
    return sorted(set(breaks))


def _warned(text: str, *warnings: str) -> tuple[str, ...]:
    empty = "" if text.strip() else "the document is empty: it has no text to search"
    return tuple(filter(None, (*warnings, empty)))
