"""Reading a source beside the results: the passage in its text, the page of a PDF, its file, and keys."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

from ragistry import Workspace, open_workspace
from ragistry.types import Document
from ragistry.utils.ids import text_hash
from ragistry.web.reader import passage_context
from tests.messages import check_message
from tests.web.conftest import HOSTILE_TEXT, check_accessibility, confirmed


@pytest.fixture
def reader(page: Page) -> Callable[..., None]:
    """Ask, and open the first result."""

    def read(query: str, technique: str = "bm25") -> None:
        page.goto(f"/?q={query}&technique={technique}")
        page.get_by_role("article").first.locator(".rg-hit-title").click()
        expect(page.get_by_role("complementary", name="Reader")).to_be_visible()

    return read


def test_click_opens_the_source_at_the_passage(page: Page, reader: Callable[..., None]) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    reader("--at+yesterday+archive")
    here = page.get_by_role("region", name="The passage that was found")
    expect(here.locator("mark").first).to_be_in_viewport()
    expect(page.locator(".rg-context").first).not_to_be_empty()
    expect(page.get_by_role("article").first).to_be_visible()
    page.get_by_role("button", name="Copy citation").click()
    expect(page.get_by_text("Citation copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == "Back up and restore, Put a backup back · line 65 (handbook: operations/backups.md)"
    expect(page).to_have_url(re.compile("open="))
    page.reload()
    expect(page.get_by_role("complementary", name="Reader")).to_be_visible()
    page.get_by_role("button", name="Close reader").click()
    expect(page).not_to_have_url(re.compile("open="))


def test_key_keeps_that_a_passage_answers(page: Page, root: Path, reader: Callable[..., None]) -> None:
    question = "how do slugs die"
    reader("how+do+slugs+die")
    expect(page.get_by_role("button", name="This answers it")).to_be_visible()
    page.keyboard.press("a")
    expect(page.get_by_text("Kept with the question")).to_be_visible()
    with open_workspace(root) as workspace:
        [first] = workspace.search(question, "bm25", top_k=1).documents
    assert confirmed(root, question) == [text_hash(first.content)]


def test_further_passages_of_a_source_open_in_the_reader(page: Page) -> None:
    page.goto("/?q=restore+a+backup&technique=bm25")
    first = page.get_by_role("article").first
    folded = first.locator(".rg-more")
    expect(folded.locator(".rg-text").first).not_to_be_visible()
    folded.get_by_text("more in this file").click()
    expect(folded.locator(".rg-text").first).to_be_visible()
    assert first.locator(".rg-text:visible").count() > 3
    first.locator(".rg-more-one").first.click()
    found = page.get_by_role("region", name="The passage that was found")
    expect(found).to_be_in_viewport()
    expect(page.get_by_role("status").filter(has_text="2 of")).to_be_visible()
    first.locator(".rg-hit-title").click()
    expect(page.get_by_role("button", name="Previous passage")).to_be_disabled()
    passage = found.inner_text()
    page.get_by_role("button", name="Next passage").click()
    expect(page.get_by_text("2 of")).to_be_visible()
    expect(found).not_to_have_text(passage, use_inner_text=True)
    page.get_by_role("button", name="Previous passage").click()
    expect(found).to_have_text(passage, use_inner_text=True)


def test_page_works_with_the_keyboard_only(page: Page) -> None:
    page.goto("/")
    page.locator("body").click()
    page.keyboard.press("/")
    field = page.get_by_label("What to look for")
    expect(field).to_be_focused()
    expect(field).to_have_value("")
    page.keyboard.type("restore a backup")
    page.keyboard.press("Enter")
    titles = page.locator(".rg-hit-title")
    expect(titles.nth(1)).to_be_visible()
    page.keyboard.press("ArrowDown")
    expect(titles.first).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(field).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_role("complementary", name="Reader")).to_be_visible()
    expect(titles.first).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("complementary", name="Reader")).to_have_count(0)
    expect(titles.first).to_be_focused()


def test_reader_covers_the_results_in_a_narrow_window(page: Page, reader: Callable[..., None]) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    reader("restore+a+backup")
    box = page.get_by_role("complementary", name="Reader").bounding_box()
    assert box is not None
    assert (box["x"], box["width"]) == (0, 390)
    expect(page.get_by_role("button", name="Close reader")).to_be_focused()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.keyboard.press("Escape")
    expect(page.get_by_role("complementary", name="Reader")).to_have_count(0)


def test_reader_shows_the_image_of_a_pdf_page(page: Page, reader: Callable[..., None]) -> None:
    reader("dishwasher+salt")
    expect(page.get_by_role("img", name="Page 1 of dishwasher.pdf")).to_be_visible()
    page.wait_for_function("document.querySelector('.rg-page').naturalWidth > 800")
    expect(page.get_by_role("region", name="The passage that was found")).to_contain_text("salt")
    check_accessibility(page)


def test_hostile_document_is_escaped(page: Page, reader: Callable[..., None]) -> None:
    reader("rotor+spins")  # the fixture `page` fails where a script of the document ran
    expect(page.get_by_role("region", name="The passage that was found")).to_contain_text("spins")
    assert page.locator(".rg-reader img, .rg-reader script, .rg-reader-body a").count() == 0


def test_texts_without_a_file_and_pages_of_a_repository_open(page: Page, reader: Callable[..., None]) -> None:
    reader("quokkas")
    expect(page.get_by_role("link", name="Open file")).to_have_count(0)
    reader("widget+of+kind+2", "routed")
    expect(page.locator(".rg-here mark").first).to_be_visible()
    expect(page.locator(".rg-context").first).to_contain_text("turns a wheel")


def test_passage_of_a_remote_collection_opens_without_its_repository(workspace: Workspace) -> None:
    told = {"archive": "old", "collection": "old", "repository": "elsewhere", "source_file": "a.md", "chunk_index": 0}
    assert passage_context(workspace, Document("A passage.", told, 1.0, "abc")) == ("", "A passage.", "")


def get(address: str, path: str, source: str, page: str = "1") -> httpx.Response:
    asked = {"collection": "desk", "source": source, "page": page}
    return httpx.get(f"{address}/{path}", params=asked, timeout=60)


def test_file_is_served_unchanged_and_cannot_run(address: str) -> None:
    text = get(address, "file", "hostile.html.md")
    assert (text.status_code, text.text) == (200, HOSTILE_TEXT)
    assert text.headers["content-type"] == "text/plain; charset=utf-8"
    assert text.headers["content-disposition"] == 'inline; filename="hostile.html.md"'
    assert "sandbox" in text.headers["content-security-policy"]
    assert text.headers["x-content-type-options"] == "nosniff"
    pdf = get(address, "file", "dishwasher.pdf")
    assert (pdf.headers["content-type"], pdf.content[:4]) == ("application/pdf", b"%PDF")


def test_other_files_are_not_served_nor_a_link_in_place_of_one(address: str, root: Path) -> None:
    for source in ("../desk/upgrades.md", "/etc/passwd", "config/documents.yaml", "note", "absent.md"):
        for path in ("file", "page-image"):
            answer = get(address, path, source)
            assert (answer.status_code, "root:" in answer.text) == (404, False), (path, source)
    file, kept, secret = root / "files" / "desk" / "upgrades.md", root / "kept.md", root / "secret.txt"
    assert get(address, "file", "upgrades.md").status_code == 200
    secret.write_text("secret")
    file.rename(kept)
    try:
        file.symlink_to(secret)
        answer = get(address, "file", "upgrades.md")
    finally:
        file.unlink()
        kept.rename(file)
    assert answer.status_code == 404
    check_message(answer.text, "upgrades.md")


def test_missing_pages_of_a_pdf_are_reported(address: str) -> None:
    flowchart = get(address, "page-image", "dishwasher.pdf")
    assert (flowchart.headers["content-type"], flowchart.content[:4]) == ("image/png", b"\x89PNG")
    for source, page in (("dishwasher.pdf", "0"), ("dishwasher.pdf", "99"), ("upgrades.md", "1")):
        check_message(get(address, "page-image", source, page).text, source)
