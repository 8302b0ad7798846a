"""The search methods of a library, here and over HTTP: each makes a `SearchRequest` and carries it out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ragistry.types import RetrievalResult, SearchRequest, Where

if TYPE_CHECKING:
    from ragistry.pipelines.answer import Answer


class SearchMethods:
    """Methods that search. Subclasses carry requests out."""

    def run_search(self, request: SearchRequest) -> RetrievalResult:
        """Carry out a search."""
        raise NotImplementedError

    def run_answer(self, request: SearchRequest, on_piece: Callable[[str], object] | None = None) -> Answer:
        """Search, and answer from the results."""
        raise NotImplementedError

    def search(
        self,
        query: str,
        collection: str | None = None,
        n: int | None = None,
        *,
        technique: str | None = None,
        where: Where | None = None,
    ) -> RetrievalResult:
        """Search one collection, or all of them.

        Args:
            query: What to look for.
            collection: Name of a collection; None for all.
            n: Number of results; None for the technique's setting, or else ``n_results``.
            technique: Name of a technique of techniques.yaml; None for its ``default``.
            where: Condition on metadata.

        Raises:
            QueryError: The query, ``n`` or the condition is invalid.
            UnknownTechniqueError: No technique has that name.
            CollectionNotFoundError: No collection has that name.
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
        technique: str | None = None,
        where: Where | None = None,
        on_piece: Callable[[str], object] | None = None,
    ) -> Answer:
        """Search, and let the generator answer from the results; the citations of each sentence are checked.

        Args:
            query: The question.
            collection: See `search`.
            n: See `search`.
            technique: See `search`.
            where: See `search`.
            on_piece: Called with the text of the answer as it arrives; once, if a server answers.

        Raises:
            ConfigError: No generator is configured.
        """
        return self.run_answer(SearchRequest(query, technique, collection, n, where), on_piece)


class WorkspaceMethods:
    """The search method of a workspace. Subclasses carry requests out."""

    def run_search(self, request: SearchRequest) -> RetrievalResult:
        """Carry out a search."""
        raise NotImplementedError

    def search(
        self,
        query: str,
        technique: str | None = None,
        collection: str | None = None,
        top_k: int | None = None,
        where: Where | None = None,
    ) -> RetrievalResult:
        """Search one collection, or all, by a technique; see `SearchMethods.search`."""
        return self.run_search(SearchRequest(query, technique, collection, top_k, where))
