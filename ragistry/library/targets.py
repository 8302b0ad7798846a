"""What a workspace's routed techniques choose from: its collections, its repositories, and what a program adds."""

from __future__ import annotations

from dataclasses import dataclass, field

from ragistry.library.contract_entries import entries
from ragistry.library.repository import Repositories
from ragistry.library.repository_search import Build, repository_technique
from ragistry.techniques.routing.target import Library, Target, library_targets


@dataclass(slots=True)
class WorkspaceTargets:
    """Called at every query. ``build``: makes the technique that searches a repository, over its store."""

    library: Library
    repositories: Repositories
    build: Build
    added: list[Target] = field(default_factory=list)
    _kept: dict[tuple[str, str], Target] = field(default_factory=dict)

    def __call__(self) -> list[Target]:
        return [*library_targets(self.library), *self._of_repositories(), *self.added]

    def add(self, *targets: Target) -> None:
        """Let routed techniques choose these too, such as archives."""
        self.added.extend(targets)

    def _of_repositories(self) -> list[Target]:
        """Each repository with its open store, kept from one query to the next."""
        known: dict[tuple[str, str], Target] = {}
        for entry in entries(self.repositories.root):
            key = entry.name, str(entry.metadata.get("description") or f"Documentation of {entry.name}")
            known[key] = self._kept.get(key) or Target(
                *key,
                kind="repository",
                technique=repository_technique(self.repositories.collection(entry.name), self.build),
            )
        self._kept = known
        return list(known.values())
