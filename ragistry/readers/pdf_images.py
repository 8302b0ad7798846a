"""Draw a page of a PDF: in gray for OCR, and with marked words for people."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import byref, c_int
from math import sqrt
from pathlib import Path
from typing import Any

from ragistry.readers.blocks import UnreadableFileError
from ragistry.utils.wording import numbered

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
    for box in _boxes(page, image.size, marks):
        ImageDraw.Draw(layer).rectangle(box, fill=MARKER)
    ImageChops.multiply(image, layer).save(path, "PNG")  # like a marker: black text stays black


def _page(data: bytes, index: int) -> Any:
    import pypdfium2

    document = pypdfium2.PdfDocument(data)
    if not 0 <= index < len(document):
        raise UnreadableFileError(f"has {numbered(len(document), 'page[|s]')}, and no page {index + 1}")
    return document[index]


def _boxes(page: Any, size: tuple[int, int], marks: Sequence[str]) -> list[tuple[int, int, int, int]]:
    """Return the places of the words, in pixels ``(left, top, right, bottom)``."""
    from pypdfium2 import raw

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
