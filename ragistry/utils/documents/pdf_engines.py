"""The two libraries that read PDFs, with one interface. Runs only in the worker process."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import NamedTuple


class UnreadableFileError(Exception):
    """The file cannot be read; the message continues the name of the file with reason and remedy."""


class Pdf(NamedTuple):
    """An open PDF: number of pages, metadata (``Title``, ``Author`` …), and the text of page 0, 1, …"""

    pages: int
    info: dict[str, str]
    text: Callable[[int], str]


ENCRYPTED = "is encrypted; remove the password first: qpdf --password=… --decrypt in.pdf out.pdf"
DAMAGED = "is damaged or not a PDF; repair it: qpdf in.pdf out.pdf"

OCR_SCALE = 300 / 72
"""Scale of an image for OCR: 300 dots per inch."""
LONGEST_SIDE = 6_000
"""Maximum pixels of such an image on one side."""


def open_with_pypdfium2(data: bytes) -> Pdf:
    """Open a PDF with pypdfium2, about twenty times as fast as pypdf, which may lose blanks between words."""
    import pypdfium2  # type: ignore[import-untyped]
    from pypdfium2 import raw

    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if error.err_code in (raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY):
            raise UnreadableFileError(ENCRYPTED) from error
        raise UnreadableFileError(DAMAGED) from error

    def text(index: int) -> str:
        page = document[index]
        textpage = page.get_textpage()
        try:
            return str(textpage.get_text_range())  # the bounded variant loses line ends after superscripts
        finally:
            textpage.close()
            page.close()

    return Pdf(len(document), document.get_metadata_dict(), text)


def look(data: bytes, indices: Sequence[int]) -> tuple[list[int], bool]:
    """Return which pages show an image or a drawing, counted from 1, and whether the file is an XFA form."""
    import pypdfium2
    from pypdfium2 import raw

    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError:  # pypdf may still read it
        return [], False
    pictured = []
    for index in indices:
        with suppress(pypdfium2.PdfiumError):
            page = document[index]
            if next(page.get_objects(max_depth=1), None) is not None:
                pictured.append(index + 1)
            page.close()
    return pictured, document.get_formtype() in (raw.FORMTYPE_XFA_FULL, raw.FORMTYPE_XFA_FOREGROUND)


def draw(data: bytes, index: int, path: str) -> None:
    """Write a page as a gray image (PGM), in a size for OCR."""
    import pypdfium2

    page = pypdfium2.PdfDocument(data)[index]
    scale = min(OCR_SCALE, LONGEST_SIDE / max(page.get_size()))
    bitmap = page.render(scale=scale, grayscale=True)
    width, height, stride, pixels = bitmap.width, bitmap.height, bitmap.stride, memoryview(bitmap.buffer).cast("B")
    with Path(path).open("wb") as image:
        image.write(b"P5 %d %d 255\n" % (width, height))
        for row in range(height):
            image.write(pixels[row * stride : row * stride + width])


def open_with_pypdf(data: bytes) -> Pdf:
    """Open a PDF in pure Python, if pypdfium2 cannot be installed or reads a file wrongly."""
    from pypdf import PasswordType, PdfReader
    from pypdf.errors import DependencyError, PyPdfError

    try:
        reader = PdfReader(BytesIO(data))
        if reader.is_encrypted and reader.decrypt("") == PasswordType.NOT_DECRYPTED:
            raise UnreadableFileError(ENCRYPTED)
        pages = len(reader.pages)
        info = {key.lstrip("/"): str(value) for key, value in (reader.metadata or {}).items()}
    except DependencyError as error:
        reason = f"is encrypted in a way that pypdf cannot read here ({error}); use the engine pypdfium2"
        raise UnreadableFileError(reason) from error
    except PyPdfError as error:
        raise UnreadableFileError(DAMAGED) from error
    return Pdf(pages, info, lambda index: reader.pages[index].extract_text())


ENGINES: Mapping[str, Callable[[bytes], Pdf]] = {"pypdfium2": open_with_pypdfium2, "pypdf": open_with_pypdf}


BROKEN = "\ufffe"
"""The character with which pdfium marks a hyphen and the line end after it."""

_LETTERS = r"(?<![^\W\d_])[^\W\d_]++"  # a whole run, entered at its start only: linear on text without blanks
_END = rf"(?:{BROKEN}|[-\u2010\u00ad]\n)"
_BREAK = re.compile(rf"({_LETTERS}){_END}(?=({_LETTERS}))")
_BROKEN_WORD = re.compile(rf"{_LETTERS}(?:{_END}{_LETTERS})+")
_WORD = re.compile(rf"{_LETTERS}(?:-{_LETTERS})*")
_SUSPENDED = frozenset({"and", "or", "und", "oder", "bzw"})  # "pre- and post-war", "Haupt- und Nebenfach"
_SHORTEST = 3  # letters of a significant part; TeX breaks off two or three


def rejoin(text: str) -> str:
    """Rejoin all words hyphenated at line ends, in linear time.

    The hyphen is kept if the document has the word with a hyphen elsewhere. If it has neither form, the hyphen is kept
    inside a longer compound ("state-of-the-" "art"), after a letter or an abbreviation ("X-" "ray"), before anything
    not in lower case ("Jean-" "Paul"), between two words of the document, and next to a part that it hyphenates
    elsewhere ("non-", "-based").
    """
    if _BREAK.search(text):
        seen = _words(_BROKEN_WORD.sub(" ", text))
        text = _BREAK.sub(lambda broken: broken[1] + _link(broken, seen), text)
    return text.replace(BROKEN, "-")


def _words(text: str) -> Counter[str]:
    """Count each word, and each part of compounds (as "non-" and "-based")."""
    words = Counter(_WORD.findall(text.lower()))
    parts = [word.split("-") for word in words if "-" in word]
    words.update(f"{part}-" for compound in parts for part in compound[:-1])
    words.update(f"-{part}" for compound in parts for part in compound[1:])
    return words


def _link(broken: re.Match[str], seen: Counter[str]) -> str:
    """Return the text between the two parts of a broken word."""
    left, right, text = broken[1].lower(), broken[2].lower(), broken.string
    joined, compound = seen[left + right], seen[f"{left}-{right}"]
    if joined or compound:
        return "-" if compound > joined else ""
    if right in _SUSPENDED and text[broken.end(2) : broken.end(2) + 1].isspace():
        return "- "
    in_compound = text[broken.start() - 1 : broken.start()] == "-"
    abbreviation = len(left) == 1 or broken[1].isupper()
    is_new_word = not broken[2][0].islower()
    return "-" if in_compound or abbreviation or is_new_word or _are_words(left, right, seen) else ""


def _are_words(left: str, right: str, seen: Counter[str]) -> bool:
    from_left, from_right = len(left) >= _SHORTEST, len(right) >= _SHORTEST
    both = from_left and from_right and seen[left] and seen[right]
    return bool(both or (from_left and seen[f"{left}-"]) or (from_right and seen[f"-{right}"]))
