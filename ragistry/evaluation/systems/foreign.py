"""Contenders from elsewhere: rankings of a TREC run, and retrievers of other libraries."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Iterable, Mapping
from math import isfinite
from numbers import Number
from typing import Any
from urllib.parse import urlsplit

from ragistry.errors import ConfigError, TechniqueError, UnsupportedError
from ragistry.evaluation.data.dataset import Dataset, Run
from ragistry.library.search_methods import SearchMethods, WorkspaceMethods
from ragistry.types import Document, SearchRequest, Where, ranked
from ragistry.utils.limits import check_query, check_top_k

TEXTS, METADATA = ("content", "page_content", "text"), ("metadata", "meta")
"""Names of the text and the metadata of a document in other libraries."""
ANSWERS = ("documents", "results", "source_nodes")
"""Names of the documents in an answer; the last one is of LlamaIndex."""
OWN_IDS = ("id", "id_", "node_id")
"""Names of the id of a result itself; the last two are of LlamaIndex."""
IDS = ("source_file", "source", "file_path", "doc_id", "docno", "docid", "ref_doc_id", *OWN_IDS)
"""Names of the id of a document, in its metadata and in itself."""
N_RESULTS = 5
"""Number of results of a search where the technique has no number of its own."""
ANSWER_LIMIT = 100_000_000
"""Maximum size in bytes of the answer of a search endpoint."""
Call = Callable[[str, int | None], Any]
"""Asks a retriever: the query, and the number of results."""


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


def as_technique(
    retriever: Any, *, id: str | Callable[[Any], str] | None = None, api_key: str | None = None
) -> ForeignTechnique:
    """Make a technique of a retriever of another library, of the address of a search endpoint, or of a function.

    ``compare({"theirs": as_technique(retriever), "bm25": None}, dataset)``. It is one of

    - a retriever, chain or vector store of LangChain;
    - a retriever or pipeline of Haystack; a pipeline gets the query in each open input ``query`` or ``text``;
    - a retriever of LlamaIndex, or a transformer of PyTerrier;
    - ``http://HOST:PORT/PATH``, which gets ``{"query": …, "top_k": …}`` by POST with every request, as ``/v1/search``
      of `ragistry serve`;
    - what `ragistry.connect` returns;
    - a function of a query, and of ``top_k`` if it has a parameter of that name.

    The answer is a list, a data frame, or a mapping or object with ``documents`` or ``results``. A document is an
    object, a mapping or a row with a text (``content``, ``page_content`` or ``text``), metadata (``metadata`` or
    ``meta``), an id and a score; only the id is necessary. A pair of an id or a document and a score is one too. Higher
    scores are better, so change the sign of a distance; without scores, the order counts. Retrievers return as many
    documents as they are made for; stores, addresses and functions with ``top_k`` as many as the comparison asks for.

    Args:
        retriever: The retriever, address or function.
        id: The key of the id of a document in its metadata, or a function of a document; by default the first of
            ``source_file``, ``source``, ``file_path``, ``doc_id``, ``docno``, ``docid``, ``ref_doc_id``, ``id``,
            ``id_``, ``node_id`` in the metadata, else in the document.
        api_key: Sent to the address as a bearer token.

    Raises:
        ConfigError: The object cannot retrieve, or the address is not valid.
    """
    return ForeignTechnique(_call(retriever, api_key), id)


def _call(retriever: Any, api_key: str | None) -> Call:
    """Return how the retriever is asked."""
    if isinstance(retriever, str) and retriever.startswith(("http://", "https://")):
        return _endpoint(retriever, api_key)
    if isinstance(retriever, WorkspaceMethods | SearchMethods):
        return lambda query, top_k: retriever.run_search(SearchRequest(query, top_k=top_k))
    if callable(similar := getattr(retriever, "similarity_search", None)):  # a vector store of LangChain
        return lambda query, top_k: similar(query) if top_k is None else similar(query, k=top_k)
    if callable(run := getattr(retriever, "run", None)):
        if callable(inputs := getattr(retriever, "inputs", None)):  # a pipeline of Haystack
            return lambda query, _: _of_pipeline(run(_pipeline_inputs(inputs(), query)))
        return lambda query, _: run(query=query)
    names = ("invoke", "retrieve", "search") if hasattr(retriever, "transform") else ("invoke", "retrieve")
    for name in names:
        if callable(method := getattr(retriever, name, None)):
            return lambda query, _: method(query)
    if callable(retriever) and not isinstance(retriever, type):
        name, takes_top_k = getattr(retriever, "__qualname__", repr(retriever)), False
        try:
            signature = inspect.signature(retriever)
            takes_top_k = "top_k" in signature.parameters
            signature.bind("query", **({"top_k": 1} if takes_top_k else {}))
        except TypeError as error:
            raise ConfigError(f"{name}{signature}: {error}; write a function of a query") from error
        except ValueError:  # a function in C without a signature
            pass
        if inspect.iscoroutinefunction(retriever):
            raise ConfigError(f"{name} is a coroutine function; write a function that returns its result")
        if takes_top_k:
            return lambda query, top_k: retriever(query, top_k=top_k)
        return lambda query, _: retriever(query)
    raise ConfigError(
        f"{retriever!r:.80} cannot retrieve; pass an object with invoke(query), run(query=…) or retrieve(query), an "
        "address http://HOST:PORT/PATH, or a function of a query"
    )


def _endpoint(url: str, api_key: str | None) -> Call:
    from ragistry.models.http import JsonClient  # not at the top: without an endpoint, httpx is not needed

    parts = urlsplit(url)
    server = f"{parts.scheme}://{parts.netloc}"
    client = JsonClient(server, server="The search endpoint", api_key=api_key)

    def ask(query: str, top_k: int | None) -> Any:
        body = {"query": query, "top_k": N_RESULTS if top_k is None else top_k}
        return client.post(url.removeprefix(server) or "/", body, lambda answer: answer, limit=ANSWER_LIMIT)

    weakref.finalize(ask, client.close)  # with the technique, its only user
    return ask


def _pipeline_inputs(inputs: Mapping[str, Mapping[str, Any]], query: str) -> dict[str, dict[str, str]]:
    """Return the query for every open input of a Haystack pipeline that takes it."""
    found = {name: {key: query for key in fields if key in ("query", "text")} for name, fields in inputs.items()}
    return {name: fields for name, fields in found.items() if fields}


def _of_pipeline(outputs: Mapping[str, Any]) -> Any:
    """Return the documents of the last component that returns some."""
    found = [one for one in outputs.values() if isinstance(one, Mapping) and "documents" in one]
    return found[-1] if found else outputs


class ForeignTechnique:
    """A retriever of another library as a `Technique`. It takes no condition."""

    def __init__(self, call: Call, id: str | Callable[[Any], str] | None = None) -> None:
        self._call = call
        self._id = id

    def retrieve(self, query: str, *, top_k: int | None = None, where: Where | None = None) -> list[Document]:
        if where is not None:
            raise UnsupportedError("a retriever of another library takes no condition; search without `where`")
        check_query(query)
        if top_k is not None:
            check_top_k(top_k)
        found = [_scored(one) for one in _listed(self._call(query, top_k))]
        scores = [score for _, score in found]
        in_order = any(score is None for score in scores)
        try:
            values = [1 / rank if in_order else float(score) for rank, score in enumerate(scores, 1)]
        except (TypeError, ValueError) as error:
            raise TechniqueError(f"the retriever returned a score that is no number: {error}") from error
        return ranked(map(self._document, (one for one, _ in found), values))[:top_k]

    def _document(self, one: Any, score: float) -> Document:
        inner = _field(one, "node")  # of LlamaIndex
        one = one if inner is None else inner
        metadata = next((found for name in METADATA if isinstance(found := _field(one, name), Mapping)), {})
        if callable(self._id):
            name = self._id(one)
        elif self._id is not None:
            name = metadata.get(self._id, "")
        else:
            places = ((place, key) for place in (metadata, one) for key in IDS)
            name = next((found for place, key in places if (found := _field(place, key)) not in (None, "")), "")
        text = next((found for key in TEXTS if isinstance(found := _field(one, key), str)), "")
        if not text and callable(content := getattr(one, "get_content", None)):  # other nodes of LlamaIndex
            text = str(content())
        if name == "" and not text:
            raise TechniqueError(
                f"the retriever returned {one!r:.80}; a document needs an id ({', '.join(IDS)}), or say which with id="
            )
        own = next((found for key in OWN_IDS if (found := _field(one, key)) not in (None, "")), name)
        return Document(text, {**metadata, "source_file": str(name)}, score, str(own))


def _scored(one: Any) -> tuple[Any, Any]:
    """Return a document of an answer, and its score or None."""
    if isinstance(one, tuple | list) and len(one) == 2 and isinstance(one[1], Number):
        return ({"id": one[0]} if isinstance(one[0], str | int) else one[0]), one[1]
    return one, _field(one, "score")


def _listed(found: Any) -> list[Any]:
    """Return the documents in the answer of a retriever. Raises `TechniqueError`."""
    if hasattr(found, "columns") and hasattr(found, "to_dict"):  # a data frame
        return list(found.to_dict("records"))
    for name in ANSWERS:
        if (inner := _field(found, name)) is not None:
            return list(inner)
    if isinstance(found, Mapping):
        said = ", ".join(f"{key}: {value!r:.40}" for key, value in found.items())
        raise TechniqueError(f"the retriever returned a mapping of {said}; it needs a list of documents")
    if not isinstance(found, Iterable) or isinstance(found, str):
        raise TechniqueError(f"the retriever returned {found!r:.80}; it needs a list of documents")
    return list(found)


def _field(one: Any, name: str) -> Any:
    if isinstance(one, Mapping):
        return one.get(name)
    if not callable(names := getattr(one, "keys", None)):
        return getattr(one, name, None)
    return one[name] if name in names() else None  # a row of a database
