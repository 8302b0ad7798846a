"""Mails: the body with most text, inner mails, and attachments as parts of the mail."""

from __future__ import annotations

from email.message import EmailMessage
from pathlib import Path

import pytest

from ragistry.readers.blocks import ReadDocument, UnreadableFileError
from ragistry.readers.by_format import read_document
from tests.readers.office_files import docx_of
from tests.readers.outlook_files import compound_file, outlook_folder


def read(data: bytes, suffix: str = ".eml") -> ReadDocument:
    return read_document(data, f"mail{suffix}", lambda _: ReadDocument(), {})


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


CODE_PAGES = [
    (1250, "cp1250", "Žluťoučký kůň úpěl ďábelské ódy"),
    (1251, "cp1251", "Съешь ещё этих мягких булок"),
    (1252, "cp1252", "Größe 5 € für Señor Ångström"),
    (1253, "cp1253", "Γειά σου Κόσμε"),  # noqa: RUF001
    (1254, "cp1254", "Işıkları söndür şimdi"),  # noqa: RUF001
    (1255, "cp1255", "שלום עולם"),
    (1256, "cp1256", "مرحبا بالعالم"),
    (874, "cp874", "สวัสดีชาวโลก"),
    (932, "cp932", "価格は①番の㈱です"),
    (936, "gbk", "联通"),
    (949, "cp949", "똠방각하 안녕"),
    (950, "cp950", "訂單編號說明"),
    (20866, "koi8_r", "Привет мир"),
    (28592, "iso8859_2", "Zażółć gęślą jaźń"),
    (28595, "iso8859_5", "Привет мир"),
    (28605, "iso8859_15", "Œuvre à 5 €"),
    (50220, "iso2022_jp", "見積書の件"),
    (65001, "utf_8", "Größe 価格"),
]


@pytest.mark.parametrize("tags", [(0x3FFD,), (0x3FDE,), (0x3FFD, 0x3FDE)])
@pytest.mark.parametrize(("page", "encoding", "words"), CODE_PAGES)
def test_outlook_mail_is_decoded_in_its_code_page(page: int, encoding: str, words: str, tags: tuple[int, ...]) -> None:
    coded = words.encode(encoding)
    attached = outlook_folder({0x3707: coded + b".txt", 0x3701: b"attached"}, {}, header=8)
    texts = {0x0037: coded, 0x1000: b"a " + coded, 0x1013: b"<p>" + coded + b" in HTML and many words more</p>"}
    document = read(compound_file(outlook_folder(texts, dict.fromkeys(tags, page), attach=attached)), ".msg")
    assert text_of(document).split("\n")[0] == f"**Subject**: {words}"
    assert f"{words} in HTML" in text_of(document)
    assert text_of(document, f"{words}.txt").split("\n")[-1] == "attached"
    assert not document.warnings
    plain = outlook_folder({0x1000: coded}, dict.fromkeys(tags, page))
    assert text_of(read(compound_file(plain), ".msg")) == words


@pytest.mark.parametrize(
    ("numbers", "body", "expected"),
    [
        ({0x3FFD: 1252, 0x3FDE: 65001}, "Größe".encode("cp1252"), "Größe"),
        ({0x3FFD: 1252, 0x3FDE: 20127}, "Größe".encode(), "Größe"),
        ({0x3FFD: 1252}, "Größe".encode() * 3, "Größe" * 3),
        ({0x3FDE: 77777, 0x3FFD: 1251}, "Привет".encode("cp1251"), "Привет"),
    ],
)
def test_wrong_code_page_of_an_outlook_mail_gives_way(numbers: dict[int, int], body: bytes, expected: str) -> None:
    document = read(compound_file(outlook_folder({0x1000: body}, numbers)), ".msg")
    assert (text_of(document), document.warnings) == (expected, [])


@pytest.mark.parametrize(
    ("numbers", "body", "encoding"),
    [({0x3FFD: 932}, "価格".encode("cp932") + b"\x85 price", "cp932"), ({}, b"Gr\xf6\xdfe", "cp1252")],
)
def test_bytes_of_no_code_page_are_reported(numbers: dict[int, int], body: bytes, encoding: str) -> None:
    document = read(compound_file(outlook_folder({0x0037: "Subject", 0x1000: body}, numbers)), ".msg")
    assert "price" in text_of(document) or "Größe" in text_of(document)
    assert encoding in document.warnings[0]


def test_mail_inside_an_outlook_mail_is_read_in_its_own_code_page() -> None:
    inner = outlook_folder({0x1000: "Привет".encode("cp1251")}, {0x3FFD: 1251}, header=24)
    attached = {**outlook_folder({0x3001: "Inner"}, {}, header=8), "__substg1.0_3701000D": inner}
    document = read(compound_file(outlook_folder({0x0037: "Outer"}, {0x3FFD: 1252}, attach=attached)), ".msg")
    assert text_of(document, "Inner").split("\n")[-1] == "Привет"


def test_header_that_is_wrongly_encoded_is_read_as_it_is() -> None:
    document = read(compound_file(outlook_folder({0x0037: "=?utf-8?b?abcde?="}, {})), ".msg")
    assert text_of(document) == "**Subject**: =?utf-8?b?abcde?="


def test_body_in_rtf_alone_is_reported() -> None:
    document = read(compound_file(outlook_folder({0x0037: "Subject", 0x1009: b"LZFu"}, {})), ".msg")
    assert "RTF" in document.unread[0]
