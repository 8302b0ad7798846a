"""Fit margin and threshold on queries made from titles, headings and sentences of the collections."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor
from typing import NamedTuple

import numpy as np

from ragistry.errors import ConfigError
from ragistry.protocols import DocumentStore
from ragistry.techniques.routing.evaluate import best
from ragistry.techniques.routing.route import Route
from ragistry.techniques.routing.samples import place_of
from ragistry.techniques.routing.sampling import sample_documents
from ragistry.techniques.routing.target import Target
from ragistry.types import Document, Where
from ragistry.utils.wording import listed

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
SENTENCES = re.compile(r"(?<=[.!?])\s+|\n+")
MARKS = "#*->|=_` "
"""Markdown's marks around headings, items and cells."""
WIDEST = 0.5
"""The largest margin."""

Choose = Callable[[str, Where | None], Route]


class MadeQuery(NamedTuple):
    """A query that a chunk of a target must answer; ``others``: every chunk but this."""

    text: str
    target: str
    others: Where


@dataclass(frozen=True, slots=True)
class FittedLimits:
    """The fitted values, and the number of queries; ``accuracy``: the share whose best target is their own."""

    margin: float
    threshold: float
    queries: int
    accuracy: float


def made_queries(targets: Sequence[Target], store: DocumentStore, per_target: int = PER_TARGET) -> list[MadeQuery]:
    """Queries made from chunks of the targets: title and last heading, and the beginning of a sentence.

    Uses targets whose documents can be read, in ``store`` or their own store. Raises `ConfigError` with fewer than two
    targets.
    """
    if len(targets) < 2:
        there = listed(target.name for target in targets)
        raise ConfigError(f"a fit needs two targets or more to choose between (now: {there}); add a collection")
    made = []
    for target in targets:
        place = place_of(target, store)
        for document in sample_documents(place, target.condition, per_target) if place is not None else []:
            others = _others(document)
            made += [MadeQuery(text, target.name, others) for text in _texts(document) if others]
    return made


def _texts(document: Document) -> list[str]:
    """Possible queries for the chunk."""
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
    """Threshold and margin: `KEPT` of the queries are kept, and `REACHED` reach the target that they come from.

    The chunk of a query is hidden from the router, so that the fit is conservative. Raises `ConfigError` with too few
    queries.
    """
    if len(queries) < FEWEST:
        raise ConfigError(
            f"{len(queries)} queries can be made of titles, headings and sentences, and a fit needs {FEWEST}; "
            "ingest more, or set margin and threshold by hand"
        )
    routes = [(query.target, choose(query.text, query.others)) for query in queries]
    fits = [route.fit for _, route in routes if route.fit is not None]
    if not fits:
        raise ConfigError("this router has no margin and no threshold; fit `embedding` or `evidence`")
    behind = [_behind(route, target) for target, route in routes]
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


def _behind(route: Route, target: str) -> float:
    """The distance of a target's score to the best."""
    return max(route.scores.values()) - route.scores.get(target, 0.0)
