"""Recognise the files that this program writes, which are never ingested or uploaded.

The configuration may contain keys and tokens, and a search would find the descriptions of collections.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from pathlib import Path, PurePosixPath

from ragistry.config.files import FILES
from ragistry.config.folder import (
    CHROMA,
    CONFIGURATION,
    DERIVED,
    EVALUATION,
    JOBS,
    REPOSITORIES,
    TOKENS_FILE,
    UPLOADS,
)
from ragistry.config.settings import CONFIG_FOLDER, Settings
from ragistry.errors import SourceError

STORE_FILES = {"store.db", "lock"}
"""Both must exist: a file of the first name may belong to another program."""
_BESIDE_THE_DATABASE = {"lock", "lock.holder", "reserve"}
_IN_A_BACKUP = {"manifest.json", f"{Settings.model_fields['data_dir'].default}/store.db"}
_INDEXES = ("vectors", "words")
_BESIDE_A_STORE = {CHROMA, DERIVED, EVALUATION, JOBS, REPOSITORIES, UPLOADS, *_INDEXES}
_KEYS = {
    **{name: set(model.model_fields) for name, model in FILES.items()},
    "techniques.yaml": {"techniques", "default"},
    "models.yaml": {"generators", "rerankers", "encoders"},
    TOKENS_FILE: {"tokens"},
}
_KEY = re.compile(rb"^([A-Za-z_][\w-]*)[ \t]*:", re.MULTILINE)
_READ = 1_000_000
_SCHEMA = ".schema.json"


def is_own_file(path: Path) -> bool:
    """Return whether a file is part of the configuration of a workspace.

    Its name, its folder and its keys decide: a file ``config/models.yaml`` of another program has other keys.
    """
    if path.name.endswith(_SCHEMA):
        return _is_schema(path.name) and _real(path).parts[-3:-1] == (CONFIG_FOLDER, "schemas")
    try:
        if path.name not in CONFIGURATION and not path.is_symlink():
            return False  # most files, because resolving a path takes longer than listing it
        real = _real(path)
    except (OSError, ValueError):  # the reader reports it
        return False
    if real.name not in CONFIGURATION or real.parent.name != CONFIG_FOLDER:
        return False
    try:
        with real.open("rb") as stream:
            return _is_configuration(real.name, stream.read(_READ))
    except OSError:
        return True


def is_own_member(name: str, data: bytes) -> bool:
    """Return whether a file in a zip file is part of the configuration of a workspace, by its name and its start."""
    path = PurePosixPath(name)
    if path.name.endswith(_SCHEMA):
        return path.parts[-3:-1] == (CONFIG_FOLDER, "schemas") and _is_schema(path.name)
    return path.name in CONFIGURATION and path.parent.name == CONFIG_FOLDER and _is_configuration(path.name, data)


def is_backup(names: Collection[str]) -> bool:
    """Return whether a zip file with these names is a backup of a workspace."""
    return _IN_A_BACKUP.issubset(names)


def _is_schema(name: str) -> bool:
    return f"{name.removesuffix(_SCHEMA)}.yaml" in CONFIGURATION


def _is_configuration(name: str, data: bytes) -> bool:
    return {key.decode() for key in _KEY.findall(data)} <= _KEYS[name]


def refuse_own_file(path: str | Path) -> None:
    """Raise `SourceError` for a configuration file of a workspace."""
    if is_own_file(Path(path)):
        raise SourceError(
            f"{os.fspath(path)!r} is a configuration file of a workspace, which is not ingested; copy its text "
            "into another file"
        )


def without_data(folders: list[str], files: list[str]) -> list[str]:
    """Remove the folders that belong to a store.

    Args:
        folders: Names of the subfolders of a folder.
        files: Names of the files of the same folder, which show whether it has a store.
    """
    if not STORE_FILES.issubset(files):
        return folders
    return [name for name in folders if name.partition(".")[0] not in _BESIDE_A_STORE]  # "words.new" too


def is_store_file(name: str) -> bool:
    """Return whether a file of a folder with a store belongs to the store."""
    return name.startswith("store.db") or name in _BESIDE_THE_DATABASE


def is_data_folder(folder: str | Path) -> bool:
    """Return whether a folder has a store."""
    return all((Path(folder) / name).exists() for name in STORE_FILES)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))
