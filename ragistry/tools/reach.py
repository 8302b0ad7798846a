"""What a tool may reach: collections, of which others cannot be named, searched, fetched or seen, and a technique."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence

from ragistry.config.files import CollectionEntry
from ragistry.errors import CollectionNotFoundError, ConfigError, InvalidConfigError
from ragistry.library.service import DocumentService
from ragistry.tools.failures import BrokenCollectionsError, CallError
from ragistry.types import Document, SourceInfo, Where
from ragistry.utils.wording import did_you_mean, listed, no_collection

_log = logging.getLogger(__name__)


class Reach:
    """The current collections of documents.yaml.

    While documents.yaml is invalid, nothing can be searched: every method except `entries`, and `where` without limits,
    raises `BrokenCollectionsError`. The problem is logged once.

    Args:
        library: The library.
        allowed: Names of the collections in reach; None for all.
        technique: Name of the technique that searches; None for the default of techniques.yaml.
        n: Number of documents of a search; None for that of the technique or documents.yaml.
        max_tokens: Maximum size of the answer to a search. A call may ask for less.

    Raises:
        CollectionNotFoundError: An allowed collection does not exist.
        ConfigError: ``allowed`` is a text instead of a list.
    """

    def __init__(
        self,
        library: DocumentService,
        allowed: Sequence[str] | None = None,
        *,
        technique: str | None = None,
        n: int | None = None,
        max_tokens: int = 8_000,
    ) -> None:
        if isinstance(allowed, str):
            raise ConfigError(f"allowed must be a list of collection names, got {allowed!r}; write [{allowed!r}]")
        self.library = library
        self.technique, self.n, self.max_tokens = technique, n, max_tokens
        self.allowed = None if allowed is None else frozenset(allowed)
        self._last = library.collections.entries()
        self._logged = ""
        names = [entry.name for entry in self._last]
        for name in sorted(self.allowed or ()):
            if name not in names:
                raise CollectionNotFoundError(no_collection(name, names))

    @property
    def limited(self) -> bool:
        """Whether some collections are out of reach."""
        return self.allowed is not None

    def entries(self) -> list[CollectionEntry]:
        """Return the collections in reach, to list them; while documents.yaml is invalid, the previous ones."""
        self._broken()
        return [entry for entry in self._last if self.allowed is None or entry.name in self.allowed]

    def check(self) -> None:
        """Raise `BrokenCollectionsError` while documents.yaml is invalid."""
        if (error := self._broken()) is not None:
            raise BrokenCollectionsError(self._message(error)) from error

    def names(self) -> list[str]:
        """Return the names of the collections that may be searched."""
        self.check()
        return [entry.name for entry in self.entries()]

    def check_collection(self, name: str | None) -> None:
        """Raise `CallError` for a collection out of reach, as if it did not exist."""
        names = self.names()
        if name is not None and name not in names:
            near = did_you_mean(name[:100], names)
            raise CallError(f"no collection {name[:100]!r}{near}; use {listed(names)}, or leave it out for all")

    def where(self) -> Where | None:
        """Return the condition that limits a search to the reach; None without limits."""
        return None if self.allowed is None else {"collection": {"$in": self.stored_names()}}

    def holds(self, document: Document) -> bool:
        """Return whether a document of the store belongs to a collection in reach."""
        return document.metadata.get("collection") in self.stored_names()

    def sources(self, collection: str | None = None) -> list[SourceInfo]:
        """List the sources of one collection, or of all in reach."""
        names = self.names()
        found = self.library.sources(collection)
        return [info for info in found if info.collection in names]

    def stored_names(self) -> list[str]:
        """Return the names in the store of the collections in reach; one that is being renamed has two."""
        names = self.names()
        return [stored for stored, name in self.library.scope.current_names().current.items() if name in names]

    def _broken(self) -> InvalidConfigError | OSError | None:
        """Read the collections. Return the error if they cannot be read."""
        try:
            self._last, self._logged = self.library.collections.entries(), ""
        except (InvalidConfigError, OSError) as error:
            reason = " ".join(str(error).split())
            if reason != self._logged:
                self._logged = reason
                _log.warning("%s; until then, searches are refused and the previous collections are listed", reason)
            return error
        return None

    def _message(self, error: InvalidConfigError | OSError) -> str:
        """Describe the error for a model: only its line if some collections are out of reach."""
        path = self.library.collections.path
        found = re.search(f"{re.escape(str(path))}(?::(\\d+))?: (.+)", str(error))
        line = f" at line {found[1]}" if found and found[1] else ""
        reason = f": {found[2]}" if found and self.allowed is None else ""
        return (
            f"{path.name} is broken{line}{reason}; nothing can be searched until its owner corrects it; tell the user"
        )
