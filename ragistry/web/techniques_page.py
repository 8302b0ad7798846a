"""The page ``/techniques``: all techniques with descriptions, parameters and flowcharts."""

from __future__ import annotations

import json
from typing import Any

from nicegui import ui

from ragistry.errors import ConfigError
from ragistry.pipelines.graph import END
from ragistry.pipelines.pipeline import START, flowchart
from ragistry.pipelines.technique import PipelineTechnique
from ragistry.techniques.classes import config_schema, first_sentence
from ragistry.techniques.registry import TechniqueRegistry
from ragistry.web.app_state import PAGE_TIMEOUT, AppState
from ragistry.web.layout import heading, page_layout
from ragistry.web.search_form import CANNOT_RUN
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
            for name in registry.names():
                _technique(state, name)
            for name in registry.broken:
                _broken(state, name)


def _technique(state: AppState, name: str) -> None:
    registry = state.workspace.registry
    entry, cls = registry.entry(name), registry.technique_class(name)
    with ui.element("section").classes("rg-card").props(f'aria-label="{name}"'):
        with ui.element("div").classes("rg-bar"):
            ui.label(name).classes("rg-technique").props("role=heading aria-level=2")
            ui.label(f"use: {entry.use}").classes("rg-dim")
            if name == registry.default:
                ui.label("default").classes("rg-both")
        ui.label(first_sentence(cls))
        if reason := registry.unusable(name):
            _cannot_run(reason)
        _parameters(name, config_schema(cls), entry.config)
        with ui.expansion("Structure").classes("rg-stages"):
            try:
                ui.mermaid(technique_chart(registry, name))
            except ConfigError as error:
                ui.label(str(error)).classes("rg-failure")


def _broken(state: AppState, name: str) -> None:
    with ui.element("section").classes("rg-card").props(f'aria-label="{name}"'):
        ui.label(name).classes("rg-technique").props("role=heading aria-level=2")
        _cannot_run(state.workspace.registry.broken[name])


def _cannot_run(reason: str) -> None:
    with ui.element("div").classes("rg-note"):
        ui.label(f"{CANNOT_RUN}: {reason}.")


def _parameters(name: str, schema: dict[str, Any] | None, config: dict[str, Any]) -> None:
    properties = (schema or {}).get("properties", {})
    if not properties:
        return
    with table(f"Parameters of {name}", ("Parameter", "Value", "Default", "Description")).body:
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
