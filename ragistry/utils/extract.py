"""Files to text: plain text in any encoding, Markdown with its front matter, LaTeX, PDF, office documents."""

from __future__ import annotations

import os
import re
import stat
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from ragistry.errors import ExtractionError, SourceError, SourceNotFoundError, UnsupportedFormatError
from ragistry.utils import front_matter
from ragistry.utils.encoding import decode
from ragistry.utils.extracted import Extracted, ExtractLimits
from ragistry.utils.office import OFFICE_EXTS, read_office
from ragistry.utils.pdf import read_pdf
from ragistry.utils.reader_process import read_in_worker
from ragistry.utils.tex import TEX_EXTS

MARKDOWN_EXTS = frozenset({".md", ".markdown"})
TEXT_EXTS = MARKDOWN_EXTS | frozenset(
    {
        *(".txt", ".csv", ".tsv", ".yaml", ".yml", ".toml", ".json", ".jsonl", ".xml", ".sql", ".sh"),
        *(".py", ".js", ".jsx", ".ts", ".tsx", ".c", ".cc", ".cpp", ".h", ".hpp", ".cs", ".go", ".java", ".kt"),
        *(".php", ".r", ".rb", ".rs", ".scala", ".swift"),
    }
)
IMAGE_EXTS = frozenset({".jpg", ".jpeg", ".png", ".gif", ".webp"})
SUPPORTED_FORMATS = tuple(sorted({*TEXT_EXTS, *TEX_EXTS, *OFFICE_EXTS, ".pdf"}))
"""Suffixes of the files that `extract` reads, in any case."""

_FENCE = re.compile(r" {0,3}(```|~~~)")
_HEADING = re.compile(r" {0,3}#[ \t]+(.*?)[ \t]*(?:[ \t]#+)?")
_DEFAULT_LIMITS = ExtractLimits()


def extract(
    path: str | os.PathLike[str],
    *,
    pdf_engine: str = "pypdfium2",
    limits: ExtractLimits = _DEFAULT_LIMITS,
    ocr: str = "",
    on_read: Callable[[bytes], object] = lambda _: None,
) -> Extracted:
    """The text of a file with newlines ``\\n``, and what the file says about itself.

    ``pdf_engine``: ``"pypdfium2"`` or ``"pypdf"``. ``ocr``: see `read_pdf`. ``on_read``: called with the bytes of the
    file, unless another process reads it. A file without text is no error, unless it is a PDF: the result's
    ``warnings`` say so. Raises `SourceNotFoundError`, `UnsupportedFormatError` (suffix not in `SUPPORTED_FORMATS`),
    `SourceError` (a folder, a device, no permission) and `ExtractionError` (damaged, encrypted, binary, over a limit).
    """
    source = os.fspath(path)
    _check(source, limits)
    suffix = _suffix(source, SUPPORTED_FORMATS)
    if suffix == ".pdf":
        return read_pdf(source, pdf_engine, limits, ocr)
    if suffix in OFFICE_EXTS:
        found = read_office(source, limits)
        title = found.metadata.get("title") or _first_heading(found.text)
        return replace(found, metadata={"title": title, **found.metadata}) if title else found
    if suffix in TEX_EXTS:
        answer = read_in_worker(source, "tex", limits, "correct it")
        warnings = _warned(answer["text"], answer["warning"])
        return Extracted(answer["text"], source, "markdown", metadata=answer["metadata"], warnings=warnings)
    data = _bytes(source)
    on_read(data)
    text, warning = _text(source, data)
    if suffix in MARKDOWN_EXTS:
        return _markdown(text, source, warning)
    return Extracted(text, source, "text", warnings=_warned(text, warning))


def extract_text(path: str | os.PathLike[str]) -> str:
    """The text of a file; raises what `extract` raises."""
    return extract(path).text


def extract_for_attachment(path: str | os.PathLike[str]) -> dict[str, str]:
    """``{"type": "image" | "text", "name": the file's name, "data": base64 of the image, or the text}``.

    Takes the suffixes of `IMAGE_EXTS` beside those of `extract`; raises what `extract` raises.
    """
    source = os.fspath(path)
    name = Path(source).name
    _check(source, _DEFAULT_LIMITS)
    if _suffix(source, (*SUPPORTED_FORMATS, *sorted(IMAGE_EXTS))) in IMAGE_EXTS:
        return {"type": "image", "name": name, "data": b64encode(_bytes(source)).decode("ascii")}
    if Path(source).suffix.lower() in MARKDOWN_EXTS:
        return {"type": "text", "name": name, "data": _text(source, _bytes(source))[0]}  # with its front matter
    return {"type": "text", "name": name, "data": extract_text(source)}


def _suffix(source: str, allowed: Sequence[str]) -> str:
    suffix = Path(source).suffix.lower()
    if suffix not in allowed:
        what = f"the suffix {suffix!r}" if suffix else "no suffix"
        raise UnsupportedFormatError(f"{source!r} has {what}; there are readers for {' '.join(allowed)}")
    return suffix


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
        raise ExtractionError(
            f"{source!r} has {status.st_size:,} bytes, more than the limit of {limits.bytes:,}; "
            "split it or raise limits.megabytes"
        )


def _bytes(source: str) -> bytes:
    try:
        return Path(source).read_bytes()
    except OSError as error:
        raise SourceError(f"{source!r} cannot be read: {error.strerror}; check its permissions") from error


def _text(source: str, data: bytes) -> tuple[str, str]:
    """The text of a file that is no PDF, newlines ``\\n``, and what was uncertain about its encoding."""
    try:
        decoded = decode(data)
    except ValueError as error:
        raise ExtractionError(f"{source!r} is not a text file: {error}") from error
    return decoded.text.replace("\r\n", "\n").replace("\r", "\n"), decoded.warning


def _markdown(text: str, source: str, warning: str) -> Extracted:
    metadata, body, malformed = front_matter.split(text)
    title = metadata.get("title") or _first_heading(body)
    metadata = {"title": title, **metadata} if title else metadata
    if not body.strip():
        body = metadata.get("title", "")  # a page that is only a name can still be found by it
    return Extracted(body, source, "markdown", metadata=metadata, warnings=_warned(body, warning, malformed))


def _first_heading(body: str) -> str:
    """The text of the first heading of level 1 that is not inside fenced code; empty where there is none."""
    fence = ""
    for line in body.split("\n"):
        opened = _FENCE.match(line)
        if opened and fence in ("", opened[1]):
            fence = "" if fence else opened[1]
        elif not fence and (heading := _HEADING.fullmatch(line)):
            return heading[1]
    return ""


def _warned(text: str, *warnings: str) -> tuple[str, ...]:
    empty = "" if text.strip() else "the document is empty: there is nothing to search in it"
    return tuple(filter(None, (*warnings, empty)))
