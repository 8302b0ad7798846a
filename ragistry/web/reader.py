"""The reader beside the results: a source as blocks, the passage marked, and the way to the next one."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from nicegui import ui

from ragistry.errors import RagistryError
from ragistry.presentation import blocks_of, excerpt
from ragistry.presentation.hits import citation_of, collection_of, source_of, spot_of, title_of
from ragistry.presentation.html import excerpt_html
from ragistry.types import Document
from ragistry.utils.text.languages import chunk_language
from ragistry.web.around import surroundings
from ragistry.web.controls import button, icon_button
from ragistry.web.files import file_address, image_address, original
from ragistry.web.site import Site, attempt


class Text(NamedTuple):
    """A passage in its source as HTML, and the addresses of its file and of its page's image; empty for none."""

    before: str
    passage: str
    after: str
    file: str
    image: str


def text_of(site: Site, query: str, document: Document) -> Text:
    """Read the source around a passage; the words of the query are marked in the passage."""
    language = chunk_language(document.metadata, site.workspace.settings.language)
    around = surroundings(site.workspace, document)
    parts = [
        excerpt(blocks_of(text, document.metadata), asked, language, None)
        for text, asked in ((around.before, ""), (around.passage, query), (around.after, ""))
    ]
    words = {block.text[s:e] for block in parts[1].blocks for s, e, name in block.styles if name == "match"}
    get, file, image = document.metadata.get, "", ""
    try:
        suffix = original(site, str(get("collection")), str(get("source_file"))).suffix.lower()
        file = file_address(document)
        image = image_address(document, sorted(words)) if suffix == ".pdf" and get("page") else ""
    except RagistryError:  # an archive, a text, a file that is gone: what the store has is shown
        pass
    before, passage, after = map(excerpt_html, parts)
    return Text(before, passage, after, file, image)


class Reader:
    """Shows one passage at a time of those that were found. ``opened`` is called with its id, or "" when it closes."""

    def __init__(self, site: Site, opened: Callable[[str], None]) -> None:
        self._site = site
        self._opened = opened
        self._query = ""
        self._passages: Sequence[Document] = ()
        self._at = 0
        self.panel = ui.element("aside").classes("rg-reader").props('aria-label="Reader"')
        self.panel.set_visibility(False)

    def offer(self, query: str, passages: Sequence[Document]) -> None:
        """From now on lead through these passages; none is open."""
        self._hide()
        self._query, self._passages = query, passages

    async def open(self, document: Document) -> None:
        """Show a passage in its source."""
        text = await attempt(text_of, self._site, self._query, document)
        if text is None or self.panel.is_deleted:
            return
        self._at = next((at for at, one in enumerate(self._passages) if one.id == document.id), 0)
        self.panel.clear()
        with self.panel:
            self._head(document, text)
            _body(document, text)
        self.panel.set_visibility(True)
        self._opened(document.id)
        ui.run_javascript(f"ragistryReader.opened({json.dumps(document.id)})")

    def close(self) -> None:
        """Hide it, and give the focus back to the result."""
        self._hide()
        ui.run_javascript("ragistryReader.closed()")

    def _hide(self) -> None:
        if self.panel.visible:
            self.panel.set_visibility(False)
            self._opened("")

    async def _turn(self, steps: int) -> None:
        await self.open(self._passages[self._at + steps])

    def _head(self, document: Document, text: Text) -> None:
        with ui.element("div").classes("rg-reader-head"):
            with ui.element("div").classes("rg-reader-bar"):
                last = len(self._passages) - 1
                back = icon_button("arrow_upward", "Previous passage", partial(self._turn, -1))
                back.set_enabled(self._at > 0)
                on = icon_button("arrow_downward", "Next passage", partial(self._turn, 1))
                on.set_enabled(self._at < last)
                ui.label(f"{self._at + 1} of {last + 1}").classes("rg-dim").props("role=status")
                ui.element("div").classes("rg-space")
                cite = button("Copy citation", partial(ui.notify, "Citation copied"), icon="format_quote").props(
                    "dense"
                )
                cite.on("click", js_handler=f"() => ragistryReader.copy({json.dumps(citation_of(document))})")
                if text.file:
                    ui.link("Open file", text.file, new_tab=True).classes("rg-open-file")
                icon_button("close", "Close reader", self.close).classes("rg-reader-close")
            ui.label(title_of(document)).classes("rg-reader-title").props("role=heading aria-level=2")
            with ui.element("div").classes("rg-place"):
                for part in (collection_of(document), source_of(document), spot_of(document)):
                    if part:
                        ui.label(part)


def _body(document: Document, text: Text) -> None:
    with ui.element("div").classes("rg-reader-body").props('tabindex=0 role=region aria-label="Source text"'):
        if text.image:
            page = ui.element("img").classes("rg-page")
            page.props["src"] = text.image
            page.props["alt"] = f"Page {document.metadata['page']} of {source_of(document)}"
            page.on("error", js_handler="(event) => event.target.remove()")
        if text.before:
            ui.html(text.before, sanitize=False).classes("rg-text rg-context")
        with ui.element("section").classes("rg-here").props('aria-label="The passage that was found"'):
            ui.html(text.passage, sanitize=False).classes("rg-text")
        if text.after:
            ui.html(text.after, sanitize=False).classes("rg-text rg-context")
