"""Questions to the visitor: one awaited call each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from nicegui import ui

from ragistry.web.controls import button


@contextmanager
def dialog(title: str, *, classes: str = "") -> Iterator[ui.dialog]:
    """A dialog, to be filled and then opened or awaited; it goes when it is closed, and gives the focus back first."""
    with ui.dialog() as made, ui.card().classes(f"rg-dialog {classes}"):
        made.props["aria-label"] = title
        # Quasar lets a dialog grow, and a click that begins on a button which moves on is lost.
        made.props("transition-show=fade transition-hide=fade")
        ui.label(title).classes("rg-dialog-title").props("role=heading aria-level=2")
        yield made
    made.on("hide", made.delete)


async def confirm(title: str, consequence: str, verb: str) -> bool:
    """Ask before something goes; closing the dialog is a no."""
    with dialog(title) as asked:
        ui.label(consequence)
        with ui.row().classes("rg-dialog-actions"):
            button("Cancel", lambda: asked.submit(False)).props("autofocus")
            button(verb, lambda: asked.submit(True), kind="danger")
    return bool(await asked)


async def ask_fields(
    title: str,
    verb: str,
    fields: Mapping[str, str],
    work: Callable[[dict[str, str]], Awaitable[bool]],
    *,
    hint: str = "",
) -> None:
    """One text a field. ``work`` is given them, stripped; until it succeeds the dialog stays, with what was typed."""
    busy = False
    with dialog(title) as asked:
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
                    asked.submit(None)
            finally:
                busy = False

        for field in inputs.values():
            field.on("keydown.enter", submit)
        with ui.row().classes("rg-dialog-actions"):
            button("Cancel", asked.close)
            button(verb, submit, kind="main")
    await asked


async def choose(title: str, options: Mapping[str, str]) -> str | None:
    """One of ``options`` (value → what is shown); None where the dialog was left."""
    with dialog(title) as asked:
        with ui.element("div").classes("rg-choices"):
            for value, shown in options.items():
                button(shown, partial(asked.submit, value)).props("align=left")
        with ui.row().classes("rg-dialog-actions"):
            button("Cancel", asked.close)
    return await asked  # type: ignore[no-any-return]
