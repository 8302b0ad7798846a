"""Recognise the files that this program writes. They are never ingested or sent, by any door.

The configuration may hold keys and tokens, and a search would find the descriptions of collections.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

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
from ragistry.config.settings import CONFIG_FOLDER
from ragistry.errors import SourceError

_STORE = {"store.db", "lock"}
"""Both must exist: a file of the first name may belong to another program."""
_INDEXES = ("vectors", "words")
_BESIDE_A_STORE = {CHROMA, DERIVED, EVALUATION, JOBS, REPOSITORIES, UPLOADS, *_INDEXES}
_KEYS = {
    **{name: set(model.model_fields) for name, model in FILES.items()},
    "techniques.yaml": {"techniques", "default"},
    "models.yaml": {"generators", "rerankers"},
    TOKENS_FILE: {"tokens"},
}
_KEY = re.compile(rb"^([A-Za-z_][\w-]*)[ \t]*:", re.MULTILINE)
_READ = 1_000_000
_SCHEMA = ".schema.json"


def is_own_file(path: Path) -> bool:
    """Whether a file is part of the configuration of a workspace, by its name, its folder and its keys.

    A file ``config/models.yaml`` of another program has other keys.
    """
    if path.name.endswith(_SCHEMA):
        is_schema = f"{path.name.removesuffix(_SCHEMA)}.yaml" in CONFIGURATION
        return is_schema and _real(path).parts[-3:-1] == (CONFIG_FOLDER, "schemas")
    try:
        if path.name not in CONFIGURATION and not path.is_symlink():
            return False  # as nearly all: to ask where a path leads takes longer than to list it
        real = _real(path)
    except (OSError, ValueError):  # out of reach: the reader reports it
        return False
    if real.name not in CONFIGURATION or real.parent.name != CONFIG_FOLDER:
        return False
    try:
        with real.open("rb") as stream:
            keys = {key.decode() for key in _KEY.findall(stream.read(_READ))}
    except OSError:
        return True
    return keys <= _KEYS[real.name]


def refuse_own_file(path: str | Path) -> None:
    """Raise `SourceError` for a file that `is_own_file`."""
    if is_own_file(Path(path)):
        raise SourceError(
            f"{os.fspath(path)!r} is configuration of a workspace, which is not ingested; copy what is a document into "
            "another file"
        )


def without_data(folders: list[str], files: list[str]) -> list[str]:
    """The folders in a folder with these ``files``, except those of a store in it."""
    if not _STORE.issubset(files):
        return folders
    return [name for name in folders if name.partition(".")[0] not in _BESIDE_A_STORE]  # "words.new" too


def is_data_folder(folder: str | Path) -> bool:
    """Whether a folder has a store."""
    return all((Path(folder) / name).exists() for name in _STORE)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))
