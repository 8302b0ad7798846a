"""The languages of a lexical index, by name and ISO 639-1 code."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from ragistry.errors import ConfigError
from ragistry.utils.shown import shown
from ragistry.utils.suggest import did_you_mean, listed

STEMMED = {
    "ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german", "el": "greek", "en": "english",
    "eo": "esperanto", "es": "spanish", "et": "estonian", "eu": "basque", "fa": "persian", "fi": "finnish",
    "fr": "french", "ga": "irish", "hi": "hindi", "hu": "hungarian", "hy": "armenian", "id": "indonesian",
    "it": "italian", "lt": "lithuanian", "ne": "nepali", "nl": "dutch", "no": "norwegian", "pl": "polish",
    "pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian", "st": "sesotho", "sv": "swedish",
    "ta": "tamil", "tr": "turkish", "yi": "yiddish",
}  # fmt: skip
"""Those that Snowball has a stemmer for."""

UNSTEMMED = {
    "ja": "japanese", "km": "khmer", "ko": "korean", "lo": "lao", "my": "burmese", "th": "thai", "zh": "chinese",
    "none": "none",
}  # fmt: skip
"""Those that pairs of characters serve, and ``none`` for any other language, and for several in one index."""

_OTHERS = {
    "af": "afrikaans", "bg": "bulgarian", "bn": "bengali", "bs": "bosnian", "gl": "galician", "gu": "gujarati",
    "he": "hebrew", "hr": "croatian", "is": "icelandic", "ka": "georgian", "kk": "kazakh", "la": "latin",
    "lv": "latvian", "mk": "macedonian", "mn": "mongolian", "mr": "marathi", "ms": "malay", "pa": "punjabi",
    "sk": "slovak", "sl": "slovenian", "sq": "albanian", "sw": "swahili", "te": "telugu", "tl": "tagalog",
    "uk": "ukrainian", "ur": "urdu", "vi": "vietnamese", "yo": "yoruba",
}  # fmt: skip
"""Those that have no analysis of their own, for messages."""

_NAMES = STEMMED | UNSTEMMED
_KNOWN = frozenset(_NAMES.values())

AUTO = "auto"
"""As the setting ``language``: each source by its own."""


@cache
def canonical_language(language: str) -> str:
    """The name of a language given by name or code, in any case: ``"EN"`` is ``"english"``.

    Raises `ConfigError` for a language that is not known.
    """
    key = language.casefold() if isinstance(language, str) else ""
    name = _NAMES.get(key, key)
    if name not in _NAMES.values():
        known = {*_NAMES, *_NAMES.values()}
        raise ConfigError(
            f"no analysis for the language {shown(language)}{did_you_mean(key, known)}; "
            f"there are {listed(_NAMES.values(), len(_NAMES))}, their ISO 639-1 codes, and 'none' for no stemming"
        )
    return name


def chunk_language(metadata: Mapping[str, Any], default: str) -> str:
    """The analysis of a chunk's words: the ``language`` of its metadata where that is known, else ``default``.

    ``default``: as canonical name, or ``"auto"``, which stands for English where nothing was detected.
    """
    said = metadata.get("language")
    if isinstance(said, str) and (name := _NAMES.get(said.casefold(), said.casefold())) in _KNOWN:
        return name
    return "english" if default == AUTO else default


def stemmer_name(language: str) -> str:
    """Snowball's algorithm for a language in its canonical name; empty where there is none."""
    return language if language in STEMMED.values() else ""


def analysis_language(code: str) -> str:
    """The name of the analysis that suits a language by its ISO 639 code; ``"none"`` where there is no stemmer."""
    return _NAMES.get(code, "none")


def language_name(code: str) -> str:
    """A language for a message, capitalised: ``"German"``; the code itself where the name is not known here."""
    name = _NAMES.get(code) or _OTHERS.get(code)
    return name.capitalize() if name else repr(code)
