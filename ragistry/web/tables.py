"""A table in plain HTML: readable by screen readers, styled by the page, any element in a cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from nicegui import ui

from ragistry.web.controls import button

PAGE = 50


class Table(NamedTuple):
    """``whole``: to show or hide it; ``body``: to fill with `row`."""

    whole: ui.element
    body: ui.element


def table(label: str, columns: Sequence[str], *, right: Sequence[str] = (), stacked: bool = False) -> Table:
    """A table with these headings, those in ``right`` above numbers or buttons, and no row yet.

    ``stacked``: in a narrow window the cells of a row stand below one another, without headings.
    """
    classes = "rg-scroll rg-stack" if stacked else "rg-scroll"
    with ui.element("div").classes(classes).props(f'tabindex=0 role=region aria-label="{label}"') as whole:  # noqa: SIM117
        with ui.element("table").classes("rg-table"):
            with ui.element("thead"), ui.element("tr"):
                for column in columns:
                    with ui.element("th").props("scope=col").classes("rg-number" if column in right else ""):
                        ui.label(column)
            body = ui.element("tbody")
    return Table(whole, body)


def row() -> ui.element:
    """A row; fill it with cells."""
    return ui.element("tr")


def cell(classes: str = "") -> ui.element:
    """A cell; fill it with elements."""
    return ui.element("td").classes(classes)


def text_cell(text: str = "", classes: str = "", *, unit: str = "") -> ui.label:
    """A cell that holds only text; ``unit``: what stands behind it where no heading says what it is."""
    with cell(classes) as made:
        if unit:
            made.props["data-unit"] = unit
        return ui.label(text)


def pager(go: Callable[[int], object]) -> Callable[[int, int], None]:
    """Buttons to the pages around one; call it with the page, counted from 0, and the items of all pages."""
    at = 0
    with ui.element("nav").classes("rg-pager").props('aria-label="Pages"') as whole:
        back = button("Previous", lambda: go(at - 1))
        said = ui.label()
        on = button("Next", lambda: go(at + 1))

    def show(page: int, items: int) -> None:
        nonlocal at
        at, last = page, last_page(items)
        said.set_text(f"{page * PAGE + 1} to {min(items, (page + 1) * PAGE)} of {items:,}")
        back.set_enabled(page > 0)
        on.set_enabled(page < last)
        whole.set_visibility(last > 0)

    return show


def last_page(items: int) -> int:
    """The last page of so many items, counted from 0."""
    return max(0, (items - 1) // PAGE)
