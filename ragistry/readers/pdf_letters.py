"""Mend the letters of a PDF page, and judge how well it was read. Runs in the worker process only.

Ligatures without letters are restored, accents that are drawn alone are composed, and letters that stand apart are
joined. Cheap signs of bad reading decide between two readings of a page.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from ctypes import c_double
from functools import cache
from itertools import accumulate, pairwise, product
from typing import Any

from pypdfium2 import raw

# --- Ligatures that fonts do not map to letters ---

MISSING = "\ufffd"
"""Mark of a glyph in a word whose letters are unknown."""
BROKEN = "\ufffe"
"""The character with which pdfium marks a hyphen and the line end after it."""
TEX_LIGATURES = {
    "\x0b": "ff", "\x0c": "fi", "\x0d": "fl", "\x0e": "ffi", "\x0f": "ffl",
    "\x1b": "ff", "\x1c": "fi", "\x1d": "fl", "\x1e": "ffi", "\x1f": "ffl",
}  # fmt: skip
"""Ligatures by their codes in the encodings OT1 and T1 of TeX, which pdfium gives for a glyph without a name."""

_LIGATURES = ("fi", "ff", "fl", "ffi", "ffl")
_BROKEN_WORD = re.compile(rf"[^\W\d_]*(?:{MISSING}[^\W\d_]*)+")
_WORD = re.compile(r"[^\W\d_]+")
_MOST_MISSING = 3  # in one word, because each multiplies the candidates
_PARTS = {  # of common words in English, German and French; "*" is the ligature, a blank the end of a word
    "ffi": "di*cult|di*cile|e*cien|e*cac|o*ce|o*ci|su*cien|su*x|pre*x |coe*cien|a*liat|a*nit|a*rm|tra*c|a*x |a*che|"
    "sta*ng|bu*ng|gra*ti|o*ng|tari*er|chi*re|o*ziell|e*zien|gri*g|wa*e |e*gy|ru*an|mu*n|ine*",
    "ffl": "a*uen|ba*e|shu*e|ru*e|ra*e|wa*e|sni*e|sti*e|mu*e|scu*e|o*ine|e*uen|schi*ott|sto*ich|sou*e",
    "ff": "e*ect|di*er|di*us|o*er|su*er|sta* | sta*|a*ect|e*ort| o* |o*en|cli* |bu*er|tra*ic|co*ee|a*air|a*ord|o*set|"
    "o*line|pu* |sti* |cu* |tari* |sheri* |playo*|cuto*|tradeo*|payo*|che* | scho*|ho*n|ho*en|betre*|tre*|scha*|"
    "begri*|angri*|sto* |sto*e|ö*n|ö*entl|schi* |gri* | e*et|a*aire|su*it|chi*re|di*ér|e*or|a*in|bu*|ta*|so*it",
    "fl": " *ow|in*uen|in*at|re*ect|re*ex|con*ict| *oor| *oat| *y| *ies |*uid|*exib|*uctu|*uor| *at | *ame| *ash|"
    " *ag | *ags | *av| *esh| *eet| *ight| *ip|p*icht|p*anz|p*ege|ein*uss|zu*uss|ab*uss| *uss| *üss|*äche|kon*ikt|"
    " *eur|in*am|*ower|wa*e|trif*e|work*ow|over*ow|out*ow|in*ow|butter*|sou*e|ru*e",
    "fi": " *nd| *rst|*eld| *nal|*nall|*gur|de*n|speci*|signi*|con*| *ve| *ll| *le| *les| *lm| *lt| *t| *x| *n|"
    "*ng|pro*t|pro*l|scienti*|identi*|classi*|modi*|veri*|justi*|certi*|noti*|clari*|simpli*|quali*|quanti*|rati*|"
    "*cat|bene*|suf*|arti*|of*ce|ef*c|dif*c|arti*c|paci*|terri*|sacri*|super*c|*ciary|*nanc|*ber|*ction|*lament|"
    "in*n|häu*g|er*n| *el|grei*|*nger|*sch|*nanz|*rma|grati*|unde*|re*n|pre*x|su*x|spéci*|vé*|modé*|*lle|*delity",
}
_BY_PART = sorted(
    ((part, ligature) for ligature, parts in _PARTS.items() for part in parts.split("|")),
    key=lambda pair: -len(pair[0]),
)


def restore(texts: Sequence[str]) -> list[str]:
    """Replace each `MISSING` by the ligature that makes a word of the document, or part of a common word.

    A glyph that neither decides about is left.
    """
    if not any(MISSING in text for text in texts):
        return list(texts)
    words = Counter(word for text in texts for word in _WORD.findall(text.lower()))
    restored = cache(lambda word: _restored(word, words))
    return [_BROKEN_WORD.sub(lambda broken: restored(broken[0]), text) if MISSING in text else text for text in texts]


def _restored(word: str, words: Counter[str]) -> str:
    pieces = word.split(MISSING)
    if len(pieces) - 1 > _MOST_MISSING or len(word) < len(pieces) + 1:
        return word
    candidates = [_filled(pieces, ligatures) for ligatures in product(_LIGATURES, repeat=len(pieces) - 1)]
    best = max(candidates, key=lambda candidate: words[candidate.lower()])
    if words[best.lower()]:
        return best
    ligatures = [_by_part(pieces, number) for number in range(1, len(pieces))]
    return _filled(pieces, ligatures)


def _by_part(pieces: Sequence[str], number: int) -> str:
    """Return the ligature before the piece of this number, by the letters around it."""
    before, after = "?".join(pieces[:number]), "?".join(pieces[number:])
    marked = f" {before}*{after} ".lower()
    return next((ligature for part, ligature in _BY_PART if part in marked), MISSING)


def _filled(pieces: Sequence[str], ligatures: Sequence[str]) -> str:
    return pieces[0] + "".join(ligature + piece for ligature, piece in zip(ligatures, pieces[1:], strict=True))


# --- Accents ---

MOST_ACCENTS = 2_000
"""Accents of a page that are looked at: each is searched for among all characters of the page."""
NEAR = 0.15
"""Widest gap inside a word, as a share of the height of a line."""

_MARKS = {
    "`": "\u0300", "\u02cb": "\u0300", "\u00b4": "\u0301", "\u02ca": "\u0301", "^": "\u0302", "\u02c6": "\u0302",
    "~": "\u0303", "\u02dc": "\u0303", "\u00af": "\u0304", "\u02c9": "\u0304", "\u02d8": "\u0306", "\u02d9": "\u0307",
    "\u00a8": "\u0308", "\u02da": "\u030a", "\u02dd": "\u030b", "\u02c7": "\u030c", "\u00b8": "\u0327",
    "\u02db": "\u0328",
}  # fmt: skip
_ACCENT = re.compile(f"[{re.escape(''.join(_MARKS))}\u0300-\u036f]")
_DOTLESS = {"\u0131": "i", "\u0237": "j"}
_SAME_SIZE = 0.6  # share of the height of a line from which on two characters are of one size
_TURNED = 0.01  # radians
_STEP = 0.15  # of the height of a line: from an accent or a base line into the letter


def with_composed_accents(text: str, textpage: Any, numbers: Sequence[int]) -> tuple[str, Sequence[int]]:
    """Join each accent to the letter that it is drawn on. TeX draws it before the letter, other programs later.

    An accent that stands alone is a sign, as in code, and stays.

    Args:
        text: Text of the page.
        textpage: Its text page in pypdfium2.
        numbers: Number of the character in ``textpage`` for each one of ``text``.

    Returns:
        The text and the numbers of its characters.
    """
    accents = [one.start() for one in _ACCENT.finditer(text)][:MOST_ACCENTS]
    if not accents:
        return text, numbers
    places: dict[int, int] | None = None
    parts = list(text)
    for at in accents:
        number = _letter_below(textpage, numbers[at])
        if number is None:
            continue
        places = places or {one: place for place, one in enumerate(numbers)}
        letter = places.get(number, at)
        mark = _MARKS.get(parts[at], parts[at])
        base = parts[letter]
        composed = unicodedata.normalize("NFC", _DOTLESS.get(base, base) + mark)
        if letter != at and base.isalpha() and len(composed) == 1:
            parts[letter], parts[at] = composed, ""
            _close_gap(parts, at, textpage, numbers)
    return "".join(parts), [number for part, number in zip(parts, numbers, strict=True) if part]


def _letter_below(textpage: Any, number: int) -> int | None:
    """Return the number of the character that an accent is drawn on, which is above the accent if that is a cedilla."""
    left, right, bottom, top, x, y = (c_double() for _ in range(6))
    if not raw.FPDFText_GetCharBox(textpage, number, left, right, bottom, top) or not raw.FPDFText_GetCharOrigin(
        textpage, number, x, y
    ):
        return None
    size = _upright_height(textpage, number)
    step = _STEP * size
    middle = (left.value + right.value) / 2
    heights = [y.value + step, bottom.value - step if bottom.value > y.value else top.value + step]
    for height in heights:
        found = raw.FPDFText_GetCharIndexAtPos(textpage, middle, height, 0, 0)
        if found >= 0 and found != number:  # a letter of a watermark is larger, or turned
            sizes = sorted((size, _upright_height(textpage, found)))
            return int(found) if sizes[0] > _SAME_SIZE * sizes[1] else None
    return None


def _upright_height(textpage: Any, number: int) -> float:
    """Return the height of the line of a character, 0 if that is turned."""
    box = raw.FS_RECTF()
    if not raw.FPDFText_GetLooseCharBox(textpage, number, box) or raw.FPDFText_GetCharAngle(textpage, number) > _TURNED:
        return 0.0
    return abs(float(box.top - box.bottom))


def _close_gap(parts: list[str], at: int, textpage: Any, numbers: Sequence[int]) -> None:
    """Remove the blanks that pdfium puts around an accent, unless there is a gap between the letters there."""
    first, last = at, at
    while first and (not parts[first - 1] or parts[first - 1].isspace()):
        first -= 1
    while last + 1 < len(parts) and (not parts[last + 1] or parts[last + 1].isspace()):
        last += 1
    blanks = [one for one in range(first, last + 1) if parts[one]]
    if not blanks or not all(raw.FPDFText_IsGenerated(textpage, numbers[one]) == 1 for one in blanks):
        return
    if first and last + 1 < len(parts) and (gap := _gap(textpage, numbers[first - 1], numbers[last + 1])) is not None:
        for one in blanks:
            parts[one] = ""
        if gap > NEAR:
            parts[blanks[0]] = " "


def _gap(textpage: Any, number: int, after: int) -> float | None:
    """Return the gap between two characters as a share of the height of their line, None if that is not the same."""
    one, other = raw.FS_RECTF(), raw.FS_RECTF()
    raw.FPDFText_GetLooseCharBox(textpage, number, one)
    raw.FPDFText_GetLooseCharBox(textpage, after, other)
    height = max(one.top - one.bottom, other.top - other.bottom)
    if height <= 0 or abs(one.bottom - other.bottom) > height / 2 or other.left < one.left:
        return None
    return float((other.left - one.right) / height)


# --- Signs of bad reading ---

SPLIT, GLYPHS, RIGHT_TO_LEFT = "split words", "missing letters", "right-to-left text"

_ALONE = 0.2
"""Share of the words of a line or page that are one letter, from which on its words are taken to be split."""
_FEWEST_WORDS = 8
_SPLIT_LINES = 2
_MATHEMATICS = re.compile("[\u2200-\u22ff=+<>^|\\[\\]{}\u2190-\u21ff\u0370-\u03ff]")
_MOST_MATHEMATICS = 0.06  # marks a word; single letters are variables there
_LONGEST_WORD = 40
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_FEWEST_LETTERS, _LEAST_SHARE = 5, 0.05
_KEPT = 0.98
"""Share of the letters of the first reading that the second must have to replace it."""
_KEPT_RIGHT_TO_LEFT = 0.75  # where a wrong reading has letters of other scripts besides
_REVERSED = re.compile(
    "\u0627[\u0622\u0623\u0625\u0627]\u0644"  # the ligature of lam and alef, in the wrong order
    "|(?<![^\\W_])[\u0629\u0649\u05da\u05dd\u05df\u05e3\u05e5](?=[^\\W_])"  # a letter that ends words begins one
    "|(?<![^\\s])[\u064b-\u065f\u05b0-\u05c7]"  # a vowel mark without a letter
    "|[\ufb1d-\ufdff\ufe70-\ufefc]"  # a shape of a letter in place of the letter
    "|[A-Za-z][\u0621-\u064a]|[\u0370-\u03ff](?=[\\w\u0370-\u03ff])"  # two scripts run into each other
)


def faults(text: str) -> dict[str, int]:
    """Return the signs of bad reading on a page, and how often it has each.

    Right-to-left text is always one, because engines differ there.
    """
    counts = {SPLIT: split_words(text), GLYPHS: text.count(MISSING)}
    found = {sign: count for sign, count in counts.items() if count}
    if is_right_to_left(text):
        found[RIGHT_TO_LEFT] = len(_REVERSED.findall(text))
    return found


def is_right_to_left(text: str) -> bool:
    """Return whether a page has enough letters of such scripts to count."""
    if text.isascii() or not _RIGHT_TO_LEFT.search(text):
        return False
    return len(_RIGHT_TO_LEFT.findall(text)) >= max(_FEWEST_LETTERS, _LEAST_SHARE * len(text))


def split_words(text: str) -> int:
    """Count single letters on a page, if they are so many that they must be pieces of words; otherwise 0."""
    words = text.split()
    alone = _alone(words)
    if alone < 2 * _SPLIT_LINES:
        return 0
    if len(_MATHEMATICS.findall(text)) >= _MOST_MATHEMATICS * sum(map(str.isalpha, words)):
        return 0
    if _is_split(words, alone, _ALONE):
        return alone
    lines = [line.split() for line in text.split("\n")]
    split = sum(_is_split(line, _alone(line), 2 * _ALONE) for line in lines)
    return alone if split >= _SPLIT_LINES else 0


def _is_split(words: list[str], alone: int, share: float) -> bool:
    return alone > 0 and (letters := sum(map(str.isalpha, words))) >= _FEWEST_WORDS and alone >= share * letters


def _alone(words: list[str]) -> int:
    return sum([word.lower() != word.upper() for word in words if len(word) == 1])


def is_better(first: str, second: str) -> bool:
    """Return whether the second reading of a page has fewer faults than the first, and no less text."""
    kept = _KEPT_RIGHT_TO_LEFT if is_right_to_left(second) else _KEPT
    if _letters(second) < kept * _letters(first):
        return False
    return _score(second) < _score(first) and _overlong(second) <= _overlong(first)


def _score(text: str) -> int:
    """Return the number of faults, without the condition that there are many."""
    split = _alone(text.split())
    right_to_left = len(_REVERSED.findall(text)) if is_right_to_left(text) else 0
    return split + text.count(MISSING) + right_to_left


def _overlong(text: str) -> int:
    return sum(len(word) > _LONGEST_WORD for word in text.split())


def _letters(text: str) -> int:
    """Letters and digits of a page, where a ligature counts as its letters and a missing glyph as one."""
    plain = unicodedata.normalize("NFKC", text)
    return sum(character.isalnum() for character in plain)


# --- Letters that stand apart ---

BoxOf = Callable[[int], tuple[float, float, float, float]]
"""Gives left, right, bottom and top of a character of the text."""

_SPACED = re.compile(r"(?<!\S)(?:[^\W\d_] ){4}")
_LINE = re.compile("[^\r\n\ufffe]+")
_FEWEST, _LEAST = 6, 0.6  # letters of a line that stand alone, and their share of its words
_CLEAR = 0.75  # share of the variance that two kinds of distances explain
_DIFFERENCE = 0.1  # between these two, as a share of the height of a line
_LONGEST = 30  # letters of a word


def with_letters_joined(text: str, box_of: BoxOf, numbers: Sequence[int]) -> tuple[str, Sequence[int]]:
    """Return the text with words where its lines are spaced letters, as some programs write a text layer of OCR.

    The gaps between letters of such lines are of two kinds, and the wide ones are between words. If they are not, or if
    only few letters of the page stand alone, the text stays as it is.
    """
    if not _SPACED.search(text) or not split_words(text.replace("\r", "")):
        return text, numbers
    lines = [line.span() for line in _LINE.finditer(text) if _is_spaced(line[0])]
    letters = [[at for at in range(*line) if not text[at].isspace()] for line in lines]
    boxes = [[box_of(at) for at in line] for line in letters]
    gaps = [_distances(line, 1) for line in boxes]
    steps = [_distances(line, 0) for line in boxes]  # equal in a word where letters of any width have equal room
    distances, limit = max(((one, _limit(one)) for one in (gaps, steps)), key=lambda pair: pair[1][0])
    if limit[0] < _CLEAR:
        return text, numbers
    parts: list[str] = []
    kept: list[int] = []
    end = 0
    for line, line_letters, line_distances in zip(lines, letters, distances, strict=True):
        pairs = zip(line_letters, [0.0, *line_distances], strict=True)
        pieces = [f" {text[at]}" if distance > limit[1] else text[at] for at, distance in pairs]
        if max(map(len, "".join(pieces).split())) > _LONGEST:  # an alphabet
            continue
        parts += [text[end : line[0]], *pieces]
        kept += numbers[end : line[0]]
        kept += [numbers[at] for at, piece in zip(line_letters, pieces, strict=True) for _ in piece]
        end = line[1]
    return "".join([*parts, text[end:]]), [*kept, *numbers[end:]]


def _is_spaced(line: str) -> bool:
    words = line.split()
    alone = sum(len(word) == 1 and word.isalpha() for word in words)
    return alone >= _FEWEST and alone >= _LEAST * len(words)


def _distances(boxes: Sequence[tuple[float, float, float, float]], edge: int) -> list[float]:
    """Return the distances from an edge of each character to the next one, as shares of the height of the line."""
    height = max(max(top - bottom for _, _, bottom, top in boxes), 1.0)
    return [(after[0] - box[edge]) / height for box, after in pairwise(boxes)]


def _limit(lines: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Return how clearly the distances are of two kinds, from 0 to 1, and the limit between these (Otsu's method)."""
    values = sorted(value for line in lines for value in line)
    total = sum(values)
    mean = total / len(values)
    variance = sum((value - mean) ** 2 for value in values)
    best, limit = 0.0, values[-1]
    for count, below in enumerate(accumulate(values[:-1]), 1):
        low, high = below / count, (total - below) / (len(values) - count)
        between = count * (low - mean) ** 2 + (len(values) - count) * (high - mean) ** 2
        if between > best and high - low > _DIFFERENCE:
            best, limit = between, (values[count - 1] + values[count]) / 2
    return (best / variance if variance else 0.0), limit
