"""What a workspace's routed techniques choose from: its collections, its repositories, and what a program adds."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ragistry.errors import StoreCorruptError, StoreError
from ragistry.library.contract_entries import Entry, names, read_entry
from ragistry.library.repository import Repositories
from ragistry.library.repository_search import Build, RepositoryTechnique
from ragistry.library.scope import being_renamed
from ragistry.library.service import DocumentService
from ragistry.stores.local import LocalStore
from ragistry.techniques.routing.target import Target, library_targets
from ragistry.trace import degraded


@dataclass(slots=True)
class WorkspaceTargets:
    """Called at every query. ``build``: makes the technique that searches a repository, over its store.

    A repository whose record is damaged is named in the trace, and the others are served.
    """

    library: DocumentService
    repositories: Repositories
    build: Build
    added: list[Target] = field(default_factory=list)
    _kept: dict[str, RepositoryTechnique] = field(default_factory=dict)

    def __call__(self) -> list[Target]:
        return [*self._of_collections(), *self._of_repositories(), *self.added]

    def add(self, *targets: Target) -> None:
        """Let routed techniques choose these too, such as archives."""
        self.added.extend(targets)

    def close(self) -> None:
        """Let go of the repositories' stores; what was added is its owner's to close."""
        kept, self._kept = self._kept, {}
        for technique in kept.values():
            technique.collection.close()

    def _of_collections(self) -> list[Target]:
        """One that is being renamed has chunks under two names, and is therefore searched by itself."""
        scope, targets = self.library.scope, library_targets(self.library)
        renamed = {entry.name for entry in being_renamed(self.library.collections)}
        return [
            replace(target, where=scope.of(target.name), technique=self.build(self.library.store))
            if target.name in renamed
            else target
            for target in targets
        ]

    def _of_repositories(self) -> list[Target]:
        """Each repository with its open store, kept from one query to the next, by which routers know it."""
        records = _records(self.repositories)
        self._kept = {
            entry.name: self._kept.get(entry.name)
            or RepositoryTechnique(self.repositories.collection(entry.name), self.build)
            for entry in records
        }
        return [_target(entry, self._kept[entry.name]) for entry in records]


def _target(entry: Entry, technique: RepositoryTechnique) -> Target:
    store: LocalStore | None = None
    try:
        store = technique.collection.at(entry.folder)
    except StoreError as error:
        degraded(f"repository {entry.name} is known by its description only: {error}")
    return Target(entry.name, _about(entry), "repository", technique=technique, store=store)


def _records(repositories: Repositories) -> list[Entry]:
    found = []
    for name in names(repositories.root):
        try:
            entry = read_entry(repositories.root, name)
        except StoreCorruptError as error:
            degraded(f"repository {name} was not searched: {error}")
            continue
        if entry is not None:
            found.append(entry)
    return found


def _about(entry: Entry) -> str:
    return str(entry.metadata.get("description") or f"Documentation of {entry.name}")
