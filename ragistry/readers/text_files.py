"""Decide by name and content which files of a folder are text that is worth reading.

Documents and code are read by their suffix. Any other file is read if it is text. Neither is read if no search should
return it: keys and credentials, lock files, source maps, minified and encoded text.
"""

from __future__ import annotations

import re
from mimetypes import MimeTypes
from pathlib import PurePosixPath
from typing import IO, BinaryIO

from ragistry.readers.encoding import BOMS, UndecodableError, decode
from ragistry.readers.formats import UNREAD_FORMATS, configured_readers, is_readable, suffix_of

SAMPLE = 16_384
"""Number of bytes of a file that decide, most of them at its start."""
_PART = 4_096
"""Number of these bytes at its end, where a program may carry binary data; of a known format, the first ones decide."""
SMALL = 400
"""Number of bytes of encoded text that do no harm, because they make about one chunk."""
LARGEST = 5_000_000
"""Maximum size in bytes of a text whose suffix is not a format."""
NO_SUFFIX, CREDENTIALS = "without suffix", "credentials"
"""How files without suffix, and keys and credentials, are counted; others are counted by suffix."""

_TYPES = MimeTypes()  # without the files of the system, which differ
_DATA_EXTS = frozenset({".txt", ".csv", ".tsv", ".json", ".jsonl", ".yaml", ".yml", ".toml", ".xml"})
_SCRIPT_EXTS = frozenset({".js", ".jsx", ".ts"})
CHECKED_EXTS = _DATA_EXTS | _SCRIPT_EXTS
"""Formats that programs write too. Files of any other format are documents or code, which are read unseen."""

_KEY_NAME = re.compile(
    r"id_[^.]*(\.(pub|old|bak))?|credentials?([._-].*)?|client_secrets?([._-].*)?|service[_-]account([._-].*)?"
    r"|secrets?(\.(json|ya?ml|toml|xml|ini))?|[._]?(netrc|pgpass|htpasswd|npmrc|pypirc)|(.*\.)?env|kubeconfig([._-].*)?|g?shadow-?"
    r"|.*\.(key|pem|ppk|p12|pfx|jks|keystore|kdbx)"
)
_KEY = re.compile(rb"-----BEGIN [A-Z0-9 ]*PRIVATE KEY")
_OTHER_KEYS = (b"PuTTY-User-Key-File-", b"AGE-SECRET-KEY-1")
_START = 2_000
"""Number of bytes in which a file with a key shows it; a document about keys shows one later."""
_PEM = re.compile(rb"\s*-----BEGIN [A-Z0-9 ]+-----")
_OTHER_NAME = re.compile(  # lock files, and the copies that editors keep
    r".*\.lock(file)?|(.*[-_.])?lock\.(json|ya?ml)|npm-shrinkwrap\.json|go(\.work)?\.sum|package\.resolved|.*~"
)
_SOURCE_MAP = re.compile(rb"[\s)\]}']*\{[^{]*\"(version\"\s*:\s*3\b|mappings\")")
_TOKEN = re.compile(rb"[A-Za-z0-9+/=_-]{40,}")
_ENCODED = re.compile(
    rb"(?=[^0-9]*[0-9])(?=[^A-Za-z]*[A-Za-z])"
    rb"((?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z]).*|[0-9A-F]+|[0-9a-f]+|[A-Z2-7]+=*)"
)
"""Base64, hexadecimal and base32, which have digits and letters; no path and no long word also has capitals and small
letters. So sequences of letters, such as genomes, and of digits are text."""
_ENCODED_SHARE = 0.8
_SPARSE = 0.88
"""Minimum share of other characters than white space in encoded text; prose and code have less."""
_LONG_LINE = 500
_DENSE = 0.08
"""Maximum share of white space in minified text; code and prose have twice as much."""
_WORD = re.compile(rb"\w+")
_SIGNS = 0.1
"""Minimum share of signs in minified text; it has twice as many, and letters without blanks have none."""
_CONTROLS = bytes({*range(32)} - {*b"\a\b\t\n\v\f\r\x1a\x1b"} | {127})
_CONTROL_SHARE = 0.01


def sample_of(stream: BinaryIO | IO[bytes], size: int, *, is_known: bool) -> bytes:
    """Read the bytes of a file that decide; ``is_known``: its suffix is that of a format. Raises `OSError`."""
    if is_known or size <= SAMPLE:
        return stream.read(_PART if is_known else SAMPLE)
    start = stream.read(SAMPLE - _PART)
    stream.seek((size - _PART) & ~3)  # splits no character of UTF-16
    return start + stream.read(_PART)


def is_text(sample: bytes) -> bool:
    """Return whether some bytes of a file are text in any encoding."""
    controls = len(sample) - len(sample.translate(None, _CONTROLS))
    if controls > _CONTROL_SHARE * len(sample) and not (sample.startswith(BOMS) or _is_utf16(sample)):
        return False
    try:
        decode(sample)
    except UndecodableError:
        return False
    return True


def _is_utf16(sample: bytes) -> bool:
    """Return whether every second byte is mostly NUL, as in Latin text in UTF-16 without a mark."""
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    return 4 * max(even, odd) > len(sample) and 40 * min(even, odd) <= len(sample)


def is_document(name: str) -> bool:
    """Return whether the suffix of a file tells that it is read, whatever its content."""
    suffix = suffix_of(name)
    return suffix in configured_readers() or (suffix not in CHECKED_EXTS and is_readable(suffix))


def is_media(name: str) -> bool:
    """Return whether the suffix of a file is that of a picture, a sound, a film or a font, which need not be opened."""
    suffix = suffix_of(name)
    kind = _TYPES.guess_type(f"file{suffix}")[0] or ""
    return kind.startswith(("image/", "audio/", "video/", "font/")) and not is_readable(suffix)


def is_worth_reading(name: str, sample: bytes, size: int, *, all_text: bool = False) -> bool:
    """Return whether a file of a folder is text that is worth reading; see the module.

    Args:
        name: Name of the file, which is no document (`is_document`).
        sample: Its `sample_of`.
        size: Its size in bytes.
        all_text: Return whether it is text at all.
    """
    suffix, name = suffix_of(name), PurePosixPath(name).name.rstrip().lower()
    if suffix in UNREAD_FORMATS:
        return False
    is_known = is_readable(suffix)
    if all_text:
        return is_known or (size > 0 and is_text(sample))
    if is_known and suffix in _SCRIPT_EXTS:
        return not (".min." in name or _is_minified(sample) or _is_encoded(sample))
    if is_media(name) or _is_key(name, sample) or _OTHER_NAME.fullmatch(name) or _is_encoded(sample):
        return False
    if is_known:
        return True
    is_made = ".min." in name or _is_minified(sample) or (suffix == ".map" and _SOURCE_MAP.match(sample))
    return not is_made and 0 < size <= LARGEST and is_text(sample)


def kind_of(name: str, sample: bytes = b"") -> str:
    """Return the suffix or word under which a file is counted that was left out; without a sample, by its name."""
    suffix, path = suffix_of(name), PurePosixPath(name.lower())
    if _is_key(path.name.rstrip(), sample) and not is_media(name):
        return CREDENTIALS
    if not re.fullmatch(r"\.[\w+~-]{1,15}", suffix):
        return NO_SUFFIX
    return f".min{suffix}" if path.stem.endswith(".min") else suffix


def _is_key(name: str, sample: bytes) -> bool:
    start = sample[:_START]
    if b"-----BEGIN " in start and (_KEY.search(start) or _PEM.match(start)):
        return True
    return bool(_KEY_NAME.fullmatch(name)) or any(key in start for key in _OTHER_KEYS)


def _is_encoded(sample: bytes) -> bool:
    length = _length_without_blanks(sample)
    if length < _SPARSE * len(sample):
        return False  # most files, because counting is quicker
    found = sum(len(token) for token in _TOKEN.findall(sample) if _ENCODED.fullmatch(token))
    return found > max(SMALL, _ENCODED_SHARE * length)


def _is_minified(sample: bytes) -> bool:
    if len(sample) < _LONG_LINE * (sample.count(b"\n") + 1):
        return False
    if len(_WORD.sub(b"", sample)) < _SIGNS * len(sample):
        return False
    return _length_without_blanks(sample) > (1 - _DENSE) * len(sample) and sample.isascii()


def _length_without_blanks(sample: bytes) -> int:
    return len(sample.translate(None, b" \t\r\n"))
