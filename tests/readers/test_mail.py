"""Mails: the body with most text, inner mails, and attachments as parts of the mail."""

from __future__ import annotations

from base64 import encodebytes
from email.message import EmailMessage
from pathlib import Path
from quopri import encodestring

import pytest

from ragistry.readers.blocks import ReadDocument, UnreadableFileError
from ragistry.readers.by_format import read_document
from ragistry.readers.extract import extract
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


HEAD = b"From: Ann <a@example.com>\r\nSubject: Kettle\r\nMIME-Version: 1.0\r\n"
PLAIN = b"Content-Type: text/plain; charset=utf-8\r\n\r\n"
INVITATION = (
    b"BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nSUMMARY:Boiler re\r\n view\r\nLOCATION:Room 4\\, second floor\r\n"
    b"END:VEVENT\r\nEND:VCALENDAR\r\n"
)
STATUS = b"Reporting-MTA: dns; mx.example.net\r\n\r\nFinal-Recipient: rfc822; ghost@example.org\r\nStatus: 5.1.1\r\n"
RETURNED = b"From: b@example.org\r\nSubject: First\r\n\r\nThe valve is closed.\r\n"


def parts(kind: bytes, *contents: bytes, boundary: bytes = b"sep") -> bytes:
    """Return a mail of several parts, its boundary without quotes."""
    lines = b"".join(b"--%s\r\n%s\r\n" % (boundary, content) for content in contents)
    return HEAD + b"Content-Type: multipart/%s; boundary=%s\r\n\r\n%s--%s--\r\n" % (kind, boundary, lines, boundary)


def named(header: bytes) -> bytes:
    return header + b"\r\nContent-Transfer-Encoding: base64\r\n\r\n" + encodebytes(b"Drain the pump.")


@pytest.mark.parametrize("boundary", [b"----=_Part_1.2", b"=", b"a?b/c(d)", b"a:b,c", b"a@[b]<c>", b"'abc'", b"ab cd"])
def test_boundary_without_quotes_may_have_any_character(boundary: bytes) -> None:
    document = read(parts(b"mixed", PLAIN + b"first text", PLAIN + b"second text", boundary=boundary))
    assert "first text" in text_of(document)
    assert "second text" in text_of(document, "part.txt")
    assert not document.unread


def test_a_mail_of_parts_without_boundary_is_a_text() -> None:
    document = read(HEAD + b"Content-Type: multipart/mixed\r\n\r\n--x\r\n" + PLAIN + b"body\r\n--x--")
    assert "body" in text_of(document)


QUOTES = "It’s “5 €” – señor"  # noqa: RUF001, what the codes 0x91 to 0x97 stand for in Windows


@pytest.mark.parametrize(
    ("head", "encoding", "words"),
    [
        ("text/plain; charset=iso-8859-1", "cp1252", QUOTES),
        ("text/plain; charset=us-ascii", "cp1252", QUOTES),
        ("text/html; charset=ISO-8859-1", "cp1252", QUOTES),
        ("text/html", "cp1252", QUOTES),
        ("text/plain; charset=iso-8859-9", "cp1254", "Işıkları “şimdi”"),  # noqa: RUF001
        ("text/plain; charset=gb2312", "gb18030", "朱镕基 价格"),
        ("text/plain; charset=shift_jis", "cp932", "価格は①番の㈱です"),
        ("text/plain; charset=euc-kr", "cp949", "똠방각하 안녕"),
        ("text/plain; charset=iso-2022-jp", "iso-2022-jp", "見積書の件"),
        ("text/plain; charset=iso-8859-1", "utf-8", "Größe für Señor"),
        ("text/plain; charset=x-unknown", "utf-8", "Größe für Señor"),
    ],
)
def test_body_is_decoded_as_programs_mean_the_name(head: str, encoding: str, words: str) -> None:
    body = HEAD + f"Content-Type: {head}\r\n\r\n".encode() + words.encode(encoding)
    assert text_of(read(body)).endswith(words)


def test_names_of_small_encodings_stand_for_those_of_windows_in_a_header_too() -> None:
    subject = HEAD.replace(b"Kettle", b"=?iso-8859-1?Q?It=92s?= =?iso-8859-1?Q?_5_=80?=")
    assert "**Subject**: It’s 5 €" in text_of(read(subject + b"\r\nbody"))  # noqa: RUF001


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_header_without_encoding_is_read(encoding: str, tmp_path: Path) -> None:
    head = "Subject: Größe\r\nFrom: Änn <a@b>\r\nDate: Mon, 02 Mar 2026 10:00:00 +0100\r\n\r\nbody"
    (tmp_path / "a.eml").write_bytes(head.encode(encoding))
    times = {"date": "2026-03-02", "created": "2026-03-02T09:00:00Z"}
    assert extract(tmp_path / "a.eml").metadata == {"title": "Größe", "author": "Änn <a@b>", **times}


@pytest.mark.parametrize(
    ("header", "name"),
    [
        (b"Content-Disposition: attachment; filename=My Report 2024.txt", "My Report 2024.txt"),
        (b"Content-Disposition: attachment; filename=Smith, Ann [1] a=b.txt", "Smith, Ann [1] a=b.txt"),
        (b"Content-Disposition: attachment; filename==?utf-8?Q?Gr=C3=B6=C3=9Fe.txt?=", "Größe.txt"),
        ("Content-Disposition: attachment; filename=Größe.txt".encode(), "Größe.txt"),
        (b"Content-Disposition: attachment; filename*0*=utf-8''Gr%C3%B6; filename*1*=%C3%9Fe.txt", "Größe.txt"),
        (b"Content-Type: application/octet-stream; name=My Report (final).txt", "My Report (final).txt"),
        (b"Content-Disposition: attachment; filename=pump.log", "pump.log"),
        (b"Content-Type: application/octet-stream; name=pump.log", "pump.log"),
    ],
)
def test_name_of_an_attachment_needs_no_quotes(header: bytes, name: str) -> None:
    assert text_of(read(parts(b"mixed", PLAIN + b"See it.", named(header))), name).endswith("Drain the pump.")


@pytest.mark.parametrize(
    ("data", "phrases"),
    [
        (parts(b"alternative", PLAIN + b"Invited.", b"Content-Type: text/calendar\r\n\r\n" + INVITATION), INVITATION),
        (HEAD + b"Content-Type: text/calendar; method=REQUEST\r\n\r\n" + INVITATION, INVITATION),
        (parts(b"mixed", b"Content-Type: application/ics; name=i.ics\r\n\r\n" + INVITATION), INVITATION),
        (parts(b"report", PLAIN + b"Failed.", b"Content-Type: message/delivery-status\r\n\r\n" + STATUS), STATUS),
        (parts(b"report", PLAIN + b"Read.", b"Content-Type: message/disposition-notification\r\n\r\n" + STATUS), b""),
        (parts(b"report", b"Content-Type: text/rfc822-headers\r\n\r\n" + RETURNED), RETURNED),
        (parts(b"report", b"Content-Type: message/rfc822\r\n\r\n" + RETURNED), RETURNED),
        (HEAD + b"Content-Type: message/rfc822\r\n\r\n" + RETURNED, RETURNED),
        (parts(b"mixed", PLAIN + b"a", b"Content-Type: text/csv\r\n\r\nboiler,mx.example.net"), b"mx.example.net"),
        (parts(b"mixed", b"Content-Type: text/html\r\n\r\n<p>page", PLAIN + b"list footer, longer"), b"list footer"),
        (parts(b"alternative", b"Content-Type: text/html\r\n\r\n<p>same", PLAIN + b"same"), b"same"),
    ],
)
def test_texts_of_all_kinds_of_parts_are_read(data: bytes, phrases: bytes) -> None:
    expected = {
        INVITATION: ("Boiler review", "Room 4, second floor"),
        STATUS: ("mx.example.net", "ghost@example.org", "5.1.1"),
        RETURNED: ("The valve is closed.",),
        b"": ("Read.", "ghost@example.org"),
    }.get(phrases, (phrases.decode(),))
    document = read(data)
    whole = "\n".join(block.text for block in document.blocks)
    assert [whole.count(phrase) for phrase in expected] == [1] * len(expected)
    assert not document.unread


PAGE = "<title>Gauge</title><h1>Boiler</h1><p>Señor, 5 = five</p><img src=a.png>"
STYLE = b"Content-Type: text/css\r\nContent-Location: cid:a\r\n\r\n.noise {}"
PICTURE = b"Content-Type: image/png\r\nContent-Transfer-Encoding: base64\r\n\r\nbm9pc2U="


def web_part(kind: bytes, transfer: bytes, page: str = PAGE, encoding: str = "utf-8") -> bytes:
    data = page.encode(encoding)
    data = {b"base64": encodebytes(data), b"quoted-printable": encodestring(data)}.get(transfer, data)
    return b"Content-Type: %s\r\nContent-Transfer-Encoding: %s\r\n\r\n%s" % (kind, transfer, data)


@pytest.mark.parametrize(
    "data",
    [
        parts(
            b"related", web_part(b"text/html", b"quoted-printable"), STYLE, PICTURE, boundary=b"----MultipartBoundary="
        ),
        parts(b"related", web_part(b'text/html; charset="iso-8859-1"', b"base64", encoding="cp1252"), PICTURE),
        parts(b"related", web_part(b"text/html", b"8bit", f"<meta charset=iso-8859-9>{PAGE}", "cp1254"), PICTURE),
        b"MIME-Version: 1.0\r\n" + web_part(b"text/html; charset=utf-8", b"8bit"),
        b"\xef\xbb\xbfMIME-Version: 1.0\r\n" + web_part(b"application/xhtml+xml", b"8bit"),
    ],
)
def test_saved_web_page_is_its_text(data: bytes) -> None:
    document = read(data, ".mht")
    assert (text_of(document), document.info["Title"]) == ("# Boiler\n\nSeñor, 5 = five", "Gauge")
    framed = parts(b"related", web_part(b"text/html", b"base64"), web_part(b"text/html", b"8bit", "<p>a frame"))
    assert text_of(read(framed, ".mhtml")).endswith("five\na frame")


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
        read(parts(b"related", PICTURE), ".mht")
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
    ("numbers", "body", "words", "said"),
    [
        ({0x3FFD: 1252, 0x3FDE: 65001}, "Größe".encode("cp1252"), "Größe", ""),
        ({0x3FFD: 1252, 0x3FDE: 20127}, "Größe".encode(), "Größe", ""),
        ({0x3FFD: 1252}, "Größe".encode() * 3, "Größe" * 3, ""),
        ({0x3FDE: 77777, 0x3FFD: 1251}, "Привет".encode("cp1251"), "Привет", ""),
        ({0x3FFD: 932}, "価格".encode("cp932") + b"\x85 price", " price", "cp932"),
        ({}, b"Gr\xf6\xdfe", "Größe", "cp1252"),
    ],
)
def test_wrong_code_page_of_an_outlook_mail_gives_way(
    numbers: dict[int, int], body: bytes, words: str, said: str
) -> None:
    document = read(compound_file(outlook_folder({0x0037: "Subject", 0x1000: body}, numbers)), ".msg")
    assert text_of(document).endswith(words)
    assert (bool(document.warnings), said in " ".join(document.warnings)) == (bool(said), True)


def test_mail_inside_an_outlook_mail_is_read_in_its_own_code_page() -> None:
    inner = outlook_folder({0x1000: "Привет".encode("cp1251")}, {0x3FFD: 1251}, header=24)
    attached = {**outlook_folder({0x3001: "Inner"}, {}, header=8), "__substg1.0_3701000D": inner}
    document = read(compound_file(outlook_folder({0x0037: "Outer"}, {0x3FFD: 1252}, attach=attached)), ".msg")
    assert text_of(document, "Inner").split("\n")[-1] == "Привет"


def test_header_that_is_wrongly_encoded_is_read_as_it_is_and_a_body_in_rtf_alone_is_reported() -> None:
    document = read(compound_file(outlook_folder({0x0037: "=?utf-8?b?abcde?=", 0x1009: b"LZFu"}, {})), ".msg")
    assert text_of(document) == "**Subject**: =?utf-8?b?abcde?="
    assert "RTF" in document.unread[0]
