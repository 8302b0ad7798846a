"""``/techniques``: what is registered, what each does, its parameters, and what it is made of."""

from __future__ import annotations

import json
from typing import Any

from nicegui import ui

from ragistry.errors import ConfigError
from ragistry.techniques.classes import config_schema, first_sentence
from ragistry.techniques.registry import TechniqueRegistry
from ragistry.web.drawing import drawn
from ragistry.web.frame import frame, heading
from ragistry.web.site import PATIENCE, Site
from ragistry.web.tables import row, table, text_cell


def register(site: Site) -> None:
    """Serve the page."""

    @ui.page("/techniques", response_timeout=PATIENCE)
    def techniques() -> None:
        registry = site.workspace.registry
        with frame("Techniques", "Techniques"):
            heading("Techniques")
            for name in registry.names():
                _technique(registry, name)
            for reason in registry.broken.values():
                ui.label(reason).classes("rg-failure")


def _technique(registry: TechniqueRegistry, name: str) -> None:
    entry, cls = registry.entry(name), registry.technique_class(name)
    with ui.element("section").classes("rg-card").props(f'aria-label="{name}"'):
        with ui.element("div").classes("rg-bar"):
            ui.label(name).classes("rg-technique").props("role=heading aria-level=2")
            ui.label(f"use: {entry.use}").classes("rg-dim")
            if name == registry.default:
                ui.label("default").classes("rg-both")
        ui.label(first_sentence(cls))
        _parameters(name, config_schema(cls), entry.config)
        with ui.expansion("What it is made of").classes("rg-stages"):
            try:
                ui.mermaid(drawn(registry, name))
            except ConfigError as error:
                ui.label(str(error)).classes("rg-failure")


def _parameters(name: str, schema: dict[str, Any] | None, config: dict[str, Any]) -> None:
    properties = (schema or {}).get("properties", {})
    if not properties:
        return
    with table(f"Parameters of {name}", ("Parameter", "Here", "Otherwise", "What it is")).body:
        for parameter, about in properties.items():
            with row():
                text_cell(parameter, "rg-name")
                text_cell(json.dumps(config[parameter]) if parameter in config else "")
                text_cell(json.dumps(about.get("default")))
                text_cell(about.get("description", ""), "rg-wide")
