"""An empty library: the first files make their collection, and each says how far it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from ragistry import open_workspace
from tests.web.conftest import served
from tests.web.test_collections import upload


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "empty"
    folder.mkdir()
    return folder


@pytest.fixture
def address(root: Path) -> Iterator[str]:
    with served(root) as found:
        yield found.rstrip("/")


def test_the_first_files_make_their_collection_and_can_be_searched(
    page: Page, address: str, root: Path, tmp_path: Path
) -> None:
    page.goto(address)
    expect(page.get_by_text("There is nothing to search yet. Add your first files.")).to_be_visible()
    violations = Axe().run(page).response["violations"]
    assert [(v["id"], v["nodes"][0]["html"]) for v in violations if v["impact"] in ("serious", "critical")] == []
    long = "".join(f"# Part {number}\n\n{f'The rotor number {number} spins. ' * 60}\n\n" for number in range(40))
    (tmp_path / "long.md").write_text(long)
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.4 nothing")
    (tmp_path / "tea.md").write_text("# Tea\n\nSteep green tea in water of eighty degrees.\n")
    page.get_by_label("Collection", exact=True).fill("My Papers")
    upload(page, tmp_path / "long.md", tmp_path / "broken.pdf", tmp_path / "tea.md")
    files = page.locator(".rg-file")
    expect(files.filter(has_text="tea.md")).to_contain_text("waiting")
    expect(files.filter(has_text="long.md")).to_contain_text("embedding")
    expect(files.filter(has_text="long.md")).to_contain_text("searchable")
    expect(files.filter(has_text="tea.md")).to_contain_text("searchable")
    broken = files.filter(has_text="broken.pdf")
    expect(broken).to_contain_text("failed: 'broken.pdf' is damaged or no PDF; repair it")
    assert ".ragistry" not in broken.inner_text()
    expect(page.get_by_text("2 sources in My Papers")).to_be_visible()
    expect(page.get_by_text("There is nothing to search yet.")).not_to_be_visible()
    page.get_by_label("What to look for").fill("how hot is the water for tea?")
    page.keyboard.press("Enter")
    expect(page.get_by_role("article").first).to_contain_text("eighty degrees")
    with open_workspace(root) as workspace:
        assert workspace.library.list_sources("my-papers") == ["long.md", "tea.md"]


def test_a_name_that_no_collection_can_have_is_one_line(page: Page, address: str, tmp_path: Path) -> None:
    page.goto(address)
    (tmp_path / "tea.md").write_text("Tea.")
    page.get_by_label("Collection", exact=True).fill("???")
    upload(page, tmp_path / "tea.md")
    expect(page.get_by_text("'???' cannot name a collection")).to_be_visible()


def test_screenshots(address: str, shoot: Callable[[str, str], None]) -> None:
    shoot(address, "welcome")
