"""Asking in a browser: sources as cards, techniques, addresses."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from ragistry import Workspace
from ragistry.types import EmbeddedChunk
from tests.web.conftest import check_accessibility, complaint

FIELD = "What to look for"


def test_result_card_has_title_place_and_marked_excerpt(page: Page) -> None:
    page.goto("/")
    page.get_by_label(FIELD).fill("how do I restore yesterday's backup?")
    page.get_by_role("button", name="Search").click()
    first = page.get_by_role("article").first
    expect(first.get_by_role("button", name="Back up and restore")).to_be_visible()
    for part in ("handbook", "operations/backups.md", "Put a backup back"):
        expect(first.locator(".rg-place").first).to_contain_text(part)
    expect(first.locator("mark").first).to_be_visible()
    expect(first.get_by_text("cosine").first).not_to_be_visible()
    first.get_by_text("Why", exact=True).click()
    expect(first.get_by_text("cosine").first).to_be_visible()
    page.get_by_text("How this was found").click()
    expect(page.locator(".rg-how").get_by_text("fuse").first).to_be_visible()
    page.goto("/?q=restore+a+backup&technique=naive&k=20")
    expect(page.get_by_role("article").first).to_be_visible()
    for text in page.locator(".rg-text").all_inner_texts():
        assert "```" not in text
        assert "**" not in text
        assert not text.startswith("#")


def test_page_says_what_waits_and_which_phrase_is_nowhere(
    page: Page, other: Workspace, collection: Callable[..., str]
) -> None:
    name = collection("valves")
    origin = {"collection": name, "source_file": "a.txt", "source_hash": "1", "chunk_index": 0}
    text = EmbeddedChunk("The valve is red.", origin, None)
    other.store.replace_source(name, "a.txt", [text])
    for technique, count in (("hybrid", 1), ("routed", 1), ("bm25", 0)):
        page.goto(f"/?collection=valves&q=valve&technique={technique}")
        expect(page.get_by_role("article")).to_contain_text("a.txt")
        expect(page.get_by_text("1 chunk waits for vectors")).to_have_count(count)
    for phrase, count in (('"valves is"', 0), ('"blue valve"', 1)):
        page.get_by_label(FIELD).fill(phrase)
        page.get_by_label(FIELD).press("Enter")
        expect(page.get_by_text(f"no passage holds {phrase}")).to_have_count(count)
        expect(page.get_by_role("article")).to_contain_text("a.txt")


def test_similar_files_are_one_card_that_opens(page: Page, other: Workspace, collection: Callable[..., str]) -> None:
    name = collection("rent")
    for month in range(1, 5):
        other.library.ingest_text(
            f"Rent statement for the flat at 14 Quay Street, second floor left. Rent received: {800 + month} euros. "
            "The balance is carried forward to the next statement. Please report differences within fourteen days.",
            f"rent-{month}.txt",
            name,
        )
    page.goto("/?q=rent+received&collection=rent&technique=bm25")
    expect(page.get_by_role("article")).to_have_count(1)
    expect(page.get_by_role("heading", name="4 passages in 4 sources")).to_be_visible()
    card = page.get_by_role("article").first
    expect(card.get_by_text("803 euros")).not_to_be_visible()
    card.get_by_text("3 similar in other files").click()
    for month in range(2, 5):
        expect(card.locator(".rg-more").get_by_text(f"rent-{month}.txt")).to_be_visible()
    expect(card.get_by_text("803 euros")).to_be_visible()
    check_accessibility(page)


def test_a_follow_up_follows_the_question_before_until_its_chip_is_removed(page: Page) -> None:
    page.goto("/?q=restore+a+backup&technique=bm25")
    expect(page.get_by_role("article").first).to_be_visible()
    page.get_by_role("button", name="Follow up").click()
    expect(page.get_by_role("button", name="Remove: follows")).to_contain_text("restore a backup")
    expect(page.get_by_label(FIELD)).to_have_value("")
    chip = page.get_by_role("button", name="Remove: follows")
    for query, before in (("yesterday?", "restore a backup"), ("how often?", "yesterday?")):
        page.get_by_label(FIELD).fill(query)
        page.get_by_label(FIELD).press("Enter")
        expect(page).to_have_url(re.compile(f"follows={before.replace(' ', '.').replace('?', '.')}"))
        expect(chip).to_contain_text(f"follows: {before}")
    page.reload()
    expect(chip).to_contain_text("follows: yesterday?")
    check_accessibility(page)
    chip.click()
    expect(chip).to_have_count(0)
    expect(page).not_to_have_url(re.compile("follows="))


SLOW_LINE = """
const send = WebSocket.prototype.send, later = window.setTimeout;
WebSocket.prototype.send = function (message) { later(() => send.call(this, message), 1000); };
window.setTimeout = (work, time, ...given) => later(work, time === 10 ? 100 * Math.random() : time, ...given);
"""
"""A line that takes a second, and timers of which the last may be the first."""


@pytest.mark.slow
def test_early_keystrokes_arrive_in_order(page: Page) -> None:
    page.add_init_script(SLOW_LINE)
    page.goto("/")
    page.get_by_label(FIELD).press_sequentially("restore yesterday's backup")
    page.keyboard.press("Enter")
    expect(page.get_by_role("article").first).to_contain_text("operations/backups.md")
    expect(page.get_by_text("type what to look for")).to_have_count(0)


def test_two_techniques_are_shown_side_by_side(page: Page) -> None:
    page.goto("/?q=restore+a+backup&technique=naive&compare=bm25&k=8&collection=handbook")
    for technique in ("naive", "bm25"):
        expect(page.get_by_role("region", name=f"Results by {technique}")).to_contain_text("8 passages in")
    common = page.get_by_role("article").filter(has=page.get_by_role("link", name="other results")).last
    passage = common.locator(".rg-hit-title").inner_text()
    common.get_by_role("link").click()
    linked = page.locator("article:has(:target)")
    expect(linked.locator(".rg-hit-title")).to_have_text(passage)
    expect(page.get_by_role("region", name="Results by naive").locator(linked)).to_have_count(1)


@pytest.mark.slow
def test_another_technique_or_collection_searches_again(page: Page) -> None:
    page.goto("/?q=restore+a+backup&collection=garden")
    expect(page.get_by_role("region", name="Results by hybrid")).to_be_visible()
    expect(page.get_by_role("article").first.locator(".rg-place").first).to_contain_text("garden")
    assert page.locator(".rg-place").get_by_text("handbook").count() == 0
    page.goto("/?q=frost")
    page.get_by_label("Technique").click()
    page.get_by_role("option", name="bm25 Lexical retrieval: the chunks that share").click()
    expect(page.get_by_role("region", name="Results by bm25")).to_be_visible()
    page.get_by_label("Collections (all)").click()
    page.get_by_role("option", name="Handbook").click()
    expect(page.locator(".rg-place", has_text="garden")).to_have_count(0)
    expect(page).to_have_url(re.compile("collection=handbook"))


def test_address_contains_the_query_for_reload_and_back_and_whether_it_asks(page: Page) -> None:
    page.goto("/")
    page.get_by_text("More").click()
    page.get_by_label("Passages").fill("3")
    page.get_by_label(FIELD).fill("when is the last frost?")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_text("3 passages in")).to_be_visible()
    expect(page).to_have_url("/?q=when+is+the+last+frost%3F&technique=hybrid&k=3")
    page.reload()
    expect(page.get_by_text("3 passages in")).to_be_visible()
    page.get_by_role("link", name="Collections").click()
    expect(page.get_by_role("heading", name="Collections")).to_be_visible()
    page.go_back()
    field = page.get_by_label(FIELD)
    expect(field).to_have_value("when is the last frost?")
    expect(page.get_by_text("3 passages in")).to_be_visible()
    field.press("Control+Enter")
    expect(page.get_by_role("region", name="Answer")).to_be_visible()
    expect(page).to_have_url(re.compile("ask=1"))
    field.press("Enter")
    expect(page).not_to_have_url(re.compile("ask=1"))
    expect(page.get_by_role("region", name="Answer")).not_to_be_visible()
    expect(page.get_by_role("heading", name=re.compile("passages in"))).to_be_visible()


@pytest.mark.slow
def test_invalid_address_is_reported_in_one_line(page: Page) -> None:
    for asked, value in (
        ("technique=nope", "'nope'"),
        ("compare=nope", "'nope'"),
        ("k=abc", "k='abc'"),
        ("k=101", "k='101'"),
    ):
        page.goto(f"/?q=frost&{asked}")
        complaint(page, value)
        expect(page.get_by_label(FIELD)).to_have_value("frost")
        expect(page.get_by_role("article")).to_have_count(0)
        page.get_by_role("button", name="Search").click()
        expect(page.get_by_role("article").first).to_be_visible()


@pytest.mark.slow
def test_error_stands_above_the_results_before_until_the_next_search(
    page: Page, other: Workspace, collection: Callable[..., str]
) -> None:
    collection("passing")
    page.goto("/?q=restore+a+backup&k=3&collection=handbook,passing")
    heading = page.get_by_role("heading", name=re.compile(r"^\d passages in \d sources?$"))
    expect(heading).to_be_visible()
    other.library.delete_collection("passing")
    page.get_by_role("button", name="Search").click()
    error = complaint(page, "'passing'")
    expect(error).to_be_in_viewport()
    expect(heading).to_be_visible()
    expect(page.get_by_role("article").first).to_contain_text("Back up and restore")
    places = [one.bounding_box() for one in (page.get_by_label(FIELD), error, heading)]
    assert [one and one["y"] for one in places] == sorted(one["y"] for one in places if one)
    check_accessibility(page)
    page.get_by_label("Collections (all)").click()
    page.get_by_role("option", name="passing").click()
    expect(error).to_have_count(0)


def test_missing_source_is_explained(page: Page, other: Workspace, collection: Callable[..., str]) -> None:
    name = collection("missing")
    other.library.ingest_text("The red valve must be closed at noon.", "valve.txt", name)
    page.goto("/?q=restore+a+backup&collection=handbook&technique=bm25&k=3")
    page.get_by_text("Missing a source?").click()
    field, status = page.get_by_label("Source, or source:page"), page.locator(".rg-missing").get_by_role("status")
    for source, message in (
        ("valve.txt", "filtered: "),
        ("nothing.txt", "not ingested: "),
        ("valve.txt:99", "has no place '99'"),
        ("", "the expected source is empty"),
    ):
        field.fill(source)
        page.get_by_role("button", name="Explain").click()
        expect(status).to_contain_text(message)
        if source == "valve.txt":
            expect(page.locator(".rg-missing")).to_contain_text("To find it: ")
            check_accessibility(page)


@pytest.mark.slow
def test_unavailable_model_and_invalid_technique_are_reported_in_one_line(page: Page, broken: str) -> None:
    page.goto(f"{broken}&q=anything")
    complaint(page, "techniques.yaml:4", "wrong", "top_kk")
    page.goto(f"{broken}&q=anything&technique=naive")
    complaint(page, "ollama serve")
