"""Choose the reader of a document by its suffix. Runs in the process of `reader_worker`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import PurePath

from ragistry.errors import ConfigError
from ragistry.plugins import resolve_object
from ragistry.readers import mail
from ragistry.readers.blocks import REPAIR, Block, ReadDocument, UnreadableFileError, reason_of
from ragistry.readers.encoding import UndecodableError, decode, without_commands
from ragistry.readers.formats import FORMATS, WORKER_EXTS, AddedReader
from ragistry.readers.text_files import SAMPLE, is_worth_reading

_FOLD = re.compile(rb"\r?\n[ \t]")
ReadPdf = Callable[[bytes], ReadDocument]


def read_document(data: bytes, name: str, read_pdf: ReadPdf, added: Mapping[str, AddedReader]) -> ReadDocument:
    """Read the bytes of a document.

    Args:
        data: The bytes of the file.
        name: Its name, which ends in its suffix.
        read_pdf: Reads a PDF that is attached to a mail.
        added: Readers of the configuration and of packages by suffix.

    Raises:
        UnreadableFileError: The file is damaged or encrypted.
        KeyError: No reader for this suffix.
    """
    suffix = PurePath(name).suffix.lower()
    if suffix not in WORKER_EXTS and suffix not in added:
        raise KeyError(suffix)
    try:
        if suffix in added:
            return _by_added(added[suffix], data, suffix)
        module = FORMATS[suffix].module
        if module == "mail":
            return mail.read(data, suffix, partial(_attachment, read_pdf=read_pdf, added=added))
        document: ReadDocument = resolve_object(f"ragistry.readers.{module}:read")(data, suffix)
        return document
    except (MemoryError, UndecodableError):
        raise
    except Exception as error:
        reason = (
            str(error) if isinstance(error, UnreadableFileError) else f"cannot be read ({reason_of(error)}); {REPAIR}"
        )
        if suffix in added or FORMATS[suffix].text == "-":
            raise UnreadableFileError(reason) from error
        warning = f"its markup cannot be read ({reason_of(error)}), so it was read as plain text"
        return ReadDocument([Block(decode(data).text)], warnings=[warning])


def _by_added(reader: AddedReader, data: bytes, suffix: str) -> ReadDocument:
    """Read a document with an added reader, which this process imports. Raises `UnreadableFileError`."""
    try:
        read = reader.load()
    except ConfigError as error:
        raise UnreadableFileError(f"has no reader: {error}") from error
    document = read(data, suffix)
    if not isinstance(document, ReadDocument):
        raise UnreadableFileError(
            f"has the reader {reader.name!r}, which returned {document!r:.100}, not a ReadDocument"
        )
    return document


def _attachment(data: bytes, name: str, read_pdf: ReadPdf, added: Mapping[str, AddedReader]) -> ReadDocument:
    suffix = PurePath(name).suffix.lower()
    if suffix == ".pdf" and suffix not in added:
        return read_pdf(data)
    if suffix in WORKER_EXTS or suffix in added or not is_worth_reading(name, data[:SAMPLE], len(data)):
        return read_document(data, name, read_pdf, added)
    if data.startswith(b"BEGIN:V"):  # an invitation or a business card, in folded lines
        data = _FOLD.sub(b"", data).replace(b"\\n", b"\n").replace(b"\\", b"")
    try:
        text = without_commands(decode(data).text)
    except UndecodableError as error:
        raise UnreadableFileError(f"is not a text file: {error}") from error
    return ReadDocument([Block(text.replace("\r\n", "\n"))])
