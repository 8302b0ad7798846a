"""Asking in a browser: sources as cards, techniques, addresses, suggestions."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from ragistry import open_workspace
from tests.web.conftest import served

FIELD = "What to look for"


def ask(page: Page, address: str, query: str) -> None:
    page.goto(f"{address}/")
    page.get_by_label(FIELD).fill(query)
    page.get_by_role("button", name="Search").click()


def choose(page: Page, menu: str, option: str) -> None:
    page.get_by_label(menu).click()
    page.get_by_role("option", name=option).click()


def test_a_result_is_a_card_with_title_place_and_marked_lines(page: Page, address: str) -> None:
    ask(page, address, "how do I restore yesterday's backup?")
    first = page.get_by_role("article").first
    expect(first.get_by_role("button", name="Back up and restore")).to_be_visible()
    for part in ("handbook", "operations/backups.md", "Put a backup back"):
        expect(first.locator(".rg-place").get_by_text(part, exact=True)).to_be_visible()
    expect(first.locator("mark").first).to_be_visible()
    expect(first.get_by_text("cosine").first).not_to_be_visible()
    first.get_by_text("Why").click()
    expect(first.get_by_text("cosine").first).to_be_visible()


def test_no_markdown_is_shown_raw(page: Page, address: str) -> None:
    page.goto(f"{address}/?q=restore+a+backup&technique=naive&k=20")
    expect(page.get_by_role("article").first).to_be_visible()
    for text in page.locator(".rg-text").all_inner_texts():
        assert "```" not in text
        assert "**" not in text
        assert not text.startswith("#")


SLOW_LINE = """
const send = WebSocket.prototype.send, later = window.setTimeout;
WebSocket.prototype.send = function (message) { later(() => send.call(this, message), 1000); };
window.setTimeout = (work, time, ...given) => later(work, time === 10 ? 100 * Math.random() : time, ...given);
"""
"""A line that takes a second, and timers of which the last may be the first."""


def test_what_is_typed_before_the_line_stands_arrives_in_its_order(page: Page, address: str) -> None:
    page.add_init_script(SLOW_LINE)
    page.goto(f"{address}/")
    page.get_by_label(FIELD).press_sequentially("restore yesterday's backup")
    page.keyboard.press("Enter")
    expect(page.get_by_role("article").first).to_contain_text("operations/backups.md")
    expect(page.get_by_text("type what to look for")).to_have_count(0)


def test_two_techniques_stand_side_by_side_and_say_what_they_share(page: Page, address: str) -> None:
    page.goto(f"{address}/?q=restore+a+backup&technique=naive&compare=bm25&k=8")
    for technique in ("naive", "bm25"):
        expect(page.get_by_role("region", name=f"Results by {technique}")).to_contain_text("8 passages in")
    common = page.get_by_role("article").filter(has=page.get_by_role("link", name="beside")).last
    passage = common.locator(".rg-hit-title").inner_text()
    common.get_by_role("link").click()
    linked = page.locator("article:has(:target)")
    expect(linked.locator(".rg-hit-title")).to_have_text(passage)
    expect(page.get_by_role("region", name="Results by naive").locator(linked)).to_have_count(1)


def test_a_search_keeps_to_the_chosen_collections(page: Page, address: str) -> None:
    page.goto(f"{address}/?q=restore+a+backup&collection=garden")
    expect(page.get_by_role("article").first.locator(".rg-place")).to_contain_text("garden")
    assert page.locator(".rg-place").get_by_text("handbook").count() == 0


def test_another_technique_or_collection_searches_again(page: Page, address: str) -> None:
    ask(page, address, "frost")
    expect(page.get_by_role("region", name="Results by hybrid")).to_be_visible()
    page.get_by_label("Technique").click()
    page.get_by_role("option", name="bm25 Lexical retrieval: the chunks that share").click()
    expect(page.get_by_role("region", name="Results by bm25")).to_be_visible()
    choose(page, "Collections (all)", "Handbook")
    expect(page.locator(".rg-place", has_text="garden")).to_have_count(0)
    expect(page).to_have_url(re.compile("collection=handbook"))


def test_a_collection_that_vanished_meanwhile_is_one_line(page: Page, address: str, root: Path) -> None:
    with open_workspace(root) as workspace:
        workspace.library.create_collection("passing")
    page.goto(f"{address}/?collection=passing")
    with open_workspace(root) as workspace:
        workspace.library.delete_collection("passing")
    page.get_by_label(FIELD).fill("anything")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_text("no collection 'passing'")).to_be_visible()


def test_time_is_shown_by_stage(page: Page, address: str) -> None:
    page.goto(f"{address}/?q=frost&technique=hybrid")
    page.get_by_text("How this was found").click()
    expect(page.get_by_text("fuse")).to_be_visible()


def test_what_is_asked_is_in_the_address_for_a_reload_and_the_way_back(page: Page, address: str) -> None:
    page.goto(f"{address}/")
    page.get_by_text("More").click()
    page.get_by_label("Passages").fill("3")
    page.get_by_label(FIELD).fill("when is the last frost?")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_text("3 passages in")).to_be_visible()
    expect(page).to_have_url(f"{address}/?q=when+is+the+last+frost%3F&technique=hybrid&k=3")
    page.reload()
    expect(page.get_by_text("3 passages in")).to_be_visible()
    page.get_by_role("link", name="Techniques").click()
    expect(page.get_by_role("heading", name="Techniques")).to_be_visible()
    page.go_back()
    expect(page.get_by_label(FIELD)).to_have_value("when is the last frost?")
    expect(page.get_by_text("3 passages in")).to_be_visible()


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
    page.goto(f"{address}/?q=frost&{asked}")
    expect(page.get_by_text(said)).to_be_visible()
    expect(page.get_by_label(FIELD)).to_have_value("frost")
    expect(page.get_by_role("article")).to_have_count(0)
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_role("article").first).to_be_visible()


def test_titles_and_headings_are_suggested_and_chosen_by_keyboard(page: Page, address: str) -> None:
    page.goto(f"{address}/")
    field = page.get_by_label(FIELD)
    field.press_sequentially("back rest")
    option = page.get_by_role("option", name="Back up and restore")
    expect(option).to_be_visible()
    expect(field).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("ArrowDown")
    expect(option).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    expect(field).to_have_value("Back up and restore")
    expect(page.get_by_role("article").first).to_contain_text("operations/backups.md")
    expect(page.get_by_role("listbox")).not_to_be_visible()


def test_suggestions_go_with_escape_and_what_was_typed_stays(page: Page, address: str) -> None:
    page.goto(f"{address}/")
    field = page.get_by_label(FIELD)
    field.press_sequentially("backup")
    expect(page.get_by_role("option").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("listbox")).not_to_be_visible()
    expect(field).to_have_value("backup")


def test_an_empty_question_says_what_to_do(page: Page, address: str) -> None:
    page.goto(f"{address}/")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_text("type what to look for")).to_be_visible()


def test_a_model_that_is_down_and_a_broken_default_technique_are_one_line_each_with_the_remedy(
    page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "documents.yaml").write_text("embed_model: nomic-embed-text\ncollections: [{name: a}]\n")
    broken = "default: wrong\ntechniques:\n  naive: {use: naive}\n  wrong: {use: bm25, top_kk: 3}\n"
    (tmp_path / "config" / "techniques.yaml").write_text(broken)
    with served(tmp_path) as address:
        page.goto(f"{address}?q=anything")
        expect(page.get_by_text("techniques.yaml:4: techniques.wrong.top_kk: unknown setting")).to_be_visible()
        page.goto(f"{address}?q=anything&technique=naive")
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
    shoot(f"{address}/", "landing")
    shoot(f"{address}/?q=restore+a+backup", "search")
    shoot(f"{address}/?q=restore+a+backup&compare=bm25", "side-by-side")


def test_without_a_generator_asking_says_how_to_name_one_and_shows_what_was_found(page: Page, address: str) -> None:
    page.goto(f"{address}/?q=frost&ask=1")
    answer = page.get_by_role("region", name="Answer")
    expect(answer).to_contain_text("No generator is configured")
    expect(answer).to_contain_text("config/models.yaml")
    expect(page.get_by_role("article").first).to_be_visible()
