"""Families of copies among the sources of a store."""

from __future__ import annotations

import pytest

from ragistry import Workspace
from ragistry.library.copies import copied_sources
from tests.library.conftest import paragraphs


def words(start: int, stop: int) -> str:
    return " ".join(f"word{number}" for number in range(start, stop))


NOTICE = words(0, 300)
CASES = {
    "equal sources of one chunk": (words(0, 40), words(0, 40), True),
    "equal short texts": ("This page is left blank.", "This page is left blank.", False),
    "sources without words": ("---\n\n***", "---\n\n***", False),
    "a part of a much longer source": (words(0, 300), words(0, 1000), False),
    "a source and its longer version": (words(0, 300), words(0, 400), True),
    "a notice that is half of each": (f"{NOTICE} {words(1000, 1300)}", f"{NOTICE} {words(2000, 2300)}", False),
    "one moved and one changed paragraph": (
        "\n\n".join(words(n, n + 90) for n in (0, 100, 200, 300, 400, 500, 600)),
        "\n\n".join(words(n, n + 90) for n in (600, 0, 100, 200, 300, 400, 900)),
        True,
    ),
    "text without blanks": ("".join(map(chr, range(0x4E00, 0x4F00))), "".join(map(chr, range(0x4E02, 0x4F04))), True),
}


@pytest.mark.usefixtures("embedder")
@pytest.mark.parametrize("case", CASES)
def test_sources_are_copies(workspace: Workspace, case: str) -> None:
    one, other, copies = CASES[case]
    for name, text in (("a.txt", one), ("b.txt", other)):
        workspace.library.ingest_text(text, name, "notes")
    families = copied_sources(workspace.store).families
    assert families == ([[("notes", "a.txt"), ("notes", "b.txt")]] if copies else [])


@pytest.mark.usefixtures("embedder")
@pytest.mark.parametrize("workspace", ["local", "postgres", "chroma"], indirect=True)
def test_source_that_is_not_read_to_its_end_is_not_compared(workspace: Workspace) -> None:
    assert copied_sources(workspace.store).families == []
    for name in ("a", "b", "c"):
        workspace.library.ingest_text(paragraphs(*"ABCDEF", name), name, "notes")
    limited = copied_sources(workspace.store, chunks_read=20)
    assert (limited.compared, limited.sources, len(limited.families)) == (2, 3, 1)


@pytest.mark.usefixtures("embedder")
def test_copies_are_found_if_all_sources_share_a_notice(workspace: Workspace) -> None:
    for number in range(60):
        own = words(1000 * (number // 2 + 1), 1000 * (number // 2 + 1) + 100)
        workspace.library.ingest_text(f"{words(0, 60)} {own}", f"{number:02}", "notes")
    families = copied_sources(workspace.store).families
    assert families == [[("notes", f"{number:02}"), ("notes", f"{number + 1:02}")] for number in range(0, 60, 2)]
