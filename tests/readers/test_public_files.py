"""No word of a public file is lost: a second, simpler reading of the file finds no other words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest
from lxml import etree
from pypdf import PdfReader

from ragistry.readers.extract import extract
from tests.readers.test_pdf import READABLE, pdfs  # noqa: F401, a fixture

MISREAD = {  # by pypdf: letters with accents in two pieces
    "acl-two-column.pdf": ["theodore", "clement", "mael"],
    "federal-register-three-column.pdf": ["age\u02c6ncia", "aviacao"],
}
PARTS = re.compile(
    r"word/(document|header\d*|footer\d*|footnotes|endnotes|comments)\.xml|content\.xml"
    r"|ppt/(slides|notesSlides|comments|charts)/[^/]*\.xml"
    r"|xl/(sharedStrings|(drawings|charts|threadedComments)/[^/]*)\.xml"
)
TEXTS = ("{*}t", "{*}v", "{*}text", "{*}p", "{*}h", "{*}span", "{*}a")


def letters(text: str) -> str:
    """Return the letters and digits of a text: readers find different gaps between words."""
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", text).casefold())


def lost(texts: Iterable[str], read: str) -> list[str]:
    """Return the words of which the letters are not in what was read."""
    known = letters(read)
    return [word for text in texts for part in text.split() if (word := letters(part)) not in known]


def office_texts(path: Path) -> Iterator[str]:
    with ZipFile(path) as package:
        for name in filter(PARTS.fullmatch, package.namelist()):
            for element in etree.fromstring(package.read(name)).iter(*TEXTS):
                yield from (element.text or "", element.tail or "")


@pytest.mark.parametrize("suffix", [".docx", ".odt", ".pptx", ".xlsx"])
def test_every_word_of_a_public_office_file_is_read(shared_office: Path, suffix: str) -> None:
    paths = [*shared_office.glob(f"*{suffix}")]
    assert any(map(any, map(office_texts, paths)))
    assert [word for path in paths for word in lost(office_texts(path), extract(path).text)] == []


@pytest.mark.parametrize("name", READABLE)
def test_every_word_that_pypdf_reads_in_a_public_pdf_is_read(pdfs: Path, name: str) -> None:  # noqa: F811
    pages = [page.extract_text() for page in PdfReader(pdfs / name).pages]
    words = [word for word in lost(pages, extract(pdfs / name).text) if not word.isdecimal()]
    assert [*dict.fromkeys(words)] == MISREAD.get(name, [])
