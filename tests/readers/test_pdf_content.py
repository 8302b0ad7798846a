"""Form fields, annotations, ligatures and running heads of PDFs made by hand."""

from __future__ import annotations

import textwrap
import zlib
from collections.abc import Sequence
from pathlib import Path

import pytest
from fpdf.fonts import CORE_FONTS_CHARWIDTHS

from ragistry.errors import ExtractionError
from ragistry.readers.extract import extract
from ragistry.readers.extracted import Extracted
from ragistry.readers.pdf_engines import Spot
from ragistry.readers.pdf_letters import MISSING, restore
from ragistry.readers.pdf_reader import without_running_heads
from tests.messages import refused
from tests.readers.raw_pdf import CATALOG, FONT, ONE_PAGE, content, page, raw_pdf, stream

ENGINES = ["pypdfium2", "pypdf"]
WITH_ANNOTATIONS = page()[:-2] + b"/Annots [%s] >>"
MAP = b"begincmap 1 begincodespacerange <00> <FF> endcodespacerange 1 beginbfchar <7E> <%s> endbfchar endcmap"
UNMAPPED = b"<< /Type /Font /Subtype /Type1 /BaseFont /ABCDEF+Foo /ToUnicode 6 0 R >>"


def annotated(*annotations: bytes, text: bytes = content("Body."), more: tuple[bytes, ...] = ()) -> bytes:
    listed = b" ".join(b"%d 0 R" % number for number in range(6, 6 + len(annotations)))
    return raw_pdf(CATALOG, ONE_PAGE, WITH_ANNOTATIONS % listed, text, FONT, *annotations, *more)


def annotation(subtype: bytes, entries: bytes, rectangle: bytes = b"72 500 200 520") -> bytes:
    return b"<< /Type /Annot /Subtype /%s /Rect [%s] %s >>" % (subtype, rectangle, entries)


def read(tmp_path: Path, data: bytes, engine: str = "pypdfium2") -> Extracted:
    (tmp_path / "a.pdf").write_bytes(data)
    return extract(tmp_path / "a.pdf", pdf_engine=engine)


@pytest.mark.parametrize("engine", ENGINES)
def test_annotations_are_read_and_marked(tmp_path: Path, engine: str) -> None:
    data = annotated(
        annotation(b"FreeText", b"/Contents (Typed)"),
        annotation(b"Text", b"/Contents (Sticky)"),
        annotation(b"Highlight", b"/Contents (Why?)"),
        annotation(b"Link", b"/Contents (Link)"),
        annotation(b"Popup", b"/Contents (Popup)"),
        annotation(b"Text", b"/Contents (Hidden) /F 2"),
    )
    assert read(tmp_path, data, engine).text == "Body.\n\n[Note: Typed]\n[Note: Sticky]\n[Comment: Why?]"


def test_annotation_whose_text_is_on_the_page_is_not_doubled(tmp_path: Path) -> None:
    data = annotated(
        annotation(b"FreeText", b"/Contents (Body.)", b"70 715 200 735"), annotation(b"FreeText", b"/Contents (Body)")
    )
    assert read(tmp_path, data).text == "Body.\n\n[Note: Body]"


def test_annotation_outside_of_the_page_is_read_once(tmp_path: Path) -> None:
    pages = b"<< /Type /Pages /Kids [3 0 R 3 0 R 3 0 R] /Count 3 >>"
    outside = annotation(b"FreeText", b"/Contents (Outside)", b"900 900 990 990")
    data = raw_pdf(CATALOG, pages, WITH_ANNOTATIONS % b"6 0 R", content("Body."), FONT, outside)
    assert read(tmp_path, data).text.count("Outside") == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_form_fields_are_read_with_their_labels(tmp_path: Path, engine: str) -> None:
    data = annotated(
        annotation(b"Widget", b"/FT /Tx /T (name) /TU (Full name) /V (Ada)"),
        annotation(b"Widget", b"/FT /Ch /T (city) /V (b) /Opt [[(b) (Bern)] [(r) (Rome)]]"),
        annotation(b"Widget", b"/FT /Ch /Ff 2097152 /T (tags) /V [(x) (y)] /Opt [(w) (x) (y)]"),
        annotation(b"Widget", b"/FT /Btn /T (news) /V /Yes /AS /Yes"),
        annotation(b"Widget", b"/FT /Btn /T (spam) /V /Off /AS /Off"),
        annotation(b"Widget", b"/Parent 13 0 R /AS /Blue"),
        annotation(b"Widget", b"/FT /Tx /T (secret) /Ff 8192 /V (password)"),
        more=(b"<< /FT /Btn /Ff 32768 /T (colour) /V /Blue >>",),
    )
    lines = ["Full name: Ada", "city: Bern", "tags: x, y", "news: Yes", "colour: Blue"]
    assert read(tmp_path, data, engine).text == "Body.\n\n" + "\n".join(f"[Field: {line}]" for line in lines)


def form(count: int) -> bytes:
    return annotated(*(annotation(b"Widget", b"/FT /Tx /T (f%d) /V (value %d)" % (n, n)) for n in range(count)))


def test_form_with_2000_fields_is_read_whole(tmp_path: Path) -> None:
    text = read(tmp_path, form(2_000)).text
    assert "[Field: f1999: value 1999]" in text
    assert text.count("[Field: ") == 2_000


def test_circular_fields_and_broken_annotations_are_survived(tmp_path: Path) -> None:
    data = annotated(
        annotation(b"Widget", b"/Parent 10 0 R /V (Circular)"),
        b"(no dictionary)",
        b"<< /Subtype /FreeText /Rect [1] /Contents 12 >>",
        annotation(b"Text", b"/Contents (Kept)"),
        more=(b"<< /Parent 11 0 R >>", b"<< /Parent 10 0 R >>"),
    )
    assert "[Note: Kept]" in read(tmp_path, data).text


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("code", [b"FFFE", b"0000", b"FFFD"])
def test_unmapped_ligature_is_no_hyphen(tmp_path: Path, engine: str, code: bytes) -> None:
    text = content("It is di~cult to be re-", "trieved.")
    data = raw_pdf(CATALOG, ONE_PAGE, page(), text, UNMAPPED, stream(MAP % code))
    assert " ".join(read(tmp_path, data, engine).text.split()) == "It is difficult to be retrieved."


@pytest.mark.parametrize("engine", ENGINES)
def test_ligatures_in_the_codes_of_tex_are_letters(tmp_path: Path, engine: str) -> None:
    text = stream(b"BT /F1 12 Tf 72 720 Td (di\\016cult \\014nd \\015ow sta\\013) Tj ET")
    font = b"<< /Type /Font /Subtype /Type1 /BaseFont /ABCDEF+CMR10 >>"
    assert read(tmp_path, raw_pdf(CATALOG, ONE_PAGE, page(), text, font), engine).text == "difficult find flow staff"


def drawn(*pieces: tuple[float, float, str], size: int = 12) -> bytes:
    """A page with pieces of text at their places, in this order, in a font with accents at the codes 1 to 8."""
    names = b"/grave /acute /circumflex /tilde /dieresis /cedilla /ring /caron /dotlessi"
    font = b"<< /Type /Font /Subtype /Type1 /BaseFont /Times-Roman /Encoding << /Differences [1 %s] >> >>" % names
    shown = " ".join(f"1 0 0 1 {x} {y} Tm ({text}) Tj" for x, y, text in pieces)
    return raw_pdf(CATALOG, ONE_PAGE, page(), stream(f"BT /F1 {size} Tf {shown} ET".encode("latin-1")), font)


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        (
            [(72, 720, "Sepp"), (96.0, 720, "\\005"), (95.3, 720, "al"), (104.7, 720, "\\005"), (104, 720, "a")],
            "Seppälä",
        ),
        ([(72, 720, "Jose"), (88, 720, "\\002"), (97, 720, "y")], "José y"),
        ([(72, 720, "espanol"), (93.3, 720, "\\004")], "español"),
        ([(72, 720, "fran"), (91.3, 720, "c"), (92, 720, "\\006"), (96.6, 720, "ais")], "français"),
        ([(72, 720, "le"), (86, 720, "\\003"), (85.5, 720, "age"), (106, 720, "d'or")], "le âge d\u2019or"),
        ([(72, 720, "de l'"), (96, 723, "\\002"), (94, 720, "Ecole")], "de l\u2019École"),
        ([(72, 720, "na"), (83.3, 720, "\\011"), (83.3, 720, "\\005"), (86.7, 720, "ve")], "naïve"),
        ([(72, 720, "mu"), (88.3, 720, "\\010"), (87.6, 720, "z"), (93.6, 720, "\\007"), (93, 720, "a")], "mužå"),
        ([(72, 720, "a \\003 b ~ c^2 ^x ~/d \\001e\\001")], "a \u02c6 b ~ c^2 ^x ~/d `e`"),
    ],
)
def test_accent_drawn_on_a_letter_is_composed(
    tmp_path: Path, pieces: list[tuple[float, float, str]], expected: str
) -> None:
    assert read(tmp_path, drawn(*pieces)).text == expected


def test_letter_of_a_watermark_below_a_sign_is_no_accent(tmp_path: Path) -> None:
    shown = "BT /F1 90 Tf 1 0 0 1 72 700 Tm (aaaa) Tj /F1 10 Tf 1 0 0 1 72 720 Tm (Wrong~engine ^x) Tj ET"
    data = raw_pdf(CATALOG, ONE_PAGE, page(), stream(shown.encode()), FONT)
    assert "Wrong~engine ^x" in read(tmp_path, data).text


PROSE = (
    "the pump of the second circuit starts as soon as the pressure in the boiler has fallen below the limit that was "
    "set when the plant was built, and it stops again after the valve at the end of the long pipe has been closed. "
    "An engineer who opens the cover has to wait for the light on the board, because steam that leaves the vessel can "
    "burn the skin even through gloves; nothing else in the building is as dangerous. Water that drips from the joint "
    "is collected in a bowl below the floor and led to the drain, where a filter keeps oil and rust back. If the "
    "filter is full, the float in the bowl rises until it touches a contact, and the lamp at the door turns red."
)
TABLE = [
    ("Open the valve slowly", "Turn it to the left"),
    ("Pump is too loud", "Air in the pipe"),
    ("No heat", "Fuse"),
] * 5


def columns(texts: list[list[str]], lefts: tuple[float, ...], lower: float, as_one: bool) -> bytes:
    """A page whose lines are drawn one by one across its columns, each with one operator or with one for a piece."""
    pieces = []
    for row, line in enumerate(zip(*texts, strict=True)):
        if as_one:
            widths = [sum(CORE_FONTS_CHARWIDTHS["times"][letter] for letter in text) / 100 for text in line]
            gaps = [0, *(left + width - after for left, width, after in zip(lefts, widths, lefts[1:], strict=False))]
            shown = " ".join(f"{gap * 100:.0f} ({text})" for gap, text in zip(gaps, line, strict=True))
            pieces.append(f"1 0 0 1 {lefts[0]} {720 - 12 * row} Tm [{shown}] TJ")
        else:
            pieces += [
                f"1 0 0 1 {left} {720 - 12 * row - lower * place} Tm ({text}) Tj"
                for place, (left, text) in enumerate(zip(lefts, line, strict=True))
            ]
    font = b"<< /Type /Font /Subtype /Type1 /BaseFont /Times-Roman >>"
    return raw_pdf(CATALOG, ONE_PAGE, page(), stream(f"BT /F1 10 Tf {' '.join(pieces)} ET".encode()), font)


@pytest.mark.parametrize(
    ("count", "lower", "as_one"), [(2, 0, False), (2, 3, False), (2, 6, False), (2, 0, True), (3, 0, False)]
)
def test_lines_drawn_across_columns_are_read_column_by_column(
    tmp_path: Path, count: int, lower: float, as_one: bool
) -> None:
    lines = textwrap.wrap(PROSE, 84 // count)
    rows = len(lines) // count
    texts = [lines[column * rows : (column + 1) * rows] for column in range(count)]
    found = read(tmp_path, columns(texts, (20, 215, 410)[:count], lower, as_one)).text
    assert " ".join(found.split()) == " ".join(line for column in texts for line in column)


@pytest.mark.parametrize("rows", [3, 4, 5, 6, 10, 15, 22, 25, 35, 50])
@pytest.mark.parametrize(("width", "lefts"), [(42, (20, 215)), (52, (40, 310)), (40, (72, 320))])
def test_columns_of_any_number_of_lines_are_read_one_by_one(
    tmp_path: Path, rows: int, width: int, lefts: tuple[float, float]
) -> None:
    lines = textwrap.wrap(PROSE * 9, width)
    texts = [lines[:rows], lines[rows : 2 * rows]]
    found = read(tmp_path, columns(texts, lefts, 0, as_one=False)).text
    assert " ".join(found.split()) == " ".join(line for column in texts for line in column)


QUESTIONS = [
    ("how to open the valve", "turn it to the left side"),
    ("how to stop the pump", "press the red button twice"),
    ("how to clean the filter", "rinse it with warm water"),
    ("how to reset the lamp", "wait until it is green"),
]


@pytest.mark.parametrize("rows", [*(QUESTIONS[:n] for n in (3, 4)), TABLE[:3], TABLE[:5], TABLE])
def test_rows_of_a_table_stay_rows(tmp_path: Path, rows: list[tuple[str, str]]) -> None:
    found = read(tmp_path, columns([list(side) for side in zip(*rows, strict=True)], (72, 320), 0, as_one=False)).text
    assert found.split("\n") == [" ".join(row) for row in rows]


def test_pages_that_repeat_one_text_are_refused(tmp_path: Path) -> None:
    pages = b"<< /Type /Pages /Kids [%s] /Count 60 >>" % (b"3 0 R " * 60)
    packed = stream(zlib.compress(b"BT /F1 1 Tf 9 720 Td (%s) Tj ET" % (b"valve " * 4_000)), b"/Filter /FlateDecode")
    with refused(ExtractionError, "a.pdf"):
        read(tmp_path, raw_pdf(CATALOG, pages, page(), packed, FONT))


SENTENCE = "The valve is open and the pump of the second circuit starts"


def in_steps(step: float, gap: float) -> list[tuple[float, float, str]]:
    """Letters that have equal room, and the gap of a blank."""
    return [(20 + step * at + (gap - step) * SENTENCE[:at].count(" "), 720, one) for at, one in enumerate(SENTENCE)]


@pytest.mark.parametrize(
    "data",
    [
        content("  ".join(" ".join(word) for word in SENTENCE.split())),
        content("   ".join(" ".join(word) for word in SENTENCE.split())),
        in_steps(9, 6),
        in_steps(10, 4),
        stream(f"BT /F1 9 Tf 9 720 Td [{' '.join(f'({one}) -500' for one in SENTENCE)}] TJ ET".encode()),
    ],
)
def test_spaced_letters_are_joined_to_words(tmp_path: Path, data: bytes | list[tuple[float, float, str]]) -> None:
    whole = drawn(*data) if isinstance(data, list) else raw_pdf(CATALOG, ONE_PAGE, page(), data, FONT)
    assert read(tmp_path, whole).text == SENTENCE


def test_rows_of_single_letters_stay_apart(tmp_path: Path) -> None:
    lines = ["A B C D A B C D"] * 9
    assert read(tmp_path, raw_pdf(CATALOG, ONE_PAGE, page(), content(*lines), FONT)).text.split("\n") == lines


def test_the_document_decides_about_a_ligature() -> None:
    assert restore([f"a {MISSING}xyz", "we flxyz"]) == ["a flxyz", "we flxyz"]
    assert restore([f"q{MISSING}q"]) == [f"q{MISSING}q"]


def heads(pages: list[str], spots: list[dict[int, Spot]] | None = None, labels: Sequence[str] = ()) -> list[str]:
    return without_running_heads(pages, spots or [{} for _ in pages], labels)


def test_running_heads_and_feet_are_kept_once() -> None:
    pages = [f"A manual\nText {word}\nmore {word}.\nPage {n} of 4" for n, word in enumerate("abcd", 1)]
    assert heads(pages) == [pages[0], *(f"Text {word}\nmore {word}.\n" for word in "bcd")]


def test_kept_foot_does_not_interrupt_a_sentence() -> None:
    pages = [f"{word} one\n{word} two\npour {word} into the\nPage {n} of 4" for n, word in enumerate("abcd", 1)]
    assert heads(pages)[0] == "Page 1 of 4\na one\na two\npour a into the\n"


ROMAN = ["i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii"]
NUMBERED = """
Exhibit {}|Invoice 2024-00{}|Receipt no. {}|Day {}|Room 10{}|2024-03-0{}|{} mars 2024|{} mars|0{}.03.2024|Step {}|§ {}
Annual accounts 200{}|Chapter {}|Step {} of 12|Exhibit {}/12|199{}|471{}|00012{}|$ {}|{} %|#{}|No. {}|{}. Mahnung
Exhibit {} Page {}|Exhibit {} Page 1|Exhibit {}, page 1 of 1|B-side {}|Model S {}|du {} mars 2024|Page 7.{}|{}.1|ACME-{}
第{}章|附件 {}|Глава {}|Приложение {}|المادة {}|제{}장|{}  Day|Week {} of 2024|{} / 3 / 2024
"""
OF_PAGES = """
Page {}|Page {} of 9|- {} -|— {} —|{}/9|{} of 9|{}|[{}]|Seite {} von 9|S. {}|p. {}|page {} sur 9|Página {} de 9
Pagina {} di 9|Page no. {}|PAGE {}|Folie {}|Sida {} (9)|{}. oldal|Σελίδα {} από 9|Стр. {} из 9|第 {} 页 共 9 页
第{}页/共9页|{}ページ|{} 페이지|صفحة {} من 9|Report 2024, page {} of 9|Report — Page {}|报告 第{}页
Annex A, page {}|Report · {}
"""


def kinds(table: str) -> list[str]:
    return table.strip().replace("\n", "|").split("|")


def counted(line: str, pages: int, first: int = 1) -> list[str]:
    """Pages of prose under a line whose number counts."""
    return [f"{line.replace('{}', str(n + first))}\n{'a' * (n + 1)} b.\nc {'d' * (n + 1)}." for n in range(pages)]


@pytest.mark.parametrize("line", kinds(NUMBERED))
def test_line_with_a_number_that_counts_stays(line: str) -> None:
    for pages, first in ((2, 1), (3, 1), (9, 1), (9, 4), (200, 1)):
        numbers = [str(n) for n in range(first, first + pages)]
        for labels in ([], numbers, ["", *numbers][:pages]):
            assert heads(counted(line, pages, first), labels=labels) == counted(line, pages, first)


@pytest.mark.parametrize("line", kinds(OF_PAGES))
def test_number_of_the_page_is_left_out_after_the_first(line: str) -> None:
    for pages in (2, 3, 9, 200):
        whole = counted(line, pages)
        assert heads(whole) == [whole[0], *(page.partition("\n")[2] for page in whole[1:])]


@pytest.mark.parametrize(
    ("lines", "labels", "left_out"),
    [
        (ROMAN, ROMAN, 11),
        (ROMAN, [], 0),
        ([f"Part {one}" for one in ROMAN], ROMAN, 0),
        ([*ROMAN[:3], "1", "2", "3", "4"], [*ROMAN[:3], "1", "2", "3", "4"], 6),
        (["Oak", "Elm", "1", "2", "3", "4"], [], 3),
        ([f"A-{n}" for n in range(1, 6)], [f"A-{n}" for n in range(1, 6)], 4),
        ([f"A-{n}" for n in range(1, 6)], [], 0),
        ([f"Exhibit {n}" for n in range(1, 6)], [f"Exhibit {n}" for n in range(1, 6)], 0),
        ([str(n) for n in range(711, 716)], [str(n) for n in range(711, 716)], 4),
        ([str(n) for n in range(711, 716)], [], 0),
        (["711 Oak", "Oak 712", "713 Oak", "Oak 714"], [], 3),
        ([f"Page {n % 3 + 1} of 3" for n in range(9)], [], 6),
        (["Page 1 of 1"] * 5, [], 4),
        (["Oak left", "Oak right"] * 3, [], 4),
        (["3"] * 5, [], 0),
        (["05.03.2024"] * 5, [], 4),
    ],
)
def test_printed_numbers_and_repeated_texts_are_left_out(lines: list[str], labels: list[str], left_out: int) -> None:
    pages = [f"{line}\n{'a' * (n + 1)} b.\nc {'d' * (n + 1)}." for n, line in enumerate(lines)]
    assert sum(page != found for page, found in zip(pages, heads(pages, labels=labels), strict=True)) == left_out


@pytest.mark.parametrize(
    ("pieces", "is_number"),
    [
        (((72, "{}"), (300, "Annual report")), True),
        (((72, "{}  Annual report"),), True),
        (((72, "Annual report 2024"), (530, "{}")), True),
        (((72, "05.03.2024"), (280, "Oak Ltd"), (500, "{} / 4")), True),
        (((72, "{} Annual report"),), False),
        (((72, "Exhibit {}"),), False),
        (((72, "Exhibit"), (140, "{}")), False),
        (((72, "Exhibit {}"), (500, "Oak Ltd")), False),
    ],
)
def test_number_apart_from_the_title_is_that_of_the_page(
    tmp_path: Path, pieces: tuple[tuple[float, str], ...], is_number: bool
) -> None:
    objects = [CATALOG, b"<< /Type /Pages /Kids [6 0 R 8 0 R 10 0 R 12 0 R] /Count 4 >>", b"null", b"null", FONT]
    for n in range(1, 5):
        shown = [f"1 0 0 1 {x} 750 Tm ({text.replace('{}', str(n))}) Tj" for x, text in pieces]
        body = f"1 0 0 1 72 600 Tm ({'oak ' * n}) Tj"
        drawing = stream(f"BT /F1 12 Tf {' '.join(shown)} {body} ET".encode())
        objects += [page().replace(b"4 0 R", b"%d 0 R" % (len(objects) + 2)), drawing]
    found = read(tmp_path, raw_pdf(*objects))
    lines = [" ".join(" ".join(text.replace("{}", str(n)) for _, text in pieces).split()) for n in range(1, 5)]
    assert [line in found.text for line in lines] == [True, *[not is_number] * 3]


@pytest.mark.parametrize(
    "pages",
    [
        ["Title\na\nb", "Title\nc\nd"],
        [f"Name Amount\nA 1 {n * n}\nB 2 {n * 7}\nx{n * 5}\nlast {n * n}" for n in range(5)],
        [f"first {n * n}\n{n * 11} body\nTotal {n * 37}" for n in range(6)],
        ["Proof\nx", "a\ny", "b\nz", "c\nw", "Proof\nu", "d\nv", "e\ns", "f\nt", "Proof\nq"],
        ["Only", "Only", "Only"],
    ],
)
def test_body_text_is_no_running_head(pages: list[str]) -> None:
    assert heads(pages) == pages


@pytest.mark.timeout(20)
def test_five_thousand_pages_with_one_header() -> None:
    pages = [f"The header\nbody {n * n}\nmore {n * 7}\nPage {n}" for n in range(5_000)]
    assert all("header" not in text for text in heads(pages)[1:])
