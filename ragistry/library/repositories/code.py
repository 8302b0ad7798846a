"""Conversion of code in Hugo pages (shortcodes, ``<pre>``, indented lines) to fenced code.

The chunker then recognises it as code, and does not read a comment in it (``# install``) as a heading. Hugo expands
shortcodes before it parses Markdown. Indented lines are code as in CommonMark 0.31.2 (sections 4.4 and 5.2), also in
lists.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import unescape
from itertools import accumulate
from typing import NamedTuple

from ragistry.readers.markdown import outline

# Lengths are bounded, and a mark ends before the next one, so that matching an unclosed mark stays fast.
_MARK = re.compile(
    r"\{\{[<%]\s*+(?P<closing>/)?\s*+(?P<name>highlight|code-toggle)(?=[\s/>%])"
    r"(?P<words>(?:\s++(?P<language>[\w+#.-]++)(?=[\s>%]))?[^{}]{0,2000}?)[>%]\}\}"
)
_LEAD = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,3}[.)])[ \t]+)?")
_PRE = re.compile(r"^(?P<lead>[ \t>]*)<pre(?:\s[^<>]*)?>", re.MULTILINE | re.IGNORECASE)
_END_OF_PRE = re.compile(r"</pre\s*>", re.IGNORECASE)
_INDENTED = re.compile(r"(?:\A|\n)(?: {4}| {0,3}\t)[ \t]*\S")
_TAGS = re.compile(r"</?(?:a|b|code|em|font|i|kbd|mark|samp|span|strong|var)\b[^<>]*>", re.IGNORECASE)

Span = tuple[int, int]


class CodeBlock(NamedTuple):
    """The marks of a shortcode and the text between them, as offsets."""

    start: int
    body: int
    body_end: int
    end: int
    language: str


def code_spans(text: str) -> list[Span]:
    """List the positions of fences, and of shortcodes with code outside fences."""
    blocks, fences = _blocks(text)
    return sorted([*fences, *((block.start, block.end) for block in blocks)])


def fenced(text: str) -> str:
    """Put all code into fences. Existing fences do not change."""
    return _indented_fenced(_pre_fenced(_shortcodes_fenced(text)))


def _blocks(text: str) -> tuple[list[CodeBlock], list[Span]]:
    """List the shortcodes with code, and the fences outside them."""
    pairs = list(_pairs(text))
    parts, done = [], 0
    for pair in pairs:
        parts += [text[done : pair.start], " " * (pair.end - pair.start)]
        done = pair.end
    sketch = outline("".join([*parts, text[done:]]))
    return [pair for pair in pairs if not sketch.has_code(pair.start, pair.end)], sketch.fences


def _pairs(text: str) -> Iterator[CodeBlock]:
    opened: re.Match[str] | None = None
    for mark in _MARK.finditer(text):
        if not mark["closing"]:
            opened = opened if mark["words"].rstrip().endswith("/") else mark
        elif opened and opened["name"] == mark["name"]:
            language = opened["language"] if opened["name"] == "highlight" else ""
            yield CodeBlock(opened.start(), opened.end(), mark.start(), mark.end(), language or "")
            opened = None


def _shortcodes_fenced(text: str) -> str:
    parts, done = [], 0
    for block in _blocks(text)[0]:
        parts += [text[done : block.start], _as_fence(text, block)]
        done = block.end
    return "".join([*parts, text[done:]])


def _as_fence(text: str, block: CodeBlock) -> str:
    """Convert a shortcode to a fence, or to code in backticks within a line."""
    body = text[block.body : block.body_end]
    is_led = _LEAD.fullmatch(text, text.rfind("\n", 0, block.start) + 1, block.start) is not None
    rest = _rest_of_line(text, block.end)
    if "\n" not in body and (not is_led or rest):
        return body if "`" in body else f"`{body.strip()}`"
    if body.partition("\n")[0].strip() or "\n" not in body:
        body = f"\n{body}"
    if body.rpartition("\n")[2].strip(" \t>"):
        body += "\n"
    fence = _fence(body)
    return "".join(["" if is_led else "\n", fence, block.language, body, fence, "\n" if rest else ""])


def _rest_of_line(text: str, start: int) -> str:
    end = text.find("\n", start)
    return text[start : len(text) if end < 0 else end].strip()


def _fence(body: str) -> str:
    """Return a fence that does not occur in the text."""
    return "`" * max([3, *(len(marks) + 1 for marks in re.findall("`+", body))])


def _pre_fenced(text: str) -> str:
    parts, done = [], 0
    sketch = outline(text)
    for opening in _PRE.finditer(text):
        if opening.start() < done or sketch.has_code(*opening.span()):
            continue
        closing = _END_OF_PRE.search(text, opening.end())
        if closing is None:
            break
        body = unescape(_TAGS.sub("", text[opening.end() : closing.start()])).strip("\n")
        fence = f"{opening['lead']}{_fence(body)}"
        end = "\n" if _rest_of_line(text, closing.end()) else ""
        parts += [text[done : opening.start()], f"{fence}\n{body}\n{fence}{end}"]
        done = closing.end()
    return "".join([*parts, text[done:]])


def _indented_fenced(text: str) -> str:
    if not _INDENTED.search(text):
        return text
    lines = text.split("\n")
    code = dict(indented_code(lines, _in_fences(text, lines)))
    done: list[str] = []
    run: list[str] = []
    gap: list[str] = []
    lead = ""
    for number, line in enumerate(lines):
        if number in code:
            lead = lead if run else " " * code[number]
            run += [*gap, lead + dedented(line, code[number] + 4)]
            gap = []
        elif run and not line.strip():
            gap.append(line)
        else:
            done += [*_in_fence(run, lead), *gap, line]
            run, gap = [], []
    return "\n".join([*done, *_in_fence(run, lead), *gap])


def _in_fences(text: str, lines: Sequence[str]) -> list[bool]:
    sketch = outline(text)
    ends = accumulate(len(line) + 1 for line in lines)
    return [sketch.has_code(end - len(line) - 1, end) for line, end in zip(lines, ends, strict=True)]


def _in_fence(run: Sequence[str], lead: str) -> list[str]:
    fence = lead + _fence("\n".join(run))
    return [fence, *run, fence] if run else []


_HEADING = re.compile(r" {0,3}#{1,6}(?:\s|$)")
_STARTS_WITH_MARK = re.compile(r"\s*\{\{[<%]")
_ITEM = re.compile(r"(?P<indent>[ \t]*)(?:[-*+:]|\d{1,9}[.)]|(?P<note>\[\^[^\]\s]+\]:))(?:[ \t]+|$)")
_RULE = re.compile(r"\s*([-*_])(?:[ \t]*\1){2,}\s*")


def indented_code(lines: Sequence[str], is_fenced: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """Find the lines that are code because of their indentation.

    Yields:
        The index of the line, and the number of indentation columns that belong to the enclosing list.
    """
    lists: list[int] = []  # the text columns of the list items that may contain the line
    is_free = True  # no open paragraph or HTML, which an indented line would continue
    for number, line in enumerate(lines):
        if (is_fenced[number] and number and is_fenced[number - 1]) or not line.strip():
            is_free = not is_fenced[number]
            continue
        column = _columns(line[: len(line) - len(line.lstrip(" \t"))])
        is_heading = _HEADING.match(line) is not None
        if is_free or is_heading or is_fenced[number]:
            lists = [start for start in lists if start <= column]
        within = lists[-1] if lists else 0
        if is_free and not is_fenced[number] and column >= within + 4 and not _STARTS_WITH_MARK.match(line):
            yield number, within
            continue
        is_free = is_heading
        item = _ITEM.match(line)
        if item and column < within + 4 and not _RULE.fullmatch(line):
            lists = [*(start for start in lists if start <= column), _text_of(item)]


def _text_of(item: re.Match[str]) -> int:
    """Return the column at which the text of a list item begins."""
    if item["note"]:
        return _columns(item["indent"]) + 4
    gap = _columns(item[0]) - _columns(item[0].rstrip())
    return _columns(item[0].rstrip()) + (gap if 1 <= gap <= 4 else 1)


def _columns(text: str) -> int:
    return len(text.expandtabs(4))


def dedented(line: str, columns: int) -> str:
    """Remove columns of indentation. A tab extends to the next multiple of four."""
    rest = line.lstrip(" \t")
    return line[: len(line) - len(rest)].expandtabs(4)[columns:] + rest
