"""One technique's answer as cards: a card a source, with the lines that answer; stages, route and scores on demand."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from nicegui import ui

from ragistry.presentation import Hit, body_of, excerpt, grouped, similar_by
from ragistry.presentation.hits import collection_of, score_of, source_of, spot_of, title_of
from ragistry.presentation.html import excerpt_html
from ragistry.types import Document, RetrievalResult
from ragistry.utils.text.languages import chunk_language
from ragistry.utils.wording import numbered
from ragistry.web.controls import for_the_page
from ragistry.web.routes import route
from ragistry.workspace import Workspace

ROOM = 360
"""Characters of an excerpt."""
HINT = 60
"""Characters by which a further passage of a source is told from the others."""
MORE = 3
"""Further passages of a source that are shown at once."""

Open = Callable[[Document], Awaitable[None]]


class Card(NamedTuple):
    """A hit, its excerpt as HTML, and what each further passage of its source is called."""

    hit: Hit
    text: str
    more: tuple[str, ...]


class Found(NamedTuple):
    """What a technique found, ready to be shown."""

    technique: str
    result: RetrievalResult
    cards: tuple[Card, ...]

    def passages(self) -> list[Document]:
        """Every passage in the order of the cards."""
        return [one for card in self.cards for one in (card.hit.document, *card.hit.more)]


class Beside(NamedTuple):
    """Which of two answers this one is, 0 or 1, and the rank of each document in the other."""

    side: int
    others: Mapping[str, int]


def shown(workspace: Workspace, technique: str, result: RetrievalResult) -> Found:
    """Choose what is shown of each passage; may call the embedder."""
    similar = similar_by(workspace.embedder, result.query)

    def part(document: Document, room: int) -> tuple[str, str]:
        language = chunk_language(document.metadata, workspace.settings.language)
        shown = excerpt(body_of(document), result.query, language, room, similar)
        return excerpt_html(shown), " ".join(block.text for block in shown.blocks)

    cards = []
    for hit in grouped(result.documents):
        spots = [spot_of(document) for document in (hit.document, *hit.more)]
        more = [
            spot if spot and spots.count(spot) == 1 else part(document, HINT)[1][:HINT].rstrip(" .…") + "…"
            for document, spot in zip(hit.more, spots[1:], strict=True)
        ]
        cards.append(Card(hit, part(hit.document, ROOM)[0], tuple(more)))
    return Found(technique, result, tuple(cards))


def results(given: Found, open_: Open, beside: Beside | None) -> None:
    """The cards of an answer; ``beside``: None where it stands alone."""
    found = given.result
    with ui.element("div").classes("rg-found"):
        ui.label(given.technique).classes("rg-technique").props("role=heading aria-level=2")
        if found.documents:
            passages = numbered(len(found.documents), "[passage|passages]")
            said = f"{passages} in {numbered(len(given.cards), '[source|sources]')}, {found.search_time_ms:.0f} ms"
            ui.label(said).classes("rg-dim")
    for reason in found.degraded:
        ui.label(f"Degraded: {reason}").classes("rg-failure")
    if not found.documents:
        with ui.element("div").classes("rg-empty"):
            ui.label("Nothing found.").classes("rg-empty-text")
            ui.label("Try other words, another technique, or all collections.")
    with ui.element("div").classes("rg-cards"):
        for card in given.cards:
            _card(card, open_, beside)
    _how(found)


def _card(card: Card, open_: Open, beside: Beside | None) -> None:
    document = card.hit.document
    with ui.element("article").classes("rg-hit"):
        with ui.element("div").classes("rg-hit-head"):
            _link(title_of(document), "rg-hit-title", document, open_)
            if beside is not None:
                _linked(card.hit.rank, document, beside)
        with ui.element("div").classes("rg-place"):
            name = source_of(document)
            for part in (collection_of(document), name if name != title_of(document) else "", spot_of(document)):
                if part:
                    ui.label(part)
        text = ui.html(card.text, sanitize=False).classes("rg-text")
        text.on(
            "click", for_the_page(partial(open_, document)), js_handler="() => getSelection().isCollapsed && emit()"
        )
        if card.hit.more:
            with ui.element("div").classes("rg-more"):
                ui.label(f"{len(card.hit.more)} more in this file:")
                further = list(zip(card.more, card.hit.more, strict=True))
                for shown, document_ in further[:MORE]:
                    _link(shown, "rg-more-one", document_, open_)
                if further[MORE:]:
                    with ui.element("details"):
                        with ui.element("summary"):
                            ui.label(f"{len(further) - MORE} further")
                        for shown, document_ in further[MORE:]:
                            _link(shown, "rg-more-one", document_, open_)
        with ui.element("details").classes("rg-why"):
            with ui.element("summary"):
                ui.label("Why")
            _scores(card.hit)


def _link(text: str, classes: str, document: Document, open_: Open) -> None:
    """What opens the reader at a passage, by mouse and by Enter."""
    made = ui.label(text).classes(classes).props("role=button tabindex=0")
    made.props["data-passage"] = document.id
    made.on("click", for_the_page(partial(open_, document)))
    made.on("keydown.enter", for_the_page(partial(open_, document)))


def _linked(rank: int, document: Document, beside: Beside) -> None:
    """Lead to the same passage in the other answer, where it is there."""
    ui.link_target(f"passage-{beside.side}-{rank}")
    other = beside.others.get(document.id)
    if other is None:
        ui.label("only here").classes("rg-tag")
    else:
        ui.link(f"also #{other} beside", f"#passage-{1 - beside.side}-{other}").classes("rg-tag rg-both")


def _scores(hit: Hit) -> None:
    for number, document in enumerate((hit.document, *hit.more)):
        with ui.element("div").classes("rg-scores"):
            ui.label(f"Rank {hit.rank}: {score_of(document)}" if number == 0 else score_of(document)).classes(
                "rg-score"
            )
            for score in document.scores:
                ui.label(f"{score.stage} {score.kind} {score.value:.4g}")


def _how(result: RetrievalResult) -> None:
    """The route that was taken, and what each stage did."""
    whole = max((stage.ms for stage in result.trace), default=0.0)
    with ui.element("details").classes("rg-how"):
        with ui.element("summary"):
            ui.label("How this was found")
        route(result)
        for stage in result.trace:
            with ui.element("div").classes("rg-stage"):
                ui.label("\u2003" * stage.depth + stage.name).classes("rg-stage-name")
                bar = ui.element("div").classes("rg-stage-bar").props("aria-hidden=true")
                bar.style(f"--share: {100 * stage.ms / whole if whole else 0:.1f}%")
                calls = f", {numbered(stage.model_calls, '[model call|model calls]')}" if stage.model_calls else ""
                documents = numbered(stage.documents_out, "[document|documents]")
                ui.label(f"{stage.ms:.1f} ms, {documents}{calls}").classes("rg-dim")


def side_by_side(answers: Sequence[Found], open_: Open) -> None:
    """One answer, or two with what they share."""
    with ui.element("div").classes("rg-answers" + (" rg-two" if len(answers) > 1 else "")):
        for side, given in enumerate(answers):
            with ui.element("section").classes("rg-answer").props(f'aria-label="Results by {given.technique}"'):
                results(given, open_, _beside(side, answers) if len(answers) > 1 else None)


def _beside(side: int, answers: Sequence[Found]) -> Beside:
    other = answers[1 - side].result.documents
    return Beside(side, {document.id: rank for rank, document in enumerate(other, start=1)})
