"""Word documents: what no other format has. What they share is in test_office_table.py."""

from __future__ import annotations

import re
from io import BytesIO

import pytest
from docx import Document

from tests.readers.office_builder import (
    NAMES,
    WORD_STYLES,
    Part,
    changed,
    docx,
    drawing,
    item,
    ooxml,
    part,
    read,
    run,
    text_of,
    word_file,
    wp,
)
from tests.visits import check_linear


def test_lists_and_headings_have_their_numbers() -> None:
    body = item(3, 0, "Soil", "Chapter") + item(2, 0, "one") + item(2, 1, "sub") + item(2, 1, "sub")
    body += item(2, 0, "two") + item(3, 1, "Sand", "Chapter") + item(4, 0, "again") + item(3, 0, "Water", "Chapter")
    assert text_of(read(docx(["a"], body), ".docx")) == (
        "# 1 Soil\n\n1. one\n   - a) sub\n   - b) sub\n2. two\n\n# 1.1 Sand\n\n1. again\n\n# 2 Water"
    )


def test_styles_of_python_docx_are_known() -> None:
    document, stream = Document(), BytesIO()
    document.add_heading("Roots", 2)
    document.add_paragraph("Sand", style="List Bullet")
    document.save(stream)
    assert text_of(read(stream.getvalue(), ".docx")) == "## Roots\n\n- Sand"


def styled(kind: str, name: str, vanish: str = "", based: str = "") -> str:
    above = f'<w:basedOn w:val="{based}"/>' if based else ""
    return f'<w:style w:type="{kind}" w:styleId="{name}">{above}<w:rPr>{vanish}</w:rPr></w:style>'


HIDES, SHOWS = "<w:vanish/>", '<w:vanish w:val="0"/>'
HIDING_STYLES = (
    styled("character", "Hides", HIDES)
    + styled("character", "HidesToo", based="Hides")
    + styled("character", "Shows", SHOWS, "Hides")
    + styled("paragraph", "Hidden", HIDES)
    + styled("paragraph", "HiddenToo", based="Hidden")
    + styled("paragraph", "Shown", SHOWS, "Hidden")
)
HIDDEN_RUNS = {
    # style of the paragraph, style of the run, the run itself, hidden by default: whether the text is visible
    ("Hidden", "", "", False): False,
    ("Hidden", "", SHOWS, False): True,
    ("HiddenToo", "", '<w:vanish w:val="off"/>', False): True,
    ("HiddenToo", "", "", False): False,
    ("Shown", "", "", False): True,
    ("Shown", "", HIDES, False): False,
    ("", "Hides", SHOWS, False): True,
    ("", "HidesToo", "", False): False,
    ("", "Shows", "", False): True,
    ("Hidden", "Hides", "", False): True,
    ("HiddenToo", "HidesToo", "", False): True,
    ("Hidden", "Shows", "", False): False,
    ("", "", "", True): False,
    ("Hidden", "Hides", "", True): False,
    ("", "", SHOWS, True): True,
}


@pytest.mark.parametrize("hidden", HIDDEN_RUNS)
def test_a_run_is_hidden_by_itself_or_by_one_of_its_styles(hidden: tuple[str, str, str, bool]) -> None:
    style, run_style, own, by_default = hidden
    default = f"<w:docDefaults><w:rPrDefault><w:rPr>{HIDES}</w:rPr></w:rPrDefault></w:docDefaults>" * by_default
    named = f'<w:rStyle w:val="{run_style}"/>' if run_style else ""
    body = wp(run("cedar planted here", named + own), style)
    document = read(word_file(body, part("styles", default + HIDING_STYLES)), ".docx")
    assert text_of(document) == "cedar planted here" * HIDDEN_RUNS[hidden]
    assert document.lost == {}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("- ", " -", ""),
        ("Seite ", " von 12", ""),
        ("A-", "", ""),
        ("2024 - ", "", "2024 - 3"),
        ("4711 / ", "", "4711 / 3"),
        ("Civil ", "", "Civil 3"),
        ("III - ", "", "III - 3"),
        ("Exhibit ", "", "Exhibit 3"),
    ],
)
def test_only_the_number_of_the_page_is_left_out_of_a_footer(before: str, after: str, expected: str) -> None:
    number = f'<w:fldSimple w:instr=" PAGE ">{run("3")}</w:fldSimple>'
    footer = part("footer", wp(run(before) + number + run(after)))
    document = read(word_file(wp(run("Page 3")), footer), ".docx")
    assert [block.text for block in document.blocks] == [text for text in (expected, "Page 3") if text]


def test_inserted_files_are_counted() -> None:
    chunk = Part("aFChunk", "<html><body>five words are in here</body></html>")
    document = read(word_file(f'<w:altChunk r:id="chunk"/>{wp(run("Text"))}', chunk=chunk), ".docx")
    assert document.lost == {"inserted files": 5}
    assert document.warnings == ["an inserted file is not read; open and save the document in Word to include it"]


def test_notes_without_a_reference_stand_at_the_end_and_endnotes_have_roman_numbers() -> None:
    marks = "".join(
        f'<w:r><w:{kind}Reference w:id="{at}"/></w:r>'
        for kind, at in {"footnote": 99, "comment": 98, "endnote": 4}.items()
    )
    parts = (
        part(f"{kind}s", f'<w:{kind} w:id="{at}">{wp(run(kind))}</w:{kind}>')
        for kind, at in {"footnote": 5, "comment": 6, "endnote": 4}.items()
    )
    text = text_of(read(word_file(wp(run("Text") + marks), *parts), ".docx"))
    assert text == "Text\n\n[Note i: endnote]\n\n[Note: footnote]\n\n[Comment: comment]"


def test_comments_without_a_reference_are_read_in_linear_steps() -> None:
    def read_comments(count: int) -> None:
        comment = f'<w:comment w:id="NUMBER">{wp(run("PHRASE"))}</w:comment>'
        document = read(docx(["why"] * count, wp(run("Text")), comments=comment), ".docx")
        assert (len(document.blocks), document.lost) == (2 * count, {})

    check_linear(read_comments, 200)


def test_a_field_without_an_end_hides_no_text() -> None:
    begin = '<w:r><w:fldChar w:fldCharType="begin"/></w:r>'
    assert text_of(read(word_file(wp(begin) + wp(run("Text")) + wp(run("More"))), ".docx")) == "Text\n\nMore"


def test_relations_may_lead_to_nothing() -> None:
    body = wp(run("Text") + drawing('<c:chart r:id="gone"/>') + drawing('<c:chart r:id="none"/>'))
    gone = Part("chart", target="/charts/chart9.xml")
    assert text_of(read(word_file(body, gone=gone), ".docx")) == "Text"


def test_the_main_part_may_have_another_name_and_the_names_may_be_strict() -> None:
    xml = f"<w:document {NAMES}><w:body>{wp(run('Text'), 'Chapter')}</w:body></w:document>"
    data = ooxml("word", Part("other2", xml, {"styles": part("styles", WORD_STYLES)}))
    assert text_of(read(data, ".docm")) == "# Text"

    def strict(_: str, xml: str) -> str:
        return re.sub(r"schemas\.openxmlformats\.org/(\w+)/2006/(?=main|math|rel)", r"purl.oclc.org/ooxml/\1/", xml)

    def strict_but_packaged(name: str, xml: str) -> str:
        return strict(name, xml).replace("purl.oclc.org/ooxml/package/", "schemas.openxmlformats.org/package/2006/")

    document = read(changed(data, strict_but_packaged), ".docx")
    assert (text_of(document), document.lost) == ("# Text", {})


def test_deep_content_controls_are_read() -> None:
    assert (
        text_of(
            read(word_file("<w:sdt><w:sdtContent>" * 120 + wp(run("Text")) + "</w:sdtContent></w:sdt>" * 120), ".docx")
        )
        == "Text"
    )
