"""``/``: the collections with what they hold; add, rename, describe, delete."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import quote

from nicegui import ui

from ragistry.utils.wording import agreeing, numbered
from ragistry.web.controls import button, icon_button
from ragistry.web.dialogs import ask_fields, confirm
from ragistry.web.frame import empty, frame, heading
from ragistry.web.holdings import Holding, Holdings
from ragistry.web.keyed import Built, Keyed
from ragistry.web.shared import Following
from ragistry.web.site import PATIENCE, Site, attempt
from ragistry.web.tables import cell, row, table, text_cell

COLUMNS = ("Collection", "Sources", "Chunks", "Description", "Actions")


@dataclass(slots=True)
class View:
    """One window, and the collections that it shows."""

    site: Site
    following: Following[Holdings]
    shown: dict[str, Holding] = field(default_factory=dict)


def register(site: Site) -> None:
    """Serve the page."""

    @ui.page("/", response_timeout=PATIENCE)
    async def collections() -> None:
        with frame("Collections", "Collections"):
            with ui.element("div").classes("rg-bar"):
                heading("Collections")
                button("Add collection", lambda: _add(view), icon="add", kind="main")
            view = View(site, Following(site.holdings))
            await view.following.begin(_table(view))


def _table(view: View) -> Callable[[Holdings], None]:
    nothing = empty()
    made = table("Collections", COLUMNS, right=("Sources", "Chunks", "Actions"))
    rows = Keyed[Holding](made.body, lambda entry: (entry.name, entry.display_name), lambda entry: _row(view, entry))

    def show(found: Holdings) -> None:
        view.shown = {entry.name: entry for entry in found}
        rows.show(found)
        made.whole.set_visibility(bool(found))
        if found:
            nothing("", "")
        else:
            nothing("No collections yet.", "Add one, then drop files into it: PDF, Markdown or text.")

    return show


def _row(view: View, entry: Holding) -> Built[Holding]:
    name, shown = entry.name, entry.display_name
    with row() as made:
        with cell("rg-name"):
            ui.link(shown, f"/collection/{quote(name, safe='')}").classes("rg-whole-row")
            if shown != name:
                ui.label(name).classes("rg-dim")
        sources, chunks = text_cell("", "rg-number"), text_cell("", "rg-number")
        description = text_cell("", "rg-wide")
        with cell("rg-actions"):
            icon_button("edit", f"Edit {shown}", lambda: _edit(view, view.shown[name]))
            icon_button("delete", f"Delete {shown}", lambda: _delete(view, view.shown[name]))

    def fill(entry: Holding) -> None:
        sources.set_text(f"{len(entry.sources):,}")
        chunks.set_text(f"{entry.chunks:,}")
        description.set_text(entry.description or "no description: a router and a chat tool choose by it")

    return made, fill


async def _add(view: View) -> None:
    given = await ask_fields(
        "Add collection",
        "Add",
        {"Name": "", "Display name": "", "Description": ""},
        hint="The description says what is in it: routers and chat tools choose by it.",
    )
    if given is not None:
        add = view.site.workspace.library.create_collection
        await attempt(add, given["Name"], given["Description"], given["Display name"] or None)
        await view.following.refresh()


async def _edit(view: View, entry: Holding) -> None:
    shown = "" if entry.display_name == entry.name else entry.display_name
    fields = {"Name": entry.name, "Display name": shown, "Description": entry.description}
    given = await ask_fields(f"Edit {entry.display_name}", "Save", fields)
    if given is None:
        return
    library = view.site.workspace.library

    def save() -> None:
        if given["Name"] != entry.name:
            library.rename_collection(entry.name, given["Name"])
        library.update_description(given["Name"], given["Description"], display_name=given["Display name"])

    await attempt(save)
    await view.following.refresh()


async def _delete(view: View, entry: Holding) -> None:
    library = view.site.workspace.library

    def delete() -> None:
        sources = library.sources(entry.name)
        library.delete_collection(entry.name)
        view.site.forget_uploads(sources)

    sources, chunks = numbered(len(entry.sources), "[source|sources]"), numbered(entry.chunks, "[chunk|chunks]")
    goes = f"{sources} with {chunks} {agreeing(len(entry.sources), '[goes|go]')} with it."
    stay = "Files stay, but for those that were dropped here."
    if await confirm(f"Delete {entry.display_name}?", f"{goes} {stay}", "Delete"):
        await attempt(delete)
        await view.following.refresh()
