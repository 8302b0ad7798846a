"""The search methods of local and remote libraries, which create and run a `SearchRequest`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from ragistry.library.pool import in_pool
from ragistry.protocols import Technique
from ragistry.types import RetrievalResult, SearchRequest, Where

if TYPE_CHECKING:
    from ragistry.answers.answer import Answer, AnswerStream


Chosen = str | Technique | Mapping[str, Any]
"""A technique: a name of techniques.yaml, an object with ``retrieve``, or an entry of `Workspace.build`."""


class SearchMethods(ABC):
    """Search methods of a library; subclasses implement `run_search`, `run_searches`, `run_answer_stream`."""

    @abstractmethod
    def run_search(self, request: SearchRequest) -> RetrievalResult:
        """Run a search."""

    @abstractmethod
    def run_searches(self, queries: Sequence[str], options: SearchRequest) -> list[RetrievalResult]:
        """Run a search for each query. ``options``: the other values of the searches; its query is not used."""

    @abstractmethod
    def run_answer_stream(self, request: SearchRequest) -> AnswerStream:
        """Run a search, and answer from its results piece by piece."""

    def run_answer(self, request: SearchRequest, on_piece: Callable[[str], object] | None = None) -> Answer:
        """Run a search, and answer from its results."""
        stream = self.run_answer_stream(request)
        for piece in stream:
            if on_piece is not None:
                on_piece(piece)
        return stream.answer

    def search(
        self,
        query: str,
        collection: str | None = None,
        n: int | None = None,
        *,
        technique: Chosen | None = None,
        where: Where | None = None,
        previous: str | None = None,
    ) -> RetrievalResult:
        """Search one collection, or all of them.

        Args:
            query: The query.
            collection: Name of a collection; None to search all.
            n: Number of results; None for the technique's setting, or else ``n_results``.
            technique: Name of a technique of techniques.yaml; None for its ``default``. A library in this process also
                takes an object with ``retrieve``, such as `Workspace.build` returns, or an entry for `build`.
            where: Condition on metadata.
            previous: The question before, if the query is a follow-up to it. Both are searched, the query alone and
                with this question in front of it; phrases and exclusions of this question do not count.

        Raises:
            QueryError: The query, ``n``, the condition or ``previous`` is invalid.
            UnknownTechniqueError: The technique does not exist.
            CollectionNotFoundError: The collection does not exist.
            ModelError: A model cannot be reached, or refuses the query.
            StoreError: The store cannot be read.
        """
        return self.run_search(SearchRequest(query, technique, collection, n, where, previous))

    def search_many(
        self,
        queries: Sequence[str],
        collection: str | None = None,
        n: int | None = None,
        *,
        technique: Chosen | None = None,
        where: Where | None = None,
    ) -> list[RetrievalResult]:
        """Search for each of several queries, which are embedded together; see `search`.

        Args:
            queries: The queries, at most 1,000 with 1,000,000 bytes.
            collection: See `search`.
            n: See `search`.
            technique: See `search`.
            where: See `search`.

        Returns:
            The result of each query, as `search` returns it, in the same order.
        """
        return self.run_searches(queries, SearchRequest("", technique, collection, n, where))

    def answer(
        self,
        query: str,
        collection: str | None = None,
        n: int | None = None,
        *,
        technique: Chosen | None = None,
        where: Where | None = None,
        previous: str | None = None,
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
            previous: See `search`; the generator reads it too.
            on_piece: Called with each part of the answer as it arrives.

        Raises:
            ConfigError: No generator is configured.
        """
        return self.run_answer(SearchRequest(query, technique, collection, n, where, previous), on_piece)

    def answer_stream(
        self,
        query: str,
        collection: str | None = None,
        n: int | None = None,
        *,
        technique: Chosen | None = None,
        where: Where | None = None,
        previous: str | None = None,
    ) -> AnswerStream:
        """Search, and iterate over the pieces of the answer as they arrive; see `answer`.

        The attribute ``answer`` of the iterator is the checked answer.
        """
        return self.run_answer_stream(SearchRequest(query, technique, collection, n, where, previous))

    asearch, asearch_many, aanswer = in_pool(search), in_pool(search_many), in_pool(answer)


class WorkspaceMethods(ABC):
    """Search methods of a workspace, which are those of its library with its order of the arguments."""

    @abstractmethod
    def close(self) -> None:
        """Close every opened part."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    @abstractmethod
    def library(self) -> SearchMethods:
        """The library that is searched."""

    def run_search(self, request: SearchRequest) -> RetrievalResult:
        """Run a search."""
        return self.library.run_search(request)

    def search(
        self,
        query: str,
        technique: Chosen | None = None,
        collection: str | None = None,
        top_k: int | None = None,
        where: Where | None = None,
        *,
        previous: str | None = None,
    ) -> RetrievalResult:
        """Search one collection, or all of them; see `SearchMethods.search`."""
        return self.library.run_search(SearchRequest(query, technique, collection, top_k, where, previous))

    def search_many(
        self,
        queries: Sequence[str],
        technique: Chosen | None = None,
        collection: str | None = None,
        top_k: int | None = None,
        where: Where | None = None,
    ) -> list[RetrievalResult]:
        """Search for each of several queries; see `SearchMethods.search_many`."""
        return self.library.run_searches(queries, SearchRequest("", technique, collection, top_k, where))

    def answer(
        self,
        query: str,
        technique: Chosen | None = None,
        collection: str | None = None,
        top_k: int | None = None,
        where: Where | None = None,
        *,
        previous: str | None = None,
        on_piece: Callable[[str], object] | None = None,
    ) -> Answer:
        """Search, and let the generator answer from the results; see `SearchMethods.answer`."""
        return self.library.run_answer(SearchRequest(query, technique, collection, top_k, where, previous), on_piece)

    asearch, asearch_many, aanswer = in_pool(search), in_pool(search_many), in_pool(answer)
