"""Read mails (RFC 5322) with the standard library: kreuzberg joins words of HTML bodies and drops most dates."""

from __future__ import annotations

from collections.abc import Callable
from email import message_from_bytes, policy
from email.message import EmailMessage, MIMEPart
from email.utils import parsedate_to_datetime
from typing import NamedTuple

from ragistry.utils.documents.encoding import decode

HEADERS = ("Subject", "From", "To", "Cc", "Date")


class Mail(NamedTuple):
    """The text of a mail with its header, its date as ``2026-11-23`` or empty, and the names of its attachments."""

    text: str
    title: str
    author: str
    date: str
    attachments: tuple[str, ...]


def read_mail(data: bytes, from_html: Callable[[str], str]) -> Mail:
    """Read a mail with its plain body, or its HTML body converted by ``from_html``.

    Raises `ValueError` if the data is not a mail.
    """
    mail = message_from_bytes(data, _class=EmailMessage, policy=policy.default)
    headers = {name: str(mail[name]).strip() for name in HEADERS if mail[name]}
    if not headers:
        raise ValueError("it has no header of a mail")
    body = mail.get_body(("plain", "html"))
    text = _text(body) if body is not None else ""
    if body is not None and body.get_content_type() == "text/html":
        text = from_html(text)
    names = tuple(part.get_filename() or part.get_content_type() for part in mail.iter_attachments())
    head = [f"**{name}**: {value}" for name, value in headers.items()]
    if names:
        head.append(f"**Attachments**: {', '.join(names)}")
    whole = "\n\n".join([*head, text.strip().replace("\r\n", "\n")]).rstrip()
    return Mail(
        whole + "\n", headers.get("Subject", ""), headers.get("From", ""), _date(headers.get("Date", "")), names
    )


def _text(part: MIMEPart) -> str:
    data = part.get_payload(decode=True)
    assert isinstance(data, bytes)  # true for a part without parts
    try:
        return data.decode(part.get_content_charset() or "utf-8")
    except (LookupError, UnicodeDecodeError):
        return decode(data).text


def _date(header: str) -> str:
    try:
        return parsedate_to_datetime(header).date().isoformat()
    except ValueError:
        return ""
