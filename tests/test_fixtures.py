"""What fixtures/README.md promises about the three collections, their PDFs and their queries."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pypdfium2
import pytest

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
COLLECTIONS = ("handbook", "garden", "manuals")
SUFFIXES = {".md", ".txt", ".pdf"}
PDFS = sorted((FIXTURES / "manuals").glob("*.pdf"))
QUERIES = [json.loads(line) for line in (FIXTURES / "queries.jsonl").read_text("utf-8").splitlines()]
DIVIDED = re.compile(r"[\ufffe\x02](?:\r?\n)?")  # how PDFium reports a hyphen that divides a word at a line end
COMMON = re.compile(
    r"\b(a|after|again|although|an|and|any|are|as|at|be|before|but|by|can|do|for|from|has|have|how|i|if|in|is|it|its|may|"
    r"my|no|not|of|on|or|our|so|than|that|the|their|then|there|this|to|too|was|what|when|which|who|why|with|you)\b"
)


def pages(path: Path) -> list[str]:
    with pypdfium2.PdfDocument(path) as pdf:
        return [page.get_textpage().get_text_range() for page in pdf]


def squeeze(text: str) -> str:
    return " ".join(text.split())


def read(path: Path) -> str:
    """The text of a fixture on one line, divided words joined, without running headers and page numbers."""
    if path.suffix != ".pdf":
        encoding = "cp1252" if path.name == "frost-protection.txt" else "utf-8"
        return squeeze(path.read_bytes().decode(encoding))
    body = [re.sub(r"\A.*\r\n|\s*Page \d+ of \d+\Z", "", page) for page in pages(path)]
    return squeeze(DIVIDED.sub("", "\n".join(body)))


def documents(collection: str) -> list[Path]:
    return sorted(path for path in (FIXTURES / collection).rglob("*") if path.suffix in SUFFIXES)


def stems(text: str) -> set[str]:
    """The telling words of a text, cut to five letters so that inflected forms fall together."""
    return {word[:5] for word in re.findall(r"[a-z]+", COMMON.sub(" ", text.lower()))}


def paragraphs(source: Path) -> list[str]:
    """The running text of a manual's source, block by block, without headings, tables and lists."""
    body = source.read_text("utf-8").split("---\n", 2)[2]
    return [squeeze(block) for block in body.split("\n\n") if block.strip()[0] not in "#|1"]


def test_encodings_and_line_ends_are_as_promised():
    frost, mulch, hochbeet = (
        (FIXTURES / "garden" / f"{name}.txt").read_bytes()
        for name in ("frost-protection", "mulch-and-green-manure", "hochbeet")
    )
    with pytest.raises(UnicodeDecodeError):
        frost.decode("utf-8")
    assert "wait for the “Ice Saints”, the 11th" in frost.decode("cp1252")
    assert b"\x9610 \xb0C" in frost
    assert mulch.count(b"\r\n") == mulch.count(b"\n") > 20
    assert "Ein Hochbeet bauen und füllen" in hochbeet.decode("utf-8")


@pytest.mark.parametrize("pdf", PDFS, ids=lambda path: path.stem)
def test_every_paragraph_and_part_number_of_the_source_can_be_recovered(pdf):
    source = FIXTURES / "manuals-src" / f"{pdf.stem}.md"
    text = read(pdf)
    assert [block for block in paragraphs(source) if block not in text] == []
    numbers = set(re.findall(r"\b[A-Z]+\d*-[A-Z\d-]*\d\b", source.read_text("utf-8").split("---\n", 2)[2]))
    assert len(numbers) >= 3
    assert {number for number in numbers if number not in text} == set()


def test_typesetting_the_sources_again_gives_the_same_pages(tmp_path):
    subprocess.run([sys.executable, FIXTURES / "make_pdfs.py", tmp_path], check=True, timeout=60, capture_output=True)
    assert [path.name for path in sorted(tmp_path.iterdir())] == [path.name for path in PDFS]
    for pdf in PDFS:
        assert pages(tmp_path / pdf.name) == pages(pdf), f"run fixtures/make_pdfs.py: {pdf.name} is out of date"


def test_queries_name_a_file_that_holds_their_passage_or_are_out_of_scope():
    assert 15 <= len(QUERIES) <= 25
    assert {query["collection"] for query in QUERIES} == {*COLLECTIONS, None}
    assert len({query["_id"] for query in QUERIES}) == len({query["text"] for query in QUERIES}) == len(QUERIES)
    for query in QUERIES:
        if query["kind"] == "out_of_scope":
            assert (query["collection"], query["source_file"], query["passage"]) == (None, None, None)
            continue
        text = read(FIXTURES / query["collection"] / query["source_file"])
        assert query["passage"] in text
        if query["kind"] == "lexical":
            assert query["text"].lower() in text.lower()
        if query["kind"] == "paraphrase":
            assert stems(query["text"]).isdisjoint(stems(query["passage"]))


def test_the_readme_lists_every_query_and_counts_every_folder():
    readme = (FIXTURES / "README.md").read_text("utf-8")
    for query in QUERIES:
        cell = f"`{query['source_file']}`" if query["source_file"] else "none"
        kind = query["kind"].replace("_", " ")
        assert f"| {query['text']} | {query['collection'] or 'none'} | {cell} | {kind} |" in readme
    suffixes = [path.suffix for path in documents("manuals")]
    assert f"| {suffixes.count('.pdf')} PDF files, {suffixes.count('.md')} Markdown files, 2 text files |" in readme
    assert f"| {len(documents('handbook'))} Markdown files, some in subfolders |" in readme
    assert f"| {len(documents('garden'))} text files |" in readme
