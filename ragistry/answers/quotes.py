"""Compare the quotations and citations of an answer with the texts of the library, without a model.

A quotation is compared by its words and numbers in sequence, so that case, accents and white space do not matter.
"""

from __future__ import annotations

import html
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Literal

from ragistry.answers.quotations import AnswerReader, Cited, Place, Source
from ragistry.chunking.joined import lines_of
from ragistry.protocols import LibraryStore
from ragistry.text.analysis import LETTER
from ragistry.text.spellings import normalised, plain
from ragistry.types import SourceInfo

Verdict = Literal["found", "elsewhere", "missing", "unknown source", "unknown place", "uncited"]
LONGEST_OMISSION = 400
"""Words of a source that an omission, such as ``…``, may replace."""
_FIGURE = re.compile(r"\d+(?:[.,]\d+)*")
_WORD = re.compile(
    rf"(?:(?<![\w.,)\]}}])[-\u2212\u2013])?\d+(?:[.,]\d+)*|(?:(?!\d){LETTER})+|[^\W\d_]|[%\u2030\u00b0\u20ac\u00a3\u00a5]|\$(?=\d)"
)
"""A number with its sign, a word, a character of a script without spaces, or a unit."""
_MARKUP = re.compile(
    r"\]\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)|\]\[(?!\d)[^\[\]\n]*\]"
    r"|</?(?:a|b|br|code|em|i|img|kbd|li|mark|p|span|strong|sub|sup|td|th|tr|u)\b[^<>\n]*>"
)
"""Addresses of links and elements of HTML, which are not shown."""
_OMISSION = re.compile(r"[\[(]\s*(?:\.{2,}|\u2026)\s*[\])]|\.{3,}|\u2026|\. \. \.")
_INSERTED = re.compile(r"\[[^\[\]\d]{2,}\]")
_ANYWHERE = Cited("", (), ())
_KEYS = {
    "page": ("page", "page_label"),
    "line": ("line",),
    "sheet": ("sheet",),
    "chapter": ("chapter", "heading_context"),
    "section": ("chapter", "heading_context"),
    "": ("sheet", "part", "chapter", "heading_context"),
}


@dataclass(frozen=True, slots=True)
class CheckedQuote:
    """A quotation or citation.

    Attributes:
        text: The quotation; empty for a citation without one.
        verdict: ``found`` at the cited place, or in the library if nothing is cited; ``elsewhere`` in the cited source,
            or in the library if no source has the cited name; ``missing``; ``unknown source`` or ``unknown place`` if
            the library has no such source, or the source no such place; ``uncited`` if it is nowhere and nothing is
            cited.
        cited: What is cited.
        line: The line of the answer.
        source: Where the quotation stands.
        place: The line and the place there.
    """

    text: str
    verdict: Verdict
    cited: str
    line: int
    source: str = ""
    place: Mapping[str, Any] = field(default_factory=dict)


def compared(
    store: LibraryStore, known: Sequence[Source], text: str, numbers: Mapping[int, list[Cited]]
) -> tuple[list[CheckedQuote], list[str], list[str]]:
    """Compare the quotations and citations of an answer with the sources that it may cite; see `AnswerReader`.

    Returns:
        The quotations; the numbers that the cited passages do not have; and what was not compared.
    """
    answer, texts = AnswerReader(text, known, numbers), _Texts(store, known)
    found, not_quoted, named = list[CheckedQuote](), list[str](), set[str]()
    for block in answer.blocks:
        quotes = [texts.quotation(one.text, one.cited(), one.line) for one in block.quotations if _words(one.text)]
        answer.unread += [f"line {one.line}: {one.text}" for one in block.quotations if not _words(one.text)]
        named.update(one.cited for one in quotes if one.verdict != "found")
        found += quotes
        here = set[str]()
        for one in {one.shown: one for citation in block.citations for one in citation.all()}.values():
            here |= texts.figures_at(one)
            verdict = texts.citation(one, block.line)
            if verdict and one.shown not in named:
                named.add(one.shown)
                found.append(CheckedQuote("", verdict, one.shown, block.line))
        not_quoted += [one for one in block.figures if here and one.rpartition(" ")[2] not in here]
    return found, not_quoted, [*answer.unread, *dict.fromkeys(texts.not_compared)]


class _Texts:
    """Compares quotations with the texts of the library; the text of each cited source is built once."""

    def __init__(self, store: LibraryStore, known: Sequence[Source]) -> None:
        self._known = known
        self._figures: dict[str, Set[str]] = {}
        self._text = lru_cache(maxsize=1000)(lambda source: _Text(store, source[1]))
        self.not_compared: list[str] = []

    def quotation(self, quote: str, cited: Sequence[Cited], line: int) -> CheckedQuote:
        """Find a quotation at one of the cited places, else in the cited sources; without these, in the library."""
        shown = "; ".join(one.shown for one in cited)
        place: tuple[str, Mapping[str, Any]] = ("", {})
        known = [(one, source) for one in cited for source in one.sources]
        verdict: Verdict = "missing" if known else "unknown source" if cited else "uncited"
        for one, source in known or ((_ANYWHERE, source) for source in self._known):
            text = self._text(source)
            for first, last in text.spans(quote):
                place = source[1].source_file, text.place(first)
                if text.holds(one, first, last):
                    return CheckedQuote(quote, "found" if known or not cited else verdict, shown, line, *place)
                verdict = "elsewhere"
        return CheckedQuote(quote, verdict, shown, line, *place)

    def citation(self, cited: Cited, line: int) -> Verdict | None:
        """Return what is wrong with a citation, whatever is quoted from it."""
        if not cited.sources:
            return "unknown source" if cited.sure or cited.places else None
        wrong = False
        for place in cited.places:
            found = [self._text(source).lines_at(place) for source in cited.sources]
            wrong |= not any(found) and any(one is not None for one in found)
            if all(one is None for one in found):
                self.not_compared.append(f"line {line}: {place.shown} of {cited.name}")
        return "unknown place" if wrong else None

    def figures_at(self, cited: Cited) -> Set[str]:
        """Return the numbers at a cited place, and an empty text if it has any text."""
        if cited.shown not in self._figures:
            texts = map(self._text, cited.sources)
            lines = [one for text in texts for at, one in enumerate(text.lines, 1) if text.holds(cited, at, at)]
            self._figures[cited.shown] = {"" for _ in lines} | {one for line in lines for one in _FIGURE.findall(line)}
        return self._figures[cited.shown]


class _Text:
    """The text of a source."""

    def __init__(self, store: LibraryStore, info: SourceInfo) -> None:
        self._parts = list(lines_of(store, info))
        self._found: dict[str, Set[int] | None] = {}
        self._names: dict[str, dict[str, list[int]]] = {}
        self.lines = [line for part in self._parts for line in part.texts]

    @cached_property
    def _words(self) -> str:
        return "\n".join(" ".join(_words(line)) for line in self.lines)

    def spans(self, quote: str) -> Iterator[tuple[int, int]]:
        """Yield the first and the last line of each place that has the words of a quotation, in sequence.

        The text that an omission or a remark in square brackets replaces is not compared.
        """
        quote = re.sub(r"\[(\w)\]", r"\1", quote)
        for written in dict.fromkeys((quote, _INSERTED.sub("\u2026", quote))):
            parts = filter(None, map(_words, _OMISSION.split(written)))
            pieces = [r"\s+".join(map(re.escape, words)) for words in parts]
            rest = "".join(rf"(?>(?:\s+\S+){{0,{LONGEST_OMISSION}}}?\s+{piece}(?!\S))" for piece in pieces[1:])
            line, at = 1, 0
            for found in re.finditer(rf"(?<!\S){pieces[0]}(?!\S){rest}", self._words):
                line += self._words.count("\n", at, found.start())
                at = found.start()
                yield line, line + found[0].count("\n")

    @cached_property
    def _places(self) -> list[dict[str, Any]]:
        found = []
        for part in self._parts:
            offset = 0
            for text in part.texts:
                place = part.place_at(offset)
                offset += len(text) + 1
                found.append(place)
        return found

    def place(self, line: int) -> dict[str, Any]:
        """Return the page or sheet of a line, and its number."""
        place = self._places[line - 1]
        return {key: place[key] for key in ("page", "page_label", "sheet") if key in place} | {"line": line}

    def holds(self, cited: Cited, first: int, last: int) -> bool:
        """Return whether some of these lines are at one of the cited places of each kind."""
        kinds = defaultdict[str, set[int]](set)
        for place in cited.places:
            if (lines := self.lines_at(place)) is not None:
                kinds[place.kind] |= lines
        return all(not at.isdisjoint(range(first, last + 1)) for at in kinds.values())

    def lines_at(self, place: Place) -> Set[int] | None:
        """Return the lines at a place; none if there is no such place, and None if that cannot be said."""
        if place.shown not in self._found:
            named = self._lines_by_name(place.kind)
            wanted = {name for low, high in place.values for name in _between(low, high, named)}
            found = {line for name in wanted for line in named.get(name, ())}
            is_number = place.values[0][0].isdecimal()
            can_be_said = found or (place.kind and any(not is_number or name[:1].isdecimal() for name in named))
            self._found[place.shown] = found if can_be_said else None
        return self._found[place.shown]

    def _lines_by_name(self, kind: str) -> dict[str, list[int]]:
        """Return the lines at each page or line by its number, and at each heading by its words."""
        if kind not in self._names:
            lines = self._names[kind] = defaultdict[str, list[int]](list)
            for number, here in enumerate(self._places, 1):
                names = {str(number)} if kind == "line" else set[str]()
                for value in (str(here[key]) for key in _KEYS[kind] if key in here):
                    names |= {value.casefold()} if kind in ("page", "line") else _heading_names(value)
                for name in names:
                    lines[name].append(number)
        return self._names[kind]


@lru_cache(maxsize=10_000)
def _heading_names(headings: str) -> Set[str]:
    """Return the names of headings: each, several that follow each other, and the number of the last."""
    parts = [" ".join(_words(one)) for one in headings.split(">")]
    numbers = [one[0] for part in parts if (one := re.findall(r"^(?:\w{1,12} )?(\d[\d.]*)(?!\S)", part))]
    ends = range(1, len(parts) + 1)
    return {" ".join(parts[start:end]) for end in ends for start in range(end)} | set(numbers)


def _between(low: str, high: str, known: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of a range, which may be open."""
    if low.isdecimal() and (high or "0").isdecimal():
        last = int(high) if high else max((int(one) for one in known if one.isdecimal()), default=0)
        yield from map(str, range(int(low), min(last, int(low) + 10_000) + 1))
    else:
        yield " ".join(_words(low))


def _words(text: str) -> list[str]:
    """Return the words and numbers of a text in plain letters."""
    text = html.unescape(_MARKUP.sub(" ", text)).translate({0x2212: "-", 0x2013: "-"})
    return _WORD.findall(plain(normalised(text).casefold()))
