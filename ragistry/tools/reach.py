"""Which collections a tool may reach: what is outside cannot be named, searched, fetched or seen."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence

from ragistry.config.files import CollectionEntry
from ragistry.errors import CollectionNotFoundError, ConfigError, InvalidConfigError
from ragistry.library.service import DocumentService
from ragistry.tools.failures import BrokenCollectionsError
from ragistry.types import Document, SourceInfo, Where
from ragistry.utils.wording import did_you_mean, listed

_log = logging.getLogger(__name__)


class Reach:
    """The collections of documents.yaml as it now is; with ``allowed``, only those of these names.

    While documents.yaml is broken nobody knows what may be searched: nothing is, and every method but `entries` and
    `where` of no limits raises `BrokenCollectionsError`. What is wrong goes to the log, once.

    Raises `CollectionNotFoundError` for an allowed name that is not there, `ConfigError` for what is no list.
    """

    def __init__(self, library: DocumentService, allowed: Sequence[str] | None = None) -> None:
        if isinstance(allowed, str):
            raise ConfigError(f"allowed must be a list of names of collections, got {allowed!r}; write [{allowed!r}]")
        self.library = library
        self.allowed = None if allowed is None else frozenset(allowed)
        self._last = library.collections.entries()
        self._logged = ""
        names = [entry.name for entry in self._last]
        for name in sorted(self.allowed or ()):
            if name not in names:
                raise CollectionNotFoundError(
                    f"no collection {name!r}{did_you_mean(name, names)}; there are {listed(names)} in "
                    f"{library.collections.path}"
                )

    @property
    def limited(self) -> bool:
        """Whether anything is out of reach."""
        return self.allowed is not None

    def entries(self) -> list[CollectionEntry]:
        """The collections in reach, to list them; while documents.yaml is broken, those that it had before."""
        self._broken()
        return [entry for entry in self._last if self.allowed is None or entry.name in self.allowed]

    def check(self) -> None:
        """Raise `BrokenCollectionsError` while documents.yaml is broken."""
        if (error := self._broken()) is not None:
            raise BrokenCollectionsError(self._told(error)) from error

    def names(self) -> list[str]:
        """The names of the collections that may be searched."""
        self.check()
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

    def _broken(self) -> InvalidConfigError | OSError | None:
        """Why the collections cannot be read; None: they were."""
        try:
            self._last, self._logged = self.library.collections.entries(), ""
        except (InvalidConfigError, OSError) as error:
            reason = " ".join(str(error).split())
            if reason != self._logged:
                self._logged = reason
                _log.warning("%s; until then every search is refused, and the old collections are listed", reason)
            return error
        return None

    def _told(self, error: InvalidConfigError | OSError) -> str:
        """What a model may know of it: where not all collections are in reach, no more than the line."""
        path = self.library.collections.path
        found = re.search(f"{re.escape(str(path))}(?::(\\d+))?: (.+)", str(error))
        line = f" at line {found[1]}" if found and found[1] else ""
        reason = f": {found[2]}" if found and self.allowed is None else ""
        return (
            f"{path.name} is broken{line}{reason}; nothing can be searched until its owner corrects it, tell the user"
        )
