"""Mails (RFC 5322, and .msg files of Outlook) with their attachments.

kreuzberg joins the words of HTML bodies and drops most dates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from email import message_from_bytes, policy
from email.errors import MessageError
from email.header import decode_header, make_header
from email.message import EmailMessage, MIMEPart
from email.utils import parsedate_to_datetime
from itertools import islice
from typing import Any

from ragistry.readers.blocks import REPAIR, Block, Place, ReadDocument, UnreadableFileError
from ragistry.readers.encoding import decode
from ragistry.readers.html_page import to_markdown
from ragistry.readers.outlook import OutlookMail, open_outlook
from ragistry.utils.quoting import visible_line
from ragistry.utils.wording import numbered

SHOWN = ("Subject", "From", "To", "Cc", "Date")
MOST_PARTS, MOST_BYTES, MOST_DEPTH = 100, 50_000_000, 4
"""Attachments and inner mails of one mail that are read, their bytes in all, and mails inside each other."""
LISTED, LONGEST_NAME = 20, 100
"""Names of attachments that the text of a mail lists, and characters of a name."""
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


def read(data: bytes, suffix: str, read_part: ReadPart) -> ReadDocument:
    """Read a mail: its header, the body with most text, inner mails, and attachments that have a reader."""
    budget = _Budget()
    if suffix == ".msg":
        document = _outlook(open_outlook(data, MOST_DEPTH), read_part, budget)
    else:
        if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
            data = data.decode("utf-16", errors="replace").encode()
        document = _message(message_from_bytes(data, _class=EmailMessage, policy=policy.default), read_part, budget, 0)
    if number := len(budget.left_out) + budget.uncounted:
        names = ", ".join(budget.left_out[:5]) + (", …" if number > 5 else "")
        left = numbered(number, "attachment[ is|s are]")
        document.unread.append(f"{left} not read ({names}); save what you need from the mail and ingest it")
    return document


def _message(mail: Any, read_part: ReadPart, budget: _Budget, depth: int) -> ReadDocument:
    headers = {name: str(mail[name]).strip() for name in SHOWN if mail[name]}
    if not headers and depth == 0:
        raise UnreadableFileError(f"cannot be read (it lacks the headers of a mail); {REPAIR}")
    body, parts = _body(mail), _attached(mail)
    attached = list(islice(parts, MOST_PARTS))
    budget.uncounted += sum(1 for _ in parts)
    names = [_name(part) for part in attached]
    head = [f"**{name}**: {value}" for name, value in headers.items()]
    head += [f"**Attachments**: {_listed(names)}"] if names else []
    blocks = [Block(line) for line in head]
    blocks += [Block(body)] if body else []
    info = {
        "Title": headers.get("Subject", ""),
        "Author": headers.get("From", ""),
        "Created": _date(headers.get("Date", "")),
    }
    document = ReadDocument(blocks, info)
    for part, name in zip(attached, names, strict=True):
        _add_part(document, part, name, read_part, budget, depth)
    return document


def _add_part(document: ReadDocument, part: Any, name: str, read_part: ReadPart, budget: _Budget, depth: int) -> None:
    """Append an inner mail or an attachment, each block under the name of its part."""
    if part.get_content_type() == "message/rfc822":
        inner = part.get_payload(0) if part.is_multipart() and part.get_payload() else None
        if inner is None or depth >= MOST_DEPTH or not budget.takes(name, 0):
            if inner is not None and depth >= MOST_DEPTH:
                budget.left_out.append(name)
            return
        _append(document, _message(inner, read_part, budget, depth + 1), name)
        return
    data = part.get_payload(decode=True)
    _add_attachment(document, data if isinstance(data, bytes) else b"", name, read_part, budget)


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


def _body(mail: Any) -> str:
    """Return the body with most words: a short text often only says that the mail is in HTML."""
    bodies = []
    for kind in ("plain", "html"):
        part = mail.get_body((kind,)) if isinstance(mail, EmailMessage) else None
        if part is not None:
            text = _text(part)
            bodies.append(to_markdown(text) if kind == "html" else text)
    bodies = [" ".join(text.split()) and text.strip().replace("\r\n", "\n") for text in bodies]
    if not bodies:
        return ""
    plain, page = bodies[0], bodies[-1]
    return page if len(page.split()) > 1.5 * len(plain.split()) else plain


def _attached(mail: Any) -> Iterator[Any]:
    """Yield the attachments and inner mails of a mail, in order, without those of inner mails."""
    content = mail.get_content_type()
    if content == "multipart/digest" or (content == "message/rfc822"):
        yield from (part for part in mail.iter_parts())
        return
    bodies = {id(mail.get_body((kind,))) for kind in ("plain", "html")}
    stack = [mail]
    while stack:
        part = stack.pop()
        if part.get_content_type() == "message/rfc822":
            yield part
        elif part.is_multipart():
            stack += reversed(list(part.iter_parts()))
        elif id(part) not in bodies and (part.get_filename() or part.get_content_maintype() != "text"):
            if not (part.get_content_maintype() == "image" and part.get("Content-ID")):  # shown in the HTML body
                yield part
        elif id(part) not in bodies and part.get_content_type() in ("text/plain", "text/html"):
            yield part


def _name(part: Any) -> str:
    if part.get_content_type() == "message/rfc822":
        inner = part.get_payload(0) if part.is_multipart() and part.get_payload() else None
        subject = str(inner["Subject"] or "").strip() if inner is not None else ""
        return visible_line(part.get_filename() or subject or "message", LONGEST_NAME)
    unnamed = {"text/plain": "part.txt", "text/html": "part.html"}
    return visible_line(
        part.get_filename() or unnamed.get(part.get_content_type(), part.get_content_type()), LONGEST_NAME
    )


def _text(part: MIMEPart) -> str:
    data = part.get_payload(decode=True)
    if not isinstance(data, bytes):
        return ""
    try:
        return data.decode(part.get_content_charset() or "utf-8")
    except (LookupError, UnicodeError):
        try:
            return decode(data).text
        except ValueError:
            return data.decode(errors="replace")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:LISTED]) + (", …" if len(names) > LISTED else "")


def _decoded(header: str | None) -> str:
    """Return a header of an Outlook file, which may be encoded as in a mail."""
    try:
        return str(make_header(decode_header(header or "")))
    except (LookupError, MessageError, ValueError):
        return header or ""


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
