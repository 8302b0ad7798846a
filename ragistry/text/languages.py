"""The languages of a lexical index, by name and ISO 639-1 code."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from ragistry.errors import ConfigError
from ragistry.utils.wording import did_you_mean, listed, shown

STEMMED = {
    "ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german", "el": "greek", "en": "english",
    "eo": "esperanto", "es": "spanish", "et": "estonian", "eu": "basque", "fa": "persian", "fi": "finnish",
    "fr": "french", "ga": "irish", "hi": "hindi", "hu": "hungarian", "hy": "armenian", "id": "indonesian",
    "it": "italian", "lt": "lithuanian", "ne": "nepali", "nl": "dutch", "no": "norwegian", "pl": "polish",
    "pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian", "st": "sesotho", "sv": "swedish",
    "ta": "tamil", "tr": "turkish", "yi": "yiddish",
}  # fmt: skip
"""Languages with a Snowball stemmer."""

UNSTEMMED = {
    "ja": "japanese", "km": "khmer", "ko": "korean", "lo": "lao", "my": "burmese", "th": "thai", "zh": "chinese",
    "none": "none",
}  # fmt: skip
"""Languages indexed by pairs of characters, and ``none`` for all others or several in one index."""

_OTHERS = {
    "af": "afrikaans", "bg": "bulgarian", "bn": "bengali", "bs": "bosnian", "gl": "galician", "gu": "gujarati",
    "he": "hebrew", "hr": "croatian", "is": "icelandic", "ka": "georgian", "kk": "kazakh", "la": "latin",
    "lv": "latvian", "mk": "macedonian", "mn": "mongolian", "mr": "marathi", "ms": "malay", "pa": "punjabi",
    "sk": "slovak", "sl": "slovenian", "sq": "albanian", "sw": "swahili", "te": "telugu", "tl": "tagalog",
    "uk": "ukrainian", "ur": "urdu", "vi": "vietnamese", "yo": "yoruba",
}  # fmt: skip
"""Languages without their own analysis, for messages."""

_NAMES = STEMMED | UNSTEMMED
_KNOWN = frozenset(_NAMES.values())

AUTO = "auto"
"""Value of the setting ``language``: detect the language of each source."""


@cache
def canonical_language(language: str) -> str:
    """Return the name of a language by name or code, in any case: ``"EN"`` is ``"english"``.

    Raises `ConfigError` for an unknown language.
    """
    key = language.casefold() if isinstance(language, str) else ""
    name = _NAMES.get(key, key)
    if name not in _KNOWN:
        raise ConfigError(
            f"no analysis for the language {shown(language)}{did_you_mean(key, {*_NAMES, *_KNOWN})}; "
            f"use {listed(_NAMES.values(), len(_NAMES))}, their ISO 639-1 codes, or 'none' for no stemming"
        )
    return name


def chunk_language(metadata: Mapping[str, Any], default: str) -> str:
    """Return the language of a chunk: ``language`` of its metadata if known, else ``default``.

    ``default``: a canonical name, or ``"auto"``, which means English if nothing was detected.
    """
    value = metadata.get("language")
    if isinstance(value, str) and (name := _NAMES.get(value.casefold(), value.casefold())) in _KNOWN:
        return name
    return "english" if default == AUTO else default


def stemmer_name(language: str) -> str:
    """Return Snowball's algorithm for a canonical language name; empty without one."""
    return language if language in STEMMED.values() else ""


def analysis_language(code: str) -> str:
    """Return the analysis for a language by its ISO 639 code; ``"none"`` without a stemmer."""
    return _NAMES.get(code, "none")


def language_name(code: str) -> str:
    """Return the name of a language for a message, such as ``"German"``; its code if the name is unknown."""
    name = _NAMES.get(code) or _OTHERS.get(code)
    return name.capitalize() if name else repr(code)
