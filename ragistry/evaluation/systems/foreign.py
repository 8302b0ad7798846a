"""Contenders from elsewhere: rankings of a TREC run, functions of a query, and search endpoints."""

from __future__ import annotations

import inspect
import json
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, replace
from hashlib import sha256
from math import isfinite
from numbers import Integral, Number
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ragistry.errors import ConfigError, TechniqueError, UnsupportedError
from ragistry.evaluation.data.dataset import Dataset, Run
from ragistry.evaluation.systems.recorded_answers import LOGIN, AnswerStore
from ragistry.types import Document, RetrievalResult, StageScore, Where, ranked
from ragistry.utils.limits import check_query, check_top_k

N_RESULTS = 5
"""Number of results of a search where the technique has no number of its own."""
ANSWER_LIMIT = 100_000_000
"""Maximum size in bytes of the answer of a search endpoint."""
ANSWER = "a list of document ids, of (id, score) pairs, or of Document objects"
PASS = f"pass a function of a query that returns {ANSWER}, or an address http://HOST:PORT/PATH"
Call = Callable[[str, int | None], Any]
"""Asks a function or an endpoint: the query, and the number of results."""


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


def as_technique(source: Callable[..., Any] | str, *, api_key: str | None = None) -> ForeignTechnique:
    """Make a technique of a function of a query, or of the address of a search endpoint.

    ``compare({"theirs": as_technique(search), "bm25": None}, dataset)``. It asks

    - a function of a query, and of ``top_k`` if it has a parameter of that name; wrap a retriever of another library in
      one;
    - ``http://HOST:PORT/PATH``, which gets ``{"query": …, "top_k": …}`` by POST with every request, as ``/v1/search``
      of `ragistry serve`.

    The answer is a list of ids of documents, of (id, score) pairs, or of `Document` objects, or what a search of a
    workspace returns. JSON may also be a mapping with the list as ``documents`` or ``results``, and an item a mapping
    with ``id`` and perhaps ``score``, ``content`` and ``metadata``. The id is that of the test set; ``source_file`` in
    the metadata counts before it. Higher scores are better, so change the sign of a distance; without scores, the
    order counts.

    Args:
        source: The function or the address.
        api_key: Sent to the address as a bearer token.

    Raises:
        ConfigError: It is neither, or the function does not take a query.
    """
    if isinstance(source, str) and source.startswith(("http://", "https://")):
        return ForeignTechnique(_endpoint(source, api_key), {"use": "endpoint", "at": LOGIN.sub("", source)})
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
    call = lambda query, top_k: source(query, **({"top_k": top_k} if takes_top_k else {}))  # noqa: E731
    return ForeignTechnique(call, _identity(source))


def _identity(function: Callable[..., Any]) -> dict[str, str] | None:
    """Return the name of a function and the hash of its file; None if its answers may depend on something else."""
    if not inspect.isfunction(function) or "<" in function.__qualname__:  # an object's method, or one with variables
        return None
    try:
        code = sha256(Path(inspect.getfile(function)).read_bytes()).hexdigest()
    except (TypeError, OSError):  # typed at a prompt
        return None
    return {"use": f"{function.__module__}:{function.__qualname__}", "code": code}


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


class ForeignTechnique:
    """A function or an endpoint as a `Technique`. It takes no condition.

    Args:
        call: Asks it.
        identity: What decides its answers, besides the query and the number of results; None if that is not known.
    """

    def __init__(self, call: Call, identity: dict[str, str] | None = None) -> None:
        self._call = call
        self.identity = identity

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


class RecordedForeign:
    """A function or an endpoint whose answers are kept."""

    def __init__(self, live: ForeignTechnique, answers: AnswerStore) -> None:
        self.live, self.answers = live, answers

    def retrieve(self, query: str, *, top_k: int | None = None, where: Where | None = None) -> list[Document]:
        def ask(_: object) -> list[bytes]:
            found = self.live.retrieve(query, top_k=top_k, where=where)
            return [json.dumps([asdict(one) for one in found], default=str).encode()]

        asked = {"role": "search", "text": query, "top_k": top_k, "where": where}
        [said] = self.answers.answers(self.live.identity, [asked], ask, is_model=False)
        return [
            Document(**row | {"scores": tuple(StageScore(**score) for score in row["scores"])})
            for row in json.loads(said)
        ]


def _listed(found: Any) -> list[Any]:
    """Return the documents in an answer. Raises `TechniqueError`."""
    if isinstance(found, RetrievalResult):
        return list(found.documents)
    items = found.get("documents", found.get("results")) if isinstance(found, Mapping) else found
    if isinstance(items, str | bytes | Mapping) or not isinstance(items, Iterable) or hasattr(items, "columns"):
        raise TechniqueError(f"the answer to a query is {found!r:.80}; return {ANSWER}")
    return list(items)


def _document(one: Any, rank: int) -> tuple[Document, float | None]:
    """Return a document of an answer, and its score or None. Raises `TechniqueError`."""
    if isinstance(one, Document):
        return one, one.score
    given = one
    if isinstance(one, tuple | list) and len(one) == 2 and isinstance(one[1], Number):
        given = {"id": one[0], "score": one[1]}
    elif isinstance(one, str | Integral):
        given = {"id": one}
    metadata = given.get("metadata") if isinstance(given, Mapping) else None
    metadata = metadata if isinstance(metadata, Mapping) else {}
    try:
        id, score = given["id"], given.get("score")
        score = None if score is None else float(score)
        if not isinstance(id, str | Integral) or id == "" or not isfinite(score or 0):
            raise ValueError("its id is not text, or its score not finite")
    except (TypeError, KeyError, ValueError, AttributeError, IndexError) as error:
        raise TechniqueError(f"the answer to a query has {one!r:.80} at rank {rank}; return {ANSWER}") from error
    text = given.get("content", given.get("text", ""))
    return Document(str(text), {"source_file": str(id), **metadata}, score or 0.0, str(id)), score
