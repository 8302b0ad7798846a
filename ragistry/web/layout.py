"""Layout of all pages: the header, the colour scheme, and the main content."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from nicegui import ui

from ragistry.web.error_list import ErrorList

STYLE = Path(__file__).with_name("style.css")
SCRIPT = Path(__file__).with_name("page.js")
PLACES = {"Search": "/", "Collections": "/collections", "Compare": "/compare"}
THEMES = {"auto": None, "light": False, "dark": True}
THEME_ICONS = {"auto": "brightness_auto", "light": "light_mode", "dark": "dark_mode"}
COOKIE = "ragistry_theme"
IN_ORDER = "<script>Object.defineProperty(window, 'did_handshake', {get: () => true, set: () => {}});</script>"
"""Until its connection stands, NiceGUI sends each event with its own timer, so the last typed letter may arrive first.
If it believes that the connection stands, the connection queues the events in order.
"""


@contextmanager
def page_layout(title: str, here: str) -> Iterator[None]:
    """Lay out a page with its title. ``here`` is its name in `PLACES`."""
    ui.page_title(f"{title} · Ragistry")
    ui.add_css(STYLE)
    ui.add_head_html(IN_ORDER)
    ui.add_head_html(f"<script>{SCRIPT.read_text(encoding='utf-8')}</script>")
    ui.colors(primary="#2457c5", negative="#b3261e", positive="#1b6e3a", warning="#8a5a00")
    dark = ui.dark_mode(THEMES[_theme()])
    with ui.header().classes("rg-header"):
        ui.link("Ragistry", "/").classes("rg-brand")
        with ui.element("nav").props('aria-label="Main"'):
            for name, target in PLACES.items():
                link = ui.link(name, target)
                if name == here:
                    link.props('aria-current="page"')
        _theme_button(dark)
    content = ui.element("div").classes("rg-main")  # NiceGUI puts a <main> around it
    ui.skip_link(target=content)
    with content:
        ErrorList()
        yield


def _theme() -> str:
    request = ui.context.client.request
    name = request.cookies.get(COOKIE, "auto") if request is not None else "auto"
    return name if name in THEMES else "auto"


def _theme_button(dark: ui.dark_mode) -> None:
    theme = [_theme()]
    button = ui.button(icon=THEME_ICONS[theme[0]], color=None).props(f'flat round dense aria-label="Theme: {theme[0]}"')

    def turn() -> None:
        names = list(THEMES)
        theme[0] = names[(names.index(theme[0]) + 1) % len(names)]
        dark.value = THEMES[theme[0]]
        button.props(f'icon={THEME_ICONS[theme[0]]} aria-label="Theme: {theme[0]}"')
        ui.run_javascript(f'document.cookie = "{COOKIE}={theme[0]}; path=/; max-age=31536000; samesite=strict"')

    button.on_click(turn)


def heading(text: str) -> ui.label:
    """Show the first-order heading of the page."""
    return ui.label(text).props("role=heading aria-level=1").classes("rg-title")


def empty_notice(text: str = "", remedy: str = "") -> Callable[[str, str], None]:
    """Show what is missing and what to do next. Call the result with new texts; empty texts hide the notice."""
    with ui.element("div").classes("rg-empty") as box:
        shown = ui.label(text).classes("rg-empty-text")
        next_step = ui.label(remedy)
    box.set_visibility(bool(text))

    def say(text: str, remedy: str) -> None:
        shown.set_text(text)
        next_step.set_text(remedy)
        box.set_visibility(bool(text))

    return say
