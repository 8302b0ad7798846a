"""What is suggested while a question is typed: titles and headings of the library."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable
from itertools import islice
from math import inf
from pathlib import PurePath
from time import monotonic

from nicegui import events, ui

from ragistry.errors import RagistryError
from ragistry.types import Document
from ragistry.utils.quoting import one_line
from ragistry.web.site import Site, in_thread

SHOWN = 8
SHORTEST = 2
"""Characters from which on something is suggested."""
PAUSE = 0.15
"""Seconds without a key before something is looked for."""
EVERY = 20.0
"""Seconds before headings are read again: while files are taken in, sources change all the time."""
CHUNKS = 50_000
"""Chunks whose headings are read at most."""


class Headings:
    """The titles and headings of a library, read again some time after its sources have changed."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._version: object = None
        self._known: list[str] = []
        self._read = -inf

    def like(self, typed: str) -> list[str]:
        """Those in which every word that was typed begins a word; the shortest first."""
        version = self._site.holdings.value
        if version is not self._version and monotonic() - self._read > EVERY:
            self._version, self._read = version, monotonic()
            workspace = self._site.workspace
            chunks = workspace.store.scan(workspace.library.scope.of_all())
            self._known = sorted(set(_headings(chunks)), key=lambda text: (len(text), text))
        wanted = [re.compile(rf"\b{re.escape(word)}", re.I) for word in typed.split()]
        return list(islice((text for text in self._known if all(one.search(text) for one in wanted)), SHOWN))


def _headings(chunks: Iterable[Document]) -> Iterable[str]:
    for chunk in islice(chunks, CHUNKS):
        get = chunk.metadata.get
        title = get("title") or PurePath(str(get("source_file") or "")).stem
        for part in (title, *str(get("heading_context") or "").split(" > ")):
            text = one_line(part, 120).strip()
            if len(text) > SHORTEST:
                yield text


def suggest(query: ui.input, known: Headings, ask: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    """A list below a field that fills and asks it; call what this gives to put the list away."""
    query.props(
        "role=combobox aria-autocomplete=list aria-controls=rg-suggestions aria-expanded=false autocomplete=off"
    )
    shown = ui.element("ul").props('id=rg-suggestions role=listbox aria-label="Suggestions" hidden')
    turn = 0

    async def look(event: events.ValueChangeEventArguments[str | None]) -> None:
        nonlocal turn
        turn = this = turn + 1
        typed = (event.value or "").strip()
        await asyncio.sleep(PAUSE)
        if this != turn:
            return
        try:
            found = await in_thread(known.like, typed) if len(typed) >= SHORTEST else []
        except RagistryError:  # the search itself says what is wrong
            found = []
        if this == turn and not shown.is_deleted:
            draw([text for text in found if text.casefold() != typed.casefold()])

    def draw(texts: list[str]) -> None:
        shown.clear()
        with shown:
            for number, text in enumerate(texts):
                option = ui.element("li").props(f"role=option id=rg-suggestion-{number} aria-selected=false")
                option.on("mousedown", js_handler="(event) => event.preventDefault()")  # the field keeps the focus
                option.on("click", lambda text=text: choose(text))
                with option:
                    ui.label(text)
        ui.run_javascript("ragistryReader.suggested()")

    async def choose(text: str) -> None:
        query.set_value(text)
        await ask()

    def put_away() -> None:
        nonlocal turn
        turn += 1
        shown.clear()
        ui.run_javascript("ragistryReader.hide()")

    query.on_value_change(look)
    return put_away
