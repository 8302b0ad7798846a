"""``ragistry route``: show the routing of a query to collections."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from ragistry.cli.command import Output, on_workspace
from ragistry.cli.output import console, print_table

if TYPE_CHECKING:
    from ragistry.techniques.routing.route import Route
    from ragistry.workspace import Workspace


@on_workspace()
def route(
    opened: Workspace,
    query: Annotated[str, typer.Argument(help="The query to route.")],
    technique: Annotated[
        str | None,
        typer.Option("--technique", "-t", help="A name of techniques.yaml that uses collection_routed."),
    ] = None,
) -> Output:
    """Print which collections a query would be routed to, with every score and the rule that decided."""
    from ragistry.techniques.routing.technique import routing_technique

    name, routed = routing_technique(opened.registry, technique)
    chosen = routed.route(query)
    return Output({"query": query, "technique": name} | chosen.detail(), partial(_print_route, name, chosen))


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
