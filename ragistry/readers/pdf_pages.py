"""Clean the text of PDF pages, and take running heads and feet out of its flow."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ragistry.readers.pdf_engines import Spot
from ragistry.readers.pdf_glyphs import BROKEN

_JUNK = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\uffff]|\u00ad(?!\n)")  # of fonts that map no characters
_LIGATURES = re.compile("[\ufb00-\ufb06]")
_LINE_ENDS = re.compile(r"(?<![ \t])[ \t]++(?=\n)")

_SEPARATOR = re.compile(f"(\n|{BROKEN})")
_NUMBER = re.compile(r"\d+")
_ROMAN = re.compile(r"(?=[ivxlc])c{0,3}(?:xc|xl|l?x{0,3})(?:ix|iv|v?i{0,3})", re.IGNORECASE)
_ROMAN_VALUES = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}
_NUMERIC = re.compile(r"[^\w\s]*\d[\d.,:/%-]*[^\w\s]*")
_LONGEST = 300  # characters of a running head
_FEWEST_PAGES, _LEAST_SHARE = 3, 0.6
_WIDEST_GAP = 2  # pages from one head to the next of the same text: heads of left and right pages alternate
_LINES = 4  # at each end of a page where its lines have places
_LINES_BY_ORDER = 2  # where they have none
_ROW_GAP = 1.3
_SENTENCE_END = re.compile(r"[.!?:;…。][\W_]*$")


def clean(text: str) -> str:
    """Normalise the text of a page: newlines ``\\n``, no control characters, no blanks at line ends, no ligatures."""
    text = _JUNK.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    text = _LIGATURES.sub(lambda ligature: unicodedata.normalize("NFKC", ligature[0]), text)
    return _LINE_ENDS.sub("", text)


class _Line(NamedTuple):
    """A line that may be a running head: where it is, the numbers in it, the distance to the body."""

    page: int
    order: int
    numbers: tuple[int, ...]
    is_above_row: bool


def without_running_heads(pages: Sequence[str], spots: Sequence[Mapping[int, Spot]]) -> list[str]:
    """Remove each running head, foot and page number from all pages but the first that has it.

    A line is one if it has the same text up to numbers at the same end of at least three pages in a row (left and right
    pages may alternate) or of 60 % of all pages, where each number is constant or counts the pages. A line that is
    repeated above the rows of a table stays, and so does what would leave a page empty.

    Args:
        pages: Cleaned texts of the pages.
        spots: For each page, the places of its first and last lines by line number, empty where they are unknown.
    """
    if len(pages) < 2:
        return list(pages)
    split = [_SEPARATOR.split(page) for page in pages]
    groups: defaultdict[tuple[str, str], list[_Line]] = defaultdict(list)
    for number, (parts, places) in enumerate(zip(split, spots, strict=True)):
        for end, key, line in _candidates(number, parts[::2], places):
            group = groups[end, key]
            if not group or group[-1].page != number:
                group.append(line)
    removed: defaultdict[int, set[int]] = defaultdict(set)
    kept_feet: defaultdict[int, list[int]] = defaultdict(list)
    for (end, _), group in groups.items():
        for position, line in enumerate(_repeated(group, len(pages))):
            if position:
                removed[line.page].add(line.order)
            elif end in ("bottom", "last"):
                kept_feet[line.page].append(line.order)
    moved = [_with_foot_first(parts, kept_feet[number]) for number, parts in enumerate(split)]
    return [
        _without(page, parts, removed[number]) for number, (page, parts) in enumerate(zip(pages, moved, strict=True))
    ]


def _with_foot_first(parts: list[str], feet: Sequence[int]) -> list[str]:
    """Move the feet at the end of a page before its text, if that continues on the next page.

    The numbers of the other lines stay: a foot becomes part of the first line.
    """
    lines, separators = parts[::2], parts[1::2]
    filled = [index for index, line in enumerate(lines) if line.strip()]
    body = [index for index in filled if index not in feet]
    behind = [index for index in feet if body and index > body[-1]]
    if not behind or _SENTENCE_END.search(lines[body[-1]]):
        return parts
    moved = list(lines)
    for index in behind:
        moved[index] = ""
    moved[0] = "\n".join([*(lines[index] for index in behind), lines[0]])
    if separators and separators[body[-1]] == BROKEN:
        return parts
    return [piece for pair in zip(moved, [*separators, ""], strict=True) for piece in pair][:-1]


def _candidates(page: int, lines: Sequence[str], spots: Mapping[int, Spot]) -> list[tuple[str, str, _Line]]:
    filled = [index for index, line in enumerate(lines) if line.strip()]
    ends = _LINES if spots else _LINES_BY_ORDER
    found = []
    for order, index in enumerate(filled):
        if ends <= order < len(filled) - ends or len(lines[index]) > _LONGEST:
            continue
        if spots:
            end = spots[index].end if index in spots else ""
        else:
            end = "first" if order < ends and order <= len(filled) - 1 - order else "last"
        if end:
            key, numbers = _key(lines[index])
            above_row = end != "last" and _is_above_row(filled[order : order + 3], lines, spots)
            found.append((end, key, _Line(page, index, numbers, above_row)))
    return found


def _key(line: str) -> tuple[str, tuple[int, ...]]:
    """Return the text of a line without its numbers, and the numbers."""
    text = " ".join(line.casefold().split())
    if roman := _ROMAN.fullmatch(text.strip("-\u2013\u2014 ")):
        return "#", (_from_roman(roman[0]),)
    numbers = tuple(int(number[-9:]) for number in _NUMBER.findall(text))
    return _NUMBER.sub("#", text), numbers


def _from_roman(text: str) -> int:
    values = [_ROMAN_VALUES[letter] for letter in text]
    return sum(-value if value < after else value for value, after in zip(values, [*values[1:], 0], strict=True))


def _is_above_row(indices: Sequence[int], lines: Sequence[str], spots: Mapping[int, Spot]) -> bool:
    """Return whether the next lines look like rows of a table, the first no further away than the second is from it."""
    if len(indices) < 3 or not all(_is_row(lines[index]) for index in indices[1:]):
        return False
    if any(index not in spots for index in indices):
        return True
    first, second, third = (spots[index].height for index in indices)
    return 0 < second - first <= _ROW_GAP * (third - second)


def _is_row(line: str) -> bool:
    words = line.split()
    numeric = sum(_NUMERIC.fullmatch(word) is not None for word in words)
    return numeric >= 2 and numeric * 3 >= len(words)


def _repeated(group: Sequence[_Line], pages: int) -> list[_Line]:
    """Return the lines of a group that are a running head."""
    if len(group) < 2:
        return []
    length = Counter(len(line.numbers) for line in group).most_common(1)[0][0]
    group = [line for line in group if len(line.numbers) == length]
    runs, counting = _consistent(group)
    if not counting and sum(line.is_above_row for line in runs) * 2 > len(runs):
        return []
    if len(runs) >= _LEAST_SHARE * pages and (len(runs) >= _FEWEST_PAGES or (counting and len(runs) > 1)):
        return runs
    kept: list[_Line] = []
    run: list[_Line] = []
    for line in runs:
        if run and line.page - run[-1].page > _WIDEST_GAP:
            kept += run if len(run) >= _FEWEST_PAGES else []
            run = []
        run.append(line)
    return kept + (run if len(run) >= _FEWEST_PAGES else [])


def _consistent(group: Sequence[_Line]) -> tuple[list[_Line], bool]:
    """Return the lines whose numbers are constant or count the pages, and whether any number counts them."""
    length = len(group[0].numbers)
    if not length:
        return list(group), False
    constant = [Counter(line.numbers[place] for line in group).most_common(1)[0] for place in range(length)]
    offset = [Counter(line.numbers[place] - line.page for line in group).most_common(1)[0] for place in range(length)]
    counts = [offset[place][1] > constant[place][1] for place in range(length)]
    kept = []
    for line in group:
        agreeing = sum(
            line.numbers[place] - line.page == offset[place][0]
            if counts[place]
            else line.numbers[place] == constant[place][0]
            for place in range(length)
        )
        if agreeing == length:
            kept.append(line)
    return kept, any(counts)


def _without(page: str, parts: Sequence[str], removed: set[int]) -> str:
    if not removed:
        return "".join(parts)
    lines, separators = parts[::2], [*parts[1::2], ""]
    kept = [index for index in range(len(lines)) if index not in removed]
    if not any(lines[index].strip() for index in kept):
        return page
    gaps = {index - 1 for index in removed} - removed
    return "".join(lines[index] + _separator(separators[index], index in gaps) for index in kept)


def _separator(separator: str, is_before_gap: bool) -> str:
    """Return the separator after a line; a word that is hyphenated there does not continue after a removed line."""
    return "-\n\n" if is_before_gap and separator == BROKEN else separator
