"""Contenders from elsewhere: rankings of a TREC run, and retrievers of other libraries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

from ragistry.errors import ConfigError, TechniqueError, UnsupportedError
from ragistry.evaluation.data.dataset import Dataset, Run
from ragistry.types import Document, Where, ranked

TEXTS, METADATA = ("content", "page_content", "text"), ("metadata", "meta")
"""Names of the text and the metadata of a document in other libraries."""
IDS = ("source_file", "source", "file_path", "doc_id", "docid", "id")
"""Metadata with the id of a document."""


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


def as_technique(retriever: Any, *, id: str | Callable[[Any], str] | None = None) -> ForeignTechnique:
    """Make a technique of a retriever of another library, or of a function of a query.

    ``compare({"theirs": as_technique(retriever), "bm25": None}, dataset)``. The retriever has ``invoke(query)`` as in
    LangChain, ``run(query=query)`` as in Haystack, or ``retrieve(query)`` as in LlamaIndex, or is a function. It
    returns a list, or a mapping with ``documents``, of objects or mappings with a text, metadata, and perhaps an id and
    a score. Without scores, the order counts.

    Args:
        retriever: The retriever or function.
        id: The key of the id of a document in its metadata, or a function of a document; by default the first of
            ``source_file``, ``source``, ``file_path``, ``doc_id``, ``docid``, ``id`` in the metadata, else its own id.

    Raises:
        ConfigError: The object cannot retrieve.
    """
    for name in ("invoke", "run", "retrieve"):
        if callable(method := getattr(retriever, name, None)):
            return ForeignTechnique((lambda query: method(query=query)) if name == "run" else method, id)
    if callable(retriever) and not isinstance(retriever, type):
        return ForeignTechnique(retriever, id)
    raise ConfigError(
        f"{retriever!r:.80} cannot retrieve; pass an object with invoke(query), run(query=…) or retrieve(query), or a "
        "function of a query"
    )


class ForeignTechnique:
    """A retriever of another library as a `Technique`. It takes no condition."""

    def __init__(self, call: Callable[[str], Any], id: str | Callable[[Any], str] | None = None) -> None:
        self._call = call
        self._id = id

    def retrieve(self, query: str, *, top_k: int | None = None, where: Where | None = None) -> list[Document]:
        if where is not None:
            raise UnsupportedError("a retriever of another library takes no condition; search without `where`")
        found = self._call(query)
        if isinstance(found, Mapping):
            if "documents" not in found:
                raise TechniqueError(
                    f"the retriever returned a mapping with {', '.join(map(str, found))}; it needs documents"
                )
            found = found["documents"]
        documents = list(found)
        scores = [_field(one, "score") for one in documents]
        in_order = any(score is None for score in scores)
        made = [
            self._document(one, 1 / rank if in_order else float(score))
            for rank, (one, score) in enumerate(zip(documents, scores, strict=True), 1)
        ]
        return ranked(made)[:top_k]

    def _document(self, one: Any, score: float) -> Document:
        inner = _field(one, "node")  # of LlamaIndex
        one = one if inner is None else inner
        metadata = next((found for name in METADATA if isinstance(found := _field(one, name), Mapping)), {})
        text = next((found for name in TEXTS if isinstance(found := _field(one, name), str)), None)
        if text is None:
            raise TechniqueError(f"the retriever returned {one!r:.80}; a document needs a text ({', '.join(TEXTS)})")
        if callable(self._id):
            name = self._id(one)
        elif self._id is not None:
            name = metadata.get(self._id, "")
        else:
            name = next((metadata[key] for key in IDS if metadata.get(key)), None) or _field(one, "id") or ""
        return Document(text, {**metadata, "source_file": str(name)}, score, str(_field(one, "id") or name))


def _field(one: Any, name: str) -> Any:
    return one.get(name) if isinstance(one, Mapping) else getattr(one, name, None)
