"""``ragistry route``: show, evaluate and fit the routing of queries to collections."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragistry.cli.completion import technique_names
from ragistry.cli.options import DebugOption, JsonOption, WorkspaceOption
from ragistry.cli.output import console, print_json
from ragistry.cli.tables import Kind, print_table

if TYPE_CHECKING:
    from ragistry.techniques.routing.evaluate import FittedLimits, RoutingReport
    from ragistry.techniques.routing.route import Route
    from ragistry.techniques.routing.technique import CollectionRoutedTechnique
    from ragistry.workspace import Workspace


def route(
    query: Annotated[str | None, typer.Argument(help="The query to route.")] = None,
    technique: Annotated[
        str | None,
        typer.Option(
            "--technique",
            "-t",
            autocompletion=technique_names,
            help="A name of techniques.yaml that uses collection_routed.",
        ),
    ] = None,
    evaluate: Annotated[
        Path | None,
        typer.Option("--evaluate", help='Evaluate the router on lines {"text": …, "collection": … or null}.'),
    ] = None,
    fit: Annotated[
        bool, typer.Option("--fit", help="Find margin and threshold from the collections, and print them.")
    ] = False,
    workspace: WorkspaceOption = Path(),
    as_json: JsonOption = False,
    debug: DebugOption = False,  # noqa: ARG001, read from the command line by `run`
) -> None:
    """Print which collections a query would be routed to, with every score and the rule that decided.

    `--fit` asks the router queries made from titles, headings and sentences of the collections, and prints the line for
    config/techniques.yaml. It changes nothing.
    """
    from ragistry.techniques.routing.technique import routing_technique
    from ragistry.workspace import open_workspace

    if sum((query is not None, evaluate is not None, fit)) != 1:
        raise typer.BadParameter("give one of QUERY, --evaluate FILE and --fit")
    with open_workspace(workspace, existing=True) as opened:
        name, routed = routing_technique(opened.registry, technique)
        named = {"technique": name}
        if query is not None:
            chosen = routed.route(query)
            print_json({"query": query} | named | chosen.detail()) if as_json else _print_route(name, chosen)
        elif evaluate is not None:
            report = _evaluated(routed, evaluate)
            print_json(named | report.as_mapping()) if as_json else _print_report(name, report)
        else:
            found = _fitted(routed, opened)
            print_json(named | asdict(found)) if as_json else console().print(_entry(opened, name, found))


def _evaluated(routed: CollectionRoutedTechnique, path: Path) -> RoutingReport:
    from ragistry.techniques.routing.evaluate import evaluate_router, read_labelled

    queries = read_labelled(path, [target.name for target in routed.targets()])
    config = routed.config
    return evaluate_router(routed.route, queries, threshold=config.threshold, margin=config.margin)


def _fitted(routed: CollectionRoutedTechnique, workspace: Workspace) -> FittedLimits:
    from ragistry.errors import ConfigError
    from ragistry.techniques.routing.evaluate import fit_limits, made_queries

    if routed.config.router not in ("evidence", "embedding"):
        raise ConfigError(f"router {routed.config.router!r} has nothing to fit; fit 'evidence' or 'embedding'")
    return fit_limits(routed.route, made_queries(routed.targets(), workspace.store))


def _entry(workspace: Workspace, name: str, fit: FittedLimits) -> str:
    """Return the technique's line of techniques.yaml with the fitted values."""
    import json

    entry = workspace.registry.entry(name)
    values = {"use": entry.use, "base": entry.base} | entry.config | {"margin": fit.margin, "threshold": fit.threshold}
    parts = [f"{key}: {value if isinstance(value, str) else json.dumps(value)}" for key, value in values.items()]
    return f"  {name}: {{{', '.join(parts)}}}"


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


def _print_report(technique: str, report: RoutingReport) -> None:
    out = console()
    targets = sorted({target for row in report.confusion.values() for target in row})
    columns: dict[str, Kind] = dict.fromkeys(targets, "number")
    print_table(
        {"belongs to \\ best": "name", **columns},
        [(label, *(str(row.get(name, "")) for name in targets)) for label, row in report.confusion.items()],
    )
    shares = (
        ("accuracy", report.accuracy, "the best target is the right one"),
        ("reached", report.reached, f"the right target is searched (margin {report.margin})"),
        ("kept", report.kept, f"searched at all (threshold {report.threshold})"),
        ("detected", report.detected, f"out-of-scope queries rejected (threshold {report.threshold})"),
    )
    for name, share, meaning in shares:
        if share is not None:
            out.print(f"{name:9} {share:6.1%}  {meaning}")
    out.print(
        f"technique {technique}: {report.queries} labelled and {report.out_of_scope} out-of-scope queries, "
        f"{report.searched:.2f} targets each"
    )
