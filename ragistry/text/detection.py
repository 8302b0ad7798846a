"""Detect the language of texts from samples, and suggest settings that suit it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from ragistry.text.languages import STEMMED, analysis_language, canonical_language, language_name

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier  # type: ignore[import-untyped]

_READ = 48  # maximum texts read, spread evenly, to find enough samples with prose
_SAMPLES = 12
_TEXT = 2_000  # characters read of a text, and characters classified of its prose
_PROSE = 300
_SHORTEST = 60  # bytes of prose in UTF-8: twelve words, or twenty Chinese characters
_LEAST = 200  # bytes of all samples
_CLEAR = 0.6  # of the total certainty of the samples
_ENGLISH = frozenset(["the", "of", "and", "to", "in", "is", "that", "for", "with", "are", "this"])
_ENGLISH_SHARE = 0.1  # of the words; far above any other language
_NO_LANGUAGE = "zxx"  # the classifier's code for numbers, code and the like

_CODE = re.compile(
    r"^ {0,3}(?P<fence>```|~~~).*?(?:^ {0,3}(?P=fence)|\Z)"  # a block
    r"|^(?: {4}|\t)[^\n]*|`[^`\n]*`|<[^<>\n]*>|\w+://[!-~]+",  # an indented line, code in a line, a tag, an address
    re.MULTILINE | re.DOTALL,
)
_IDENTIFIER = re.compile(  # all of ASCII, because Chinese words have no blanks around them
    r"[!-~]*[0-9_/\\=<>{}\[\]$@#|~^+&][!-~]*|[!-~]*[A-Za-z)][.:(][A-Za-z(][!-~]*|[!-~]*[a-z][A-Z][!-~]*"
)


class Detected(NamedTuple):
    """A language by its ISO 639-1 code (639-3 without one), and its certainty, 0.6 to 1."""

    language: str
    certainty: float


def detect_language(texts: Sequence[str]) -> Detected | None:
    """Detect the language of most texts; None with too little prose or without a clear winner.

    Code, addresses, numbers and identifiers are ignored. The result is deterministic. It takes about 5 ms for any
    number of texts; the first call takes half a second more. By py3langid: naive Bayes over byte n-grams (Lui and
    Baldwin, 2012, "langid.py"), 140 languages.
    """
    prose = (" ".join(_IDENTIFIER.sub(" ", _CODE.sub(" ", text[:_TEXT])).split())[:_PROSE] for text in _spread(texts))
    samples = list(islice((sample for sample in prose if len(sample.encode()) >= _SHORTEST), _SAMPLES))
    if sum(len(sample.encode()) for sample in samples) < _LEAST:
        return None
    words = [sample.lower().split() for sample in samples]
    if all(sum(word in _ENGLISH for word in one) > _ENGLISH_SHARE * len(one) for one in words):
        return Detected("en", 1.0)  # the usual case: the classifier need not be loaded
    sums: dict[str, float] = defaultdict(float)
    for sample in samples:
        language, certainty = _classifier().classify(sample)
        sums[_MERGED.get(language, language)] += certainty
    language = max(sums, key=lambda code: (sums[code], code))
    certainty = sums[language] / len(samples)
    return None if language == _NO_LANGUAGE or certainty < _CLEAR else Detected(language, round(certainty, 3))


def language_warnings(detected: Detected | None, *, language: str, embed_model: str, english_model: bool) -> list[str]:
    """List the settings that do not suit the detected language, with remedies.

    ``language: none`` suits any language, and scripts without spaces are found with every setting.

    Args:
        detected: The detected language; None if unknown.
        language: The setting: a name or code, or ``"auto"``.
        embed_model: Name of the embedding model.
        english_model: Whether that model is made only for English.

    Raises:
        ConfigError: The language is unknown.
    """
    if detected is None:
        return []
    name, warnings = language_name(detected.language), []
    if language != "auto" and canonical_language(language) != "none":
        fitting = analysis_language(detected.language)
        if fitting != canonical_language(language) and (fitting == "none" or fitting in STEMMED.values()):
            warnings.append(
                f"the text looks {name}, but its words are analysed as {canonical_language(language)}; "
                f"set language: {fitting}, or language: auto for each collection's own"
            )
    if english_model and detected.language != "en":
        warnings.append(
            f"the text looks {name}, but the embedding model {embed_model!r} is made for English; "
            "set embed_model: multilingual and run `ragistry reembed`"
        )
    return warnings


def _spread(texts: Sequence[str]) -> list[str]:
    """Choose up to `_READ` texts, evenly spread, in an order whose beginning is also evenly spread."""
    step = max(1, len(texts) / _READ)
    chosen = [texts[int(i * step)] for i in range(min(_READ, len(texts)))]
    return [*chosen[::3], *chosen[1::3], *chosen[2::3]]


_MERGED = {"nb": "no", "nn": "no", "yue": "zh", "wuu": "zh"}  # they have the same analysis


@cache
def _classifier() -> LanguageIdentifier:
    # the model takes half a second and 90 MB: load it on first use
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
