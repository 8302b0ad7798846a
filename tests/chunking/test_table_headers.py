"""Chunks that continue a table are searched and shown with its header row."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragistry.chunking.breadcrumb import TABLE_HEADER, searched_text
from ragistry.chunking.chunker import chunk_document, chunk_extracted
from ragistry.presentation import body_of, excerpt_line, excerpt_of
from ragistry.presentation.html import excerpt_html
from ragistry.readers.extracted import Extracted
from ragistry.types import Chunk, Document
from tests.visits import check_linear

HEADER = "| month | rain |"
ROWS = [f"| month{number} | {number} mm |" for number in range(200)]
TABLE = "\n".join([HEADER, "| --- | --- |", *ROWS])


def chunks_of(text: str, size: int = 300, overlap: int = 0, name: str = "a.md") -> list[Chunk]:
    chunks = chunk_extracted(Extracted(text, name, "markdown" if name.endswith(".md") else "text"), size, overlap)
    for chunk in chunks:
        assert chunk.text == text[chunk.metadata["start"] : chunk.metadata["end"]]
    return chunks


def headers(chunks: list[Chunk]) -> list[str | None]:
    return [chunk.metadata.get(TABLE_HEADER) for chunk in chunks]


@pytest.mark.parametrize("overlap", [0, 60])
def test_chunks_that_continue_a_table_have_its_header(overlap: int) -> None:
    chunks = chunks_of(f"# Rain\n\nA text before.\n\n{TABLE}\n\nA text after it.", overlap=overlap)
    for chunk in chunks:
        has_header = HEADER in chunk.text
        continues = chunk.text.startswith("| month") and not chunk.text.startswith(HEADER)
        assert chunk.metadata.get(TABLE_HEADER) == (HEADER if continues else None)
        assert HEADER in searched_text(chunk.text, chunk.metadata) or not (has_header or continues)
    assert headers(chunks)[0] is None
    assert headers(chunks)[2] == HEADER
    assert sum(header is not None for header in headers(chunks)) > 5


def test_a_chunk_below_a_table_has_no_header() -> None:
    text = f"{TABLE}\n\n{'A sentence of some words. ' * 40}"
    assert [TABLE_HEADER in chunk.metadata for chunk in chunks_of(text) if "sentence of" in chunk.text[:40]][1:] == [
        False,
        False,
        False,
    ]


def test_each_table_has_its_own_header() -> None:
    other = TABLE.replace(HEADER, "| tree | age |").replace("month", "tree")
    for chunk in chunks_of(f"{TABLE}\n\n## Trees\n\n{other}"):
        if chunk.text.startswith("| tree") and TABLE_HEADER in chunk.metadata:
            assert chunk.metadata[TABLE_HEADER] == "| tree | age |"
        elif chunk.text.startswith("| month") and TABLE_HEADER in chunk.metadata:
            assert chunk.metadata[TABLE_HEADER] == HEADER


@pytest.mark.parametrize(
    "text",
    [f"```\n{TABLE}\n```", "\n".join(ROWS), "a | b\n\n--- | ---\n" + "row of | words\n" * 90, "-|-\n" * 100],
    ids=["code", "no header", "no table", "rules"],
)
def test_what_is_no_table_has_no_header(text: str) -> None:
    assert set(headers(chunks_of(text))) == {None}


def test_tables_without_outer_pipes_have_a_header() -> None:
    chunks = chunks_of("month | rain\n--- | ---:\n" + "May | 3 mm\n" * 90)
    assert headers(chunks)[1:] == ["month | rain"] * (len(chunks) - 1)


@pytest.mark.parametrize(("suffix", "delimiter"), [(".csv", ","), (".csv", ";"), (".tsv", "\t")])
def test_delimited_files_have_headers_and_keep_their_text(suffix: str, delimiter: str, tmp_path: Path) -> None:
    text = "\n".join(
        delimiter.join(cells) for cells in [("month", "rain in mm"), *((f"m{n}", "7") for n in range(300))]
    )
    path = tmp_path / f"rain{suffix}"
    path.write_text(text, encoding="utf-8")
    chunks = chunk_document(path, 200)
    assert headers(chunks)[0] is None
    assert set(headers(chunks)[1:]) == {" ".join(f"month{delimiter}rain in mm".split())}
    assert "\n".join(chunk.text for chunk in chunks) == text


def test_delimited_files_without_a_header_have_none() -> None:
    assert set(headers(chunks_of("1,2\n" * 200, 100, name="a.csv"))) == {None}
    assert set(headers(chunks_of("word, word\n" * 200, 100, name="a.txt"))) == {None}
    assert set(headers(chunks_of('a,"open\n' + "1,2\n" * 200, 100, name="a.csv"))) == {None}


def test_a_header_is_one_short_line() -> None:
    for letter in ("x", "雪"):
        columns = [letter * 40 + str(number) for number in range(100)]
        text = f"| {' | '.join(columns)} |\n|{' --- |' * 100}\n" + f"| {' | '.join('1' * 100)} |\n" * 100
        for size in (1_000, 10_000):
            header = chunks_of(text, size)[-1].metadata[TABLE_HEADER]
            assert len(header) <= min(500, size // 4)
            assert header.startswith(f"| {columns[0]} |")
            assert header.endswith("|")
    header = chunks_of('"month\nof the year",rain\n' + "May,1\n" * 100, 100, name="a.csv")[-1].metadata[TABLE_HEADER]
    assert header == '"month of the year",rain'


def test_the_header_is_searched_and_not_in_the_text() -> None:
    assert searched_text("| 1 |", {TABLE_HEADER: "| a |"}) == "| a |\n| 1 |"
    assert searched_text("| 1 |", {TABLE_HEADER: "| a |", "breadcrumb": "Guide"}) == "Guide\n| a |\n| 1 |"
    for nothing in (None, "", 7, ["a"]):
        assert searched_text("| 1 |", {TABLE_HEADER: nothing}) == "| 1 |"


def test_chunks_made_smaller_for_a_model_have_the_header() -> None:
    def room(chunks: object) -> list[int]:
        return [120 if len(searched_text(*chunk)) > 150 else len(chunk.text) for chunk in chunks]  # type: ignore

    chunks = chunk_extracted(Extracted(TABLE, "a.md", "markdown"), 1_000, room=room)
    assert all(len(searched_text(*chunk)) <= 150 for chunk in chunks)
    assert set(headers(chunks)[1:]) == {HEADER}


def shown(name: str, chunk: Chunk) -> Document:
    return Document(chunk.text, {**chunk.metadata, "source_file": name}, 1.0)


def test_the_header_is_shown_before_the_rows() -> None:
    last = chunks_of(TABLE)[-1]
    blocks = body_of(shown("a.md", last))
    assert [(block.kind, block.text) for block in blocks[:2]] == [("row", "month │ rain"), ("row", rows_of(last)[0])]
    assert [block.text for block in blocks[1:]] == rows_of(last)
    for room in (60, None):
        found = excerpt_of(shown("a.md", last), "month199", "english", room)
        assert excerpt_line(found).lstrip("… ").startswith("month │ rain")
        assert "month199" in excerpt_line(found)
    page = excerpt_html(excerpt_of(shown("a.md", last), "rain", "english", 60))
    assert page.count("<table>") == 1
    assert '>month</td><td class="rg-short"><mark>rain</mark></td>' in page


def rows_of(chunk: Chunk) -> list[str]:
    return [line.strip("| ").replace(" | ", " │ ") for line in chunk.text.split("\n")]


def test_the_header_of_a_delimited_file_is_shown() -> None:
    chunk = chunks_of("month,rain\n" + "May,1\n" * 100, 100, name="a.csv")[-1]
    assert body_of(shown("a.csv", chunk))[0].text == "month,rain"


def test_a_wide_row_is_shown_below_a_short_header() -> None:
    chunk = Chunk("| 1 | 2 | 3 | 4 |\n| 5 | 6 | 7 | 8 |", {TABLE_HEADER: "| a | b |"})
    assert [block.text for block in body_of(shown("a.md", chunk))] == ["a │ b", "1 │ 2 │ 3 │ 4", "5 │ 6 │ 7 │ 8"]


@pytest.mark.parametrize(
    ("part", "size"), [(TABLE, 50), ("| a |\n", 2_000), ("-|-\n", 2_000), ("|-", 2_000), ("| ", 2_000)]
)
def test_headers_are_found_in_linear_steps(part: str, size: int) -> None:
    check_linear(lambda count: chunks_of(part * count + "\n" + "-|" * 9, 2_000), size)
