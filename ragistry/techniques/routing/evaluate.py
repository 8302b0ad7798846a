"""Evaluate a router on labelled queries, and fit its margin and threshold."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from math import ceil, floor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ragistry.errors import ConfigError, QueryError, SourceNotFoundError
from ragistry.protocols import DocumentStore
from ragistry.techniques.routing.route import Route
from ragistry.techniques.routing.samples import sample_documents
from ragistry.techniques.routing.target import Target
from ragistry.types import Document, Where
from ragistry.utils.wording import listed, no_collection

NONE = "(none)"
"""No collection, in a confusion matrix."""
LINE = '{"text": "…", "collection": "…" or null}'

PER_TARGET = 50
"""Number of chunks of each target from which queries are made."""
FEWEST = 20
"""Minimum number of queries for a fit."""
WORDS = (5, 16)
"""Minimum number of words of a query (shorter texts are labels), and maximum number."""
KEPT = 0.95
"""Share of the correctly routed queries that the threshold keeps."""
REACHED = 0.98
"""Share of queries whose right target is within the margin: a missed target finds nothing, another one costs little."""
WIDEST = 0.5
"""The largest margin."""
SENTENCES = re.compile(r"(?<=[.!?])\s+|\n+")
MARKS = "#*->|=_` "
"""Markdown's marks around headings, items and cells."""

Choose = Callable[[str, Where | None], Route]


class Labelled(NamedTuple):
    """A query and its collection; None if it belongs to none."""

    text: str
    collection: str | None


@dataclass(frozen=True, slots=True)
class RoutingReport:
    """How well a router chooses. Shares are None if no query counts for them.

    Attributes:
        queries: Number of queries with a collection.
        out_of_scope: Number of queries without one.
        threshold: The threshold of the router.
        margin: The margin of the router.
        accuracy: Share of labelled queries whose best target is the right one.
        reached: Share of labelled queries whose right target is searched.
        kept: Share of labelled queries that are not rejected.
        detected: Share of queries without a collection that are rejected.
        searched: Average number of targets per query.
        confusion: For each right collection, how often each target was best (rejected: "(none)").
    """

    queries: int
    out_of_scope: int
    threshold: float
    margin: float
    accuracy: float | None
    reached: float | None
    kept: float | None
    detected: float | None
    searched: float
    confusion: dict[str, dict[str, int]]

    def as_mapping(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return asdict(self)


def read_labelled(path: Path, names: Sequence[str]) -> list[Labelled]:
    """Read a file of JSON lines with ``text`` and ``collection``, which is one of ``names`` or null.

    Raises:
        SourceNotFoundError: The file does not exist.
        QueryError: A line cannot be read, or there is none.
    """
    if not path.is_file():
        raise SourceNotFoundError(f"no such file: {str(path)!r}; each query is a line {LINE}")
    lines = path.read_text(encoding="utf-8-sig", errors="replace").split("\n")  # JSON may hold other ends of lines
    labelled = [_labelled(f"{path}:{n}", line, names) for n, line in enumerate(lines, 1) if line.strip()]
    if not labelled:
        raise QueryError(f"{path}: the file has no queries; write a line {LINE} for each")
    return labelled


def _labelled(place: str, line: str, names: Sequence[str]) -> Labelled:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise QueryError(f"{place}: {line!r:.80} is not JSON ({error.msg}); write {LINE}") from error
    if not isinstance(record, dict) or not {"text", "collection"} <= record.keys():
        raise QueryError(f"{place}: {line!r:.80} lacks text or collection; write {LINE}")
    text, label = record["text"], record["collection"]
    if not isinstance(text, str) or not text.strip():
        raise QueryError(f"{place}: text is {text!r:.80}, which is not a query; write {LINE}")
    if label is not None and label not in names:
        raise QueryError(f"{place}: {no_collection(label, names)}")
    return Labelled(text, label)


def evaluate_router(
    choose: Callable[[str], Route], queries: Sequence[Labelled], *, threshold: float, margin: float
) -> RoutingReport:
    """Route every query and count; ``threshold`` and ``margin`` are those of ``choose``, for the report."""
    routes = [(query.collection, choose(query.text)) for query in queries]
    inside = [(label, route) for label, route in routes if label is not None]
    outside = [route for label, route in routes if label is None]
    confusion: dict[str, dict[str, int]] = {}
    for label, route in routes:
        row = confusion.setdefault(label or NONE, {})
        column = best(route) if route.chosen else NONE
        row[column] = row.get(column, 0) + 1
    return RoutingReport(
        queries=len(inside),
        out_of_scope=len(outside),
        threshold=threshold,
        margin=margin,
        accuracy=_share([best(route) == label for label, route in inside]),
        reached=_share([label in route.chosen for label, route in inside]),
        kept=_share([bool(route.chosen) for _, route in inside]),
        detected=_share([not route.chosen for route in outside]),
        searched=sum(len(route.chosen) for _, route in routes) / len(routes),
        confusion={label: confusion[label] for label in sorted(confusion)},
    )


def best(route: Route) -> str:
    """Return the target with the highest score, searched or not; `NONE` without scores."""
    name, score = next(iter(route.scores.items()), (NONE, 0.0))
    return name if score > 0 else NONE


def _share(values: Sequence[bool]) -> float | None:
    return sum(values) / len(values) if values else None


class MadeQuery(NamedTuple):
    """A query made from a chunk of a target; ``others`` is the condition that all other chunks meet."""

    text: str
    target: str
    others: Where


@dataclass(frozen=True, slots=True)
class FittedLimits:
    """The fitted limits, the number of queries, and the share of queries whose best target is their own."""

    margin: float
    threshold: float
    queries: int
    accuracy: float


def made_queries(targets: Sequence[Target], store: DocumentStore, per_target: int = PER_TARGET) -> list[MadeQuery]:
    """Make queries from chunks of the targets: title and last heading, and the beginning of a sentence.

    Targets whose documents cannot be read, in ``store`` or their own store, are left out.

    Raises:
        ConfigError: There are fewer than two targets.
    """
    if len(targets) < 2:
        there = listed(target.name for target in targets)
        raise ConfigError(f"a fit needs two or more targets (now: {there}); add a collection")
    made = []
    for target in targets:
        place = target.place(store)
        for document in sample_documents(place, target.condition, per_target) if place is not None else []:
            others = _others(document)
            made += [MadeQuery(text, target.name, others) for text in _texts(document) if others]
    return made


def _texts(document: Document) -> list[str]:
    """Write possible queries for a chunk."""
    title, headings = str(document.metadata.get("title", "")), str(document.metadata.get("heading_context", ""))
    sentences = SENTENCES.split(document.content)
    texts = dict.fromkeys((title, headings.rpartition(" > ")[2], sentences[len(sentences) // 2]))
    found = [text.strip(MARKS).split() for text in texts]
    return [" ".join(words[: WORDS[1]]) for words in found if len(words) >= WORDS[0]]


def _others(document: Document) -> Where | None:
    name, index = document.metadata.get("source_file"), document.metadata.get("chunk_index")
    if name is None or index is None:
        return None
    return {"$or": [{"source_file": {"$ne": name}}, {"chunk_index": {"$ne": index}}]}


def fit_limits(choose: Choose, queries: Sequence[MadeQuery]) -> FittedLimits:
    """Fit threshold and margin: `KEPT` of the queries are kept, and `REACHED` reach the target that they come from.

    The chunk of a query is hidden from the router, so that the fit is conservative.

    Raises:
        ConfigError: There are too few queries, or the router has no limits.
    """
    if len(queries) < FEWEST:
        raise ConfigError(
            f"a fit needs {FEWEST} queries, and the titles, headings and sentences give {len(queries)}; "
            "ingest more, or set margin and threshold by hand"
        )
    routes = [(query.target, choose(query.text, query.others)) for query in queries]
    fits = [route.fit for _, route in routes if route.fit is not None]
    if not fits:
        raise ConfigError("this router has no margin and no threshold; fit `embedding` or `evidence`")
    behind = [max(route.scores.values()) - route.scores.get(target, 0.0) for target, route in routes]
    margin = float(np.quantile(behind, REACHED, method="higher"))
    right = [best(route) == target for target, route in routes]
    # a query routed elsewhere without its chunk counts as one without a target
    found = [
        route.fit for (_, route), is_right in zip(routes, right, strict=True) if is_right and route.fit is not None
    ]
    threshold = float(np.quantile(found if len(found) >= FEWEST else fits, 1 - KEPT, method="lower"))
    # rounded up, so that a target exactly at the margin is searched
    return FittedLimits(
        min(WIDEST, ceil(margin * 1000 + 1) / 1000),
        floor(threshold * 1000) / 1000,
        len(queries),
        sum(right) / len(queries),
    )
