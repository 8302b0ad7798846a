"""The page ``/``: search with one technique or two, generate an answer, read the sources."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from nicegui import ui
from starlette.requests import Request

from ragistry.errors import ConfigError, RagistryError
from ragistry.library.asked import log_question
from ragistry.library.why import explain
from ragistry.techniques.registry import TechniqueRegistry
from ragistry.types import SearchRequest, Where
from ragistry.utils.wording import numbered
from ragistry.web.answer_panel import AnswerPanel
from ragistry.web.app_state import PAGE_TIMEOUT, AppState, CollectionStates, in_thread
from ragistry.web.error_list import ErrorList
from ragistry.web.filters import filters_where, offered_filters
from ragistry.web.layout import heading, page_layout
from ragistry.web.polling import Follower
from ragistry.web.reader import ReaderPanel
from ragistry.web.results import TechniqueResults, prepare_results, side_by_side
from ragistry.web.search_form import FEWEST, MOST, NONE, SearchForm, SearchQuery
from ragistry.web.widgets import button, details
from ragistry.workspace import Workspace


def register(state: AppState) -> None:
    """Register the page.

    In the address, ``q`` is searched immediately, ``ask=1`` also generates an answer, ``follows`` is the question
    before, and ``open`` opens a passage.
    """

    @ui.page("/", response_timeout=PAGE_TIMEOUT)
    async def search(request: Request) -> None:
        registry = state.workspace.registry
        names = registry.names()
        default = registry.default if registry.default in names else next(iter(names), "")
        number = min(max(FEWEST, state.workspace.settings.n_results), MOST)
        first = SearchQuery.of_address(request.query_params, registry.default, number)
        wrong = [*_unknown(registry, first.technique), *_unknown(registry, first.other)]
        if not 1 <= first.top_k <= MOST:
            k = request.query_params["k"][:20]
            wrong.append(f"k={k!r} in the address is not a number from 1 to {MOST}; choose the number of passages")
        first = replace(
            first,
            technique=first.technique if first.technique in names else default,
            other=first.other if first.other in names else NONE,
            top_k=first.top_k if 1 <= first.top_k <= MOST else number,
        )
        with page_layout("Search", "Search"):
            page = SearchPage(state, first)
            await page.begin()
        if first.query or wrong:
            await ui.context.client.connected()  # show the page first, because the model may have to be loaded
            if not ui.context.client.is_deleted:
                page.show_errors(wrong)
                if not wrong:
                    await page.search(first.ask, first.passage)


def _unknown(registry: TechniqueRegistry, name: str) -> list[str]:
    """Return the error of a technique in the address, which may be unknown or invalid."""
    try:
        if name:
            registry.entry(name)
    except ConfigError as error:
        return [str(error)]
    return []


class SearchPage:
    """One window: the form, the answer, the results, and the reader."""

    def __init__(self, state: AppState, first: SearchQuery) -> None:
        self._state = state
        self._asked = first
        self._turn = 0
        self._whole = ui.element("div").classes("rg-ask")
        with self._whole:
            heading("Search your library").classes("rg-ask-title")
            self._form = SearchForm(state.workspace.registry, first, self.search)
            self._follower = Follower(state.collections)
            self._busy = ui.label().classes("rg-dim rg-busy").props("role=status")
            self._about = ui.label().classes("rg-dim rg-about")
            self._errors = ErrorList()
            with ui.element("div").classes("rg-welcome") as self._welcome:
                ui.label("The library is empty.").classes("rg-welcome-text")
                ui.link("Add your first files", "/collections")
            self._welcome.set_visibility(False)
            with ui.element("div").classes("rg-split"):
                with ui.element("div").classes("rg-column"):
                    self._answering = AnswerPanel(state, lambda document: self._reader.open(document))
                    self._answers = ui.element("div")
                self._reader = ReaderPanel(state, self._opened)

    async def begin(self) -> None:
        """Show the collections, and follow their changes."""
        await self._follower.begin(self._show)

    def _show(self, found: CollectionStates) -> None:
        filled = [entry.display_name for entry in found if entry.chunks]
        filters = offered_filters(info for entry in found for info in entry.sources)
        self._form.offer({entry.name: entry.display_name for entry in found}, filters, is_empty=not filled)
        sources = sum(len(entry.sources) for entry in found)
        self._welcome.set_visibility(not filled)
        names = ", ".join(filled[:4]) + (f" and {len(filled) - 4} more" if len(filled) > 4 else "")
        self._about.set_text(f"{numbered(sources, '[source|sources]')} in {names}" if filled else "")

    def show_errors(self, errors: Sequence[str]) -> None:
        """Replace the errors, which stand above the results."""
        self._errors.clear()
        for error in errors:
            self._errors.add(error)

    async def search(self, asks: bool, passage: str = "") -> None:
        """Run the query of the form. If no technique answers, the results before stay, with the errors above them.

        Args:
            asks: Also generate an answer.
            passage: Id of a result to open.
        """
        question = self._form.question(asks)
        if not question.query.strip():
            self.show_errors(["the query is empty; type what to look for"])
            return
        if not 1 <= question.top_k <= MOST:
            self.show_errors([f"passages: {question.top_k!r} is not a number from 1 to {MOST}"])
            return
        self._turn = this = self._turn + 1
        self._answering.stop()
        self._busy.set_text("Searching…")
        found, errors = await in_thread(_answers, self._state, question)
        if this != self._turn or self._answers.is_deleted:
            return  # another query was sent meanwhile, or the window was closed
        self._busy.set_text("")
        self.show_errors(errors)
        if not found:
            return
        self._whole.classes("rg-asked")
        passages = list({one.id: one for given in found for one in given.passages()}.values())
        self._reader.offer(question.query, passages)
        self._asked = question
        self._form.searched(question)
        ui.navigate.history.replace(question.address())  # for reload, back and bookmarks
        self._answering.hide()
        self._answers.clear()
        with self._answers:
            side_by_side(found, self._reader.open)
            _why_panel(self._state, lambda: _request(self._state.workspace, question, found[0].technique))
        for document in passages:
            if document.id == passage:
                await self._reader.open(document)
                break
        if question.ask:
            read = found[0].result.documents[: self._state.workspace.settings.n_results]
            await self._answering.write(question.query, read, question.previous or None)

    def _opened(self, passage: str) -> None:
        self._whole.classes(add="rg-reading") if passage else self._whole.classes(remove="rg-reading")
        self._asked = replace(self._asked, passage=passage)
        ui.navigate.history.replace(self._asked.address())


def _answers(state: AppState, question: SearchQuery) -> tuple[list[TechniqueResults], list[str]]:
    """Search with each technique. Return the results, and the errors of those that fail."""
    workspace, found, errors = state.workspace, [], []
    log_question(workspace.library, question.query, "page")
    for technique in question.techniques():
        try:
            if reason := workspace.registry.unusable(technique):
                errors.append(reason)
            else:
                answer = workspace.run_search(_request(workspace, question, technique))
                found.append(prepare_results(workspace, technique, answer))
        except RagistryError as error:
            errors.append(str(error))
    return found, errors


def _request(workspace: Workspace, question: SearchQuery, technique: str) -> SearchRequest:
    collections = question.collections
    limits: list[Where] = []
    if len(collections) > 1:
        limits.append(workspace.library.scope.current_names().condition_for(*collections))
    limits += [where] if (where := filters_where(question.filters)) else []
    request = question.request(technique, {"$and": limits} if limits else None)
    return replace(request, collection=collections[0]) if len(collections) == 1 else request


def _why_panel(state: AppState, request: Callable[[], SearchRequest]) -> None:
    """Show the box that explains why a search does not return a source. ``request`` returns the search."""
    turn = 0

    async def run() -> None:
        nonlocal turn
        turn = this = turn + 1
        said.set_text("Searching…")
        more.clear()
        found, error = None, ""
        try:
            found = await in_thread(explain, state.workspace.library, request(), source.value or "")
        except RagistryError as problem:
            error = str(problem)
        if this != turn or said.is_deleted:
            return
        said.set_text(found.message if found else error)
        if not found:
            return
        with more:
            for one in found.ranks:
                rank = "not found" if one.rank is None else f"rank {one.rank}"
                score = "" if one.score is None else f", score {one.score:.4g}"
                ui.label(f"{one.technique}: {rank} of {one.results}{score}").classes("rg-dim")
            for remedy in found.remedies:
                ui.label(f"To find it: {remedy}")
            if found.cost:
                ui.label(f"The technique asks a model, so it ran once: {found.cost}").classes("rg-dim")

    with details("Missing a source?", "rg-missing"):
        with ui.element("div").classes("rg-options"):
            source = ui.input("Source, or source:page").props("dense outlined").on("keydown.enter", run)
            button("Explain", run)
        said = ui.label().props("role=status")
        more = ui.element("div")
