"""Asking in a browser: passages, marks, stages, two techniques side by side."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from ragistry import open_workspace
from ragistry.types import Document
from ragistry.web.results import surroundings
from ragistry.web.site import Site
from tests.library.git_trees import commit
from tests.web.conftest import served


def test_a_question_is_answered_with_marked_passages_and_their_place(page: Page, address: str) -> None:
    page.goto(f"{address}/search")
    page.get_by_label("What to look for").fill("how do I restore yesterday's backup?")
    page.get_by_role("button", name="Search").click()
    first = page.get_by_role("article").first
    expect(first).to_contain_text("handbook / operations/backups.md")
    expect(first.locator("mark").first).to_be_visible()
    expect(first).to_contain_text("cosine")
    expect(page.get_by_role("article")).to_have_count(5)


SLOW_LINE = """
const send = WebSocket.prototype.send, later = window.setTimeout;
WebSocket.prototype.send = function (message) { later(() => send.call(this, message), 1000); };
window.setTimeout = (work, time, ...given) => later(work, time === 10 ? 100 * Math.random() : time, ...given);
"""
"""A line that takes a second, and timers of which the last may be the first."""


def test_what_is_typed_before_the_line_stands_arrives_in_its_order(page: Page, address: str) -> None:
    page.add_init_script(SLOW_LINE)
    page.goto(f"{address}/search")
    page.get_by_label("What to look for").press_sequentially("restore yesterday's backup")
    page.keyboard.press("Enter")
    expect(page.get_by_role("article").first).to_contain_text("handbook / operations/backups.md")
    expect(page.get_by_text("type what to look for")).to_have_count(0)


def test_a_passage_opens_in_its_source_with_the_text_around_it(page: Page, address: str) -> None:
    page.goto(f"{address}/search?q=restore+a+backup")
    place = page.get_by_role("article").first.get_by_role("button")
    place.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog.locator(".rg-here mark").first).to_be_visible()
    expect(dialog.locator(".rg-context").first).not_to_be_empty()
    page.get_by_role("button", name="Close").click()
    expect(dialog).to_have_count(0)
    expect(place).to_be_focused()
    page.locator(".rg-text").nth(1).click()
    expect(dialog).to_be_visible()


def test_two_techniques_stand_side_by_side_and_say_what_they_share(page: Page, address: str) -> None:
    page.goto(f"{address}/search?q=restore+a+backup&technique=naive&compare=bm25&k=8")
    for technique in ("naive", "bm25"):
        expect(page.get_by_role("region", name=f"Results by {technique}").get_by_role("article")).to_have_count(8)
    expect(page.get_by_text("only here").first).to_be_visible()
    common = page.get_by_role("article").filter(has=page.get_by_role("link", name="beside")).last
    passage = common.locator(".rg-place").inner_text()
    common.get_by_role("link").click()
    linked = page.locator("article:has(:target)")
    expect(linked.locator(".rg-place")).to_have_text(passage)
    expect(page.get_by_role("region", name="Results by naive").locator(linked)).to_have_count(1)


def test_a_search_keeps_to_the_chosen_collections(page: Page, address: str) -> None:
    page.goto(f"{address}/search?q=restore+a+backup&collection=garden")
    expect(page.get_by_role("article").first).to_contain_text("garden /")
    assert page.get_by_text("handbook /").count() == 0


def test_a_collection_that_vanished_meanwhile_is_one_line(page: Page, address: str, root: Path) -> None:
    with open_workspace(root) as workspace:
        workspace.library.create_collection("passing")
    page.goto(f"{address}/search?collection=passing")
    with open_workspace(root) as workspace:
        workspace.library.delete_collection("passing")
    page.get_by_label("What to look for").fill("anything")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_text("no collection 'passing'")).to_be_visible()


def test_time_is_shown_by_stage(page: Page, address: str) -> None:
    page.goto(f"{address}/search?q=frost&technique=hybrid")
    page.get_by_text("Time by stage").click()
    expect(page.get_by_text("fuse")).to_be_visible()


def test_what_is_asked_is_in_the_address_for_a_reload_and_the_way_back(page: Page, address: str) -> None:
    page.goto(f"{address}/search")
    page.get_by_label("What to look for").fill("when is the last frost?")
    page.get_by_label("Passages").fill("3")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_role("article")).to_have_count(3)
    expect(page).to_have_url(f"{address}/search?q=when+is+the+last+frost%3F&technique=hybrid&k=3")
    page.reload()
    expect(page.get_by_role("article")).to_have_count(3)
    page.get_by_role("link", name="Techniques").click()
    expect(page.get_by_role("heading", name="Techniques")).to_be_visible()
    page.go_back()
    expect(page.get_by_label("What to look for")).to_have_value("when is the last frost?")
    expect(page.get_by_role("article")).to_have_count(3)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("technique=nope", "no technique 'nope'"),
        ("compare=nope", "no technique 'nope'"),
        ("k=abc", "k='abc' in the address is not 1 to 100"),
        ("k=101", "k='101' in the address is not 1 to 100"),
    ],
)
def test_an_address_that_asks_for_what_is_not_there_is_one_line(
    page: Page, address: str, asked: str, said: str
) -> None:
    page.goto(f"{address}/search?q=frost&{asked}")
    expect(page.get_by_text(said)).to_be_visible()
    expect(page.get_by_label("What to look for")).to_have_value("frost")
    expect(page.get_by_role("article")).to_have_count(0)
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_role("article")).to_have_count(5)


def test_a_passage_of_a_repository_opens_with_the_text_around_it_too(page: Page, tmp_path: Path) -> None:
    folder = tmp_path / "widget"
    folder.mkdir()
    parts = [f"## Part {number}\n\n{f'The widget of kind {number} turns a wheel. ' * 30}\n" for number in range(4)]
    commit(folder, {"install.md": "# Install\n\n" + "\n".join(parts)})
    with open_workspace(tmp_path) as workspace:
        workspace.repositories.add(folder)
        workspace.library.create_collection("tea", "How tea is brewed")
        workspace.library.ingest_text("Steep green tea in water of eighty degrees.", "green.txt", "tea")
    with served(tmp_path) as address:
        page.goto(f"{address}search?q=widget+of+kind+2&technique=routed")
        page.get_by_role("article").first.get_by_role("button").click()
        dialog = page.get_by_role("dialog")
        expect(dialog.locator(".rg-here mark").first).to_be_visible()
        expect(dialog.locator(".rg-context").first).to_contain_text("turns a wheel")


def test_a_passage_of_an_archive_opens_where_its_repository_is_not_here(tmp_path: Path) -> None:
    told = {"archive": "old", "collection": "old", "repository": "elsewhere", "source_file": "a.md", "chunk_index": 0}
    with open_workspace(tmp_path) as workspace:
        found = surroundings(Site(workspace, (tmp_path,)), Document("A passage.", told, 1.0, "abc"))
    assert found == ("", "A passage.", "")


def test_an_empty_question_says_what_to_do(page: Page, address: str) -> None:
    page.goto(f"{address}/search")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_text("type what to look for")).to_be_visible()


def test_a_model_that_is_down_is_one_line_with_the_remedy(
    page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "documents.yaml").write_text("embed_model: nomic-embed-text\ncollections: [{name: a}]\n")
    with served(tmp_path) as address:
        page.goto(f"{address}search?q=anything&technique=naive")
        expect(page.get_by_text("ollama serve")).to_be_visible()


def test_a_lock_that_another_process_holds_is_one_line_with_its_holder(page: Page, address: str, root: Path) -> None:
    with open_workspace(root, exclusive=True) as other:
        other.library.ingest_text("Held.", "held", "garden")
        page.goto(f"{address}/collection/garden")
        page.get_by_role("button", name="Delete held").click()
        page.get_by_role("button", name="Delete", exact=True).click()
        expect(page.get_by_text("process").first).to_be_visible(timeout=30_000)
    assert "held" in page.content()


def test_screenshots(address: str, shoot: Callable[[str, str], None]) -> None:
    shoot(f"{address}/search?q=restore+a+backup&compare=bm25", "search")
