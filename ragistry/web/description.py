"""The description of a collection, edited in place."""

from __future__ import annotations

from collections.abc import Callable

from nicegui import ui

from ragistry.web.controls import button
from ragistry.web.site import Site, attempt


def description_field(site: Site, collection: str) -> Callable[[str], None]:
    """Where it is written and saved; call it with what it has become, which leaves alone what is being written."""
    saved = ""
    with ui.element("div").classes("rg-bar"):
        field = ui.textarea("Description").props("autogrow dense outlined").classes("rg-describe")
        button("Save description", lambda: save())

    async def save() -> None:
        nonlocal saved
        given = (field.value or "").strip()

        def write() -> bool:
            site.workspace.library.update_description(collection, given)
            return True

        if await attempt(write):
            saved = given
            ui.notify("Description saved", type="positive")

    def show(description: str) -> None:
        nonlocal saved
        if (field.value or "").strip() == saved:
            field.value = description
        saved = description

    return show
