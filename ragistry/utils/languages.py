"""The languages of a lexical index, by name and ISO 639-1 code."""

from __future__ import annotations

from functools import cache

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

_NAMES = STEMMED | UNSTEMMED


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


def stemmer_name(language: str) -> str:
    """Snowball's algorithm for a language in its canonical name; empty where there is none."""
    return language if language in STEMMED.values() else ""
