"""What others change while a window is used: it shows there, and nothing of what the visitor does is lost."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from ragistry import open_workspace

WRITER = """
import sys, threading, time
from ragistry import open_workspace
stop = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), stop.set()), daemon=True).start()
with open_workspace(sys.argv[1]) as workspace:
    number = 0
    while not stop.wait(0.1):
        number += 1
        workspace.library.ingest_text(f"Tick {number}.", "tick", "garden")
        workspace.library.ingest_text(f"Number {number}.", f"aa-{number % 20:02}", "garden")
        workspace.library.update_description("handbook", f"Described {number} times")
"""


@contextmanager
def another_process_writes(root: Path) -> Iterator[None]:
    """Rows come and change several times a second."""
    command = [sys.executable, "-c", WRITER, str(root)]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as writer:
        try:
            yield
        finally:
            writer.communicate(timeout=30)
    assert writer.returncode == 0


def fill(root: Path, *sources: str) -> None:
    with open_workspace(root) as workspace:
        for source in sources:
            workspace.library.ingest_text(f"The text of {source}.", source, "garden")


SLOW_LINE = """
const send = WebSocket.prototype.send;
WebSocket.prototype.send = function (message) { setTimeout(() => send.call(this, message), 300); };
"""


def test_every_click_on_a_source_is_heard_while_another_process_writes(page: Page, address: str, root: Path) -> None:
    fill(root, "moved", "spared", "deleted")
    page.add_init_script(SLOW_LINE)  # much is drawn again while a click is on its way
    with another_process_writes(root):
        page.goto(f"{address}/collection/garden")
        expect(page.get_by_role("row", name="tick")).to_be_visible()
        page.get_by_role("button", name="Move moved to another collection").click()
        page.get_by_role("button", name="Handbook", exact=True).click()
        expect(page.get_by_role("row", name="moved")).to_have_count(0)
        for name in ("spared", "tick"):
            page.get_by_role("button", name=f"Delete {name}").click()
            page.get_by_role("button", name="Cancel").click()
            expect(page.get_by_role("dialog")).to_have_count(0)
        page.get_by_role("button", name="Delete deleted").click()
        page.get_by_role("button", name="Delete", exact=True).click()
        expect(page.get_by_role("row", name="deleted")).to_have_count(0)
        expect(page.get_by_role("row", name="spared")).to_be_visible()


def test_every_click_on_a_collection_is_heard_while_another_process_writes(
    page: Page, address: str, root: Path
) -> None:
    page.add_init_script(SLOW_LINE)
    with another_process_writes(root):
        page.goto(f"{address}/collections")
        expect(page.get_by_text(re.compile("Described [0-9]+ times"))).to_be_visible()
        for _ in range(2):
            page.get_by_role("button", name="Edit Handbook").click()
            page.get_by_role("button", name="Cancel").click()
            expect(page.get_by_role("dialog")).to_have_count(0)


def test_the_focus_stays_where_it_is_while_rows_come_and_change(page: Page, address: str, root: Path) -> None:
    fill(root, "kept")
    page.goto(f"{address}/collection/garden")
    delete = page.get_by_role("button", name="Delete kept")
    delete.focus()
    with another_process_writes(root):
        for number in range(3, 6):
            expect(page.get_by_role("row", name=f"aa-{number:02}")).to_be_visible()
            expect(delete).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.get_by_role("dialog")).to_contain_text("Delete kept?")
        page.keyboard.press("Escape")
        expect(delete).to_be_focused()
    page.goto(f"{address}/collections")
    edit = page.get_by_role("button", name="Edit Handbook")
    edit.focus()
    with another_process_writes(root):
        description = page.get_by_role("row", name="Edit Handbook").get_by_role("cell").nth(3)
        for _ in range(2):
            expect(description).not_to_have_text(description.inner_text())
            expect(edit).to_be_focused()


def test_what_one_window_does_redraws_no_other(page: Page, browser: Browser, address: str) -> None:
    page.goto(f"{address}/?q=frost&k=5")
    expect(page.get_by_text("5 passages in")).to_be_visible()
    changes_from_now_on(page)
    context = browser.new_context()
    other = context.new_page()
    other.goto(f"{address}/?q=restore+a+backup&k=5")
    expect(other.get_by_text("5 passages in")).to_be_visible()
    assert changes(page) == []
    page.goto(f"{address}/collection/handbook")
    expect(page.get_by_role("row", name="operations/backups.md")).to_be_visible()
    changes_from_now_on(page)
    other.goto(f"{address}/collection/handbook")
    other.get_by_label("Filter by name").fill("backups")
    expect(other.get_by_role("row")).to_have_count(2)
    other.get_by_role("button", name="Refresh").click()
    context.close()
    assert changes(page) == []


def test_nothing_is_drawn_again_where_nothing_changed(page: Page, address: str) -> None:
    table = "td:visible, .rg-empty:visible"
    shown = {
        "/": ".rg-about:has-text('sources')",
        "/collections": table,
        "/collection/garden": table,
        "/compare": table,
    }
    for path, selector in {**shown, "/?q=frost": "article"}.items():
        page.goto(address + path)
        page.wait_for_selector(selector)
        changes_from_now_on(page)
        page.wait_for_timeout(2_500)
        assert changes(page) == [], path


def changes_from_now_on(page: Page) -> None:
    """From when the page has settled: heights, icons and the focus come a little after the rest."""
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
    page.wait_for_function("performance.now() - window.last > 1000")
    page.evaluate("window.seen = []")


def changes(page: Page) -> list[str]:
    page.wait_for_timeout(500)
    return list(page.evaluate("window.seen"))
