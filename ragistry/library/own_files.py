"""Files of Ragistry in a folder, which are not ingested although many are readable.

Otherwise a search would find the descriptions of collections, and these sources would change with every edit.
"""

from __future__ import annotations

import os
from pathlib import Path

_CONFIGURATION = tuple(
    file
    for name in ("documents", "techniques", "vector_stores", "models")
    for file in (f"{name}.yaml", f"schemas/{name}.schema.json")
)
_STORE = {"store.db", "lock"}
"""Both must exist: a file of the first name may belong to another program."""
_BESIDE_A_STORE = {"chroma", "evaluation", "repositories", "vectors", "words"}


def configuration(folder: Path) -> frozenset[str]:
    """The real paths of the configuration files of a workspace in ``folder``."""
    return frozenset(os.path.realpath(folder / file) for file in _CONFIGURATION)


def without_data(folders: list[str], files: list[str]) -> list[str]:
    """The folders in a folder with these ``files``, except those of a store in it."""
    if not _STORE.issubset(files):
        return folders
    return [name for name in folders if name.partition(".")[0] not in _BESIDE_A_STORE]  # "words.new" too


def may_hold_nothing_else(folder: str | Path, config: Path) -> bool:
    """Whether a folder belongs to Ragistry by its place."""
    real = Path(os.path.realpath(folder))
    return real.is_relative_to(os.path.realpath(config)) or all((real / name).exists() for name in _STORE)
