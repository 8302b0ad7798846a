"""Decode bytes of unknown encoding."""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

_MARKS = (  # UTF-32 first: its little-endian mark begins with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
BOMS = tuple(mark for mark, _ in _MARKS)
"""Byte order marks."""
_WIDE = ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")
_ESCAPED = ("iso2022_jp_2", "iso2022_jp_ext", "iso2022_jp_2004", "iso2022_kr")
_CANDIDATES = (  # common encodings; with its full list, the detector guesses worse
    *("cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258", "cp874"),
    *("iso8859-2", "iso8859-5", "iso8859-7", "iso8859-15", "koi8-r", "koi8-u", "cp866", "cp850", "cp852"),
    *("mac-roman", "cp932", "euc_jis_2004", "gb18030", "big5hkscs", "cp949", *_WIDE, *_ESCAPED),
)
_DECLARED = re.compile(rb"(?:charset|coding)\s*[=:]\s*[\"']?\s*(?!utf)([\w.:-]{1,40})", re.IGNORECASE)
_SUPERSETS = {
    **{"ascii": "cp1252", "iso8859-1": "cp1252", "iso8859-9": "cp1254", "iso8859-11": "cp874", "tis-620": "cp874"},
    **{"gb2312": "gb18030", "gbk": "gb18030", "shift_jis": "cp932", "euc_kr": "cp949"},
}
"""What programs write under the name of an encoding, as browsers read it."""
_CODE_PAGES = ("iso-8859", "windows-125", "us-ascii")
_NAMES = (  # of programs that write zip files, in the order of their share
    *("cp437", "cp850", "cp866", "cp932", "gb18030", "cp949", "big5hkscs", "cp852", "cp857", "cp737", "cp862"),
    *("cp1251", "cp1252"),
)
_BACKSLASH_OF_CP932 = re.compile(rb"(?<![A-Za-z])[\x81-\x9f\xe0-\xef]\\")  # the second byte of ソ, 表 and others
_JAPANESE = re.compile("[\x00-\x7f\u3000-\u30ff\u3400-\u9fff\uff01-\uffef]*")
_UNSURE = frozenset({"cp437", "cp850", "cp852", "cp857", "cp1252", "big5hkscs", "gb18030", "cp949"})
_WESTERN = frozenset("äöüßÄÖÜáàâåæçéèêëíìîïñóòôúùûÅÆÇÉÑ")
_SAMPLE = 65_536  # bytes that the detector reads, which takes it about 10 ms
_ASCII = bytes(range(128))
_BREAK = re.compile("[ \n\u3000-\u3002\uff0c]")  # any text has blanks, line ends or Chinese punctuation
_FEW = 3  # bytes outside ASCII that are too few to detect an encoding, as in "50 °C": the most common one is used
_DAMAGED = 0.1  # share of bad sequences up to which a file is damaged UTF-8 rather than another encoding


_TERMINAL = re.compile(
    "\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b\n]*(?:\x07|\x1b\\\\)?|[ -/]+[0-~]|[0-Z\\\\^-~])"
    "|\x9b[0-?]*[ -/]*[@-~]|[^\n]\x08"
)
"""Colours and other commands of terminals, and letters that another one is printed over."""


class Decoded(NamedTuple):
    """The text, its encoding (Python's name), and a warning if the encoding was uncertain."""

    text: str
    encoding: str
    warning: str = ""


class UndecodableError(ValueError):
    """The bytes are not text. The message says why and what to do."""


def decode(data: bytes, encoding: str = "") -> Decoded:
    """Decode ``data`` by its byte order mark, as UTF-8, in the encoding that it names, or in the most probable one.

    Args:
        data: Content of a text.
        encoding: Name of the encoding by its sender, which goes first. UTF-8 under the name of a code page is read as
            UTF-8, because hardly any other text is valid UTF-8.

    Raises `UndecodableError` if the bytes are not text: NUL characters, or no encoding fits.
    """
    if not encoding.lower().startswith(_CODE_PAGES) and (declared := decode_as(data, encoding)):
        return declared
    marked = next((encoding for mark, encoding in _MARKS if data.startswith(mark)), "")
    decoded = _lenient(data, marked or "utf-8")
    if not marked and "\0" in decoded.text:
        guessed = _guessed(data, _WIDE)
        decoded = guessed if guessed is not None and _BREAK.search(guessed.text) else decoded
    elif not marked and decoded.warning and not _is_mostly_whole(decoded.text):
        guessed = decode_as(data, encoding or encoding_in(data)) or _guessed(data, _CANDIDATES)
        if guessed is None:
            raise UndecodableError("its encoding is unknown: it is a binary file, or damaged text; save it as UTF-8")
        decoded = guessed
    elif not marked and b"\x1b" in data and b"\x1b$" in data:  # also ASCII; escape sequences may be terminal colours
        return _guessed(data, _ESCAPED) or decoded
    elif not marked:
        return decoded
    if "\0" in decoded.text:
        raise UndecodableError("it has NUL characters: it is a binary file, or UTF-16 without a mark; save it as UTF-8")
    return decoded


def encoding_in(data: bytes) -> str:
    """Return the encoding that a web page, XML or code names at its start; empty without one."""
    found = _DECLARED.search(data[:1_024])
    return found[1].decode() if found else ""


def decode_as(data: bytes, encoding: str) -> Decoded | None:
    """Decode ``data`` in a named encoding, as browsers understand its name; None if it does not fit."""
    with suppress(LookupError, ValueError):
        name = codecs.lookup(encoding).name
        name = _SUPERSETS.get(name, name)
        return Decoded(data.decode(name), name)
    return None


def names_encoding(names: Sequence[bytes]) -> str:
    """Return the most probable encoding of the names of a zip file, which does not state it.

    One program wrote all names in one encoding, and a single name is too short to detect it.
    """
    data = b"\n".join(dict.fromkeys(names))
    try:
        data.decode()
    except UnicodeDecodeError:
        if _BACKSLASH_OF_CP932.search(data) and _JAPANESE.fullmatch(data.decode("cp932", "replace")):
            return "cp932"
        encoding = _detected(data, _NAMES) or _NAMES[0]
        return _NAMES[0] if encoding in _UNSURE and _is_western(data) else encoding
    return "utf-8"


def _is_western(data: bytes) -> bool:
    """Return whether names are words of Western Europe in code page 437, mainly of ASCII letters.

    The detector takes the few other letters of such words for those of related code pages.
    """
    ascii_letters = sum(map(bytes.isalpha, (data[at : at + 1] for at in range(len(data)))))
    others = {character for character in data.decode(_NAMES[0]) if character > "\x7f"}
    return others <= _WESTERN and 2 * ascii_letters > ascii_letters + len(data.translate(None, _ASCII))


def without_commands(text: str) -> str:
    """Remove colours and other commands of terminals from a text."""
    return _TERMINAL.sub("", text) if any(sign in text for sign in "\x1b\x9b\b") else text


def _lenient(data: bytes, encoding: str) -> Decoded:
    try:
        return Decoded(data.decode(encoding), encoding)
    except UnicodeDecodeError:
        return Decoded(data.decode(encoding, "replace"), encoding, f"invalid {encoding} bytes were replaced by \ufffd")


def _is_mostly_whole(text: str) -> bool:
    beyond_ascii = len(text) - len(text.encode("ascii", "ignore"))
    return text.count("\ufffd") <= _DAMAGED * beyond_ascii


def _guessed(data: bytes, candidates: tuple[str, ...]) -> Decoded | None:
    """Decode ``data`` in the most probable encoding; None if none fits."""
    sample = data[:_SAMPLE]
    if candidates is _CANDIDATES and sample.isascii():
        start = len(data) - len(data.lstrip(_ASCII))
        sample = data[start : start + _SAMPLE]
    encoding = _detected(sample, candidates)
    if not encoding:
        return None
    warning = f"not UTF-8: read as {encoding}, which is a guess; save it as UTF-8"
    return _lenient(data, encoding)._replace(warning=warning)


def _detected(sample: bytes, candidates: tuple[str, ...]) -> str:
    """Return the most probable encoding; empty if none fits the sample."""
    beyond_ascii = len(sample.translate(None, _ASCII))
    if candidates is _CANDIDATES and beyond_ascii < _FEW and 2 * beyond_ascii <= len(sample):
        return "cp1252"
    import chardet  # imported only for the few files that are not UTF-8

    nothing = "ascii"
    found = chardet.detect(
        sample,
        max_bytes=_SAMPLE,
        compat_names=False,
        include_encodings=(*candidates, nothing),
        no_match_encoding=nothing,
    )["encoding"]
    return "" if found in (None, nothing) else codecs.lookup(found).name
