"""A table in plain HTML: readable by screen readers, styled by the page, any element in a cell."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from nicegui import ui

from ragistry.web.controls import button

PAGE = 50


@contextmanager
def table(label: str, columns: Sequence[str]) -> Iterator[None]:
    """The body of a table with these headings; fill it with `row`."""
    with ui.element("div").classes("rg-scroll").props(f'tabindex=0 role=region aria-label="{label}"'):  # noqa: SIM117
        with ui.element("table").classes("rg-table"):
            with ui.element("thead"), ui.element("tr"):
                for column in columns:
                    with ui.element("th").props("scope=col"):
                        ui.label(column)
            with ui.element("tbody"):
                yield


@contextmanager
def row() -> Iterator[None]:
    """A row; fill it with cells."""
    with ui.element("tr"):
        yield


@contextmanager
def cell(classes: str = "") -> Iterator[None]:
    """A cell; fill it with elements."""
    with ui.element("td").classes(classes):
        yield


def text_cell(text: str, classes: str = "") -> None:
    """A cell that holds only text."""
    with cell(classes):
        ui.label(text)


def pager(page: int, items: int, go: Callable[[int], object]) -> None:
    """Buttons to the pages around this one, where there is more than one. Pages count from 0."""
    last = max(0, (items - 1) // PAGE)
    if not last:
        return
    with ui.element("nav").classes("rg-pager").props('aria-label="Pages"'):
        back = button("Previous", lambda: go(page - 1))
        ui.label(f"{page * PAGE + 1} to {min(items, (page + 1) * PAGE)} of {items:,}")
        on = button("Next", lambda: go(page + 1))
        back.set_enabled(page > 0)
        on.set_enabled(page < last)
