"""Suffixes of the file formats that can be read, and the programs that some of them need."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ragistry.errors import ConfigError
from ragistry.plugins import READERS, digest_of, find_offer, find_part, modules_of, offers
from ragistry.readers.blocks import ReadDocument

_TABLE = """
text       here      lines  .txt .csv .tsv .yaml .yml .toml .json .jsonl .xml .sql .sh .py .js .jsx .ts .tsx .c .cc .cpp
text       here      lines  .h .hpp .cs .go .java .kt .php .r .rb .rs .scala .swift
markdown   here      lines  .md .markdown
pdf        pdf       -      .pdf
tex        worker    lines  .tex .latex
rst        worker    lines  .rst
org        worker    lines  .org
html_page  worker    markup .html .htm .xhtml .xht .shtml
notebook   worker    markup .ipynb
rtf        worker    markup .rtf
docx       worker    -      .docx .docm .dotx .dotm
pptx       worker    -      .pptx .pptm .ppsx .ppsm .potx .potm
sheets     worker    -      .xlsx .xlsm .xltx .xltm
old_sheets worker    -      .xls .xlt .xlsb
odf        worker    -      .odt .ott .odm .odp .otp
ods        worker    -      .ods .ots
mail       worker    -      .eml .msg .oft .mht .mhtml
epub       worker    -      .epub
docx       converted -      .doc .dot
pptx       converted -      .ppt .pps .pot
-          unread    -      .pages .wpd .numbers .azw3 .chm .djvu .mobi .mbox
"""


class Format(NamedTuple):
    """How files with a suffix are read.

    Attributes:
        module: Module with their reader, a function ``read``; text and Markdown have none.
        place: Where it runs: ``here``, in this process; ``worker``, in the process of `reader_worker`; ``pdf``, in
            both; ``converted``, in the worker after LibreOffice has converted the file, if it is installed; ``unread``.
        text: ``lines`` for texts of which lines can be named, ``markup`` for other texts. What the reader of a text
            cannot read is read as plain text.
    """

    module: str
    place: str
    text: str


FORMATS = {
    suffix: Format(module, place, text)
    for module, place, text, *suffixes in map(str.split, _TABLE.strip().splitlines())
    for suffix in suffixes
}
"""All known formats by suffix."""


def _suffixes(*places: str) -> frozenset[str]:
    return frozenset(suffix for suffix, one in FORMATS.items() if one.place in places)


TEXT_EXTS = _suffixes("here")
MARKDOWN_EXTS = frozenset({".md", ".markdown"})
TEX_EXTS = frozenset({".tex", ".latex"})
WORKER_EXTS = _suffixes("worker")
OFFICE_EXTS = WORKER_EXTS - TEX_EXTS
MAILS = frozenset({".eml", ".msg", ".oft"})
IMAGE_EXTS = frozenset({".jpg", ".jpeg", ".png", ".gif", ".webp"})
SUPPORTED_FORMATS = tuple(sorted(_suffixes("here", "pdf", "worker")))
"""Suffixes of the files that `extract` reads, in any case."""
CONVERTED = {suffix: f".{FORMATS[suffix].module}" for suffix in _suffixes("converted")}
"""Old formats that LibreOffice converts, if it is installed, each with the format that is read then."""
UNREAD_FORMATS = _suffixes("converted", "unread")
"""Formats of documents that are not read, or only with LibreOffice."""
INSTALL_LIBREOFFICE = "install LibreOffice (`apt install libreoffice`, `brew install --cask libreoffice`)"
TESSERACT = "tesseract"
"""The program that reads pages without text."""


@cache
def libreoffice() -> str:
    """Return the path of LibreOffice; empty if it is not installed."""
    return shutil.which("soffice") or shutil.which("libreoffice") or ""


def has_tesseract() -> bool:
    """Return whether tesseract is installed."""
    return shutil.which(TESSERACT) is not None


@dataclass(frozen=True, slots=True)
class AddedReader:
    """A reader that the configuration or an installed package adds.

    Attributes:
        name: Name of an entry point of the group ``ragistry.readers``, or ``module:function``.
        place: File and line of the configuration; empty for a package that adds a format.
        folder: Folder whose modules go before others.
    """

    name: str
    place: str = ""
    folder: str = ""

    def load(self) -> Callable[[bytes, str], ReadDocument]:
        """Import the function. Raises `ConfigError`."""
        with self._modules():
            function: Callable[[bytes, str], ReadDocument] = find_part(self.name, READERS, "reader")
        if not callable(function):
            raise ConfigError(f"{self.place}: the reader {self.name!r} is not a function but {function!r:.100}")
        return function

    def version(self) -> str:
        """Return the function and its version: that of the package, or a digest of the module's file.

        Raises `ConfigError` if there is no such reader.
        """
        with self._modules():
            if ":" in self.name:
                return f"{self.name} {digest_of(self.name)}".rstrip()
            offer = find_offer(self.name, READERS, "reader")
            return f"{offer.spec} {offer.version}".rstrip()

    @contextmanager
    def _modules(self) -> Iterator[None]:
        """Find the modules of the reader in the block, and add its place to a `ConfigError`."""
        try:
            with modules_of(Path(self.folder) if self.folder else None):
                yield
        except ConfigError as error:
            raise ConfigError(f"{self.place}: {error}" if self.place else str(error)) from error


_configured: ContextVar[Mapping[str, AddedReader]] = ContextVar("readers of the configuration by suffix")


@contextmanager
def with_readers(readers: Mapping[str, AddedReader]) -> Iterator[None]:
    """Use the readers of a configuration, by suffix, in this block and thread."""
    token = _configured.set(readers)
    try:
        yield
    finally:
        _configured.reset(token)


def configured_readers() -> Mapping[str, AddedReader]:
    """Return the readers of the configuration by suffix."""
    return _configured.get({})


def added_reader(suffix: str) -> AddedReader | None:
    """Return the reader that the configuration or an installed package adds for a suffix.

    A package without configuration adds readers for other formats than `SUPPORTED_FORMATS`. The name of the entry
    point is the suffix without its dot.
    """
    if configured := configured_readers().get(suffix):
        return configured
    if not suffix or suffix in SUPPORTED_FORMATS or suffix in CONVERTED:
        return None
    return AddedReader(suffix[1:]) if suffix[1:] in offers(READERS) else None


def added_readers(suffix: str) -> dict[str, AddedReader]:
    """Return the added readers that take part in reading a file, by suffix: also those of a mail's attachments."""
    configured = configured_readers()
    if suffix in MAILS and suffix not in configured:
        return dict(configured)
    suffix = suffix if suffix in configured else CONVERTED.get(suffix, suffix)
    reader = added_reader(suffix)
    return {suffix: reader} if reader else {}


def is_readable(suffix: str) -> bool:
    """Return whether files with this suffix, in lower case, can be read on this machine."""
    return suffix in SUPPORTED_FORMATS or (suffix in CONVERTED and bool(libreoffice())) or bool(added_reader(suffix))


def suffix_of(path: str | os.PathLike[str]) -> str:
    """Return the suffix of a file in lower case, without blanks at the end of the name."""
    suffix = os.path.splitext(os.fspath(path).rstrip())[1].lower()  # noqa: PTH122, several times quicker than a path
    return "" if suffix == "." else suffix
