"""The page ``/techniques``: a line for each technique, which opens to its parameters and flowchart."""

from __future__ import annotations

import json
from typing import Any

from nicegui import ui

from ragistry.errors import ConfigError
from ragistry.pipelines.graph import END
from ragistry.pipelines.pipeline import START, flowchart
from ragistry.pipelines.technique import PipelineTechnique
from ragistry.techniques.classes import config_schema
from ragistry.techniques.registry import TechniqueRegistry
from ragistry.web.app_state import PAGE_TIMEOUT, AppState
from ragistry.web.layout import heading, page_layout
from ragistry.web.search_form import CANNOT_RUN, caption
from ragistry.web.widgets import row, table, text_cell


def register(state: AppState) -> None:
    """Register the page."""

    @ui.page("/techniques", response_timeout=PAGE_TIMEOUT)
    def techniques() -> None:
        registry = state.workspace.registry
        with page_layout("Techniques", "Techniques"):
            heading("Techniques")
            if registry.removed:
                ui.label(registry.removed).classes("rg-dim")
            for name in (*registry.names(), *registry.broken):
                _technique(registry, name)


def _technique(registry: TechniqueRegistry, name: str) -> None:
    """Show a technique as one line, which opens to its details."""

    def show() -> None:
        if not list(line):  # opened for the first time
            with line:
                _details(registry, name)

    with ui.element("section").props(f'aria-label="{name}"'):
        title = f"{name} (default)" if name == registry.default else name
        line = ui.expansion(title, caption=caption(registry, name), on_value_change=show).classes("rg-stages")


def _details(registry: TechniqueRegistry, name: str) -> None:
    """Show why a technique cannot run, its parameters, and its structure."""
    if reason := registry.broken.get(name) or registry.unusable(name):
        ui.label(f"{CANNOT_RUN}: {reason}.").classes("rg-note")
    if name in registry.broken:
        return
    entry = registry.entry(name)
    ui.label(f"use: {entry.use}").classes("rg-dim")
    _parameters(name, config_schema(registry.technique_class(name)), entry.config)
    try:
        ui.mermaid(technique_chart(registry, name))
    except ConfigError as error:
        ui.label(str(error)).classes("rg-failure")


def _parameters(name: str, schema: dict[str, Any] | None, config: dict[str, Any]) -> None:
    properties = (schema or {}).get("properties", {})
    if not properties:
        return
    _, body = table(f"Parameters of {name}", ("Parameter", "Value", "Default", "Description"))
    with body:
        for parameter, about in properties.items():
            with row():
                text_cell(parameter, "rg-name")
                default = shown_value(about["default"]) if "default" in about else "required"
                text_cell(shown_value(config[parameter]) if parameter in config else default)
                text_cell(default, unit="default")
                text_cell(about.get("description", ""), "rg-wide")


def shown_value(value: Any) -> str:
    """Return a value of a parameter as text."""
    if value is None or value == "" or value == []:
        return "not set"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def technique_chart(registry: TechniqueRegistry, name: str) -> str:
    """Return a Mermaid flowchart: the steps of a pipeline, or the bases of another technique.

    Raises:
        ConfigError: The pipeline cannot be built in this workspace.
    """
    if issubclass(registry.technique_class(name), PipelineTechnique):
        chart: str = registry.get(name).technique.pipeline.mermaid()  # type: ignore[attr-defined]
        return chart
    bases: dict[str, list[str]] = {}
    waiting = [name]
    while waiting:
        if (technique := waiting.pop()) not in bases:
            entry = registry.entry(technique)
            bases[technique] = [base for base in dict.fromkeys((entry.base, *entry.bases)) if base]
            waiting += reversed(bases[technique])
    labels = {one: one if registry.entry(one).use == one else f"{one} ({registry.entry(one).use})" for one in bases}
    arrows = [(base, "", technique) for technique, below in bases.items() for base in below or [START]]
    return flowchart(labels, [*arrows, (name, "", END)])
