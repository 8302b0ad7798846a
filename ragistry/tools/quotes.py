"""Check the quotations and citations of an answer against the documents, without a model.

A quotation is compared by the words of `text.phrases`, so that case, accents, endings and white space do not matter.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ragistry.pipelines.citations import cited_sentences
from ragistry.text.phrases import count_held, quotations
from ragistry.tools.failures import CallError
from ragistry.tools.reach import Reach
from ragistry.tools.reading import TOKENS, sources_in
from ragistry.tools.source_lines import lines_of
from ragistry.tools.tokens import estimated_tokens
from ragistry.types import SourceInfo
from ragistry.utils.ids import composed
from ragistry.utils.quoting import visible_line
from ragistry.utils.wording import numbered

Verdict = Literal["found", "elsewhere", "missing", "unknown source", "uncited"]
LONGEST_ANSWER = 1_000_000
"""Characters of an answer that is checked."""
FEWEST_WORDS = 2
"""Words of a quotation that is checked; a single word in quotation marks is often only a name."""
_FIGURE = re.compile(r"\d+(?:[.,]\d+)*")
_REFERENCE = re.compile(r"^[ \t]*(?:[-*][ \t]+)?(?:\[\^?(\d{1,3})\]:?|(\d{1,3})[.)])[ \t]+(\S.*)$", re.MULTILINE)
"""A line that says what a number stands for: ``[1] guide.md, p. 3``."""
_PAGE = re.compile(r"\b(?:pp?|pages?|slides?|seiten?|s)\b\.?\s*(\d+)", re.IGNORECASE)
_LINE = re.compile(r"\b(?:ll?|lines?|zeilen?)\b\.?\s*(\d+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """Check an answer.

    Attributes:
        answer: The answer: Markdown, or the JSON of ``ragistry ask --json``.
        collection: Look only into this collection.
        max_tokens: Maximum size of the answer.
    """

    answer: str = field(metadata={"description": 'The answer, as Markdown: "a quotation" [1] or (guide.pdf, p. 3).'})
    collection: str | None = field(default=None, metadata={"description": "Only this collection.", "short": "-c"})
    max_tokens: int = field(default=4_000, metadata=TOKENS)


@dataclass(frozen=True, slots=True)
class CheckedQuote:
    """A quotation or citation.

    Attributes:
        text: The quotation, or the cited sentence.
        verdict: ``found`` at the cited place; ``elsewhere`` in the source or the library; ``missing``;
            ``unknown source`` if no source has the cited name; ``uncited`` if it is nowhere and nothing is cited.
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


@dataclass(frozen=True, slots=True)
class CheckAnswer:
    """The result of a check.

    Attributes:
        quotes: The quotations and citations in their order.
        not_quoted: Numbers in cited sentences that the cited passages do not have, each with its line in the answer.
            They may be computed, and so right.
        ok: Whether every quotation and citation stands at its place.
        left_out: How many quotations and numbers are not listed; those that are not at their place are listed first.
    """

    quotes: list[CheckedQuote]
    not_quoted: list[str]
    ok: bool
    left_out: int = 0


@dataclass(slots=True)
class _Cited:
    """A cited place: a source, and a page or line of it; or a passage of the answer's own JSON."""

    shown: str
    source: tuple[str, SourceInfo] | None
    page: int | None = None
    line: int | None = None


def check_quotes(reach: Reach, request: CheckRequest) -> CheckAnswer:
    """Check an answer. Raises `CallError`."""
    if len(request.answer) > LONGEST_ANSWER:
        raise CallError(
            f"the answer has more than {LONGEST_ANSWER:,} characters, which is the limit; check parts of it"
        )
    known = sources_in(reach, request.collection, None)
    text, numbers = _read_answer(request.answer, known)
    if not text.strip():
        raise CallError("the answer has no text; write Markdown, or the JSON of `ragistry ask --json`")
    check = _Check(reach, known)
    found: list[CheckedQuote] = []
    unknown: set[str] = set()
    not_quoted: list[str] = []
    body = _REFERENCE.sub(lambda one: " " * len(one[0]) if _named(one[3], known) else one[0], text)
    for sentence in cited_sentences(body):
        written = body[sentence.start : sentence.end]
        cited = [numbers.get(number, _Cited(f"[{number}]", None)) for number in sentence.numbers]
        named = _by_name(written, known)
        cited += [one for _, one in named]
        line = text.count("\n", 0, sentence.start) + 1
        quoted = [one for one in _quoted(written, sentence.text, sentence.kind) if len(one.split()) >= FEWEST_WORDS]
        found += [check.quotation(one, _nearest(written, one, cited, named), line) for one in quoted]
        for one in cited:
            if not one.source and one.shown not in unknown:
                unknown.add(one.shown)
                found.append(CheckedQuote(sentence.text[:200], "unknown source", one.shown, line))
        passages = [check.text_at(one) for one in cited if one.source]
        if passages:
            here = {figure for passage in passages for figure in _FIGURE.findall(passage)}
            plain = _without_places(sentence.text)
            not_quoted += [f"line {line}: {figure}" for figure in _FIGURE.findall(plain) if figure not in here]
    return _within(CheckAnswer(found, not_quoted, not any(map(_is_wrong, found))), request.max_tokens)


def _is_wrong(one: CheckedQuote) -> bool:
    return one.verdict not in ("found", "uncited")


def _within(checked: CheckAnswer, room: int) -> CheckAnswer:
    """Drop entries until the rest fits; numbers, and quotations at their place, are dropped first."""
    kept: set[int] = set()
    for at in sorted(range(len(checked.quotes)), key=lambda at: not _is_wrong(checked.quotes[at])):
        one = checked.quotes[at]
        room -= estimated_tokens(f"{one.text[:200]}{one.cited[:200]}{one.source}") + 12
        if room >= 0:
            kept.add(at)
    numbers = checked.not_quoted[: max(0, room // 12)]
    left_out = len(checked.quotes) - len(kept) + len(checked.not_quoted) - len(numbers)
    quotes = [one for at, one in enumerate(checked.quotes) if at in kept]
    return CheckAnswer(quotes, numbers, checked.ok, left_out)


def check_text(found: CheckAnswer) -> str:
    """Write the result of a check."""
    lines = []
    for one in found.quotes:
        place = ", ".join(f"{key} {visible_line(value, 60)}" for key, value in one.place.items())
        there = f": {visible_line(one.source)} ({place})" if one.source and one.verdict == "elsewhere" else ""
        cited = f" {visible_line(one.cited, 200)}" if one.cited else ""
        lines.append(f"line {one.line}: {one.verdict}{there}{cited}: {visible_line(one.text, 200)}")
    lines += [f"{one} is not quoted from the cited passages" for one in found.not_quoted]
    wrong = sum(map(_is_wrong, found.quotes))
    left_out = f", {found.left_out:,} more left out" if found.left_out else ""
    lines.append(f"{numbered(len(found.quotes), 'quotation[|s]')} checked, {wrong} not at their place{left_out}")
    return "\n".join(lines)


class _Check:
    """Compares quotations with the texts of the library; the text of each source is built once."""

    def __init__(self, reach: Reach, known: Sequence[tuple[str, SourceInfo]]) -> None:
        self._store = reach.library.store
        self._language = reach.library.reading.language
        self._known = known
        self._pages: dict[tuple[str, str], list[tuple[dict[str, Any], str]]] = {}

    def quotation(self, quote: str, cited: Sequence[_Cited], line: int) -> CheckedQuote:
        """Find a quotation at the cited places, else in the cited sources, else in the library."""
        shown = ", ".join(one.shown for one in cited)
        for one in cited:
            if one.source and self._holds(self.text_at(one), quote):
                return CheckedQuote(quote, "found", shown, line, one.source[1].source_file)
        for source in [one.source for one in cited if one.source] or self._known:
            for place, text in self._parts(source):
                if self._holds(text, quote):
                    return CheckedQuote(
                        quote, "elsewhere" if cited else "found", shown, line, source[1].source_file, place
                    )
        return CheckedQuote(quote, "missing" if cited else "uncited", shown, line)

    def text_at(self, cited: _Cited) -> str:
        """Return the text of a cited place."""
        assert cited.source is not None
        return "\n".join(
            text
            for place, text in self._parts(cited.source)
            if cited.page in (None, place.get("page"), _number(place.get("page_label")))
            and (cited.line is None or place["line"] <= cited.line <= place["line"] + text.count("\n"))
        )

    def _holds(self, text: str, quote: str) -> bool:
        return composed(quote) in composed(text) or count_held([quote], text, _plain_language(self._language)) == 1

    def _parts(self, source: tuple[str, SourceInfo]) -> list[tuple[dict[str, Any], str]]:
        """Return the text of each page of a source, or its whole text, with its first line."""
        key = source[0], source[1].source_file
        if key not in self._pages:
            parts: list[tuple[dict[str, Any], list[str]]] = []
            last: dict[str, Any] | None = None
            for lines in lines_of(self._store, source[1]):
                offset = 0
                for number, text in enumerate(lines.texts, lines.first):
                    place = lines.place_at(offset)
                    offset += len(text) + 1
                    page: dict[str, Any] = {
                        name: place[name] for name in ("page", "page_label", "sheet") if name in place
                    }
                    if page != last:
                        parts.append((page | {"line": number}, []))
                        last = page
                    parts[-1][1].append(text)
            self._pages[key] = [(place, "\n".join(texts)) for place, texts in parts]
        return self._pages[key]


def _read_answer(text: str, known: Sequence[tuple[str, SourceInfo]]) -> tuple[str, dict[int, _Cited]]:
    """Return the Markdown of an answer, and what its numbers stand for."""
    try:
        values = json.loads(text) if text.lstrip().startswith("{") else None
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        found = {}
        for mark in _REFERENCE.finditer(text):
            if cited := _named(mark[3], known):
                found[int(mark[1] or mark[2])] = cited
        return text, found
    documents = values.get("documents")
    numbers: dict[int, _Cited] = {}
    for number, one in enumerate(documents if isinstance(documents, list) else [], 1):
        metadata = one.get("metadata") if isinstance(one, dict) else None
        name = metadata.get("source_file") if isinstance(metadata, dict) else None
        collection = metadata.get("collection") if isinstance(metadata, dict) else None
        source = next((each for each in known if (each[0], each[1].source_file) == (collection, name)), None)
        page = metadata.get("page") if isinstance(metadata, dict) else None
        numbers[number] = _Cited(f"[{number}] {name}", source, page if type(page) is int else None)
    answer = values.get("answer")
    return answer if isinstance(answer, str) else "", numbers


def _nearest(text: str, quote: str, cited: Sequence[_Cited], named: Sequence[tuple[int, _Cited]]) -> Sequence[_Cited]:
    """Return the citation by name that follows a quotation; without one, all citations of the sentence."""
    at = text.find(quote)
    return next(([one] for start, one in named if start > at), cited)


def _by_name(text: str, known: Sequence[tuple[str, SourceInfo]]) -> list[tuple[int, _Cited]]:
    """Return the sources that a sentence cites by their names in brackets, and where: ``(guide.md, p. 3)``."""
    found = []
    for bracket in re.finditer(r"[(\[]([^()\[\]\n]{3,300})[)\]]", text):
        inner = bracket[1]
        if cited := _named(inner, known):
            found.append((bracket.start(), cited))
        elif re.fullmatch(r"[^\s,;:]+\.[A-Za-z]\w{1,4}(?:[,;:]?\s+.{0,30})?", inner) and "://" not in inner:
            found.append((bracket.start(), _Cited(inner, None)))
    return found


def _named(text: str, known: Sequence[tuple[str, SourceInfo]]) -> _Cited | None:
    """Return the source whose name a text has, with its page or line; the longest name wins."""
    plain = composed(text)
    names = {end: one for one in known for end in _ends(composed(one[1].source_file)) if end in plain}
    if not names:
        return None
    name = max(names, key=len)
    source, rest = names[name], plain.replace(name, "")
    page, line = _PAGE.search(rest), _LINE.search(rest)
    return _Cited(text.strip(), source, int(page[1]) if page else None, int(line[1]) if line else None)


def _ends(name: str) -> tuple[str, ...]:
    """Return the name of a source, and that of its file without folders."""
    return name, name.rpartition("/")[2]


def _quoted(written: str, text: str, kind: str) -> Iterator[str]:
    """Yield the quotations of a sentence; of a quoted block, its text."""
    if kind == "quote":
        yield " ".join(text.replace("\n>", " ").split())
    else:
        yield from quotations(written)


def _without_places(text: str) -> str:
    """Remove names in brackets, whose numbers are places."""
    return re.sub(r"[(\[][^()\[\]\n]{1,300}[)\]]", " ", text)


def _number(label: Any) -> int | None:
    return int(label) if isinstance(label, str) and label.isdecimal() else None


def _plain_language(language: str) -> str:
    return "none" if language == "auto" else language
