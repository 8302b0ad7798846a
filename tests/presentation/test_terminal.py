"""Results in a terminal: within its width, by source, plain in a pipe."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest
from rich.cells import cell_len
from rich.console import Console

from ragistry.presentation import Hit, blocks_of, body_of, excerpt, grouped
from ragistry.presentation.terminal import print_hit, room_in
from ragistry.types import Document, StageScore

TEXT = (
    "# Backups\n\nA **backup** is one file. " + "It holds the configuration and the truth. " * 8 + "\n\n"
    "- `ragistry backup FILE` writes it, also while others write to the store of this workspace\n\n"
    "```sh\nragistry backup /some/very/long/path/to/a/folder/that/does/not/end/soon/enough.tar\n```\n\n"
    "备份是一个文件。" * 10
)


def document(name: str, number: int, text: str = TEXT, **more: object) -> Document:
    metadata = {"collection": "manual", "source_file": name, "chunk_index": number, "title": "Back up", **more}
    return Document(text, metadata, 0.5, f"{name}-{number}", (StageScore("naive", "cosine", 0.5),))


def printed(
    hit: Hit,
    width: int,
    *,
    terminal: bool = True,
    scores: bool = False,
    color: bool = False,
    more: Sequence[str] = (),
) -> str:
    file = io.StringIO()
    system = "truecolor" if color else None
    console = Console(file=file, width=width, force_terminal=terminal, color_system=system, highlight=False)
    blocks = blocks_of(hit.document.content, hit.document.metadata)
    part = excerpt(blocks, "writes a backup", "english", room_in(console))
    print_hit(console, hit.rank, hit, part, more, scores=scores)
    return file.getvalue()


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_no_line_is_longer_than_the_terminal(width: int) -> None:
    hit = Hit(1, document("operations/backups.md", 0, heading_context="Operations > Backups"))
    for line in printed(hit, width).splitlines():
        assert cell_len(line) <= width, line


def test_passages_of_one_source_are_one_hit() -> None:
    found = [document("a.md", 1, page=3), document("b.md", 0), document("a.md", 2, page=7), document("a.md", 0, page=9)]
    first, second = grouped(found)
    assert (first.rank, [one.id for one in first.more]) == (1, ["a.md-2", "a.md-0"])
    assert (second.rank, second.more) == (2, ())
    assert "2 more in this file: p. 7; p. 9" in printed(first, 80, more=["p. 7", "p. 9"])


def test_headings_that_the_place_says_are_not_repeated() -> None:
    text = "# Back up\n\n## Restore\n\n### Steps\n\nRun it."
    blocks = body_of(document("a.md", 0, text, heading_context="Back up > Restore"))
    assert [block.text for block in blocks] == ["Steps", "Run it."]
    assert [block.text for block in body_of(document("a.md", 0, "# Back up"))] == ["Back up"]


def test_scores_are_shown_on_demand() -> None:
    hit = Hit(1, document("a.md", 0))
    assert "cosine 0.500" not in printed(hit, 80)
    assert "cosine 0.500" in printed(hit, 80, scores=True)


def test_a_pipe_gets_plain_lines() -> None:
    text = printed(Hit(1, document("a.md", 0, source_path="/data/a.md")), 80, terminal=False)
    assert "\x1b" not in text
    assert text.startswith("1. Back up\n   manual · a.md\n")


def test_a_terminal_gets_a_link_to_the_file() -> None:
    assert "file:///data/my%20a.md" in printed(Hit(1, document("a.md", 0, source_path="/data/my a.md")), 80, color=True)


def test_what_a_document_says_never_reaches_the_terminal_as_a_command() -> None:
    hostile = document(
        "a\x1b[2J.txt", 0, "backup \x1b[2J\x1b]0;owned\x07 text\n\n    code \x1b[31m\n    more", title="\x1b[1mX"
    )
    text = printed(Hit(1, hostile), 80)
    assert "\x1b" not in text
    assert "\x07" not in text
