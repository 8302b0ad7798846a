"""Map each line of extracted text to its line in the source file."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

_WORD = re.compile(r"[^\W_]+")
ENOUGH = 3
"""Number of consecutive words that identify a line; fewer if it has fewer."""
REACH = 5_000
"""Number of words in which the next line is looked for."""
CANDIDATES = 100
"""Maximum number of occurrences of a word that are compared."""


def line_numbers(text: str, source: str) -> list[int]:
    """Return for each line of a text the number of its line in the source, from 1.

    Lines are recognised by their words, in order. A line that is not found, such as a blank one, is counted from the
    line before.

    Args:
        text: The text, made from the source without a change of the order.
        source: The file.
    """
    words: list[str] = []
    lines: list[int] = []
    for number, line in enumerate(source.split("\n"), 1):
        found = _WORD.findall(line.casefold())
        words += found
        lines += [number] * len(found)
    positions: dict[str, list[int]] = {}
    for at, word in enumerate(words):
        positions.setdefault(word, []).append(at)
    known: list[tuple[int, int]] = []
    at, last = 0, 0
    for last, line in enumerate(text.split("\n")):
        own = [] if line.startswith("```") else _WORD.findall(line.casefold())  # a language may follow its caption
        start, length = _find(own, words, positions, at)
        if start >= 0:
            at = start + length
            known.append((last, lines[start]))
    if not known or known[0][0] > 0:
        first, number = known[0] if known else (0, 1)
        known.insert(0, (0, max(1, number - first)))
    numbers: list[int] = []
    for (index, number), (following, stop) in pairwise([*known, (last + 1, source.count("\n") + 2)]):
        numbers += [min(number + one, max(number, stop - 1)) for one in range(following - index)]
    return numbers


def _find(own: Sequence[str], words: Sequence[str], positions: dict[str, list[int]], at: int) -> tuple[int, int]:
    """Return where the first words of a line follow ``at``, and how many are equal; (-1, 0) if nowhere.

    Words that a reader of the file added or expanded are skipped.
    """
    for skipped in range(min(len(own), ENOUGH + 1)):
        rest = own[skipped:]
        wanted = min(ENOUGH, len(rest))
        known = positions.get(rest[0], [])
        first = bisect_left(known, at)
        for start in known[first : first + CANDIDATES]:
            if start > at + REACH:
                break
            length = 1
            while length < len(rest) and start + length < len(words) and words[start + length] == rest[length]:
                length += 1
            if length >= wanted:
                return start, length
    return -1, 0
