"""Buttons, dialogs, tables and lists of the page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from inspect import iscoroutine
from typing import Any, Generic, Literal, TypeVar

from nicegui import ui

from ragistry.web.error_list import ErrorList
from ragistry.web.layout import empty_notice

Work = Callable[..., Any]
Kind = Literal["quiet", "main", "danger"]
PAGE = 50
Item = TypeVar("Item")
Built = tuple[ui.element, Callable[[Item], object] | None]
"""The element of an item, and a function that updates it, if it can change."""


def button(text: str, work: Work | None = None, *, icon: str | None = None, kind: Kind = "quiet") -> ui.button:
    """Show a button. ``main`` is emphasised; ``danger`` is for deletions."""
    made = ui.button(text, on_click=in_page(work), icon=icon, color=None).props("no-caps unelevated")
    return made.classes(f"rg-button rg-button-{kind}")


def icon_button(icon: str, label: str, work: Work) -> ui.button:
    """Show a button with an icon only. Screen readers and the tooltip use ``label``."""
    made = ui.button(icon=icon, on_click=in_page(work), color=None).props("flat round dense").classes("rg-icon")
    made.props["aria-label"] = label
    with made:
        ui.tooltip(label)
    return made


def in_page(work: Work | None) -> Work | None:
    """Run ``work`` in the context of the page, so that what it shows stays when the part with the button is redrawn."""
    if work is None:
        return None

    async def run() -> None:
        with ui.context.client:
            result = work()
            if iscoroutine(result):  # awaiting a dialog opens it
                await result

    return run


@contextmanager
def details(text: str, classes: str) -> Iterator[ui.element]:
    """Show a part that opens by a click on its text; fill it in the block."""
    with ui.element("details").classes(classes) as made:
        with ui.element("summary"):
            ui.label(text)
        yield made


@contextmanager
def dialog(title: str) -> Iterator[ui.dialog]:
    """Create a dialog; fill it in the block, then open or await it. It is deleted after it closes."""
    with ui.dialog() as made, ui.card().classes("rg-dialog"):
        made.props["aria-label"] = title
        # Quasar's default animation moves the dialog, and a click on a moving button is lost.
        made.props("transition-show=fade transition-hide=fade")
        ui.label(title).classes("rg-dialog-title").props("role=heading aria-level=2")
        ErrorList(made)
        yield made
    made.on("hide", made.delete)


async def confirm(title: str, consequence: str, verb: str) -> bool:
    """Ask for confirmation. Closing the dialog means no."""
    with dialog(title) as opened:
        ui.label(consequence)
        with ui.row().classes("rg-dialog-actions"):
            button("Cancel", lambda: opened.submit(False)).props("autofocus")
            button(verb, lambda: opened.submit(True), kind="danger")
    return bool(await opened)


async def ask_fields(
    title: str,
    verb: str,
    fields: Mapping[str, str],
    work: Callable[[dict[str, str]], Awaitable[bool]],
    *,
    hint: str = "",
) -> None:
    """Ask for texts, one per field. The dialog stays open until ``work`` succeeds with the stripped texts."""
    busy = False
    with dialog(title) as opened:
        inputs = {name: ui.input(name, value=value).classes("w-full") for name, value in fields.items()}
        next(iter(inputs.values())).props("autofocus")
        if hint:
            ui.label(hint).classes("rg-dim")

        async def submit() -> None:
            nonlocal busy
            if busy:  # Enter was pressed twice
                return
            busy = True
            try:
                if await work({name: (field.value or "").strip() for name, field in inputs.items()}):
                    opened.submit(None)
            finally:
                busy = False

        for field in inputs.values():
            field.on("keydown.enter", submit)
        with ui.row().classes("rg-dialog-actions"):
            button("Cancel", opened.close)
            button(verb, submit, kind="main")
    await opened


async def choose(title: str, options: Mapping[str, str]) -> str | None:
    """Let the visitor choose one of ``options`` (value → label); None if the dialog is closed."""
    with dialog(title) as opened:
        with ui.element("div").classes("rg-choices"):
            for value, shown in options.items():
                button(shown, partial(opened.submit, value)).props("align=left")
        with ui.row().classes("rg-dialog-actions"):
            button("Cancel", opened.close)
    return await opened  # type: ignore[no-any-return]


def table(label: str, columns: Sequence[str], *, right: Sequence[str] = ()) -> tuple[ui.element, ui.element]:
    """Create a table without rows, and return it with its body, to add rows.

    Narrow windows show the cells of a row below each other, without headings.

    Args:
        label: Name for screen readers.
        columns: Headings.
        right: Headings of columns with numbers or buttons.
    """
    with ui.element("div").classes("rg-scroll").props(f'tabindex=0 role=region aria-label="{label}"') as whole:  # noqa: SIM117
        with ui.element("table").classes("rg-table"):
            with ui.element("thead"), ui.element("tr"):
                for column in columns:
                    with ui.element("th").props("scope=col").classes("rg-number" if column in right else ""):
                        ui.label(column)
            body = ui.element("tbody")
    return whole, body


def row() -> ui.element:
    """Add a row; fill it with cells."""
    return ui.element("tr")


def cell(classes: str = "") -> ui.element:
    """Add a cell; fill it with elements."""
    return ui.element("td").classes(classes)


def text_cell(text: str = "", classes: str = "", *, unit: str = "") -> ui.label:
    """Add a cell with a text. ``unit`` is shown after it if the headings are hidden."""
    with cell(classes) as made:
        if unit:
            made.props["data-unit"] = unit
        return ui.label(text)


def pager(go: Callable[[int], object]) -> Callable[[int, int], None]:
    """Add buttons for pages. Call the result with the current page, counted from 0, and the number of all items."""
    at = 0
    with ui.element("nav").classes("rg-pager").props('aria-label="Pages"') as whole:
        back = button("Previous", lambda: go(at - 1))
        status = ui.label()
        on = button("Next", lambda: go(at + 1))

    def show(page: int, items: int) -> None:
        nonlocal at
        at, last = page, last_page(items)
        status.set_text(f"{page * PAGE + 1} to {min(items, (page + 1) * PAGE)} of {items:,}")
        back.set_enabled(page > 0)
        on.set_enabled(page < last)
        whole.set_visibility(last > 0)

    return show


def last_page(items: int) -> int:
    """Return the last page, counted from 0."""
    return max(0, (items - 1) // PAGE)


@dataclass(slots=True)
class _Child(Generic[Item]):
    element: ui.element
    fill: Callable[[Item], object] | None
    shown: Item | None = None


class KeyedList(Generic[Item]):
    """The children of ``parent``, one for each item, identified by ``key``.

    Known items keep their elements and are only updated, so that clicks, the focus and open parts are not lost.
    ``build`` makes the element of a new item and the function that updates it.
    """

    def __init__(
        self,
        parent: ui.element,
        key: Callable[[Item], Hashable],
        build: Callable[[Item], Built[Item]],
    ) -> None:
        self._parent = parent
        self._key = key
        self._build = build
        self._children: dict[Hashable, _Child[Item]] = {}

    def show(self, items: Iterable[Item]) -> None:
        """Show the items in this order."""
        by_key = {self._key(item): item for item in items}
        for gone in self._children.keys() - by_key.keys():
            self._children.pop(gone).element.delete()
        for place, (key, item) in enumerate(by_key.items()):
            child = self._children.get(key) or self._made(key, item)
            if self._parent.default_slot.children[place] is not child.element:
                child.element.move(target_index=place)
            if child.fill is not None and child.shown != item:
                child.fill(item)
                child.shown = item

    def _made(self, key: Hashable, item: Item) -> _Child[Item]:
        with self._parent:
            self._children[key] = _Child(*self._build(item))
        return self._children[key]


def table_of(
    label: str,
    columns: Sequence[str],
    key: Callable[[Item], Hashable],
    build: Callable[[Item], Built[Item]],
    missing: Callable[[], tuple[str, str]],
    *,
    right: Sequence[str] = (),
) -> Callable[[Sequence[Item]], None]:
    """Create a `table` with a row for each item. Call the result with the items.

    Args:
        label: Name for screen readers.
        columns: Headings.
        key: Identifies an item, see `KeyedList`.
        build: Makes the row of an item, see `KeyedList`.
        missing: Returns what is shown without items: what is missing, and what to do next.
        right: Headings of columns with numbers or buttons.
    """
    show_notice = empty_notice()
    whole, body = table(label, columns, right=right)
    rows = KeyedList[Item](body, key, build)

    def show(items: Sequence[Item]) -> None:
        rows.show(items)
        whole.set_visibility(bool(items))
        show_notice(*("", "") if items else missing())

    return show
