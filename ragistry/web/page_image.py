"""Draw a page of a PDF as an image, in a separate process, so that a file that hangs or crashes harms nothing else.

``python -m ragistry.web.page_image`` reads ``{"path", "page", "marks", "memory"}`` from its standard input and writes a
PNG; errors go to its standard error.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from ctypes import byref, c_int
from math import sqrt
from pathlib import Path
from typing import Any

from ragistry.errors import ExtractionError
from ragistry.utils.documents.extracted import ExtractLimits

WIDTH = 1_300
"""Pixels: sharp in a reader half as wide on a dense screen."""
PIXELS = 4_000_000
SECONDS = 20.0
MARKS = 20
"""Maximum number of marked words."""
MARKER = (255, 226, 122)


def render(path: Path, page: int, marks: Sequence[str], limits: ExtractLimits) -> bytes:
    """Draw a page, counted from 1, with these words marked, as PNG. Raises `ExtractionError`."""
    request = {"path": str(path), "page": page, "marks": list(marks[:MARKS]), "memory": limits.memory}
    package = str(Path(__file__).resolve().parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*filter(None, sys.path), package])}
    command = [sys.executable, "-P", "-m", "ragistry.web.page_image"]
    try:
        drawn = subprocess.run(
            command,
            input=json.dumps(request).encode(),
            capture_output=True,
            timeout=SECONDS,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ExtractionError(
            f"page {page} of {path.name!r} was not drawn within {SECONDS:g} s; open the file"
        ) from error
    if drawn.returncode or not drawn.stdout:
        said = drawn.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise ExtractionError(f"page {page} of {path.name!r} cannot be drawn ({said[:200]}); open the file")
    return drawn.stdout


def main() -> None:
    """Draw one page."""
    request = json.load(sys.stdin)
    if sys.platform == "linux":  # elsewhere the system ignores the limit
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (request["memory"], resource.RLIM_INFINITY))
    draw(request["path"], request["page"], request["marks"]).save(sys.stdout.buffer, "PNG")


def draw(path: str, number: int, marks: Sequence[str]) -> Any:
    """Draw the page as a Pillow image."""
    import pypdfium2
    from PIL import Image, ImageChops, ImageDraw

    document = pypdfium2.PdfDocument(path)
    if not 1 <= number <= len(document):
        raise ValueError(f"there are {len(document)} pages")
    page = document[number - 1]
    width, height = page.get_size()
    image = page.render(scale=min(WIDTH / width, sqrt(PIXELS / (width * height)))).to_pil().convert("RGB")
    layer = Image.new("RGB", image.size, "white")
    for box in _boxes(page, image.size, marks):
        ImageDraw.Draw(layer).rectangle(box, fill=MARKER)
    return ImageChops.multiply(image, layer)  # like a marker: black text stays black


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


if __name__ == "__main__":
    main()
