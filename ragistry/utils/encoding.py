"""Bytes of unknown encoding to text."""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

_BOMS = (  # UTF-32 first: its little-endian mark begins with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CANDIDATES = [  # what files are really written in; the detector's longer list makes it guess worse, not better
    *("cp1252", "cp1250", "iso8859_2", "cp1251", "koi8_r", "cp866", "iso8859_5", "cp1253", "cp1254", "cp1255"),
    *("cp1256", "cp1257", "cp932", "euc_jp", "gb18030", "big5", "cp949", "mac_roman", "cp850"),
]
_PIECE = re.compile(rb"(?s:.{0,4095})[ \n]|[^ \n]+")  # ends where no encoding has half a character
_SAMPLE = 65_536  # bytes of non-ASCII pieces that the detector reads
_MARGIN = 0.03  # within which cp1252 wins: on Spanish, the detector ranks cp1250 as high, and ñ becomes ń
_FEW = 10  # non-ASCII bytes among ASCII that are too few to tell anything: the commonest encoding is taken
_DAMAGED = 0.1  # share of bad sequences up to which a file is damaged UTF-8 rather than another encoding


class Decoded(NamedTuple):
    """The text, the encoding it was read with (Python's name), and what was uncertain about it, if anything."""

    text: str
    encoding: str
    warning: str = ""


def decode(data: bytes) -> Decoded:
    """Read ``data`` by its byte order mark, else as UTF-8, else in the encoding that its letters speak for.

    Raises `ValueError` where the bytes are no text: NUL bytes, or nothing that any encoding makes sense of.
    """
    marked = next((encoding for mark, encoding in _BOMS if data.startswith(mark)), "")
    decoded = _lenient(data, marked or "utf-8")
    if "\0" in decoded.text:
        raise ValueError("it has NUL characters: a binary file, or UTF-16 without its mark; save it as UTF-8")
    if marked or not decoded.warning or _is_mostly_whole(decoded.text):
        return decoded
    return _guessed(data)


def _lenient(data: bytes, encoding: str) -> Decoded:
    try:
        return Decoded(data.decode(encoding), encoding)
    except UnicodeDecodeError:
        return Decoded(data.decode(encoding, "replace"), encoding, f"bytes that are not {encoding} became \ufffd")


def _is_mostly_whole(text: str) -> bool:
    beyond_ascii = len(text) - len(text.encode("ascii", "ignore"))
    return text.count("\ufffd") <= _DAMAGED * beyond_ascii


def _guessed(data: bytes) -> Decoded:
    encoding = _guess(_sample(data))
    decoded = _lenient(data, encoding)
    return decoded._replace(warning=f"not UTF-8: read as {encoding}, which is a guess; save it as UTF-8")


def _sample(data: bytes) -> bytes:
    pieces, size = [], 0
    for piece in (found[0] for found in _PIECE.finditer(data)):
        if not piece.isascii():
            pieces.append(piece)
            size += len(piece)
        if size >= _SAMPLE:
            break
    return b"".join(pieces)


def _guess(sample: bytes) -> str:
    beyond_ascii = sum(byte > 127 for byte in sample)
    if beyond_ascii < _FEW and 2 * beyond_ascii <= len(sample):
        return "cp1252"
    from charset_normalizer import from_bytes  # only the few files that are not UTF-8 pay for it

    matches = from_bytes(sample, cp_isolation=_CANDIDATES, threshold=0.9)
    best = matches.best()
    if best is None:
        raise ValueError("it is in no encoding that is known here; save it as UTF-8")
    western = (match for match in matches if "cp1252" in match.could_be_from_charset)
    if any(m.chaos <= best.chaos + _MARGIN and m.coherence >= best.coherence - _MARGIN for m in western):
        return "cp1252"
    return best.encoding
