"""Options that contradict one another, or do nothing together, are refused by name before anything is done."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Done

Run = Callable[..., Done]

TOGETHER = [
    (["ingest", "--list", "--prune"], "--prune cannot be combined with --list"),
    (["ingest", "--list", "--create", "x"], "--create cannot be combined with --list"),
    (["ingest", "--list", "--follow-links"], "--follow-links cannot be combined with --list"),
    (["ingest", "--delete", "a", "-c", "n", "--prune"], "--prune cannot be combined with --delete"),
    (["ingest", "--list", "--yes"], "--yes does nothing without --delete; add that, or leave --yes out"),
    (["ingest", "a.txt", "-y"], "--yes does nothing without --delete; add that, or leave --yes out"),
    (
        ["sources", "move", "a.txt", "--from", "x", "--to", "y", "-y"],
        "--yes does nothing without --overwrite; add that, or leave --yes out",
    ),
    (["ingest", "a.txt", "--create", "x"], "--create does nothing without --collection; add that, or leave --create"),
    (["ingest", "a.txt", "--prune"], "--prune does nothing without a folder, and 'a.txt' is a file; name its folder"),
    (["ingest", ""], "the path '' is empty; name a file or folder, '.' for the current folder"),
    (["ingest", "a.txt", " "], "the path ' ' is empty; name a file or folder, '.' for the current folder"),
    (["init", ""], "the path '' is empty; name a file or folder, '.' for the current folder"),
    (["repo", "add", ""], "the path '' is empty; name a file or folder, '.' for the current folder"),
    (["compare", "--dataset", ""], "the path '' is empty; name a file or folder, '.' for the current folder"),
    (
        ["testset", "make", "out", "--from", ""],
        "the path '' is empty; name a file or folder, '.' for the current folder",
    ),
    (["search", "tea", "--workspace", ""], "the path '' is empty; name a file or folder, '.' for the current folder"),
    (["ingest", "a.txt", "--follow-links"], "--follow-links does nothing without a folder, and 'a.txt' is a file"),
    (["search", "tea", "--json", "--full"], "--full cannot be combined with --json"),
    (["search", "tea", "--trace", "--json"], "--trace cannot be combined with --json"),
    (["techniques", "--schema", "--available"], "--available cannot be combined with --schema"),
    (["mcp", "--port", "8765"], "--port does nothing without --http; add that, or leave --port out"),
    (["mcp", "--host", "::1"], "--host does nothing without --http; add that, or leave --host out"),
    (["mcp", "--name", "x"], "--name does nothing without --http; add that, or leave --name out"),
    (
        ["mcp", "--http", "-p", "-1"],
        "Invalid value for '--port' / '-p': -1 is not a port; choose 1 to 65535, or 0 for a free one",
    ),
    (["search", "tea", "--top-k", "many"], "got 'many'"),
]


@pytest.mark.parametrize(("words", "said"), TOGETHER, ids=[" ".join(words) for words, _ in TOGETHER])
def test_options_that_do_not_fit_are_named(ragistry: Run, tmp_path: Path, words: list[str], said: str) -> None:
    (tmp_path / "a.txt").write_text("Tea.", encoding="utf-8")
    done = ragistry(*words)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize("port", ["99999", "-1"])
def test_a_port_that_is_none_is_named_with_the_range(ragistry: Run, port: str) -> None:
    done = ragistry("ui", "--port", port)
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert f"{port} is not a port; choose 1 to 65535, or 0 for a free one" in done.err


@pytest.mark.parametrize("name", ["https://library.example.org", "", "a b", "me@host"])
def test_a_name_that_no_host_has_is_refused(ragistry: Run, name: str) -> None:
    done = ragistry("ui", "--name", name)
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert f"{name!r} is not a host name; write it such as library.example.org" in done.err


def test_links_out_of_a_folder_are_followed_where_they_are_asked_for(ragistry: Run, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "tea.txt").write_text("Tea from the hills.", encoding="utf-8")
    (tmp_path / "in" / "tea.txt").symlink_to(tmp_path / "tea.txt")
    left_out = ragistry("ingest", "in", "--collection", "notes", "--create", "Notes")
    assert (left_out.code, "0 added" in left_out.out) == (0, True)
    assert "warning: 'in': 1 of its links leads out of it and was left out" in left_out.err
    assert "`ragistry ingest --follow-links`" in left_out.err
    assert ragistry("ingest", "in", "--follow-links", "--json").json["added"] == ["tea.txt"]
