"""PDFs written by hand, object by object: what no library would write, a few hundred bytes each."""

from __future__ import annotations

import zlib

CATALOG = b"<< /Type /Catalog /Pages 2 0 R >>"
ONE_PAGE = b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>"
FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"


def raw_pdf(*objects: bytes, trailer: bytes = b"") -> bytes:
    """Objects 1, 2, … with a correct cross-reference table; object 1 is the root."""
    data, offsets = bytearray(b"%PDF-1.7\n"), []
    for number, body in enumerate(objects, 1):
        offsets.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = len(data)
    data += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    data += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    trailer = trailer.replace(b"TABLE", b"%d" % table)
    data += b"trailer\n<< /Size %d /Root 1 0 R %s >>\nstartxref\n%d\n" % (len(objects) + 1, trailer, table)
    return bytes(data + b"%%EOF\n")


def stream(data: bytes, entries: bytes = b"") -> bytes:
    return b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(data), entries, data)


def page(box: bytes = b"0 0 612 792", resources: bytes = b"/Font << /F1 5 0 R >>") -> bytes:
    entries = b"/Type /Page /Parent 2 0 R /Contents 4 0 R /MediaBox [%s] /Resources << %s >>" % (box, resources)
    return b"<< %s >>" % entries


def content(*lines: str) -> bytes:
    """A page's text, one line below the other."""
    shown = b" ".join(b"(%s) Tj 0 -14 Td" % line.encode("cp1252") for line in lines)
    return stream(b"BT /F1 12 Tf 72 720 Td %s ET" % shown)


def one_page(*lines: str, **about: bytes) -> bytes:
    """A PDF of one page with these lines; `about` makes its information dictionary."""
    info = b" ".join(b"/%s (%s)" % (key.encode(), value) for key, value in about.items())
    return raw_pdf(CATALOG, ONE_PAGE, page(), content(*lines), FONT, b"<< %s >>" % info, trailer=b"/Info 6 0 R")


def nested_forms(depth: int) -> bytes:
    """A page that draws a form twice, which draws a form twice … : 2 ** depth drawings from a few kilobytes."""

    def form(inner: int) -> bytes:
        resources = b"/Resources << /XObject << /X %d 0 R >> >>" % inner
        return stream(b"/X Do /X Do", b"/Type /XObject /Subtype /Form /BBox [0 0 9 9] " + resources)

    innermost = stream(b" ", b"/Type /XObject /Subtype /Form /BBox [0 0 9 9]")
    first = page(resources=b"/XObject << /X 5 0 R >>")
    forms = (form(number + 1) for number in range(5, 5 + depth))
    return raw_pdf(CATALOG, ONE_PAGE, first, stream(b"/X Do"), *forms, innermost)


def bomb() -> bytes:
    """A page whose content is 200 MB of blanks in about 500 bytes."""
    blanks = zlib.compress(zlib.compress(b" " * 200_000_000, 9), 9)
    packed = stream(blanks, b"/Filter [/FlateDecode /FlateDecode]")
    return raw_pdf(CATALOG, ONE_PAGE, page(), packed, FONT)


def slow_for_pypdf() -> bytes:
    """Minutes of work for pypdf: fifty pages that each save the graphics state a million times."""
    pages = b"<< /Type /Pages /Kids [%s] /Count 50 >>" % (b"3 0 R " * 50)
    saved = b"q " * 1_000_000 + b"BT /F1 12 Tf 72 720 Td (Hello) Tj ET"
    return raw_pdf(CATALOG, pages, page(), stream(saved), FONT)
