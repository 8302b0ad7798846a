"""Mails: the body with most text, inner mails, and attachments as parts of the mail."""

from __future__ import annotations

from email.message import EmailMessage
from pathlib import Path

import pytest

from ragistry.utils.documents.blocks import ReadDocument, UnreadableFileError
from ragistry.utils.documents.readers import read_document
from tests.utils.office_files import docx_of


def read(data: bytes, suffix: str = ".eml") -> ReadDocument:
    return read_document(data, f"mail{suffix}", lambda _: ReadDocument())


def text_of(document: ReadDocument, part: str = "") -> str:
    return "\n".join(block.text for block in document.blocks if block.place.part == part)


def mail(subject: str, body: str) -> EmailMessage:
    message = EmailMessage()
    message["Subject"], message["From"] = subject, "Ann <ann@example.com>"
    message.set_content(body)
    return message


def test_body_with_most_text_wins_over_a_stub() -> None:
    message = mail("Offer", "Please see the HTML version.")
    message.add_alternative("<p>" + "The boiler is offered at 1,200 euros. " * 5 + "</p>", subtype="html")
    assert "1,200 euros" in text_of(read(bytes(message)))
    message = mail("Offer", "The boiler is offered at 1,300 euros.")
    message.add_alternative("<p>The boiler is offered at 1,300 euros.</p>", subtype="html")
    assert text_of(read(bytes(message))).count("1,300") == 1


def test_inner_mails_and_digests_are_read() -> None:
    forwarded = mail("Forwarded", "See below.")
    inner = mail("Original", "The valve must be closed.")
    inner.add_attachment(b"Drain the pump.", maintype="text", subtype="plain", filename="pump.txt")
    forwarded.add_attachment(inner)
    document = read(bytes(forwarded))
    assert "The valve must be closed." in text_of(document, "Original")
    assert "Drain the pump." in text_of(document, "Original › pump.txt")  # noqa: RUF001, as shown to people
    digest = (
        b"From: a@b\nSubject: Digest\nMIME-Version: 1.0\nContent-Type: multipart/digest; boundary=x\n\n"
        b"--x\n\nFrom: q@r\nSubject: One\n\nfirst inner\n--x\n\nFrom: q@r\nSubject: Two\n\nsecond inner\n--x--\n"
    )
    assert "first inner" in text_of(read(digest), "One")
    assert "second inner" in text_of(read(digest), "Two")


def test_attachments_of_readable_formats_are_parts_and_others_are_named() -> None:
    message = mail("Papers", "Two files.")
    message.add_attachment(
        docx_of("The lease ends in May."), maintype="application", subtype="octet-stream", filename="lease.docx"
    )
    message.add_attachment(b"\0\1", maintype="application", subtype="octet-stream", filename="logo.bin")
    document = read(bytes(message))
    assert "The lease ends in May." in text_of(document, "lease.docx")
    assert document.unread == ["1 attachment is not read (logo.bin); save what you need from the mail and ingest it"]
    message = mail("Broken", "One file.")
    message.add_attachment(b"no zip", maintype="application", subtype="octet-stream", filename="x.docx")
    document = read(bytes(message))
    assert len(document.unread) == 1
    assert "x.docx" in document.unread[0]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_a_file_in_utf_16_is_read(encoding: str) -> None:
    text = "\ufeff" + bytes(mail("Grüße", "Über den Kessel.")).decode()
    data = text.lstrip("\ufeff").encode("utf-16") if encoding == "utf-16" else text.encode(encoding)
    assert "Kessel" in text_of(read(data))


def test_mails_inside_each_other_and_many_parts_are_bounded() -> None:
    deep = mail("level 0", "bottom")
    for level in range(1, 12):
        outer = mail(f"level {level}", f"text {level}")
        outer.add_attachment(deep)
        deep = outer
    document = read(bytes(deep))
    assert "text 11" in text_of(document)
    assert document.unread
    many = mail("Many", "body")
    for number in range(300):
        many.add_attachment(b"t", maintype="text", subtype="plain", filename=f"{number}.txt")
    document = read(bytes(many))
    assert "200 attachments are not read" in document.unread[0]


def test_what_is_no_mail_is_refused() -> None:
    with pytest.raises(UnreadableFileError):
        read(b"just words\n")
    with pytest.raises(UnreadableFileError):
        read(b"\xd0\xcf\x11\xe0 broken", ".msg")


@pytest.mark.parametrize("name", ["attachment.eml", "attachment.msg", "plain.msg"])
def test_shared_mails_are_read(name: str, shared_office: Path) -> None:
    document = read((shared_office / name).read_bytes(), name[-4:])
    whole = "\n".join(block.text for block in document.blocks)
    expected = {"attachment.eml": "test attachment file", "attachment.msg": "test attachment file"}
    assert expected.get(name, "body of the test email") in whole
