"""What others change while a window is used: it shows there, and nothing of what the visitor does is lost."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

import pytest
from playwright.sync_api import Page, expect

from ragistry import Workspace

Make = Callable[..., str]


@contextmanager
def another_program_writes(other: Workspace, into: str) -> Iterator[None]:
    """Rows come and change several times a second."""
    stop, written = Event(), [0]

    def write() -> None:
        while not stop.wait(0.1):
            number = written[0] + 1
            other.library.ingest_text(f"Tick {number}.", "tick", into)
            other.library.ingest_text(f"Number {number}.", f"aa-{number % 20:02}", into)
            other.library.update_description(into, f"Described {number} times")
            written[0] = number

    writer = Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        stop.set()
        writer.join(60)
    assert written[0] > 0


SLOW_LINE = """
const send = WebSocket.prototype.send;
WebSocket.prototype.send = function (message) { setTimeout(() => send.call(this, message), 300); };
"""


@pytest.mark.slow
def test_clicks_work_while_another_program_writes(page: Page, other: Workspace, collection: Make) -> None:
    busy, calm = collection("busy"), collection("calm")
    for source in ("moved", "spared", "deleted"):
        other.library.ingest_text(f"The text of {source}.", source, busy)
    page.add_init_script(SLOW_LINE)  # much is drawn again while a click is on its way
    with another_program_writes(other, busy):
        page.goto(f"/collection/{busy}")
        expect(page.get_by_role("row", name="tick")).to_be_visible()
        page.get_by_role("button", name="Move moved to another collection").click()
        page.get_by_role("button", name=calm, exact=True).click()
        expect(page.get_by_role("row", name="moved")).to_have_count(0)
        for name in ("spared", "tick"):
            page.get_by_role("button", name=f"Delete {name}").click()
            page.get_by_role("button", name="Cancel").click()
            expect(page.get_by_role("dialog")).to_have_count(0)
        page.get_by_role("button", name="Delete deleted").click()
        page.get_by_role("button", name="Delete", exact=True).click()
        expect(page.get_by_role("row", name="deleted")).to_have_count(0)
        expect(page.get_by_role("row", name="spared")).to_be_visible()
        page.goto("/collections")
        expect(page.get_by_text(re.compile("Described [0-9]+ times"))).to_be_visible()
        for _ in range(2):
            page.get_by_role("button", name=f"Edit {busy}").click()
            page.get_by_role("button", name="Cancel").click()
            expect(page.get_by_role("dialog")).to_have_count(0)


@pytest.mark.slow
def test_focus_stays_while_rows_change(page: Page, other: Workspace, collection: Make) -> None:
    busy = collection("busy")
    other.library.ingest_text("The text that is kept.", "kept", busy)
    page.goto(f"/collection/{busy}")
    delete = page.get_by_role("button", name="Delete kept")
    delete.focus()
    with another_program_writes(other, busy):
        for number in range(3, 6):
            expect(page.get_by_role("row", name=f"aa-{number:02}")).to_be_visible()
            expect(delete).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.get_by_role("dialog")).to_contain_text("Delete kept?")
        page.keyboard.press("Escape")
        expect(delete).to_be_focused()
    page.goto("/collections")
    edit = page.get_by_role("button", name=f"Edit {busy}")
    edit.focus()
    with another_program_writes(other, busy):
        description = page.get_by_role("row", name=f"Edit {busy}").get_by_role("cell").nth(3)
        for _ in range(2):
            expect(description).not_to_have_text(description.inner_text())
            expect(edit).to_be_focused()


@pytest.mark.slow
def test_only_changed_rows_are_redrawn(page: Page, other: Workspace, collection: Make) -> None:
    """Not by its own timers, and not by what other windows do."""
    seen = collection("seen", "At first")
    table = "td:visible, .rg-empty:visible"
    shown = {
        "/": ".rg-about:has-text('sources')",
        "/collection/garden": table,
        "/compare": table,
        "/?q=frost&k=5": "article",
    }
    windows = {}
    for path, selector in shown.items():
        windows[path] = page.context.new_page()
        windows[path].goto(path)
        windows[path].wait_for_selector(selector)
    watch_changes(*windows.values())
    page.goto("/collection/garden")
    page.get_by_label("Filter by name").fill("frost")
    expect(page.get_by_role("row")).to_have_count(2)
    page.get_by_role("button", name="Refresh").click()
    page.goto("/?q=restore+a+backup&k=5")
    expect(page.get_by_role("article").first).to_be_visible()
    page.goto("/collections")
    for number in range(3):  # every window looks for changes once a second
        other.library.update_description(seen, f"Change {number}")
        expect(page.get_by_role("row", name=f"Edit {seen}")).to_contain_text(f"Change {number}")
    assert {path: window.evaluate("window.seen") for path, window in windows.items()} == {path: [] for path in windows}
    watch_changes(page)
    window = windows["/compare"]
    window.goto("/collections")
    expect(window.get_by_role("row", name=f"Edit {seen}")).to_contain_text("Change 2")
    assert page.evaluate("window.seen") == []


def watch_changes(*pages: Page) -> None:
    """From when each page has settled: heights, icons and the focus come a little after the rest."""
    for page in pages:
        page.evaluate(
            """() => {
                window.seen = [];
                window.last = performance.now();
                new MutationObserver((all) => {
                    window.last = performance.now();
                    all.forEach((one) => window.seen.push((one.target.outerHTML ?? one.target.data).slice(0, 200)));
                }).observe(document.querySelector(".rg-main"),
                           {subtree: true, childList: true, characterData: true, attributes: true});
            }"""
        )
    for page in pages:
        page.wait_for_function("performance.now() - window.last > 1000")
        page.evaluate("window.seen = []")
