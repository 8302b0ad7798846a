"""Two windows, or a window and another process, that change one collection: nothing is undone or lost unseen."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from ragistry import open_workspace
from tests.web.test_collections import add_collection, upload
from tests.web.test_stopping import SLOW


def description(root: Path, name: str) -> tuple[str, str | None]:
    with open_workspace(root) as workspace:
        entry = workspace.library.collections.entry(name)
        return entry.description, entry.display_name


def edit(page: Page, name: str) -> None:
    page.get_by_role("button", name=f"Edit {name}").click()
    expect(page.get_by_role("dialog", name=f"Edit {name}")).to_be_visible()


def test_an_older_form_leaves_alone_what_it_did_not_change(page: Page, address: str, root: Path) -> None:
    add_collection(page, address, "shared", "At first")
    edit(page, "shared")
    with open_workspace(root) as workspace:
        workspace.library.update_description("shared", "By another window")
    page.get_by_label("Display name").fill("Shared")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("row", name="Shared")).to_contain_text("By another window")
    assert description(root, "shared") == ("By another window", "Shared")


def test_what_both_changed_is_asked_about_before_it_is_written_over(page: Page, address: str, root: Path) -> None:
    add_collection(page, address, "disputed", "At first")
    edit(page, "disputed")
    with open_workspace(root) as workspace:
        workspace.library.update_description("disputed", "By another window")
    page.get_by_label("Description").fill("By this one")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(
        page.get_by_text("another window or program changed 'Description' of 'disputed' to 'By another window'")
    ).to_be_visible()
    assert description(root, "disputed")[0] == "By another window"
    expect(page.get_by_label("Description")).to_have_value("By this one")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert description(root, "disputed")[0] == "By this one"


def test_a_collection_that_is_being_filled_keeps_its_name(
    page: Page, browser: Browser, address: str, tmp_path: Path
) -> None:
    add_collection(page, address, "filling")
    (tmp_path / "book.md").write_text(SLOW[: len(SLOW) // 30])
    page.goto(f"{address}/collection/filling")
    upload(page, tmp_path / "book.md")
    expect(page.get_by_label("Progress of book.md")).to_be_visible()
    with browser.new_context() as context:
        other = context.new_page()
        other.goto(f"{address}/collections")
        edit(other, "filling")
        other.get_by_label("Name", exact=True).fill("filled")
        other.get_by_role("button", name="Save", exact=True).click()
        expect(other.get_by_text("'filling' is receiving files; rename it when that is done")).to_be_visible()
        expect(page.get_by_text("1 added")).to_be_visible()
        other.get_by_role("button", name="Save", exact=True).click()
        expect(other.get_by_role("row", name="filled")).to_be_visible()


def test_what_came_in_since_the_question_is_not_deleted_unasked(page: Page, address: str, root: Path) -> None:
    add_collection(page, address, "growing")
    with open_workspace(root) as workspace:
        workspace.library.ingest_text("One.", "one", "growing")
        expect(page.get_by_role("row", name="growing")).to_contain_text("1")
        page.reload()
        page.get_by_role("button", name="Delete growing").click()
        expect(page.get_by_role("dialog")).to_contain_text("1 source with 1 chunk goes with it")
        workspace.library.ingest_text("Two.", "two", "growing")
        page.get_by_role("button", name="Delete", exact=True).click()
        expect(page.get_by_text("It has other sources by now. 2 sources with 2 chunks go with it.")).to_be_visible()
        assert workspace.library.list_sources("growing") == ["one", "two"]
        page.get_by_role("dialog").last.get_by_role("button", name="Delete", exact=True).click()
        expect(page.get_by_role("row", name="growing")).to_have_count(0)


def test_a_file_stays_with_the_source_that_another_window_moved_away(
    page: Page, address: str, root: Path, tmp_path: Path
) -> None:
    for collection in ("first", "second", "third"):
        add_collection(page, address, collection)
    for collection in ("first", "second"):
        (tmp_path / "twin.md").write_text(f"The text of {collection}.\n")
        page.goto(f"{address}/collection/{collection}")
        upload(page, tmp_path / "twin.md")
        expect(page.get_by_role("row", name="twin.md")).to_be_visible()
    with open_workspace(root) as workspace:
        library = workspace.library
        page.goto(f"{address}/collection/first")
        page.get_by_role("button", name="Move twin.md to another collection").click()
        page.get_by_role("button", name="second", exact=True).click()
        library.move_source("twin.md", "second", "third")
        page.get_by_role("button", name="Replace", exact=True).click()
        expect(page.get_by_text("twin.md: 1 chunk moved to second")).to_be_visible()
        assert Path(library.source("twin.md", "third").source_path).read_text() == "The text of second.\n"
        page.goto(f"{address}/collection/third")
        page.get_by_role("button", name="Delete twin.md").click()
        library.move_source("twin.md", "third", "first")
        library.ingest_text("Another text of this name.", "twin.md", "third")
        page.get_by_role("button", name="Delete", exact=True).click()
        expect(page.get_by_role("row", name="twin.md")).to_have_count(0)
        assert Path(library.source("twin.md", "first").source_path).read_text() == "The text of second.\n"


def test_what_is_on_its_way_is_named_before_its_collection_goes(
    page: Page, address: str, root: Path, tmp_path: Path
) -> None:
    add_collection(page, address, "going")
    (tmp_path / "book.md").write_text(SLOW[-len(SLOW) // 20 :])
    page.goto(f"{address}/collection/going")
    upload(page, tmp_path / "book.md")
    expect(page.get_by_label("Progress of book.md")).to_be_visible()
    page.goto(f"{address}/collections")
    page.get_by_role("button", name="Delete going").click()
    expect(page.get_by_role("dialog")).to_contain_text("What is on its way into it is not taken in.")
    page.get_by_role("button", name="Cancel").click()


def test_what_was_typed_stays_until_it_is_accepted(page: Page, address: str) -> None:
    page.goto(f"{address}/collections")
    page.get_by_role("button", name="Add collection").click()
    page.get_by_label("Name", exact=True).fill("bad name/x")
    page.get_by_label("Description").fill("A long description")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_text("'bad name/x'").first).to_be_visible()
    expect(page.get_by_label("Description")).to_have_value("A long description")
    page.get_by_label("Name", exact=True).fill("good-name")
    page.get_by_label("Name", exact=True).press("Enter")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("row", name="good-name")).to_contain_text("A long description")
    expect(page.get_by_role("row", name="good-name")).to_have_count(1)
