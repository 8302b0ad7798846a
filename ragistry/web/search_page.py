"""``/search``: ask, see the passages and why they came, by one technique or by two side by side."""

from __future__ import annotations

from dataclasses import dataclass, field

from nicegui import ui

from ragistry.types import RetrievalResult
from ragistry.web.controls import button
from ragistry.web.frame import empty, frame, heading
from ragistry.web.results import results
from ragistry.web.site import Site, attempt, complain, in_thread

NONE = ""


@dataclass(slots=True)
class Asked:
    """What one window asks, and what it was answered: a result by each technique."""

    query: str = ""
    technique: str = ""
    other: str = NONE
    collections: list[str] = field(default_factory=list)
    top_k: int = 5
    answers: list[tuple[str, RetrievalResult]] = field(default_factory=list)


def register(site: Site) -> None:
    """Serve the page; ``?q=…`` asks at once."""

    @ui.page("/search")
    async def search(q: str = "", technique: str = "", compare: str = "", collection: str = "", k: int = 0) -> None:
        registry = site.workspace.registry
        names = registry.names()
        known = {
            item["name"]: item["display_name"] for item in await in_thread(site.workspace.library.list_collections)
        }
        asked = Asked(
            q,
            technique if technique in names else registry.default,
            compare if compare in names else NONE,
            [name for name in collection.split(",") if name in known],
            min(max(k or site.workspace.settings.n_results, 1), 100),
        )
        with frame("Search", "Search"):
            heading("Search")
            _form(site, asked, names, known)
            await _answers(site, asked)
        if asked.query:
            await _ask(site, asked)


def _form(site: Site, asked: Asked, names: list[str], known: dict[str, str]) -> None:
    async def ask() -> None:
        await _ask(site, asked)

    with ui.element("div").classes("rg-search").props("role=search"):
        box = ui.input("What to look for").bind_value(asked, "query").classes("rg-query").props("outlined autofocus")
        box.on("keydown.enter", ask)
        button("Search", ask, icon="search", kind="main")
    with ui.element("div").classes("rg-options"):
        ui.select(names, label="Technique").bind_value(asked, "technique").props("dense outlined")
        ui.select({NONE: "none", **{name: name for name in names}}, label="Beside it").bind_value(asked, "other").props(
            "dense outlined"
        )
        ui.select(known, label="Collections (all)", multiple=True).bind_value(asked, "collections").props(
            "dense outlined use-chips"
        )
        ui.number("Passages", min=1, max=100, precision=0).bind_value(asked, "top_k").props("dense outlined")


async def _ask(site: Site, asked: Asked) -> None:
    asked.answers = []
    if not asked.query.strip():
        complain("type what to look for")
        return
    if not 1 <= (asked.top_k or 0) <= 100:
        complain(f"passages: {asked.top_k!r} is not 1 to 100")
        return

    def search(technique: str) -> RetrievalResult:
        where = site.workspace.library.scope.of(*asked.collections) if asked.collections else None
        return site.workspace.search(asked.query, technique=technique, top_k=int(asked.top_k), where=where)

    for technique in dict.fromkeys(name for name in (asked.technique, asked.other) if name):
        result = await attempt(search, technique)
        if result is not None:
            asked.answers.append((technique, result))
    _answers.refresh()


@ui.refreshable
async def _answers(site: Site, asked: Asked) -> None:
    if not asked.answers:
        chunks = await attempt(site.workspace.library.count)
        if chunks == 0:
            empty("There is nothing to search yet.", "Add a collection and drop files into it.")
        return
    with ui.element("div").classes("rg-answers" + (" rg-two" if len(asked.answers) > 1 else "")):
        for technique, result in asked.answers:
            others = {
                document.id: place
                for name, other in asked.answers
                if name != technique
                for place, document in enumerate(other.documents, start=1)
            }
            with ui.element("section").classes("rg-answer").props(f'aria-label="Results by {technique}"'):
                results(site, technique, result, others if len(asked.answers) > 1 else None)
