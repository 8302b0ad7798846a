"""``ragistry config``: print every setting, its value and where it comes from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from ragistry.cli import models
from ragistry.cli.flags import refuse_all_but
from ragistry.cli.options import JsonOption, WorkspaceOption
from ragistry.cli.output import print_json, print_table
from ragistry.utils.urls import public_url

ADDRESS = ("_url", "_host")
"""Suffixes of settings that may contain a user name and a password."""
TECHNIQUE = "default technique"
FIRST = (TECHNIQUE, "n_results", "embed_model", "language", "chunk_size", "chunk_overlap", "store", "data_dir")
"""Settings printed first, because most users look for them."""

app = typer.Typer()
app.add_typer(models.app, name="models")


@app.callback(invoke_without_command=True)
def config(
    context: typer.Context,
    workspace: WorkspaceOption = Path(),
    as_json: JsonOption = False,
) -> None:
    """Print each setting with its value, or list embedding models.

    The third column is where a value comes from: a default, a file, or a variable of the environment. The variables of
    archives are listed if vector_stores.yaml names archives.
    """
    if context.invoked_subcommand is not None:
        refuse_all_but(context, context.invoked_subcommand)
        return
    from pydantic import SecretStr

    from ragistry.config.archives import archive_environment
    from ragistry.workspace import open_workspace

    with open_workspace(workspace) as opened:
        values = opened.settings.model_dump(mode="json")
        values |= {name: "set" for name, value in opened.settings if isinstance(value, SecretStr)}
        registry = opened.registry
        origins = opened.origins | {TECHNIQUE: "default" if registry.is_packaged else registry.file.place(["default"])}
        values[TECHNIQUE] = registry.default
        reading = opened.reading
    used = {"chunk_size": reading.chunk_size, "chunk_overlap": reading.chunk_overlap}
    values["archives"] = [archive["name"] for archive in values["archives"]]
    archive_origins: dict[str, str] = {}
    if values["archives"]:
        of_archives, archive_origins = archive_environment()
        values |= of_archives
    values = {name: values[name] for name in FIRST} | values
    values |= {name: public_url(value) for name, value in values.items() if value and name.lower().endswith(ADDRESS)}
    origins = origins | archive_origins
    if as_json:
        found = {name: {"value": used.get(name, value), "from": origins[name]} for name, value in values.items()}
        print_json({"settings": found})
        return
    rows = []
    for name, value in values.items():
        shown = f"{value} ({used[name]})" if name in used and used[name] != value else _value_text(value)
        rows.append((name, shown, origins[name]))
    print_table({"setting": "name", "value": "name", "from": "name"}, rows)


def _value_text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_value_text(inner)}" for name, inner in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "-"
    if value is None:
        return "-"
    return f"{value:g}" if isinstance(value, float) else str(value)
