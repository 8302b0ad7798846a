"""Split an answer into sentences, and read its citations in the forms in which models write them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

from ragistry.text.boundaries import next_word, sentence_spans

Kind = Literal["paragraph", "item", "heading", "quote", "row", "code"]

_WORD = r"(?:sources?|passages?|documents?|docs?|references?|refs?|citations?|cites?|quellen?)[.:=\uff1a_-]{0,2}\s*"
_LABEL = (
    rf"(?:{_WORD}|(?:chunks?|contexts?|excerpts?|snippets?|results?|ids?|no|nr|n\u00b0|\u2116)[.:=_-]{{0,2}}\s*|"
    r"(?:来源|來源|引用|出典|资料|段落|文档|источник|fuente|fonte)[:\uff1a]?\s*)"
)
_DASH = r"[-\u2010-\u2015\u2212~]"
_PLACE = (
    r"(?:pp?|pages?|ll?|lines?|sections?|secs?|§{1,2}|¶{1,2}|paragraphs?|paras?|chapters?|chap|ch|slides?|sheets?|rows?|"
    r"tables?|figures?|figs?|fig|seiten?|s|zeilen?|abschnitte?|kapitel)\.?\s*"
    rf"\d[\d.]*(?:\s*{_DASH}\s*\d[\d.]*)?"
)
"""A place in a passage, which is not the number of another one: [1, p. 2], [3 §4], [2: lines 5-7]."""
_ONE = rf"\^?(?:{_LABEL})?#?\d{{1,3}}(?::\d+)?(?:\s*[,:;]?\s*{_PLACE})*\^?"
_LIST = rf"{_ONE}(?:\s*(?:[,;&/|\uff0c\uff1b、]|{_DASH}|and|to|und|et|y|和)\s*{_ONE})*"
_OPEN, _CLOSE = r"\\{0,2}[\[\uff3b【\u3014〖⟦]", r"\\{0,2}[\]\uff3d】\u3015〗⟧]"
_BRACKETS = rf"(?:{_OPEN}){{1,2}}\s*{_LIST}\s*(?:†[^\]】\n]*)?(?:{_CLOSE}){{1,2}}"
_SERIES = rf"{_BRACKETS}(?:\s*,?\s*{_BRACKETS})*"
_TAG = r"(?:cite|citation|ref|reference|source|passage|doc|document)"
_ELEMENT = (
    rf"<{_TAG}\b[^<>\n]{{0,60}}>\s*(?:{_SERIES}|{_LIST})\s*</{_TAG}>|"
    rf"<{_TAG}\s+\w{{1,10}}\s*=\s*[\"']?{_LIST}[\"']?\s*(?:/>|>\s*</{_TAG}>)"
)
_IN_CODE = rf"`{{1,2}}\s*{_SERIES}\s*`{{1,2}}"
_MARK = rf"(?:<sup>)?\*{{0,3}}\^?(?:{_BRACKETS}|\({_WORD}{_LIST}\)|{_ELEMENT}|{_IN_CODE})\^?\*{{0,3}}(?:</sup>)?"
_CITED = re.compile(
    rf"(?<!\s)\s*+((?:{_MARK}(?:\([^\s)]*\))?(?:[^\S\n]*(?:,|;|&|{_DASH}|and)?[^\S\n]*(?={_MARK}))?)+)", re.IGNORECASE
)
"""Citations as models write them: [1], [1, 2], [1-3], [1] and [2], 【1†source】, [^1], [Source 1], [citation:1], bold,
as links, as elements such as <cite>1</cite>, as code, with a place as in [1, p. 2], with escaped or other brackets."""
_CODE_MARK = re.compile(_IN_CODE, re.IGNORECASE)
_BEGUN = re.compile(
    rf"(?:{_OPEN}|`{{1,2}}{_OPEN}|<{_TAG}\b)"
    rf"[^\]\uff3d】\u3015〗⟧<>\n]{{0,30}}(?:>[^<>\n]{{0,30}}(?:<[^<>\n]*)?)?$",
    re.IGNORECASE,
)
"""An incomplete citation at the end of a text."""
_NUMBERS = re.compile(rf"(\d+)(?::\d+)?(?:\s*{_DASH}\s*\^?(?:{_LABEL})?(\d+))?", re.IGNORECASE)
_NAME = re.compile(rf"†[^\]】]*|\]\([^)]*\)|(?<![^\W\d_]){_PLACE}", re.IGNORECASE)
LONGEST_RANGE = 50
"""Maximum number of passages that one citation such as [1-9] names."""

_FENCE = re.compile(
    r"^[^\S\n]*(?P<fence>`{3,}(?=[^`\n]*$)|~{3,})[^\n]*(?:\n(?P<code>.*?))??(?:^[^\S\n]*(?P=fence)[`~]*[^\S\n]*$|\Z)",
    re.DOTALL | re.MULTILINE,
)
"""A block of code; without an end, it includes the rest of the text."""
_CODE = re.compile(r"(?<!`)(`+)(?!`)[^\n]*?(?<!`)\1(?!`)")
_MARKERS: dict[Kind, re.Pattern[str]] = {
    "item": re.compile(r"(?:[-*+•]|\(?\d{1,3}[.)])[^\S\n]+(?:\[[ xX]\][^\S\n]+)?"),
    "heading": re.compile(r"#{1,6}[^\S\n]+"),
    "quote": re.compile(r">[^\S\n]*"),
    "row": re.compile(r"(?=\|)"),
}
_TITLE = re.compile(r"(\*\*|__)[^.!?\n]+\1:?")
"""A line in bold that serves as a heading."""
_LEAD_IN = re.compile(r"[:\uff1a][*_)]*\Z")
_LEAD_IN_LINE = re.compile(r"[:\uff1a][*_)]*[^\S\n]*\n\s*")
_AFTER = re.compile(r"[^\S\n]*\n\s*|[^\S\n]+(?=[^\W\d_])")
"""Between a citation and a sentence after it."""
_LINES_WITHOUT_WORDS = re.compile(r"\A[\W_]*\n|\n[\W_]*\Z")


class CitedSentence(NamedTuple):
    """A sentence of an answer, a block of code, or a row of a table.

    Attributes:
        text: Its text, without citations, fence, and marker of a list item, heading or quotation.
        numbers: Numbers of the passages that it cites or that a neighbour cites for it, from 1.
        kind: Kind of the block that starts with it; ``paragraph`` for a later sentence of any block.
        start: Offset of its first character in the answer.
        end: Offset after its last character; its citations are included.
        claims: Whether it states something that a passage could support, unlike a heading or a lead-in.
        has_mark: Whether the citations are its own.
    """

    text: str
    numbers: tuple[int, ...]
    kind: Kind
    start: int
    end: int
    claims: bool
    has_mark: bool


def cited_sentences(text: str) -> list[CitedSentence]:
    """Split an answer into sentences with their citations.

    A citation belongs to the sentence that contains it or ends before it, and to the sentences before that one in the
    same paragraph that have none. Code belongs to the citations of the sentence before it, and the items and rows
    below a lead-in to those of the lead-in, unless they have their own.
    """
    marks = [(*mark.span(1), cited_numbers(mark[1])) for mark in find_citations(text)]
    fences = {fence.start(): fence for fence in _FENCE.finditer(text)}
    found: list[CitedSentence] = []
    for start, stop in pairwise([*_starts(text, marks, list(fences.values())), len(text)]):
        end = start + len(text[start:stop].rstrip())
        own = [mark for mark in marks if start <= mark[0] < stop]
        numbers = tuple(dict.fromkeys(number for mark in own for number in mark[2]))
        fence = fences.get(start)
        kind, words = _words(text[start:end])
        if fence:
            kind, words = "code", fence["code"] or ""
        if fence or any(char.isalnum() for char in words):
            found.append(CitedSentence(words, numbers, kind, start, end, bool(words.strip()), bool(numbers)))
        elif found:  # a citation after its full stop, the border of a table
            last = found[-1]
            is_header = last.kind == kind == "row"
            found[-1] = last._replace(
                text=last.text if "\n" in text[last.end : start] else last.text + words.strip(),
                numbers=tuple(dict.fromkeys((*last.numbers, *numbers))),
                end=end,
                claims=last.claims and not is_header,
                has_mark=last.has_mark or bool(numbers),
            )
    return _shared(text, found)


def cited_numbers(mark: str) -> list[int]:
    """Return the numbers that a citation names; a range names all of its numbers."""
    numbers: list[int] = []
    for found in _NUMBERS.finditer(_NAME.sub("", mark)):
        first, last = int(found[1]), int(found[2] or found[1])
        numbers += range(first, min(last, first + LONGEST_RANGE) + 1)
    return numbers


def with_plain_citations(text: str, passages: int) -> str:
    """Write every citation as ``[1][2]`` in its place, without numbers above ``passages``."""
    parts, at = [], 0
    for mark in find_citations(text):
        numbers = [number for number in dict.fromkeys(cited_numbers(mark[1])) if 1 <= number <= passages]
        keeps_blank = bool(numbers) or "\n" in mark[0]
        parts += [text[at : mark.start(1) if keeps_blank else mark.start()], *(f"[{number}]" for number in numbers)]
        at = mark.end()
    return "".join([*parts, text[at:]])


def find_citations(text: str) -> list[re.Match[str]]:
    """Find the citations of a text, except those in code."""
    code = without_code(text)
    return [mark for mark in _CITED.finditer(text) if code[mark.start(1)] == text[mark.start(1)]]


def without_code(text: str) -> str:
    """Replace the characters of code by ``x``, so that nothing in it has a meaning; code that is a citation stays."""
    text = _FENCE.sub(lambda code: "x" * len(code[0]), text)
    return _CODE.sub(lambda code: code[0] if _CODE_MARK.fullmatch(code[0]) else "x" * len(code[0]), text)


def without_begun_citation(text: str) -> str:
    """Remove an incomplete citation from the end of a text that still arrives."""
    return _BEGUN.sub("", text)


def _words(text: str) -> tuple[Kind, str]:
    """Return the kind of a block, and its text without marker and citations."""
    parts, at = [], 0
    for mark in find_citations(text):
        parts.append(text[at : mark.start()])
        at = mark.end()
    text = _LINES_WITHOUT_WORDS.sub("", "".join([*parts, text[at:]])).lstrip()
    for kind, marker in _MARKERS.items():
        if found := marker.match(text):
            return kind, text[found.end() :]
    return "paragraph", text


def _starts(text: str, marks: Sequence[tuple[int, int, list[int]]], fences: Sequence[re.Match[str]]) -> list[int]:
    """Find where sentences start; a citation starts one if words follow it in its line."""
    plain = without_code(text)
    starts = {next_word(text, 0)}
    for start, end, _ in marks:
        begins_line = not text[text.rfind("\n", 0, start) + 1 : start].strip()
        leads = begins_line and text[end:].partition("\n")[0].strip(" .,;:|").strip()
        plain = plain[:start] + ("x" if leads else " ") * (end - start) + plain[end:]
        after = _AFTER.match(text, end)
        if after and not leads and after.end() < len(text) and not text[after.end()].islower():
            starts.add(after.end())
    starts |= {end for _, end in sentence_spans(plain)}
    starts |= {found.end() for found in _LEAD_IN_LINE.finditer(plain)}
    for fence in fences:
        starts = {start for start in starts if not fence.start() <= start < fence.end()}
        starts |= {fence.start(), next_word(text, fence.end())}
    return sorted(start for start in starts if start < len(text))


def _shared(text: str, sentences: Sequence[CitedSentence]) -> list[CitedSentence]:
    """Give each sentence the citations of its group, and recognise lead-ins and headings."""
    found = list(sentences)
    for at in reversed(range(len(found) - 1)):
        one, following = found[at], found[at + 1]
        between = text[one.end : following.start]
        introduces = not one.numbers or following.kind in ("item", "row", "code")
        if introduces and _LEAD_IN.search(one.text) and "\n" in between:
            found[at] = one._replace(claims=False)
        elif (
            not one.numbers
            and one.kind in ("paragraph", "item", "quote")
            and following.kind == "paragraph"
            and between.count("\n") < 2  # in the same paragraph
        ):
            found[at] = one._replace(numbers=following.numbers)
    of_lead_in: tuple[int, ...] = ()
    for at, one in enumerate(found):
        before = found[at - 1] if at else None
        if one.kind == "heading" or (not one.numbers and _TITLE.fullmatch(one.text)):
            found[at] = one._replace(claims=False)
        elif not one.numbers and before and one.kind == "code":
            found[at] = one._replace(numbers=before.numbers)
        elif not one.numbers and one.claims and one.kind in ("item", "row"):
            found[at] = one._replace(numbers=of_lead_in)
        if _LEAD_IN.search(one.text):
            of_lead_in = one.numbers
        elif one.kind in ("heading", "code") or (
            one.kind == "paragraph" and (before is None or "\n" in text[before.end : one.start])
        ):
            of_lead_in = ()
    return found
