"""What Ragistry keeps in a folder for itself. It is no document, though much of it is readable.

The descriptions of all collections would else be found in one of them, and sources change with each edit of another.
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
"""Both: a file of the first name may well be someone else's."""
_BESIDE_A_STORE = {"chroma", "evaluation", "repositories", "vectors", "words"}


def configuration(folder: Path) -> frozenset[str]:
    """The real paths of the configuration files of a workspace, in its ``folder`` for them."""
    return frozenset(os.path.realpath(folder / file) for file in _CONFIGURATION)


def without_data(folders: list[str], files: list[str]) -> list[str]:
    """The folders in one whose ``files`` these are, but for those of a store there; what its owner has there stays."""
    if not _STORE.issubset(files):
        return folders
    return [name for name in folders if name.partition(".")[0] not in _BESIDE_A_STORE]  # "words.new" too


def may_hold_nothing_else(folder: str | Path, config: Path) -> bool:
    """Whether a folder is, by its place, one of Ragistry's own."""
    real = Path(os.path.realpath(folder))
    return real.is_relative_to(os.path.realpath(config)) or all((real / name).exists() for name in _STORE)
