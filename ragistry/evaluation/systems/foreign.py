"""Contenders from elsewhere: rankings of a TREC run, and functions of a query."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from math import isfinite
from numbers import Integral
from typing import Any, SupportsFloat

from ragistry.errors import ConfigError, TechniqueError, UnsupportedError
from ragistry.evaluation.data.dataset import Dataset, Run
from ragistry.types import Document, RetrievalResult, Where, ranked
from ragistry.utils.limits import check_query, check_top_k

N_RESULTS = 5
"""Number of results of a search where the technique has no number of its own."""
ANSWER = "a list of document ids, of (id, score) pairs, or of Document objects"
PASS = f"pass a function of a query that returns {ANSWER}"


def is_run(given: Any) -> bool:
    """Return whether a contender is a run: query id → ranking."""
    return isinstance(given, Mapping)


def rankings_of(run: Run, dataset: Dataset) -> Run:
    """Return the ranking of each judged query; an empty one for a query that the run lacks.

    Raises:
        TechniqueError: The run has no query of the test set, or is not a run.
    """
    try:
        found = {query: _ranking(run.get(query, [])) for query in dataset.judged}
    except (TypeError, ValueError) as error:
        raise TechniqueError(
            f"this run is not a mapping of query ids to lists of (document id, score): {error}; see read_run"
        ) from error
    if not any(found.values()):
        known, other = list(dataset.judged)[:3], list(run)[:3]
        raise TechniqueError(f"the run has no judged query of the test set: its queries are {other}, those are {known}")
    return found


def _ranking(given: Any) -> list[tuple[str, float]]:
    """Return document ids and scores, best first. Raises `ValueError` or `TypeError` for anything else."""
    pairs = list(given.items() if isinstance(given, Mapping) else given)
    if wrong := [pair for pair in pairs if isinstance(pair, str) or len(pair) != 2 or not isfinite(pair[1])]:
        raise ValueError(f"{wrong[0]!r:.80} is not one")
    scores = {str(document): float(score) for document, score in pairs}
    if len(scores) < len(pairs):
        raise ValueError("a document occurs twice")
    return sorted(scores.items(), key=lambda hit: -hit[1])


class RunTechnique:
    """The place of a run among the techniques; it is never asked."""

    def retrieve(self, query: str, *, top_k: int | None = None, where: Where | None = None) -> list[Document]:  # noqa: ARG002
        raise UnsupportedError("a run has rankings of its own queries only; compare it, but do not search with it")


def as_technique(source: Callable[..., Any]) -> ForeignTechnique:
    """Make a technique of a function of a query.

    ``compare({"theirs": as_technique(search), "bm25": None}, dataset)``. The function may ask a retriever of another
    library, or a search endpoint. It gets ``top_k`` if it has a parameter of that name.

    It returns a list of ids of documents, of (id, score) pairs, or of `Document` objects, or what a search of a
    workspace returns. The id is that of the test set; ``source_file`` in the metadata counts before it. Higher scores
    are better, so change the sign of a distance; without scores, the order counts.

    Raises:
        ConfigError: It is not a function, or does not take a query.
    """
    if not callable(source) or isinstance(source, type) or inspect.iscoroutinefunction(source):
        raise ConfigError(f"{source!r:.80} cannot be asked; {PASS}")
    try:
        signature = inspect.signature(source)
    except ValueError:  # a function in C
        return ForeignTechnique(lambda query, _: source(query))
    takes_top_k = "top_k" in signature.parameters
    try:
        signature.bind("query", **({"top_k": 1} if takes_top_k else {}))
    except TypeError as error:
        name = getattr(source, "__qualname__", repr(source))
        raise ConfigError(f"{name}{signature}: {error}; {PASS}") from error
    return ForeignTechnique(lambda query, top_k: source(query, **({"top_k": top_k} if takes_top_k else {})))


class ForeignTechnique:
    """A function of a query and the number of results as a `Technique`. It takes no condition."""

    def __init__(self, call: Callable[[str, int | None], Any]) -> None:
        self._call = call

    def retrieve(self, query: str, *, top_k: int | None = None, where: Where | None = None) -> list[Document]:
        if where is not None:
            raise UnsupportedError("a contender from elsewhere takes no condition; search without `where`")
        check_query(query)
        if top_k is not None:
            check_top_k(top_k)
        found = [_document(one, rank) for rank, one in enumerate(_listed(self._call(query, top_k)), 1)]
        if any(score is None for _, score in found):
            return [replace(one, score=1 / rank) for rank, (one, _) in enumerate(found, 1)][:top_k]
        return ranked(one for one, _ in found)[:top_k]


def _listed(found: Any) -> list[Any]:
    """Return the documents in an answer. Raises `TechniqueError`."""
    if isinstance(found, RetrievalResult):
        return list(found.documents)
    if isinstance(found, str | bytes | Mapping) or not isinstance(found, Iterable) or hasattr(found, "columns"):
        raise TechniqueError(f"the answer to a query is {found!r:.80}; return {ANSWER}")
    return list(found)


def _document(one: Any, rank: int) -> tuple[Document, float | None]:
    """Return a document of an answer, and its score or None. Raises `TechniqueError`."""
    if isinstance(one, Document):
        return one, one.score
    id, score = one if isinstance(one, tuple | list) and len(one) == 2 else (one, None)
    value = float(score) if isinstance(score, SupportsFloat) else None
    if not isinstance(id, str | Integral) or id == "" or not isfinite(value or 0) or (value is None) != (score is None):
        raise TechniqueError(f"the answer to a query has {one!r:.80} at rank {rank}; return {ANSWER}")
    return Document("", {"source_file": str(id)}, value or 0.0, str(id)), value
