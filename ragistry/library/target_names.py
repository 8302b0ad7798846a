"""Names for routing: collections, repositories and archives must not share one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from ragistry.config.archives import RagArchiveConfig
from ragistry.config.collections import CollectionsFile
from ragistry.errors import CollectionAlreadyExistsError
from ragistry.library.contract_entries import names

Kind = Literal["collection", "repository", "archive"]
KINDS: tuple[Kind, ...] = ("collection", "repository", "archive")


@dataclass(frozen=True, slots=True)
class TargetNames:
    """What is called how in a workspace; asked anew each time."""

    collections: CollectionsFile
    repositories: Path
    archives: Sequence[RagArchiveConfig]

    def check_free(self, kind: Kind) -> Callable[[str], None]:
        """What raises `CollectionAlreadyExistsError` for a name that something of another kind has."""
        return partial(self._check_free, kind)

    def clashes(self) -> dict[str, list[Kind]]:
        """The names that are given twice, and to what."""
        taken = {kind: self._names(kind) for kind in KINDS}
        kinds = {name: [kind for kind in taken if name in taken[kind]] for found in taken.values() for name in found}
        return {name: having for name, having in sorted(kinds.items()) if len(having) > 1}

    def _check_free(self, kind: Kind, name: str) -> None:
        for other in KINDS:
            if other != kind and name in self._names(other):
                raise CollectionAlreadyExistsError(
                    f"there is {a(other)} {name!r}, and queries are routed by name; give the {kind} another name"
                    f"{' (`--name`)' if kind == 'repository' else ''}"
                )

    def _names(self, kind: Kind) -> list[str]:
        if kind == "collection":
            return [entry.name for entry in self.collections.entries()]
        return names(self.repositories) if kind == "repository" else [archive.name for archive in self.archives]


def a(kind: Kind) -> str:
    """The kind with its article."""
    return f"an {kind}" if kind == "archive" else f"a {kind}"
