"""The form of the search page: what to look for, by which techniques, where, and how much."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import urlencode

from nicegui import ui

from ragistry.techniques.classes import first_sentence
from ragistry.techniques.registry import TechniqueRegistry
from ragistry.web.controls import button
from ragistry.web.suggestions import Headings, suggest

NONE = ""
FEWEST, MOST = 20, 100
"""Passages that are asked for unless the settings say more, and that can be asked for."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: by ``technique``, and by ``other`` beside it; of all collections where none is named.

    ``ask``: a generator is to answer it. ``passage``: the id of the one that is open in the reader.
    """

    query: str = ""
    technique: str = ""
    other: str = NONE
    collections: list[str] = field(default_factory=list)
    top_k: int = FEWEST
    passage: str = ""
    ask: bool = False

    def techniques(self) -> list[str]:
        """Those that answer it, each once."""
        return list(dict.fromkeys(name for name in (self.technique, self.other) if name))

    def address(self) -> str:
        """What follows the path of the page's address where this is asked."""
        given = {"q": self.query, "technique": self.technique, "compare": self.other}
        given |= {"ask": "1" if self.ask else ""}
        given |= {"collection": ",".join(self.collections), "k": str(self.top_k), "open": self.passage}
        return "?" + urlencode({name: value for name, value in given.items() if value})


class Form:
    """What to look for, and how. Changing how asks again."""

    def __init__(
        self,
        registry: TechniqueRegistry,
        first: Question,
        headings: Headings,
        ask: Callable[[], Awaitable[None]],
    ) -> None:
        names = {name: f"{name}\n{first_sentence(registry.technique_class(name))}" for name in registry.names()}
        self._ask = ask
        self._asks = first.ask
        with ui.element("div").classes("rg-search").props("role=search"):
            with ui.element("div").classes("rg-field"):
                self._query = ui.input(placeholder="What to look for", value=first.query).classes("rg-query")
                self._query.props('borderless autofocus clearable aria-label="What to look for"')
                self._query.on("keydown.enter", lambda: ask())
                with self._query.add_slot("append"):
                    ui.html("<kbd>/</kbd>", sanitize=False).props("aria-hidden=true").classes("rg-key")
                self.put_away = suggest(self._query, headings, ask)
            self._buttons = {
                False: button("Search", partial(self._as, False), icon="search"),
                True: button("Ask", partial(self._as, True), icon="chat_bubble_outline"),
            }
        self._mark()
        with ui.element("div").classes("rg-options"):
            self._technique = _techniques("Technique", names, first.technique)
            chosen = {name: name for name in first.collections}
            self._collections = ui.select(chosen, value=first.collections, label="Collections (all)", multiple=True)
            self._collections.props("dense outlined options-dense")
            with ui.element("details").classes("rg-options-more") as more:
                with ui.element("summary"):
                    ui.label("More")
                with ui.element("div").classes("rg-options"):
                    self._other = _techniques(
                        "Compare with", {NONE: "none\nOne technique answers."} | names, first.other
                    )
                    self._top_k = ui.number("Passages", value=first.top_k, min=1, max=MOST, precision=0)
                    self._top_k.props("dense outlined debounce=400")
            if first.other:
                more.props("open")
        for control in (self._technique, self._collections, self._other, self._top_k):
            control.on_value_change(self._again)

    async def _as(self, asks: bool) -> None:
        """Search, or ask a generator too; Enter does the same from now on."""
        self._asks = asks
        self._mark()
        await self._ask()

    def _mark(self) -> None:
        for asks, one in self._buttons.items():
            one.classes(add="rg-button-main") if asks == self._asks else one.classes(remove="rg-button-main")

    async def _again(self) -> None:
        if (self._query.value or "").strip():
            await self._ask()

    def question(self) -> Question:
        """What the fields say."""
        top_k = int(self._top_k.value or 0)
        technique, collections = self._technique.value or "", list(self._collections.value)
        return Question(
            self._query.value or "", technique, self._other.value, collections, top_k, ask=self._asks
        )  # fmt: skip

    def offer(self, known: Mapping[str, str]) -> None:
        """Offer these collections."""
        # One that is chosen stays, so that nobody searches elsewhere without a word when it is gone.
        options = {name: name for name in self._collections.value} | dict(known)
        if options != self._collections.options:
            self._collections.set_options(options)


def _techniques(label: str, names: Mapping[str, str], value: str) -> ui.select:
    """A menu of techniques: the name, and what it does below it."""
    made = ui.select(dict(names), value=value if value in names else None, label=label).props(
        "dense outlined popup-content-class=rg-menu"
    )
    made.add_slot("selected-item", "<span>{{ props.opt.label.split('\\n')[0] }}</span>")
    made.add_slot(
        "option",
        """<q-item v-bind="props.itemProps"><q-item-section>
             <q-item-label>{{ props.opt.label.split('\\n')[0] }}</q-item-label>
             <q-item-label caption>{{ props.opt.label.split('\\n')[1] }}</q-item-label>
           </q-item-section></q-item>""",
    )
    return made
