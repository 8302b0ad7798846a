"""The box "Missing a source?" below the results: why a search does not return a source."""

from __future__ import annotations

from collections.abc import Callable

from nicegui import ui

from ragistry.errors import RagistryError
from ragistry.library.why import Explanation, explain
from ragistry.types import SearchRequest
from ragistry.web.app_state import AppState, in_thread
from ragistry.web.widgets import button


def why_panel(state: AppState, request: Callable[[], SearchRequest]) -> None:
    """Show the box. ``request`` returns the search to explain."""
    turn = 0

    async def run() -> None:
        nonlocal turn
        turn = this = turn + 1
        said.set_text("Searching…")
        more.clear()
        found = await in_thread(_explanation, state, request(), source.value or "")
        if this != turn or said.is_deleted:
            return
        if isinstance(found, str):
            said.set_text(found)
            return
        said.set_text(found.message)
        with more:
            for one in found.ranks:
                rank = "not found" if one.rank is None else f"rank {one.rank}"
                score = "" if one.score is None else f", score {one.score:.4g}"
                ui.label(f"{one.technique}: {rank} of {one.results}{score}").classes("rg-dim")
            for remedy in found.remedies:
                ui.label(f"To find it: {remedy}")
            if found.cost:
                ui.label(f"The technique asks a model, so it ran once: {found.cost}").classes("rg-dim")

    with ui.element("details").classes("rg-missing"):
        with ui.element("summary"):
            ui.label("Missing a source?")
        with ui.element("div").classes("rg-options"):
            source = ui.input("Source, or source:page").props("dense outlined").on("keydown.enter", run)
            button("Explain", run)
        said = ui.label().props("role=status")
        more = ui.element("div")


def _explanation(state: AppState, request: SearchRequest, expected: str) -> Explanation | str:
    try:
        return explain(state.workspace.library, request, expected)
    except RagistryError as error:
        return str(error)
