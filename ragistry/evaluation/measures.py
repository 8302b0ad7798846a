"""Measures of a ranking, spelled as in ir-measures and computed as in trec_eval.

The order of a run is used as it is; scores are ignored. The gain of nDCG is the grade itself, discounted by
``log2(rank + 1)`` (Järvelin and Kekäläinen, Cumulated gain-based evaluation of IR techniques, 2002, in the form of
trec_eval). For every other measure, a grade of ``rel`` (default 1) or more is relevant.

If answers are spans of characters, passages are measured: see `per_query_of_passages`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log2

from ragistry.errors import EvaluationError
from ragistry.utils.wording import did_you_mean

Grades = Mapping[str, int]
Spans = Mapping[str, Sequence[tuple[int, int]]]
"""Document id → character offsets (start, end) of an answer."""
Passage = tuple[str, int, int]
"""Document id, start, end."""

_SPELLING = re.compile(r"([A-Za-z]+)(?:\(rel=([1-9]\d*)\))?(?:@([1-9]\d*))?")


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure of one ranking, 0 to 1.

    Attributes:
        kind: Name of the measure, such as ``nDCG``.
        cutoff: Number of results that count; None for all.
        rel: Smallest grade of a relevant document.
    """

    kind: str
    cutoff: int | None = None
    rel: int = 1

    def __str__(self) -> str:
        rel = f"(rel={self.rel})" if self.rel != 1 else ""
        return f"{self.kind}{rel}" + (f"@{self.cutoff}" if self.cutoff else "")

    @property
    def on_spans(self) -> bool:
        """Whether the measure counts characters, so that answers must be spans."""
        return self.kind in _OF_SPANS

    def value(self, grades: Grades, ranking: Iterable[str]) -> float:
        """Measure document ids, best first; a duplicate counts at its first rank."""
        shown = list(dict.fromkeys(ranking))[: self.cutoff]
        return _FORMULAS[self.kind](self, grades, shown)

    def value_of_passages(self, spans: Spans, passages: Sequence[Passage]) -> float:
        """Measure passages, best first, of which ``spans`` are the answer."""
        shown = passages[: self.cutoff]
        if self.on_spans:
            return _OF_SPANS[self.kind](spans, shown)
        new = _new_spans(spans, shown)
        if self.kind == "P":
            return sum(map(bool, new)) / (self.cutoff or 1)
        grades = {f"{document}:{start}-{end}": 1 for document, ranges in spans.items() for start, end in ranges}
        places = [name for rank, names in enumerate(new) for name in names or [f"#{rank}"]]
        return _FORMULAS[self.kind](self, grades, places[: self.cutoff] if self.kind == "nDCG" else places)

    def relevant(self, grades: Grades) -> set[str]:
        """Return the relevant documents."""
        return {document for document, grade in grades.items() if grade >= self.rel}


OTHER_NAMES = {"MAP": "AP", "MRR": "RR", "Precision": "P", "Recall": "R"}
"""Other names of measures, as in ir-measures. The report shows the short ones."""


def parse_measures(names: Iterable[str]) -> list[Measure]:
    """Parse names such as ``nDCG@10``, ``AP`` (or ``MAP``) and ``R(rel=2)@100``; duplicates are dropped.

    Raises:
        EvaluationError: The list is empty, or names are not measures; the error lists all of these.
    """
    given = [str(name).strip() for name in names]
    problems = [f"{name!r} is not a measure{reason}" for name in given if (reason := _problem(name)) is not None]
    if problems or not given:
        raise EvaluationError(
            f"{'; '.join(problems) or 'measures is empty'}; the measures are nDCG@k AP AP@k RR RR@k R@k P@k Success@k "
            "Judged@k, and with spans SR@k SP@k, k = 1, 2, …"
        )
    return list(dict.fromkeys(_measure(*found.groups()) for name in given if (found := _SPELLING.fullmatch(name))))


def per_query(
    measures: Iterable[Measure], qrels: Mapping[str, Grades], run: Mapping[str, Sequence[tuple[str, float]]]
) -> dict[str, dict[str, float]]:
    """Measure rankings of documents.

    Args:
        measures: The measures.
        qrels: Query id → document id → grade.
        run: Query id → ranking.

    Returns:
        Measure → query id → value, of every query with judgements; 0 if the run lacks the query.
    """
    rankings = {query: [document for document, _ in run.get(query, ())] for query, grades in qrels.items() if grades}
    return {
        str(measure): {query: measure.value(qrels[query], ranking) for query, ranking in rankings.items()}
        for measure in measures
    }


def per_query_of_passages(
    measures: Iterable[Measure], spans: Mapping[str, Spans], passages: Mapping[str, Sequence[Passage]]
) -> dict[str, dict[str, float]]:
    """Measure rankings of passages.

    A passage is relevant (grade 1) if it overlaps a span, and each span counts once, where it is first found: the
    ranking that is measured has each passage's new spans in its place; a passage that brings no new span takes one
    place. ``SR@k`` is the share of the spans' characters that the first k passages cover, ``SP@k`` the share of the
    characters in the first k passages that lie in a span (Smith and Troynikov, Evaluating Chunking Strategies for
    Retrieval, Chroma technical report, 2024). Characters that two passages share were returned twice, and count twice.

    Args:
        measures: The measures.
        spans: Query id → spans that answer.
        passages: Query id → passages, best first.

    Returns:
        Measure → query id → value, of every query with spans.
    """
    return {
        str(measure): {query: measure.value_of_passages(of, passages.get(query, ())) for query, of in spans.items()}
        for measure in measures
    }


def _problem(name: str) -> str | None:
    """Describe what is wrong with a name, to follow "is not a measure"; None if it is correct."""
    found = _SPELLING.fullmatch(name)
    if found is None:
        return did_you_mean(name, _EXAMPLES)
    kind, rel, cutoff = found.groups()
    kind = OTHER_NAMES.get(kind, kind)
    if kind not in _FORMULAS and kind not in _OF_SPANS:
        return did_you_mean(name, [f"{known}@{cutoff or 10}" for known in (*_FORMULAS, *_OF_SPANS)])
    if cutoff is None and kind in (*_CUT, *_OF_SPANS):
        return f": it needs a cutoff, as in '{kind}@10'"
    return f": {kind} takes no rel" if rel and kind in (*_UNGRADED, *_OF_SPANS) else None


def _measure(kind: str, rel: str | None, cutoff: str | None) -> Measure:
    return Measure(OTHER_NAMES.get(kind, kind), int(cutoff) if cutoff else None, int(rel or 1))


def _ndcg(measure: Measure, grades: Grades, shown: Sequence[str]) -> float:
    ideal = sorted((grade for grade in grades.values() if grade > 0), reverse=True)[: measure.cutoff]
    return _dcg(max(0, grades.get(document, 0)) for document in shown) / _dcg(ideal) if ideal else 0.0


def _dcg(gains: Iterable[int]) -> float:
    return sum(gain / log2(rank + 1) for rank, gain in enumerate(gains, 1) if gain)


def _average_precision(measure: Measure, grades: Grades, shown: Sequence[str]) -> float:
    relevant = measure.relevant(grades)
    ranks = [rank for rank, document in enumerate(shown, 1) if document in relevant]
    return sum(found / rank for found, rank in enumerate(ranks, 1)) / len(relevant) if relevant else 0.0


def _reciprocal_rank(measure: Measure, grades: Grades, shown: Sequence[str]) -> float:
    relevant = measure.relevant(grades)
    return next((1 / rank for rank, document in enumerate(shown, 1) if document in relevant), 0.0)


def _recall(measure: Measure, grades: Grades, shown: Sequence[str]) -> float:
    relevant = measure.relevant(grades)
    return len(relevant.intersection(shown)) / len(relevant) if relevant else 0.0


def _precision(measure: Measure, grades: Grades, shown: Sequence[str]) -> float:
    return len(measure.relevant(grades).intersection(shown)) / (measure.cutoff or 1)


def _success(measure: Measure, grades: Grades, shown: Sequence[str]) -> float:
    return float(not measure.relevant(grades).isdisjoint(shown))


def _judged(_: Measure, grades: Grades, shown: Sequence[str]) -> float:
    """Return the share of the results that have a judgement; a ranking shorter than the cutoff is not padded."""
    return sum(document in grades for document in shown) / len(shown) if shown else 0.0


def _new_spans(spans: Spans, passages: Sequence[Passage]) -> list[list[str]]:
    """Return for each passage the spans that it is the first to overlap."""
    found: set[str] = set()
    new = []
    for document, start, end in passages:
        overlapped = [(first, last) for first, last in spans.get(document, ()) if start < last and first < end]
        names = dict.fromkeys(f"{document}:{first}-{last}" for first, last in overlapped)
        new.append([name for name in names if name not in found])
        found.update(names)
    return new


def _span_recall(spans: Spans, passages: Sequence[Passage]) -> float:
    total = sum(len(_characters(ranges)) for ranges in spans.values())
    return _covered(spans, passages) / total if total else 0.0


def _span_precision(spans: Spans, passages: Sequence[Passage]) -> float:
    shown = sum(end - start for _, start, end in passages)
    return _covered(spans, passages) / shown if shown else 0.0


def _covered(spans: Spans, passages: Sequence[Passage]) -> int:
    """Count the characters of the spans that lie in a passage."""
    found = 0
    for document, ranges in spans.items():
        shown = [(start, end) for id, start, end in passages if id == document]
        found += sum(any(start <= place < end for start, end in shown) for place in _characters(ranges))
    return found


def _characters(ranges: Iterable[tuple[int, int]]) -> set[int]:
    return {place for start, end in ranges for place in range(start, end)}


_OF_SPANS: dict[str, Callable[[Spans, Sequence[Passage]], float]] = {"SR": _span_recall, "SP": _span_precision}
_FORMULAS: dict[str, Callable[[Measure, Grades, Sequence[str]], float]] = {
    "nDCG": _ndcg,
    "AP": _average_precision,
    "RR": _reciprocal_rank,
    "R": _recall,
    "P": _precision,
    "Success": _success,
    "Judged": _judged,
}
_CUT = ("R", "P", "Success", "Judged")
_UNGRADED = ("nDCG", "Judged")
_EXAMPLES = [f"{kind}@10" for kind in _FORMULAS]
