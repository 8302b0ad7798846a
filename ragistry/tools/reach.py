"""Which collections a tool may reach: what is outside cannot be named, searched, fetched or seen."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from ragistry.config.files import CollectionEntry
from ragistry.errors import CollectionNotFoundError, ConfigError, InvalidConfigError
from ragistry.library.service import DocumentService
from ragistry.types import Document, SourceInfo, Where
from ragistry.utils.suggest import did_you_mean, listed

_log = logging.getLogger(__name__)


class Reach:
    """The collections of documents.yaml as it now is; with ``allowed``, only those of these names.

    Raises `CollectionNotFoundError` for an allowed name that is not there, `ConfigError` for what is no list.
    """

    def __init__(self, library: DocumentService, allowed: Sequence[str] | None = None) -> None:
        if isinstance(allowed, str):
            raise ConfigError(f"allowed must be a list of names of collections, got {allowed!r}; write [{allowed!r}]")
        self.library = library
        self.allowed = None if allowed is None else frozenset(allowed)
        self._last = library.collections.entries()
        names = [entry.name for entry in self._last]
        for name in sorted(self.allowed or ()):
            if name not in names:
                raise CollectionNotFoundError(
                    f"no collection {name!r}{did_you_mean(name, names)}; there are {listed(names)} in "
                    f"{library.collections.path}"
                )

    def entries(self) -> list[CollectionEntry]:
        """The collections in reach; while documents.yaml is broken, those that it had before."""
        try:
            self._last = self.library.collections.entries()
        except (InvalidConfigError, OSError) as error:
            _log.warning("%s; the collections stay as they were", " ".join(str(error).split()))
        return [entry for entry in self._last if self.allowed is None or entry.name in self.allowed]

    def names(self) -> list[str]:
        """The names of `entries`."""
        return [entry.name for entry in self.entries()]

    def where(self) -> Where | None:
        """The condition that keeps a search of everything in reach; None: everything is."""
        return None if self.allowed is None else {"collection": {"$in": self.stored_names()}}

    def holds(self, document: Document) -> bool:
        """Whether a document of the store belongs to a collection in reach."""
        return document.metadata.get("collection") in self.stored_names()

    def sources(self, collection: str | None = None) -> list[SourceInfo]:
        """The sources of one collection, or of all in reach."""
        names = self.names()
        found = self.library.sources(collection)
        return [info for info in found if info.collection in names]

    def stored_names(self) -> list[str]:
        """The names under which the store has what is in reach; a collection that is being renamed has two."""
        names = self.names()
        return [stored for stored, name in self.library.scope.names().items() if name in names]
