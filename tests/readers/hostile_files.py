"""Files that are made to hang, bloat or trick their reader: each format with each attack that makes sense for it.

`CASES` is the table, ``{(suffix, attack): builder}``. A builder gets the `Scale` and returns the bytes of the file.
In the text of a file, ``@file`` and ``@url`` stand for what it must not open.
"""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Callable, Mapping
from functools import partial
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZIP_LZMA, ZIP_STORED, ZipFile, ZipInfo

from tests.readers.office_builder import book_file, book_part, odf_file, sheet
from tests.readers.office_files import MAKERS, WORDS
from tests.readers.raw_pdf import CATALOG, FONT, ONE_PAGE, content, nested_forms, page, raw_pdf, stream

BLANKS = b" " * (1 << 20)
W = WORDS.encode()


class Scale(NamedTuple):
    """How large the attacks are: bytes of what inflates and of a line, levels of nesting; what entities refer to."""

    bomb: int
    line: int
    depth: int
    file: str
    url: str


class Packed(NamedTuple):
    """A member of a zip file as it is stored, and what its header says of it."""

    data: bytes
    crc: int
    size: int
    method: int = ZIP_DEFLATED


Builder = Callable[[Scale], bytes]


def inflating(before: bytes, size: int, after: bytes, unit: bytes = BLANKS) -> Packed:
    """About ``size`` bytes of text between two others, in a thousandth of the space."""
    pack, plain = zlib.compressobj(9, zlib.DEFLATED, -15), zlib.compressobj(9, zlib.DEFLATED, -15)
    times = size // len(unit)
    data = pack.compress(before) + pack.flush(zlib.Z_FULL_FLUSH)
    data += (plain.compress(unit) + plain.flush(zlib.Z_FULL_FLUSH)) * times
    last = zlib.compressobj(9, zlib.DEFLATED, -15)
    crc = zlib.crc32(before)
    for _ in range(times):
        crc = zlib.crc32(unit, crc)
    length = len(before) + times * len(unit) + len(after)
    return Packed(data + last.compress(after) + last.flush(), zlib.crc32(after, crc), length)


def packed(data: bytes, method: int = ZIP_DEFLATED) -> Packed:
    """Bytes as a member of a zip file."""
    with BytesIO() as file:
        with ZipFile(file, "w", method) as archive:
            archive.writestr(ZipInfo("a"), data, method)
            info = archive.getinfo("a")
        file.seek(info.header_offset + 31)
        return Packed(file.read(info.compress_size), info.CRC, len(data), method)


def zip_of(members: Mapping[str, bytes | Packed]) -> bytes:
    """A zip file whose headers say what each member says."""
    data, directory = bytearray(), bytearray()
    for name, member in members.items():
        one = packed(member) if isinstance(member, bytes) else member
        sizes = one.crc, len(one.data), min(one.size, 0xFFFFFFFE), len(name)
        common = struct.pack("<HHHHHLLLHH", 20, 0, one.method, 0, 33, *sizes, 0)
        directory += b"PK\1\2\x14\x03" + common + struct.pack("<HHHLL", 0, 0, 0, 0o100644 << 16, len(data))
        directory += name.encode()
        data += b"PK\3\4" + common + name.encode() + one.data
    count = len(members) & 0xFFFF
    return bytes(
        data + directory + b"PK\5\6" + struct.pack("<HHHHLLH", 0, 0, count, count, len(directory), len(data), 0)
    )


def made(suffix: str) -> bytes:
    """A small good document."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"a{suffix}"
        MAKERS[suffix](path)
        return path.read_bytes()


def ods() -> bytes:
    cell = f'<table:table-cell office:value-type="string"><text:p>{WORDS}</text:p></table:table-cell>'
    return odf_file("spreadsheet", f"<table:table><table:table-row>{cell}</table:table-row></table:table>")


PACKED = {
    ".docx": "word/document.xml",
    ".pptx": "ppt/slides/slide2.xml",
    ".xlsx": "xl/worksheets/sheet1.xml",
    ".odt": "content.xml",
    ".ods": "content.xml",
    ".epub": "text/a.xhtml",
}
"""Formats that are zip files, and their member that has the words."""


def members_of(suffix: str) -> tuple[dict[str, bytes | Packed], str]:
    """The members of a good document, and the text of the one with the words."""
    with ZipFile(BytesIO(ods() if suffix == ".ods" else made(suffix))) as archive:
        members: dict[str, bytes | Packed] = {name: archive.read(name) for name in archive.namelist()}
    member = members[PACKED[suffix]]
    assert isinstance(member, bytes)
    assert WORDS.encode() in member
    return members, member.decode()


def with_text(suffix: str, change: Callable[[str], str | Packed]) -> bytes:
    """The document, with another text of the member with the words."""
    members, text = members_of(suffix)
    changed = change(text)
    members[PACKED[suffix]] = changed.encode() if isinstance(changed, str) else changed
    return zip_of(members)


def around_words(text: str) -> tuple[bytes, bytes]:
    before, _, after = text.partition(WORDS)
    return (before + WORDS).encode(), after.encode()


def with_entity(text: str, declarations: str, entity: str = "&e;") -> str:
    """XML with declarations of entities; the first one is used."""
    declaration, root = ("", text) if not text.startswith("<?") else text.split("?>", 1)
    start = f"{declaration}?>" if declaration else ""
    return f"{start}<!DOCTYPE x [{declarations}]>{root.lstrip()}".replace(WORDS, WORDS + entity)


EXTERNAL = '<!ENTITY e SYSTEM "file://@file"><!ENTITY h SYSTEM "@url"><!ENTITY % p SYSTEM "@url">%p;'


def tenfold(first: str, line: str, one: str, levels: int, between: str = "") -> list[str]:
    """Definitions of ``a0``, ``a1`` and so on, each with ten times the one before."""
    tens = (between.join([one.format(n=level)] * 10) for level in range(levels))
    return [first, *(line.format(n=level, ten=ten) for level, ten in enumerate(tens, 1))]


LAUGHS = "".join(tenfold('<!ENTITY a0 "ha ha ha ">', '<!ENTITY a{n} "{ten}">', "&a{n};", 10))

# Builders of files that differ in what is repeated.


def long(unit: bytes, before: bytes = b"", after: bytes = b"") -> Builder:
    """As many units as a line has."""
    return lambda scale: before + unit * (scale.line // len(unit)) + after


def nested(
    start: bytes, end: bytes = b"", before: bytes = b"", after: bytes = b"", *, inner: bytes = W, share: int = 1
) -> Builder:
    """Something inside itself, at each level or at one of ``share``."""
    return lambda scale: before + start * (scale.depth // share) + inner + end * (scale.depth // share) + after


def fixed(data: bytes | str) -> Builder:
    """A file of one size."""
    return lambda scale: data if isinstance(data, bytes) else data.encode()


def filled(scale: Scale, text: str) -> str:
    return text.replace("@file", scale.file).replace("@url", scale.url)


def referring(text: str) -> Builder:
    """A text with references to a file and to a server."""
    return lambda scale: filled(scale, text).encode()


def notebook(scale: Scale, *cells: Mapping[str, object], **more: object) -> bytes:
    return filled(scale, json.dumps({"cells": cells, **more, "nbformat": 4})).encode()


# Formats that are zip files.

Change = Callable[[Scale, str], str | Packed]
"""Another text of the member with the words."""


def inflated(unit: bytes = BLANKS, size: int | None = None) -> Change:
    """Puts many units behind the words; the header says that they have this size."""

    def change(scale: Scale, text: str) -> Packed:
        before, after = around_words(text)
        member = inflating(before, scale.bomb, after, unit)
        return member if size is None else member._replace(size=size)

    return change


def surrounded(tag: str, start: str, end: str, inner: str) -> Change:
    """Puts elements inside each other behind the start of an element."""
    return lambda scale, text: text.replace(tag, f"{tag}{start * scale.depth}{inner}{end * scale.depth}")


def instead(start: str, end: str) -> Change:
    """Puts the words inside elements."""
    return lambda scale, text: text.replace(WORDS, start * scale.depth + WORDS + end * scale.depth)


def repeated_cells(scale: Scale, text: str) -> str:
    text = text.replace("<table:table-cell ", '<table:table-cell table:number-columns-repeated="2000000000" ')
    return text.replace("<table:table-row>", '<table:table-row table:number-rows-repeated="2000000000">')


def changed(suffix: str, change: Change) -> Builder:
    return lambda scale: with_text(suffix, partial(change, scale))


IN_PACKED: dict[str, Change] = {
    "bomb": inflated(),
    "bomb-words": inflated(b"cedar " * 100_000),
    "length": inflated(size=1_000),
    "length-large": lambda scale, text: packed(text.encode())._replace(size=0xFFFFFFFE),
    "line": lambda scale, text: text.replace(WORDS, "cedar" * (scale.line // 5)),
    "nesting": instead("<x>", "</x>"),
    "entity": lambda scale, text: filled(scale, with_entity(text, EXTERNAL, "&e;&h;")),
    "entity-laughs": lambda scale, text: with_entity(text, LAUGHS, "&a10;"),
}
CHANGES = {f"{suffix} {attack}": change for suffix in PACKED for attack, change in IN_PACKED.items()} | {
    ".docx nesting-tables": surrounded("<w:body>", "<w:tbl><w:tr><w:tc>", "<w:p/></w:tc></w:tr></w:tbl>", "<w:p/>"),
    ".odt nesting-lists": surrounded(
        "<office:text>", "<text:list><text:list-item>", "</text:list-item></text:list>", "<text:p>a</text:p>"
    ),
    ".odt length-blanks": lambda scale, text: text.replace(WORDS, WORDS + '<text:s text:c="4000000000"/>'),
    ".ods length-repeated": repeated_cells,
    ".epub nesting-quotes": instead("<blockquote>", "</blockquote>"),
    # two cells, as far from each other as they can be
    ".xlsx length-corner": lambda scale, text: text.replace(
        "</sheetData>", '<row r="1048576"><c r="XFD1048576"><v>7</v></c></row></sheetData>'
    ),
}


def shared_string(scale: Scale) -> bytes:
    """One long text that every cell shows."""
    strings = book_part("sharedStrings", f"<si><t>{'cedar ' * 200_000}</t></si>")
    cells = "".join(f'<row r="{row}"><c r="A{row}" t="s"><v>0</v></c></row>' for row in range(10, 10_000))
    return book_file({"a": sheet(cells)}, strings=strings)


def same_page_again(scale: Scale) -> bytes:
    """A book of which one chapter is listed a million times."""
    members, text = members_of(".epub")
    members["text/a.xhtml"] = text.replace(WORDS, "cedar " * 20_000).encode()
    book = members["text/book.opf"]
    assert isinstance(book, bytes)
    members["text/book.opf"] = book.replace(b'<itemref idref="p0"/>', b'<itemref idref="p0"/>' * 100_000)
    return zip_of(members)


# Mails.

HEAD = b"Subject: Cedar\nFrom: a@example.org\nMIME-Version: 1.0\n"
MIXED = HEAD + b'Content-Type: multipart/mixed; boundary="b"\n\n'
ATTACHED = b'--b\nContent-Type: x/y\nContent-Disposition: attachment; filename="%s"\n\n\n' % (b"a" * 200)
EXTERNAL_BODY = "--b\nContent-Type: message/external-body; access-type={}\n\nContent-Type: text/plain\n\n\n".format


def nested_parts(scale: Scale) -> bytes:
    part = b'Content-Type: multipart/mixed; boundary="b%d"\n\n--b%d\n'
    return HEAD + b"".join(part % (level, level) for level in range(scale.depth // 10)) + b"\n" + W


def continued_parameters(scale: Scale) -> bytes:
    name = b"".join(b"; name*%d*=%%41" % number for number in range(scale.line // 20))
    return HEAD + b"Content-Type: text/plain" + name + b"\n\n" + W


def mail_codec(scale: Scale) -> bytes:
    """A charset that is a codec of Python and no encoding of text."""
    packed_text = zlib.compress(b" " * (scale.bomb // 6), 9)
    head = b"Content-Type: text/plain; charset=zlib_codec\nContent-Transfer-Encoding: base64\n\n"
    return HEAD + head + base64.encodebytes(packed_text)


# Outlook's compound files.


def compound(*fat: int, sectors: int = 1, more: bytes) -> bytes:
    """The header of a compound file, one sector of its table, and what follows."""
    head = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + struct.pack("<HHHHH", 0x3E, 3, 0xFFFE, 9, 6) + bytes(6)
    head += struct.pack("<LLLLLLLLL", 0, sectors, 1, 0, 4096, 0xFFFFFFFE, 0, 0xFFFFFFFE, 0)
    head += struct.pack("<L", 0) + b"\xff" * 432
    return head + struct.pack(f"<{len(fat)}L", *fat).ljust(512, b"\xff") + more.ljust(512, b"\0")


SELF, END = 0xFFFFFFFD, 0xFFFFFFFE
ROOT_ENTRY = (
    "Root Entry".encode("utf-16-le").ljust(64, b"\0") + struct.pack("<HBB", 22, 5, 1)
    + struct.pack("<LLL", 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF) + bytes(36) + struct.pack("<LQ", END, 0)
)  # fmt: skip

# PDFs.

HELLO = content("Hello")
ENDLESS = 2147483647
SELF_DRAWN = stream(b"/X Do", b"/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X 5 0 R >> >>")


def one_page(drawn: bytes, *more: bytes, resources: bytes = b"/Font << /F1 5 0 R >>") -> bytes:
    return raw_pdf(CATALOG, ONE_PAGE, page(resources=resources), drawn, FONT, *more)


def deflated(member: Packed) -> bytes:
    """What `inflating` packed, as a zlib stream without its checksum, which no reader needs."""
    return one_page(stream(b"\x78\xda" + member.data, b"/Filter /FlateDecode"))


def pdf_title(scale: Scale) -> bytes:
    info = b"<< /Title (%s) >>" % (b"cedar " * (scale.line // 6))
    return raw_pdf(CATALOG, ONE_PAGE, page(), HELLO, FONT, info, trailer=b"/Info 6 0 R")


def pdf_external(scale: Scale) -> bytes:
    file, url = scale.file.encode(), scale.url.encode()
    stream_of_file = b"<< /Length 0 /F (%s) /FFilter [] >>\nstream\n\nendstream" % file
    action = (
        b"<< /Type /Catalog /Pages 2 0 R /OpenAction << /S /URI /URI (%s) >> /AA << /O << /S /GoToR /F (%s) >> >> >>"
    )
    first = page().replace(b"/Contents 4 0 R", b"/Contents [4 0 R 6 0 R 7 0 R]")
    stream_of_url = b"<< /Length 0 /F << /FS /URL /F (%s) >> >>\nstream\n\nendstream" % url
    return raw_pdf(action % (url, file), ONE_PAGE, first, HELLO, FONT, stream_of_file, stream_of_url)


# Zip files as folders.


def lying_blanks(method: int) -> Builder:
    return lambda scale: zip_of({"a.txt": packed(b" " * (scale.bomb // 6), method)._replace(size=1_000)})


def zip_dictionary(scale: Scale) -> bytes:
    """An LZMA member that asks for a dictionary of 4 GB."""
    member = packed(W, ZIP_LZMA)
    return zip_of({"a.txt": member._replace(data=member.data[:5] + b"\xff\xff\xff\xff" + member.data[9:])})


def overwritten(data: bytes, at: int, value: int) -> bytes:
    return data[:at] + struct.pack("<L", value) + data[at + 4 :]


def zip_offset(scale: Scale) -> bytes:
    data = zip_of({"a.txt": W, "b.txt": W})
    return overwritten(data, data.rindex(b"PK\1\2") + 42, 0x7FFFFFFF)


def zip_link(scale: Scale) -> bytes:
    """A member that is a symbolic link to a file outside."""
    data = zip_of({"a.txt": scale.file.encode()})
    return overwritten(data, data.index(b"PK\1\2") + 38, 0o120777 << 16)


def zip_entries(scale: Scale) -> bytes:
    """A directory of very many members, all of them the same bytes."""
    one = zip_of({"a.txt": W})
    start, end = one.index(b"PK\1\2"), one.index(b"PK\5\6")
    entries = one[start:end] * (scale.line // (end - start))
    sizes = struct.pack("<HHHHLLH", 0, 0, 0xFFFE, 0xFFFE, len(entries), start, 0)
    return one[:start] + entries + b"PK\5\6" + sizes


def zip_in_zip(scale: Scale) -> bytes:
    data = zip_of({"a.txt": W})
    for _ in range(50):
        data = zip_of({"a.zip": Packed(data, zlib.crc32(data), len(data), ZIP_STORED)})
    return data


HTML = "<!doctype html><html><head><title>Cedar</title></head><body><p>%s</p></body></html>"
TOP, FOOT = (part.encode() for part in HTML.split("%s"))
CELLS = "<table><tr><td colspan=1000000000 rowspan=1000000000>cedar</td><td>b</td></tr></table>"
RTF = b"{\\rtf1\\ansi "
RTF_FIELDS = "".join(
    f'{{\\field{{\\*\\fldinst {kind} "{to}"}}{{\\fldrslt a}}}}'
    for kind in ("INCLUDETEXT", "INCLUDEPICTURE", "LINK")
    for to in ("file://@file", "@url")
)
MERGED = "\n".join(tenfold("a0: &a0 {x: 1}", "a{n}: &a{n}\n  <<: [{ten}]", "*a{n}", 12, ", "))
NESTED_KEYS = "\n".join(tenfold("a0: &a0 [ha]", "a{n}: &a{n} [{ten}]", "*a{n}", 12, ", "))
SUBSTITUTIONS = "\n".join(tenfold(".. |a0| replace:: ha ha ha", ".. |a{n}| replace:: {ten}", "|a{n}| ", 11))
MACROS = "\n".join(tenfold("#+MACRO: a0 ha ha", "#+MACRO: a{n} {ten}", "{{{{{{a{n}}}}}}}", 11))

FILES: dict[str, Builder] = {
    **{name: changed(name.split()[0], change) for name, change in CHANGES.items()},
    ".xlsx bomb-shared": shared_string,
    ".epub bomb-spine": same_page_again,
    # --- Web pages ---
    ".html bomb": fixed(HTML % (WORDS + CELLS * 3)),
    ".html bomb-lists": fixed(
        HTML % (f"{WORDS}<ol start=99999999999999999999><li value=-9999999999>a</ol>" + "<h6>" * 1000)
    ),
    ".html line": long(b"cedar", TOP, FOOT),
    ".html line-ends": long(b"\n", W),
    ".html line-comments": long(b"<!--"),
    ".html line-heads": long(b"<head "),
    ".html line-attributes": long(b"b=c ", TOP + b"<a ", b">cedar</a>" + FOOT),
    ".html nesting-div": nested(b"<div>", b"</div>", TOP, FOOT),
    ".html nesting-open-div": nested(b"<div>", b"", TOP, FOOT),
    ".html nesting-blockquote": nested(b"<blockquote>", b"</blockquote>", TOP, FOOT),
    ".html nesting-open-blockquote": nested(b"<blockquote>", b"", TOP, FOOT),
    ".html nesting-ul": nested(b"<ul><li>", b"</li></ul>", TOP, FOOT),
    ".html nesting-table": nested(b"<table><tr><td>", b"</td></tr></table>", TOP, FOOT),
    ".html nesting-b": nested(b"<b>", b"</b>", TOP, FOOT),
    ".html entity": referring(
        f"<!DOCTYPE html [{EXTERNAL}]>{HTML[15:]}".replace(
            "%s",
            f'{WORDS}<img src="@url"><iframe src="file://@file"></iframe><object data="@url"></object>'
            '<link rel=stylesheet href="@url"><xi:include href="file://@file"/>&e;',
        )
    ),
    ".html entity-laughs": fixed(f"<!DOCTYPE html [{LAUGHS}]>{HTML[15:] % (WORDS + '&a10;')}"),
    ".html length": fixed(HTML % (WORDS + "&#99999999999999;&#xFFFFFFFFFFFFFFFFFF;<meta charset=utf-32>")),
    # --- Plain text and markup ---
    ".txt line": long(b"cedar"),
    ".txt line-astral": long(b"cedar", b"\r", "\U0001f332".encode()),
    ".txt line-ends": long(b"\n", W),
    ".txt line-encoding": lambda scale: b"cedar " * (scale.line // 12) + b"\xe9\xe8\x80\xa4\xd0 " * (scale.line // 12),
    ".txt nesting": nested(b"[", b"]"),
    ".txt entity": referring(with_entity(f"<a>{WORDS}</a>", EXTERNAL)),
    ".txt length": long(b"\xd8\x00", b"\xff\xfe" + W),
    ".txt length-charset": long(b"\x1b$", b"", W),
    ".md bomb": fixed(f"---\n{MERGED}\n---\n{WORDS}"),  # 10 ** 12 keys
    ".md bomb-key": fixed(f"---\n{NESTED_KEYS}\n? *a12\n: cedar\n---\n{WORDS}"),
    ".md bomb-number": fixed(f"+++\nweight = 0x{'f' * 60_000}\n+++\n{WORDS}"),
    ".md line": long(b" ", b"# cedar", b"soil\n\n" + W),
    ".md line-ends": long(b"\n", W),
    ".md line-marks": long(b" #", b"# cedar", b"soil\n\n" + W),
    ".md line-links": long(b"[", b"", b"\n===\n" + W),
    ".md nesting": lambda scale: b"> " * scale.depth + W + b"\n\n" + b"- " * scale.depth + b"```\n" + W,
    ".md nesting-json": nested(b'{"a": ', inner=b"\n" + W),
    ".md nesting-yaml": fixed(b"---\na: " + b"[" * 20_000 + b"]" * 20_000 + b"\n---\n" + W),
    ".md nesting-toml": fixed(b"+++\na = " + b"[" * 30_000 + b"]" * 30_000 + b"\n+++\n" + W),
    ".md nesting-headings": lambda scale: b"".join(
        b"#" * (level % 6 + 1) + b" cedar " * 30 + b"\n" for level in range(scale.depth // 10)
    ),
    ".md entity": referring(
        f"---\ntitle: !!python/object/apply:open ['@file']\n---\n{WORDS}\n![a](@url)\n"
        "\n--8<-- '@file'\n{{< include @file >}}"
    ),
    ".md length": long(b"a: b\n", b"---\ntitle: cedar\n"),
    ".rst line": long(b"cedar"),
    ".rst line-ends": long(b"\n", W),
    ".rst nesting": lambda scale: b"".join(
        b" " * level + b"- cedar\n\n" for level in range(min(scale.depth // 50, 5_000))
    ),
    ".rst entity": referring(
        f"{WORDS}\n\n.. include:: @file\n\n.. raw:: html\n   :file: @file\n\n.. csv-table:: a\n   :url: @url"
        "\n\n.. image:: @url\n"
    ),
    ".rst bomb": fixed(f"{SUBSTITUTIONS}\n\n{WORDS} |a11|\n"),
    ".rst length": long(b"=", W + b"\n\n", b" ==\na   b\n==========\n"),
    ".org line": long(b"cedar"),
    ".org line-ends": long(b"\n", W),
    ".org nesting": lambda scale: b"*" * scale.depth + b" cedar\n" + b"#+BEGIN_QUOTE\n" * scale.depth + W,
    ".org entity": referring(f'#+INCLUDE: "@file"\n#+SETUPFILE: @url\n{WORDS} [[file:@file]] [[@url]]\n'),
    ".org bomb": fixed(f"{MACROS}\n{WORDS} {{{{{{a11}}}}}}\n"),
    ".org length": long(b"|", W + b"\n|", b"\n"),
    ".tex line": long(b"\\section{", b"", W),
    ".tex line-ends": long(b"\n", W),
    ".tex line-math": lambda scale: b"$" + b"a\n" * (scale.line // 2) + b"\\[ \\( " * (scale.line // 6),
    ".tex line-blanks": long(b" ", W, b"x"),
    ".tex nesting": nested(b"{", b"}", b"\\title{", b"}"),
    ".tex nesting-lists": nested(b"\\begin{itemize}\\item ", b"\\end{itemize}"),
    ".tex entity": referring(f"\\input{{@file}}\\include{{@file}}\\verbatiminput{{@file}}\\href{{@url}}{{a}} {WORDS}"),
    # formulas that hold the marks which the reader puts in their place, each of which refers to itself twice
    ".tex bomb": fixed(f"{WORDS} $\ue0000\ue001\ue0000\ue001$"),
    ".tex length": fixed(f"{WORDS} \ue000 \ue0007\ue001"),  # a mark without its number, which never goes away
    ".rtf line": long(b"cedar", RTF, b"}"),
    ".rtf nesting": nested(b"{", b"}", RTF, b"}"),
    ".rtf nesting-tables": nested(b"\\trowd\\itap99999999 a\\nestcell\\cell", b"", RTF, b"\\row}", inner=b"", share=10),
    ".rtf length": fixed(RTF + b"{\\pict\\bin4000000000 abc}\\u99999999999?\\uc2000000000 " + W + b"}"),
    ".rtf bomb": fixed(
        b"{\\rtf1\\ansi\\deftab2000000000\\li2000000000 " + W + b"{\\pict\\picw2000000000\\pich2000000000 00}}"
    ),
    ".rtf entity": referring(f"{{\\rtf1\\ansi {{\\*\\template @url}}{WORDS} {RTF_FIELDS}}}"),
    # --- Mails and notebooks ---
    ".eml line": long(b"cedar", HEAD + b"\n"),
    ".eml line-header": long(b"cedar,", b"Subject: ", b"\n" + HEAD + b"\n" + W),
    ".eml line-addresses": long(b'((((<a@b>,"', b"To: ", b"\n" + HEAD + b"\n" + W),
    ".eml line-words": long(b"=?utf-8?q?a?= ", b"Subject: ", b"\n" + HEAD + b"\n" + W),
    ".eml nesting": nested(HEAD + b"Content-Type: message/rfc822\n\n", inner=HEAD + b"\n" + W, share=10),
    ".eml nesting-parts": nested_parts,
    ".eml entity": referring(
        f'{MIXED.decode()}--b\nContent-Type: text/html\n\n<p>{WORDS}<img src="@url"></p>\n'
        + EXTERNAL_BODY('local-file; name="@file"')
        + EXTERNAL_BODY('URL; URL="@url"')
        + "--b--\n"
    ),
    ".eml bomb": long(ATTACHED, MIXED),
    ".eml bomb-names": continued_parameters,
    ".eml length": fixed(
        HEAD + b"Content-Length: 99999999999999\nLines: -1\nContent-Transfer-Encoding: base64\n"
        b'Content-Type: text/plain; charset="utf-8"\n\n' + b"A" * 1_000_001
    ),
    ".eml length-codec": mail_codec,
    ".ipynb line": lambda scale: notebook(scale, {"cell_type": "markdown", "source": "cedar" * (scale.line // 5)}),
    ".ipynb nesting": nested(b"[", b"]", b'{"cells": ', b"}", inner=b""),
    ".ipynb bomb": lambda scale: notebook(  # the name of the language, which stands at every cell, is long
        scale,
        *[{"cell_type": "code", "source": "x"}] * 20_000,
        metadata={"language_info": {"name": "py" * 500_000}},
    ),
    ".ipynb length": lambda scale: notebook(scale, {"cell_type": "heading", "level": 10**10, "source": WORDS}),
    ".ipynb length-number": long(b"9", b'{"nbformat": ', b', "cells": []}'),
    ".ipynb entity": lambda scale: notebook(
        scale,
        {"cell_type": "markdown", "source": f'{WORDS}\n![a](@url)<img src="file://@file">%load @file'},
    ),
    ".msg nesting": fixed(compound(SELF, 1, more=ROOT_ENTRY)),
    ".msg length": fixed(compound(SELF, END, sectors=0x7FFFFFFF, more=ROOT_ENTRY)),
    # the root entry says that it has 2 ** 62 bytes
    ".msg bomb": fixed(compound(SELF, END, more=ROOT_ENTRY[:116] + struct.pack("<LQ", 1, 1 << 62))),
    ".msg line": lambda scale: compound(SELF, 2, *range(2, 128), more=ROOT_ENTRY * (scale.line // 128)),
    # --- PDFs ---
    ".pdf bomb": lambda scale: deflated(inflating(b"BT /F1 12 Tf 72 720 Td (Hello) Tj ET", scale.bomb, b"")),
    ".pdf bomb-text": lambda scale: deflated(
        inflating(b"", scale.bomb, b"", b"BT /F1 12 Tf 72 720 Td (cedar cedar cedar) Tj ET\n" * 1_000)
    ),
    ".pdf bomb-forms": lambda scale: nested_forms(40),
    ".pdf bomb-title": pdf_title,
    ".pdf line": lambda scale: one_page(stream(b"BT /F1 12 Tf 72 720 Td (%s) Tj ET" % (b"cedar" * (scale.line // 5)))),
    ".pdf nesting": lambda scale: one_page(HELLO, resources=b"/X " + b"[" * scale.depth),
    ".pdf nesting-dictionaries": lambda scale: one_page(HELLO, resources=b"/X " + b"<</A " * scale.depth),
    ".pdf nesting-content": lambda scale: one_page(stream(b"[" * scale.depth + b"(" * scale.depth)),
    ".pdf nesting-tree": fixed(raw_pdf(CATALOG, b"<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 2 >>")),
    ".pdf nesting-table": fixed(raw_pdf(CATALOG, ONE_PAGE, page(), HELLO, FONT, trailer=b"/Prev TABLE")),
    ".pdf nesting-root": fixed(raw_pdf(b"1 0 R", ONE_PAGE)),
    ".pdf nesting-form": fixed(
        raw_pdf(CATALOG, ONE_PAGE, page(resources=b"/XObject << /X 5 0 R >>"), stream(b"/X Do"), SELF_DRAWN)
    ),
    ".pdf entity": pdf_external,
    ".pdf length": fixed(one_page(HELLO.replace(b"/Length ", b"/Length 99999999"))),
    ".pdf length-negative": fixed(one_page(HELLO.replace(b"/Length ", b"/Length -"))),
    ".pdf length-itself": fixed(one_page(b"<< /Length 4 0 R >>\nstream\nBT ET\nendstream")),
    ".pdf length-box": fixed(raw_pdf(CATALOG, ONE_PAGE, page(box=b"-1e30 -1e30 1e30 1e30"), HELLO, FONT)),
    ".pdf length-noise": fixed(b"%PDF-1.7\n" + bytes(range(256)) * 500),
    ".pdf length-no-pages": fixed(raw_pdf(CATALOG, ONE_PAGE.replace(b"/Count 1", b"/Count -5"), page(), HELLO, FONT)),
    ".pdf length-listed": fixed(
        raw_pdf(CATALOG, b"<< /Type /Pages /Kids [%s] /Count 200000 >>" % (b"3 0 R " * 200_000), page(), HELLO, FONT)
    ),
    ".pdf length-pages": fixed(
        raw_pdf(CATALOG, ONE_PAGE.replace(b"/Count 1", b"/Count %d" % ENDLESS), page(), HELLO, FONT)
    ),
    ".pdf length-table": fixed(
        one_page(HELLO).replace(b"xref\n0 6", b"xref\n0 %d" % ENDLESS).replace(b"/Size 6", b"/Size %d" % ENDLESS)
    ),
    ".pdf length-predictor": fixed(
        one_page(
            stream(
                zlib.compress(b"BT ET"),
                b"/Filter /FlateDecode /DecodeParms << /Predictor 15 /Columns %d /Colors 32 >>" % ENDLESS,
            )
        )
    ),
    # --- Zip files as folders ---
    ".zip bomb": lambda scale: zip_of({"a.txt": inflating(b"cedar", scale.bomb, b"")}),
    ".zip length": lambda scale: zip_of({"a.txt": inflating(b"cedar", scale.bomb, b"")._replace(size=1_000)}),
    ".zip length-bz2": lying_blanks(ZIP_BZIP2),
    ".zip length-lzma": lying_blanks(ZIP_LZMA),
    ".zip length-dictionary": zip_dictionary,
    ".zip length-large": fixed(zip_of({"a.txt": packed(W)._replace(size=0xFFFFFFFE)})),
    ".zip length-offset": zip_offset,
    ".zip bomb-entries": zip_entries,
    ".zip nesting": zip_in_zip,
    ".zip nesting-folders": fixed(zip_of({"a/" * 30_000 + "a.txt": W})),
    ".zip line": lambda scale: zip_of({"a.md": FILES[".md line"](scale), "b.txt": FILES[".txt line"](scale)}),
    ".zip entity": zip_link,
}
CASES = {(name.split()[0], name.split()[1]): builder for name, builder in FILES.items()}
