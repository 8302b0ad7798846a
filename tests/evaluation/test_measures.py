"""The measures are those of trec_eval, on the ranking as it is shown."""

from __future__ import annotations

import ir_measures
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragistry.errors import EvaluationError
from ragistry.evaluation.data.dataset import Run
from ragistry.evaluation.data.trec import decreasing
from ragistry.evaluation.measures import parse_measures, per_query, per_query_of_passages
from tests.messages import refused

NAMES = [
    "nDCG@10", "nDCG@3", "nDCG", "AP", "AP@5", "RR", "RR@5", "R@3", "R@100", "P@1", "P@10", "P(rel=2)@3", "AP(rel=2)",
    "R(rel=2)@5", "RR(rel=2)@5", "Success@1", "Success@5", "Judged@3", "Judged@10",
]  # fmt: skip

documents = st.sampled_from([f"d{number}" for number in range(12)])
# Below 0 pytrec_eval may never come back.
grades = st.dictionaries(documents, st.integers(0, 3), min_size=1, max_size=8)
queries = st.sampled_from(["q1", "q2", "q3", "q4"])


def reference(names: list[str], qrels: dict[str, dict[str, int]], run: Run) -> dict[str, dict[str, float]]:
    """What ir-measures says of the queries that it sees; it leaves out those that the run lacks."""
    found: dict[str, dict[str, float]] = {name: {} for name in names}
    scores = {query: dict(hits) for query, hits in run.items()}
    for metric in ir_measures.iter_calc([ir_measures.parse_measure(name) for name in names], qrels, scores):
        found[str(metric.measure)][metric.query_id] = metric.value
    return found


@settings(max_examples=40, deadline=None)
@given(
    st.dictionaries(queries, grades, min_size=1),
    st.dictionaries(queries, st.lists(documents, unique=True, min_size=1), min_size=1),
)
def test_rankings_measure_as_ir_measures_does_in_the_order_shown(qrels, orders):
    shown = {query: [(document, 0.5) for document in order] for query, order in orders.items()}
    written = {query: decreasing(hits) for query, hits in shown.items()}
    theirs = reference(NAMES, qrels, written)
    ours = per_query(parse_measures(NAMES), qrels, shown)
    for name in NAMES:
        assert ours[name] == pytest.approx({query: theirs[name].get(query, 0.0) for query in qrels}, abs=1e-9), name


@pytest.mark.parametrize(
    ("ranking", "grades", "values"),
    [
        ("bxa", {"a": 2, "b": 1, "c": 0}, {"RR(rel=2)@5": 1 / 3, "P@10": 0.2, "R@3": 1.0, "Judged@3": 2 / 3}),
        ("aab", {"a": 2, "b": 1}, {"P@2": 1.0, "AP": 1.0}),
        ("sa", {"s": -2, "a": 1}, {"nDCG@10": 1 / 1.5849625007211562, "RR": 0.5, "R@1": 0.0}),
        ("", {"a": 1}, {"nDCG@10": 0.0, "Judged@10": 0.0}),
    ],
    ids=["graded", "a document that comes twice", "a grade below 0", "a query that the run lacks"],
)
def test_worked_examples(ranking, grades, values):
    run = {"q": [(document, 9.0 - place) for place, document in enumerate(ranking)]} if ranking else {}
    found = per_query(parse_measures(values), {"q": grades, "not judged": {}}, run)
    assert {name: of["q"] for name, of in found.items()} == pytest.approx(values)
    assert all(of.keys() == {"q"} for of in found.values())


def test_every_bad_name_is_listed_with_its_remedy():
    assert [str(measure) for measure in parse_measures([*NAMES, "AP"])] == NAMES
    others = ["MAP", "MAP@5", "MRR@10", "Precision(rel=2)@3", "Recall@7", "AP"]
    assert [str(measure) for measure in parse_measures(others)] == ["AP", "AP@5", "RR@10", "P(rel=2)@3", "R@7"]
    names = ["nDCG@10", "ndcg@10", "R", "Judged(rel=2)@5", "P@0", "nonsense!", "SR", "SP(rel=2)@5"]
    with refused(EvaluationError, *map(repr, names[1:])) as caught:
        parse_measures(names)
    assert "'nDCG@10' is not a measure" not in str(caught.value)
    with refused(EvaluationError):
        parse_measures([])


# Passages

SPANS = {"q": {"d": [(100, 200), (500, 600)], "e": [(0, 50)]}}


def passages(names: list[str], found: list[tuple[str, int, int]], spans: dict = SPANS) -> list[float]:
    return [values["q"] for values in per_query_of_passages(parse_measures(names), spans, {"q": found}).values()]


def test_each_span_counts_once_and_where_it_is_first_found():
    split = [("d", 90, 150), ("d", 150, 210), ("x", 0, 9), ("e", 40, 90), ("d", 500, 510)]
    assert passages(["RR@10", "R@1", "R@5", "P@5", "Success@1"], split) == pytest.approx([1, 1 / 3, 1, 3 / 5, 1])
    whole = [("d", 0, 1_000), ("e", 0, 1_000)]
    assert passages(["nDCG@10", "AP", "R@1", "R@2"], whole) == pytest.approx([1, 1, 2 / 3, 1])
    assert passages(["RR@10", "RR@1"], [("d", 200, 500), ("e", 49, 60)]) == [0.5, 0.0], "the end is outside"
    assert passages(["nDCG@10", "SR@5", "SP@5"], []) == [0, 0, 0]


def test_characters_of_spans_and_of_passages_are_counted():
    found = [("d", 150, 250), ("d", 150, 250), ("e", 0, 100)]
    assert passages(["SR@1", "SP@1"], found) == pytest.approx([50 / 250, 50 / 100])
    assert passages(["SR@3", "SP@3"], found) == pytest.approx([100 / 250, 100 / 300]), "returned twice, paid twice"
    overlapping = {"q": {"d": [(0, 60), (40, 100)]}}
    assert passages(["SR@1", "SP@1"], [("d", 0, 200)], overlapping) == pytest.approx([1, 0.5])


span = st.tuples(st.sampled_from("de"), st.integers(0, 60), st.integers(1, 40)).map(lambda s: (s[0], s[1], s[1] + s[2]))


@settings(max_examples=30, deadline=None)
@given(st.lists(span, min_size=1, max_size=4), st.lists(span, max_size=8))
def test_measures_of_passages_lie_between_0_and_1(answer, found):
    spans: dict = {"q": {}}
    for document, start, end in answer:
        spans["q"].setdefault(document, []).append((start, end))
    names = ["nDCG@3", "nDCG@10", "AP", "RR@10", "R@5", "P@5", "SR@5", "SP@5"]
    assert all(0 <= value <= 1 for value in passages(names, found, spans))
    assert passages(["SR@10", "R@10"], answer, spans) == [1.0, 1.0]
