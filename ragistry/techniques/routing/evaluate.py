"""Evaluate a router on queries labelled with their collection."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ragistry.errors import QueryError, SourceNotFoundError
from ragistry.techniques.routing.route import Route
from ragistry.utils.wording import did_you_mean, listed

NONE = "(none)"
"""No collection, in a confusion matrix."""


class Labelled(NamedTuple):
    """A query and its collection; None if it belongs to none."""

    text: str
    collection: str | None


@dataclass(frozen=True, slots=True)
class RoutingReport:
    """``accuracy``: labelled queries whose best target is the right one; ``reached``: those whose right target is
    searched. ``kept``: labelled queries that were not rejected at the ``threshold``; ``detected``: queries without a
    collection that were rejected. All are shares, None without such queries. ``searched``: average number of targets
    per query. ``confusion``: right collection → how often each was best (rejected: "(none)").
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
        """The report as plain values."""
        return asdict(self)


def read_labelled(path: Path, names: Sequence[str]) -> list[Labelled]:
    """The queries of a file of JSON lines with ``text`` and ``collection``, one of ``names`` or null.

    Raises `SourceNotFoundError`, and `QueryError` with the line for what cannot be read.
    """
    if not path.is_file():
        raise SourceNotFoundError(f"no such file: {str(path)!r}; give one with a line {LINE} for each query")
    lines = path.read_text(encoding="utf-8-sig", errors="replace").split("\n")  # JSON may hold other ends of lines
    labelled = [_labelled(f"{path}:{n}", line, names) for n, line in enumerate(lines, 1) if line.strip()]
    if not labelled:
        raise QueryError(f"{path}: the file has no queries; write a line {LINE} for each")
    return labelled


LINE = '{"text": "…", "collection": "…" or null}'


def _labelled(place: str, line: str, names: Sequence[str]) -> Labelled:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise QueryError(f"{place}: {line!r:.80} is not JSON ({error.msg}); write {LINE}") from error
    if not isinstance(record, dict) or not {"text", "collection"} <= record.keys():
        raise QueryError(f"{place}: {line!r:.80} lacks text or collection; write {LINE}")
    text, label = record["text"], record["collection"]
    if not isinstance(text, str) or not text.strip():
        raise QueryError(f"{place}: text is {text!r:.80}, no query; write {LINE}")
    if label is not None and label not in names:
        raise QueryError(
            f"{place}: no collection {label!r}{did_you_mean(str(label), names)}; there are {listed(names)}"
        )
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
    """The target with the highest score, searched or not; `NONE` without scores."""
    name, score = next(iter(route.scores.items()), (NONE, 0.0))
    return name if score > 0 else NONE


def _share(values: Sequence[bool]) -> float | None:
    return sum(values) / len(values) if values else None
