"""Nothing is cut out of a table: names are copied into the next command, and counts are always there."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from ragistry.cli.tables import print_table
from tests.cli.conftest import Done

Run = Callable[..., Done]
NAME = "content-management/page-resources-and-images/how-to-use/" + "long-" * 20 + "name.md"
COLUMNS = {"collection": "name", "source": "name", "chunks": "number", "about": "text"}
ROWS = [("handbook", NAME, "12,345", "words " * 40), ("b", "short.md", "7", "")]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def on_terminal(monkeypatch: pytest.MonkeyPatch, width: int) -> list[str]:
    """The lines of a table on a terminal of so many columns."""
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    print_table(COLUMNS, ROWS)
    return re.sub(r"\x1b\[[\d;]*m", "", terminal.getvalue()).splitlines()


@pytest.mark.parametrize("width", [40, 60, 80, 160])
def test_on_a_terminal_names_are_folded_and_numbers_stay_whole(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    lines = on_terminal(monkeypatch, width)
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    assert "12,345" in text
    assert "…" not in text
    [heading] = [line for line in lines if "chunks" in line]
    source = slice(heading.index("source"), heading.index("chunks"))
    assert NAME in "".join(line[source].strip() for line in lines)


@pytest.mark.parametrize("columns", [None, 20, 60, 80, 160])
def test_in_a_pipe_a_name_stands_on_one_line_with_its_count(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], columns: int | None
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns)) if columns else monkeypatch.delenv("COLUMNS", raising=False)
    print_table(COLUMNS, ROWS)
    out = capsys.readouterr().out
    [line] = [line for line in out.splitlines() if NAME in line]
    assert line.split()[:3] == ["handbook", NAME, "12,345"]
    assert out.count("words") == 40
    assert "…" not in out


def test_a_listing_names_and_counts_every_source_in_a_pipe(
    ragistry: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "n" / NAME).parent.mkdir(parents=True)
    (tmp_path / "n" / NAME).write_text("Otters live by the river.", encoding="utf-8")
    assert ragistry("ingest", "n", "-c", "handbook").code == 0
    for words in (["sources", "list"], ["ingest", "--list", "-c", "handbook"]):
        done = ragistry(*words)
        assert re.search(rf"handbook +{re.escape(NAME)} +1 +\d{{4}}-\d\d-\d\d \d\d:\d\d", done.out)
    assert re.search(r"handbook +handbook +1 +1", ragistry("collections", "list").out)
