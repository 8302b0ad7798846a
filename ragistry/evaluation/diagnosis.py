"""Why two techniques differ: the queries on which they do most, and what became of the relevant documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ragistry.evaluation.answers import Answer
from ragistry.evaluation.data.dataset import Dataset

SHOWN = 5
"""Documents of each ranking that are shown."""
EXAMPLES = 5
"""Queries that are shown for either side of a pair, and examples of each kind of failure."""

Status = Literal["shown", "low", "never", "routed_away"]
"""Of a relevant document: in the first results, ranked below, not retrieved, in a collection that was not searched."""


@dataclass(frozen=True, slots=True)
class Lost:
    """A relevant document that a technique did not show; ``rank`` is None where it did not find it at all."""

    query: str
    document: str
    rank: int | None


@dataclass(frozen=True, slots=True)
class RelevantFound:
    """What became of the relevant documents of all queries.

    ``shown``: in the first ``cutoff``. ``low``: retrieved, but ranked below. ``never``: not among the ``depth``
    that were asked for. ``routed_away``: in a collection that the route left out. ``examples``: status → some.
    """

    cutoff: int
    depth: int
    shown: int
    low: int
    never: int
    routed_away: int
    examples: dict[str, list[Lost]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Row:
    """A document in a ranking: its rank from 1, its grade (None: not judged), and what each stage gave it."""

    rank: int
    document: str
    title: str
    grade: int | None
    scores: dict[str, float]


@dataclass(frozen=True, slots=True)
class Side:
    """One technique's part in a difference: its value, its best documents and the relevant ones, its route."""

    technique: str
    value: float
    best: list[Row]
    relevant: list[Row]
    route: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class QueryDifference:
    """A query on which two techniques differ; ``difference`` is a's value minus b's."""

    query: str
    text: str
    difference: float
    a: Side
    b: Side
    why: str


@dataclass(frozen=True, slots=True)
class PairDiagnosis:
    """The queries on which two techniques differ most: those for a first, each side from the largest difference."""

    a: str
    b: str
    measure: str
    queries: list[QueryDifference]


def relevant_found(
    answers: Mapping[str, Answer], dataset: Dataset, cutoff: int, depth: int, collections: Mapping[str, str]
) -> RelevantFound:
    """Count what became of every relevant document. ``collections``: of each document the collection it is in."""
    counts: dict[Status, int] = {"shown": 0, "low": 0, "never": 0, "routed_away": 0}
    examples: dict[str, list[Lost]] = {}
    for query in dataset.judged:
        ranks = {id: rank for rank, (id, _) in enumerate(answers[query].ranking, 1)}
        for document, grade in dataset.qrels[query].items():
            if grade <= 0:
                continue
            rank = ranks.get(document)
            status = _status(rank, cutoff, answers[query], collections.get(document))
            counts[status] += 1
            if status != "shown" and len(examples.setdefault(status, [])) < EXAMPLES:
                examples[status].append(Lost(query, document, rank))
    return RelevantFound(cutoff, depth, **counts, examples=examples)


def _status(rank: int | None, cutoff: int, answer: Answer, collection: str | None) -> Status:
    if rank is not None:
        return "shown" if rank <= cutoff else "low"
    return "routed_away" if collection is not None and left_out(answer.route, collection) else "never"


def left_out(route: Iterable[Mapping[str, Any]], collection: str) -> bool:
    """Whether a route was taken that does not lead to a collection."""
    return any(isinstance(step.get("chosen"), list) and collection not in step["chosen"] for step in route)


def diagnose(
    pairs: Iterable[tuple[str, str]],
    measure: str,
    values: Mapping[str, Mapping[str, float]],
    answers: Mapping[str, Mapping[str, Answer]],
    dataset: Dataset,
) -> list[PairDiagnosis]:
    """For each pair the queries on which it differs most. ``values``: technique → query → value of the measure."""
    titles = {document.id: document.title or document.text[:80] for document in dataset.corpus}
    return [
        PairDiagnosis(a, b, measure, [_difference(query, a, b, values, answers, dataset, titles) for query in queries])
        for a, b in pairs
        for queries in [_most_different(values[a], values[b])]
    ]


def _most_different(a: Mapping[str, float], b: Mapping[str, float]) -> list[str]:
    """Queries for a, then queries for b, each from the largest difference."""
    differences = {query: a[query] - b[query] for query in a}
    for_a = sorted((query for query in differences if differences[query] > 0), key=lambda q: (-differences[q], q))
    for_b = sorted((query for query in differences if differences[query] < 0), key=lambda q: (differences[q], q))
    return [*for_a[:EXAMPLES], *for_b[:EXAMPLES]]


def _difference(
    query: str,
    a: str,
    b: str,
    values: Mapping[str, Mapping[str, float]],
    answers: Mapping[str, Mapping[str, Answer]],
    dataset: Dataset,
    titles: Mapping[str, str],
) -> QueryDifference:
    one, other = (
        _side(name, values[name][query], answers[name][query], dataset.qrels[query], titles) for name in (a, b)
    )
    return QueryDifference(query, dataset.queries[query], one.value - other.value, one, other, _why(one, other))


def _side(technique: str, value: float, answer: Answer, grades: Mapping[str, int], titles: Mapping[str, str]) -> Side:
    rows = [
        Row(rank, id, titles.get(id, ""), grades.get(id), answer.scores.get(id, {}))
        for rank, (id, _) in enumerate(answer.ranking, 1)
    ]
    relevant = [row for row in rows if (row.grade or 0) > 0]
    return Side(technique, value, rows[:SHOWN], relevant, answer.route)


def _why(a: Side, b: Side) -> str:
    """Where each technique has the relevant documents, and what put them there."""
    said = [_place(a), _place(b)]
    routes = [f"{side.technique} went to {_chosen(side.route)}" for side in (a, b) if _chosen(side.route)]
    return "; ".join([*said, *routes])


def _place(side: Side) -> str:
    if not side.relevant:
        return f"{side.technique} did not retrieve any relevant document"
    best = side.relevant[0]
    scores = ", ".join(f"{stage} {value:.3g}" for stage, value in best.scores.items())
    more = f" and {len(side.relevant) - 1} more" if len(side.relevant) > 1 else ""
    return f"{side.technique} has {best.document} at rank {best.rank}{f' ({scores})' if scores else ''}{more}"


def _chosen(route: Sequence[Mapping[str, Any]]) -> str:
    names = [str(name) for step in route if isinstance(step.get("chosen"), list) for name in step["chosen"]]
    return ", ".join(names)
