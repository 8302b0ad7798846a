"""The search form."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Self
from urllib.parse import urlencode

from nicegui import ui

from ragistry.techniques.classes import first_sentence
from ragistry.techniques.registry import TechniqueRegistry
from ragistry.types import SearchRequest, Where
from ragistry.utils.quoting import visible_line
from ragistry.web.widgets import button, details

NONE = ""
FEWEST, MOST = 20, 100
"""Default and maximum number of passages."""
CANNOT_RUN = "Cannot run here"


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """A query with its options, as in the address of the page.

    Attributes:
        query: Text of the query.
        technique: Technique that answers it.
        other: Second technique for a comparison.
        collections: Collections to search; empty: all.
        filters: Values of metadata to which the search is limited (`filters`).
        top_k: Number of passages.
        passage: Id of the passage that is open in the reader.
        ask: Also generate an answer.
        previous: The question that this one follows; empty: none.
    """

    query: str = ""
    technique: str = ""
    other: str = NONE
    collections: list[str] = field(default_factory=list)
    filters: list[str] = field(default_factory=list)
    top_k: int = FEWEST
    passage: str = ""
    ask: bool = False
    previous: str = ""

    def techniques(self) -> list[str]:
        """Return the techniques without duplicates."""
        return list(dict.fromkeys(name for name in (self.technique, self.other) if name))

    @classmethod
    def of_address(cls, values: Mapping[str, str], technique: str, top_k: int) -> Self:
        """Read the query string of the page's address. ``technique`` and ``top_k`` are the defaults."""
        k = values.get("k", "")
        return cls(
            values.get("q", ""),
            values.get("technique") or technique,
            values.get("compare", NONE),
            [name for name in values.get("collection", "").split(",") if name],
            [name for name in values.get("filter", "").split("\n") if name],
            (int(k[:9]) if k.isascii() and k.isdecimal() else 0) if k else top_k,
            values.get("open", ""),
            values.get("ask") == "1",
            values.get("follows", ""),
        )

    def request(self, technique: str, where: Where | None) -> SearchRequest:
        """Return the search with one of the techniques."""
        return SearchRequest(self.query, technique, top_k=self.top_k, where=where, previous=self.previous or None)

    def address(self) -> str:
        """Return the query string of the page's address."""
        values = {"q": self.query, "technique": self.technique, "compare": self.other}
        values |= {"ask": "1" if self.ask else "", "follows": self.previous}
        values |= {"collection": ",".join(self.collections), "filter": "\n".join(self.filters)}
        values |= {"k": str(self.top_k), "open": self.passage}
        return "?" + urlencode({name: value for name, value in values.items() if value})


class SearchForm:
    """The fields of a query. A change of an option repeats the search."""

    def __init__(
        self,
        registry: TechniqueRegistry,
        first: SearchQuery,
        search: Callable[[bool], Awaitable[None]],
    ) -> None:
        names = {name: f"{name}\n{caption(registry, name)}" for name in (*registry.names(), *registry.broken)}
        self._search = search
        self._asked = first.ask
        self._last = first  # what was searched last; a follow-up follows its query
        with ui.element("div").classes("rg-search").props("role=search"):
            with ui.element("div").classes("rg-field"):
                self._query = ui.input(placeholder="What to look for", value=first.query).classes("rg-query")
                self._query.props('borderless autofocus clearable autocomplete=off aria-label="What to look for"')
                with_key = "(event) => emit(event.ctrlKey || event.metaKey)"
                self._query.on("keydown.enter", lambda event: self._run(bool(event.args)), js_handler=with_key)
                with self._query.add_slot("append"):
                    ui.html("<kbd>/</kbd>", sanitize=False).props("aria-hidden=true").classes("rg-key")
            button("Search", partial(self._run, False), icon="search", kind="main")
            with button("Ask", partial(self._run, True), icon="chat_bubble_outline").props('aria-label="Ask"'):
                ui.tooltip("Generate an answer from the results (Ctrl+Enter)")
        with ui.element("div").classes("rg-follow"):
            self._follow = button("Follow up", self._begin_follow_up, icon="subdirectory_arrow_right").props("dense")
            self._chip = button("", self._end_follow_up, icon="close").props("dense").classes("rg-follows")
        self.searched(first)
        with ui.element("div").classes("rg-options") as self._options:
            self._technique = _techniques("Technique", names, first.technique)
            chosen = {name: name for name in first.collections}
            self._collections = ui.select(chosen, value=first.collections, label="Collections (all)", multiple=True)
            self._collections.props("dense outlined options-dense")
            self._filters = ui.select(
                {name: name for name in first.filters}, value=first.filters, label="Metadata (any)", multiple=True
            )
            self._filters.props("dense outlined options-dense use-chips")
            with details("More", "rg-options-more") as more, ui.element("div").classes("rg-options"):
                self._other = _techniques("Compare with", {NONE: "none\nUse only one technique."} | names, first.other)
                self._top_k = ui.number("Passages", value=first.top_k, min=1, max=MOST, precision=0)
                self._top_k.props("dense outlined debounce=400")
            if first.other:
                more.props("open")
        for control in (self._technique, self._collections, self._filters, self._other, self._top_k):
            control.on_value_change(self._again)

    async def _run(self, asks: bool) -> None:
        self._asked = asks
        await self._search(asks)

    async def _again(self) -> None:
        """Repeat what was done last with other options."""
        if (self._query.value or "").strip():
            await self._search(self._asked)

    def searched(self, question: SearchQuery) -> None:
        """Offer a follow-up to what was searched, and show which question it follows."""
        self._last = question
        self._follow.set_visibility(bool(question.query) and not question.previous)
        self._show_previous()

    def _show_previous(self) -> None:
        previous = self._last.previous
        self._chip.set_text(f"follows: {visible_line(previous, 60)}")
        self._chip.props["aria-label"] = f"Remove: follows {visible_line(previous, 200)}"
        self._chip.set_visibility(bool(previous))

    def _begin_follow_up(self) -> None:
        """Let the next query follow the last one, until the chip is removed."""
        self._last = replace(self._last, previous=self._last.query)
        self._follow.set_visibility(False)
        self._show_previous()
        self._query.set_value("")
        self._query.run_method("focus")

    async def _end_follow_up(self) -> None:
        self.searched(replace(self._last, previous=""))
        await self._again()

    def question(self, asks: bool) -> SearchQuery:
        """Return the query and its options. In a conversation, another query follows the last one."""
        query, last = self._query.value or "", self._last
        previous = last.query if last.previous and query != last.query else last.previous
        top_k = int(self._top_k.value or 0)
        technique, collections, filters = self._technique.value or "", self._collections.value, self._filters.value
        return SearchQuery(
            query, technique, self._other.value, [*collections], [*filters], top_k, ask=asks, previous=previous
        )

    def offer(self, collections: Mapping[str, str], filters: Mapping[str, str], *, is_empty: bool) -> None:
        """Set the available collections and filters, with their labels. An empty library has nothing to choose."""
        self._options.set_visibility(not is_empty)
        for control, known in ((self._collections, collections), (self._filters, filters)):
            # Selected ones stay, so that a search never silently covers more.
            options = {name: name for name in control.value} | dict(known)
            if options != control.options:
                control.set_options(options)
        self._filters.set_visibility(bool(self._filters.options))


def caption(registry: TechniqueRegistry, name: str) -> str:
    """Describe a technique in one line, or say that it cannot run here."""
    if name in registry.broken:
        return f"{CANNOT_RUN}: its entry has an error."
    if kind := registry.missing_model(name):
        return f"{CANNOT_RUN}: it needs a {kind}, and none is configured."
    return first_sentence(registry.technique_class(name))


def _techniques(label: str, names: Mapping[str, str], value: str) -> ui.select:
    """Show a menu of techniques with their descriptions."""
    made = ui.select(dict(names), value=value if value in names else None, label=label).props(
        "dense outlined popup-content-class=rg-menu"
    )
    made.add_slot("selected-item", "<span>{{ props.opt.label.split('\\n')[0] }}</span>")
    made.add_slot(
        "option",
        f"""<q-item v-bind="props.itemProps"
                    :class="{{'rg-cannot-run': props.opt.label.split('\\n')[1].startsWith('{CANNOT_RUN}')}}">
           <q-item-section>
             <q-item-label>{{{{ props.opt.label.split('\\n')[0] }}}}</q-item-label>
             <q-item-label caption>{{{{ props.opt.label.split('\\n')[1] }}}}</q-item-label>
           </q-item-section></q-item>""",
    )
    return made
