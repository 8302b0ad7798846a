"""Errors, shown where the visitor looks: in the open dialog, else above the content of the page."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from nicegui import Client, ui

from ragistry.errors import RagistryError
from ragistry.web.app_state import in_thread

P = ParamSpec("P")
Result = TypeVar("Result")


class ErrorList:
    """The errors of the last action in a part of a window, each until it is dismissed or the next action begins.

    Args:
        dialog: The dialog that contains the list.
        shared: `show_error` uses the list; of several, the last one that can be seen.
    """

    def __init__(self, dialog: ui.dialog | None = None, *, shared: bool = True) -> None:
        self._dialog = dialog
        self._whole = ui.element("div").classes("rg-errors").props("role=alert")
        if shared:
            _of_window.setdefault(ui.context.client, []).append(self)

    @property
    def exists(self) -> bool:
        """Whether the window still has the list."""
        return not self._whole.is_deleted

    @property
    def is_visible(self) -> bool:
        """Whether the list can be seen."""
        return self.exists and (self._dialog is None or bool(self._dialog.value))

    def add(self, message: str) -> None:
        """Show an error."""
        with self._whole, ui.element("div").classes("rg-error") as line:
            ui.label(message).classes("rg-failure")
            dismiss = ui.button(icon="close", on_click=line.delete, color=None).props("flat round dense")
            dismiss.classes("rg-icon").props('aria-label="Dismiss"')
        ui.run_javascript(f"getHtmlElement({self._whole.id})?.scrollIntoView({{block: 'nearest'}})")

    def clear(self) -> None:
        """Remove all errors."""
        self._whole.clear()


_of_window: WeakKeyDictionary[Client, list[ErrorList]] = WeakKeyDictionary()


def _current() -> ErrorList:
    """Return the list of the open dialog, or the last one of the page."""
    lists = _of_window[ui.context.client] = [one for one in _of_window[ui.context.client] if one.exists]
    return next(one for one in reversed(lists) if one.is_visible)


def show_error(message: str) -> None:
    """Show an error in the open dialog, else above the content of the page."""
    _current().add(message)


def clear_errors() -> None:
    """Remove the errors that `show_error` has shown."""
    _current().clear()


async def attempt(work: Callable[P, Result], *args: P.args, **options: P.kwargs) -> Result | None:
    """Run a function in a thread. An error is shown to the visitor, and the result is None."""
    clear_errors()
    try:
        return await in_thread(work, *args, **options)
    except RagistryError as error:
        show_error(str(error))
        return None
