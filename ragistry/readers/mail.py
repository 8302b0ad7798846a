"""Mails (RFC 5322, and .msg files of Outlook) with their attachments, and web pages that are saved as mails (MHTML).

kreuzberg joins the words of HTML bodies and drops most dates.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from email import message_from_bytes
from email.errors import MessageError
from email.header import decode_header
from email.message import Message
from email.policy import Compat32
from email.utils import parsedate_to_datetime
from mimetypes import MimeTypes
from typing import Any

from ragistry.readers.blocks import REPAIR, Block, Place, ReadDocument, UnreadableFileError
from ragistry.readers.encoding import BOMS, UndecodableError, decode
from ragistry.readers.html_page import to_markdown
from ragistry.readers.outlook import OutlookMail, open_outlook
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
    budget = _Budget()
    if suffix in (".msg", ".oft"):
        document = _outlook(open_outlook(data, MOST_DEPTH), read_part, budget)
    else:
        data = _decode(data).encode() if data.startswith(BOMS) else data.lstrip()
        mail = message_from_bytes(data, policy=_AsWritten())
        document = _web_page(mail, read_part) if "mht" in suffix else _message(mail, read_part, budget, 0)
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


def _message(mail: Any, read_part: ReadPart, budget: _Budget, depth: int) -> ReadDocument:
    headers = {name: _QUOTED.sub(r"\1", ", ".join(map(_decoded, mail.get_all(name, ())))) for name in SHOWN}
    if not any(headers.values()) and depth == 0:
        raise UnreadableFileError(f"cannot be read (it lacks the headers of a mail); {REPAIR}")
    leaves = _leaves(mail)
    body = next((leaf for leaf in leaves if leaf[1]), None)
    attached = [(_name(part), part, text) for part, text in leaves if not body or part is not body[0]]
    budget.uncounted += max(0, len(attached) - MOST_PARTS)
    del attached[MOST_PARTS:]
    head = [f"**{name}**: {value}" for name, value in headers.items() if value]
    head += [f"**Attachments**: {_listed([name for name, *_ in attached])}"] if attached else []
    head += [body[1] or ""] if body else []
    info = {"Title": headers["Subject"], "Author": headers["From"], "Created": _date(headers["Date"])}
    document = ReadDocument([Block(text) for text in head], info)
    for name, part, text in attached:
        inner = part.get_payload()
        if text:
            _append(document, ReadDocument([Block(text)]), name)
        elif not isinstance(inner, list):
            _add_attachment(document, _content(part), name, read_part, budget)
        elif depth >= MOST_DEPTH:
            budget.left_out.append(name)
        elif inner and budget.takes(name, 0):
            _append(document, _message(inner[0], read_part, budget, depth + 1), name)
    return document


def _add_attachment(document: ReadDocument, data: bytes, name: str, read_part: ReadPart, budget: _Budget) -> None:
    if not budget.takes(name, len(data)):
        return
    try:
        _append(document, read_part(data, name), name)
    except KeyError:
        budget.left_out.append(name)
    except UnreadableFileError as error:
        document.unread.append(f"the attachment {name!r} {error}")


def _append(document: ReadDocument, part: ReadDocument, name: str) -> None:
    document.blocks.append(Block(f"## {name}", Place(part=name, kind="attachment")))
    for block in part.blocks:
        inner = f"{name} \u203a {block.place.part}" if block.place.part else name
        document.blocks.append(replace(block, place=replace(block.place, part=inner)))
    for kind, count in part.lost.items():
        document.lost[kind] = document.lost.get(kind, 0) + count
    document.unread += [f"{name}: {line}" for line in part.unread]
    document.warnings += [f"{name}: {warning}" for warning in part.warnings]


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
    return visible_line(_decoded(part.get_filename() or subject or f"part{suffix}"), LONGEST_NAME)


def _decode(data: bytes, encoding: str = "") -> str:
    try:
        return decode(data, encoding).text
    except UndecodableError:
        return data.decode(errors="replace")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:LISTED]) + (", …" if len(names) > LISTED else "")


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


def _outlook(mail: OutlookMail, read_part: ReadPart, budget: _Budget) -> ReadDocument:
    headers = {name: _decoded(value) for name, value in mail.headers.items()}
    page = to_markdown(mail.page).strip() if mail.page else ""
    is_fuller = len(page.split()) > 1.5 * len(mail.plain.split())
    body = page if is_fuller else mail.plain.strip().replace("\r\n", "\n")
    attached = [(visible_line(name, LONGEST_NAME), content) for name, content in mail.attachments[:MOST_PARTS]]
    budget.uncounted += len(mail.attachments) - len(attached)
    head = [f"**{name}**: {value}" for name, value in headers.items() if value]
    head += [f"**Attachments**: {_listed([name for name, _ in attached])}"] if attached else []
    info = {"Title": headers["Subject"], "Author": headers["From"], "Created": headers["Date"]}
    document = ReadDocument([Block(line) for line in [*head, body] if line], info)
    document.warnings += mail.warnings
    document.unread += mail.unread
    for name, content in attached:
        if isinstance(content, bytes):
            _add_attachment(document, content, name, read_part, budget)
        elif content is not None and budget.takes(name, 0):
            _append(document, _outlook(content, read_part, budget), name)
        elif content is None:
            budget.left_out.append(name)
    return document
