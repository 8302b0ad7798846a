"""The answer above the results: it appears as it is written, and each sentence leads to the passages it comes from."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from html import escape
from threading import Event, Thread
from time import monotonic

from nicegui import ui

from ragistry.errors import RagistryError
from ragistry.pipelines.answer import Answer, Answerer, Sentence, cited_sentences
from ragistry.presentation.hits import collection_of, grouped, source_of, spot_of, title_of
from ragistry.presentation.html import line_html
from ragistry.protocols import Generator
from ragistry.types import Document
from ragistry.utils.wording import numbered
from ragistry.web.controls import button
from ragistry.web.site import Site, in_thread

EVERY = 0.1
"""Seconds between two looks at what was written."""
ALONE = 3.0
"""Seconds without a line to the window after which the answer is given up: it was closed, or loaded again."""
NO_GENERATOR = (
    "No generator is configured, so nothing can write an answer.",
    'Name one in config/models.yaml, for example `generators: {writer: {use: ollama, model: "qwen3:4b"}}`, and start '
    "the page again. What was found stands below.",
)

_MARKED = re.compile(r"[*_`\]]")
_BEGUN = re.compile(r"\[[\d,\s]*$")
"""A citation that has not arrived whole."""


class _Stopped(Exception):  # noqa: N818, no error
    """Nobody waits for the answer any more."""


@dataclass(slots=True)
class Writing:
    """One answer on its way, in a thread of its own: a generator may take minutes."""

    answerer: Answerer
    query: str
    documents: Sequence[Document]
    text: str = ""
    answer: Answer | None = None
    error: str = ""
    stopped: Event = field(default_factory=Event)
    ended: Event = field(default_factory=Event)

    def start(self) -> None:
        """Begin; the thread does not keep the process from ending."""
        Thread(target=self._run, name="answer", daemon=True).start()

    def _run(self) -> None:
        try:
            self.answer = self.answerer.answer(self.query, self.documents, on_piece=self._take)
        except _Stopped:
            pass
        except RagistryError as error:
            self.error = str(error)
        finally:
            self.ended.set()

    def _take(self, piece: str) -> None:
        if self.stopped.is_set():
            raise _Stopped
        self.text += piece


class Answering:
    """The part of a window that shows an answer. ``open_`` shows a passage in the reader."""

    def __init__(self, site: Site, open_: Callable[[Document], Awaitable[None]]) -> None:
        self._site = site
        self._open = open_
        self._now: Writing | None = None
        self._documents: Sequence[Document] = ()
        with ui.element("section").classes("rg-written").props('aria-label="Answer"') as self._whole:
            with ui.element("div").classes("rg-written-head"):
                ui.label("Answer").classes("rg-written-title").props("role=heading aria-level=2")
                self._status = ui.label().classes("rg-dim").props("role=status")
                ui.element("div").classes("rg-space")
                self._stop = button("Stop", self.stop).props("dense")
            self._text = ui.html("", sanitize=False).classes("rg-written-text")
            self._text.on(
                "click",
                lambda event: self._cited(event.args),
                js_handler="(event) => {"
                " const cite = event.target.closest('[data-cite]'); if (cite) emit(Number(cite.dataset.cite)); }",
            )
            self._said = ui.label().classes("rg-written-said")
            self._remedy = ui.label().classes("rg-dim")
        self.hide()

    def hide(self) -> None:
        """Show nothing, and give up what is being written."""
        self.stop()
        self._whole.set_visibility(False)

    def stop(self) -> None:
        """Give up what is being written; what has arrived stays."""
        if self._now is not None:
            self._now.stopped.set()

    async def write(self, query: str, documents: Sequence[Document]) -> None:
        """Answer a question from passages, and show it; ends when that is done, stopped, or the window is gone."""
        self._documents = documents
        self._show("", status="Reading the passages…", stoppable=True)
        self._whole.set_visibility(True)
        library = self._site.workspace.library
        try:
            generator: Generator | None = await in_thread(library.generator)
        except RagistryError as error:
            self._show("", said=str(error))
            return
        if self._whole.is_deleted:
            return
        if generator is None:
            self._show("", said=NO_GENERATOR[0], remedy=NO_GENERATOR[1])
            return
        answerer = Answerer(generator, library.embedder, language=library.reading.language)
        this = self._now = Writing(answerer, query, documents)
        began = monotonic()
        this.start()
        try:
            await self._follow(this)
        finally:
            this.stopped.set()
        if this is self._now and not self._whole.is_deleted:
            self._end(this, monotonic() - began)

    async def _follow(self, this: Writing) -> None:
        """Show what arrives until it has ended, or nobody waits for it."""
        shown, seen, client = "", monotonic(), self._whole.client
        while not (this.ended.is_set() or this.stopped.is_set() or self._whole.is_deleted):
            if client.has_socket_connection:
                seen = monotonic()
            elif monotonic() - seen > ALONE:
                break
            if this.text != shown:
                shown = this.text
                html = _answer_html(unchecked(shown, len(this.documents)), this.documents, checked=False)
                self._show(html, status="Writing…", stoppable=True)
            await asyncio.sleep(EVERY)

    def _end(self, this: Writing, seconds: float) -> None:
        documents = this.documents
        if this.error:
            self._show("", said=this.error, bad=True)
        elif this.answer is None:
            found = unchecked(this.text, len(documents))
            self._show(_answer_html(found, documents, checked=False), said="Stopped. The sentences were not checked.")
        elif not this.answer.sentences:
            reason = this.answer.reason[:1].upper() + this.answer.reason[1:]
            self._show("", said="Not in the documents.", remedy=f"{reason}.")
        else:
            name = self._site.workspace.models.generators.default
            passages = numbered(len(documents), "[passage|passages]")
            doubtful = sum(not one.supported for one in this.answer.sentences)
            self._show(
                _answer_html(this.answer.sentences, documents, checked=True) + _sources_html(this.answer),
                status=f"by {name} from {passages}, {seconds:.1f} s",
                remedy=f"{numbered(doubtful, '[sentence is|sentences are]')} not supported by the passages cited."
                if doubtful
                else "",
            )

    def _show(
        self,
        html: str,
        *,
        status: str = "",
        said: str = "",
        remedy: str = "",
        bad: bool = False,
        stoppable: bool = False,
    ) -> None:
        self._text.set_content(html)
        for label, text in ((self._status, status), (self._said, said), (self._remedy, remedy)):
            label.set_text(text)
        self._said.classes(add="rg-failure") if bad else self._said.classes(remove="rg-failure")
        self._stop.set_visibility(stoppable)

    async def _cited(self, number: object) -> None:
        if isinstance(number, int) and 1 <= number <= len(self._documents):
            await self._open(self._documents[number - 1])


def unchecked(text: str, passages: int) -> list[Sentence]:
    """The sentences of an answer that is not whole yet, with those citations that there are ``passages`` for."""
    return [
        Sentence(sentence, tuple(number for number in dict.fromkeys(numbers) if 1 <= number <= passages), True)
        for sentence, numbers in cited_sentences(_BEGUN.sub("", text))
    ]


def _answer_html(sentences: Sequence[Sentence], documents: Sequence[Document], *, checked: bool) -> str:
    return "<p>" + " ".join(_sentence_html(one, documents, checked) for one in sentences) + "</p>"


def _sentence_html(sentence: Sentence, documents: Sequence[Document], checked: bool) -> str:
    cites = "".join(_cite(number, documents[number - 1]) for number in sentence.citations)
    doubted = checked and not sentence.supported
    head, blank, last = sentence.text.rpartition(" ")
    if _MARKED.search(last):  # what it belongs to begins before it
        head, blank, last = sentence.text, "", ""
    head, last = (_doubted(line_html(words), doubted) for words in (head, last))
    why = "not supported" if sentence.citations else "no source"
    tail = f' <span class="rg-doubt">{why}</span>' if doubted else ""
    return f'{head}{blank}<span class="rg-last">{last}{cites}</span>{tail}'


def _doubted(html: str, doubted: bool) -> str:
    return f'<span class="rg-doubted">{html}</span>' if doubted and html else html


def _sources_html(answer: Answer) -> str:
    """The sources that are cited, each with the numbers of its passages."""
    cited = sorted({number for one in answer.sentences for number in one.citations})
    items = []
    for hit in grouped([answer.documents[number - 1] for number in cited]):
        passages = (hit.document, *hit.more)
        numbers = [number for number in cited if answer.documents[number - 1] in passages]
        buttons = "".join(_cite(number, answer.documents[number - 1]) for number in numbers)
        place = escape(" · ".join(filter(None, (collection_of(hit.document), source_of(hit.document)))))
        items.append(f'<li title="{place}"><span>{escape(title_of(hit.document))}</span>{buttons}</li>')
    return f'<ul class="rg-written-sources" aria-label="Sources cited">{"".join(items)}</ul>' if items else ""


def _cite(number: int, document: Document) -> str:
    """A button that opens a passage."""
    place = escape(" · ".join(filter(None, (title_of(document), spot_of(document)))))
    return (
        f'<button type="button" class="rg-cite" data-cite="{number}" data-passage="{escape(document.id)}" '
        f'title="{place}" aria-label="Passage {number}: {place}">{number}</button>'
    )
