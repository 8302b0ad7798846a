"""Read the parts of mails of Outlook (.msg), whose texts are in the code page of the mail or in UTF-16."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from io import BytesIO

from olefile import OleFileIO

from ragistry.readers.blocks import REPAIR, UnreadableFileError
from ragistry.readers.encoding import UndecodableError, decode, decode_as, encoding_in
from ragistry.utils.wording import numbered

_SUBJECT, _BODY, _HTML, _HEADERS, _SENT = 0x0037, 0x1000, 0x1013, 0x007D, 0x0039
_SENDER, _SENDER_ADDRESS, _SENDER_SMTP, _REPRESENTED = 0x0C1A, 0x0C1F, 0x5D01, 0x0042
_NAME, _SMTP, _ADDRESS, _LONG_FILE_NAME, _FILE_NAME, _CONTENT = 0x3001, 0x39FE, 0x3003, 0x3707, 0x3704, 0x3701
_INTERNET_CODEPAGE, _MESSAGE_CODEPAGE = 0x3FDE, 0x3FFD
_RTF = 0x1009
_TEXT_8, _TEXT_16, _BINARY, _OBJECT = "001E", "001F", "0102", "000D"
_PROPERTIES = "__properties_version1.0"
_CODE_PAGES = {  # those that Python has under another name
    10000: "mac_roman", 10006: "mac_greek",
    10007: "mac_cyrillic", 10029: "mac_latin2", 10079: "mac_iceland", 10081: "mac_turkish", 20127: "ascii",
    20866: "koi8_r", 20932: "euc_jp", 20936: "gb18030", 20949: "cp949", 21866: "koi8_u",
    38598: "iso8859_8", 50220: "iso2022_jp_ext", 50221: "iso2022_jp_ext", 50222: "iso2022_jp_ext",
    50225: "iso2022_kr", 51932: "euc_jp", 51936: "gb18030", 51949: "cp949", 52936: "hz", 54936: "gb18030",
    65000: "utf_7", 1200: "utf_16_le", 1201: "utf_16_be",
}  # fmt: skip
_ASCII = bytes(range(128))
_MULTIBYTE = frozenset({"cp932", "gb18030", "cp949", "cp950", "johab"})
_FEW = 8  # bytes outside ASCII, of which a few in such a page may happen to be UTF-8
_BAD_BYTES = "bytes that are not {}, the code page of the mail; these characters are lost"
_GUESSED = "no known code page; it was read as {}, which is a guess"


@dataclass(slots=True)
class OutlookMail:
    """What a mail holds.

    Attributes:
        headers: Values by name; ``Date`` is ISO 8601.
        plain: Body in plain text.
        page: Body in HTML.
        attachments: Name and content of each attachment: bytes, a mail, or None if it cannot be read.
        warnings: What a reader of the text should know, one line each.
        unread: What of the mail was not read, one line each.
    """

    headers: dict[str, str]
    plain: str
    page: str
    attachments: list[tuple[str, bytes | OutlookMail | None]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


def open_outlook(data: bytes, depth: int) -> OutlookMail:
    """Read a mail and, up to ``depth``, the mails that are attached to each other.

    Raises:
        UnreadableFileError: It is no mail of Outlook, or damaged.
    """
    try:
        with OleFileIO(BytesIO(data)) as file:
            return _Reader(file, (), 32).mail(depth)
    except (OSError, ValueError, IndexError, struct.error, RecursionError) as error:
        raise UnreadableFileError(f"is damaged or no mail of Outlook; {REPAIR}") from error


class _Reader:
    """Reads the properties in one folder of the file; ``header`` is the number of bytes before them."""

    def __init__(self, file: OleFileIO, folder: tuple[str, ...], header: int, mail: _Reader | None = None) -> None:
        self.file, self.folder = file, folder
        data = self.stream(_PROPERTIES) or b""
        entries = (data[start : start + 16] for start in range(header, len(data) - 15, 16))
        self.values = {struct.unpack("<H", entry[2:4])[0]: entry[8:16] for entry in entries}
        self.pages: tuple[int, ...] = mail.pages if mail else ()  # the code pages of the mail are those of its parts
        self.problems: dict[tuple[str, str], int] = mail.problems if mail else {}
        if not mail:
            numbers = (self.number(_MESSAGE_CODEPAGE), self.number(_INTERNET_CODEPAGE))
            self.pages = tuple(dict.fromkeys(filter(None, numbers)))

    def mail(self, depth: int) -> OutlookMail:
        if self.stream(_PROPERTIES) is None:
            raise ValueError(_PROPERTIES)
        headers = {"Subject": self.text(_SUBJECT), "From": self._sender(), "To": ", ".join(self._recipients())}
        headers["Date"] = self._date()
        body_pages = tuple(dict.fromkeys(filter(None, (self.number(_INTERNET_CODEPAGE), *self.pages))))
        plain, page = self.text(_BODY, body_pages), self.text(_HTML, body_pages)
        found = OutlookMail(headers, plain, page, list(self._attachments(depth)))
        if not plain and not page and self.stream(f"__substg1.0_{_RTF:04X}{_BINARY}"):
            found.unread.append("its body is in RTF alone and is not read; save the mail as text and ingest that")
        found.warnings += [
            f"{numbered(count, 'text[ has|s have]')} {problem.format(encoding)}"
            for (problem, encoding), count in self.problems.items()
        ]
        return found

    def stream(self, name: str) -> bytes | None:
        path = [*self.folder, name]
        if self.file.get_type(path) != 2:  # a stream
            return None
        with self.file.openstream(path) as stream:
            return bytes(stream.read())

    def number(self, tag: int) -> int:
        return int(struct.unpack("<L", self.values.get(tag, bytes(8))[:4])[0])

    def text(self, tag: int, pages: tuple[int, ...] = ()) -> str:
        wide = self.stream(f"__substg1.0_{tag:04X}{_TEXT_16}")
        if wide is not None:
            return wide.decode("utf-16-le", "replace").rstrip("\0")
        name = f"__substg1.0_{tag:04X}"
        data = self.stream(name + _TEXT_8)
        if data is None:
            data = self.stream(name + _BINARY) or b""
        return self._decoded(data.rstrip(b"\0"), pages or self.pages)

    def _decoded(self, data: bytes, pages: Sequence[int]) -> str:
        if data.isascii() and b"\x1b" not in data and not {65000, 52936}.intersection(pages):
            return data.decode("ascii")
        names = [*map(_encoding, pages), encoding_in(data)]
        encodings = [known.encoding for name in names if (known := decode_as(bytes(4), name))]
        beyond_ascii = len(data.translate(None, _ASCII))
        may_be_chance = not beyond_ascii or (beyond_ascii < _FEW and not _MULTIBYTE.isdisjoint(encodings[:1]))
        encodings.insert(len(encodings) if may_be_chance else 0, "utf-8")
        for encoding in encodings:
            try:
                return data.decode(encoding)
            except UnicodeError:
                continue
        expected = next((encoding for encoding in encodings if encoding != "utf-8"), "")
        text, encoding, problem = data.decode(expected or "utf-8", "replace"), expected or "utf-8", _BAD_BYTES
        if not expected:
            with suppress(UndecodableError):
                text, encoding, _ = decode(data)
                problem = _GUESSED
        self.problems[problem, encoding] = self.problems.get((problem, encoding), 0) + 1
        return text

    def _sender(self) -> str:
        lines = re.search(r"(?im)^from:[ \t]*(.+(?:\r?\n[ \t].*)*)", self.text(_HEADERS))
        if lines:
            return " ".join(lines[1].split())
        name, address = self.text(_SENDER).strip(), self.text(_SENDER_SMTP) or self.text(_SENDER_ADDRESS)
        return (
            " ".join(filter(None, (f'"{name}"' * bool(name), f"<{address}>"))) if address else self.text(_REPRESENTED)
        )

    def _recipients(self) -> Iterator[str]:
        for one in self._parts("__recip_version1.0_#"):
            if address := one.text(_SMTP) or one.text(_ADDRESS):
                yield f"{one.text(_NAME)} <{address}>"

    def _attachments(self, depth: int) -> Iterator[tuple[str, bytes | OutlookMail | None]]:
        inner = f"__substg1.0_{_CONTENT:04X}{_OBJECT}"
        for one in self._parts("__attach_version1.0_#"):
            name = one.text(_LONG_FILE_NAME) or one.text(_FILE_NAME) or one.text(_NAME) or "attachment"
            content: bytes | OutlookMail | None = one.stream(f"__substg1.0_{_CONTENT:04X}{_BINARY}")
            if content is None and depth and self.file.exists([*one.folder, inner, _PROPERTIES]):
                content = _Reader(self.file, (*one.folder, inner), 24).mail(depth - 1)
            yield name, content

    def _parts(self, prefix: str) -> Iterator[_Reader]:
        level = len(self.folder)
        for path in self.file.listdir(streams=False, storages=True):
            if len(path) == level + 1 and tuple(path[:level]) == self.folder and path[level].startswith(prefix):
                yield _Reader(self.file, tuple(path), 8, self)

    def _date(self) -> str:
        ticks = struct.unpack("<Q", self.values.get(_SENT, bytes(8)))[0]
        try:
            return (datetime(1601, 1, 1, tzinfo=UTC) + timedelta(seconds=ticks // 10**7)).isoformat() if ticks else ""
        except OverflowError:
            return ""


def _encoding(page: int) -> str:
    return _CODE_PAGES.get(page) or (f"iso8859_{page - 28590}" if 28591 <= page <= 28606 else f"cp{page}")
