"""Comparisons are read back from JSON, and two are compared."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import reduce
from operator import getitem

import pytest

from ragistry.errors import EvaluationError
from ragistry.evaluation import Comparison, Dataset, Text, compare, gate, markdown, page
from ragistry.evaluation.changes import LOST, NOT_DECIDED, PASSED
from ragistry.evaluation.figures import TechniqueFailure
from tests.evaluation.small_sets import Answers, first, numbered
from tests.messages import check_message, refused

RR = ["RR@10", "R@10"]


def compared(dataset: Dataset | None = None, measures=RR, **ranks) -> Comparison:
    techniques = {name: Answers(rank) for name, rank in ranks.items()}
    return compare(techniques, dataset or numbered(20), measures, timing_repeats=0, progress=False)


def second(_: int) -> int:
    return 2


@pytest.fixture(scope="module")
def alone() -> Comparison:
    """Of one technique, which is always right."""
    return compared(a=first)


def test_comparison_read_back_is_the_same(tmp_path):
    made = compared(a=first, b=second)
    (tmp_path / "a.json").write_text(json.dumps(made.to_json()))
    for source in (tmp_path / "a.json", str(tmp_path / "a.json"), made.to_json()):
        read = Comparison.from_json(source)
        assert (markdown(read), page(read), repr(read)) == (markdown(made), page(made), repr(made))
        assert read.to_json() == json.loads(json.dumps(made.to_json()))
    tuned = compare({"a": Answers(first), "b": Answers(second)}, numbered(20), tune_on=0.5, progress=False)
    assert Comparison.from_json(tuned.to_json()).selection == tuned.selection


def cut(text: str) -> str:
    return text[: len(text) // 2]


def without(key: str):
    return lambda text: json.dumps({name: value for name, value in json.loads(text).items() if name != key})


def with_value(value, *keys: str):
    def changed_text(text: str) -> str:
        data = json.loads(text)
        reduce(getitem, keys[:-1], data)[keys[-1]] = value
        return json.dumps(data)

    return changed_text


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (cut, "a.json"), (lambda _: "", "a.json"), (lambda _: "[]", "a.json"), (lambda _: '{"a": 1}', "a.json"),
        (without("pairs"), "pairs"), (without("measure"), "measure"),
        (with_value(1, "techniques", "a", "from_the_future"), "from_the_future"),
        (without("provenance"), "a.json"), (lambda _: "[" * 100_000, "a.json"),
        (with_value("x", "techniques"), "a.json"), (with_value(None, "techniques"), "a.json"),
        (with_value({"RR@10": None}, "techniques", "a", "per_query"), "RR@10"),
        (with_value(5, "warnings"), "warnings"), (with_value({}, "provenance"), "provenance"),
        (with_value("gone", "baseline"), "gone"), (with_value(float("nan"), "margin"), "margin"),
        (with_value(float("nan"), "techniques", "a", "per_query", "RR@10", "q0"), "techniques.a.per_query.RR@10.q0"),
        (with_value(float("inf"), "techniques", "a", "latency_ms", "p50"), "latency_ms.p50"),
        (lambda text: text.replace('"margin": 0.05', '"margin": 1e999'), "margin"),
    ],
)  # fmt: skip
def test_report_that_is_cut_or_of_another_version_is_refused(alone, tmp_path, damage, named):
    (tmp_path / "a.json").write_text(damage(json.dumps(alone.to_json())))
    with refused(EvaluationError, named):
        Comparison.from_json(tmp_path / "a.json")


def test_missing_report_is_refused_and_a_byte_order_mark_is_no_damage(alone, tmp_path):
    for wrong, named in ((tmp_path / "nothing.json", "nothing.json"), (tmp_path, tmp_path.name), (5, 5)):
        with refused(EvaluationError, named):
            Comparison.from_json(wrong)
    (tmp_path / "a.json").write_text(json.dumps(alone.to_json()), encoding="utf-8-sig")
    assert Comparison.from_json(tmp_path / "a.json").measure == "RR@10"


def test_two_comparisons_pair_the_same_queries_and_techniques():
    before, now = compared(a=second, b=first), compared(a=first, c=first)
    change, same = gate(before, now), gate(now, now)
    assert change.table is not None
    assert [str(cell) for [*row] in change.table.rows for cell in row[:2]] == ["a", "+0.500 [+0.291, +0.570]"]
    assert change.others == ["only in the first: b", "only in the second: c"]
    assert (same.code, same.others) == (PASSED, [])


SPANS = {query: {"d0": [(0, 5)]} for query in numbered(20).queries}
CHANGES: dict[str, tuple[Dataset, list[str], str]] = {
    "fewer": (
        numbered(18),
        ["the corpora differ (20 and 18)", "the queries differ", "2 queries only in the first, left out"],
        "the corpora differ",
    ),
    "a judgement": (
        replace(numbered(20), qrels={**numbered(20).qrels, "q0": {"d1": 1}}),
        ["the judgements differ (20 and 20)"],
        "q0 (d0)",
    ),
    "a query": (
        replace(numbered(20), queries={**numbered(20).queries, "q0": "another 0"}),
        ["the queries differ (20 and 20)"],
        "the queries differ",
    ),
    "a text": (replace(numbered(20), corpus=[Text("d0", "", "another"), *numbered(20).corpus[1:]]), [], "q0 (d0)"),
    "one more text": (
        replace(numbered(20), corpus=[*numbered(20).corpus, Text("more", "", "x")]),
        [],
        "corpora differ",
    ),
    "a span": (replace(numbered(20), spans=SPANS | {"q0": {"d0": [(0, 6)]}}), [], "q0 (d0)"),
    "every query": (
        Dataset("numbered", numbered(2).corpus, {"z": "query 0"}, {"z": {"d0": 1}}),
        [],
        "the queries differ (20 and 1)",
    ),
    "the name": (replace(numbered(20), name="other"), ["'numbered' and 'other'"], ""),
}


@pytest.mark.parametrize("change", CHANGES)
def test_differences_of_test_sets_are_named_and_the_gate_decides_nothing_over_most(alone, change):
    dataset, named, undecided = CHANGES[change]
    before = compared(replace(numbered(20), spans=SPANS), a=first) if dataset.spans else alone
    now = compared(dataset, a=first)
    found = gate(before, now)
    said = "\n".join([found.sentence, *found.others])
    assert [text for text in named if text not in said] == []
    assert found.code == (NOT_DECIDED if undecided else PASSED)
    assert undecided in found.sentence
    check_message(found.sentence)


def test_differences_of_techniques_and_depth_are_named():
    class Other(Answers):
        pass

    one = compare({"a": Answers(first)}, numbered(5), RR, depth=20, progress=False)
    other = compare({"a": Other(first)}, numbered(5), RR, depth=30, progress=False)
    said = gate(one, other).others
    assert any(line.startswith("a changed: ") for line in said)
    assert "depth differs: 20 and 30" in said


@pytest.mark.parametrize(
    ("other", "named"),
    [({"b": first}, "technique"), ({"measures": ["R@5"], "a": first}, "measure")],
)
def test_comparisons_that_share_nothing_are_refused(alone, other, named):
    with refused(EvaluationError, named):
        gate(alone, compared(**other))


@pytest.mark.parametrize("evidence", [None, {}, {"q0": {"d0": "0"}}])
def test_gate_decides_nothing_over_a_report_of_a_version_without_evidence(alone, evidence):
    now = alone
    former = replace(now, provenance=now.provenance | {"evidence": evidence})
    for sides in ((former, now), (now, former)):
        found = gate(*sides)
        assert found.code == NOT_DECIDED
        check_message(found.sentence, "evidence")


def test_gate_closes_at_a_shown_loss_of_the_least_effect():
    before, after = compared(a=first, b=first), compared(a=first, b=second)
    lost = gate(before, after)
    assert (lost.code, gate(after, before).code, gate(before, before).code) == (LOST, PASSED, PASSED)
    assert (gate(before, after, 0.5).code, gate(before, after, 0.501).code) == (LOST, PASSED)
    check_message(lost.sentence, "b lost 0.500")
    assert "| b | \N{MINUS SIGN}0.500 " in lost.markdown()
    assert gate(before, replace(after, failures={"b": TechniqueFailure("", "no")})).code == NOT_DECIDED
    with refused(EvaluationError, "-1"):
        gate(before, after, -1)
