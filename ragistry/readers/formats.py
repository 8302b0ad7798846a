"""Suffixes of the file formats that can be read, and the programs that some of them need."""

from __future__ import annotations

import os
import shutil
from functools import cache

from ragistry.plugins import offers

MARKDOWN_EXTS = frozenset({".md", ".markdown"})
TEXT_EXTS = MARKDOWN_EXTS | frozenset(
    {
        *(".txt", ".csv", ".tsv", ".yaml", ".yml", ".toml", ".json", ".jsonl", ".xml", ".sql", ".sh"),
        *(".py", ".js", ".jsx", ".ts", ".tsx", ".c", ".cc", ".cpp", ".h", ".hpp", ".cs", ".go", ".java", ".kt"),
        *(".php", ".r", ".rb", ".rs", ".scala", ".swift"),
    }
)
TEX_EXTS = frozenset({".tex", ".latex"})
OFFICE_EXTS = frozenset(
    {
        *(".docx", ".docm", ".odt", ".odp", ".rtf", ".pptx", ".pptm", ".xlsx", ".xlsm", ".ods", ".epub"),
        *(".html", ".htm", ".xhtml", ".eml", ".msg", ".ipynb", ".rst", ".org"),
    }
)
IMAGE_EXTS = frozenset({".jpg", ".jpeg", ".png", ".gif", ".webp"})
SUPPORTED_FORMATS = tuple(sorted({*TEXT_EXTS, *TEX_EXTS, *OFFICE_EXTS, ".pdf"}))
"""Suffixes of the files that `extract` reads, in any case."""
CONVERTED = {".doc": ".docx", ".ppt": ".pptx", ".xls": ".xlsx"}
"""Old formats that LibreOffice converts, if it is installed, each with the format that is read then."""
UNREAD_FORMATS = frozenset({*CONVERTED, ".pages", ".wpd", ".numbers", ".azw3", ".chm", ".djvu", ".mobi", ".mbox"})
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


def added_reader(suffix: str) -> str:
    """Return ``module:function`` of the reader that an installed package adds for a suffix; empty without one.

    Packages add readers for other formats than `SUPPORTED_FORMATS`. The name of
    the entry point is the suffix without its dot.
    """
    if not suffix or suffix in SUPPORTED_FORMATS or suffix in CONVERTED:
        return ""
    offer = offers("ragistry.readers").get(suffix[1:])
    return offer.spec if offer else ""


def is_readable(suffix: str) -> bool:
    """Return whether files with this suffix, in lower case, can be read on this machine."""
    return suffix in SUPPORTED_FORMATS or (suffix in CONVERTED and bool(libreoffice())) or bool(added_reader(suffix))


def suffix_of(path: str | os.PathLike[str]) -> str:
    """Return the suffix of a file in lower case, without blanks at the end of the name."""
    suffix = os.path.splitext(os.fspath(path).rstrip())[1].lower()  # noqa: PTH122, several times quicker than a path
    return "" if suffix == "." else suffix
