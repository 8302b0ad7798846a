"""Whether a folder is a workspace, and the nearest workspace if it is not."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from ragistry.config.files import FILES
from ragistry.config.settings import CONFIG_FOLDER, LOCAL, Settings
from ragistry.errors import ConfigError

TOKENS_FILE = "tokens.yaml"
CONFIGURATION = (*FILES, "techniques.yaml", "models.yaml", TOKENS_FILE)
"""Files of a configuration folder."""
CHROMA, DERIVED, EVALUATION, JOBS, REPOSITORIES, UPLOADS = (
    "chroma", "derived", "evaluation", "jobs", "repositories", "uploads",
)  # fmt: skip
"""Folders of a data folder, beside those of the indexes of its store."""


def folder_of(root: Path, folder: str) -> Path:
    """A folder from the settings; relative paths are relative to the workspace. Raises `ConfigError`."""
    try:
        return root / Path(folder).expanduser()
    except RuntimeError as error:
        raise ConfigError(f"there is no user of the folder {folder!r} here; write its path in full") from error


def missing(root: Path, settings: Settings) -> str:
    """Why a folder is not a workspace, with the remedy; empty if it has configuration or data, or another store.

    Used by commands that only read; a library can start in any folder.
    """
    data = folder_of(root, settings.data_dir)
    if settings.store != LOCAL or os.access(data, os.F_OK) or _is_configured(root):
        return ""
    said = f"no workspace in {str(root)!r}, neither configuration nor data"
    above = next(filter(_is_configured, root.resolve().parents), None)
    if above is None:
        return f"{said}; name its folder with -w, or begin one here with `ragistry ingest FOLDER --collection NAME`"
    place = str(above) if root.is_absolute() else os.path.relpath(above)
    return f"{said}; there is one in {place!r}, add `-w {shlex.quote(place)}`"


def _is_configured(folder: Path) -> bool:
    """A parent folder with data only is not suggested: a command run there by mistake may have created them."""
    return any(os.access(folder / CONFIG_FOLDER / name, os.F_OK) for name in CONFIGURATION)
