"""``/``: the collections with what they hold; add, rename, describe, delete."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from nicegui import ui

from ragistry.web.controls import button, icon_button
from ragistry.web.dialogs import ask_fields, confirm
from ragistry.web.frame import empty, frame, heading
from ragistry.web.site import Site, attempt, on_change
from ragistry.web.tables import cell, row, table, text_cell

COLUMNS = ("Collection", "Sources", "Chunks", "Description", "Actions")


def register(site: Site) -> None:
    """Serve the page."""

    @ui.page("/")
    async def collections() -> None:
        with frame("Collections", "Collections"):
            with ui.element("div").classes("rg-bar"):
                heading("Collections")
                button("Add collection", lambda: _add(site), icon="add", kind="main")
            await _table(site)
        on_change(lambda: _look(site), _table.refresh)


def _look(site: Site) -> str:
    return repr(site.workspace.library.list_collections())


@ui.refreshable
async def _table(site: Site) -> None:
    rows = await attempt(lambda: site.workspace.library.list_collections())
    if rows is None:
        return
    if not rows:
        empty("No collections yet.", "Add one, then drop files into it: PDF, Markdown or text.")
        return
    with table("Collections", COLUMNS):
        for entry in rows:
            _row(site, entry)


def _row(site: Site, entry: dict[str, Any]) -> None:
    name, shown = entry["name"], entry["display_name"]
    with row():
        with cell("rg-name"):
            ui.link(shown, f"/collection/{quote(name, safe='')}")
            if shown != name:
                ui.label(name).classes("rg-dim")
        text_cell(f"{entry['source_count']:,}", "rg-number")
        text_cell(f"{entry['chunk_count']:,}", "rg-number")
        text_cell(entry["description"] or "no description: a router and a chat tool choose by it", "rg-wide")
        with cell("rg-actions"):
            icon_button("edit", f"Edit {shown}", lambda: _edit(site, entry))
            icon_button("delete", f"Delete {shown}", lambda: _delete(site, entry))


async def _add(site: Site) -> None:
    given = await ask_fields(
        "Add collection",
        "Add",
        {"Name": "", "Display name": "", "Description": ""},
        hint="The description says what is in it: routers and chat tools choose by it.",
    )
    if given is not None:
        add = site.workspace.library.create_collection
        await attempt(add, given["Name"], given["Description"], given["Display name"] or None)
        _table.refresh()


async def _edit(site: Site, entry: dict[str, Any]) -> None:
    shown = "" if entry["display_name"] == entry["name"] else entry["display_name"]
    fields = {"Name": entry["name"], "Display name": shown, "Description": entry["description"]}
    given = await ask_fields(f"Edit {entry['display_name']}", "Save", fields)
    if given is None:
        return
    library = site.workspace.library

    def save() -> None:
        if given["Name"] != entry["name"]:
            library.rename_collection(entry["name"], given["Name"])
        library.update_description(given["Name"], given["Description"], display_name=given["Display name"])

    await attempt(save)
    _table.refresh()


async def _delete(site: Site, entry: dict[str, Any]) -> None:
    library, name = site.workspace.library, entry["name"]

    def delete() -> None:
        sources = library.list_sources_detail(name)
        library.delete_collection(name)
        site.forget_uploads(sources)

    goes = f"{entry['source_count']:,} sources with {entry['chunk_count']:,} chunks go with it."
    stay = "Files stay, but for those that were dropped here."
    if await confirm(f"Delete {entry['display_name']}?", f"{goes} {stay}", "Delete"):
        await attempt(delete)
        _table.refresh()
