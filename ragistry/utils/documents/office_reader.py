"""Read office documents, books, web pages, mails and notebooks as Markdown, in the process of `reader_worker`.

kreuzberg parses them. Its cache is off, because it would keep texts on disk that are deleted later.
"""

from __future__ import annotations

import re
from collections import Counter
from html import unescape
from pathlib import PurePath
from typing import Any

from kreuzberg import ExtractionConfig, KreuzbergError, PageConfig, extract_bytes_sync
from kreuzberg import detect_mime_type_from_path as mime_type_of

from ragistry.utils.documents.encoding import decode
from ragistry.utils.documents.mail import read_mail
from ragistry.utils.documents.notebook import read_notebook
from ragistry.utils.documents.office import REPAIR
from ragistry.utils.documents.pdf_engines import UnreadableFileError

HTML = {".html", ".htm", ".xhtml"}
SLIDES = {".pptx", ".pptm"}
PLAIN = {".rst", ".org"}

_HEAD = re.compile(r"<head\b.*?</head\s*>|<!--.*?-->", re.DOTALL | re.IGNORECASE)
_TITLE = re.compile(r"<title\b[^>]*>(.*?)</title", re.DOTALL | re.IGNORECASE)
_SLIDE = re.compile("\ue0f1\\d+\ue0f1\\s*")
_SLIDE_MARK = "\ue0f1{page_num}\ue0f1"
_WORD = re.compile(r"\w+")
_PREFIX = re.compile(r"^(?:\w*Error:? ?)+")
_NO_METADATA = {"Title": "", "Author": "", "Date": "", "Keywords": ""}


def read(data: bytes, path: str) -> dict[str, Any]:
    """Read a document.

    Returns:
        ``{"text", "page_starts", "info", "words", "missing"}``: Markdown; the start of each slide; metadata; number of
        words in the plain text of the document, and how many of these are not in the Markdown.

    Raises:
        UnreadableFileError: The file cannot be read.
    """
    suffix = PurePath(path).suffix.lower()
    if suffix == ".ipynb":
        return _answer(_notebook(data), [], _NO_METADATA, "")
    if suffix == ".eml":
        return _mail(data)
    if suffix == ".rtf" and not data.lstrip().startswith(b"{\\rtf"):
        raise UnreadableFileError(f"is not RTF; {REPAIR}")
    if suffix in PLAIN:
        data = decode(data).text.encode(errors="replace")
    title, mime = "", "text/html" if suffix in HTML else mime_type_of(path)
    if suffix in HTML:
        page = decode(data).text
        found = _TITLE.search(page)
        title = unescape(found[1]) if found else ""
        data = _without_head(page)
    try:
        plain = _extracted(data, mime, "plain", slides=suffix in SLIDES)
        if suffix in SLIDES:
            text, page_starts = _slides(plain.content)
            return _answer(text, page_starts, _described(plain.metadata, title), "")
        found = _extracted(data, mime, "markdown")
    except KreuzbergError as error:
        reason = _PREFIX.sub("", " ".join(str(error).split()))
        if "out of memory" in reason:
            raise MemoryError(reason) from error
        raise UnreadableFileError(f"cannot be read ({reason[:200]}); {REPAIR}") from error
    return _answer(found.content, [], _described(found.metadata, title), plain.content)


def _notebook(data: bytes) -> str:
    try:
        return read_notebook(decode(data).text)
    except ValueError as error:
        raise UnreadableFileError(f"cannot be read ({error}); {REPAIR}") from error


def _mail(data: bytes) -> dict[str, Any]:
    def from_html(page: str) -> str:
        return str(_extracted(_without_head(page), "text/html", "markdown").content)

    try:
        mail = read_mail(data, from_html)
    except (ValueError, KreuzbergError) as error:
        raise UnreadableFileError(f"cannot be read ({error}); {REPAIR}") from error
    described = {"Title": mail.title, "Author": mail.author, "Date": mail.date, "Keywords": ""}
    return _answer(mail.text, [], described, "") | {"attachments": mail.attachments}


def _without_head(page: str) -> bytes:
    """Remove the head of an HTML page, which kreuzberg would add as a block."""
    return _HEAD.sub("", page).encode(errors="replace")


def _extracted(data: bytes, mime: str, form: str, *, slides: bool = False) -> Any:
    pages = PageConfig(insert_page_markers=True, marker_format=_SLIDE_MARK) if slides else None
    return extract_bytes_sync(data, mime, config=ExtractionConfig(output_format=form, pages=pages, use_cache=False))


def _slides(content: str) -> tuple[str, list[int]]:
    """Return the text, with the first line of each slide as a heading, and the start of each slide."""
    text, starts = "", []
    for slide in _SLIDE.split(content)[1:] or [content]:
        starts.append(len(text))
        title, _, rest = slide.strip().partition("\n")
        if title:
            text += f"## {title}\n{rest}\n\n"
    return text.rstrip(), starts


def _described(metadata: Any, title: str) -> dict[str, Any]:
    values = {key: metadata.get(key) for key in ("title", "subject", "authors", "from_email", "created_at", "keywords")}
    return {
        "Title": title or values["title"] or values["subject"] or "",
        "Author": ", ".join(values["authors"] or []) or values["from_email"] or "",
        "Date": str(values["created_at"] or ""),
        "Keywords": ", ".join(values["keywords"] or []) if isinstance(values["keywords"], list) else "",
    }


def _answer(text: str, page_starts: list[int], metadata: dict[str, Any], plain: str) -> dict[str, Any]:
    wanted = Counter(_WORD.findall(plain))
    missing = (wanted - Counter(_WORD.findall(text))).total()
    info = {"text": text, "page_starts": page_starts, "info": metadata}
    return info | {"words": wanted.total(), "missing": missing}
