"""Questions to the visitor: one awaited call each."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from nicegui import ui

from ragistry.web.controls import button


async def confirm(title: str, consequence: str, verb: str) -> bool:
    """Ask before something goes; closing the dialog is a no."""
    with ui.dialog() as dialog, ui.card().classes("rg-dialog"):
        dialog.props["aria-label"] = title
        ui.label(title).classes("rg-dialog-title").props("role=heading aria-level=2")
        ui.label(consequence)
        with ui.row().classes("rg-dialog-actions"):
            button("Cancel", lambda: dialog.submit(False)).props("autofocus")
            button(verb, lambda: dialog.submit(True), kind="danger")
    answer = await dialog
    dialog.delete()
    return bool(answer)


async def ask_fields(title: str, verb: str, fields: Mapping[str, str], *, hint: str = "") -> dict[str, str] | None:
    """One text a field, stripped; None where the dialog was left."""
    with ui.dialog() as dialog, ui.card().classes("rg-dialog"):
        dialog.props["aria-label"] = title
        ui.label(title).classes("rg-dialog-title").props("role=heading aria-level=2")
        inputs = {name: ui.input(name, value=value).classes("w-full") for name, value in fields.items()}
        next(iter(inputs.values())).props("autofocus")
        if hint:
            ui.label(hint).classes("rg-dim")

        def submit() -> None:
            dialog.submit({name: (field.value or "").strip() for name, field in inputs.items()})

        for field in inputs.values():
            field.on("keydown.enter", submit)
        with ui.row().classes("rg-dialog-actions"):
            button("Cancel", dialog.close)
            button(verb, submit, kind="main")
    answer = await dialog
    dialog.delete()
    return answer  # type: ignore[no-any-return]


async def choose(title: str, options: Mapping[str, str]) -> str | None:
    """One of ``options`` (value → what is shown); None where the dialog was left."""
    with ui.dialog() as dialog, ui.card().classes("rg-dialog"):
        dialog.props["aria-label"] = title
        ui.label(title).classes("rg-dialog-title").props("role=heading aria-level=2")
        with ui.element("div").classes("rg-choices"):
            for value, shown in options.items():
                button(shown, partial(dialog.submit, value)).props("align=left")
        with ui.row().classes("rg-dialog-actions"):
            button("Cancel", dialog.close)
    answer = await dialog
    dialog.delete()
    return answer  # type: ignore[no-any-return]
