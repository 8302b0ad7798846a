"""``ragistry grep``, ``read``, ``outline`` and ``check``."""

from __future__ import annotations

import pytest

from tests.cli.conftest import TEA, Run
from tests.conftest import Corpus


def test_lines_are_printed_and_the_exit_code_says_whether_there_are_any(filled: Run) -> None:
    assert filled("grep", "green tea").out == f"tea.txt [notes]: 1\n  1: {TEA}\n"
    assert filled("grep", "-w", "gree").code == 1
    assert filled("grep", "-i", "-e", r"GREEN\s+tea", "--count").out == "tea.txt [notes]: 1\n"
    assert filled("read", "tea.txt", "--line", "1", "-n", "1").out == f"tea.txt [notes]\n  1: {TEA}\n"
    assert filled("outline", "tea.txt").out.startswith("tea.txt [notes], 1 line\n")
    filled("grep", "").refused(1, "pattern")
    filled("read", "tea.txt", "--place", "{").refused(2, "--place")


def test_chunks_are_listed_before_and_after_an_ingest(filled: Run, corpus: Corpus) -> None:
    text = "# Guide\n\n" + "Words of the guide.\n" * 80
    corpus({"docs/guide.md": f"---\ntitle: Pumps\n---\n{text}", "docs/empty.txt": "", "guide.md": text}, folder=".")
    before = filled("outline", "docs/guide.md", "--chunks")
    assert before.out.startswith("docs/guide.md (not in the library), 2 chunks\n  0: lines 1 to 51, ")
    beside = "\n     + headings: Pumps > Guide\n     + file name: guide\n     # Guide Words of the guide. Words"
    assert beside in before.out
    rows = filled("outline", "docs/guide.md", "--chunks", "--json").json["chunks"]
    filled("ingest", "docs", "--collection", "notes")
    for name in ("docs/guide.md", "guide.md"):
        found = filled("outline", name, "--chunks", "--json").json
        assert found == {"source": "guide.md [notes]", "chunks": rows, "warnings": []}
    assert filled("outline", "./guide.md", "--chunks").out.startswith("./guide.md (not in the library), 2 chunks\n")
    assert filled("outline", "docs/empty.txt", "--chunks").out.count("empty") == 2
    for name in ("docs", "nowhere.md", "config/documents.yaml"):
        filled("outline", name, "--chunks").refused(1, name)
    assert filled("outline", "a" * 5_000, "--chunks").code == 1
    assert "2 chunks" in filled("outline", "guide.md", "--chunks", "-w", "docs").out
    assert filled("outline", "guide.md", "-w", "docs").code == 1, "no library was made"


def test_sources_are_listed_by_name_and_metadata(filled: Run, corpus: Corpus) -> None:
    filled("sources", "set", "tea.txt", "year=2026", "--collection", "notes")
    corpus({"rain.txt": "It rains."})
    filled("ingest", "documents", "--collection", "notes")

    def names(*words: str) -> list[str]:
        return [one["source_file"] for one in filled("sources", "list", "--json", *words).json["sources"]]

    assert names() == names("--name", "*") != ["tea.txt"]
    assert names("--name", "t?a*") == names("--where", '{"year": {"$gte": 2026}}') == ["tea.txt"]
    assert names("--collection", "notes", "--name", "tea.txt", "--where", '{"year": 1999}') == []
    assert "tea.txt" in filled("sources", "list", "--name", "tea*").out
    filled("sources", "list", "--where", "{").refused(2, "{")
    filled("sources", "list", "--where", '{"year": {"$near": 1}}').refused(1, "$near")
    filled("sources", "list", "--where", "[" * 100_000).refused(2, "--where")
    filled("sources", "list", "--name", "x", "--collection", "nots").refused(1, "nots")


@pytest.mark.parametrize(("line", "option"), [("0", "--line"), ("-1", "--line"), ("x", "--line"), ("1" * 30, "--line")])
def test_a_number_outside_its_range_is_refused_in_our_words(line: str, option: str, filled: Run) -> None:
    filled("read", "tea.txt", option, line).refused(1 if len(line) > 2 else 2, line)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ('"eighty degrees" (tea.txt)', 0),
        ('"ninety degrees" (tea.txt)', 1),
        ("[1]\n\n[1] tea.txt", 0),
        ("It is hot (coffee.txt).", 1),
    ],
)
def test_check_fails_for_a_quotation_that_is_not_there(answer: str, code: int, filled: Run, corpus: Corpus) -> None:
    corpus({"answer.md": answer}, ".")
    assert filled("check", "answer.md").code == code
    found = filled("check", "answer.md", "--strict")
    assert found.code == (code or "uncited" in found.out)
    assert found.out.splitlines()[-1].endswith(("not found", "library") if found.code else "found")


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"x" * 4_000_000, b"{}"])
def test_check_refuses_what_is_no_answer(content: bytes, filled: Run, corpus: Corpus) -> None:
    corpus({"answer.md": content}, ".")
    filled("check", "answer.md").refused(1)
    filled("check", "none.md").refused(1, "none.md")
