"""What a store in a folder is opened with, checked before anything is made."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ragistry.errors import ConfigError
from ragistry.utils.shown import shown

MAX_NAME = 255
"""Bytes in the name of one folder; what the usual file systems take."""
MAX_PATH = 450
"""Bytes in the whole path: SQLite takes 512, and the names of the files come after it."""


def store_folder(folder: Any) -> Path:
    """The real path of a store's folder; raises `ConfigError` for what cannot be one."""
    name = os.fspath(folder) if isinstance(folder, os.PathLike) else folder
    if not isinstance(name, str) or not name or "\0" in name:
        raise ConfigError(f"{shown(folder)} is not the path of a folder; give the path as text, without NUL")
    try:
        path = Path(os.path.realpath(name))
        longest, whole = max(len(part.encode()) for part in path.parts), len(str(path).encode())
    except UnicodeEncodeError as error:
        place = shown(str(Path(name).absolute()))
        raise ConfigError(f"the folder {place} has a name that is not UTF-8 in its path; rename that") from error
    if longest > MAX_NAME or whole > MAX_PATH:
        raise ConfigError(
            f"the folder {shown(str(path))} has a path of {whole:,} bytes and a name of {longest:,} in it, the limits "
            f"are {MAX_PATH} and {MAX_NAME}; choose a shorter one"
        )
    return path
