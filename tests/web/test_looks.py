"""What a visitor must be able to see and reach: contrast, the focus of the keyboard, and dialogs without a mouse."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from ragistry import Workspace
from tests.web.conftest import check_accessibility, check_words_are_whole, complaint


def style(of: Locator, name: str) -> str:
    return str(of.evaluate("(element, name) => getComputedStyle(element)[name]", name))


def contrast(one: tuple[int, ...], other: tuple[int, ...]) -> float:
    """As WCAG 2.1 defines it, from 1 to 21."""

    def luminance(colour: tuple[int, ...]) -> float:
        parts = [part / 255 for part in colour]
        red, green, blue = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def colour(text: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", text)[:3]))


@pytest.mark.slow
def test_pages_are_accessible(page: Page) -> None:
    for path, shown in (
        ("/", ".rg-about:has-text('sources')"),
        ("/collections", "td:has-text('Operations handbook')"),
        ("/collection/handbook", "td:has-text('operations/backups.md')"),
        ("/?q=restore+a+backup&compare=bm25", "article"),
    ):
        page.goto(path)
        page.wait_for_selector(shown)
        check_accessibility(page)


WIDE = "| municipality | inhabitants | embedding_model | environment | revision | founded | about |\n|" + " --- |" * 7
WIDE += "".join(
    f"\n| Bergheim{number} | {33051 + number} | multilingual_e5_large_{number} | RAGISTRY_EMBED_MODEL | a6dd8e103e0c | "
    f"2024-03-{number:02} | A town with many inhabitants near a river, 1,234.56 km² in area |"
    for number in range(10, 20)
)


def test_numbers_and_names_in_tables_are_whole(page: Page, other: Workspace, collection: Callable[..., str]) -> None:
    other.library.ingest_text(WIDE, "inhabitants_33051.md", collection("wide", "Rows and columns"))
    for path, shown in (("/collections", "td"), ("/collection/wide", "td")):
        page.goto(path)
        page.wait_for_selector(shown)
        check_words_are_whole(page)
    page.goto("/?q=Bergheim15+inhabitants&compare=bm25")
    page.wait_for_selector("article td")
    check_words_are_whole(page)
    page.locator(".rg-hit-title").first.click()
    expect(page.get_by_role("complementary", name="Reader").locator("td").first).to_be_visible()
    check_words_are_whole(page)


def test_error_can_be_read_and_dismissed(page: Page) -> None:
    page.goto("/")
    page.get_by_role("button", name="Search").click()
    complaint(page)
    check_accessibility(page)
    page.get_by_role("button", name="Dismiss").click()
    expect(page.locator(".rg-error")).to_have_count(0)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_focus_is_visible_on_every_button(page: Page, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    page.goto("/collection/garden")
    expect(page.get_by_role("row").nth(1)).to_be_visible()
    seen = set()
    for _ in range(16):
        page.keyboard.press("Tab")
        focused = page.locator(":focus")
        kind = style(focused, "outlineStyle"), style(focused, "outlineWidth")
        if focused.evaluate("element => element.matches('.q-btn, .q-checkbox')"):
            seen.add(str(focused.get_attribute("aria-label") or focused.inner_text()))
            assert kind == ("solid", "2px"), seen
            ring = colour(style(focused, "outlineColor"))
            ground = (255, 255, 255) if scheme == "light" else (29, 34, 44)
            assert contrast(ring, ground) >= 3
    assert len(seen) > 5
