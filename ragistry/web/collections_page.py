"""``/collections``: the collections with what they hold; add, rename, describe, delete."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

from nicegui import ui

from ragistry.errors import ConfigError
from ragistry.types import SourceInfo
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

    @ui.page("/collections", response_timeout=PATIENCE)
    async def collections() -> None:
        with frame("Collections", "Collections"):
            with ui.element("div").classes("rg-bar"):
                heading("Collections")
                button("Add collection", lambda: _add(view), icon="add", kind="main")
            view = View(site, Following(site.holdings))
            await view.following.begin(_table(view))


def _table(view: View) -> Callable[[Holdings], None]:
    nothing = empty()
    made = table("Collections", COLUMNS, right=("Sources", "Chunks", "Actions"), stacked=True)
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
        sources = text_cell("", "rg-number", unit="sources")
        chunks = text_cell("", "rg-number", unit="chunks")
        description = text_cell("", "rg-wide")
        with cell("rg-actions"):
            icon_button("edit", f"Edit {shown}", lambda: _edit(view, view.shown[name]))
            icon_button("delete", f"Delete {shown}", lambda: _delete(view, view.shown[name]))

    def fill(entry: Holding) -> None:
        sources.set_text(f"{len(entry.sources):,}")
        chunks.set_text(f"{entry.chunks:,}")
        description.set_text(entry.description or "no description yet; routing and chat tools choose by it")

    return made, fill


async def _add(view: View) -> None:
    def add(given: dict[str, str]) -> bool:
        create = view.site.workspace.library.create_collection
        create(given["Name"], given["Description"], given["Display name"] or None)
        return True

    await ask_fields(
        "Add collection",
        "Add",
        {"Name": "", "Display name": "", "Description": ""},
        lambda given: _written(view, add, given),
        hint="The description says what is in it: routers and chat tools choose by it.",
    )


async def _edit(view: View, entry: Holding) -> None:
    shown = {"Name": entry.name, "Display name": _own(entry.display_name, entry.name), "Description": entry.description}

    def save(given: dict[str, str]) -> bool:
        changed = {field: text for field, text in given.items() if text != shown[field]}
        return _save(view.site, shown, changed)

    title = f"Edit {entry.display_name}"
    await ask_fields(title, "Save", shown.copy(), lambda given: _written(view, save, given))


async def _written(view: View, write: Callable[[dict[str, str]], bool], given: dict[str, str]) -> bool:
    done = await attempt(write, given)
    await view.following.refresh()
    return bool(done)


def _save(site: Site, shown: dict[str, str], changed: dict[str, str]) -> bool:
    """Write what was changed in a form that had ``shown``; raises for what somebody else changed since."""
    library, name = site.workspace.library, shown["Name"]
    entry = library.collections.entry(name)
    now = {"Display name": _own(entry.display_name or "", name), "Description": entry.description}
    for label in now.keys() & changed.keys():
        if now[label] != shown[label]:
            shown[label] = now[label]
            raise ConfigError(
                f"another window or program changed {label!r} of {name!r} to {now[label]!r} meanwhile; save again to "
                "write yours over it"
            )
    if "Name" in changed:
        if site.jobs.pending(name):
            raise ConfigError(f"{name!r} is receiving files; rename it when that is done")
        library.rename_collection(name, changed["Name"])
        shown["Name"] = name = changed["Name"]
    if now.keys() & changed.keys():
        library.update_description(name, changed.get("Description"), display_name=changed.get("Display name"))
    return True


def _own(display_name: str, name: str) -> str:
    """The name to show, where it is another than the name."""
    return "" if display_name == name else display_name


async def _delete(view: View, entry: Holding) -> None:
    told, since = entry.sources, ""
    while await confirm(f"Delete {entry.display_name}?", since + _goes(view.site, entry.name, told), "Delete"):
        more = await attempt(_deleted, view.site, entry.name, told)
        if not more:
            break
        told, since = more, "It has other sources by now. "
    await view.following.refresh()


def _goes(site: Site, name: str, sources: Sequence[SourceInfo]) -> str:
    count, chunks = len(sources), sum(info.chunks for info in sources)
    go = f"{numbered(count, '[source|sources]')} with {numbered(chunks, '[chunk|chunks]')}"
    waiting = " What is on its way into it is not taken in." if site.jobs.pending(name) else ""
    return f"{go} {agreeing(count, '[goes|go]')} with it. Files stay, but for those that were dropped here.{waiting}"


def _deleted(site: Site, name: str, told: Sequence[SourceInfo]) -> tuple[SourceInfo, ...]:
    """Delete the collection, unless it has other sources than the visitor was told: then give those."""
    library = site.workspace.library
    sources = library.sources(name)
    if {info.source_file for info in sources} - {info.source_file for info in told}:
        return tuple(sources)
    library.delete_collection(name)
    site.forget_uploads(sources)
    return ()
