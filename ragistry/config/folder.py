"""Names of the files and folders of a workspace, and whether a folder is one."""

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
"""Folders of a data folder, in addition to those of the indexes of its store."""
ANSWERS = f"{EVALUATION}/answers.db"
"""File of a data folder with the answers of models in comparisons; removed when a source is erased."""
RESTORING = ".restoring"
"""Folder of a workspace that exists while a backup is restored into it."""


def check_restored(root: Path) -> None:
    """Raise `ConfigError` for a folder with a part of a backup, which looks like a smaller library or an empty one."""
    if os.access(root / RESTORING, os.F_OK):
        raise ConfigError(
            f"{str(root)!r} has only a part of a backup, because its restore has not ended; run "
            f"`ragistry restore FILE {shlex.quote(str(root))}` again; it starts from the beginning"
        )


def folder_of(root: Path, folder: str) -> Path:
    """Return a folder from the settings; relative paths start at the workspace. Raises `ConfigError`."""
    try:
        return root / Path(folder).expanduser()
    except RuntimeError as error:
        raise ConfigError(f"the folder {folder!r} names an unknown user; write the full path") from error


def missing(root: Path, settings: Settings) -> str:
    """Return why a folder is not a workspace, with the remedy; empty if it has configuration, data or another store.

    Used by commands that only read; a library can start in any folder.
    """
    data = folder_of(root, settings.data_dir)
    if settings.store != LOCAL or os.access(data, os.F_OK) or _is_configured(root):
        return ""
    problem = f"no workspace in {str(root)!r}, neither configuration nor data"
    above = next(filter(_is_configured, root.resolve().parents), None)
    if above is None:
        return f"{problem}; name its folder with -w, or start one here with `ragistry ingest FOLDER --collection NAME`"
    place = str(above) if root.is_absolute() else os.path.relpath(above)
    return f"{problem}; the nearest is {place!r}, add `-w {shlex.quote(place)}`"


def _is_configured(folder: Path) -> bool:
    """Ignore data: a command that ran in the folder by mistake may have created it."""
    return any(os.access(folder / CONFIG_FOLDER / name, os.F_OK) for name in CONFIGURATION)
