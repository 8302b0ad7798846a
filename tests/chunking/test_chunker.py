"""Files to chunks with the metadata that say where each stands."""

from __future__ import annotations

import gzip
import json
import logging
import re
from bisect import bisect_right
from pathlib import Path

import pytest
from fpdf import FPDF
from hypothesis import given, settings
from hypothesis import strategies as st

from ragistry.chunking.breadcrumb import SENTENCE_AFTER, SENTENCE_BEFORE, searched_text
from ragistry.chunking.chunker import MOST_PLACES, Room, chunk_document, chunk_extracted
from ragistry.chunking.places import place_at, places_in
from ragistry.errors import ConfigError, SourceNotFoundError, UnsupportedFormatError
from ragistry.readers.blocks import Place
from ragistry.readers.extract import extract
from ragistry.readers.extracted import Extracted
from ragistry.readers.markdown import outline
from ragistry.types import Chunk, Document
from tests.chunking.span_invariants import check
from tests.messages import refused


def starting(*offsets: int) -> tuple[tuple[int, Place], ...]:
    """The pages of a PDF that begin there."""
    return tuple((offset, Place(page=number)) for number, offset in enumerate(offsets, 1))


def markdown(text: str, size: int, overlap: int = 0) -> list[Chunk]:
    return chunk_extracted(Extracted(text, "notes.md", "markdown"), size, overlap)


def check_chunks(extracted: Extracted, size: int, overlap: int, *, room: Room | None = None) -> list[Chunk]:
    """Chunk the text, assert all that holds of every result, and return the chunks."""
    chunks = chunk_extracted(extracted, size, overlap, room=room)
    spans = [(chunk.metadata["start"], chunk.metadata["end"]) for chunk in chunks]
    assert [chunk.text for chunk in chunks] == [extracted.text[start:end] for start, end in spans]
    assert [chunk.metadata["chunk_index"] for chunk in chunks] == list(range(len(chunks)))
    check(extracted.text, spans, size, overlap)
    return chunks


def test_a_text_file_is_cut_at_its_paragraphs(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("The first paragraph. It goes on.\n\nThe second paragraph.\n", encoding="utf-8")
    source = {"source": str(path)}
    assert chunk_document(path, 40) == [
        Chunk(
            "The first paragraph. It goes on.",
            {**source, "chunk_index": 0, "start": 0, "end": 32, "line": 1, "line_feeds": 0},
        ),
        Chunk(
            "The second paragraph.", {**source, "chunk_index": 1, "start": 34, "end": 55, "line": 3, "line_feeds": 2}
        ),
    ]
    assert chunk_document(str(path), 100) == chunk_document(path, 100, 20)


def test_chunks_of_a_pdf_know_their_page(tmp_path: Path) -> None:
    pdf = FPDF()
    for page in ("first", "second", "third"):
        pdf.add_page()
        pdf.set_font("helvetica", size=12)
        pdf.multi_cell(0, 6, f"The {page} page has a few sentences. " * 20)
    pdf.output(str(tmp_path / "manual.pdf"))
    extracted = extract(tmp_path / "manual.pdf")
    chunks = check_chunks(extracted, 300, 60)
    assert chunk_document(tmp_path / "manual.pdf", 300, 60) == chunks
    pages = [chunk.metadata["page"] for chunk in chunks]
    assert pages == sorted(pages)
    assert set(pages) == {1, 2, 3}
    for chunk in chunks:
        expected = ("first", "second", "third")[chunk.metadata["page"] - 1]
        assert expected in chunk.text


def test_markdown_keeps_headings_code_and_front_matter(tmp_path: Path) -> None:
    path = tmp_path / "guide.md"
    path.write_text(
        "---\ntitle: Guide\ntags: [setup, linux]\n---\n"
        "Before any heading, a line of text that says a little.\n\n"
        "# Install\n\n## Requirements\n\nPython and a little patience are required here.\n\n"
        "## Steps\n\nRun this in a shell, and wait for it:\n\n```sh\nmake demo\n```\n",
        encoding="utf-8",
    )
    known = {"source": str(path), "title": "Guide", "tags": ["setup", "linux"]}
    chunks = chunk_document(path, 80)
    assert [chunk.text.split("\n")[0] for chunk in chunks] == [
        "Before any heading, a line of text that says a little.",
        "# Install",
        "## Steps",
    ]
    places = [
        {
            key: value
            for key, value in metadata.items()
            if key not in ("chunk_index", "start", "end", "line_feeds", "places")
        }
        for _, metadata in chunks
    ]
    assert places == [
        {**known, "has_code": False, "line": 5},
        {**known, "heading_context": "Install > Requirements", "section": "Requirements", "has_code": False, "line": 7},
        {**known, "heading_context": "Install > Steps", "section": "Steps", "has_code": True, "line": 13},
    ]


@pytest.mark.parametrize("suffix", [".txt", ".md"])
def test_a_file_without_text_has_no_chunks_and_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, suffix: str
) -> None:
    path = tmp_path / f"empty{suffix}"
    path.write_text(" \n\n", encoding="utf-8")
    with caplog.at_level(logging.WARNING, "ragistry.chunking.chunker"):
        assert chunk_document(path, 100) == []
    assert [str(path) in record.getMessage() for record in caplog.records] == [True]


def test_every_chunk_has_metadata_of_its_own_and_no_none() -> None:
    first, second = chunk_extracted(Extracted("One.\n\nTwo.", "a.txt", metadata={"title": None, "author": "x"}), 5)
    first.metadata["seen"] = True
    assert second.metadata == {
        "author": "x", "source": "a.txt", "chunk_index": 1, "start": 6, "end": 10, "line_feeds": 2
    }  # fmt: skip


def test_lines_are_the_units_of_code_and_tables() -> None:
    code = "def first():\n    return 1. + 2.  # a. b\n\ndef second():\n    return 2\n"
    assert [chunk.text for chunk in chunk_extracted(Extracted(code, "code.py"), 45)] == [
        "def first():\n    return 1. + 2.  # a. b",
        "def second():\n    return 2",
    ]
    table = "name,text\nada,One. Two.\ngrace,Three. Four.\n"
    assert [chunk.text for chunk in chunk_extracted(Extracted(table, "table.CSV"), 35)] == [
        "name,text\nada,One. Two.",
        "grace,Three. Four.",
    ]


def test_what_cannot_be_read_or_cut_is_refused(tmp_path: Path) -> None:
    with refused(SourceNotFoundError):
        chunk_document(tmp_path / "missing.txt", 100)
    (tmp_path / "file.xyz").write_bytes(bytes(9))
    with refused(UnsupportedFormatError):
        chunk_document(tmp_path / "file.xyz", 100)
    with refused(ConfigError):
        chunk_document(tmp_path / "missing.txt", 100, 100)


def test_small_sections_go_together_and_large_ones_stand_alone() -> None:
    text = "# A\n\nsmall\n\n## B\n\nsmall\n\n" + "# C\n\n" + "Large section. " * 5 + "\n\n## D\n\nsmall\n\n# E\n\nsmall"
    assert [chunk.metadata["heading_context"] for chunk in markdown(text, 100)] == ["A", "C", "C > D", "E"]


def test_no_overlap_comes_from_another_section() -> None:
    text = "# A\n\nA sentence in A. Another one.\n\n# B\n\nA sentence in B. Another one."
    assert [chunk.text for chunk in markdown(text, 45, 20)] == [
        "# A\n\nA sentence in A. Another one.",
        "# B\n\nA sentence in B. Another one.",
    ]


def test_a_heading_keeps_the_text_below_it() -> None:
    text = "# Title\n\n## Part\n\n" + "many words without a mark " * 10
    first = markdown(text, 100)[0]
    assert first.text.startswith("# Title\n\n## Part\n\nmany words")
    assert first.metadata["section"] == "Part"


def test_headings_at_the_end_go_with_the_section_before() -> None:
    text = "# A\n\nSome text that is not so small.\n\n# B\n\n## C\n"
    assert [chunk.text for chunk in markdown(text, 60)] == [text.strip()]


@pytest.mark.parametrize(("above", "context"), [("### B", "C"), ("# B", "B > C")])
def test_a_small_section_does_not_take_in_the_next_chapter(above: str, context: str) -> None:
    chapter = "# C" if context == "C" else "## C"
    chunks = markdown(f"## A\n\nsmall\n\n{above}\n\n{chapter}\n\nsmall", 100)
    assert [chunk.metadata["heading_context"] for chunk in chunks] == ["A", context]


def test_fenced_code_that_fits_is_not_divided() -> None:
    code = "```\n" + "call()\n\n" * 8 + "```"
    text = "Some words come before the code. " * 3 + f"\n\n{code}\n\n" + "Some words come after it. " * 3
    chunks = markdown(text, 100, 40)
    assert [code in chunk.text for chunk in chunks].count(True) == 1
    assert [chunk.metadata["has_code"] for chunk in chunks].count(True) == 1


def test_fenced_code_that_does_not_fit_is_divided_at_line_ends() -> None:
    lines = [f"value_{at} = call({at}). Then" for at in range(20)]
    text = "\n".join(["Some text.", "", "```", *lines, "```", "", "More text. And more."])
    chunks = markdown(text, 120, 30)
    assert len(chunks) > 4
    assert all(
        line in ["Some text.", "", "```", *lines, "More text. And more."]
        for chunk in chunks
        for line in chunk.text.split("\n")
    )


def test_fenced_code_that_does_not_fit_starts_a_chunk_where_enough_stands_before_it() -> None:
    before = "Some words that fill a third of it."
    assert markdown(before + "\n```\n" + "call()\n" * 30 + "```", 100)[0].text == before


def test_a_chunk_does_not_end_at_a_blank_line_of_code_that_fits() -> None:
    code = "```\nfirst()\n\nsecond()\n```"
    assert markdown(code + "\n" + "more words " * 10, 40)[0].text == code


def test_a_heading_keeps_some_of_the_code_that_does_not_fit() -> None:
    assert "call" in markdown("# A long heading\n```\n" + "call()\n" * 30 + "```", 30)[0].text


pieces = [
    "# A",
    "## B",
    "### C",
    "A sentence. Another one.",
    "word",
    "",
    "",
    "```",
    "~~~",
    "- item",
    "===",
    "    ",
    "x" * 50,
]
texts = st.lists(st.sampled_from(pieces), max_size=40).map("\n".join)


@given(texts, st.integers(20, 120), st.integers(0, 19))
@settings(max_examples=200, deadline=None)
def test_invariants_hold_for_any_markdown(text: str, size: int, overlap: int) -> None:
    check_markdown(Extracted(text, "any.md", "markdown"), size, overlap)


LIMIT, LEAST = 20, 8
"""Tokens that a chunk may have, and characters that it is not cut below."""


def tokens(text: str) -> int:
    """As a model counts figures and signs: each by itself, letters by threes."""
    letters = sum(character.isalpha() for character in text)
    return letters // 3 + sum(not character.isspace() for character in text) - letters


def room_for(limit: int) -> Room:
    return lambda chunks: [
        len(text) if tokens(text) <= limit else max(LEAST, 9 * len(text) * limit // (10 * tokens(text)))
        for text, _ in chunks
    ]


uneven = st.lists(st.sampled_from([*pieces, "1 2 3 4 5 6 7 8 9", "3.14159265358979323846", "a | b | c"]), max_size=30)


@given(uneven.map("\n".join), st.integers(30, 120), st.integers(0, 29), st.sampled_from(["markdown", "text"]))
@settings(max_examples=200, deadline=None)
def test_invariants_hold_where_chunks_are_cut_again(text: str, size: int, overlap: int, kind: str) -> None:
    extracted = Extracted(text, "any.txt", kind)
    chunks = check_chunks(extracted, size, overlap, room=room_for(LIMIT))
    assert all(tokens(chunk.text) <= LIMIT or len(chunk.text) <= LEAST for chunk in chunks)
    assert chunks == chunk_extracted(extracted, size, overlap, room=room_for(LIMIT))


def test_only_chunks_that_are_too_long_are_cut_again() -> None:
    prose = "Plain words fill this paragraph.\n\n"
    extracted = Extracted(f"{prose * 2}{'1 2 3 4 5 6 7 8 9 0 ' * 3}\n\n{prose * 2}", "any.txt", "text")
    before, after = chunk_extracted(extracted, 70), check_chunks(extracted, 70, 0, room=room_for(LIMIT))
    assert [tokens(chunk.text) > LIMIT for chunk in before] == [False, True, False]
    whole = [chunk.text for chunk in before]
    assert after[0].text == whole[0]
    assert after[-1].text == whole[-1]
    assert " ".join(chunk.text for chunk in after[1:-1]) == whole[1]
    assert len(after) == 4


def check_markdown(extracted: Extracted, size: int, overlap: int) -> None:
    chunks = check_chunks(extracted, size, overlap)
    spans = [(chunk.metadata["start"], chunk.metadata["end"]) for chunk in chunks]
    sketch = outline(extracted.text)
    for first, last in sketch.fences:
        if last - first <= size:
            assert any(start <= first and last <= end for start, end in spans)
    for chunk in chunks:
        start, end = chunk.metadata["start"], chunk.metadata["end"]
        assert chunk.metadata["has_code"] == any(first < end and start < last for first, last in sketch.fences)


def test_invariants_hold_for_the_fixtures(fixtures: Path) -> None:
    paths = [path for path in sorted(fixtures.rglob("*.*")) if path.suffix in (".md", ".txt", ".pdf")]
    assert len(paths) > 20
    for path in paths:
        extracted = extract(path)
        assert check_chunks(extracted, 1000, 150)
        if extracted.format == "markdown":
            check_markdown(extracted, 300, 50)


def test_invariants_hold_for_real_markdown(data: Path) -> None:
    for path in sorted((data / "docs-hugo").rglob("*.md")):
        extracted = extract(path)
        check_markdown(extracted, 1200, 200)
        headings = {section.start for section in outline(extracted.text).sections if section.level}
        for chunk in chunk_extracted(extracted, 1200, 200)[:-1]:
            last_line = chunk.metadata["start"] + chunk.text.rfind("\n") + 1
            assert last_line not in headings


@pytest.mark.parametrize("overlap", [0, 200])
def test_most_chunks_of_real_english_end_at_a_sentence_or_paragraph(data: Path, overlap: int) -> None:
    lines = gzip.decompress((data / "scifact" / "corpus.jsonl.gz").read_bytes()).splitlines()[:1000]
    texts = [json.loads(line)["text"] for line in lines]
    texts += [gzip.decompress(path.read_bytes()).decode() for path in (data / "chunking-eval").glob("[fs]*.md.gz")]
    ends_well = [
        bool(
            re.search(r"[.!?][\"')\]]*$", chunk.text)
            or re.match(r"\s*\n\s*\n|\s*\Z", text[chunk.metadata["end"] :][:100])
        )
        for text in texts
        for chunk in check_chunks(Extracted(text, "real.txt"), 1200, overlap)
    ]
    assert len(ends_well) > 1000
    assert sum(ends_well) / len(ends_well) >= 0.98


@given(st.lists(st.text("ab .\n", max_size=60), min_size=1, max_size=8), st.integers(1, 40), st.integers(0, 10))
@settings(deadline=None)
def test_no_chunk_has_text_of_two_pages(pages: list[str], size: int, overlap: int) -> None:
    starts, text = [], ""
    for page in pages:
        starts.append(len(text))
        text += page + "\n\n"
    extracted = Extracted(text, "a.pdf", "pdf", places=starting(*starts))
    for chunk in chunk_extracted(extracted, size, min(overlap, size - 1)):
        start, end, page = (chunk.metadata[key] for key in ("start", "end", "page"))
        assert text[start:end] == chunk.text
        assert bisect_right(starts, start) == bisect_right(starts, end - 1) == page


def test_chunks_of_slides_sheets_and_attachments_stay_apart() -> None:
    texts = ("# Welcome", "Slide two.", "Cells.", "Offer.")
    places = (Place(page=1), Place(page=2), Place(sheet="Costs"), Place(part="offer.pdf", page=3))
    starts = [len("".join(texts[:number])) + 2 * number for number in range(4)]
    extracted = Extracted("\n\n".join(texts), "a.pptx", "markdown", places=tuple(zip(starts, places, strict=True)))
    chunks = chunk_extracted(extracted, 500)
    found = [(chunk.text, chunk.metadata.get("page"), chunk.metadata.get("sheet")) for chunk in chunks]
    assert found == [("# Welcome", 1, None), ("Slide two.", 2, None), ("Cells.", None, "Costs"), ("Offer.", 3, None)]
    assert chunks[3].metadata["part"] == "offer.pdf"


def test_each_line_of_a_chunk_has_its_section_and_line() -> None:
    text = "intro\n\n# A\n\n## B\n\nbee\n\n## C\n\nsea\n\nmore\n"
    extracted = Extracted(text, "a.md", "markdown", line_numbers=[*range(4, 13), *range(20, 24)])
    for size in (8, 20, 200):
        for chunk in chunk_extracted(extracted, size):
            document, offset = Document(chunk.text, chunk.metadata, 1.0), 0
            for line in chunk.text.split("\n"):
                at = text.count("\n", 0, chunk.metadata["start"] + offset)
                expected = ["", "", "A", "A", "A > B", "A > B", "A > B", "A > B", *["A > C"] * 5][at]
                place = place_at(document, offset)
                assert (place.get("heading_context", ""), place["line"]) == (expected, extracted.line_numbers[at])
                offset += len(line) + 1


def test_a_chunk_has_a_limited_number_of_places() -> None:
    text = "".join(f"# {number}\n\nx\n\n" for number in range(3_000))
    chunks = markdown(text, 200_000)
    assert max(len(places_in(chunk.metadata)) for chunk in chunks) <= MOST_PLACES + 1
    assert len(chunks) < 40


@pytest.mark.parametrize(
    ("first", "second", "before", "after"),
    [
        ("It began. The capital of\n1", "Finland is Helsinki. More.\n2", None, None),  # a capital begins a sentence
        ("It began. The largest\n- 1 -", "of cities is Helsinki. More.", "The largest", "of cities is Helsinki."),
        ("The divided Hel-", "sinki is one word", "The divided Hel-", "sinki is one word"),
        ("It ended.", "and goes on.", None, None),
        ("A table\n3 4 5", "of numbers", None, None),
        ("芬兰的首都", "是赫尔辛基。后来", "芬兰的首都", "是赫尔辛基。"),
        ("عاصمة فنلندا", "هي هلسنكي. ثم", "عاصمة فنلندا", "هي هلسنكي."),
        ("It lists: one, two,", "three. Four.", "It lists: one, two,", "three."),
        ("", "of nothing", None, None),
        ("word " * 200, "more " * 200, ("word " * 200)[-300:].strip(), ("more " * 60).strip()),
    ],
)
def test_a_sentence_cut_by_the_end_of_a_page_is_known_on_both(
    first: str, second: str, before: str | None, after: str | None
) -> None:
    text = f"{first}\n\n{second}"
    extracted = Extracted(text, "a.pdf", "pdf", places=starting(0, len(first) + 2))
    chunks = chunk_extracted(extracted, 2_000)
    assert all(text[chunk.metadata["start"] : chunk.metadata["end"]] == chunk.text for chunk in chunks)
    assert chunks[-1].metadata.get(SENTENCE_BEFORE) == before
    assert chunks[0].metadata.get(SENTENCE_AFTER) == after
    if before and after and chunks[0].text.endswith(before):  # no page number below
        whole = before[:-1] + after if before.endswith("-") else f"{before} {after}"
        assert all(whole in searched_text(*chunk) for chunk in chunks)


def test_only_the_last_chunk_of_a_page_has_the_end_of_its_sentence() -> None:
    pages = ["Words before it. " * 20 + "The sentence", "goes on. " + "Words after it. " * 20, "All else."]
    text = "\n\n".join(pages)
    extracted = Extracted(text, "a.pdf", "pdf", places=starting(0, len(pages[0]) + 2, len(text) - 9))
    chunks = chunk_extracted(extracted, 100)
    assert [chunk.text[-12:] for chunk in chunks if SENTENCE_AFTER in chunk.metadata] == ["The sentence"]
    assert [chunk.text[:8] for chunk in chunks if SENTENCE_BEFORE in chunk.metadata] == ["goes on."]


def test_a_slide_without_a_title_is_not_below_the_title_of_another() -> None:
    texts = ("# Welcome\n\nHello.", "Slide two.", "## Costs\n\nMany.", "Offer.", "On page two.", "Last.")
    slides = [Place(page=1), Place(page=2), Place(page=3)]
    places = [*slides, Place(part="offer.pdf", page=1), Place(part="offer.pdf", page=2), Place(page=4)]
    starts = [len("".join(texts[:number])) + 2 * number for number in range(len(texts))]
    extracted = Extracted("\n\n".join(texts), "a.pptx", "markdown", places=tuple(zip(starts, places, strict=True)))
    found = [
        (chunk.metadata["page"], chunk.metadata.get("heading_context")) for chunk in chunk_extracted(extracted, 500)
    ]
    assert found == [(1, "Welcome"), (2, None), (3, "Costs"), (1, None), (2, None), (4, None)]
