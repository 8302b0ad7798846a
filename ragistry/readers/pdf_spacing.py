"""Join the letters of a PDF page that stand apart. Runs in the worker process only."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise

from ragistry.readers.pdf_signs import split_words

BoxOf = Callable[[int], tuple[float, float, float, float]]
"""Gives left, right, bottom and top of a character of the text."""

_SPACED = re.compile(r"(?<!\S)(?:[^\W\d_] ){4}")
_LINE = re.compile("[^\r\n\ufffe]+")
_FEWEST, _LEAST = 6, 0.6  # letters of a line that stand alone, and their share of its words
_CLEAR = 0.75  # share of the variance that two kinds of distances explain
_DIFFERENCE = 0.1  # between these two, as a share of the height of a line
_LONGEST = 30  # letters of a word


def with_letters_joined(text: str, box_of: BoxOf, numbers: list[int] | None) -> tuple[str, list[int] | None]:
    """Return the text with words where its lines are spaced letters, as some programs write a text layer of OCR.

    The gaps between letters of such lines are of two kinds, and the wide ones are between words. If they are not, or if
    only few letters of the page stand alone, the text stays as it is.
    """
    if not _SPACED.search(text) or not split_words(text.replace("\r", "")):
        return text, numbers
    lines = [line.span() for line in _LINE.finditer(text) if _is_spaced(line[0])]
    letters = [[at for at in range(*line) if not text[at].isspace()] for line in lines]
    boxes = [[box_of(at) for at in line] for line in letters]
    gaps = [_distances(line, 1) for line in boxes]
    steps = [_distances(line, 0) for line in boxes]  # equal in a word where letters of any width have equal room
    distances, limit = max(((one, _limit(one)) for one in (gaps, steps)), key=lambda pair: pair[1][0])
    if limit[0] < _CLEAR:
        return text, numbers
    numbers = list(range(len(text))) if numbers is None else numbers
    parts: list[str] = []
    kept: list[int] = []
    end = 0
    for line, line_letters, line_distances in zip(lines, letters, distances, strict=True):
        pairs = zip(line_letters, [0.0, *line_distances], strict=True)
        pieces = [f" {text[at]}" if distance > limit[1] else text[at] for at, distance in pairs]
        if max(map(len, "".join(pieces).split())) > _LONGEST:  # an alphabet
            continue
        parts += [text[end : line[0]], *pieces]
        kept += numbers[end : line[0]]
        kept += [numbers[at] for at, piece in zip(line_letters, pieces, strict=True) for _ in piece]
        end = line[1]
    return "".join([*parts, text[end:]]), kept + numbers[end:]


def _is_spaced(line: str) -> bool:
    words = line.split()
    alone = sum(len(word) == 1 and word.isalpha() for word in words)
    return alone >= _FEWEST and alone >= _LEAST * len(words)


def _distances(boxes: Sequence[tuple[float, float, float, float]], edge: int) -> list[float]:
    """Return the distances from an edge of each character to the next one, as shares of the height of the line."""
    height = max(max(top - bottom for _, _, bottom, top in boxes), 1.0)
    return [(after[0] - box[edge]) / height for box, after in pairwise(boxes)]


def _limit(lines: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Return how clearly the distances are of two kinds, from 0 to 1, and the limit between these (Otsu's method)."""
    values = sorted(value for line in lines for value in line)
    total = sum(values)
    mean = total / len(values)
    variance = sum((value - mean) ** 2 for value in values)
    best, limit = 0.0, values[-1]
    for count, below in enumerate(accumulate(values[:-1]), 1):
        low, high = below / count, (total - below) / (len(values) - count)
        between = count * (low - mean) ** 2 + (len(values) - count) * (high - mean) ** 2
        if between > best and high - low > _DIFFERENCE:
            best, limit = between, (values[count - 1] + values[count]) / 2
    return (best / variance if variance else 0.0), limit
