"""Where a query was sent, and why: every target's score, and the rule that decided."""

from __future__ import annotations

from nicegui import ui

from ragistry.types import RetrievalResult


def route(result: RetrievalResult) -> None:
    """The routes that were taken in a retrieval; nothing where none was."""
    for stage in result.trace:
        scores = stage.detail.get("scores")
        if stage.name != "route" or not isinstance(scores, dict):
            continue
        chosen = stage.detail.get("chosen", ())
        with ui.element("div").classes("rg-route"):
            ui.label(f"Route: {stage.detail.get('rule', '')}").classes("rg-route-rule")
            top = max((abs(score) for score in scores.values()), default=0.0) or 1.0
            for name, score in sorted(scores.items(), key=lambda item: -item[1]):
                with ui.element("div").classes("rg-stage" + (" rg-chosen" if name in chosen else "")):
                    ui.label(name).classes("rg-stage-name")
                    bar = ui.element("div").classes("rg-stage-bar").props("aria-hidden=true")
                    bar.style(f"--share: {100 * max(0.0, score) / top:.1f}%")
                    ui.label(f"{score:.3f}").classes("rg-dim")
