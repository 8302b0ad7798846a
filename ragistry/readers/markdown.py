r"""The structure of a Markdown text for the chunker: sections and fenced code.

Headings are ATX (``## Install``) and setext (underlined with ``===`` or ``---``), as in CommonMark; an apparent heading
inside a fence is code, and in an HTML comment nothing. A fence may be indented, inside a list or a quotation, and
unclosed.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ragistry.text.boundaries import next_word

_ITEM = r"(?:[-*+]|\d{1,3}[.)])[ \t]"
_BLOCK = re.compile(
    r"\n(?=[ \t>]*+[#`~=*+\d<-])(?:"  # skips most lines
    rf"[ \t>]*+(?:{_ITEM}+)?+(?P<fence>`{{3,}}+(?![^\n]*`)|~{{3,}}+)[^\n]*+"
    r"| {0,3}(?P<comment><!--)"
    r"| {0,3}(?P<marks>\#{1,6})(?!\#)(?:[ \t]+(?P<title>[^\n]*+))?(?=\s|\Z)"
    r"| {0,3}(?P<underline>=++|-++)[ \t\r]*+(?=\n|\Z))"
)
_PARAGRAPH = re.compile(rf" {{0,3}}(?=[^\s>|])(?!{_ITEM})")
_ATTRIBUTES = re.compile(r"\{[#.][^{}]*\}$")
_CLOSING_MARKS = re.compile(r"(?:^|\s)#+$")
_LINK = re.compile(r"!?\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])")
_LITERAL = re.compile(r"\\([!-/:-@\[-`{-~])|(`{1,3})(?!`)([^`]+)\2(?!`)")
_MARKED = re.compile(r"(?P<mark>\*{1,3})(?! )(?P<text>[^*]+)(?<! )(?P=mark)")
_UNDERLINED = re.compile(r"(?<!\w)(?P<mark>_{1,3})(?! )(?P<text>[^_]+(?:_+[^_\W]+)*)(?<! )(?P=mark)(?!\w)")
_KEPT = re.compile("[\ue000-\ue0ff]")
_LONGEST_TITLE = 200  # characters; every chunk of the section carries it


class Section(NamedTuple):
    """A heading and the text up to the next heading, as offsets into the text.

    ``body``: the first character below the heading, ``stop`` without one. ``context``: the titles from the outermost
    heading to this one, "Install > Requirements". Text before the first heading has level 0 and no title.
    """

    start: int
    stop: int
    body: int
    level: int
    title: str
    context: str

    @property
    def bare(self) -> bool:
        """Whether the heading has no text below it."""
        return self.body == self.stop


class Outline(NamedTuple):
    """The sections and the fenced code ``(start, end)`` of a text, each in order."""

    sections: list[Section]
    fences: list[tuple[int, int]]

    def section_at(self, start: int, end: int) -> Section:
        """Return the section of the span's first text; headings without text are skipped."""
        at = bisect_left(self.sections, (start + 1,)) - 1
        while self.sections[at].bare and at + 1 < len(self.sections) and self.sections[at + 1].start < end:
            at += 1
        return self.sections[at]

    def has_code(self, start: int, end: int) -> bool:
        """Return whether the span contains a part of a fence."""
        before = bisect_left(self.fences, (end,)) - 1
        return before >= 0 and self.fences[before][1] > start


_Heading = tuple[int, int, int, str]  # start, end, level, title


def outline(text: str, breaks: Sequence[int] = ()) -> Outline:
    """Parse the outline of a text without front matter; a text without headings is one section.

    ``breaks``: offsets at which the headings above end, such as those of a slide where the next one begins.
    """
    headings: list[_Heading] = []
    fences: list[tuple[int, int]] = []
    lines = "\n" + text  # with a line end before every line; offsets are one more than in the text
    opened: re.Match[str] | None = None
    done, is_open = 0, False
    for block in _BLOCK.finditer(lines):
        kind, end = block.lastgroup, block.end()
        if block.start() < done:  # in a comment
            continue
        if opened:
            if kind != "fence" or not _closes(block, opened["fence"]):
                continue
            fences.append((opened.start("fence") - 1, block.end("fence") - 1))
            opened = None
        elif kind == "fence":
            opened = block
        elif kind == "comment":
            if is_open:
                continue
            closing = lines.find("-->", end)
            is_open, end = closing < 0, closing + 3
            if is_open:  # an opening without an end is text
                continue
        elif kind != "underline":
            marks = block["marks"]
            headings.append((block.start("marks") - 1, end - 1, len(marks), _title(block["title"] or "")))
        elif (start := _title_above(lines, done, block.start())) >= 0:
            level = 1 if block["underline"][0] == "=" else 2
            headings.append((start, end - 1, level, _title(lines[start + 1 : block.start()])))
        done = end
    if opened:
        fences.append((opened.start("fence") - 1, len(text.rstrip())))
    return Outline(list(_sections(text, headings, breaks)), fences)


def _closes(block: re.Match[str], fence: str) -> bool:
    """Return whether the line closes ``fence``: at least as many of its marks, and nothing else."""
    return block["fence"].startswith(fence) and block[0].strip("\n\r\t >") == block["fence"]


def _title_above(lines: str, lo: int, underline: int) -> int:
    """Return the offset of the line above if it is a separate paragraph and not before ``lo``; else -1."""
    start = lines.rfind("\n", lo, underline)
    if start < 0 or not _PARAGRAPH.match(lines, start + 1, underline):
        return -1
    before = lines[lines.rfind("\n", 0, start) + 1 : start]
    return start if start == lo or not before.strip() else -1


def _title(raw: str) -> str:
    """Return the text of a heading, without closing marks, attributes and link targets."""
    title = raw[:_LONGEST_TITLE].strip()
    if title.endswith("}"):
        title = _ATTRIBUTES.sub("", title).rstrip()
    if title.endswith("#"):
        title = _CLOSING_MARKS.sub("", title)
    return plain_heading(title)


def plain_heading(title: str) -> str:
    """Return a heading as a page shows it: without link targets, marks of emphasis and code, and backslashes."""
    if "[" in title:
        title = _LINK.sub(r"\1", title)
    literals: list[str] = []  # code and escaped characters, in which nothing is a mark

    def keep(found: re.Match[str]) -> str:
        literals.append(found[1] or found[3].strip())
        return chr(0xE000 + len(literals) - 1)

    title = _LITERAL.sub(keep, _KEPT.sub("", title))
    for marked in (_MARKED, _UNDERLINED):
        title = marked.sub(r"\g<text>", title)
    return _KEPT.sub(lambda kept: literals[ord(kept[0]) - 0xE000], title)


def _sections(text: str, headings: list[_Heading], breaks: Sequence[int]) -> Iterator[Section]:
    headings = sorted([*headings, *((start, start, 0, "") for start in breaks)])
    first = headings[0][0] if headings else len(text)
    if not headings or text[:first].strip():
        yield Section(0, first, 0, 0, "", "")
    path: list[tuple[int, str]] = []
    stops = [*(heading[0] for heading in headings[1:]), len(text)]
    for (start, end, level, title), stop in zip(headings, stops, strict=False):
        if level == 0:  # a break
            path.clear()
            if text[start:stop].strip():
                yield Section(start, stop, start, 0, "", "")
            continue
        while path and path[-1][0] >= level:
            path.pop()
        above = path[-1][1] if path else ""
        context = f"{above} > {title}" if above and title else above or title
        path.append((level, context))
        yield Section(start, stop, min(next_word(text, end), stop), level, title, context)
