"""Asking a generator in a browser: an answer that is written above the results, its citations, and its end."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from ragistry.testing.openai_server import OpenAIServer
from tests.web.conftest import check_accessibility, complaint, confirmed

QUESTION = "how do I restore yesterday's backup?"
GOOD = (
    "Restore with `lanternctl backup restore --at yesterday`, which takes the last complete archive of the previous "
    "day [1]. The name of an archive works as well [1]."
)
MADE_UP = "The moon is made of cheese [2]."
LONG = " ".join(f"Word{number}" for number in range(3000))


@pytest.fixture(autouse=True)
def fresh(writer: OpenAIServer) -> None:
    writer.answers.clear()
    writer.pace = 0.0


def ask(page: Page, question: str = QUESTION) -> Locator:
    """Ask with the button, and give the part of the page that has the answer."""
    page.goto("/")
    page.get_by_label("What to look for").fill(question)
    page.get_by_role("button", name="Ask", exact=True).click()
    return page.get_by_role("region", name="Answer")


def test_citations_of_an_answer_open_passages(page: Page, writer: OpenAIServer, root: Path) -> None:
    writer.answers.extend([f"{GOOD} {MADE_UP}"] * 2)
    answer = ask(page)
    expect(answer).to_contain_text("Restore with lanternctl backup restore --at yesterday, which")
    expect(answer.locator("code", has_text="lanternctl backup restore")).to_be_visible()
    expect(answer.locator(".rg-doubted")).to_have_text(["The moon is made of", "cheese."])
    expect(answer).to_contain_text("1 sentence shares no wording with the sources cited")
    assert len(confirmed(root, QUESTION)) == 1  # the passage of the two other sentences
    expect(page.get_by_role("article").first).to_be_visible()
    expect(page).to_have_url(re.compile("ask=1"))
    check_accessibility(page)
    second = answer.locator(".rg-cite", has_text="2").first
    second.click()
    expect(page.get_by_role("region", name="The passage that was found")).to_be_visible()
    expect(page).to_have_url(re.compile("ask=1.*open="))
    page.keyboard.press("Escape")
    expect(second).to_be_focused()
    answer.get_by_role("list", name="Sources cited").get_by_role("button").first.click()
    expect(page.get_by_role("complementary", name="Reader")).to_be_visible()
    page.reload()
    expect(page.get_by_role("region", name="Answer")).to_contain_text("The name of an archive")


@pytest.mark.slow
def test_answer_keeps_its_layout(page: Page, writer: OpenAIServer) -> None:
    writer.answers.append(
        "To restore a backup:\n\n1. Stop the services [1].\n   - first the *last* one [1]\n2. Run this [2]:\n\n"
        "```sh\nlanternctl backup restore \\\n\t--at yesterday\n```\n\n"
        "| Step | Who |\n|---|---|\n| `start` | you [1] |\n\nLine one [1].\nLine two [1]."
    )
    answer = ask(page)
    expect(answer.locator(".rg-item")).to_have_count(3)
    expect(answer.locator(".rg-marker")).to_have_text(["1.", "•", "2."])
    expect(answer.locator("pre")).to_have_text("lanternctl backup restore \\\n\t--at yesterday")
    expect(answer.get_by_role("cell")).to_have_count(4)
    expect(answer.locator("p", has_text="To restore a backup:").locator(".rg-cite, .rg-doubt")).to_have_count(0)
    expect(answer.locator("p", has_text="Line one").locator("br")).not_to_have_css("display", "none")
    expect(answer.get_by_role("list", name="Sources cited")).to_be_visible()
    expect(answer.locator(".rg-written-text .rg-cite")).to_have_text(
        ["1", "1", "2", *"111", "1", "2"]
    )  # with those of the sources
    check_accessibility(page)


def test_hostile_answers_are_escaped_and_errors_shown(page: Page, writer: OpenAIServer) -> None:
    hostile = '<img src=x onerror=alert(1)> <b>loud</b> "><script>alert(2)</script> [go](javascript:alert(3)) [1].'
    writer.answers.extend([hostile, "NOT FOUND"])
    answer = ask(page)
    expect(answer).to_contain_text("<img src=x onerror=alert(1)> <b>loud</b>")
    expect(answer.locator(".rg-written-sources")).to_be_visible()
    for tag in ("img", "script", "a"):
        expect(answer.locator(f".rg-written-text {tag}")).to_have_count(0)
    page.get_by_label("What to look for").fill("zzzqqq xyzzy")  # the generator is asked about gibberish too
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(answer).to_contain_text("Not in the documents.")
    expect(page.get_by_role("article").first).to_be_visible()
    assert [request for request in writer.requests if "zzzqqq" in str(request.body)]
    writer.fail_next(500)
    page.get_by_role("button", name="Ask", exact=True).click()
    complaint(page, "the server refuses")
    expect(page.get_by_role("article").first).to_be_visible()
    page.get_by_role("button", name="Search", exact=True).click()
    expect(answer).not_to_be_visible()
    expect(page).not_to_have_url(re.compile("ask=1"))


@pytest.mark.slow
def test_page_names_the_end_of_an_answer(page: Page, writer: OpenAIServer) -> None:
    ends: list[tuple[dict[str, Any], str]] = [
        ({"message": {"content": GOOD}, "finish_reason": "length"}, "Incomplete."),
        ({"message": {"content": GOOD}, "finish_reason": "content_filter"}, "Filtered."),
        ({"message": {"content": None, "refusal": "I am sorry."}}, "Refused."),
        ({"message": {"content": ""}}, "No answer."),
    ]
    for choice, said in ends:
        writer.answers.append(choice)
        answer = ask(page)
        expect(answer).to_contain_text(said)
        expect(answer.locator(".rg-written-sources")).to_have_count(int(choice["message"]["content"] == GOOD))


def test_answer_is_streamed_until_stopped(page: Page, writer: OpenAIServer) -> None:
    writer.pace = 0.02
    writer.answers.extend([LONG, GOOD, LONG, LONG])
    answer = ask(page)
    expect(answer).to_contain_text("Word3")
    expect(answer.get_by_role("status")).to_have_text("Writing…")
    other = page.context.new_page()
    other.goto("/?q=frost")  # the server answers meanwhile
    expect(other.get_by_role("article").first).to_be_visible()
    expect(answer.get_by_role("status")).to_have_text("Writing…")
    page.get_by_label("What to look for").fill("how do I put a backup back?")
    page.keyboard.press("Control+Enter")
    expect(answer.locator(".rg-written-sources")).to_be_visible()
    expect(answer).not_to_contain_text("Word3")
    other.get_by_role("button", name="Ask", exact=True).click()
    expect(other.get_by_role("region", name="Answer")).to_contain_text("Word3")
    other.get_by_role("button", name="Stop").click()
    expect(other.get_by_text("Stopped. The sentences were not checked.")).to_be_visible()
    assert_still(writer)
    other.get_by_role("button", name="Ask", exact=True).click()
    expect(other.get_by_role("region", name="Answer")).to_contain_text("Word3")
    other.close()
    assert_still(writer)


def assert_still(writer: OpenAIServer) -> None:
    """Soon nothing more comes from the generator, long before its answer is whole."""
    until, sent = time.monotonic() + 40, -1
    while writer.streamed != sent and time.monotonic() < until:
        sent = writer.streamed
        time.sleep(0.2)
    assert writer.streamed == sent
