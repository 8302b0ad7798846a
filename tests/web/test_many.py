"""A library of many sources in a browser, and one that grows while it is looked at."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from ragistry import open_workspace
from ragistry.types import EmbeddedChunk
from tests.web.conftest import served

SOURCES = 10_000


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A served library with 10,000 sources, for which no model was asked, and an empty collection."""
    root = tmp_path_factory.mktemp("crowded")
    with open_workspace(root) as workspace:
        for name in ("many", "growing"):
            workspace.library.create_collection(name)
        dimension = workspace.embedder.fingerprint.dimension
        vector = [1.0] + [0.0] * (dimension - 1)
        workspace.store.add_documents(
            [
                EmbeddedChunk("A text.", {"collection": "many", "source_file": f"{n:05}.md", "chunk_index": 0}, vector)
                for n in range(SOURCES)
            ]
        )
    (root / "papers").mkdir()
    for number in range(1_500):
        (root / "papers" / f"{number}.md").write_text(f"Paper of number {number}.")
    with served(root, "--root", str(root)) as address:
        yield address.rstrip("/")


def test_ten_thousand_sources_are_shown_in_pages(page: Page, crowded: str) -> None:
    page.goto(f"{crowded}/collection/many")
    expect(page.get_by_text("1 to 50 of 10,000")).to_be_visible()
    expect(page.get_by_role("row")).to_have_count(51)
    page.get_by_role("button", name="Next").click()
    expect(page.get_by_role("row", name="00050.md")).to_be_visible()
    page.get_by_label("Filter by name").fill("0999")
    expect(page.get_by_role("row")).to_have_count(1 + 10 + 1)


def test_what_is_being_taken_in_is_shown_after_a_reload(page: Page, crowded: str) -> None:
    page.goto(f"{crowded}/collection/growing")
    page.get_by_label("Folder on this machine").fill("papers")
    page.get_by_role("button", name="Add folder").click()
    expect(page.get_by_role("progressbar")).to_be_visible()
    page.reload()
    expect(page.get_by_role("progressbar")).to_be_visible()
    expect(page.get_by_text("of 1,500")).to_be_visible()
    expect(page.get_by_text("Nothing in this collection yet.")).to_have_count(0, timeout=60_000)
