"""Buttons with their names for screen readers, coloured by the page in light and dark."""

from __future__ import annotations

from collections.abc import Callable
from inspect import iscoroutine
from typing import Any, Literal

from nicegui import ui

Work = Callable[..., Any]
Kind = Literal["quiet", "main", "danger"]


def button(text: str, work: Work | None = None, *, icon: str | None = None, kind: Kind = "quiet") -> ui.button:
    """A button; ``main`` stands out, ``danger`` removes something."""
    made = ui.button(text, on_click=for_the_page(work), icon=icon, color=None).props("no-caps unelevated")
    return made.classes(f"rg-button rg-button-{kind}")


def icon_button(icon: str, label: str, work: Work) -> ui.button:
    """A button that is only an icon; ``label`` is read out and shown on hovering."""
    made = ui.button(icon=icon, on_click=for_the_page(work), color=None).props("flat round dense").classes("rg-icon")
    made.props["aria-label"] = label
    with made:
        ui.tooltip(label)
    return made


def for_the_page(work: Work | None) -> Work | None:
    """What the work shows belongs to the page, and stays when the part with the button is drawn anew."""
    if work is None:
        return None

    async def run() -> None:
        with ui.context.client:
            result = work()
            if iscoroutine(result):  # a dialog can be awaited too, which opens it
                await result

    return run
