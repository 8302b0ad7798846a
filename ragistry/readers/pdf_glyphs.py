"""Restore ligatures that the font of a PDF does not map to letters."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import product

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
    known: dict[str, str] = {}

    def restored(broken: re.Match[str]) -> str:
        word = broken[0]
        if word not in known:
            known[word] = _restored(word, words)
        return known[word]

    return [_BROKEN_WORD.sub(restored, text) if MISSING in text else text for text in texts]


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
