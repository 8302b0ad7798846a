"""Two windows, or a window and another process, that change one collection: nothing is undone or lost unseen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from ragistry import Workspace
from tests.web.conftest import complaint, upload
from tests.web.test_stopping import SLOW

Make = Callable[..., str]


def description(other: Workspace, name: str) -> tuple[str, str | None]:
    entry = other.library.collections.entry(name)
    return entry.description, entry.display_name


def edit(page: Page, name: str) -> None:
    page.get_by_role("button", name=f"Edit {name}").click()
    expect(page.get_by_role("dialog", name=f"Edit {name}")).to_be_visible()


@pytest.mark.slow
def test_outdated_form_does_not_overwrite_silently(page: Page, other: Workspace, collection: Make) -> None:
    for name in ("shared", "disputed"):
        collection(name, "At first")
    page.goto("/collections")
    edit(page, "shared")
    other.library.update_description("shared", "By another window")
    page.get_by_label("Display name").fill("Shared")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("row", name="Shared")).to_contain_text("By another window")
    assert description(other, "shared") == ("By another window", "Shared")
    edit(page, "disputed")
    other.library.update_description("disputed", "By another window")
    page.get_by_label("Description").fill("By this one")
    page.get_by_role("button", name="Save", exact=True).click()
    complaint(page, "'Description'", "'disputed'", "'By another window'")
    assert description(other, "disputed")[0] == "By another window"
    expect(page.get_by_label("Description")).to_have_value("By this one")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert description(other, "disputed")[0] == "By this one"


@pytest.mark.slow
def test_collection_cannot_be_renamed_while_it_receives_files(page: Page, collection: Make, tmp_path: Path) -> None:
    (tmp_path / "book.md").write_text(SLOW[: len(SLOW) // 20])
    page.goto(f"/collection/{collection('filling')}")
    window = page.context.new_page()
    window.goto("/collections")
    edit(window, "filling")
    window.get_by_label("Name", exact=True).fill("filled")
    upload(page, tmp_path / "book.md")
    expect(page.get_by_label("Progress of book.md")).to_be_visible()
    window.get_by_role("button", name="Save", exact=True).click()
    complaint(window, "'filling'")
    window.get_by_role("button", name="Cancel").click()
    expect(window.get_by_role("dialog")).to_have_count(0)
    window.get_by_role("button", name="Delete filling").click()
    expect(window.get_by_role("dialog")).to_contain_text("Files that are waiting for it will not be added.")
    window.get_by_role("button", name="Cancel").click()
    expect(window.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_text("1 added")).to_be_visible()
    edit(window, "filling")
    window.get_by_label("Name", exact=True).fill("filled")
    window.get_by_role("button", name="Save", exact=True).click()
    expect(window.get_by_role("row", name="filled")).to_be_visible()


def test_delete_asks_again_if_sources_were_added(page: Page, other: Workspace, collection: Make) -> None:
    other.library.ingest_text("One.", "one", collection("growing"))
    page.goto("/collections")
    page.get_by_role("button", name="Delete growing").click()
    expect(page.get_by_role("dialog")).to_contain_text("1 source with 1 chunk is deleted with it")
    other.library.ingest_text("Two.", "two", "growing")
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("It has other sources now. 2 sources with 2 chunks are deleted with it.")).to_be_visible()
    assert other.library.list_sources("growing") == ["one", "two"]
    page.get_by_role("dialog").last.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_role("row", name="growing")).to_have_count(0)
