"""One technique's answer: passages, stages, route."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from nicegui import ui

from ragistry.errors import CollectionNotFoundError
from ragistry.types import Document, RetrievalResult
from ragistry.utils.languages import chunk_language
from ragistry.web.around import Around, around
from ragistry.web.controls import button, for_the_page
from ragistry.web.dialogs import dialog
from ragistry.web.passages import marked
from ragistry.web.routes import route
from ragistry.web.site import Site, attempt


class Beside(NamedTuple):
    """Which of two answers this one is, 0 or 1, and the rank of each document in the other."""

    side: int
    others: Mapping[str, int]


def results(site: Site, technique: str, result: RetrievalResult, beside: Beside | None) -> None:
    """The answer of a technique; ``beside``: None where it stands alone."""
    ui.label(technique).classes("rg-technique").props("role=heading aria-level=2")
    ui.label(f"{len(result.documents)} passages in {result.search_time_ms:.1f} ms").classes("rg-dim")
    for reason in result.degraded:
        ui.label(f"Degraded: {reason}").classes("rg-failure")
    route(result)
    if not result.documents:
        ui.label("Nothing found. Try other words, another technique, or all collections.").classes("rg-empty")
    for rank, document in enumerate(result.documents, start=1):
        _passage(site, result.query, rank, document, beside)
    _stages(result)


def _passage(site: Site, query: str, rank: int, document: Document, beside: Beside | None) -> None:
    language = chunk_language(document.metadata, site.workspace.settings.language)
    with ui.element("article").classes("rg-passage") as card:
        with ui.element("div").classes("rg-bar"):
            ui.label(f"{rank}.").classes("rg-rank")
            show = partial(_open, site, query, document)
            button(where_it_stands(document), show).props("dense align=left").classes("rg-place")
            if beside is not None and _linked(rank, document, beside):
                card.classes("rg-common")
        text = ui.html(marked(document.content, query, language), sanitize=False).classes("rg-text")
        text.on("click", for_the_page(show), js_handler="() => getSelection().isCollapsed && emit()")
        with ui.element("div").classes("rg-scores"):
            ui.label(f"score {document.score:.4g}").classes("rg-score")
            for score in document.scores:
                ui.label(f"{score.stage} {score.kind} {score.value:.4g}")


def _linked(rank: int, document: Document, beside: Beside) -> bool:
    """Lead to the same passage in the other answer; whether it is there."""
    ui.link_target(f"passage-{beside.side}-{rank}")
    other = beside.others.get(document.id)
    if other is None:
        ui.label("only here").classes("rg-only")
    else:
        ui.link(f"also #{other} beside", f"#passage-{1 - beside.side}-{other}").classes("rg-both")
    return other is not None


def where_it_stands(document: Document) -> str:
    """Collection, source, page or heading."""
    get = document.metadata.get
    source = get("source_file") or get("source") or document.id[:12]
    spot = [f"p.{get('page')}" if get("page") else "", str(get("heading_context") or "")]
    said = ", ".join(part for part in spot if part)
    return f"{get('collection')} / {source}" + (f" ({said})" if said else "")


def surroundings(site: Site, document: Document) -> Around:
    """From the library, or from the repository that a routed search found it in."""
    store, repository = site.workspace.store, document.metadata.get("repository")
    if store.get([document.id]) or not isinstance(repository, str):
        return around(store, document)
    alone = Around("", document.content, "")
    try:
        with site.workspace.repositories.collection(repository) as opened:
            return opened.read(lambda store: around(store, document), alone)
    except CollectionNotFoundError:  # an archive may tell of a repository that is not here
        return alone


async def _open(site: Site, query: str, document: Document) -> None:
    found = await attempt(surroundings, site, document)
    if found is None:
        return
    language = chunk_language(document.metadata, site.workspace.settings.language)
    with dialog(where_it_stands(document), classes="rg-source") as opened:
        with ui.element("div").classes("rg-source-text").props('tabindex=0 role=region aria-label="Source text"'):
            if found.before:
                ui.html(marked(found.before, "", language), sanitize=False).classes("rg-context")
            ui.html(marked(found.passage, query, language), sanitize=False).classes("rg-here")
            if found.after:
                ui.html(marked(found.after, "", language), sanitize=False).classes("rg-context")
        button("Close", opened.close)
    opened.open()


def _stages(result: RetrievalResult) -> None:
    whole = max((stage.ms for stage in result.trace), default=0.0)
    with ui.expansion("Time by stage").classes("rg-stages"):
        for stage in result.trace:
            with ui.element("div").classes("rg-stage"):
                ui.label("\u2003" * stage.depth + stage.name).classes("rg-stage-name")
                bar = ui.element("div").classes("rg-stage-bar").props("aria-hidden=true")
                bar.style(f"--share: {100 * stage.ms / whole if whole else 0:.1f}%")
                calls = f", {stage.model_calls} model calls" if stage.model_calls else ""
                ui.label(f"{stage.ms:.1f} ms, {stage.documents_out} documents{calls}").classes("rg-dim")
