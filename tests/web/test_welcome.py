"""A library without documents and without a generator, and then with very many sources."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from ragistry import open_workspace
from ragistry.types import EmbeddedChunk
from tests.web.conftest import check_accessibility, complaint, served, upload

SOURCES = 10_000


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("empty")


@pytest.fixture(scope="module")
def empty(home: Path) -> Iterator[str]:
    with served(home, "--root", str(home.parent)) as found:
        yield found.rstrip("/")


def test_first_upload_creates_its_collection(page: Page, empty: str, home: Path, tmp_path: Path) -> None:
    page.goto(f"{empty}/compare")
    expect(page.get_by_text("No comparisons yet.")).to_be_visible()
    expect(page.get_by_role("button", name="New comparison")).to_be_visible()
    page.goto(empty)
    expect(page.get_by_text("The library is empty.")).to_be_visible()
    expect(page.get_by_role("combobox", name="Technique")).not_to_be_visible()
    check_accessibility(page)
    long = "".join(f"# Part {number}\n\n{f'The rotor number {number} spins. ' * 60}\n\n" for number in range(30))
    (tmp_path / "long.md").write_text(long)
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.4 nothing")
    (tmp_path / "tea.md").write_text("# Tea\n\nSteep green tea in water of eighty degrees.\n")
    page.get_by_role("link", name="Add your first files").click()
    page.get_by_role("button", name="Add collection").click()
    page.get_by_label("Name", exact=True).fill("My Papers")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("My Papers")
    upload(page, tmp_path / "long.md", tmp_path / "broken.pdf", tmp_path / "tea.md")
    files = page.locator(".rg-file")
    expect(files.filter(has_text="tea.md")).to_contain_text("waiting")
    expect(files.filter(has_text="long.md")).to_contain_text("embedding")
    expect(files.filter(has_text="long.md")).to_contain_text("searchable")
    expect(files.filter(has_text="tea.md")).to_contain_text("searchable")
    broken = files.filter(has_text="broken.pdf")
    expect(broken).to_contain_text("failed: 'broken.pdf' is damaged")
    assert ".ragistry" not in broken.inner_text()
    page.goto(empty)
    expect(page.get_by_text("2 sources in My Papers")).to_be_visible()
    expect(page.get_by_role("combobox", name="Technique")).to_be_visible()
    expect(page.get_by_text("The library is empty.")).not_to_be_visible()
    page.get_by_label("What to look for").fill("how hot is the water for tea?")
    page.keyboard.press("Enter")
    expect(page.get_by_role("article").first).to_contain_text("eighty degrees")
    page.get_by_role("button", name="Ask", exact=True).click()
    answer = page.get_by_role("region", name="Answer")
    expect(answer).to_contain_text("No generator is configured")
    expect(answer).to_contain_text("config/models.yaml")
    expect(page.get_by_role("article").first).to_be_visible()
    with open_workspace(home) as workspace:
        assert workspace.library.list_sources("my-papers") == ["long.md", "tea.md"]


@pytest.mark.slow
def test_technique_that_cannot_run_is_marked_and_its_error_names_the_remedy(page: Page, empty: str, home: Path) -> None:
    with open_workspace(home) as workspace:
        workspace.library.create_collection("drinks")
        workspace.library.ingest_text("Tea is steeped.", "tea", "drinks")
    page.goto(f"{empty}/?q=tea")
    expect(page.get_by_role("article").first).to_be_visible()
    page.get_by_role("combobox", name="Technique").click()
    option = page.get_by_role("option", name="hyde Cannot run here: it needs a generator, and none is configured.")
    expect(page.get_by_role("option").filter(has_text="Cannot run here")).to_have_count(6)
    option.click()
    error = complaint(page, "'hyde' needs a generator", "config/models.yaml")
    expect(page.get_by_role("article").first).to_be_visible()  # what was found before
    check_accessibility(page)
    for technique in ("multi_query", "decompose", "corrective"):
        page.goto(f"{empty}/?q=tea&technique={technique}")
        complaint(page, technique, "config/models.yaml")
    page.goto(f"{empty}/?q=tea&technique=hyde&compare=bm25")
    expect(page.get_by_role("article").first).to_be_visible()  # the other technique answers
    expect(error).to_be_visible()
    page.goto(f"{empty}/compare")
    page.get_by_role("button", name="New comparison").click()
    expect(page.get_by_role("dialog")).to_contain_text("Cannot run here, because a model is missing: multi_query")


@pytest.mark.slow
def test_ten_thousand_sources_are_paginated(page: Page, empty: str, home: Path) -> None:
    with open_workspace(home) as workspace:
        workspace.library.create_collection("many")
        vector = [1.0] + [0.0] * (workspace.embedder.fingerprint.dimension - 1)
        workspace.store.add_documents(
            [
                EmbeddedChunk("A text.", {"collection": "many", "source_file": f"{n:05}.md", "chunk_index": 0}, vector)
                for n in range(SOURCES)
            ]
        )
    page.goto(f"{empty}/collection/many")
    expect(page.get_by_text("1 to 50 of 10,000")).to_be_visible()
    expect(page.get_by_role("row")).to_have_count(51)
    page.get_by_role("button", name="Next").click()
    expect(page.get_by_role("row", name="00050.md")).to_be_visible()
    page.get_by_label("Filter by name").fill("0999")
    expect(page.get_by_role("row")).to_have_count(1 + 10 + 1)
