"""Analyse text into the terms of a lexical index, identically on every engine.

1. Compatibility forms, case and digits of all scripts are normalised (NFKC, casefold), so that the ligature in ``ﬁle``
   and full-width letters are found. Vowel marks and lengthening strokes of Arabic and Hebrew are left out.
2. Words are letters, digits and their marks. A word joined by ``- . _ /`` gives its parts and, if it has a digit or
   an underscore, also itself: ``LNT-1042`` is found as ``1042``, and best as ``LNT-1042``. An emoji or symbol is a word
   of its own (`SYMBOLS`).
3. Scripts without spaces, and Korean, whose particles are attached to words, give single characters and overlapping
   pairs of characters.
4. Words are stemmed by language (Snowball), then written in plain letters: ``cafe`` finds ``café``, and ``lodz``
   ``Łódź``.
5. A word has forms, which count less: the parts of ``refreshAccessToken`` and ``500GB``, ``email`` for ``e-mail``, and
   the values of ``1.250,00`` and ``14:05``. See `text.spellings`.

Increase `VERSION` after a change of the terms: older indexes are then rebuilt.
"""

from __future__ import annotations

import operator
import re
import string
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import chain, groupby
from threading import Lock
from types import MappingProxyType
from typing import Any, TypeVar

import Stemmer

from ragistry.text.languages import canonical_language, stemmer_name
from ragistry.text.spellings import (
    JOINERS,
    QUANTITY,
    SPACED,
    normalised,
    other_spellings,
    parts_of,
    plain,
    spaced_spellings,
)

VERSION = 6
TERM_LIMIT = 100
"""Number of significant characters of a word; a hexadecimal SHA-256 has 64."""

JOINED_WORDS = 6
"""Number of words of a query up to which adjacent words are also searched as one. In a sentence, most of these are not
words, and to look them up takes as long as its other words."""

Entry = TypeVar("Entry")

CACHED_TOKENS = 50_000
CACHED_LENGTH = 40

STOP_WORDS = {
    "english": (
        "a an and are as at be but by for if in into is it no not of on or such that the their then there these they "
        "this to was will with"
    )
}
"""Lucene's list. Without these words, queries that are sentences gain .02 to .04 of nDCG@10."""

_UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e50-\u0e59"  # Thai
    "\u0e81-\u0ece\u0ed0-\u0edf"  # Lao
    "\u1000-\u1049\u1050-\u109f\ua9e0-\ua9fe\uaa60-\uaa7f"  # Myanmar
    "\u1780-\u17d3\u17d7\u17dc-\u17e9"  # Khmer
    "\u3005-\u3007\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"  # Japanese
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"  # Han
    "\uac00-\ud7a3"  # Hangul
)
MARKS = (  # part of a word, but not of \\w: the vowels of many scripts, as whole ranges
    "\u0300-\u036f\u0483-\u0487\u1dc0-\u1dff"  # Latin, Greek, Cyrillic
    "\u0591-\u05bd\u05bf\u05c1-\u05c2\u05c4-\u05c5\u05c7"  # Hebrew
    "\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7-\u06e8\u06ea-\u06ed"  # Arabic
    "\u0730-\u074a\u07a6-\u07b0"  # Syriac, Thaana
    "\u0900-\u0963\u0971-\u0df3"  # India, Sri Lanka
    "\u0f71-\u0f84\u0f8d-\u0fbc"  # Tibetan
)
SYMBOLS = (  # words of one character; not punctuation, the signs of ASCII, nor the lines and blocks of drawings
    "\u00a2-\u00a7\u00a9\u00ac\u00ae\u00b0\u00b1\u00b6\u00d7\u00f7\u2020\u2021\u2030\u2031\u203b\u2042"
    "\u20a0-\u20cf\u2100-\u214f"  # currencies, and signs like letters
    "\u2190-\u2211\u2213\u2214\u2218\u221a-\u2222\u2224-\u2235\u2237-\u223b\u223d-\u22c4\u22c6-\u24ff"  # mathematics
    "\u25a0-\u27e5\u27f0-\u2982\u2999-\u2bff"  # shapes, arrows
    "\u3004\u3012\u3013\u3020\u303d\U0001f000-\U0001f3fa\U0001f400-\U0001faff"
)
TONES = "\U0001f3fb-\U0001f3ff"
_MODIFIERS = f"{TONES}\u20e3\U000e0020-\U000e007f"  # skin tones, the frame of a keycap, tags of flags
_SYMBOL = f"[0-9#*]\u20e3|[\U0001f1e6-\U0001f1ff]{{2}}|[{SYMBOLS}{TONES}][{_MODIFIERS}]*"
SYMBOL = re.compile(_SYMBOL)
LETTER = rf"[^\W_{_UNSPACED}]"
_WORD = f"{LETTER}+(?:[{MARKS}]+{LETTER}*)*"
_ASCII_TOKENS = re.compile("[A-Za-z0-9]+(?:[-._/]+[A-Za-z0-9]+)*")
UNSPACED_RUN = re.compile(f"[{_UNSPACED}]+")
_NO_WORD = re.compile(f"[-._/{SYMBOLS}{_UNSPACED}]")  # as a part of two joined words
_WORD_WITH_I = re.compile(r"[^\W\d_]*I[^\W\d_]*")
_DIGIT = re.compile(r"\d")
_GROUPS = re.compile("[A-Za-z0-9]+")
_PUNCTUATION = string.punctuation


@cache
def _tokens() -> re.Pattern[str]:
    """Compiled on first use, which takes 5 ms."""
    return re.compile(f"[{_UNSPACED}]+|[0-9#*]\u20e3|{_WORD}(?:[-._/]+{_WORD})*|{_SYMBOL}")


def analyse(text: str, language: str = "english") -> list[str]:
    """Return the terms of a text in order, with repetitions; no term is empty or contains white space.

    ``language``: a name or ISO 639-1 code of `text.languages`, or ``"none"`` for no stemming. About 10 MB of
    English per second; thread-safe. Raises `ConfigError` for an unknown language.
    """
    return list(chain.from_iterable(map(_analyser(canonical_language(language)).__getitem__, text.split())))


class CodeTable:
    """Texts to the codes of an index, each word analysed once. Words repeat, so most are found in a table.

    Args:
        language: Language of the texts, as of `analyse`.
        code: Returns the code of a term.
        form: Returns the code of a form.
    """

    def __init__(self, language: str, code: Callable[[str], str], form: Callable[[str], str]) -> None:
        self._words = _WordCodes(canonical_language(language), code, form)

    def codes(self, text: str) -> str:
        """Return the codes of all terms of a text, and of each form that is none of them, between blanks."""
        codes = " ".join(map(self._words.__getitem__, text.split()))
        spaced = [form for number in SPACED.finditer(text) for form in spaced_spellings(number)]
        if not spaced and _MARK not in codes:
            return codes
        codes = f" {codes} {self._words.marked(spaced)} "
        terms = _MARKED.sub("", codes)
        return terms + " ".join(sorted({form for term, form in _MARKED.findall(codes) if f" {term} " not in terms}))


def forms(text: str, language: str = "english") -> list[str]:
    """Return the forms of a text's words that are not terms of these words themselves.

    A query finds a form with less weight than a term. Arguments and errors as of `analyse`.
    """
    canonical = canonical_language(language)
    words = map(_former(canonical).__getitem__, text.split())
    return list(chain.from_iterable(chain(words, map(spaced_spellings, SPACED.finditer(text)))))


def word_terms(language: str = "english") -> Mapping[str, tuple[str, ...]]:
    """Return a table of the terms and forms of every word, each analysed once. A word contains no white space."""
    return _word_terms(canonical_language(language))


def analysis_record(language: str) -> dict[str, Any]:
    """Identify the analysis. Terms are comparable only if it is equal, so it is stored with an index."""
    return {"version": VERSION, "language": canonical_language(language), "snowball": Stemmer.version()}


@lru_cache(maxsize=64)  # a router and the index analyse the same query
def query_terms(text: str, language: str = "english") -> Mapping[str, int]:
    """Return the terms of a query with their frequencies.

    Stop words are omitted unless the query has no other words: "to be or not to be" can be found.
    """
    canonical = canonical_language(language)
    counts = dict(Counter(analyse(text, canonical)))
    stop_terms = _stop_terms(canonical)
    significant = {term: count for term, count in counts.items() if term not in stop_terms}
    return MappingProxyType(significant or counts)


@lru_cache(maxsize=64)
def query_forms(text: str, language: str = "english") -> Mapping[str, int]:
    """Return the forms of a query with the number of words that each replaces."""
    canonical = canonical_language(language)
    words: dict[str, int] = {}
    for token in text.split():
        words |= dict.fromkeys(_former(canonical)[token], 1)
        groups = _GROUPS.findall(token) if _DIGIT.search(token) else ()
        if len(groups) > 2:  # a code, whose parts are those of many similar ones
            code = _analyser(canonical).term("".join(groups).lower())
            words |= {code: len(groups)} if code in words else {}
    for number in SPACED.finditer(text):
        words |= dict.fromkeys(spaced_spellings(number), len(_GROUPS.findall(normalised(number[0]))))
    own = query_terms(text, language)
    return MappingProxyType({form: count for form, count in words.items() if form not in own})


@lru_cache(maxsize=64)
def query_pairs(text: str, language: str = "english") -> Mapping[str, int]:
    """Return the terms of a short query's adjacent words as one, with a weight: "plug in" finds "plugin".

    A code of several words, such as "978 3 16 148410 0", has their number as its weight.
    """
    tokens = text.split()
    if not 1 < len(tokens) <= JOINED_WORDS:
        return {}
    analyser = _analyser(canonical_language(language))
    pairs = list(_joined_pairs(tokens))
    pairs += [pair.replace("\u03bc", "u") for pair in pairs if "\u03bc" in pair]  # 10 μF
    terms = dict.fromkeys(chain.from_iterable(map(analyser.new_entry, pairs)), 1)
    for has_digit, run in groupby(tokens, lambda token: token.isalnum() and not token.isalpha()):
        code = list(run)
        if has_digit and len(code) > 2 and _DIGIT.search(text):
            terms |= dict.fromkeys(analyser["".join(code)], len(code))
    own, others = query_terms(text, language), query_forms(text, language)
    new = {term: weight for term, weight in terms.items() if term not in own and term not in others}
    return MappingProxyType(new)


def _joined_pairs(tokens: Sequence[str]) -> Iterator[str]:
    """Yield adjacent words as one word, unless punctuation is between them."""
    before = ""
    for token in tokens:
        if token.isascii() and token.isalnum():
            if before:
                yield before + token
            before = token
            continue
        token = normalised(token)
        pieces = _pieces(token)
        is_word = len(pieces) == 1 and not any(map(_NO_WORD.search, pieces))
        if is_word and before and token.startswith(pieces[0]):
            yield before + pieces[0]
        before = pieces[0] if is_word and token.endswith(pieces[0]) else ""


def required_terms(text: str, language: str = "english") -> list[tuple[str, ...]]:
    """Return groups of terms; a text with all words of ``text``, in any spelling, has a term of each group."""
    return list(dict.fromkeys(chain.from_iterable(terms_by_word(text, language).values())))


def terms_by_word(text: str, language: str = "english") -> dict[str, list[tuple[str, ...]]]:
    """Return the groups of `required_terms` for each word between white space; none for a stop word."""
    canonical, terms = canonical_language(language), query_terms(text, language)
    groups: dict[str, list[tuple[str, ...]]] = {}
    for token in text.split():
        words, other = _analyser(canonical)[token], _former(canonical)[token]
        groups[token] = [(*words, *other)] if other else [(word,) for word in words if word in terms]
    return groups


def bare_word(token: str) -> str:
    """Return a word without the punctuation around it; empty for one of a script without spaces."""
    found = list(_tokens().finditer(token))
    return token[found[0].start() : found[-1].end()] if found and not UNSPACED_RUN.search(token) else ""


def units(text: str, language: str = "english") -> list[tuple[str, ...]]:
    """Return the words between white space, in order and with stop words, each with its parts in sequence.

    ``set_max`` and ``setMax`` are ``("set", "max")``; scripts without spaces give single characters.
    """
    return list(filter(None, map(_divider(canonical_language(language)).__getitem__, text.split())))


@cache
def _stop_terms(language: str) -> frozenset[str]:
    return frozenset(analyse(STOP_WORDS.get(language, ""), language))


class _Cache(ABC, dict[str, Entry]):
    """Token between white space → terms, or what else is known of it, computed on first use.

    Words repeat so often that most of the work is the lookup, in C. Two generations bound the memory: a full one
    replaces the old one, and tokens still in use are copied back.
    """

    def __init__(self) -> None:
        self._old: dict[str, Entry] = {}
        self._lock = Lock()

    def __missing__(self, token: str) -> Entry:
        with self._lock:
            entry = self._old.get(token)
            if entry is None:
                entry = self.new_entry(token)
            if len(token) <= CACHED_LENGTH:
                if len(self) >= CACHED_TOKENS:
                    self._old = self.copy()
                    self.clear()
                self[token] = entry
            return entry

    @abstractmethod
    def new_entry(self, token: str) -> Entry:
        """Compute what is known of a token."""


class _Analyser(_Cache[tuple[str, ...]]):
    """The terms of a token."""

    def __init__(self, language: str) -> None:
        super().__init__()
        algorithm = stemmer_name(language)
        self._stem = Stemmer.Stemmer(algorithm, 0).stemWord if algorithm else str
        self._stemming = Lock()  # a stemmer serves one thread at a time
        self.is_turkish = language == "turkish"

    def new_entry(self, token: str) -> tuple[str, ...]:
        word = token.strip(_PUNCTUATION)
        if word.isascii() and word.isalnum() and not self.is_turkish:
            return (self.term(word.lower()),)
        terms: list[str] = []
        for piece in _pieces(self.lowered(normalised(token))):
            if piece.isascii() and piece.isalnum():
                terms.append(self.term(piece))
            elif SYMBOL.fullmatch(piece):
                found = dict.fromkeys((_symbol_parts(piece)[0], piece))
                terms += (term for term in found if term not in terms)  # a row of stars is one
            elif UNSPACED_RUN.match(piece):
                terms += piece
                terms += map(operator.add, piece, piece[1:])
            else:
                terms += self._joined(piece)
        return tuple(terms)

    def _joined(self, piece: str) -> list[str]:
        parts = JOINERS.split(piece)
        terms = [self.term(part) for part in parts]
        if len(parts) > 1 and ("_" in piece or any(map(str.isdigit, piece))):
            terms.append(plain(piece)[:TERM_LIMIT])
        return terms

    def lowered(self, token: str) -> str:
        if self.is_turkish:
            # A Turkish I becomes one without dot, except in ASCII capitals, which are mostly abbreviations: ``API``.
            token = _WORD_WITH_I.sub(
                lambda word: word[0] if word[0].isascii() and word[0].isupper() else word[0].replace("I", "\u0131"),
                token.replace("\u0130", "i"),
            )
        return token.lower() if token.isascii() else token.casefold()

    def term(self, word: str) -> str:
        """Return the term of a single word in lower case."""
        with self._stemming:
            stem = self._stem(word[:TERM_LIMIT])
        return plain(stem) or stem


_analyser = cache(_Analyser)


class _ByAnalyser(_Cache[tuple[str, ...]]):
    def __init__(self, language: str) -> None:
        super().__init__()
        self._analyser = _analyser(language)


class _Former(_ByAnalyser):
    """The forms of a token: see `forms`."""

    def new_entry(self, token: str) -> tuple[str, ...]:
        word = token.strip(_PUNCTUATION)
        if word.isascii() and word.isalpha() and (word.islower() or word.isupper() or word[1:].islower()):
            return ()
        token, term = normalised(token), self._analyser.term
        pieces = _pieces(token)
        found = [term(spelled) for spelled in other_spellings(token, pieces)]
        words = chain.from_iterable(map(JOINERS.split, pieces))
        accented = (word for word in words if not word.isascii() and UNSPACED_RUN.match(word) is None)
        found += [term(plain(self._analyser.lowered(word))) for word in accented]  # a stem depends on accents
        if len(token) == 2 and token.isalnum() and token[0].isdigit() and token[1].isalpha():
            return tuple(dict.fromkeys(found))  # ``5V``, whose parts are single characters
        quantity = QUANTITY.fullmatch(pieces[0]) if len(pieces) == 1 else None
        known, digit = self._analyser[token], quantity and quantity[1]
        new = [form for form in found if (len(form) > 1 or form == digit) and form not in known]
        return tuple(dict.fromkeys(new))


_former = cache(_Former)


class _TermsAndForms(_Cache[tuple[str, ...]]):
    """The terms and forms of a word."""

    def __init__(self, language: str) -> None:
        super().__init__()
        self._language = language

    def new_entry(self, token: str) -> tuple[str, ...]:
        return (*analyse(token, self._language), *forms(token, self._language))


_word_terms = cache(_TermsAndForms)


class _Divider(_ByAnalyser):
    """The parts of a token: see `units`."""

    def new_entry(self, token: str) -> tuple[str, ...]:
        terms: list[str] = []
        for piece in _pieces(normalised(token)):
            if UNSPACED_RUN.match(piece):
                terms += piece
            elif SYMBOL.fullmatch(piece):
                terms += _symbol_parts(piece)
            else:
                parts = [part for word in JOINERS.split(piece) for part in parts_of(word) or [word]]
                terms += [self._analyser.term(plain(self._analyser.lowered(part))) for part in parts]
        return tuple(terms)


_divider = cache(_Divider)

_MARK = "\0"
"""Begins a form among the codes of a word: this mark, its code as a term, the mark, its code as a form."""
_MARKED = re.compile(f"{_MARK}([^{_MARK}]*){_MARK}(\\S*)")


class _WordCodes(_Cache[str]):
    """Token → the codes of its terms and its marked forms, between blanks."""

    def __init__(self, language: str, code: Callable[[str], str], form: Callable[[str], str]) -> None:
        super().__init__()
        self._analyser, self._former, self._code, self._form = _analyser(language), _former(language), code, form

    def new_entry(self, token: str) -> str:
        word = token.strip(_PUNCTUATION)
        if word != token and word.isascii() and word.isalpha() and (known := self.get(word)):
            return known
        terms, forms = self._analyser[token], self._former.new_entry(token)
        return " ".join([*map(self._code, terms), *([self.marked(forms)] if forms else ())])

    def marked(self, forms: Iterable[str]) -> str:
        """Return marked forms."""
        return " ".join([f"{_MARK}{self._code(form)}{_MARK}{self._form(form)}" for form in forms])


def _symbol_parts(piece: str) -> tuple[str, ...]:
    """Return an emoji or symbol and its modifiers; flags and keycaps of signs have no parts."""
    is_whole = len(piece) == 1 or piece[0] in "#*" or "\U0001f1e6" <= piece[0] <= "\U0001f1ff"
    return (piece,) if is_whole else (piece[0], piece[1:])


def _pieces(token: str) -> list[str]:
    return (_ASCII_TOKENS if token.isascii() else _tokens()).findall(token)
