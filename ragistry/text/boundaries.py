r"""Find places to cut a text: ends of paragraphs, sentences, lines and words inside a window.

Every search is limited to its window, so that the total time is linear in the text. An end is the offset after the last
character, which may be white space; -1 means none in the window.

The last match in a window is found backwards: ``.*`` consumes all of it and gives back one character at a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import groupby

_CLOSERS = r""""')\]}*_»”’›」』）】》〉"""  # noqa: RUF001 - exactly these characters
_MARKS = ".!?…؟۔।॥"  # noqa: RUF001 - end a sentence before white space
_WIDE_MARKS = "。！？｡"  # noqa: RUF001 - always end a sentence
_ABBREVIATIONS = (  # English, then German
    "al approx apr assn aug ca capt cf ch chap co col corp dec dept dr ed eds eq eqs esp etc feb fig figs gen gov hon "
    "inc jan jr lt ltd mr mrs ms mt no nos nov oct para pp prof rep resp rev sec sect sen sept sgt sr st thm univ viz "
    "vol vols vs "
    "abb abs bd bspw bzgl bzw evtl ggf hrsg inkl nr sog tel usw vgl"
)


def _not_after(words: str) -> str:
    """Build a pattern that fails after one of these words and a full stop; each look-behind has one width."""
    widths = groupby(sorted(words.split(), key=len), key=len)
    return "".join(
        rf"(?<!\b(?:{'|'.join(f'[{word[0]}{word[0].upper()}]{word[1:]}' for word in group)})\.)" for _, group in widths
    )


_SENTENCE_END = (
    # One leading set with look-behinds is three times as fast as three alternatives.
    rf"[{_MARKS}{_WIDE_MARKS}\n](?!\.)(?! \.)(?:"
    rf"(?<=[{_MARKS}])(?=[{_CLOSERS}]*+\s)"
    r"(?<!\b[^\W\d_]\.)"  # J. Smith, e.g., U.S.
    r"(?<!^\d\.)(?<!\s\d\.)(?<!\s\d\d\.)"  # the number of an item; 3. Oktober
    r"(?<!\.{4})(?<!\. \.)"  # leaders of a table of contents
    rf"{_not_after(_ABBREVIATIONS)}[{_CLOSERS}]*+"
    # Marks and quotes at the edge of the window may continue after it; at most eight, to keep the search linear.
    rf"|(?<=[{_WIDE_MARKS}])[{_WIDE_MARKS}{_CLOSERS}]{{0,8}}+(?!\Z)"
    # A blank line, an item of a list, a row of a table, a quotation or a heading follows.
    r"|(?<=\n)(?=[^\S\n]*+(?:\n|[-*+•>#][^\S\n]|\||\d{1,3}[.)][^\S\n])))"
)
_SENTENCE_START = re.compile(rf"{_SENTENCE_END}\s*+", re.MULTILINE)
_NEAR = 300  # characters; most windows have a sentence end this close to their own end
_BLANK_LINE = re.compile(r"\n[^\S\n]++\n")
_SPACE = re.compile(r"\s")
_WORD = re.compile(r"\S")


def next_word(text: str, at: int) -> int:
    """Return the offset of the first non-white-space character from ``at`` on; the text's length without one."""
    found = _WORD.search(text, at)
    return found.start() if found else len(text)


def last_paragraph_end(text: str, lo: int, hi: int) -> int:
    """Find the last end of a paragraph in ``(lo, hi]``."""
    if text.rfind("\n", lo, hi + 1) < 0:
        return -1
    empty = text.rfind("\n\n", lo, hi + 2)
    if empty >= 0:
        return empty
    with_blanks = [line.start() for line in _BLANK_LINE.finditer(text, lo, hi + 2)]
    return with_blanks[-1] if with_blanks else -1


@cache  # a search does not need it
def _last_sentence_end() -> re.Pattern[str]:
    return re.compile(rf"(?s:.*){_SENTENCE_END}", re.MULTILINE)


def last_sentence_end(text: str, lo: int, hi: int) -> int:
    """Find the last end of a sentence in ``(lo, hi]``; a paragraph or a list item ends one too."""
    found = _last_sentence_end().match(text, max(lo, hi - _NEAR), hi + 1)  # sees the white space that follows
    if not found and _SENTENCE_START.search(text, lo, hi + 1):  # the backward search is slow if there is no match
        found = _last_sentence_end().match(text, lo, hi + 1)
    return found.end() if found else -1


def last_line_end(text: str, lo: int, hi: int) -> int:
    """Find the last end of a line in ``(lo, hi]``."""
    return text.rfind("\n", lo + 1, hi + 1)


def last_word_end(text: str, lo: int, hi: int) -> int:
    """Find the last end of a word in ``(lo, hi]``."""
    blank = text.rfind(" ", lo + 1, hi + 1)
    others = [space.start() for space in _SPACE.finditer(text, max(lo, blank) + 1, hi + 1)]
    return others[-1] if others else blank


def first_sentence_start(text: str, lo: int, hi: int) -> int:
    """Find the first start of a sentence in ``[lo, hi)``."""
    for before in _SENTENCE_START.finditer(text, max(0, lo - 4), hi):  # its mark and closing quotes are before lo
        if before.end() >= lo:
            return before.end() if before.end() < hi else -1
    return -1


def sentence_spans(text: str, fewest: int = 1) -> Iterator[tuple[int, int]]:
    """Yield start and end of each sentence; one of less than ``fewest`` characters is joined to the next."""
    start = 0
    while start < len(text):
        end = first_sentence_start(text, start + fewest, len(text))
        end = len(text) if end < 0 else end
        yield start, end
        start = end


def first_line_start(text: str, lo: int, hi: int) -> int:
    """Find the first start of a line that is not blank in ``[lo, hi)``; ``lo`` is 1 or more."""
    line_end = text.find("\n", lo - 1, hi)
    return _within(next_word(text, line_end), hi) if line_end >= 0 else -1


def first_word_start(text: str, lo: int, hi: int) -> int:
    """Find the first start of a word in ``[lo, hi)``; ``lo`` is 1 or more."""
    space = _SPACE.search(text, lo - 1, hi)
    return _within(next_word(text, space.end()), hi) if space else -1


def _within(at: int, hi: int) -> int:
    return at if at < hi else -1
