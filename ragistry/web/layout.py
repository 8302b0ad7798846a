"""Layout of all pages: the header and the main content."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from nicegui import ui

from ragistry.web.error_list import ErrorList

STYLE = Path(__file__).with_name("style.css")
SCRIPT = Path(__file__).with_name("page.js")
PLACES = {"Search": "/", "Collections": "/collections", "Compare": "/compare"}
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
    with ui.header().classes("rg-header"):
        ui.link("Ragistry", "/").classes("rg-brand")
        with ui.element("nav").props('aria-label="Main"'):
            for name, target in PLACES.items():
                link = ui.link(name, target)
                if name == here:
                    link.props('aria-current="page"')
    content = ui.element("div").classes("rg-main")  # NiceGUI puts a <main> around it
    ui.skip_link(target=content)
    with content:
        ErrorList()
        yield


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
