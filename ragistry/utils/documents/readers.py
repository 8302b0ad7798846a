"""Choose the reader of a document by its suffix. Runs in the process of `reader_worker`."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import PurePath

from kreuzberg import ExtractionConfig, KreuzbergError, extract_bytes_sync

from ragistry.utils.documents import mail
from ragistry.utils.documents.blocks import REPAIR, Block, Place, ReadDocument, UnreadableFileError
from ragistry.utils.documents.encoding import UndecodableError, decode
from ragistry.utils.documents.office_package import NO_PACKAGE

READERS = {
    **dict.fromkeys((".docx", ".docm"), "docx"),
    **dict.fromkeys((".odt", ".odp"), "odf"),
    **dict.fromkeys((".pptx", ".pptm"), "pptx"),
    **dict.fromkeys((".xlsx", ".xlsm", ".ods"), "sheets"),
    **dict.fromkeys((".html", ".htm", ".xhtml"), "html_page"),
    ".epub": "epub",
    ".ipynb": "notebook",
    ".rst": "rst",
}
"""The module with the reader of each suffix; the others are read by kreuzberg, mails by `mail`."""
MAILS = frozenset({".eml", ".msg"})
GENERAL = {".rtf": "application/rtf", ".org": "text/x-org"}
"""The media types of what kreuzberg reads."""
TEXTS = frozenset({".txt", ".md", ".markdown", ".csv", ".tsv", ".json", ".xml", ".yaml", ".yml", ".log"})
"""Suffixes of attachments that are read as they are."""

_PREFIX = re.compile(r"^(?:\w*Error:? ?)+")
ReadPdf = Callable[[bytes], ReadDocument]


def read_document(data: bytes, name: str, read_pdf: ReadPdf) -> ReadDocument:
    """Read the bytes of a document.

    Args:
        data: The bytes of the file.
        name: Its name, which ends in its suffix.
        read_pdf: Reads a PDF that is attached to a mail.

    Raises:
        UnreadableFileError: The file is damaged or encrypted.
        KeyError: No reader for this suffix.
    """
    suffix = PurePath(name).suffix.lower()
    if suffix in READERS:
        read = import_module(f"ragistry.utils.documents.{READERS[suffix]}").read
        document: ReadDocument = read(data, suffix)
        return document
    if suffix in MAILS:
        return mail.read(data, suffix, partial(_attachment, read_pdf=read_pdf))
    if suffix in GENERAL:
        return _general(data, suffix)
    raise KeyError(suffix)


def _attachment(data: bytes, name: str, read_pdf: ReadPdf) -> ReadDocument:
    suffix = PurePath(name).suffix.lower()
    if suffix == ".pdf":
        return read_pdf(data)
    if suffix in TEXTS:
        try:
            text = decode(data).text
        except UndecodableError as error:
            raise UnreadableFileError(f"is not a text file: {error}") from error
        return ReadDocument([Block(text.replace("\r\n", "\n"))])
    return read_document(data, name, read_pdf)


def pages_as_document(pages: list[str], info: dict[str, str]) -> ReadDocument:
    """Return the pages of a PDF as blocks."""
    return ReadDocument([Block(page, Place(page=number)) for number, page in enumerate(pages, 1) if page], info)


def _general(data: bytes, suffix: str) -> ReadDocument:
    """Read a document with kreuzberg. Its cache stays off, since it would keep texts on disk that are deleted later."""
    if suffix == ".rtf" and not data.lstrip().startswith(b"{\\rtf"):
        raise UnreadableFileError(NO_PACKAGE)
    if suffix == ".org":
        data = decode(data).text.encode(errors="replace")
    try:
        config = ExtractionConfig(output_format="markdown", use_cache=False)
        found = extract_bytes_sync(data, GENERAL[suffix], config=config)
    except KreuzbergError as error:
        reason = _PREFIX.sub("", " ".join(str(error).split()))
        if "out of memory" in reason:
            raise MemoryError(reason) from error
        raise UnreadableFileError(f"cannot be read ({reason[:200]}); {REPAIR}") from error
    return ReadDocument([Block(str(found.content))], _described(found.metadata))


def _described(metadata: object) -> dict[str, str]:
    get = metadata.get  # type: ignore[attr-defined]
    keywords = get("keywords")
    return {
        "Title": str(get("title") or get("subject") or ""),
        "Author": ", ".join(get("authors") or []),
        "Created": str(get("created_at") or ""),
        "Keywords": ", ".join(keywords) if isinstance(keywords, list) else "",
    }
