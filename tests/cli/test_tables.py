"""Nothing is cut out of a table: names are copied into the next command, and counts are always there."""

from __future__ import annotations

import io
import re

import pytest

from ragistry.cli.output import print_table
from tests.cli.conftest import Run
from tests.conftest import Corpus

NAME = "content-management/page-resources-and-images/how-to-use/" + "long-" * 20 + "name.md"
COLUMNS = {"collection": "name", "source": "name", "chunks": "number", "about": "text"}
ROWS = [("handbook", NAME, "12,345", "words " * 40), ("b", "short.md", "7", "")]


@pytest.mark.parametrize("width", [40, 60, 80, 160])
def test_on_a_terminal_names_are_folded_and_numbers_stay_whole(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    terminal = io.StringIO()
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    print_table(COLUMNS, ROWS)
    text = re.sub(r"\x1b\[[\d;]*m", "", terminal.getvalue())
    lines = text.splitlines()
    assert max(map(len, lines)) <= width
    assert ("12,345" in text, "…" in text) == (True, False)
    [heading] = [line for line in lines if "chunks" in line]
    source = slice(heading.index("source"), heading.index("chunks"))
    assert NAME in "".join(line[source].strip() for line in lines)


@pytest.mark.parametrize("columns", ["", "20", "160"])
def test_in_a_pipe_a_name_is_on_one_line_with_its_count(
    ragistry: Run, corpus: Corpus, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    about = "words " * 40
    folder = corpus({NAME: "Otters live by the river."})
    assert ragistry("ingest", folder, "-c", "handbook", "--create", about).code == 0
    for words in (["sources", "list"], ["ingest", "--list", "-c", "handbook"]):
        done = ragistry(*words)
        assert re.search(rf"handbook +{re.escape(NAME)} +1 +\d{{4}}-\d\d-\d\d \d\d:\d\d", done.out)
    out = ragistry("collections", "list").out
    assert re.search(r"handbook +handbook +1 +1 +words", out)
    assert (out.count("words"), "…" in out) == (40, False)
