"""Targets of routing: the collections and repositories of a workspace, and targets that a program adds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, cast

from ragistry.config.archives import RagArchiveConfig
from ragistry.config.collections import CollectionsFile
from ragistry.errors import StoreCorruptError, StoreError
from ragistry.library.contract.entries import RepositoryEntry, names, read_entry
from ragistry.library.repositories.repository import Build, Repositories, RepositoryTechnique
from ragistry.library.scope import being_renamed
from ragistry.library.service import DocumentService
from ragistry.techniques.routing.target import Place, Target, library_targets
from ragistry.types import Document, Where


@dataclass(slots=True)
class WorkspaceTargets:
    """Lists the targets of a workspace; routers call it for every query.

    A damaged repository is also a target, so that only callers who may search it see the error.

    Attributes:
        library: The document library.
        repositories: The documentation repositories.
        build: Builds the technique that searches a repository's store.
        added: Targets that a program added.
    """

    library: DocumentService
    repositories: Repositories
    build: Build
    added: list[Target] = field(default_factory=list)
    _kept: dict[str, RepositoryTechnique] = field(default_factory=dict)
    _broken: dict[str, Broken] = field(default_factory=dict)

    def __call__(self) -> list[Target]:
        return [*self._of_collections(), *self._of_repositories(), *self.added]

    def add(self, *targets: Target) -> None:
        """Add targets, such as archives."""
        self.added.extend(targets)

    def close(self) -> None:
        """Close the repositories' stores; added targets are closed by their owner."""
        kept, self._kept = self._kept, {}
        for technique in kept.values():
            technique.collection.close()

    def _of_collections(self) -> list[Target]:
        """List the collections; a search uses both names during a rename."""
        names, targets = self.library.scope.current_names(), library_targets(self.library)
        renamed = {entry.name for entry in being_renamed(self.library.collections)}
        return [
            replace(target, where=names.condition_for(target.name), technique=self.build(self.library.store))
            if target.name in renamed
            else target
            for target in targets
        ]

    def _of_repositories(self) -> list[Target]:
        """List the repositories with their open stores.

        The stores stay open between queries, because routers use them as cache keys.
        """
        records = _records(self.repositories)
        self._kept = {
            name: self._kept.get(name) or RepositoryTechnique(self.repositories.collection(name), self.build)
            for name, entry in records.items()
            if isinstance(entry, RepositoryEntry)
        }
        return [self._of_repository(name, record) for name, record in records.items()]

    def _of_repository(self, name: str, record: RepositoryEntry | StoreCorruptError) -> Target:
        if not isinstance(record, RepositoryEntry):
            broken = self._as_broken(name, record)
            return Target(name, "", "repository", technique=broken, store=broken)
        technique, store = self._kept[name], cast("Place | None", None)
        try:
            store = technique.collection.read(lambda store: store, store)
        except StoreError as error:
            store = self._as_broken(name, error)
        about = str(record.metadata.get("description") or f"Documentation of {record.name}")
        return Target(name, about, "repository", technique=technique, store=store)

    def _as_broken(self, name: str, error: StoreError) -> Broken:
        """Return the same object for the same error, because routers cache by it."""
        known = self._broken.get(name)
        if known is None or str(known.error) != str(error):
            known = self._broken[name] = Broken(error)
        return known


class Broken:
    """A repository that cannot be read; every use raises the error."""

    def __init__(self, error: StoreError) -> None:
        self.error = error

    def retrieve(self, query: str, *, top_k: int | None = None, where: Where | None = None) -> list[Document]:  # noqa: ARG002
        raise self.error.with_traceback(None)

    def count(self) -> int:
        raise self.error.with_traceback(None)

    def sample(self, size: int) -> list[Document]:  # noqa: ARG002
        raise self.error.with_traceback(None)


def _records(repositories: Repositories) -> dict[str, RepositoryEntry | StoreCorruptError]:
    """Read the entry of each repository, or the error that makes it unreadable."""
    found: dict[str, RepositoryEntry | StoreCorruptError] = {}
    for name in names(repositories.root):
        try:
            entry = read_entry(repositories.root, name)
        except StoreCorruptError as error:
            found[name] = error
            continue
        if entry is not None:
            found[name] = entry
    return found


Kind = Literal["collection", "repository", "archive"]
KINDS: tuple[Kind, ...] = ("collection", "repository", "archive")


@dataclass(frozen=True, slots=True)
class TargetNames:
    """The names of all targets of a workspace, read again for every check."""

    collections: CollectionsFile
    repositories: Path
    archives: Sequence[RagArchiveConfig]

    def used_by(self, name: str, *, but: Kind) -> str:
        """Describe the target of another kind that has a name, such as "an archive"; empty if none has it."""
        return next((a(kind) for kind in KINDS if kind != but and name in self._names(kind)), "")

    def clashes(self) -> dict[str, list[Kind]]:
        """Return the names that several kinds of targets use, with these kinds."""
        taken = {kind: self._names(kind) for kind in KINDS}
        kinds = {name: [kind for kind in taken if name in taken[kind]] for found in taken.values() for name in found}
        return {name: having for name, having in sorted(kinds.items()) if len(having) > 1}

    def _names(self, kind: Kind) -> list[str]:
        if kind == "collection":
            return [entry.name for entry in self.collections.entries()]
        return names(self.repositories) if kind == "repository" else [archive.name for archive in self.archives]


def a(kind: Kind) -> str:
    """Return the kind with its indefinite article."""
    return f"an {kind}" if kind == "archive" else f"a {kind}"
