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

NAMES = [
    "nDCG@10", "nDCG@3", "nDCG", "AP", "AP@5", "RR", "RR@5", "R@3", "R@100", "P@1", "P@10", "P(rel=2)@3", "AP(rel=2)",
    "R(rel=2)@5", "RR(rel=2)@5", "Success@1", "Success@5", "Judged@3", "Judged@10",
]  # fmt: skip
QRELS = {"q1": {"a": 2, "b": 1, "c": 0}}

documents = st.sampled_from([f"d{number}" for number in range(12)])
# Below 0 pytrec_eval may never come back.
grades = st.dictionaries(documents, st.integers(0, 3), min_size=1, max_size=8)
rankings = st.dictionaries(documents, st.sampled_from([0.0, 0.25, 0.5, 0.75]), min_size=1).map(
    lambda scores: sorted(scores.items(), key=lambda hit: (hit[1], hit[0]), reverse=True)
)
queries = st.sampled_from(["q1", "q2", "q3", "q4"])


def reference(names: list[str], qrels: dict[str, dict[str, int]], run: Run) -> dict[str, dict[str, float]]:
    """What ir-measures says of the queries that it sees; it leaves out those that the run lacks."""
    found: dict[str, dict[str, float]] = {name: {} for name in names}
    scores = {query: dict(hits) for query, hits in run.items()}
    for metric in ir_measures.iter_calc([ir_measures.parse_measure(name) for name in names], qrels, scores):
        found[str(metric.measure)][metric.query_id] = metric.value
    return found


def agree(names: list[str], qrels: dict[str, dict[str, int]], shown: Run, scored: Run) -> None:
    theirs = reference(names, qrels, scored)
    ours = per_query(parse_measures(names), qrels, shown)
    for name in names:
        assert ours[name].keys() == qrels.keys()
        for query in qrels:
            assert ours[name][query] == pytest.approx(theirs[name].get(query, 0.0), abs=1e-9), (name, query)


@settings(max_examples=80, deadline=None)
@given(st.dictionaries(queries, grades, min_size=1), st.dictionaries(queries, rankings, min_size=1))
def test_random_runs_with_ties_measure_as_ir_measures_does(qrels: dict[str, dict[str, int]], run: Run) -> None:
    # Its own implementations of these two, unlike trec_eval's, take the smaller id first.
    names = [name for name in NAMES if not name.startswith(("Judged", "RR@", "RR(rel=2)@"))]
    agree(names, qrels, run, run)


@settings(max_examples=80, deadline=None)
@given(
    st.dictionaries(queries, grades, min_size=1),
    st.dictionaries(queries, st.lists(documents, unique=True, min_size=1), min_size=1),
)
def test_an_order_that_no_score_gives_is_measured_as_shown(
    qrels: dict[str, dict[str, int]], orders: dict[str, list[str]]
) -> None:
    shown = {query: [(document, 0.5) for document in order] for query, order in orders.items()}
    written = {query: decreasing(hits) for query, hits in shown.items()}
    agree(NAMES, qrels, shown, written)


def test_a_worked_example() -> None:
    run = {"q1": [("b", 9.0), ("x", 8.0), ("a", 7.0)]}
    values = {name: found["q1"] for name, found in per_query(parse_measures(NAMES), QRELS, run).items()}
    assert values["nDCG@10"] == pytest.approx((1 + 2 / 2) / (2 + 1 / 1.5849625007211562))
    assert values["AP"] == pytest.approx((1 + 2 / 3) / 2)
    assert values["RR(rel=2)@5"] == pytest.approx(1 / 3)
    assert (values["P@10"], values["R@3"], values["Success@1"]) == (0.2, 1.0, 1.0)
    assert values["Judged@3"] == pytest.approx(2 / 3)


def test_a_judged_query_that_the_run_lacks_scores_nothing() -> None:
    found = per_query(parse_measures(["nDCG@10", "Judged@10"]), QRELS, {"other": [("a", 1.0)]})
    assert found == {"nDCG@10": {"q1": 0.0}, "Judged@10": {"q1": 0.0}}


def test_a_query_without_judgements_is_not_measured() -> None:
    assert per_query(parse_measures(["AP"]), QRELS | {"q2": {}}, {"q2": [("a", 1.0)]}) == {"AP": {"q1": 0.0}}


def test_a_document_that_comes_twice_counts_once() -> None:
    run = {"q1": [("a", 3.0), ("a", 2.0), ("b", 1.0)]}
    assert per_query(parse_measures(["P@2", "AP"]), QRELS, run) == {"P@2": {"q1": 1.0}, "AP": {"q1": 1.0}}


def test_measures_are_spelled_as_ir_measures_spells_them() -> None:
    assert [str(measure) for measure in parse_measures(NAMES)] == NAMES
    for name in NAMES:
        assert str(ir_measures.parse_measure(name)) == name
    assert len(parse_measures(["AP", " AP "])) == 1


def test_every_name_that_is_no_measure_is_told_at_once() -> None:
    with pytest.raises(EvaluationError) as caught:
        parse_measures(["nDCG@10", "ndcg@10", "R", "Judged(rel=2)@5", "P@0", "nonsense!"])
    message = str(caught.value)
    assert "'ndcg@10' is no measure; did you mean 'nDCG@10'?" in message
    assert "'R' is no measure: it needs a cutoff, as in 'R@10'" in message
    assert "Judged takes no rel" in message
    assert "'P@0'" in message
    assert "'nonsense!'" in message
    assert "'nDCG@10' is no measure" not in message
    with pytest.raises(EvaluationError, match="no measure is named"):
        parse_measures([])


def test_a_grade_below_nothing_is_not_relevant_and_gains_nothing() -> None:
    run = {"q1": [("spam", 3.0), ("a", 2.0)]}
    found = per_query(parse_measures(["nDCG@10", "RR", "R@1"]), {"q1": {"spam": -2, "a": 1}}, run)
    assert found["nDCG@10"]["q1"] == pytest.approx(1 / 1.5849625007211562)
    assert (found["RR"]["q1"], found["R@1"]["q1"]) == (0.5, 0.0)


# Passages

SPANS = {"q": {"d": [(100, 200), (500, 600)], "e": [(0, 50)]}}


def passages(names: list[str], found: list[tuple[str, int, int]], spans: dict = SPANS) -> list[float]:
    return [values["q"] for values in per_query_of_passages(parse_measures(names), spans, {"q": found}).values()]


def test_each_span_counts_once_and_where_it_is_first_found() -> None:
    split = [("d", 90, 150), ("d", 150, 210), ("x", 0, 9), ("e", 40, 90), ("d", 500, 510)]
    assert passages(["RR@10", "R@1", "R@5", "P@5", "Success@1"], split) == pytest.approx([1, 1 / 3, 1, 3 / 5, 1])
    whole = [("d", 0, 1_000), ("e", 0, 1_000)]
    assert passages(["nDCG@10", "AP", "R@1", "R@2"], whole) == pytest.approx([1, 1, 2 / 3, 1])
    assert passages(["RR@10", "RR@1"], [("d", 200, 500), ("e", 49, 60)]) == [0.5, 0.0], "the end is outside"
    assert passages(["nDCG@10", "SR@5", "SP@5"], []) == [0, 0, 0]


def test_characters_of_spans_and_of_passages_are_counted() -> None:
    found = [("d", 150, 250), ("d", 150, 250), ("e", 0, 100)]
    assert passages(["SR@1", "SP@1"], found) == pytest.approx([50 / 250, 50 / 100])
    assert passages(["SR@3", "SP@3"], found) == pytest.approx([100 / 250, 100 / 300]), "returned twice, paid twice"
    overlapping = {"q": {"d": [(0, 60), (40, 100)]}}
    assert passages(["SR@1", "SP@1"], [("d", 0, 200)], overlapping) == pytest.approx([1, 0.5])


span = st.tuples(st.sampled_from("de"), st.integers(0, 60), st.integers(1, 40)).map(lambda s: (s[0], s[1], s[1] + s[2]))


@settings(max_examples=60, deadline=None)
@given(st.lists(span, min_size=1, max_size=4), st.lists(span, max_size=8))
def test_measures_of_passages_lie_between_0_and_1(answer: list, found: list) -> None:
    spans: dict = {"q": {}}
    for document, start, end in answer:
        spans["q"].setdefault(document, []).append((start, end))
    names = ["nDCG@3", "nDCG@10", "AP", "RR@10", "R@5", "P@5", "SR@5", "SP@5"]
    assert all(0 <= value <= 1 for value in passages(names, found, spans))
    assert passages(["SR@10", "R@10"], answer, spans) == [1.0, 1.0]


def test_measures_of_spans_need_a_cutoff_and_take_no_rel() -> None:
    assert [measure.on_spans for measure in parse_measures(["SR@5", "SP@5", "RR"])] == [True, True, False]
    with pytest.raises(EvaluationError, match="'SR' is no measure: it needs a cutoff"):
        parse_measures(["SR"])
    with pytest.raises(EvaluationError, match="SP takes no rel"):
        parse_measures(["SP(rel=2)@5"])
