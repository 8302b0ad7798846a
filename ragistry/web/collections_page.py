"""The page ``/collections``: list, add, edit and delete collections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

from nicegui import ui

from ragistry.config.files import slug
from ragistry.errors import ConfigError
from ragistry.types import SourceInfo
from ragistry.utils.wording import agreeing, numbered
from ragistry.web.app_state import PAGE_TIMEOUT, AppState, CollectionState, CollectionStates
from ragistry.web.error_list import attempt
from ragistry.web.layout import heading, page_layout
from ragistry.web.polling import Follower
from ragistry.web.widgets import Built, ask_fields, button, cell, confirm, icon_button, row, table_of, text_cell

COLUMNS = ("Collection", "Sources", "Chunks", "Description", "Actions")


@dataclass(slots=True)
class CollectionsView:
    """One window with the collections that it shows."""

    state: AppState
    follower: Follower[CollectionStates]
    shown: dict[str, CollectionState] = field(default_factory=dict)


def register(state: AppState) -> None:
    """Register the page."""

    @ui.page("/collections", response_timeout=PAGE_TIMEOUT)
    async def collections() -> None:
        with page_layout("Collections", "Collections"):
            with ui.element("div").classes("rg-bar"):
                heading("Collections")
                button("Add collection", lambda: _add(view), icon="add", kind="main")
            view = CollectionsView(state, Follower(state.collections))
            await view.follower.begin(_table(view))


def _table(view: CollectionsView) -> Callable[[CollectionStates], None]:
    show_rows = table_of(
        "Collections",
        COLUMNS,
        lambda entry: (entry.name, entry.display_name),
        lambda entry: _row(view, entry),
        lambda: ("No collections yet.", "Add one, then drop files into it: PDF, Markdown or text."),
        right=("Sources", "Chunks", "Actions"),
    )

    def show(found: CollectionStates) -> None:
        view.shown = {entry.name: entry for entry in found}
        show_rows(found)

    return show


def _row(view: CollectionsView, entry: CollectionState) -> Built[CollectionState]:
    name, shown = entry.name, entry.display_name
    with row() as made:
        with cell("rg-name"):
            ui.link(shown, _address(name)).classes("rg-whole-row")
            if shown != name:
                ui.label(name).classes("rg-dim")
        sources = text_cell("", "rg-number", unit="sources")
        chunks = text_cell("", "rg-number", unit="chunks")
        description = text_cell("", "rg-wide")
        with cell("rg-actions"):
            icon_button("edit", f"Edit {shown}", lambda: _edit(view, view.shown[name]))
            icon_button("delete", f"Delete {shown}", lambda: _delete(view, view.shown[name]))

    def fill(entry: CollectionState) -> None:
        sources.set_text(f"{len(entry.sources):,}")
        chunks.set_text(f"{entry.chunks:,}")
        description.set_text(
            entry.description or "no description; routing and chat tools need one to choose this collection"
        )

    return made, fill


def _address(name: str) -> str:
    return f"/collection/{quote(name, safe='')}"


async def _add(view: CollectionsView) -> None:
    """Add a collection, and open its page, on which files are added. A name such as "My Papers" is also shown."""

    def add(values: dict[str, str]) -> bool:
        typed, name = values["Name"], slug(values["Name"])
        shown = values["Display name"] or (None if name == typed else typed)
        view.state.workspace.library.create_collection(name, values["Description"], shown)
        return True

    async def add_and_open(values: dict[str, str]) -> bool:
        added = await _attempt_write(view, add, values)
        if added:
            ui.navigate.to(_address(slug(values["Name"])))
        return added

    await ask_fields(
        "Add collection",
        "Add",
        {"Name": "", "Display name": "", "Description": ""},
        add_and_open,
        hint="Routers and chat tools choose the collection by its description.",
    )


async def _edit(view: CollectionsView, entry: CollectionState) -> None:
    shown = {
        "Name": entry.name,
        "Display name": _own_display_name(entry.display_name, entry.name),
        "Description": entry.description,
    }

    def save(values: dict[str, str]) -> bool:
        changed = {field: text for field, text in values.items() if text != shown[field]}
        return _save(view.state, shown, changed)

    title = f"Edit {entry.display_name}"
    await ask_fields(title, "Save", shown.copy(), lambda values: _attempt_write(view, save, values))


async def _attempt_write(
    view: CollectionsView, write: Callable[[dict[str, str]], bool], values: dict[str, str]
) -> bool:
    done = await attempt(write, values)
    await view.follower.refresh()
    return bool(done)


def _save(state: AppState, shown: dict[str, str], changed: dict[str, str]) -> bool:
    """Save the changed fields of a form that had the values ``shown``.

    Raises:
        ConfigError: Another window or program changed one of the fields, or the collection is receiving files.
    """
    library, name = state.workspace.library, shown["Name"]
    entry = library.collections.entry(name)
    now = {"Display name": _own_display_name(entry.display_name or "", name), "Description": entry.description}
    for label in now.keys() & changed.keys():
        if now[label] != shown[label]:
            shown[label] = now[label]
            raise ConfigError(
                f"another window or program has changed {label!r} of {name!r} to {now[label]!r}; save again to "
                "overwrite it"
            )
    if "Name" in changed:
        if state.jobs.pending(name):
            raise ConfigError(f"{name!r} is receiving files; rename it when they are ingested")
        library.rename_collection(name, changed["Name"])
        shown["Name"] = name = changed["Name"]
    if now.keys() & changed.keys():
        library.update_description(name, changed.get("Description"), display_name=changed.get("Display name"))
    return True


def _own_display_name(display_name: str, name: str) -> str:
    """Return the display name, or an empty text if it is the name itself."""
    return "" if display_name == name else display_name


async def _delete(view: CollectionsView, entry: CollectionState) -> None:
    confirmed, note = entry.sources, ""
    while await confirm(
        f"Delete {entry.display_name}?", note + _consequence(view.state, entry.name, confirmed), "Delete"
    ):
        changed = await attempt(_delete_confirmed, view.state, entry.name, confirmed)
        if not changed:
            break
        confirmed, note = changed, "It has other sources now. "
    await view.follower.refresh()


def _consequence(state: AppState, name: str, sources: Sequence[SourceInfo]) -> str:
    count, chunks = len(sources), sum(info.chunks for info in sources)
    go = f"{numbered(count, '[source|sources]')} with {numbered(chunks, '[chunk|chunks]')}"
    waiting = " Files that are waiting for it will not be added." if state.jobs.pending(name) else ""
    kept = "Your files stay, except copies that were uploaded here."
    return f"{go} {agreeing(count, '[is|are]')} deleted with it. {kept}{waiting}"


def _delete_confirmed(state: AppState, name: str, confirmed: Sequence[SourceInfo]) -> tuple[SourceInfo, ...]:
    """Delete the collection, or return its sources if they are not those that the visitor has confirmed."""
    library = state.workspace.library
    sources = library.sources(name)
    if {info.source_file for info in sources} - {info.source_file for info in confirmed}:
        return tuple(sources)
    library.delete_collection(name)
    state.forget_uploads(sources)
    return ()
