"""``/``: search or ask, see the sources that answer and why, and read them; by one technique, or by two."""

from __future__ import annotations

from dataclasses import replace

from nicegui import ui

from ragistry.errors import ConfigError
from ragistry.techniques.registry import TechniqueRegistry
from ragistry.utils.wording import numbered
from ragistry.web.answering import Answering
from ragistry.web.frame import frame, heading
from ragistry.web.holdings import Holdings
from ragistry.web.reader import Reader
from ragistry.web.results import Found, shown, side_by_side
from ragistry.web.search_form import FEWEST, MOST, NONE, Form, Question
from ragistry.web.shared import Following
from ragistry.web.site import PATIENCE, Site, attempt, complain
from ragistry.web.suggestions import Headings
from ragistry.web.welcome import welcome


def register(site: Site) -> None:
    """Serve the page; ``?q=…`` searches at once, ``&ask=1`` asks a generator too, ``&open=ID`` opens a passage."""
    headings = Headings(site)

    @ui.page("/", response_timeout=PATIENCE)
    async def search(
        q: str = "",
        technique: str = "",
        compare: str = "",
        collection: str = "",
        k: str = "",
        open: str = "",
        ask: str = "",
    ) -> None:
        registry = site.workspace.registry
        names = registry.names()
        default = registry.default if registry.default in names else next(iter(names), "")
        wrong = [*_unknown(registry, technique or registry.default), *_unknown(registry, compare), *_no_limit(k)]
        first = Question(
            q,
            technique if technique in names else default,
            compare if compare in names else NONE,
            [name for name in collection.split(",") if name],
            int(k) if k and not _no_limit(k) else min(max(FEWEST, site.workspace.settings.n_results), MOST),
            ask=ask == "1",
        )
        with frame("Search", "Search"):
            page = SearchPage(site, first, headings)
            await page.begin()
        if q or wrong:
            await ui.context.client.connected()  # the page is shown first: the model may have to be loaded
            if not ui.context.client.is_deleted:
                for line in wrong:
                    complain(line)
                if not wrong:
                    await page.ask(open)


def _unknown(registry: TechniqueRegistry, name: str) -> list[str]:
    """What is to be said of a technique in the address, such as one that was renamed since, or has a broken entry."""
    try:
        if name:
            registry.entry(name)
    except ConfigError as error:
        return [str(error)]
    return []


def _no_limit(k: str) -> list[str]:
    """The same of the number of passages."""
    if not k or (k.isascii() and k.isdecimal() and 1 <= int(k[:9]) <= MOST):
        return []
    return [f"k={k[:20]!r} in the address is not 1 to {MOST}; choose how many passages"]


class SearchPage:
    """One window: the form, the answer, the results, and the reader beside them."""

    def __init__(self, site: Site, first: Question, headings: Headings) -> None:
        self._site = site
        self._asked = first
        self._turn = 0
        self._whole = ui.element("div").classes("rg-ask")
        with self._whole:
            heading("Search your library").classes("rg-ask-title")
            self._form = Form(site.workspace.registry, first, headings, self.ask)
            self._following = Following(site.holdings)
            self._busy = ui.label().classes("rg-dim rg-busy").props("role=status")
            self._about = ui.label().classes("rg-dim rg-about")
            self._welcome = welcome(site)
            with ui.element("div").classes("rg-split"):
                with ui.element("div").classes("rg-column"):
                    self._answering = Answering(site, lambda document: self._reader.open(document))
                    self._answers = ui.element("div")
                self._reader = Reader(site, self._opened)

    async def begin(self) -> None:
        """Show what there is to search, and follow how it changes."""
        await self._following.begin(self._show)

    def _show(self, found: Holdings) -> None:
        self._form.offer({entry.name: entry.display_name for entry in found})
        sources = sum(len(entry.sources) for entry in found)
        filled = [entry.display_name for entry in found if entry.chunks]
        self._welcome(found)
        names = ", ".join(filled[:4]) + (f" and {len(filled) - 4} more" if len(filled) > 4 else "")
        self._about.set_text(f"{numbered(sources, '[source|sources]')} in {names}" if filled else "")

    async def ask(self, passage: str = "") -> None:
        """Answer what the form says; ``passage``: the one of the answer to open."""
        self._form.put_away()
        question = self._form.question()
        if not question.query.strip():
            complain("type what to look for")
            return
        if not 1 <= question.top_k <= MOST:
            complain(f"passages: {question.top_k!r} is not 1 to {MOST}")
            return
        self._turn = this = self._turn + 1
        self._answering.stop()
        self._busy.set_text("Searching…")
        found = await _answers(self._site, question)
        if this != self._turn or self._answers.is_deleted:
            return  # another question was asked meanwhile, or the window was closed
        self._busy.set_text("")
        self._whole.classes("rg-asked")
        passages = list({one.id: one for given in found for one in given.passages()}.values())
        self._reader.offer(question.query, passages)
        self._asked = question
        ui.navigate.history.replace(question.address())  # for a reload, the way back, and a bookmark
        self._answering.hide()
        self._answers.clear()
        with self._answers:
            side_by_side(found, self._reader.open)
        for document in passages:
            if document.id == passage:
                await self._reader.open(document)
                break
        if question.ask and found:
            read = found[0].result.documents[: self._site.workspace.settings.n_results]
            await self._answering.write(question.query, read)

    def _opened(self, passage: str) -> None:
        self._whole.classes(add="rg-reading") if passage else self._whole.classes(remove="rg-reading")
        self._asked = replace(self._asked, passage=passage)
        ui.navigate.history.replace(self._asked.address())


async def _answers(site: Site, question: Question) -> list[Found]:
    """What each technique finds; where one fails, that is said."""

    def search(technique: str) -> Found:
        workspace = site.workspace
        where = workspace.library.scope.of(*question.collections) if question.collections else None
        result = workspace.search(question.query, technique=technique, top_k=question.top_k, where=where)
        return shown(workspace, technique, result)

    found = [await attempt(search, technique) for technique in question.techniques()]
    return [one for one in found if one is not None]
