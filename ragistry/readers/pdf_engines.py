"""The two libraries that read PDFs, behind one shape, and drawings of pages. Runs in the worker process only."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from ctypes import byref, c_double, c_int
from io import BytesIO
from itertools import pairwise
from math import pi, sqrt
from pathlib import Path
from typing import Any, NamedTuple

import pypdfium2
from pypdfium2 import raw

from ragistry.readers.blocks import UnreadableFileError
from ragistry.readers.pdf_forms import MOST_ANNOTATIONS, Annotation, Form, annotations_of
from ragistry.readers.pdf_layout import title_on_page, with_columns_in_order
from ragistry.readers.pdf_letters import (
    BROKEN,
    MISSING,
    TEX_LIGATURES,
    BoxOf,
    with_composed_accents,
    with_letters_joined,
)
from ragistry.utils.wording import numbered


class Spot(NamedTuple):
    """Where a line begins on its page.

    Attributes:
        end: ``"top"``, ``"bottom"`` or ``"side"`` if that is in a margin, otherwise empty.
        height: Distance from the top of the page, as a share of its height.
        gaps: Widths of the gaps between words, as shares of their height, of a line with a number at an end.
    """

    end: str
    height: float
    gaps: tuple[float, ...] = ()


class PdfPage(NamedTuple):
    """What an engine reads on a page.

    Attributes:
        text: Text in the order of the file.
        spots: Places of the first and last lines, by line number; empty if the engine does not know them.
        annotations: Annotations and form fields with text.
        skipped: Number of annotations that were not looked at, because the file has too many.
        title: Title of the document on the first page; empty if there is none or the engine does not know sizes.
    """

    text: str
    spots: dict[int, Spot]
    annotations: list[Annotation]
    skipped: int = 0
    title: str = ""


class Pdf(NamedTuple):
    """An open PDF: how many pages, what it says about itself (``Title``, ``Author`` …), page 0, 1, …, its labels."""

    pages: int
    info: dict[str, str]
    read: Callable[[int], PdfPage]
    label: Callable[[int], str]


ENCRYPTED = "is encrypted; remove the password first: qpdf --password=… --decrypt in.pdf out.pdf"
DAMAGED = "is damaged or no PDF; repair it: qpdf in.pdf out.pdf"


def open_with_pypdfium2(data: bytes) -> Pdf:
    """About twenty times as fast as pypdf, and keeps the blanks between words that pypdf may lose."""
    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if error.err_code in (raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY):
            raise UnreadableFileError(ENCRYPTED) from error
        raise UnreadableFileError(DAMAGED) from error

    left, form = MOST_ANNOTATIONS, Form(document)

    def read(index: int) -> PdfPage:
        nonlocal left
        with closing(document[index]) as page, closing(page.get_textpage()) as textpage:
            text = str(textpage.get_text_range())  # the bounded variant loses line ends after superscripts
            text, at = _with_missing_glyphs(text, textpage, textpage.count_chars())
            text, at = with_composed_accents(text, textpage, at)
            text, at = with_letters_joined(text, _boxes(textpage, at), at)
            text, at = with_columns_in_order(text, _boxes(textpage, at), at)
            annotations, looked_at, listed = annotations_of(page, textpage, left, form)
            left -= looked_at
            title = "" if index else title_on_page(text, page, textpage, at)
            return PdfPage(text, _spots(text, page, textpage, at), annotations, listed - looked_at, title)

    return Pdf(len(document), document.get_metadata_dict(), read, document.get_page_label)


def _boxes(textpage: Any, numbers: Sequence[int]) -> BoxOf:
    """Return a function that gives left, right, bottom and top of a character."""
    box, get_box, handle = raw.FS_RECTF(), raw.FPDFText_GetLooseCharBox, textpage.raw

    def box_of(at: int) -> tuple[float, float, float, float]:
        get_box(handle, numbers[at], box)
        return box.left, box.right, box.bottom, box.top

    return box_of


_PUNCTUATION = " \r\n\t-.,:;'\u2019\u2018\"\u201c\u201d/()@=+*&_\u2013\u2014\u2022\xa0\u2026"
_ORDINARY = frozenset(_PUNCTUATION + "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
"""Characters that a font can be expected to map to themselves."""
_ODD = re.compile(rf"(?<=[^\W\d_])[^\w{re.escape(_PUNCTUATION)}](?=[^\W\d_])")
_HYPHEN_CODE, _UNKNOWN = 2, frozenset({0, 2, 0xFFFE, 0xFFFF})
_ASTRAL = "\uffff"


def _with_missing_glyphs(text: str, textpage: Any, count: int) -> tuple[str, Sequence[int]]:
    """Mark glyphs without letters in the text of pdfium, which drops them or gives their code or the mark of a hyphen.

    Also returns the number of the character in pdfium for each one of the text.
    """
    units = len(text) if not text or max(text) <= _ASTRAL else len(text.encode("utf-16-le", "surrogatepass")) // 2
    numbers: Sequence[int] = range(count)
    if not count == units == len(text):
        text, numbers = _with_dropped_glyphs(text, textpage, count)
    return (text, numbers) if _ORDINARY.issuperset(text) else _marked(text, textpage, numbers)


def _with_dropped_glyphs(text: str, textpage: Any, count: int) -> tuple[str, list[int]]:
    """Insert `MISSING` where pdfium has a character that is not in its text."""
    parts: list[str] = []
    numbers: list[int] = []
    at = 0
    get_unicode = raw.FPDFText_GetUnicode
    for number in range(count):
        code = get_unicode(textpage, number)
        if at < len(text) and (
            ord(text[at]) == code
            or (text[at] == BROKEN and code in (0, _HYPHEN_CODE))
            or (text[at] > _ASTRAL and 0xD800 <= code < 0xDC00)
        ):
            parts.append(text[at])
            numbers.append(number)
            at += 1
        elif (
            code in _UNKNOWN
            and ((parts and parts[-1].isalpha()) or text[at : at + 1].isalpha())
            and raw.FPDFText_IsHyphen(textpage, number) != 1
        ):
            parts.append(MISSING)
            numbers.append(number)
    return "".join(parts) + text[at:], numbers + [count] * (len(text) - at)


def _marked(text: str, textpage: Any, numbers: Sequence[int]) -> tuple[str, Sequence[int]]:
    """Replace the marks of glyphs without letters inside words: by ligatures of TeX, otherwise by `MISSING`."""

    def is_unmapped(at: int) -> bool:
        if text[at] == BROKEN:
            return bool(raw.FPDFText_IsHyphen(textpage, numbers[at]) != 1)
        return bool(raw.FPDFText_HasUnicodeMapError(textpage, numbers[at]) == 1)

    codes = {one[0] for one in _ODD.finditer(text) if one[0] != MISSING and is_unmapped(one.start())}
    if not codes:
        return text, numbers
    pieces = list(text)
    for one in re.finditer(f"[{re.escape(''.join(codes.union(TEX_LIGATURES)))}]", text):
        at = one.start()
        around = text[max(0, at - 1) : at] + text[at + 1 : at + 2]
        if any(map(str.isalpha, around)) and is_unmapped(at):
            pieces[at] = TEX_LIGATURES.get(one[0], MISSING)
    return "".join(pieces), [number for piece, number in zip(pieces, numbers, strict=True) for _ in piece]


_MARGIN = 0.12
"""Share of a page that its head, or its foot, may take."""
_LINES_WITH_SPOTS = 5
_LINE_END = re.compile("\r\n|\r|\ufffe")
_WORD_IN_LINE = re.compile(r"\S+")


def _spots(text: str, page: Any, textpage: Any, numbers: Sequence[int]) -> dict[int, Spot]:
    """Return the places of the first and last lines with text."""
    width, height = page.get_size()  # of the page as it is shown
    rotation = page.get_rotation()
    box = raw.FS_RECTF()
    raw.FPDF_GetPageBoundingBox(page, box)  # with what the page inherits
    starts = [0, *(one.end() for one in _LINE_END.finditer(text))]
    ends = [*starts[1:], len(text)]
    filled = [line for line in range(len(starts)) if text[starts[line] : ends[line]].strip()]
    x, y = c_double(), c_double()
    box_of = _boxes(textpage, numbers)
    spots = {}
    for line in dict.fromkeys(filled[:_LINES_WITH_SPOTS] + filled[-_LINES_WITH_SPOTS:]):
        start = starts[line]
        while text[start].isspace():
            start += 1
        number = numbers[start]
        if not raw.FPDFText_GetCharOrigin(textpage, number, x, y):
            continue
        across, down = x.value - box.left, box.top - y.value
        if rotation:
            turned = {90: (y.value - box.bottom, across), 180: (box.right - x.value, y.value - box.bottom)}
            across, down = turned.get(rotation, (down, box.right - x.value))
        share = down / height if height else 0.5
        end = "top" if share < _MARGIN else "bottom" if share > 1 - _MARGIN else ""
        if not end and not _MARGIN * width < across < (1 - _MARGIN) * width:
            turns = round(raw.FPDFText_GetCharAngle(textpage, number) / (pi / 2)) + rotation // 90
            end = "side" if turns % 2 else ""
        part = text[start : ends[line]].rstrip() if end else ""
        has_number = part[:1].isdigit() or part[-1:].isdigit()
        spots[line] = Spot(end, share, _gaps(part, start, box_of) if has_number else ())
    return spots


def _gaps(line: str, start: int, box_of: BoxOf) -> tuple[float, ...]:
    """Return the width of each gap between the words of a line, as a share of the height of the word after it."""
    gaps = []
    for before, word in pairwise(_WORD_IN_LINE.finditer(line)):
        left, _, bottom, top = box_of(start + word.start())
        gaps.append((left - box_of(start + before.end() - 1)[1]) / max(top - bottom, 1.0))
    return tuple(gaps)


def inspect_pages(data: bytes, indices: Sequence[int]) -> tuple[list[int], bool]:
    """Return the pages that show an image or a drawing, from 1, and whether the file is an XFA form."""
    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError:  # pypdf can read it all the same
        return [], False
    pictured = []
    for index in indices:
        with suppress(pypdfium2.PdfiumError):
            page = document[index]
            if next(page.get_objects(max_depth=1), None) is not None:
                pictured.append(index + 1)
            page.close()
    return pictured, document.get_formtype() in (raw.FORMTYPE_XFA_FULL, raw.FORMTYPE_XFA_FOREGROUND)


def open_with_pypdf(data: bytes) -> Pdf:
    """In pure Python, for where pypdfium2 cannot be installed or reads a file wrongly."""
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
    labels: list[str] = []

    def label(index: int) -> str:
        if not labels:
            labels.extend(reader.page_labels)
        return labels[index]

    return Pdf(pages, info, lambda index: PdfPage(_text_of_pypdf(reader.pages[index]), {}, []), label)


_LIGATURE_NAME = re.compile("/(f(?:_[fil])+)(?![^\\W\\d_]*_)")
_GLYPH_NAME = re.compile(r"(?<=[^\W\d_])/[gG]\d+|/[gG]\d+(?=[^\W\d_])")
_UNKNOWN_OF_PYPDF = re.compile("(?<=[^\\W\\d_])[\x00\x02\ufffe\uffff]|[\x00\x02\ufffe\uffff](?=[^\\W\\d_])")
_TEX_CODES = "\x0b\x0c\x0e\x0f\x1b-\x1f"
_TEX_CODE = re.compile(f"(?<=[^\\W\\d_])[{_TEX_CODES}]|[{_TEX_CODES}](?=[^\\W\\d_])")
_TEX_CODE_OR_RETURN = re.compile(f"[{_TEX_CODES}]|\r(?!\n)")


def _text_of_pypdf(page: Any) -> str:
    """Return the text of a page with `MISSING` for glyphs of unknown letters, which pypdf gives in various ways."""
    text = str(page.extract_text())
    text = _LIGATURE_NAME.sub(lambda name: name[1].replace("_", ""), text)
    if _TEX_CODE.search(text):
        text = _TEX_CODE_OR_RETURN.sub(lambda code: TEX_LIGATURES[code[0]], text)
    text = _GLYPH_NAME.sub(MISSING, text)
    return _UNKNOWN_OF_PYPDF.sub(MISSING, text).replace("\ufffe", "-")


ENGINES: Mapping[str, Callable[[bytes], Pdf]] = {"pypdfium2": open_with_pypdfium2, "pypdf": open_with_pypdf}


# --- Drawings of a page: in gray for OCR, and with marked words for people ---

OCR_SCALE = 300 / 72
"""Scale of an image that is read by OCR: 300 dots per inch."""
LONGEST_SIDE = 6_000
"""Maximum number of pixels of a side of such an image."""
WIDTH = 1_300
"""Pixels: sharp in a reader half as wide on a dense screen."""
PIXELS = 4_000_000
MARKER = (255, 226, 122)


def draw_gray(data: bytes, index: int, path: str) -> None:
    """Write a page as a gray image (PGM), as large as OCR wants it."""
    page = _page(data, index)
    scale = min(OCR_SCALE, LONGEST_SIDE / max(page.get_size()))
    bitmap = page.render(scale=scale, grayscale=True)
    width, height, stride, pixels = bitmap.width, bitmap.height, bitmap.stride, memoryview(bitmap.buffer).cast("B")
    with Path(path).open("wb") as image:
        image.write(b"P5 %d %d 255\n" % (width, height))
        for row in range(height):
            image.write(pixels[row * stride : row * stride + width])


def draw_marked(data: bytes, index: int, path: str, marks: Sequence[str]) -> None:
    """Write a page as a PNG, with these words marked."""
    from PIL import Image, ImageChops, ImageDraw

    page = _page(data, index)
    width, height = page.get_size()
    image = page.render(scale=min(WIDTH / width, sqrt(PIXELS / (width * height)))).to_pil().convert("RGB")
    layer = Image.new("RGB", image.size, "white")
    for box in _word_boxes(page, image.size, marks):
        ImageDraw.Draw(layer).rectangle(box, fill=MARKER)
    ImageChops.multiply(image, layer).save(path, "PNG")  # like a marker: black text stays black


def _page(data: bytes, index: int) -> Any:
    document = pypdfium2.PdfDocument(data)
    if not 0 <= index < len(document):
        raise UnreadableFileError(f"has {numbered(len(document), 'page[|s]')}, and no page {index + 1}")
    return document[index]


def _word_boxes(page: Any, size: tuple[int, int], marks: Sequence[str]) -> list[tuple[int, int, int, int]]:
    """Return the places of the words, in pixels ``(left, top, right, bottom)``."""

    def pixel(x: float, y: float) -> tuple[int, int]:
        across, down = c_int(), c_int()
        raw.FPDF_PageToDevice(page, 0, 0, *size, 0, x, y, byref(across), byref(down))
        return across.value, down.value

    found, text = [], page.get_textpage()
    for word in filter(None, marks):
        search = text.search(word, match_whole_word=True)
        while (match := search.get_next()) is not None:
            for index in range(text.count_rects(*match)):
                left, bottom, right, top = text.get_rect(index)
                corners = (*pixel(left, top), *pixel(right, bottom))
                found.append((min(corners[::2]), min(corners[1::2]), max(corners[::2]), max(corners[1::2])))
    return found
