"""Results of a technique: a card for each source with excerpts, and details of stages, routes and scores."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from nicegui import ui

from ragistry.presentation import Hit, Part, cards_of, grouped
from ragistry.presentation.hits import collection_of, folded_copies, score_of, source_of, spot_of, title_of
from ragistry.presentation.html import excerpt_html
from ragistry.types import Document, RetrievalResult
from ragistry.utils.wording import no_passage, numbered
from ragistry.web.filters import shown_values
from ragistry.web.widgets import details, in_page
from ragistry.workspace import Workspace

ROOM, FURTHER = 360, 220
"""Maximum number of characters of the first excerpt of a card, and of the next ones."""
OTHER = "Another passage"
"""Name of a passage without a place."""

OpenPassage = Callable[[Document], Awaitable[None]]
WHY = {
    "no targets": "there is nothing to search",
    "only target": "there is only one, or the search was limited to it",
    "named": "the search was limited to it",
    "best": "one target scores higher than all others",
    "small margin": "several targets have similar scores, and all of them are searched",
    "nothing fits": "no target fits the query well enough, and none is searched",
    "no evidence": "no target has any evidence, and all are searched",
    "model": "a model chose",
    "fallback": "the model did not choose",
    "all": "all targets are searched",
}
"""Explanation of each rule of `ragistry.techniques.routing.route`."""


class Shown(NamedTuple):
    """A passage with its place and its excerpt as HTML."""

    document: Document
    spot: str
    html: str


class ResultCard(NamedTuple):
    """A source with the passages that are shown, its other passages, and similar ones of other sources."""

    hit: Hit
    parts: tuple[Shown, ...]
    rest: tuple[Shown, ...]
    similar: tuple[Shown, ...]


class TechniqueResults(NamedTuple):
    """The results of a technique, prepared to be shown."""

    technique: str
    result: RetrievalResult
    cards: tuple[ResultCard, ...]

    def passages(self) -> list[Document]:
        """Return all passages in the order of the cards."""
        return [one.document for card in self.cards for one in (*card.parts, *card.rest, *card.similar)]


class OtherRanks(NamedTuple):
    """Which of two results this is (0 or 1), and the rank of each document in the other one."""

    side: int
    others: Mapping[str, int]


def prepare_results(workspace: Workspace, technique: str, result: RetrievalResult) -> TechniqueResults:
    """Prepare results: choose an excerpt of each passage."""

    def shown(parts: Sequence[Part]) -> tuple[Shown, ...]:
        return tuple(Shown(document, spot_of(document, found.place), excerpt_html(found)) for document, found in parts)

    cards = cards_of(result.documents, result.query, workspace.settings.language, ROOM, FURTHER)
    prepared = (ResultCard(card.hit, shown(card.parts), shown(card.rest), shown(card.similar)) for card in cards)
    return TechniqueResults(technique, result, tuple(prepared))


def show_results(prepared: TechniqueResults, open_: OpenPassage, ranks: OtherRanks | None) -> None:
    """Show results as cards. ``ranks`` links them to those of a second technique."""
    found = prepared.result
    with ui.element("div").classes("rg-found"):
        title = "Nothing found"
        if found.documents:
            passages = numbered(len(found.documents), "[passage|passages]")
            title = f"{passages} in {numbered(len(grouped(found.documents)), '[source|sources]')}"
        ui.label(title).classes("rg-technique").props("role=heading aria-level=2")
        ui.label(f"{prepared.technique}, {found.search_time_ms:.0f} ms").classes("rg-dim")
    for reason in found.degraded:
        ui.label(f"Degraded: {reason}").classes("rg-failure")
    if line := no_passage(found.unknown_words):
        ui.label(f"N{line[1:]}.").classes("rg-dim")
    if not found.documents:
        with ui.element("div").classes("rg-empty"):
            ui.label("Try other words, another technique, or all collections.")
    with ui.element("div").classes("rg-cards"):
        for card in prepared.cards:
            _card(card, open_, ranks)
    _details(found)


def _card(card: ResultCard, open_: OpenPassage, ranks: OtherRanks | None) -> None:
    document = card.parts[0].document
    with ui.element("article").classes("rg-hit"):
        with ui.element("div").classes("rg-hit-head"):
            _link(title_of(document), "rg-hit-title", document, open_)
            if ranks is not None:
                _link_to_other(card.hit.rank, document, ranks)
        name = source_of(document)
        source = [collection_of(document), name if name != title_of(document) else ""]
        with ui.element("div").classes("rg-place"):
            for part in (*source, card.parts[0].spot, *shown_values(document.metadata)):
                if part:
                    ui.label(part)
        if copies := folded_copies(document):
            ui.label(copies).classes("rg-place")
        _text(card.parts[0], open_)
        for shown in card.parts[1:]:
            _part(shown, open_)
        if card.rest:
            with details(f"{len(card.rest)} more in this file", "rg-more"):
                for shown in card.rest:
                    _part(shown, open_)
        if card.similar:
            with details(f"{len(card.similar)} similar in other files", "rg-more"):
                for shown in card.similar:
                    _part(shown, open_, source_of(shown.document))
        with details("Why", "rg-why"):
            _scores(card.hit)


def _part(shown: Shown, open_: OpenPassage, source: str = "") -> None:
    """Show a further passage: its source, its place as a link, and its excerpt."""
    with ui.element("div").classes("rg-place"):
        _link(" · ".join(filter(None, (source, shown.spot))) or OTHER, "rg-more-one", shown.document, open_)
    _text(shown, open_)


def _text(shown: Shown, open_: OpenPassage) -> None:
    text = ui.html(shown.html, sanitize=False).classes("rg-text")
    text.on("click", in_page(partial(open_, shown.document)), js_handler="() => getSelection().isCollapsed && emit()")


def _link(text: str, classes: str, document: Document, open_: OpenPassage) -> None:
    """Show a link that opens a passage in the reader."""
    made = ui.label(text).classes(classes).props("role=button tabindex=0")
    made.props["data-passage"] = document.id
    made.on("click", in_page(partial(open_, document)))
    made.on("keydown.enter", in_page(partial(open_, document)))


def _link_to_other(rank: int, document: Document, ranks: OtherRanks) -> None:
    """Link to the same passage in the other results, if they contain it."""
    ui.link_target(f"passage-{ranks.side}-{rank}")
    other = ranks.others.get(document.id)
    if other is None:
        ui.label("only here").classes("rg-tag")
    else:
        ui.link(f"also #{other} in the other results", f"#passage-{1 - ranks.side}-{other}").classes("rg-tag rg-both")


def _scores(hit: Hit) -> None:
    for number, document in enumerate((hit.document, *hit.more)):
        with ui.element("div").classes("rg-scores"):
            ui.label(f"Rank {hit.rank}: {score_of(document)}" if number == 0 else score_of(document)).classes(
                "rg-score"
            )
            for score in document.scores:
                ui.label(f"{score.stage} {score.kind} {score.value:.4g}")


def _details(result: RetrievalResult) -> None:
    """Show the route and the stages."""
    whole = max((stage.ms for stage in result.trace), default=0.0)
    with details("How this was found", "rg-how"):
        route(result)
        for stage in result.trace:
            calls = f", {numbered(stage.model_calls, '[model call|model calls]')}" if stage.model_calls else ""
            documents = numbered(stage.documents_out, "[document|documents]")
            share = stage.ms / whole if whole else 0
            _bar("\u2003" * stage.depth + stage.name, share, f"{stage.ms:.1f} ms, {documents}{calls}")


def _bar(name: str, share: float, figures: str, classes: str = "") -> None:
    with ui.element("div").classes(f"rg-stage{classes}"):
        ui.label(name).classes("rg-stage-name")
        bar = ui.element("div").classes("rg-stage-bar").props("aria-hidden=true")
        bar.style(f"--share: {100 * share:.1f}%")
        ui.label(figures).classes("rg-dim")


def side_by_side(answers: Sequence[TechniqueResults], open_: OpenPassage) -> None:
    """Show the results of one technique, or of two side by side."""
    with ui.element("div").classes("rg-answers" + (" rg-two" if len(answers) > 1 else "")):
        for side, prepared in enumerate(answers):
            others = enumerate(answers[side - 1].result.documents, start=1)
            ranks = OtherRanks(side, {document.id: rank for rank, document in others}) if len(answers) > 1 else None
            with ui.element("section").classes("rg-answer").props(f'aria-label="Results by {prepared.technique}"'):
                show_results(prepared, open_, ranks)


def route(result: RetrievalResult) -> None:
    """Show the routes of a retrieval, if there are any."""
    for stage in result.trace:
        scores = stage.detail.get("scores")
        if stage.name != "route" or not isinstance(scores, dict):
            continue
        chosen = stage.detail.get("chosen", ())
        with ui.element("div").classes("rg-route"):
            ui.label(f"Route: {_why(stage.detail)}").classes("rg-route-rule")
            top = max((abs(score) for score in scores.values()), default=0.0) or 1.0
            for name, score in sorted(scores.items(), key=lambda item: -item[1]):
                _bar(name, max(0.0, score) / top, f"{score:.3f}", " rg-chosen" if name in chosen else "")


def _why(detail: Mapping[str, Any]) -> str:
    rule = detail.get("rule", "")
    figures = [f"{name} {detail[name]:.3f}" for name in ("margin", "fit") if isinstance(detail.get(name), float)]
    known = [WHY.get(rule, rule), f"router {detail.get('router', '')}", *figures, detail.get("note", "")]
    return ", ".join(part for part in known if part)
