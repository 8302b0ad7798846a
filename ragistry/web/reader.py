"""The reader next to the results: a passage with its surrounding text, and links to the next passages."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from nicegui import ui

from ragistry.chunking.joined import joined_text, spans
from ragistry.errors import CollectionNotFoundError, RagistryError
from ragistry.library.asked import log_question
from ragistry.presentation import blocks_of, excerpt, place_of
from ragistry.presentation.hits import citation_of, collection_of, source_of, spot_of, title_of
from ragistry.presentation.html import excerpt_html
from ragistry.protocols import DocumentStore
from ragistry.text.languages import chunk_language
from ragistry.types import Document
from ragistry.utils.ids import chunk_id
from ragistry.web.app_state import AppState, in_thread
from ragistry.web.files import file_address, image_address, original
from ragistry.web.widgets import button, icon_button
from ragistry.workspace import Workspace

REACH = 8
"""Number of chunks of context on each side."""


class ReaderText(NamedTuple):
    """A passage and its context as HTML, the addresses of its file and page image, and the place of the answering line.

    An address is empty if there is none. ``error``: why the passage cannot be read; then the text is empty.
    """

    before: str
    passage: str
    after: str
    file: str
    image: str
    place: Mapping[str, Any]
    error: str = ""


def text_of(state: AppState, query: str, document: Document) -> ReaderText:
    """Read a passage with its context, and mark the words of the query in the passage."""
    language = chunk_language(document.metadata, state.workspace.settings.language)
    parts = [
        excerpt(blocks_of(text, document.metadata), query if at == 1 else "", language)
        for at, text in enumerate(passage_context(state.workspace, document))
    ]
    words = {block.text[s:e] for block in parts[1].blocks for s, e, name in block.styles if name == "match"}
    get, file, image = document.metadata.get, "", ""
    place = place_of(document, query, state.workspace.settings.language)
    try:
        suffix = original(state, str(get("collection")), str(get("source_file"))).suffix.lower()
        file = file_address(document)
        if suffix == ".pdf" and place.get("page"):
            image = image_address(document, place["page"], sorted(words))
    except (
        RagistryError
    ):  # a text without a file, a remote collection, or a deleted file: only the stored text is shown
        pass
    before, passage, after = map(excerpt_html, parts)
    return ReaderText(before, passage, after, file, image, place)


class ReaderPanel:
    """Show one passage of the results. ``opened`` is called with its id, or with "" when the reader closes."""

    def __init__(self, state: AppState, opened: Callable[[str], None]) -> None:
        self._state = state
        self._opened = opened
        self._query = ""
        self._passages: Sequence[Document] = ()
        self._place = 0
        self.panel = ui.element("aside").classes("rg-reader").props('aria-label="Reader"')
        self.panel.set_visibility(False)

    def offer(self, query: str, passages: Sequence[Document]) -> None:
        """Set the passages to read, and close the reader."""
        self._hide()
        self._query, self._passages = query, passages

    async def open(self, document: Document) -> None:
        """Show a passage with its context."""
        try:
            text = await in_thread(text_of, self._state, self._query, document)
        except RagistryError as error:
            text = ReaderText("", "", "", "", "", document.metadata, str(error))
        if self.panel.is_deleted:
            return
        self._place = next((at for at, one in enumerate(self._passages) if one.id == document.id), 0)
        self.panel.clear()
        with self.panel:
            self._head(document, text)
            _body(document, text)
        self.panel.set_visibility(True)
        self._opened(document.id)
        ui.run_javascript(f"ragistryReader.opened({json.dumps(document.id)})")

    def close(self) -> None:
        """Close the reader, and return the focus to the result."""
        self._hide()
        ui.run_javascript("ragistryReader.closed()")

    def _hide(self) -> None:
        if self.panel.visible:
            self.panel.set_visibility(False)
            self._opened("")

    async def _turn(self, steps: int) -> None:
        await self.open(self._passages[self._place + steps])

    async def _confirm(self, document: Document) -> None:
        """Keep that a passage answers the question, for those who judge it."""
        keep = partial(log_question, confirmed=[document])
        kept = await in_thread(keep, self._state.workspace.library, self._query, "page")
        ui.notify("Kept with the question" if kept else "Not kept: the question looks like a key or a password")

    def _head(self, document: Document, text: ReaderText) -> None:
        with ui.element("div").classes("rg-reader-head"):
            with ui.element("div").classes("rg-reader-bar"):
                last = len(self._passages) - 1
                back = icon_button("arrow_upward", "Previous passage", partial(self._turn, -1))
                back.set_enabled(self._place > 0)
                on = icon_button("arrow_downward", "Next passage", partial(self._turn, 1))
                on.set_enabled(self._place < last)
                ui.label(f"{self._place + 1} of {last + 1}").classes("rg-dim").props("role=status")
                ui.element("div").classes("rg-space")
                if self._state.workspace.library.questions is not None:
                    button("This answers it", partial(self._confirm, document), icon="check").props("dense").classes(
                        "rg-confirm"
                    )
                cite = button("Copy citation", partial(ui.notify, "Citation copied"), icon="format_quote").props(
                    "dense"
                )
                cite.on(
                    "click", js_handler=f"() => ragistryReader.copy({json.dumps(citation_of(document, text.place))})"
                )
                if text.file:
                    ui.link("Open file", text.file, new_tab=True).classes("rg-open-file")
                icon_button("close", "Close reader", self.close).classes("rg-reader-close")
            ui.label(title_of(document)).classes("rg-reader-title").props("role=heading aria-level=2")
            with ui.element("div").classes("rg-place"):
                for part in (collection_of(document), source_of(document), spot_of(document, text.place)):
                    if part:
                        ui.label(part)


def _body(document: Document, text: ReaderText) -> None:
    with ui.element("div").classes("rg-reader-body").props('tabindex=0 role=region aria-label="Source text"'):
        if text.error:
            ui.label(text.error).classes("rg-failure").props("role=alert")
            return
        if text.image:
            page = ui.element("img").classes("rg-page")
            page.props["src"] = text.image
            page.props["alt"] = f"Page {text.place['page']} of {source_of(document)}"
            page.on("error", js_handler="(event) => event.target.remove()")
        if text.before:
            ui.html(text.before, sanitize=False).classes("rg-text rg-context")
        with ui.element("section").classes("rg-here").props('aria-label="The passage that was found"'):
            ui.html(text.passage, sanitize=False).classes("rg-text")
        if text.after:
            ui.html(text.after, sanitize=False).classes("rg-text rg-context")


class PassageContext(NamedTuple):
    """The text before a passage, the passage, and the text after it."""

    before: str
    passage: str
    after: str


def passage_context(workspace: Workspace, document: Document) -> PassageContext:
    """Return a passage with its context, from the library or from a documentation repository."""
    store, repository = workspace.store, document.metadata.get("repository")
    if store.get([document.id]) or not isinstance(repository, str):
        return context_in_store(store, document)
    alone = PassageContext("", document.content, "")
    try:
        with workspace.repositories.collection(repository) as opened:
            return opened.read(lambda store: context_in_store(store, document), alone)
    except CollectionNotFoundError:  # a remote collection may name a repository that is not here
        return alone


def context_in_store(store: DocumentStore, document: Document) -> PassageContext:
    """Return a passage with its context. Overlapping text is shown once."""
    get = next(
        iter(store.get([document.id])), document
    ).metadata.get  # during a rename, the store has the earlier name of the collection
    collection, source, index = get("collection"), get("source_file"), get("chunk_index")
    if not (isinstance(collection, str) and isinstance(source, str) and isinstance(index, int)):
        return PassageContext("", document.content, "")
    ids = [chunk_id(collection, source, place) for place in range(max(0, index - REACH), index + REACH + 1)]
    chunks = [chunk for chunk in store.get(ids) if chunk.metadata.get("source_hash") == get("source_hash")]
    known = spans([*chunks, document])
    if known is None or not chunks:
        return PassageContext("", document.content, "")
    start, end = known[-1]
    first = min(begin for begin, _ in known[:-1])
    whole = joined_text(chunks)
    return PassageContext(whole[: max(0, start - first)], document.content, whole[end - first :])
