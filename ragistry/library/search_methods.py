"""The search methods of local and remote libraries, which create and run a `SearchRequest`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ragistry.protocols import Technique
from ragistry.types import RetrievalResult, SearchRequest, Where

if TYPE_CHECKING:
    from ragistry.pipelines.answer import Answer


Chosen = str | Technique | Mapping[str, Any]
"""A technique: a name of techniques.yaml, an object with ``retrieve``, or an entry of `Workspace.build`."""


class SearchMethods(ABC):
    """Search methods of a library; subclasses implement `run_search`, `run_answer`."""

    @abstractmethod
    def run_search(self, request: SearchRequest) -> RetrievalResult:
        """Run a search."""

    @abstractmethod
    def run_answer(self, request: SearchRequest, on_piece: Callable[[str], object] | None = None) -> Answer:
        """Run a search, and answer from its results."""

    def search(
        self,
        query: str,
        collection: str | None = None,
        n: int | None = None,
        *,
        technique: Chosen | None = None,
        where: Where | None = None,
    ) -> RetrievalResult:
        """Search one collection, or all of them.

        Args:
            query: The query.
            collection: Name of a collection; None to search all.
            n: Number of results; None for the technique's setting, or else ``n_results``.
            technique: Name of a technique of techniques.yaml; None for its ``default``. A library in this process also
                takes an object with ``retrieve``, such as `Workspace.build` returns, or an entry for `build`.
            where: Condition on metadata.

        Raises:
            QueryError: The query, ``n`` or the condition is invalid.
            UnknownTechniqueError: The technique does not exist.
            CollectionNotFoundError: The collection does not exist.
            ModelError: A model cannot be reached, or refuses the query.
            StoreError: The store cannot be read.
        """
        return self.run_search(SearchRequest(query, technique, collection, n, where))

    def answer(
        self,
        query: str,
        collection: str | None = None,
        n: int | None = None,
        *,
        technique: Chosen | None = None,
        where: Where | None = None,
        on_piece: Callable[[str], object] | None = None,
    ) -> Answer:
        """Search, and let the generator answer from the results.

        The citations of each sentence are checked.

        Args:
            query: The question.
            collection: See `search`.
            n: See `search`.
            technique: See `search`.
            where: See `search`.
            on_piece: Called with each part of the answer as it arrives; a remote library calls it once.

        Raises:
            ConfigError: No generator is configured.
        """
        return self.run_answer(SearchRequest(query, technique, collection, n, where), on_piece)


class WorkspaceMethods(ABC):
    """Search method of a workspace; subclasses implement `run_search`."""

    @abstractmethod
    def run_search(self, request: SearchRequest) -> RetrievalResult:
        """Run a search."""

    def search(
        self,
        query: str,
        technique: Chosen | None = None,
        collection: str | None = None,
        top_k: int | None = None,
        where: Where | None = None,
    ) -> RetrievalResult:
        """Search one collection, or all of them; see `SearchMethods.search`."""
        return self.run_search(SearchRequest(query, technique, collection, top_k, where))
