"""What a visitor must be able to see: the focus of the keyboard, and the way to be rid of an error."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect


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


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_button_that_dismisses_an_error_can_be_read(page: Page, address: str, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    page.goto(f"{address}/")
    page.get_by_role("button", name="Search").click()
    button = page.get_by_role("button", name="Dismiss")
    expect(button).to_be_visible()
    ground = page.locator(".q-notification").filter(has=button)
    assert contrast(colour(style(button, "color")), colour(style(ground, "backgroundColor"))) >= 4.5
    button.click()
    expect(button).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_focus_is_seen_on_every_button(page: Page, address: str, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    page.goto(f"{address}/collection/garden")
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
