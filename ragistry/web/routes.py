"""Where a query was sent, and why: every target's score, and the rule that decided."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nicegui import ui

from ragistry.types import RetrievalResult

WHY = {
    "no targets": "there is nothing to search",
    "only target": "there is only this one",
    "named": "the search was limited to it",
    "best": "one scores above all others",
    "small margin": "several score nearly the same, and are searched together",
    "nothing fits": "what was found fits the query too little; nothing is searched",
    "no evidence": "nothing speaks for any of them; all are searched",
    "model": "a model chose",
    "fallback": "the model did not choose",
    "all": "every one is searched",
}
"""What the rules of `ragistry.techniques.routing.route` mean."""


def route(result: RetrievalResult) -> None:
    """The routes that were taken in a retrieval; nothing where none was."""
    for stage in result.trace:
        scores = stage.detail.get("scores")
        if stage.name != "route" or not isinstance(scores, dict):
            continue
        chosen = stage.detail.get("chosen", ())
        with ui.element("div").classes("rg-route"):
            ui.label(f"Route: {_why(stage.detail)}").classes("rg-route-rule")
            top = max((abs(score) for score in scores.values()), default=0.0) or 1.0
            for name, score in sorted(scores.items(), key=lambda item: -item[1]):
                with ui.element("div").classes("rg-stage" + (" rg-chosen" if name in chosen else "")):
                    ui.label(name).classes("rg-stage-name")
                    bar = ui.element("div").classes("rg-stage-bar").props("aria-hidden=true")
                    bar.style(f"--share: {100 * max(0.0, score) / top:.1f}%")
                    ui.label(f"{score:.3f}").classes("rg-dim")


def _why(detail: Mapping[str, Any]) -> str:
    rule = detail.get("rule", "")
    figures = [f"{name} {detail[name]:.3f}" for name in ("margin", "fit") if isinstance(detail.get(name), float)]
    known = [WHY.get(rule, rule), f"router {detail.get('router', '')}", *figures, detail.get("note", "")]
    return ", ".join(part for part in known if part)
