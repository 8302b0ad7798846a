"""``ragistry route``: show the routing of a query to collections."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragistry.cli.options import DebugOption, JsonOption, WorkspaceOption
from ragistry.cli.output import console, print_json
from ragistry.cli.tables import print_table

if TYPE_CHECKING:
    from ragistry.techniques.routing.route import Route


def route(
    query: Annotated[str, typer.Argument(help="The query to route.")],
    technique: Annotated[
        str | None,
        typer.Option("--technique", "-t", help="A name of techniques.yaml that uses collection_routed."),
    ] = None,
    workspace: WorkspaceOption = Path(),
    as_json: JsonOption = False,
    debug: DebugOption = False,  # noqa: ARG001, read from the command line by `run`
) -> None:
    """Print which collections a query would be routed to, with every score and the rule that decided."""
    from ragistry.techniques.routing.technique import routing_technique
    from ragistry.workspace import open_workspace

    with open_workspace(workspace, existing=True) as opened:
        name, routed = routing_technique(opened.registry, technique)
        chosen = routed.route(query)
        print_json({"query": query, "technique": name} | chosen.detail()) if as_json else _print_route(name, chosen)


def _print_route(technique: str, route: Route) -> None:
    if route.scores:
        print_table(
            {"target": "name", "score": "number", "rule": "text"},
            [
                (name, f"{score:.3f}", route.rule if name in route.chosen else "")
                for name, score in route.scores.items()
            ],
        )
    numbers = [
        f"{label} {value:.3f}" for label, value in (("margin", route.margin), ("fit", route.fit)) if value is not None
    ]
    decision = f"{', '.join([route.rule, *numbers])}{f' ({route.note})' if route.note else ''}"
    console().print(f"technique {technique}, router {route.router}: {decision}")
