"""Results in a terminal: within its width, by source, plain in a pipe."""

from __future__ import annotations

import io

import pytest
from rich.cells import cell_len
from rich.console import Console

from ragistry.presentation import body_of, cards_of, grouped
from ragistry.presentation.terminal import print_card, room_in
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
    *documents: Document, width: int = 80, terminal: bool = True, scores: bool = False, color: bool = False
) -> str:
    file = io.StringIO()
    system = "truecolor" if color else None
    console = Console(file=file, width=width, force_terminal=terminal, color_system=system, highlight=False)
    for number, card in enumerate(cards_of(documents, "writes a backup", "english", room_in(console)), start=1):
        print_card(console, number, card, f"--result {number}", scores=scores)
    return file.getvalue()


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_no_line_is_longer_than_the_terminal(width: int) -> None:
    found = [
        document("operations/backups.md", number, f"{TEXT} {number}", heading_context="A > B") for number in range(5)
    ]
    for line in printed(*found, width=width).splitlines():
        assert cell_len(line) <= width, line


def test_passages_of_one_source_are_one_hit() -> None:
    found = [document("a.md", 1, page=3), document("b.md", 0), document("a.md", 2, page=7), document("a.md", 0, page=9)]
    first, second = grouped(found)
    assert (first.rank, [one.id for one in first.more]) == (1, ["a.md-2", "a.md-0"])
    assert (second.rank, second.more) == (2, ())


def test_a_card_shows_three_passages_with_their_places_and_how_to_see_the_rest() -> None:
    texts = [f"Line {number} writes a backup." for number in range(5)]
    found = [document("a.pdf", number, text, page=number + 3) for number, text in enumerate(texts)]
    lines = [line.strip() for line in printed(*found, document("b.md", 0, "Another backup.")).splitlines()]
    assert lines[:9] == [
        "1. Back up", "manual · a.pdf · p. 3", texts[0], "p. 4", texts[1], "p. 5", texts[2],
        "2 more in this file: --result 1", "2. Back up",
    ]  # fmt: skip


def test_headings_that_the_place_says_are_not_repeated() -> None:
    text = "# Back up\n\n## Restore\n\n### Steps\n\nRun it."
    blocks = body_of(document("a.md", 0, text, heading_context="Back up > Restore"))
    assert [block.text for block in blocks] == ["Steps", "Run it."]
    assert [block.text for block in body_of(document("a.md", 0, "# Back up"))] == ["Back up"]


def test_scores_are_shown_on_demand() -> None:
    assert "cosine 0.500" not in printed(document("a.md", 0))
    assert "cosine 0.500" in printed(document("a.md", 0), scores=True)


def test_a_pipe_gets_plain_lines_and_a_terminal_a_link_to_the_file() -> None:
    found = document("a.md", 0, source_path="/data/my a.md")
    assert "\x1b" not in printed(found, terminal=False)
    assert printed(found, terminal=False).startswith("1. Back up\n   manual · a.md\n")
    assert "file:///data/my%20a.md" in printed(found, color=True)


def test_what_a_document_says_never_reaches_the_terminal_as_a_command() -> None:
    hostile = document(
        "a\x1b[2J.txt", 0, "backup \x1b[2J\x1b]0;owned\x07 text\n\n    code \x1b[31m\n    more", title="\x1b[1mX"
    )
    text = printed(hostile)
    assert "\x1b" not in text
    assert "\x07" not in text
