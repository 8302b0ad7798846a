"""``ragistry techniques``: list the configured and the installed techniques."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ragistry.cli.flags import refuse_together
from ragistry.cli.options import JsonOption, WorkspaceOption
from ragistry.cli.output import error_line, print_json, print_table


def techniques(
    context: typer.Context,
    available: Annotated[
        bool, typer.Option("--available", help="List all installed techniques, the values of `use`.")
    ] = False,
    workspace: WorkspaceOption = Path(),
    as_json: JsonOption = False,
) -> None:
    """List the techniques of the workspace with a description."""
    from ragistry.techniques.classes import broken_plugins

    refuse_together(context, "available", "workspace")
    broken = broken_plugins()
    rows, removed = (_available(broken), "") if available else _configured(workspace, broken)
    if as_json:
        print_json({"techniques": rows, "broken": broken})
        return
    _print(rows)
    for reason in broken.values():
        error_line(reason, label="broken")
    if removed:
        error_line(removed, label="note")


def _configured(workspace: Path, broken: dict[str, str]) -> tuple[list[dict[str, Any]], str]:
    from dataclasses import asdict

    from ragistry.presentation.plain import describe_techniques
    from ragistry.workspace import open_workspace

    with open_workspace(workspace) as opened:
        broken |= opened.registry.broken
        return [asdict(one) for one in describe_techniques(opened.registry)], opened.registry.removed


def _available(broken: dict[str, str]) -> list[dict[str, Any]]:
    from ragistry.techniques.classes import find_class, first_sentence, offers

    return [
        {"name": name, "from": offer.distribution, "description": first_sentence(find_class(name))}
        for name, offer in offers().items()
        if name not in broken
    ]


def _print(rows: list[dict[str, Any]]) -> None:
    cells = []
    for row in rows:
        name = f"{row['name']} (default)" if row.get("default") else row["name"]
        over = f" over {', '.join(row['bases'])}" if row.get("bases") else ""
        about = f"Cannot run, see below. {row['description']}" if row.get("unusable") else row["description"]
        cells.append((name, str(row.get("use", row.get("from"))) + over, about))
    made_of = "use" if rows and "use" in rows[0] else "from"
    print_table({"name": "name", made_of: "name", "what it does": "text"}, cells)
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if reason := row.get("unusable"):
            reasons.setdefault(reason.removeprefix(f"technique {row['name']!r} "), []).append(row["name"])
    for reason, names in reasons.items():
        error_line(f"{', '.join(names)}: {reason}", label="cannot run")
