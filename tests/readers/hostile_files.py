"""Files that are made to hang, bloat or trick their reader: each format with each attack that makes sense for it.

`CASES` is the table, ``{(suffix, attack): builder}``. A builder gets the `Scale` and returns the bytes of the file.
"""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZIP_LZMA, ZIP_STORED, ZipFile, ZipInfo

from tests.readers.office_files import MAKERS, WORDS
from tests.readers.raw_pdf import CATALOG, FONT, ONE_PAGE, content, nested_forms, page, raw_pdf, stream

BLANKS = b" " * (1 << 20)


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
CASES: dict[tuple[str, str], Builder] = {}


def case(*names: str) -> Callable[[Builder], Builder]:
    """Add a builder to the table under names such as ``".md line"``."""

    def add(builder: Builder) -> Builder:
        for name in names:
            suffix, _, attack = name.partition(" ")
            CASES[suffix, attack] = builder
        return builder

    return add


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
    names = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "table", "text")
    )
    cell = f'<table:table-cell office:value-type="string"><text:p>{WORDS}</text:p></table:table-cell>'
    table = f'<table:table table:name="a"><table:table-row>{cell}</table:table-row></table:table>'
    body = f"<office:body><office:spreadsheet>{table}</office:spreadsheet></office:body>"
    text = f'<?xml version="1.0"?><office:document-content {names}>{body}</office:document-content>'
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    space = "urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"
    entries = "".join(
        f'<manifest:file-entry manifest:full-path="{path}" manifest:media-type="{of}"/>'
        for path, of in (("/", kind), ("content.xml", "text/xml"))
    )
    manifest = f'<?xml version="1.0"?><manifest:manifest xmlns:manifest="{space}">{entries}</manifest:manifest>'
    files = {"mimetype": kind, "content.xml": text, "META-INF/manifest.xml": manifest}
    return zip_of({name: content.encode() for name, content in files.items()})


PACKED = {
    ".docx": "word/document.xml",
    ".pptx": "ppt/slides/slide2.xml",
    ".xlsx": "xl/worksheets/sheet1.xml",
    ".odt": "content.xml",
    ".ods": "content.xml",
    ".epub": "a.xhtml",
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


def external(scale: Scale) -> str:
    return (
        f'<!ENTITY e SYSTEM "file://{scale.file}"><!ENTITY h SYSTEM "{scale.url}"><!ENTITY % p SYSTEM "{scale.url}">%p;'
    )


LAUGHS = '<!ENTITY a0 "ha ha ha ">' + "".join(
    f'<!ENTITY a{number} "{f"&a{number - 1};" * 10}">' for number in range(1, 11)
)


def _packed_cases(suffix: str) -> None:
    def bomb(scale: Scale) -> bytes:
        def inflated(text: str) -> Packed:
            before, after = around_words(text)
            return inflating(before, scale.bomb, after)

        return with_text(suffix, inflated)

    def words(scale: Scale) -> bytes:
        def inflated(text: str) -> Packed:
            before, after = around_words(text)
            return inflating(before, scale.bomb, after, b"cedar " * 100_000)

        return with_text(suffix, inflated)

    def lying(scale: Scale) -> bytes:
        def inflated(text: str) -> Packed:
            before, after = around_words(text)
            return inflating(before, scale.bomb, after)._replace(size=1_000)

        return with_text(suffix, inflated)

    def lying_large(scale: Scale) -> bytes:
        return with_text(suffix, lambda text: packed(text.encode())._replace(size=0xFFFFFFFE))

    def line(scale: Scale) -> bytes:
        return with_text(suffix, lambda text: text.replace(WORDS, "cedar" * (scale.line // 5)))

    def nesting(scale: Scale) -> bytes:
        inner = "<x>" * scale.depth + WORDS + "</x>" * scale.depth
        return with_text(suffix, lambda text: text.replace(WORDS, inner))

    def entity(scale: Scale) -> bytes:
        return with_text(suffix, lambda text: with_entity(text, external(scale), "&e;&h;"))

    def laughs(scale: Scale) -> bytes:
        return with_text(suffix, lambda text: with_entity(text, LAUGHS, "&a10;"))

    attacks = (bomb, words, lying, lying_large, line, nesting, entity, laughs)
    names = ("bomb", "bomb-words", "length", "length-large", "line", "nesting", "entity", "entity-laughs")
    for name, attack in zip(names, attacks, strict=True):
        case(f"{suffix} {name}")(attack)


for packed_suffix in PACKED:
    _packed_cases(packed_suffix)


@case(".docx nesting-tables")
def nested_tables(scale: Scale) -> bytes:
    start, end = "<w:tbl><w:tr><w:tc>" * scale.depth, "<w:p/></w:tc></w:tr></w:tbl>" * scale.depth
    return with_text(".docx", lambda text: text.replace("<w:body>", f"<w:body>{start}<w:p/>{end}"))


@case(".odt nesting-lists")
def nested_lists(scale: Scale) -> bytes:
    start, end = "<text:list><text:list-item>" * scale.depth, "</text:list-item></text:list>" * scale.depth
    return with_text(".odt", lambda text: text.replace("<office:text>", f"<office:text>{start}<text:p>a</text:p>{end}"))


@case(".odt length-blanks")
def repeated_blanks(scale: Scale) -> bytes:
    return with_text(".odt", lambda text: text.replace(WORDS, WORDS + '<text:s text:c="4000000000"/>'))


@case(".ods length-repeated")
def repeated_cells(scale: Scale) -> bytes:
    cells = '<table:table-cell table:number-columns-repeated="2000000000" '
    row = '<table:table-row table:number-rows-repeated="2000000000">'

    def repeated(text: str) -> str:
        return text.replace("<table:table-cell ", cells).replace("<table:table-row>", row)

    return with_text(".ods", repeated)


@case(".xlsx length-corner")
def far_corner(scale: Scale) -> bytes:
    """A sheet with two cells, as far from each other as they can be."""
    members, _ = members_of(".xlsx")
    sheet = members["xl/worksheets/sheet1.xml"]
    assert isinstance(sheet, bytes)
    row = b'<row r="1048576"><c r="XFD1048576"><v>7</v></c></row></sheetData>'
    members["xl/worksheets/sheet1.xml"] = sheet.replace(b"</sheetData>", row)
    return zip_of(members)


@case(".xlsx bomb-shared")
def shared_string(scale: Scale) -> bytes:
    """One long text that every cell shows."""
    members, text = members_of(".xlsx")
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    strings = f'<sst xmlns="{space}" count="1" uniqueCount="1"><si><t>{"cedar " * 200_000}</t></si></sst>'
    members["xl/sharedStrings.xml"] = strings.encode()
    for name, listed, kind in (
        ("xl/_rels/workbook.xml.rels", '<Relationship Id="s" Type="{0}" Target="/xl/sharedStrings.xml"/>', "ships"),
        ("[Content_Types].xml", '<Override PartName="/xl/sharedStrings.xml" ContentType="{1}"/>', "Types"),
    ):
        relation = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/sharedStrings"
        of = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
        content = members[name]
        assert isinstance(content, bytes)
        head, end, tail = content.decode().rpartition("</")
        assert kind in tail
        members[name] = (head + listed.format(relation, of) + end + tail).encode()
    cells = "".join(f'<row r="{row}"><c r="A{row}" t="s"><v>0</v></c></row>' for row in range(10, 10_000))
    members["xl/worksheets/sheet1.xml"] = text.replace("</sheetData>", cells + "</sheetData>").encode()
    return zip_of(members)


@case(".epub bomb-spine")
def same_page_again(scale: Scale) -> bytes:
    """A book of which one chapter is listed a million times."""
    members, text = members_of(".epub")
    members["a.xhtml"] = text.replace(WORDS, "cedar " * 20_000).encode()
    book = members["book.opf"]
    assert isinstance(book, bytes)
    members["book.opf"] = book.replace(b'<itemref idref="a"/>', b'<itemref idref="a"/>' * 100_000)
    return zip_of(members)


# Web pages, alone and in books.

HTML = "<!doctype html><html><head><title>Cedar</title></head><body><p>%s</p></body></html>"


@case(".html bomb")
def wide_cells(scale: Scale) -> bytes:
    table = "<table><tr><td colspan=1000000000 rowspan=1000000000>cedar</td><td>b</td></tr></table>"
    return (HTML % (WORDS + table * 3)).encode()


@case(".html bomb-lists")
def large_numbers(scale: Scale) -> bytes:
    return (HTML % (f"{WORDS}<ol start=99999999999999999999><li value=-9999999999>a</ol>" + "<h6>" * 1000)).encode()


@case(".html line")
def page_line(scale: Scale) -> bytes:
    return (HTML % ("cedar" * (scale.line // 5))).encode()


@case(".html line-comments")
def open_comments(scale: Scale) -> bytes:
    return b"<!--" * (scale.line // 4)


@case(".html line-heads")
def open_heads(scale: Scale) -> bytes:
    return b"<head " * (scale.line // 6)


@case(".html line-attributes")
def one_tag(scale: Scale) -> bytes:
    return (HTML % ("<a " + "b=c " * (scale.line // 4) + ">cedar</a>")).encode()


for tag in ("div", "blockquote", "ul><li", "table><tr><td", "b"):
    closing = "</" + "></".join(reversed([part.strip("<") for part in tag.split("><")]))

    def nested_tags(scale: Scale, tag: str = tag, closing: str = closing) -> bytes:
        return (HTML % (f"<{tag}>" * scale.depth + WORDS + f"{closing}>" * scale.depth)).encode()

    case(f".html nesting-{tag.partition('>')[0]}")(nested_tags)
    if tag in ("div", "blockquote"):

        def open_tags(scale: Scale, tag: str = tag) -> bytes:
            return (HTML % (f"<{tag}>" * scale.depth + WORDS)).encode()

        case(f".html nesting-open-{tag}")(open_tags)


@case(".epub nesting-quotes")
def nested_quotes(scale: Scale) -> bytes:
    inner = "<blockquote>" * scale.depth + WORDS + "</blockquote>" * scale.depth
    return with_text(".epub", lambda text: text.replace(WORDS, inner))


@case(".html entity")
def page_entity(scale: Scale) -> bytes:
    page = f'<img src="{scale.url}"><iframe src="file://{scale.file}"></iframe><object data="{scale.url}"></object>'
    page += f'<link rel=stylesheet href="{scale.url}"><xi:include href="file://{scale.file}"/>&e;'
    return f"<!DOCTYPE html [{external(scale)}]>{HTML[15:] % (WORDS + page)}".encode()


@case(".html entity-laughs")
def page_laughs(scale: Scale) -> bytes:
    return f"<!DOCTYPE html [{LAUGHS}]>{HTML[15:] % (WORDS + '&a10;')}".encode()


@case(".html length")
def page_length(scale: Scale) -> bytes:
    return (HTML % (WORDS + "&#99999999999999;&#xFFFFFFFFFFFFFFFFFF;<meta charset=utf-32>")).encode()


# Plain text and markup.


@case(".txt line", ".rst line", ".org line")
def line(scale: Scale) -> bytes:
    return b"cedar" * (scale.line // 5)


@case(".txt line-astral")
def astral_line(scale: Scale) -> bytes:
    return b"\r" + b"cedar" * (scale.line // 5) + "\U0001f332".encode()


@case(".txt line-ends", ".md line-ends", ".rst line-ends", ".org line-ends", ".tex line-ends", ".html line-ends")
def empty_lines(scale: Scale) -> bytes:
    return WORDS.encode() + b"\n" * scale.line


@case(".txt nesting")
def nested_json(scale: Scale) -> bytes:
    return b"[" * scale.depth + WORDS.encode() + b"]" * scale.depth


@case(".txt entity")
def text_entity(scale: Scale) -> bytes:
    return with_entity(f"<a>{WORDS}</a>", external(scale)).encode()


@case(".txt length")
def lying_mark(scale: Scale) -> bytes:
    return b"\xff\xfe" + WORDS.encode() + b"\xd8\x00" * (scale.line // 2)


@case(".txt length-charset")
def escapes(scale: Scale) -> bytes:
    return b"\x1b$" * (scale.line // 2) + WORDS.encode()


@case(".txt line-encoding")
def unknown_encoding(scale: Scale) -> bytes:
    return b"cedar " * (scale.line // 12) + b"\xe9\xe8\x80\xa4\xd0 " * (scale.line // 12)


@case(".md bomb")
def merged_keys(scale: Scale) -> bytes:
    """YAML whose mappings merge each other ten times: 10 ** 12 keys."""
    lines = ["a0: &a0 {x: 1}", *(f"a{n}: &a{n}\n  <<: [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 13))]
    return ("---\n" + "\n".join(lines) + f"\n---\n{WORDS}").encode()


@case(".md bomb-key")
def nested_keys(scale: Scale) -> bytes:
    """YAML with a key that would be written with 10 ** 12 words."""
    lines = ["a0: &a0 [ha]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 13))]
    return ("---\n" + "\n".join(lines) + f"\n? *a12\n: cedar\n---\n{WORDS}").encode()


@case(".md bomb-number")
def long_number(scale: Scale) -> bytes:
    return f"+++\nweight = 0x{'f' * 60_000}\n+++\n{WORDS}".encode()


@case(".md line")
def heading_line(scale: Scale) -> bytes:
    return b"# cedar" + b" " * scale.line + b"soil\n\n" + WORDS.encode()


@case(".md line-marks")
def heading_marks(scale: Scale) -> bytes:
    return b"# cedar" + b" #" * (scale.line // 2) + b"soil\n\n" + WORDS.encode()


@case(".md line-links")
def link_line(scale: Scale) -> bytes:
    return b"[" * scale.line + b"\n===\n" + WORDS.encode()


@case(".md nesting")
def nested_markdown(scale: Scale) -> bytes:
    return b"> " * scale.depth + WORDS.encode() + b"\n\n" + b"- " * scale.depth + b"```\n" + WORDS.encode()


@case(".md nesting-json")
def nested_front_matter(scale: Scale) -> bytes:
    return b'{"a": ' * scale.depth + b"\n" + WORDS.encode()


@case(".md nesting-yaml")
def nested_yaml(scale: Scale) -> bytes:
    return b"---\na: " + b"[" * 20_000 + b"]" * 20_000 + b"\n---\n" + WORDS.encode()


@case(".md nesting-toml")
def nested_toml(scale: Scale) -> bytes:
    return b"+++\na = " + b"[" * 30_000 + b"]" * 30_000 + b"\n+++\n" + WORDS.encode()


@case(".md nesting-headings")
def many_headings(scale: Scale) -> bytes:
    return b"".join(b"#" * (level % 6 + 1) + b" cedar " * 30 + b"\n" for level in range(scale.depth // 10))


@case(".md entity")
def markdown_entity(scale: Scale) -> bytes:
    text = f"---\ntitle: !!python/object/apply:open ['{scale.file}']\n---\n{WORDS}\n![a]({scale.url})\n"
    return f"{text}\n--8<-- '{scale.file}'\n{{{{< include {scale.file} >}}}}".encode()


@case(".md length")
def front_matter_without_end(scale: Scale) -> bytes:
    return b"---\ntitle: cedar\n" + b"a: b\n" * (scale.line // 5)


@case(".rst nesting")
def nested_rst(scale: Scale) -> bytes:
    return b"".join(b" " * level + b"- cedar\n\n" for level in range(min(scale.depth // 50, 5_000)))


@case(".rst entity")
def rst_entity(scale: Scale) -> bytes:
    text = (
        f".. include:: {scale.file}\n\n.. raw:: html\n   :file: {scale.file}\n\n.. csv-table:: a\n   :url: {scale.url}"
    )
    return f"{WORDS}\n\n{text}\n\n.. image:: {scale.url}\n".encode()


@case(".rst bomb")
def rst_substitutions(scale: Scale) -> bytes:
    lines = [".. |a0| replace:: ha ha ha", *(f".. |a{n}| replace:: {f'|a{n - 1}| ' * 10}" for n in range(1, 12))]
    return ("\n".join(lines) + f"\n\n{WORDS} |a11|\n").encode()


@case(".rst length")
def rst_table(scale: Scale) -> bytes:
    return (f"{WORDS}\n\n" + "=" * scale.line + " ==\na   b\n" + "=" * 10 + "\n").encode()


@case(".org nesting")
def nested_org(scale: Scale) -> bytes:
    return b"*" * scale.depth + b" cedar\n" + b"#+BEGIN_QUOTE\n" * scale.depth + WORDS.encode()


@case(".org entity")
def org_entity(scale: Scale) -> bytes:
    return (
        f'#+INCLUDE: "{scale.file}"\n#+SETUPFILE: {scale.url}\n{WORDS} [[file:{scale.file}]] [[{scale.url}]]\n'.encode()
    )


@case(".org bomb")
def org_macros(scale: Scale) -> bytes:
    lines = ["#+MACRO: a0 ha ha", *(f"#+MACRO: a{n} {f'{{{{{{a{n - 1}}}}}}}' * 10}" for n in range(1, 12))]
    return ("\n".join(lines) + f"\n{WORDS} {{{{{{a11}}}}}}\n").encode()


@case(".org length")
def org_table(scale: Scale) -> bytes:
    return (f"{WORDS}\n|" + "|" * scale.line + "\n").encode()


@case(".tex line")
def tex_line(scale: Scale) -> bytes:
    return b"\\section{" * (scale.line // 9) + WORDS.encode()


@case(".tex line-math")
def tex_math(scale: Scale) -> bytes:
    return b"$" + b"a\n" * (scale.line // 2) + b"\\[ \\( " * (scale.line // 6)


@case(".tex line-blanks")
def tex_blanks(scale: Scale) -> bytes:
    return WORDS.encode() + b" " * scale.line + b"x"


@case(".tex nesting")
def nested_braces(scale: Scale) -> bytes:
    return b"\\title{" + b"{" * scale.depth + WORDS.encode() + b"}" * scale.depth + b"}"


@case(".tex nesting-lists")
def nested_environments(scale: Scale) -> bytes:
    start, end = b"\\begin{itemize}\\item ", b"\\end{itemize}"
    return start * scale.depth + WORDS.encode() + end * scale.depth


@case(".tex entity")
def tex_entity(scale: Scale) -> bytes:
    file = scale.file
    return f"\\input{{{file}}}\\include{{{file}}}\\verbatiminput{{{file}}}\\href{{{scale.url}}}{{a}} {WORDS}".encode()


@case(".tex bomb")
def marks_of_marks(scale: Scale) -> bytes:
    """Formulas that hold the marks which the reader puts in their place: each one refers to itself twice."""
    return f"{WORDS} $\ue0000\ue001\ue0000\ue001$".encode()


@case(".tex length")
def lonely_mark(scale: Scale) -> bytes:
    """A mark of the reader without its number, which never goes away."""
    return f"{WORDS} \ue000 \ue0007\ue001".encode()


@case(".rtf line")
def rtf_line(scale: Scale) -> bytes:
    return b"{\\rtf1\\ansi " + b"cedar" * (scale.line // 5) + b"}"


@case(".rtf nesting")
def nested_groups(scale: Scale) -> bytes:
    return b"{\\rtf1\\ansi " + b"{" * scale.depth + WORDS.encode() + b"}" * scale.depth + b"}"


@case(".rtf nesting-tables")
def nested_rows(scale: Scale) -> bytes:
    return b"{\\rtf1\\ansi " + b"\\trowd\\itap99999999 a\\nestcell\\cell" * (scale.depth // 10) + b"\\row}"


@case(".rtf length")
def rtf_binary(scale: Scale) -> bytes:
    return b"{\\rtf1\\ansi {\\pict\\bin4000000000 abc}\\u99999999999?\\uc2000000000 " + WORDS.encode() + b"}"


@case(".rtf bomb")
def rtf_sizes(scale: Scale) -> bytes:
    return (
        b"{\\rtf1\\ansi\\deftab2000000000\\li2000000000 "
        + WORDS.encode()
        + b"{\\pict\\picw2000000000\\pich2000000000 00}}"
    )


@case(".rtf entity")
def rtf_fields(scale: Scale) -> bytes:
    fields = "".join(
        f'{{\\field{{\\*\\fldinst {kind} "{to}"}}{{\\fldrslt a}}}}'
        for kind in ("INCLUDETEXT", "INCLUDEPICTURE", "LINK")
        for to in (f"file://{scale.file}", scale.url)
    )
    return f"{{\\rtf1\\ansi {{\\*\\template {scale.url}}}{WORDS} {fields}}}".encode()


# Mails and notebooks.

HEAD = b"Subject: Cedar\nFrom: a@example.org\nMIME-Version: 1.0\n"


@case(".eml line")
def mail_line(scale: Scale) -> bytes:
    return HEAD + b"\n" + b"cedar" * (scale.line // 5)


@case(".eml line-header")
def mail_header(scale: Scale) -> bytes:
    return b"Subject: " + b"cedar," * (scale.line // 6) + b"\n" + HEAD + b"\n" + WORDS.encode()


@case(".eml line-addresses")
def mail_addresses(scale: Scale) -> bytes:
    return b"To: " + b'((((<a@b>,"' * (scale.line // 11) + b"\n" + HEAD + b"\n" + WORDS.encode()


@case(".eml line-words")
def mail_encoded_words(scale: Scale) -> bytes:
    return b"Subject: " + b"=?utf-8?q?a?= " * (scale.line // 14) + b"\n" + HEAD + b"\n" + WORDS.encode()


@case(".eml nesting")
def nested_mails(scale: Scale) -> bytes:
    return (HEAD + b"Content-Type: message/rfc822\n\n") * (scale.depth // 10) + HEAD + b"\n" + WORDS.encode()


@case(".eml nesting-parts")
def nested_parts(scale: Scale) -> bytes:
    parts = (
        b'Content-Type: multipart/mixed; boundary="b%d"\n\n--b%d\n' % (level, level)
        for level in range(scale.depth // 10)
    )
    return HEAD + b"".join(parts) + b"\n" + WORDS.encode()


@case(".eml entity")
def mail_external(scale: Scale) -> bytes:
    kinds = (
        f'message/external-body; access-type=local-file; name="{scale.file}"',
        f'message/external-body; access-type=URL; URL="{scale.url}"',
    )
    parts = "".join(f"--b\nContent-Type: {kind}\n\nContent-Type: text/plain\n\n\n" for kind in kinds)
    page = f'--b\nContent-Type: text/html\n\n<p>{WORDS}<img src="{scale.url}"></p>\n'
    return HEAD + f'Content-Type: multipart/mixed; boundary="b"\n\n{page}{parts}--b--\n'.encode()


@case(".eml bomb")
def many_attachments(scale: Scale) -> bytes:
    name = "a" * 200
    part = f'--b\nContent-Type: x/y\nContent-Disposition: attachment; filename="{name}"\n\n\n'.encode()
    return HEAD + b'Content-Type: multipart/mixed; boundary="b"\n\n' + part * (scale.line // len(part))


@case(".eml bomb-names")
def continued_parameters(scale: Scale) -> bytes:
    name = b"".join(b"; name*%d*=%%41" % number for number in range(scale.line // 20))
    return HEAD + b"Content-Type: text/plain" + name + b"\n\n" + WORDS.encode()


@case(".eml length")
def mail_lengths(scale: Scale) -> bytes:
    lies = b"Content-Length: 99999999999999\nLines: -1\nContent-Transfer-Encoding: base64\n"
    return HEAD + lies + b'Content-Type: text/plain; charset="utf-8"\n\n' + b"A" * 1_000_001


@case(".eml length-codec")
def mail_codec(scale: Scale) -> bytes:
    """A charset that is a codec of Python and no encoding of text."""
    packed_text = zlib.compress(b" " * (scale.bomb // 6), 9)
    head = b"Content-Type: text/plain; charset=zlib_codec\nContent-Transfer-Encoding: base64\n\n"
    return HEAD + head + base64.encodebytes(packed_text)


@case(".ipynb line")
def notebook_line(scale: Scale) -> bytes:
    cells = [{"cell_type": "markdown", "source": "cedar" * (scale.line // 5)}]
    return json.dumps({"cells": cells, "nbformat": 4}).encode()


@case(".ipynb nesting")
def nested_notebook(scale: Scale) -> bytes:
    return b'{"cells": ' + b"[" * scale.depth + b"]" * scale.depth + b"}"


@case(".ipynb bomb")
def repeated_language(scale: Scale) -> bytes:
    """The name of the language, which stands at every cell, is long."""
    cells = [{"cell_type": "code", "source": "x"}] * 20_000
    language = {"language_info": {"name": "py" * 500_000}}
    return json.dumps({"cells": cells, "metadata": language, "nbformat": 4}).encode()


@case(".ipynb length")
def heading_level(scale: Scale) -> bytes:
    cells = [{"cell_type": "heading", "level": 10**10, "source": WORDS}]
    return json.dumps({"cells": cells, "nbformat": 4}).encode()


@case(".ipynb length-number")
def notebook_number(scale: Scale) -> bytes:
    return b'{"nbformat": ' + b"9" * scale.line + b', "cells": []}'


@case(".ipynb entity")
def notebook_entity(scale: Scale) -> bytes:
    source = f'{WORDS}\n![a]({scale.url})<img src="file://{scale.file}">%load {scale.file}'
    return json.dumps({"cells": [{"cell_type": "markdown", "source": source}], "nbformat": 4}).encode()


# Outlook's compound files.


def compound(fat: bytes, *, sectors: int = 1, directory: int = 1, more: bytes = b"") -> bytes:
    """The header of a compound file, one sector of its table, and what follows."""
    head = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + struct.pack("<HHHHH", 0x3E, 3, 0xFFFE, 9, 6) + bytes(6)
    head += struct.pack("<LLLLLLLLL", 0, sectors, directory, 0, 4096, 0xFFFFFFFE, 0, 0xFFFFFFFE, 0)
    head += struct.pack("<L", 0) + b"\xff" * 432
    return head + fat.ljust(512, b"\xff") + more.ljust(512, b"\0")


ROOT_ENTRY = (
    "Root Entry".encode("utf-16-le").ljust(64, b"\0") + struct.pack("<HBB", 22, 5, 1)
    + struct.pack("<LLL", 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF) + bytes(36) + struct.pack("<LQ", 0xFFFFFFFE, 0)
)  # fmt: skip


@case(".msg nesting")
def chain_of_itself(scale: Scale) -> bytes:
    return compound(struct.pack("<LL", 0xFFFFFFFD, 1), more=ROOT_ENTRY)


@case(".msg length")
def many_sectors(scale: Scale) -> bytes:
    return compound(struct.pack("<LL", 0xFFFFFFFD, 0xFFFFFFFE), sectors=0x7FFFFFFF, more=ROOT_ENTRY)


@case(".msg bomb")
def long_stream(scale: Scale) -> bytes:
    """The root entry says that it has 2 ** 62 bytes."""
    entry = ROOT_ENTRY[:116] + struct.pack("<LQ", 1, 1 << 62)
    return compound(struct.pack("<LL", 0xFFFFFFFD, 0xFFFFFFFE), more=entry)


@case(".msg line")
def long_table(scale: Scale) -> bytes:
    chain = b"".join(struct.pack("<L", number) for number in range(2, 128))
    return compound(struct.pack("<LL", 0xFFFFFFFD, 2) + chain, more=ROOT_ENTRY * (scale.line // 128))


# PDF.


def one_page(stream: bytes, *more: bytes) -> bytes:
    return raw_pdf(CATALOG, ONE_PAGE, page(), stream, FONT, *more)


def _zlib(member: Packed) -> bytes:
    """What `inflating` packed, as a zlib stream without its checksum, which no reader needs."""
    return b"\x78\xda" + member.data


@case(".pdf bomb")
def pdf_bomb(scale: Scale) -> bytes:
    data = _zlib(inflating(b"BT /F1 12 Tf 72 720 Td (Hello) Tj ET", scale.bomb, b""))
    return one_page(stream(data, b"/Filter /FlateDecode"))


@case(".pdf bomb-text")
def pdf_text_bomb(scale: Scale) -> bytes:
    unit = b"BT /F1 12 Tf 72 720 Td (cedar cedar cedar) Tj ET\n" * 1_000
    return one_page(stream(_zlib(inflating(b"", scale.bomb, b"", unit)), b"/Filter /FlateDecode"))


@case(".pdf bomb-forms")
def pdf_forms(scale: Scale) -> bytes:
    return nested_forms(40)


@case(".pdf bomb-title")
def pdf_title(scale: Scale) -> bytes:
    info = b"<< /Title (%s) >>" % (b"cedar " * (scale.line // 6))
    return raw_pdf(CATALOG, ONE_PAGE, page(), content("Hello"), FONT, info, trailer=b"/Info 6 0 R")


@case(".pdf line")
def pdf_line(scale: Scale) -> bytes:
    return one_page(stream(b"BT /F1 12 Tf 72 720 Td (%s) Tj ET" % (b"cedar" * (scale.line // 5))))


@case(".pdf nesting")
def pdf_nesting(scale: Scale) -> bytes:
    return raw_pdf(CATALOG, ONE_PAGE, page(resources=b"/X " + b"[" * scale.depth), content("Hello"), FONT)


@case(".pdf nesting-dictionaries")
def pdf_dictionaries(scale: Scale) -> bytes:
    return raw_pdf(CATALOG, ONE_PAGE, page(resources=b"/X " + b"<</A " * scale.depth), content("Hello"), FONT)


@case(".pdf nesting-content")
def pdf_content(scale: Scale) -> bytes:
    return one_page(stream(b"[" * scale.depth + b"(" * scale.depth))


@case(".pdf entity")
def pdf_external(scale: Scale) -> bytes:
    file, url = scale.file.encode(), scale.url.encode()
    stream_of_file = b"<< /Length 0 /F (%s) /FFilter [] >>\nstream\n\nendstream" % file
    action = (
        b"<< /Type /Catalog /Pages 2 0 R /OpenAction << /S /URI /URI (%s) >> /AA << /O << /S /GoToR /F (%s) >> >> >>"
    )
    first = page().replace(b"/Contents 4 0 R", b"/Contents [4 0 R 6 0 R 7 0 R]")
    stream_of_url = b"<< /Length 0 /F << /FS /URL /F (%s) >> >>\nstream\n\nendstream" % url
    return raw_pdf(action % (url, file), ONE_PAGE, first, content("Hello"), FONT, stream_of_file, stream_of_url)


@case(".pdf length")
def pdf_length(scale: Scale) -> bytes:
    lying = content("Hello").replace(b"/Length ", b"/Length 99999999")
    return one_page(lying)


@case(".pdf length-negative")
def pdf_negative(scale: Scale) -> bytes:
    return one_page(content("Hello").replace(b"/Length ", b"/Length -"))


@case(".pdf length-pages")
def pdf_pages(scale: Scale) -> bytes:
    return raw_pdf(CATALOG, ONE_PAGE.replace(b"/Count 1", b"/Count 2147483647"), page(), content("Hello"), FONT)


@case(".pdf length-table")
def pdf_table(scale: Scale) -> bytes:
    return (
        one_page(content("Hello")).replace(b"xref\n0 6", b"xref\n0 2147483647").replace(b"/Size 6", b"/Size 2147483647")
    )


@case(".pdf length-predictor")
def pdf_predictor(scale: Scale) -> bytes:
    parameters = b"/Filter /FlateDecode /DecodeParms << /Predictor 15 /Columns 2147483647 /Colors 32 >>"
    return one_page(stream(zlib.compress(b"BT ET"), parameters))


# Zip files as folders.


@case(".zip bomb")
def zip_bomb(scale: Scale) -> bytes:
    return zip_of({"a.txt": inflating(b"cedar", scale.bomb, b"")})


@case(".zip length")
def zip_length(scale: Scale) -> bytes:
    return zip_of({"a.txt": inflating(b"cedar", scale.bomb, b"")._replace(size=1_000)})


@case(".zip length-bz2")
def zip_bz2(scale: Scale) -> bytes:
    return zip_of({"a.txt": packed(BLANKS * (scale.bomb // 6 // len(BLANKS)), ZIP_BZIP2)._replace(size=1_000)})


@case(".zip length-lzma")
def zip_lzma(scale: Scale) -> bytes:
    return zip_of({"a.txt": packed(BLANKS * (scale.bomb // 6 // len(BLANKS)), ZIP_LZMA)._replace(size=1_000)})


@case(".zip length-dictionary")
def zip_dictionary(scale: Scale) -> bytes:
    """An LZMA member that asks for a dictionary of 4 GB."""
    member = packed(WORDS.encode(), ZIP_LZMA)
    properties = member.data[:5] + b"\xff\xff\xff\xff" + member.data[9:]
    return zip_of({"a.txt": member._replace(data=properties)})


@case(".zip length-large")
def zip_large(scale: Scale) -> bytes:
    return zip_of({"a.txt": packed(WORDS.encode())._replace(size=0xFFFFFFFE)})


@case(".zip length-offset")
def zip_offset(scale: Scale) -> bytes:
    data = zip_of({"a.txt": WORDS.encode(), "b.txt": WORDS.encode()})
    at = data.rindex(b"PK\1\2")
    return data[: at + 42] + struct.pack("<L", 0x7FFFFFFF) + data[at + 46 :]


@case(".zip bomb-entries")
def zip_entries(scale: Scale) -> bytes:
    """A directory of very many members, all of them the same bytes."""
    one = zip_of({"a.txt": WORDS.encode()})
    start, end = one.index(b"PK\1\2"), one.index(b"PK\5\6")
    entries = one[start:end] * (scale.line // (end - start))
    sizes = struct.pack("<HHHHLLH", 0, 0, 0xFFFE, 0xFFFE, len(entries), start, 0)
    return one[:start] + entries + b"PK\5\6" + sizes


@case(".zip nesting")
def zip_in_zip(scale: Scale) -> bytes:
    data = zip_of({"a.txt": WORDS.encode()})
    for _ in range(50):
        data = zip_of({"a.zip": Packed(data, zlib.crc32(data), len(data), ZIP_STORED)})
    return data


@case(".zip nesting-folders")
def deep_folders(scale: Scale) -> bytes:
    return zip_of({"a/" * 30_000 + "a.txt": WORDS.encode()})


@case(".zip line")
def zip_line(scale: Scale) -> bytes:
    return zip_of({"a.md": heading_line(scale), "b.txt": line(scale)})


@case(".zip entity")
def zip_link(scale: Scale) -> bytes:
    """A member that is a symbolic link to a file outside."""
    data = bytearray(zip_of({"a.txt": scale.file.encode()}))
    at = data.index(b"PK\1\2")
    data[at + 38 : at + 42] = struct.pack("<L", 0o120777 << 16)
    return bytes(data)
