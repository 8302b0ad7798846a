"""One technique's answer: passages, stages, route."""

from __future__ import annotations

from collections.abc import Mapping

from nicegui import ui

from ragistry.types import Document, RetrievalResult
from ragistry.web.around import around
from ragistry.web.controls import button
from ragistry.web.passages import marked
from ragistry.web.routes import route
from ragistry.web.site import Site, attempt


def results(site: Site, technique: str, result: RetrievalResult, others: Mapping[str, int] | None) -> None:
    """``others``: the rank of a document in the answer beside this one; None where there is none."""
    ui.label(technique).classes("rg-technique").props("role=heading aria-level=2")
    ui.label(f"{len(result.documents)} passages in {result.search_time_ms:.1f} ms").classes("rg-dim")
    for reason in result.degraded:
        ui.label(f"Degraded: {reason}").classes("rg-failure")
    route(result)
    if not result.documents:
        ui.label("Nothing found. Try other words, another technique, or all collections.").classes("rg-empty")
    for rank, document in enumerate(result.documents, start=1):
        _passage(site, result.query, rank, document, others)
    _stages(result)


def _passage(site: Site, query: str, rank: int, document: Document, others: Mapping[str, int] | None) -> None:
    language = site.workspace.settings.language
    card = ui.element("article").classes("rg-passage")
    with card:
        with ui.element("div").classes("rg-bar"):
            ui.label(f"{rank}.").classes("rg-rank")
            button(where_it_stands(document), lambda: _open(site, query, document)).props("dense align=left").classes(
                "rg-place"
            )
            if others is not None:
                beside = others.get(document.id)
                ui.label("only here" if beside is None else f"also #{beside} beside").classes(
                    "rg-only" if beside is None else "rg-both"
                )
        ui.html(marked(document.content, query, language), sanitize=False).classes("rg-text")
        with ui.element("div").classes("rg-scores"):
            for score in document.scores:
                ui.label(f"{score.stage} {score.kind} {score.value:.4g}")
    if others is not None and document.id in others:
        card.classes("rg-common")


def where_it_stands(document: Document) -> str:
    """Collection, source, page or heading."""
    get = document.metadata.get
    source = get("source_file") or get("source") or document.id[:12]
    spot = [f"p.{get('page')}" if get("page") else "", str(get("heading_context") or "")]
    said = ", ".join(part for part in spot if part)
    return f"{get('collection')} / {source}" + (f" ({said})" if said else "")


async def _open(site: Site, query: str, document: Document) -> None:
    found = await attempt(around, site.workspace.store, document)
    if found is None:
        return
    language = site.workspace.settings.language
    with ui.dialog() as dialog, ui.card().classes("rg-dialog rg-source"):
        dialog.props["aria-label"] = "The passage in its source"
        ui.label(where_it_stands(document)).classes("rg-dialog-title").props("role=heading aria-level=2")
        with ui.element("div").classes("rg-source-text").props('tabindex=0 role=region aria-label="Source text"'):
            if found.before:
                ui.html(marked(found.before, "", language), sanitize=False).classes("rg-context")
            ui.html(marked(found.passage, query, language), sanitize=False).classes("rg-here")
            if found.after:
                ui.html(marked(found.after, "", language), sanitize=False).classes("rg-context")
        button("Close", dialog.close)
    dialog.on_value_change(lambda event: None if event.value else dialog.delete())
    dialog.open()


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
