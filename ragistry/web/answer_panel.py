"""The answer above the results, shown while it is generated. Each sentence links to the passages it cites."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import groupby
from threading import Event, Thread
from time import monotonic

from nicegui import ui

from ragistry.answers.answer import HEADS, Answer, Answerer
from ragistry.answers.citations import CitedSentence, cited_sentences, with_plain_citations, without_begun_citation
from ragistry.errors import RagistryError
from ragistry.library.asked import log_question
from ragistry.presentation.answering import place_of
from ragistry.presentation.blocks import BULLET
from ragistry.presentation.hits import collection_of, grouped, source_of, spot_of, title_of
from ragistry.presentation.html import line_html
from ragistry.protocols import Generator
from ragistry.types import Document
from ragistry.utils.quoting import visible
from ragistry.utils.wording import numbered
from ragistry.web.app_state import AppState, in_thread
from ragistry.web.widgets import button

EVERY = 0.1
"""Seconds between two updates of the text."""
ALONE = 3.0
"""Seconds without a connection to the window after which the answer is stopped."""
NO_GENERATOR = (
    "No generator is configured, so no answer can be generated.",
    'Name one in config/models.yaml, for example `generators: {writer: {use: ollama, model: "qwen3:4b"}}`, and start '
    "the page again. The results are below.",
)

FORMS = {
    "heading": '<p class="rg-heading">{}</p>',
    "quote": "<blockquote>{}</blockquote>",
    "row": "<tr>{}</tr>",
    "code": "{}",
}
"""The HTML of a block by its kind; of another kind, a paragraph."""
_MARKED = re.compile(r"[*_`\]]")


class _Stopped(Exception):  # noqa: N818, no error
    """The answer is no longer needed."""


@dataclass(slots=True)
class GeneratedText:
    """An answer that is generated in its own thread, because a generator may take minutes."""

    answerer: Answerer
    query: str
    documents: Sequence[Document]
    previous: str | None = None
    text: str = ""
    answer: Answer | None = None
    error: str = ""
    stopped: Event = field(default_factory=Event)
    ended: Event = field(default_factory=Event)

    def start(self) -> None:
        """Start the thread. It does not keep the process running."""
        Thread(target=self._run, name="answer", daemon=True).start()

    def _run(self) -> None:
        try:
            self.answer = self.answerer.answer(self.query, self.documents, previous=self.previous, on_piece=self._take)
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


class AnswerPanel:
    """The part of a window that shows an answer. ``open_`` shows a passage in the reader."""

    def __init__(self, state: AppState, open_: Callable[[Document], Awaitable[None]]) -> None:
        self._state = state
        self._open = open_
        self._now: GeneratedText | None = None
        self._documents: Sequence[Document] = ()
        with ui.element("section").classes("rg-written").props('aria-label="Answer"') as self._whole:
            with ui.element("div").classes("rg-written-head"):
                ui.label("Answer").classes("rg-written-title").props("role=heading aria-level=2")
                self._status = ui.label().classes("rg-dim").props("role=status")
                ui.element("div").classes("rg-space")
                self._stop = button("Stop", self.stop).props("dense")
            self._text = ui.html("", sanitize=False).classes("rg-text rg-written-text")
            self._text.on(
                "click",
                lambda event: self._open_citation(event.args),
                js_handler="(event) => {"
                " const cite = event.target.closest('[data-cite]'); if (cite) emit(Number(cite.dataset.cite)); }",
            )
            self._message = ui.label().classes("rg-written-said")
            self._remedy = ui.label().classes("rg-dim")
        self.hide()

    def hide(self) -> None:
        """Hide the answer, and stop generating it."""
        self.stop()
        self._whole.set_visibility(False)

    def stop(self) -> None:
        """Stop generating; the text so far stays."""
        if self._now is not None:
            self._now.stopped.set()

    async def write(self, query: str, documents: Sequence[Document], previous: str | None = None) -> None:
        """Generate an answer from passages and show it, until it is complete or stopped, or the window is closed.

        ``previous``: the question that this one follows.
        """
        self._documents = documents
        self._show("", status="Reading the passages…", stoppable=True)
        self._whole.set_visibility(True)
        library = self._state.workspace.library
        try:
            generator: Generator | None = await in_thread(library.generator)
        except RagistryError as error:
            self._show("", message=str(error))
            return
        if self._whole.is_deleted:
            return
        if generator is None:
            self._show("", message=NO_GENERATOR[0], remedy=NO_GENERATOR[1])
            return
        answerer = Answerer(generator, library.embedder, language=library.reading.language)
        this = self._now = GeneratedText(answerer, query, documents, previous)
        start = monotonic()
        this.start()
        try:
            await self._follow(this)
        finally:
            this.stopped.set()
        if this is self._now and not self._whole.is_deleted:
            self._end(this, monotonic() - start)

    async def _follow(self, this: GeneratedText) -> None:
        """Show the text so far, until it is complete or no longer needed."""
        shown, seen, client = "", monotonic(), self._whole.client
        while not (this.ended.is_set() or this.stopped.is_set() or self._whole.is_deleted):
            if client.has_socket_connection:
                seen = monotonic()
            elif monotonic() - seen > ALONE:
                break
            if this.text != shown:
                shown = this.text
                self._show(_text_html(shown, this.documents, this.query), status="Writing…", stoppable=True)
            await asyncio.sleep(EVERY)

    def _end(self, this: GeneratedText, seconds: float) -> None:
        documents = this.documents
        if this.error:
            self._show("", message=this.error, bad=True)
        elif this.answer is None:
            self._show(_text_html(this.text, documents, this.query), message="Stopped. The sentences were not checked.")
        else:
            answer = this.answer
            if answer.confirmed:
                log_question(self._state.workspace.library, answer.query, "page", confirmed=answer.confirmed)
            reason = f"{answer.reason[:1].upper()}{answer.reason[1:]}." if answer.reason else ""
            name = self._state.workspace.models.generators.default
            passages = numbered(len(documents), "[passage|passages]")
            unsupported = sum(not one.supported for one in answer.sentences)
            doubt = f"{numbered(unsupported, '[sentence shares|sentences share]')} no wording with the sources cited."
            checked = [one.supported for one in answer.sentences]
            sentences = list(zip(cited_sentences(answer.text), checked, strict=True))
            self._show(
                _blocks_html(answer.text, sentences, answer.documents, answer.query) + _sources_html(answer),
                status=f"by {name} from {passages}, {seconds:.1f} s" if answer.text else "",
                message="" if answer.status == "complete" else f"{HEADS[answer.status]}.",
                remedy=" ".join(filter(None, (reason, doubt if unsupported else ""))),
            )

    def _show(
        self,
        html: str,
        *,
        status: str = "",
        message: str = "",
        remedy: str = "",
        bad: bool = False,
        stoppable: bool = False,
    ) -> None:
        self._text.set_content(html)
        for label, text in ((self._status, status), (self._message, message), (self._remedy, remedy)):
            label.set_text(text)
        self._message.classes(add="rg-failure") if bad else self._message.classes(remove="rg-failure")
        self._stop.set_visibility(stoppable)

    async def _open_citation(self, number: object) -> None:
        if isinstance(number, int) and 1 <= number <= len(self._documents):
            await self._open(self._documents[number - 1])


def _text_html(text: str, documents: Sequence[Document], query: str) -> str:
    """Render an incomplete answer, whose sentences were not checked."""
    text = with_plain_citations(without_begun_citation(text), len(documents))
    return _blocks_html(text, [(one, True) for one in cited_sentences(text)], documents, query)


def _blocks_html(
    text: str, sentences: Sequence[tuple[CitedSentence, bool]], documents: Sequence[Document], query: str
) -> str:
    """Render sentences in the blocks of the answer: paragraphs, list items, quotations, code, rows of tables."""
    blocks: list[tuple[CitedSentence, str]] = []
    at = 0
    for one, is_supported in sentences:
        between, at = text[at : one.start], one.end
        if blocks and one.kind == "paragraph" and blocks[-1][0].kind not in ("code", "row"):
            opening, html = blocks[-1]
            if "\n" not in between:
                blocks[-1] = (opening, f"{html} {_sentence_html(one, documents, query, is_supported)}")
                continue
            if "\n" not in between.replace("\n", "", 1) and opening.kind == "paragraph":
                blocks[-1] = (opening, f"{html}<br>{_sentence_html(one, documents, query, is_supported)}")
                continue
        blocks.append((one, _sentence_html(one, documents, query, is_supported)))
    parts = []
    for kind, group in groupby(blocks, key=lambda block: block[0].kind):
        inside = "".join(_block_html(one, html, text) for one, html in group)
        parts.append(f"<table><tbody>{inside}</tbody></table>" if kind == "row" else inside)
    return "".join(parts)


def _block_html(one: CitedSentence, html: str, text: str) -> str:
    if one.kind != "item":
        return FORMS.get(one.kind, "<p>{}</p>").format(html)
    before = text[text.rfind("\n", 0, one.start) + 1 : one.start]
    marker = text[one.start : one.end].split(maxsplit=1)[0]
    marker = BULLET if marker in "-*+" else marker
    depth = (len(before.expandtabs(4)) + 1) // 3
    return f'<p class="rg-item" style="--depth: {depth}"><span class="rg-marker">{escape(marker)}</span>{html}</p>'


def _sentence_html(sentence: CitedSentence, documents: Sequence[Document], query: str, is_supported: bool) -> str:
    words = sentence.text
    cites = "".join(_cite(number, documents[number - 1], query) for number in sentence.numbers if sentence.has_mark)
    why = "shares no wording with its source" if sentence.numbers else "no source"
    tail = "" if is_supported else f' <span class="rg-doubt">{why}</span>'
    if sentence.kind == "code":
        return f"<pre><code>{_mark_unsupported(escape(visible(words)), not is_supported)}</code></pre>{cites}{tail}"
    if sentence.kind == "row":
        cells = [_mark_unsupported(line_html(cell.strip()), not is_supported) for cell in words.strip("| ").split("|")]
        return f"<td>{'</td><td>'.join(cells)}{cites}{tail}</td>"
    head, blank, last = words.rpartition(" ")
    if _MARKED.search(last) or "\n" in last:  # the marked text begins before the last word
        head, blank, last = words, "", ""
    head = "<br>".join(map(line_html, head.split("\n")))
    head, last = (_mark_unsupported(html, not is_supported) for html in (head, line_html(last)))
    return f'{head}{blank}<span class="rg-last">{last}{cites}</span>{tail}'


def _mark_unsupported(html: str, is_unsupported: bool) -> str:
    return f'<span class="rg-doubted">{html}</span>' if is_unsupported and html else html


def _sources_html(answer: Answer) -> str:
    """Render the cited sources with the numbers of their passages."""
    cited = sorted({number for one in answer.sentences for number in one.citations})
    items = []
    for hit in grouped([answer.documents[number - 1] for number in cited]):
        passages = (hit.document, *hit.more)
        numbers = [number for number in cited if answer.documents[number - 1] in passages]
        buttons = "".join(_cite(number, answer.documents[number - 1], answer.query) for number in numbers)
        place = escape(" · ".join(filter(None, (collection_of(hit.document), source_of(hit.document)))))
        items.append(f'<li title="{place}"><span>{escape(title_of(hit.document))}</span>{buttons}</li>')
    return f'<ul class="rg-written-sources" aria-label="Sources cited">{"".join(items)}</ul>' if items else ""


def _cite(number: int, document: Document, query: str) -> str:
    """Render a button that opens a passage, labelled with the place of the line that answers."""
    spot = spot_of(document, place_of(document, query))
    place = escape(" · ".join(filter(None, (title_of(document), spot))))
    return (
        f'<button type="button" class="rg-cite" data-cite="{number}" data-passage="{escape(document.id)}" '
        f'title="{place}" aria-label="Passage {number}: {place}">{number}</button>'
    )
