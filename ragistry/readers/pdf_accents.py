"""Compose accents that a PDF draws as characters of their own. Runs in the worker process only."""

from __future__ import annotations

import re
import unicodedata
from ctypes import c_double
from typing import Any

MOST_ACCENTS = 2_000
"""Accents of a page that are looked at: each is searched for among all characters of the page."""
NEAR = 0.15
"""Widest gap inside a word, as a share of the height of a line."""

_MARKS = {
    "`": "\u0300", "\u02cb": "\u0300", "\u00b4": "\u0301", "\u02ca": "\u0301", "^": "\u0302", "\u02c6": "\u0302",
    "~": "\u0303", "\u02dc": "\u0303", "\u00af": "\u0304", "\u02c9": "\u0304", "\u02d8": "\u0306", "\u02d9": "\u0307",
    "\u00a8": "\u0308", "\u02da": "\u030a", "\u02dd": "\u030b", "\u02c7": "\u030c", "\u00b8": "\u0327",
    "\u02db": "\u0328",
}  # fmt: skip
_ACCENT = re.compile(f"[{re.escape(''.join(_MARKS))}\u0300-\u036f]")
_DOTLESS = {"\u0131": "i", "\u0237": "j"}
_SAME_SIZE = 0.6  # share of the height of a line from which on two characters are of one size
_TURNED = 0.01  # radians
_STEP = 0.15  # of the height of a line: from an accent or a base line into the letter


def with_composed_accents(text: str, textpage: Any, numbers: list[int] | None) -> tuple[str, list[int] | None]:
    """Join each accent to the letter that it is drawn on. TeX draws it before the letter, other programs later.

    An accent that stands alone is a sign, as in code, and stays.

    Args:
        text: Text of the page.
        textpage: Its text page in pypdfium2.
        numbers: Number of the character in ``textpage`` for each one of ``text``; None if they are the same.

    Returns:
        The text and the numbers of its characters.
    """
    accents = [one.start() for one in _ACCENT.finditer(text)][:MOST_ACCENTS]
    if not accents:
        return text, numbers
    numbers = list(range(len(text))) if numbers is None else numbers
    places: dict[int, int] | None = None
    parts = list(text)
    for at in accents:
        number = _letter_below(textpage, numbers[at])
        if number is None:
            continue
        places = places or {one: place for place, one in enumerate(numbers)}
        letter = places.get(number, at)
        mark = _MARKS.get(parts[at], parts[at])
        base = parts[letter]
        composed = unicodedata.normalize("NFC", _DOTLESS.get(base, base) + mark)
        if letter != at and base.isalpha() and len(composed) == 1:
            parts[letter], parts[at] = composed, ""
            _close_gap(parts, at, textpage, numbers)
    return "".join(parts), [number for part, number in zip(parts, numbers, strict=True) if part]


def _letter_below(textpage: Any, number: int) -> int | None:
    """Return the number of the character that an accent is drawn on, which is above the accent if that is a cedilla."""
    from pypdfium2 import raw

    left, right, bottom, top, x, y = (c_double() for _ in range(6))
    if not raw.FPDFText_GetCharBox(textpage, number, left, right, bottom, top) or not raw.FPDFText_GetCharOrigin(
        textpage, number, x, y
    ):
        return None
    size = _upright_height(textpage, number)
    step = _STEP * size
    middle = (left.value + right.value) / 2
    heights = [y.value + step, bottom.value - step if bottom.value > y.value else top.value + step]
    for height in heights:
        found = raw.FPDFText_GetCharIndexAtPos(textpage, middle, height, 0, 0)
        if found >= 0 and found != number:  # a letter of a watermark is larger, or turned
            sizes = sorted((size, _upright_height(textpage, found)))
            return int(found) if sizes[0] > _SAME_SIZE * sizes[1] else None
    return None


def _upright_height(textpage: Any, number: int) -> float:
    """Return the height of the line of a character, 0 if that is turned."""
    from pypdfium2 import raw

    box = raw.FS_RECTF()
    if not raw.FPDFText_GetLooseCharBox(textpage, number, box) or raw.FPDFText_GetCharAngle(textpage, number) > _TURNED:
        return 0.0
    return abs(float(box.top - box.bottom))


def _close_gap(parts: list[str], at: int, textpage: Any, numbers: list[int]) -> None:
    """Remove the blanks that pdfium puts around an accent, unless there is a gap between the letters there."""
    from pypdfium2 import raw

    first, last = at, at
    while first and (not parts[first - 1] or parts[first - 1].isspace()):
        first -= 1
    while last + 1 < len(parts) and (not parts[last + 1] or parts[last + 1].isspace()):
        last += 1
    blanks = [one for one in range(first, last + 1) if parts[one]]
    if not blanks or not all(raw.FPDFText_IsGenerated(textpage, numbers[one]) == 1 for one in blanks):
        return
    if first and last + 1 < len(parts) and (gap := _gap(textpage, numbers[first - 1], numbers[last + 1])) is not None:
        for one in blanks:
            parts[one] = ""
        if gap > NEAR:
            parts[blanks[0]] = " "


def _gap(textpage: Any, number: int, after: int) -> float | None:
    """Return the gap between two characters as a share of the height of their line, None if that is not the same."""
    from pypdfium2 import raw

    one, other = raw.FS_RECTF(), raw.FS_RECTF()
    raw.FPDFText_GetLooseCharBox(textpage, number, one)
    raw.FPDFText_GetLooseCharBox(textpage, after, other)
    height = max(one.top - one.bottom, other.top - other.bottom)
    if height <= 0 or abs(one.bottom - other.bottom) > height / 2 or other.left < one.left:
        return None
    return float((other.left - one.right) / height)
