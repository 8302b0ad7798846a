"""Read the quotations of an answer, and the source and place that it cites for each.

Everything in quotation marks is a quotation, and so is a quoted block. Code is left out. A citation is the name of a
source, or a number such as ``[1]``, with the places around it.
"""

# ruff: noqa: RUF001 - quotation marks and dashes of many languages

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import PurePath
from typing import NamedTuple

from ragistry.answers.citations import cited_numbers, find_citations, without_code
from ragistry.readers.formats import MARKDOWN_EXTS, OFFICE_EXTS, UNREAD_FORMATS
from ragistry.text.analysis import LETTER
from ragistry.types import SourceInfo
from ragistry.utils.ids import composed

MOST_CITATIONS = 50
"""Citations of a sentence that are compared with a quotation that none directly follows."""
LONGEST_PLACE = 60
"""Characters of a place in brackets that is neither numbered nor named; more are prose."""
Source = tuple[str, SourceInfo]
"""A source with the current name of its collection."""
_WORDS = {
    "page": "p pp pg pgs page pages slide slides s seite seiten folie folien página páginas pág pagina pagine pag",
    "line": "l ll ln line lines z zeile zeilen ligne lignes línea líneas",
    "sheet": "sheet sheets worksheet tab blatt tabellenblatt feuille hoja",
    "chapter": "ch chap chapter chapters kap kapitel chapitre capítulo",
    "section": "heading under sec secs section sections § §§ abschnitt abschnitte sección",
    "": "row rows cell cells column columns paragraph paragraphs para paras ¶ table figure figures fig chunk footnote",
}
_KINDS = {word: kind for kind, words in _WORDS.items() for word in words.split()}
_DASH = r"\s*(?:[-‐-―−~]|\b(?:to|bis|à|a)\b)\s*(?:pp?\.?\s*|L)?"
_NUMBER = r"(?:\d{1,9}(?:\.\d+)*|(?-i:[ivxlc]+))(?!(?!ff?\b)\w)"
_PLACE = (
    rf"(?<!\w)(?![sz]\d)(?P<word>{'|'.join(sorted(_KINDS, key=len, reverse=True))})\.?\s*(?P<numbers>#?{_NUMBER}"
    rf"(?:(?:{_DASH}|\s*(?:&|\b(?:and|und|et|y|e)\b)\s*){_NUMBER}|,\s*\d{{1,3}}(?![\w.]))*(?:\s*ff?\b)?)"
    r"|(?<!\w)(?P<kind>(?:sheet|tab|blatt|feuille|hoja|chapter|kapitel|section|heading|abschnitt|under(?=\s*[\"'“„«‘`]))(?!\w)|§):?\s*"
    r"(?P<named>[\"'“„«‘`][^\"'”“»’`\n]{1,100}[\"'”“»’`]|[^\s,;()\[\]|\n][^,;()\[\]|\n]{0,100})"
)
"""A place by its number or its name: ``pp. 3-5``, ``sheet "Costs"``."""
_RANGE = re.compile(rf"({_NUMBER})(?:{_DASH}({_NUMBER}))?", re.IGNORECASE)
_LEADS = (
    "see|also|both|in|from|of|or|the|file|document|per|cf|sources?|e|g|via|by|at|on|to|as|siehe|aus|die|der|datei|quellen?|vgl|"
    "laut|voir|dans|en|según|under|is"
)
"""Words around the name of a source that are not part of it."""
_SUFFIXES = MARKDOWN_EXTS | OFFICE_EXTS | UNREAD_FORMATS | {".txt", ".pdf"}
_IN_NAME = r"[\w./\\%~+@-]"
_QUOTE = (
    rf"(?<!{LETTER})\"(?=\S)(?:[^\"]|(?<=[\s(])\"(?=\S)[^\"]*\"(?!{LETTER}))+?(?<=\S)\"(?!{LETTER})"
    '|\x01[^\x02]*\x02|“(?:[^“”]|“[^“”]*”)+”|„(?:[^“„”"]|‚[^‘’]*[‘’])+[“”"]|«(?:[^«»]|«[^«»]*»)+»|‹[^‹›]+›|＂[^＂]+＂'
    "|「(?:[^「」]|「[^「」]*」)+」|『[^『』]+』|｢[^｢｣]+｣|〝[^〝-〟]+[〞〟]"
    rf"|(?<!{LETTER})(?:”(?=\S)[^“”]+”|»(?=\S)[^«»]+«|›(?=\S)[^‹›]+‹|[‘‚](?:[^‘-‚]|’(?={LETTER})){{2,}}[‘’](?!{LETTER})"
    rf"|'(?!\d0s|n'|em\b|tis\b|twas\b)(?={LETTER})(?:[^'\n]|'(?={LETTER})){{2,400}}'(?!{LETTER}))"
)
_END = (
    r"\n[ \t]*(?=\n)|\n(?=[ \t]*(?:[-*+•][ \t]|#|\||\x01|\x03))|\n[ \t]*\d{1,3}[.)][ \t]"
    r"|(?<=\x02)\n(?!\s*[—–(*\[-]|\w+:)"
)
_STOP = r"[.!?][\"”»)*_]*(?=\s+(?:(?!(?-i:[a-z]))\w|[(\[\x03]))|[。！？]"
_TITLE = re.compile(r"\s*(?:#|\*\*[^\n]*\*\*\s*$)|.*:[\s*]*$", re.DOTALL)
"""A block that introduces the next ones: a heading, or what ends with a colon."""
_REFERENCE = re.compile(r"\s*(?:[-*][ \t]+)?(?:\[\^?(\d{1,3})\]:?|(\d{1,3})[.)])[ \t]")
"""The beginning of a block that defines a number: ``[1] guide.md, p. 3``."""
_DETAIL = re.compile(r"(?:\./)?(.+?)(?:(?::|#L?)(\d+(?:-L?\d+)?)|#page=(\d+)|#([\w-]+))?$")
_SUPERSCRIPT = re.compile("[⁰¹²³⁴-⁹]+")
_BLOCK = re.compile(r"(?:^[ \t]*>.*\n?)+", re.MULTILINE)
_TABLE = re.compile(r"^(([ \t]*\|.*)\n[ \t]*\|[-:| \t]+\n)((?:[ \t]*\|.*(?:\n(?=[ \t]*\|))?)+)", re.MULTILINE)
_CALLOUT = re.compile(
    r"\s*(?:\[!|[*_]*[\"“„«「『]|\*\*[^*\n]{1,30}\*\*|(?:note|tip|warning|hinweis|important)\b|[^\w\s(\[…*_`'‘.#-])",
    re.IGNORECASE,
)
"""The beginning of a quoted block that is a remark, or that has its own quotation marks."""
_ATTRIBUTED = re.compile(
    r"\s*(.*?)((?:\s*(?:^[ \t]*[*_(\[]*(?:[—–]|--?[ \t]|\w+:[ \t])[^\n]*|\[\^?\d+\]"
    r"|[(\[【][^()\[\]\n]*\.\w[^()\[\]\n]*[)\]】]))*\s*)\Z",
    re.DOTALL | re.MULTILINE,
)
"""A quoted block, and who said it."""


class Place(NamedTuple):
    """A cited place: what is counted or named, empty if unknown; first and last values; as it is written."""

    kind: str
    values: list[tuple[str, str]]
    shown: str


class Cited(NamedTuple):
    """A citation: a name or number, its sources, and places; one of each kind must be right.

    ``sure``: It is more than a name in a sentence.
    """

    name: str
    sources: Sequence[Source]
    places: Sequence[Place]
    sure: bool = True

    @property
    def shown(self) -> str:
        """Return the name with the places."""
        return ", ".join([self.name, *(one.shown for one in self.places)])


@dataclass(slots=True)
class Citation:
    """A reference to one or several sources in the answer: ``(guide.md, p. 3)``, ``[1][2]``."""

    cited: list[Cited]
    mark: str = ""
    places: list[Place] = field(default_factory=list)

    def all(self) -> list[Cited]:
        """Return the citations with their places."""
        return [one._replace(places=[*one.places, *self.places]) for one in self.cited]


@dataclass(slots=True)
class Quotation:
    """A quotation, with the citations directly after it, or else those of its sentence."""

    text: str
    line: int
    near: list[Citation]
    around: list[Citation]

    def cited(self) -> list[Cited]:
        """Return the citations of which one must be right."""
        return [one for citation in (self.near or self.around)[:MOST_CITATIONS] for one in citation.all()]


@dataclass(slots=True)
class Block:
    """A paragraph, item or row of an answer. ``figures``: numbers that are neither quoted nor places, with lines."""

    line: int
    quotations: list[Quotation] = field(default_factory=list)
    citations: list[Citation] = field(default_factory=list)
    figures: list[str] = field(default_factory=list)


class AnswerReader:
    """Reads an answer, which is Markdown, from its first to its last sign.

    Args:
        text: The answer.
        known: The sources that it may cite.
        numbers: Sources of its numbers, in addition to those that it defines itself.

    Attributes:
        blocks: Its blocks.
        unread: What was not read, with its line.
    """

    def __init__(self, text: str, known: Sequence[Source], numbers: Mapping[int, list[Cited]]) -> None:
        if re.search(f"^{_SUPERSCRIPT.pattern}", text, re.MULTILINE):
            text = _SUPERSCRIPT.sub(lambda mark: f"[^{unicodedata.normalize('NFKC', mark[0])}]", text)
        text = _TABLE.sub(_with_heads, _BLOCK.sub(_as_quotation, composed(text)))
        self._sources, name = _names(text, known)
        self._suffixes = _SUFFIXES | {PurePath(one.source_file).suffix for _, one in known}
        self._text = text = re.sub(f"`({name})`", r" \1 ", text)
        plain, parts, at = without_code(text), [], 0
        for mark in find_citations(plain):
            if not re.search(name, mark[1]):
                parts += [plain[at : mark.start(1)], "\x03" * len(mark[1])]
                at = mark.end(1)
        self._plain = plain = "".join([*parts, plain[at:], "\n\n"])
        self._numbers, self._lead, self._introduced = dict(numbers), list[Citation](), False
        self.blocks, self.unread = list[Block](), list[str]()
        signs = re.compile(
            rf"(?P<end>{_END})|(?P<mark>\x03+)|(?P<quote>{_QUOTE})|(?P<stop>{_STOP})|(?P<part>[,;:|·—–/†!]|\[{name}\](?=\((?!\w+:)))"
            rf"|(?P<name>{name})|(?P<place>{_PLACE})|(?P<open>[(\[（【])|(?P<close>[)\]）】])"
            rf"|(?P<stray>(?<!\d)[\"“”„])|(?P<other>(?<![^\W_])(?!(?:{_LEADS})\b)(?:\d+(?:[.,]\d+)*|[^\W_]+))",
            re.IGNORECASE,
        )
        at = last = 0
        self._line = 1
        self._begin(0)
        while sign := signs.search(plain, at):
            self._line += text.count("\n", last, sign.start())
            last = sign.start()
            at = getattr(self, f"_read_{sign.lastgroup}")(sign) or sign.end()
        for citation in (one for block in self.blocks for one in block.citations):
            citation.cited += self._of(citation.mark)

    def _begin(self, start: int) -> None:
        self._block, self._start, self._part = Block(self._line + bool(start)), start, start
        self._sentence, self._uncited, self._pending = list[Citation](), list[Quotation](), list[Place]()
        self._is_open = self._is_cited = self._has_words = self._has_others = False
        self._is_near = self._was_near = self._follows_citation = self._is_alone = False

    def _read_end(self, sign: re.Match[str]) -> None:
        """End a block: resolve the definition of a number, and assign citations without words."""
        text, block = self._plain[self._start : sign.start()], self._block
        quotes, citations, reference = block.quotations, block.citations, _REFERENCE.match(self._text, self._start)
        named = [one for citation in citations for one in citation.all()]
        if citations:
            citations[-1].places += self._pending
        elif self._lead and (self._introduced or not re.match(r"\s*[^\W\d_]", text)):
            block.citations = [Citation(one.cited, one.mark, one.places + self._pending) for one in self._lead]
            for quote in quotes:
                quote.around = block.citations
        elif text.strip():
            self._lead = []
            self.unread += [f"line {self._line}: {one.shown}, of no named source" for one in self._pending if quotes]
        if reference and named and (reference[1] or int(reference[2]) not in self._numbers):
            self._numbers[int(reference[1] or reference[2])] = [one for each in citations for one in each.all()]
        elif not self._has_words and citations:
            for citation in citations:
                citation.cited = [one._replace(sure=True) for one in citation.cited]
            for quote in self.blocks[-1].quotations if self.blocks and not _TITLE.match(text) else ():
                quote.around = quote.around or citations
        if text.strip():
            self._introduced = bool(_TITLE.match(text))
            if self._introduced and citations:
                self._lead = citations
            self.blocks.append(block)
        self._begin(sign.start() + 1)

    def _read_quote(self, sign: re.Match[str]) -> None:
        text = re.sub(r"\s*\n[ \t>]*", " ", self._text[sign.start() + 1 : sign.end() - 1]).strip()
        self._block.quotations.append(Quotation(text, self._line, [], self._sentence))
        self._uncited.append(self._block.quotations[-1])
        self._is_near = self._has_words = True
        self._follows_citation, self._is_alone = False, sign[0][0] == "\x01"
        if re.compile(_STOP).match(self._plain, sign.end() - 2):
            self._read_stop(sign)

    def _read_stop(self, sign: re.Match[str]) -> None:
        self._sentence, self._is_alone = [], True
        self._read_part(sign)

    def _read_mark(self, sign: re.Match[str]) -> None:
        self._add(Citation([], self._text[slice(*sign.span())]), sign.end())

    def _read_stray(self, _: re.Match[str]) -> None:
        self.unread.append(f"line {self._line}: a quotation mark without its pair")

    def _read_open(self, sign: re.Match[str]) -> None:
        self._read_part(sign)
        self._is_open, self._was_near, self._is_cited = True, self._is_near, False

    def _read_close(self, sign: re.Match[str]) -> None:
        self._read_part(sign)
        self._is_open = self._is_cited = False

    def _read_part(self, sign: re.Match[str]) -> None:
        """End a part of a citation; if it was not understood, it is a place without a kind."""
        shown = self._plain[self._part : sign.start()].strip(" \t`*_\"'“”„«».:#^")
        if self._is_cited and self._has_others and len(shown) <= LONGEST_PLACE:
            place = Place("section" if ">" in shown else "", [(shown, "")], shown)
            self._block.citations[-1].places.append(place)
            self._follows_citation = True
        self._part, self._has_others = sign.end(), False

    def _read_other(self, sign: re.Match[str]) -> None:
        self._has_words = self._has_others = True
        self._is_near = self._follows_citation = self._is_alone = False
        if sign[0][0].isdecimal():
            self._block.figures.append(f"line {self._line}: {sign[0]}")

    def _read_name(self, sign: re.Match[str]) -> None:
        [(name, *details)] = _DETAIL.findall(sign[0])
        is_other = self._is_open and self._has_others
        sources = [] if is_other else self._sources.get(name, [])
        is_file = PurePath(name).suffix.lower() in self._suffixes and not is_other
        is_cited = sources or is_file or (self._is_open and self._was_near)
        if "//" in name or not is_cited or ("." not in name and (self._has_others or not self._is_open)):
            self._read_other(sign)
            return
        shown = f"{self._plain[self._part : sign.start()].strip(' *_')} {name}".strip() if is_other else name
        kinds = zip(("line", "page", ""), details, strict=True)
        places = [Place(kind, _ranges(value), f"{kind} {value}".strip()) for kind, value in kinds if value]
        if self._was_near and self._is_open:
            self._is_near = True
        self._add(Citation([Cited(shown, sources, (), self._is_open)], "", places), sign.end())

    def _add(self, citation: Citation, end: int) -> None:
        citation.places += self._pending
        self._block.citations.append(citation)
        self._sentence.append(citation)
        if self._is_near:
            self._block.quotations[-1].near.append(citation)
        if self._is_alone:
            for quote in self._uncited:
                quote.around = quote.around or [citation]
            self._uncited = []
        self._pending, self._follows_citation = [], True
        self._part, self._has_others, self._is_cited = end, False, self._is_open

    def _read_place(self, sign: re.Match[str]) -> int | None:
        """Give a place to the citation directly before it, else to the next one."""
        kind = _KINDS[(sign["word"] or sign["kind"]).lower()]
        if sign["numbers"]:
            is_place = self._is_open or bool(kind and re.match(r"\w{4}|\w+\.|§", sign["place"]))
        else:
            is_quoted = sign["named"][0] in "\"'“„«‘`" and sign["kind"].lower() != "under"
            is_place = self._is_open or self._follows_citation or is_quoted
        if not is_place:
            self._read_other(sign)
            return sign.end("word") if sign["numbers"] else sign.end("kind")
        citations, quotes = self._block.citations, self._block.quotations
        (citations[-1].places if self._follows_citation else self._pending).append(_place(sign))
        if self._is_near:
            quotes[-1].around = quotes[-1].around or citations[-1:]
        self._part, self._has_others = sign.end(), False
        return None

    def _of(self, mark: str) -> list[Cited]:
        """Return what a number cites, with the places in its brackets."""
        places = [_place(one) for one in re.finditer(_PLACE, mark, re.IGNORECASE)]
        return [
            one._replace(places=places or one.places)
            for number in cited_numbers(mark)
            for one in self._numbers.get(number, [Cited(f"[{number}]", (), ())])
        ]


def _place(found: re.Match[str]) -> Place:
    """Return a place. An end may be short, as in 123-5, or open, as in 3 ff.; then it is empty."""
    numbers, name = found["numbers"], (found["named"] or "").strip(" \t`*_\"'“”„«»‘’.:")
    kind = _KINDS[(found["word"] or found["kind"]).lower()]
    start = max(found.start("word"), found.start("kind"))
    shown = found.string[start : max(found.end("numbers"), found.end("named"))].strip()
    return Place(kind, _ranges(numbers) if numbers else [(name, "")], shown)


def _ranges(numbers: str) -> list[tuple[str, str]]:
    found = [(low, f"{low[: max(0, len(low) - len(high))]}{high}") for low, high in _RANGE.findall(numbers)]
    if numbers[-1] == "f":
        found.append((found[-1][0], "" if numbers[-2] == "f" else str(int(found[-1][0]) + 1)))
    return found or [(numbers, "")]


def _as_quotation(block: re.Match[str]) -> str:
    """Write a quoted block as a quotation between signs of its own; its paragraphs may be apart."""
    text = re.sub("^[ \t]*>+ ?", "", block[0], flags=re.MULTILINE)
    found = None if _CALLOUT.match(text) else _ATTRIBUTED.match(text)
    return "\x01" + re.sub(r"\n[ \t]*\n", "\n…\n", found[1]) + "\x02" + found[2] if found and found[1] else text


def _with_heads(table: re.Match[str]) -> str:
    """Write what the head of a table counts into its cells: a 3 below "Page" becomes ``page. 3``."""
    heads = [one.strip(" *").lower() for one in table[2].split("|")]
    rows = [zip_longest(heads, row.split("|"), fillvalue="") for row in table[3].split("\n")]
    cells = [[f" {head}. {cell.strip()} " if head in _KINDS else cell for head, cell in row] for row in rows]
    return table[1] + "\n".join(map("|".join, cells))


def _names(text: str, known: Sequence[Source]) -> tuple[Mapping[str, list[Source]], str]:
    """Return the sources by the names that may be in a text, and a pattern of these and of other names of files."""
    sources = defaultdict[str, list[Source]](list)
    for one in known:
        path = composed(f"{one[0]}/{one[1].source_file}")
        if path.rpartition("/")[2] in text:
            while path:
                sources[path].append(one)
                path = path.partition("/")[2]
    names = "|".join([*map(re.escape, sorted(sources, key=len, reverse=True)), rf"{_IN_NAME}*\w\.[A-Za-z]\w{{1,5}}"])
    return sources, rf"(?<!{_IN_NAME})(?:\./)?(?:{names})(?![\w/\\@])(?![.-]\w)(?:(?::|#L?)\d+(?:-L?\d+)?|#[\w=-]+)?"
