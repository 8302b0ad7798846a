"""Other spellings of a word: plain letters, the parts of an identifier, joined words, the values of numbers.

Pure functions over single tokens, independent of the language. `text.analysis` makes terms of their results.
"""

# ruff: noqa: RUF001 - many scripts is what this is about

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

from ragistry.utils.ids import composed

LONGEST_IDENTIFIER = 6
"""Maximum number of parts of an identifier or joined word. Hashes and encoded data have more."""

_IGNORED = re.compile(
    "[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff"  # soft hyphen, joiners, directions
    "\ufe00-\ufe0f\U000e0100-\U000e01ef"  # variants of a character
    "\u02b9-\u02bf"  # the apostrophes of transliterations
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"  # Hebrew points and accents
    "\u0610-\u061a\u0640\u064b-\u0652\u0656-\u065f\u0670\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u08ca-\u08ff]"  # Arabic
)
_DIGIT = re.compile(r"[^\D0-9]")
_HYPHENS = re.compile("[\u05be\u2010\u2011]")
_CATALAN_DOT = re.compile("(?<=[lL])\u00b7(?=[lL])")
_TYPED = dict(zip("\u02bc‘’‛“”„‟", "''''\"\"\"\"", strict=True))
_TYPOGRAPHY = re.compile(
    "[\u00a0\u00ad\u02bc\u2000-\u2011\u2018\u2019\u201b-\u201f\u202a-\u202f\u205f-\u2069\u3000\ufb00-\ufb06\ufe00-\ufe0f\ufeff"
    "\uff01-\uff5e]"
)
_ACCENTS = re.compile("[\u0300-\u036f\u0653-\u0655]+")

JOINERS = re.compile("[-._/]+")
_SUBWORDS = re.compile("A{2,}s(?![as])|A+(?![as])|A?[as]+|0+")  # of letters as `_kind` names them
_ORDINAL = re.compile("[0-9]+(?:st|nd|rd|th)", re.IGNORECASE)
_HEXADECIMAL = re.compile("0[xX]0*([0-9a-fA-F]+)")
_NUMBER = re.compile(r"(?<![\w.,'’])[0-9]+(?:[.,'’_\u066b\u066c][0-9]+)+(?!\w)")
_DATE = re.compile(r"(?<![0-9])([0-9]{4})([-/.])([0-9]{2})\2([0-9]{2})(?![0-9])")
_DOTTED_DATE = re.compile(r"(?<![\w.])([0-9]{1,2})\.([0-9]{1,2})\.([0-9]{4})(?![0-9])")
_ABBREVIATION = re.compile(r"(?<![\w/&])([^\W\d_]{1,3})[/&]([^\W\d_]{1,3})(?![\w/&])")
_COLONS = re.compile(r"(?:(?<![\w:.])|(?<=[0-9]T))[0-9A-Fa-f]{1,2}(?:[:h][0-9A-Fa-f]{2})+(?!:|[^\WZ])")
_HEXADECIMAL_GROUPS = re.compile(r"(?<![\w.])[0-9A-Fa-f]{4}(?:\.[0-9A-Fa-f]{4})+(?![\w.])")
_TIME = re.compile("([01]?[0-9]|2[0-3])[:h]([0-5][0-9])(?::[0-5][0-9])?")
QUANTITY = re.compile(r"(?<![\w.,])([0-9]+(?:[.,][0-9]+)?)([^\W\d_]{1,4}[23]?)(?!\w)")
_DATE_LIKE = re.compile("[0-9]{2}([./-])[0-9]{2}\\1[0-9]{4}")
SPACED = re.compile(
    r"[\d+(](?<![\w.,'’-].)(?:"  # a set of characters first, which is quick
    r"(?P<clock>(?<!:.)(?:(?<=1)[0-9]|(?<=[0-9]))[:.][0-5][0-9][ \u00a0\u202f]?[AaPp]\.?[Mm]\b)"
    r"|(?P<phone>(?:(?<=\+)[0-9(][0-9 \u00a0()/.-]{5,18}[0-9]"
    r"|(?:(?<=\()0|(?<=0))[0-9]{1,5}\)?(?:[ \u00a0/.-]{1,3}[0-9]{2,8}){1,6}"
    r"|(?:(?<=\()[2-9]|(?<=[2-9]))[0-9]{2}\)?[ \u00a0.-]{1,2}[0-9]{3}[ \u00a0.-][0-9]{4})(?![\w-]))"
    r"|(?P<number>(?<=\d)\d{0,2}(?:[ \u00a0\u2009\u202f]\d{3})+(?:[.,]\d{1,2})?(?![\w-])))"
)
"""Numbers of several words: telephone numbers, thousands, and times of half a day."""


def normalised(token: str) -> str:
    """Return a token in compatibility form, with ASCII digits and hyphens, without invisible and vowel marks."""
    if token.isascii():
        return token
    token = _CATALAN_DOT.sub("", _IGNORED.sub("", unicodedata.normalize("NFKC", token)))
    return _HYPHENS.sub("-", _DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), token))


def plain(word: str) -> str:
    """Return a word in lower case without the accents and strokes of its letters: ``łódź`` is ``lodz``."""
    if word.isascii():
        return word
    word = unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", word)))
    return word if word.isascii() else word.translate(_LETTERS)


def as_typed(text: str) -> str:
    """Return a composed text with blanks, hyphens, apostrophes and quotation marks as they are typed.

    Ligatures and full-width letters are plain ones. Soft hyphens and other invisible signs are left out.
    """
    return _TYPOGRAPHY.sub(lambda one: _TYPED.get(one[0]) or normalised(one[0]), composed(text))


class _Letters(dict[int, str]):
    """Letter → its plain spelling, found by the name of the character on first use."""

    _NAME = re.compile(
        r"(LATIN|CYRILLIC) SMALL (?:LETTER|LIGATURE) (?:DOTLESS |BARRED |OPEN |STRAIGHT |LONG )?(.+?)(?: WITH .+| BAR)?"
    )

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        name = self._NAME.fullmatch(unicodedata.name(letter, ""))
        if name and name[1] == "LATIN" and len(name[2]) <= 2:
            letter = name[2].lower()
        elif name and name[1] == "CYRILLIC" and len(name[2]) <= 3:
            letter = unicodedata.lookup(f"CYRILLIC SMALL LETTER {name[2]}")
        self[code] = letter
        return letter


_LETTERS = _Letters(
    zip(map(ord, "þꞌðŋəʃʒĸƿẟƣɣʊɩʋکیىہھٱ"), ["th", "", *"dneszkwdgguivكييهها"], strict=True),
)


def other_spellings(token: str, pieces: Sequence[str]) -> Iterator[str]:
    """Yield other spellings of a normalised token, in lower case; some may be the token itself.

    ``pieces``: its words, joined by ``- . _ /``, with their capitals.
    """
    for number in _NUMBER.finditer(token):
        yield from _values(number[0])
    for date in _DATE.finditer(token):
        yield from (f"{date[1]}{date[3]}{date[4]}", f"{date[1]}-{date[3]}-{date[4]}")
    for date in _DOTTED_DATE.finditer(token):
        month, day = date[2].zfill(2), date[1].zfill(2)
        yield from (f"{date[3]}{month}{day}", f"{date[3]}-{month}-{day}")
    for groups in _COLONS.finditer(token) if ":" in token or "h" in token else ():
        yield from _of_colons(groups[0])
    for groups in _HEXADECIMAL_GROUPS.finditer(token) if "." in token else ():
        yield groups[0].replace(".", "").casefold()
    for quantity in QUANTITY.finditer(token):
        if not _ORDINAL.fullmatch(quantity[0]) and not _HEXADECIMAL.fullmatch(quantity[0]):
            yield from (quantity[1], quantity[2].casefold(), *_unit(quantity[2]))
    for abbreviation in _ABBREVIATION.finditer(token):  # TCP/IP, AT&T
        yield f"{abbreviation[1]}{abbreviation[2]}".casefold()
    for piece in pieces:
        for segment in piece.split("/"):
            parts = JOINERS.split(segment)
            if len(parts) > LONGEST_IDENTIFIER:
                continue
            for part in parts:
                yield from _unit(part)
                if hexadecimal := _HEXADECIMAL.fullmatch(part):
                    yield hexadecimal[1].lower()
                else:
                    yield from map(str.casefold, parts_of(part))
            # dots between numbers are of a version, whose digits must not run together
            if len(parts) > 1 and not ("." in segment and any(map(str.isdigit, parts))):
                yield "".join(parts).casefold()


def spaced_spellings(found: re.Match[str]) -> Iterator[str]:
    """Yield other spellings of a number of several words, a match of `SPACED`."""
    text = normalised(found[0])
    if found.lastgroup == "number":
        whole, *decimals = re.split("[.,]", text)
        value = whole.replace(" ", "")
        yield from (value, whole, *(f"{value}.{digits}" for digits in decimals))
    elif found.lastgroup == "clock":
        hour, minute = map(int, re.findall("[0-9]+", text))
        yield from _of_colons(f"{hour % 12 + 12 * ('p' in text.lower())}:{minute:02}")
    elif 7 <= sum(map(str.isdigit, text)) <= 15 and not _DATE_LIKE.fullmatch(text):
        country, *others = re.findall("[0-9]+", text.replace("(0)", ""))
        digits = "".join([country, *others])
        if text[0] == "+" or re.match("00[1-9]", country):
            digits, country = digits.removeprefix("00"), country.removeprefix("00")
            national = digits.removeprefix(country)
            yield national if country == "1" or national.startswith("0") else f"0{national}"
        yield digits


def _of_colons(groups: str) -> Iterator[str]:
    """Yield a time or hardware address as it is, without what separates its digits, and a time as ``14.05``."""
    yield groups.lower()
    if time := _TIME.fullmatch(groups):
        yield f"{time[1]:0>2}.{time[2]}"
    if time or "h" not in groups:
        yield re.sub("[:h]", "", groups).lower().zfill(4)


def _unit(name: str) -> Iterator[str]:
    """Yield a unit in ASCII: ``uF`` for ``μF``, ``kohm`` for ``kΩ``."""
    name = name.casefold()
    if not name.isascii() and len(name) <= 3:
        unit = f"u{name[1:]}" if name[0] == "μ" else name
        unit = f"{unit[:-1]}ohm" if unit[-1] == "ω" else unit
        if unit != name and unit.isascii() and len(unit) > 1:
            yield unit


def parts_of(word: str) -> list[str]:
    """Return the parts of ``camelCase`` and ``500GB``; empty for a word without several parts, and for a hash."""
    if _HEXADECIMAL.fullmatch(word) or _ORDINAL.fullmatch(word):
        return []
    parts = [word[part.start() : part.end()] for part in _SUBWORDS.finditer("".join(map(_kind, word)))]
    return parts if 1 < len(parts) <= LONGEST_IDENTIFIER else []


def _kind(letter: str) -> str:
    return "A" if letter.isupper() else "0" if letter.isdigit() else "s" if letter == "s" else "a"


def _values(number: str) -> Iterator[str]:
    """Yield the spelling of a number with separators, and what it can mean: ``1.250`` is 1250, or a decimal."""
    yield number
    groups, separators = re.split("[^0-9]", number), re.findall("[^0-9]", number)
    last = separators[-1]
    if len(set(separators)) == 1 and _are_groups(groups):
        yield "".join(groups)
    if last not in ".,\u066b":
        return
    if len(separators) == 1:
        yield f"{groups[0]}.{groups[1]}"
    elif len(set(separators[:-1])) == 1 and separators[0] != last and _are_groups(groups[:-1]):
        whole = "".join(groups[:-1])
        yield f"{whole}.{groups[-1]}"
        yield whole


def _are_groups(groups: Sequence[str]) -> bool:
    """Return whether these are thousands, also as in India: ``1,00,000``."""
    first, *others = groups
    return len(first) <= 3 and len(others[-1]) == 3 and all(2 <= len(group) <= 3 for group in others)
