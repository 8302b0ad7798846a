"""Complete names in the shell, from the files of the workspace and without opening the store."""

from __future__ import annotations

import os
from pathlib import Path

import typer


def technique_names(context: typer.Context, incomplete: str) -> list[str]:
    """Return the techniques whose names begin with a text; none if the file has an error."""
    from ragistry.config.settings import CONFIG_FOLDER, DEFAULTS
    from ragistry.config.yaml_file import read_yaml
    from ragistry.errors import ConfigError

    file = _workspace(context) / CONFIG_FOLDER / "techniques.yaml"
    try:
        written = read_yaml(file if file.is_file() else DEFAULTS / file.name).data.get("techniques")
    except (ConfigError, OSError):
        return []
    return [name for name in map(str, written if isinstance(written, dict) else ()) if name.startswith(incomplete)]


def collection_names(context: typer.Context, incomplete: str) -> list[str]:
    """Return the collections whose names begin with a text; none if the file has an error."""
    from ragistry.config.collections import CollectionsFile
    from ragistry.errors import ConfigError

    try:
        entries = CollectionsFile(_workspace(context)).entries()
    except (ConfigError, OSError):
        return []
    return [entry.name for entry in entries if entry.name.startswith(incomplete)]


def _workspace(context: typer.Context) -> Path:
    """Return the workspace given after the command, before it, or by the environment."""
    named = [found.params.get("workspace") for found in (context, context.find_root())]
    given = [path for path in named if path not in (None, Path())]
    return Path(given[0] if given else os.environ.get("RAGISTRY_WORKSPACE") or Path())
