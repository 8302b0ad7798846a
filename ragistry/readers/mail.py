"""Mails (RFC 5322, and .msg files of Outlook) with their attachments, and web pages that are saved as mails (MHTML).

kreuzberg joins the words of HTML bodies and drops most dates.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from email.errors import MessageError
from email.header import decode_header
from email.message import Message
from email.policy import Compat32
from email.utils import parsedate_to_datetime
from io import BytesIO
from mimetypes import MimeTypes
from typing import Any

from olefile import OleFileIO

from ragistry.readers.blocks import REPAIR, Block, Place, ReadDocument, UnreadableFileError, add_reports
from ragistry.readers.encoding import BOMS, UndecodableError, decode, decode_as, encoding_in
from ragistry.readers.html_page import to_markdown
from ragistry.utils.quoting import visible_line
from ragistry.utils.wording import numbered

SHOWN = ("Subject", "From", "To", "Cc", "Date")
MOST_PARTS, MOST_BYTES, MOST_DEPTH = 100, 50_000_000, 4
"""Attachments and inner mails of one mail that are read, their bytes in all, and mails inside each other."""
LISTED, LONGEST_NAME = 20, 100
"""Names of attachments that the text of a mail lists, and characters of a name."""
_QUOTED = re.compile(r'"([^",;]+)"(?= <)')
_TYPES = MimeTypes()  # without the files of the system, which differ
ReadPart = Callable[[bytes, str], ReadDocument]
"""Reads the bytes of an attachment by its name. Raises `UnreadableFileError`, or `KeyError` without a reader for it."""


@dataclass(slots=True)
class Mail:
    """What a mail holds.

    Attributes:
        headers: Values by name.
        created: When it was sent, in ISO 8601.
        body: Its text.
        attachments: Name and content of each: text that programs show with the mail, bytes, a mail, or None if it
            cannot be read.
        warnings: What a reader of the text should know, one line each.
        unread: What of the mail was not read, one line each.
    """

    headers: dict[str, str]
    created: str
    body: str
    attachments: list[tuple[str, str | bytes | Mail | None]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Budget:
    """What may still be read of the parts of one mail."""

    parts: int = MOST_PARTS
    bytes: int = MOST_BYTES
    left_out: list[str] = field(default_factory=list)
    uncounted: int = 0

    def takes(self, name: str, size: int) -> bool:
        if self.parts <= 0 or size > self.bytes:
            self.left_out.append(name)
            return False
        self.parts -= 1
        self.bytes -= size
        return True


class _AsWritten(Compat32):
    """Headers in any encoding. Later policies of Python drop parameters without quotes, such as boundaries with "="."""

    def header_fetch_parse(self, name: str, value: str) -> str:  # noqa: ARG002, the signature of the policy
        return _decode(value.encode("ascii", "surrogateescape"))


def read(data: bytes, suffix: str, read_part: ReadPart) -> ReadDocument:
    """Read a mail: its header, the body with most text, inner mails, and attachments that have a reader."""
    if suffix in (".msg", ".oft"):
        mail = _outlook(data)
    else:
        data = _decode(data).encode() if data.startswith(BOMS) else data.lstrip()
        message = message_from_bytes(data, policy=_AsWritten())
        if "mht" in suffix:
            return _web_page(message, read_part)
        mail = _mime(message, MOST_DEPTH)
        if not any(mail.headers.values()):
            raise UnreadableFileError(f"cannot be read (it lacks the headers of a mail); {REPAIR}")
    budget = _Budget()
    document = _written(mail, read_part, budget)
    if number := len(budget.left_out) + budget.uncounted:
        names = ", ".join(budget.left_out[:5]) + (", …" if number > 5 else "")
        left = numbered(number, "attachment[ is|s are]")
        document.unread.append(f"{left} not read ({names}); save what you need from the mail and ingest it")
    return document


def _web_page(mail: Any, read_part: ReadPart) -> ReadDocument:
    """Read a saved web page and its frames; as in other web pages, pictures and styles are no text."""
    document = ReadDocument()
    for part in mail.walk():
        if "html" in part.get_content_type():
            page = read_part(_decode(_content(part), part.get_content_charset("")).encode(), "page.html")
            document.blocks += page.blocks
            document.info = page.info | document.info
    if not document.blocks:
        raise UnreadableFileError(f"has no web page in it; {REPAIR}")
    return document


def _written(mail: Mail, read_part: ReadPart, budget: _Budget) -> ReadDocument:
    """Write the header, the body and the attachments of a mail."""
    attached = [(visible_line(name, LONGEST_NAME), content) for name, content in mail.attachments[:MOST_PARTS]]
    budget.uncounted += len(mail.attachments) - len(attached)
    head = [f"**{name}**: {value}" for name, value in mail.headers.items() if value]
    if attached:
        more = ", …" if len(attached) > LISTED else ""
        head.append(f"**Attachments**: {', '.join(name for name, _ in attached[:LISTED])}{more}")
    info = {"Title": mail.headers["Subject"], "Author": mail.headers["From"], "Created": mail.created}
    blocks = [Block(text) for text in (*head, mail.body) if text]
    document = ReadDocument(blocks, info, warnings=mail.warnings, unread=mail.unread)
    for name, content in attached:
        if isinstance(content, str):
            _append(document, ReadDocument([Block(content)]), name)
        elif content is None:
            budget.left_out.append(name)
        elif budget.takes(name, len(content) if isinstance(content, bytes) else 0):
            try:
                part = read_part(content, name) if isinstance(content, bytes) else _written(content, read_part, budget)
                _append(document, part, name)
            except KeyError:
                budget.left_out.append(name)
            except UnreadableFileError as error:
                document.unread.append(f"the attachment {name!r} {error}")
    return document


def _append(document: ReadDocument, part: ReadDocument, name: str) -> None:
    document.blocks.append(Block(f"## {name}", Place(part=name, kind="attachment")))
    for block in part.blocks:
        inner = f"{name} \u203a {block.place.part}" if block.place.part else name
        document.blocks.append(replace(block, place=replace(block.place, part=inner)))
    add_reports(document, part, name)


# --- Mails of the internet ---


def _mime(mail: Any, depth: int) -> Mail:
    """Return a mail with the mails that are attached to each other, up to ``depth``."""
    headers = {name: _QUOTED.sub(r"\1", ", ".join(map(_decoded, mail.get_all(name, ())))) for name in SHOWN}
    leaves = _leaves(mail)
    body, shown = next((leaf for leaf in leaves if leaf[1]), (None, ""))
    found = Mail(headers, _date(headers["Date"]), shown or "")
    for part, text in leaves:
        inner, name = part.get_payload(), _name(part)
        content: str | bytes | Mail | None = text
        if part is body:
            continue
        if not text and not isinstance(inner, list):
            content = _content(part)
            part.set_payload(None)  # so that memory holds it once
        elif not text and depth:
            content = _mime(inner[0], depth - 1)
        found.attachments.append((name, content))
    return found


def _leaves(part: Any) -> list[tuple[Any, str | None]]:
    """Return the parts of a mail, without those of inner mails, and their texts: None for files and inner mails.

    Of alternatives, the text with most words is taken: a short one often only says that the mail is in HTML.
    """
    inner, kind = part.get_payload(), part.get_content_type()
    if not kind.startswith("multipart/") or not isinstance(inner, list):
        text = _text(part)
        is_seen = text == "" or (kind.startswith("image/") and part["Content-ID"])  # nothing, or shown in the HTML body
        return [] if is_seen else [(part, text)]
    found = [leaf for one in inner for leaf in _leaves(one)]
    if kind == "multipart/alternative":
        best: tuple[Any, str | None] = (None, "")
        for leaf in found:
            best = leaf if len((leaf[1] or "").split()) > 1.5 * len((best[1] or "").split()) else best
        found = [leaf for leaf in found if leaf[1] is None or leaf is best]
    return found


def _text(part: Any) -> str | None:
    """Return the text of a part that programs show with the mail, or None."""
    inner, kind = part.get_payload(), part.get_content_type()
    if isinstance(inner, list):
        if any(one.is_multipart() or any(map(one.get, SHOWN)) for one in inner):
            return None
        fields = [f"{name}: {value}" for one in inner for name, value in one.items()]  # why a mail was not delivered
        return "\n".join([*fields, *map(str, map(Message.get_payload, inner))]).strip()
    is_text = kind.endswith(("/plain", "html", "headers")) or kind.startswith("multipart/")
    if not is_text or part.get_content_disposition() == "attachment":
        return None
    text = _decode(_content(part), part.get_content_charset(""))
    return (to_markdown(text) if kind.endswith("html") else text.replace("\r\n", "\n")).strip()


def _content(part: Any) -> bytes:
    data = part.get_payload(decode=True)
    return data if isinstance(data, bytes) else b""


def _name(part: Any) -> str:
    inner, kind = part.get_payload(), part.get_content_type()
    subject = inner[0].get("Subject", "message") if isinstance(inner, list) and inner else ""
    suffix = _TYPES.guess_extension(kind) or "." + kind.rpartition("/")[2]
    return _decoded(part.get_filename() or subject or f"part{suffix}")


def _decode(data: bytes, encoding: str = "") -> str:
    try:
        return decode(data, encoding).text
    except UndecodableError:
        return data.decode(errors="replace")


def _decoded(header: str) -> str:
    """Return a header in one line, with its encoded words decoded."""
    header = " ".join(header.split())
    try:
        words = decode_header(header)
    except MessageError:
        return header
    return "".join(
        word if isinstance(word, str) else _decode(word, name or "raw-unicode-escape") for word, name in words
    )


def _date(header: str) -> str:
    try:
        return parsedate_to_datetime(header).isoformat()
    except ValueError:
        return ""


# --- Mails of Outlook ---

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


def _outlook(data: bytes) -> Mail:
    """Read a mail and the mails that are attached to each other. Raises `UnreadableFileError`."""
    try:
        with OleFileIO(BytesIO(data)) as file:
            return _OutlookReader(file, (), 32).mail(MOST_DEPTH)
    except (OSError, ValueError, IndexError, struct.error, RecursionError) as error:
        raise UnreadableFileError(f"is damaged or no mail of Outlook; {REPAIR}") from error


class _OutlookReader:
    """Reads the properties in one folder of the file; ``header`` is the number of bytes before them."""

    def __init__(
        self, file: OleFileIO, folder: tuple[str, ...], header: int, mail: _OutlookReader | None = None
    ) -> None:
        self.file, self.folder = file, folder
        data = self.stream(_PROPERTIES) or b""
        entries = (data[start : start + 16] for start in range(header, len(data) - 15, 16))
        self.values = {struct.unpack("<H", entry[2:4])[0]: entry[8:16] for entry in entries}
        self.pages: tuple[int, ...] = mail.pages if mail else ()  # the code pages of the mail are those of its parts
        self.problems: dict[tuple[str, str], int] = mail.problems if mail else {}
        if not mail:
            numbers = (self.number(_MESSAGE_CODEPAGE), self.number(_INTERNET_CODEPAGE))
            self.pages = tuple(dict.fromkeys(filter(None, numbers)))

    def mail(self, depth: int) -> Mail:
        if self.stream(_PROPERTIES) is None:
            raise ValueError(_PROPERTIES)
        headers = {"Subject": self.text(_SUBJECT), "From": self._sender(), "To": ", ".join(self._recipients())}
        headers = {name: _decoded(value) for name, value in headers.items()}
        date = self._date()
        body_pages = tuple(dict.fromkeys(filter(None, (self.number(_INTERNET_CODEPAGE), *self.pages))))
        plain, page = self.text(_BODY, body_pages), self.text(_HTML, body_pages)
        shown = to_markdown(page).strip() if page else ""
        is_fuller = len(shown.split()) > 1.5 * len(plain.split())
        body = shown if is_fuller else plain.strip().replace("\r\n", "\n")
        found = Mail(headers | {"Date": date}, date, body, [*self._attachments(depth)])
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
        if not address:
            return self.text(_REPRESENTED)
        return f'"{name}" <{address}>' if name else f"<{address}>"

    def _recipients(self) -> Iterator[str]:
        for one in self._parts("__recip_version1.0_#"):
            if address := one.text(_SMTP) or one.text(_ADDRESS):
                yield f"{one.text(_NAME)} <{address}>"

    def _attachments(self, depth: int) -> Iterator[tuple[str, bytes | Mail | None]]:
        inner = f"__substg1.0_{_CONTENT:04X}{_OBJECT}"
        for one in self._parts("__attach_version1.0_#"):
            name = one.text(_LONG_FILE_NAME) or one.text(_FILE_NAME) or one.text(_NAME) or "attachment"
            content: bytes | Mail | None = one.stream(f"__substg1.0_{_CONTENT:04X}{_BINARY}")
            if content is None and depth and self.file.exists([*one.folder, inner, _PROPERTIES]):
                content = _OutlookReader(self.file, (*one.folder, inner), 24).mail(depth - 1)
            yield name, content

    def _parts(self, prefix: str) -> Iterator[_OutlookReader]:
        level = len(self.folder)
        for path in self.file.listdir(streams=False, storages=True):
            if len(path) == level + 1 and tuple(path[:level]) == self.folder and path[level].startswith(prefix):
                yield _OutlookReader(self.file, tuple(path), 8, self)

    def _date(self) -> str:
        ticks = struct.unpack("<Q", self.values.get(_SENT, bytes(8)))[0]
        try:
            return (datetime(1601, 1, 1, tzinfo=UTC) + timedelta(seconds=ticks // 10**7)).isoformat() if ticks else ""
        except OverflowError:
            return ""


def _encoding(page: int) -> str:
    return _CODE_PAGES.get(page) or (f"iso8859_{page - 28590}" if 28591 <= page <= 28606 else f"cp{page}")
