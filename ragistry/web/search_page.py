"""``/search``: ask, see the passages and why they came, by one technique or by two side by side."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from urllib.parse import urlencode

from nicegui import ui

from ragistry.errors import UnknownTechniqueError
from ragistry.techniques.registry import TechniqueRegistry
from ragistry.types import RetrievalResult
from ragistry.web.controls import button
from ragistry.web.frame import empty, frame, heading
from ragistry.web.holdings import Holdings
from ragistry.web.results import Beside, results
from ragistry.web.shared import Following
from ragistry.web.site import PATIENCE, Site, attempt, complain

NONE = ""
MOST = 100
"""Passages that can be asked for."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: by ``technique``, and by ``other`` beside it; of all collections where none is named."""

    query: str = ""
    technique: str = ""
    other: str = NONE
    collections: list[str] = field(default_factory=list)
    top_k: int = 5

    def techniques(self) -> list[str]:
        """Those that answer it, each once."""
        return list(dict.fromkeys(name for name in (self.technique, self.other) if name))

    def address(self) -> str:
        """What follows the path of the page's address where this is asked."""
        given = {"q": self.query, "technique": self.technique, "compare": self.other}
        given |= {"collection": ",".join(self.collections), "k": str(self.top_k)}
        return "?" + urlencode({name: value for name, value in given.items() if value})


def register(site: Site) -> None:
    """Serve the page; ``?q=…`` asks at once."""

    @ui.page("/search", response_timeout=PATIENCE)
    async def search(q: str = "", technique: str = "", compare: str = "", collection: str = "", k: str = "") -> None:
        registry = site.workspace.registry
        names = registry.names()
        wrong = [*_unknown(registry, technique), *_unknown(registry, compare), *_no_limit(k)]
        first = Question(
            q,
            technique if technique in names else registry.default,
            compare if compare in names else NONE,
            [name for name in collection.split(",") if name],
            int(k) if k and not _no_limit(k) else min(site.workspace.settings.n_results, MOST),
        )
        with frame("Search", "Search"):
            heading("Search")
            ask = await _search(site, first, names)
        if q or wrong:
            await ui.context.client.connected()  # the page is shown first: the model may have to be loaded
            if not ui.context.client.is_deleted:
                for line in wrong:
                    complain(line)
                if not wrong:
                    await ask()


def _unknown(registry: TechniqueRegistry, name: str) -> list[str]:
    """What is to be said of a technique in the address, such as one that was renamed since."""
    try:
        if name:
            registry.entry(name)
    except UnknownTechniqueError as error:
        return [str(error)]
    return []


def _no_limit(k: str) -> list[str]:
    """The same of the number of passages."""
    if not k or (k.isascii() and k.isdecimal() and 1 <= int(k[:9]) <= MOST):
        return []
    return [f"k={k[:20]!r} in the address is not 1 to {MOST}; choose how many passages"]


async def _search(site: Site, first: Question, names: list[str]) -> Callable[[], Awaitable[None]]:
    asked = 0

    async def ask() -> None:
        nonlocal asked
        question = read()
        if not question.query.strip():
            complain("type what to look for")
            return
        if not 1 <= question.top_k <= MOST:
            complain(f"passages: {question.top_k!r} is not 1 to {MOST}")
            return
        ui.navigate.history.replace(question.address())  # for a reload, the way back, and a bookmark
        asked = this = asked + 1
        busy.set_text("Searching…")
        found = await _answers(site, question)
        if this == asked:  # else another question was asked meanwhile
            busy.set_text("")
            answers.clear()
            with answers:
                _side_by_side(site, found)

    read, offer = _form(first, names, ask)
    following = Following(site.holdings)
    busy = ui.label().classes("rg-dim rg-busy").props("role=status")
    nothing = empty()
    answers = ui.element("div")

    def show(found: Holdings) -> None:
        offer({entry.name: entry.display_name for entry in found})
        if any(entry.chunks for entry in found):
            nothing("", "")
        else:
            nothing("There is nothing to search yet.", "Add a collection and drop files into it.")

    await following.begin(show)
    return ask


def _form(
    first: Question, names: list[str], ask: Callable[[], Awaitable[None]]
) -> tuple[Callable[[], Question], Callable[[dict[str, str]], None]]:
    """The fields; gives what reads the question from them, and what offers these collections."""
    with ui.element("div").classes("rg-search").props("role=search"):
        query = ui.input("What to look for", value=first.query).classes("rg-query").props("outlined autofocus")
        query.on("keydown.enter", ask)
        button("Search", ask, icon="search", kind="main")
    with ui.element("div").classes("rg-options"):
        technique = ui.select(names, value=first.technique, label="Technique").props("dense outlined")
        others = {NONE: "none", **{name: name for name in names}}
        other = ui.select(others, value=first.other, label="Beside it").props("dense outlined")
        chosen = {name: name for name in first.collections}
        collections = ui.select(chosen, value=first.collections, label="Collections (all)", multiple=True)
        collections.props("dense outlined use-chips")
        top_k = ui.number("Passages", value=first.top_k, min=1, max=MOST, precision=0).props("dense outlined")

    def read() -> Question:
        return Question(query.value or "", technique.value, other.value, list(collections.value), int(top_k.value or 0))

    def offer(known: dict[str, str]) -> None:
        # One that is chosen stays, so that nobody searches elsewhere without a word when it is gone.
        options = {name: name for name in collections.value} | known
        if options != collections.options:
            collections.set_options(options)

    return read, offer


async def _answers(site: Site, question: Question) -> list[tuple[str, RetrievalResult]]:
    """A result by each technique; where one fails, that is said."""

    def search(technique: str) -> RetrievalResult:
        where = site.workspace.library.scope.of(*question.collections) if question.collections else None
        return site.workspace.search(question.query, technique=technique, top_k=question.top_k, where=where)

    found = [(technique, await attempt(search, technique)) for technique in question.techniques()]
    return [(technique, result) for technique, result in found if result is not None]


def _side_by_side(site: Site, answers: list[tuple[str, RetrievalResult]]) -> None:
    with ui.element("div").classes("rg-answers" + (" rg-two" if len(answers) > 1 else "")):
        for side, (technique, result) in enumerate(answers):
            with ui.element("section").classes("rg-answer").props(f'aria-label="Results by {technique}"'):
                results(site, technique, result, _beside(side, answers) if len(answers) > 1 else None)


def _beside(side: int, answers: list[tuple[str, RetrievalResult]]) -> Beside:
    _, other = answers[1 - side]
    return Beside(side, {document.id: rank for rank, document in enumerate(other.documents, start=1)})
