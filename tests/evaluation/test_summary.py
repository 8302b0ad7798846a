"""From answers to verdicts and warnings."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ragistry.errors import EvaluationError
from ragistry.evaluation.answers import Answer
from ragistry.evaluation.data.dataset import Dataset, Text
from ragistry.evaluation.measures import parse_measures
from ragistry.evaluation.result import Comparison
from ragistry.evaluation.summary import summarise

Rank = Callable[[int], int]


def numbered(queries: int = 40, **options: Any) -> Dataset:
    """Each query is answered by the document of its own number."""
    corpus = [Text(f"d{n}", "", f"document {n} " * 5) for n in range(queries + 10)]
    qrels = {f"q{n:03}": {f"d{n}": 1} for n in range(queries)}
    return Dataset("numbered", corpus, {f"q{n:03}": f"query {n}" for n in range(queries)}, qrels, **options)


def ranked(dataset: Dataset, rank: Rank, **options: Any) -> dict[str, Answer]:
    """Answers with the right document at a rank that depends on the query's number; 0: nowhere."""
    found = {}
    for number, query in enumerate(dataset.judged):
        wrong = [text.id for text in dataset.corpus if text.id != f"d{number}"][:9]
        at = rank(number)
        ids = [*wrong[: at - 1], f"d{number}", *wrong[at - 1 :]] if at else wrong
        hits = [(id, 1 - place / 100) for place, id in enumerate(ids)]
        found[query] = Answer(query, hits, **({"ms": 1.0, "cpu_ms": 1.0 + number % 3} | options))
    return found


def summarised(dataset: Dataset, ranks: dict[str, Rank], measures: str = "RR@10", **options: Any) -> Comparison:
    answers = options.pop("answers", {name: ranked(dataset, rank) for name, rank in ranks.items()})
    names = measures.split()
    provenance = {
        "dataset": {"judged_queries": len(dataset.judged), "documents": len(dataset.corpus), "synthetic": None},
        "measures": names,
        "asking": {},
        "techniques": dict.fromkeys(answers),
        "machine": options.pop("machine", {}),
    }
    given = {"configurations": {name: {} for name in answers}, "provenance": provenance, "depth": 10} | options
    return summarise(dataset, answers, parse_measures(names), **given)


def said(comparison: Comparison, *words: str) -> list[str]:
    return [line for line in comparison.warnings if all(word in line for word in words)]


def good(_: int) -> int:
    return 1


def often(number: int) -> int:
    return 2 if number % 2 else 1


def rare(number: int) -> int:
    return 0 if number % 4 else 5


def test_a_winner_is_named_where_the_difference_is_significant() -> None:
    result = summarised(numbered(), {"good": good, "often": often})
    [pair] = result.pairs
    assert (result.winner, pair.wins, pair.ties, pair.losses) == ("good", 20, 20, 0)
    assert pair.difference == pytest.approx(0.25)
    assert 0 < pair.low < 0.25 < pair.high < 0.5
    assert pair.verdict().startswith("good is better than often in RR@10 by 0.250 (")
    assert result.conclusion() == "good is significantly better than the other technique in RR@10."
    swapped = summarised(numbered(), {"often": often, "good": good})
    assert swapped.verdicts == result.verdicts
    assert json.loads(json.dumps(result.to_json(), allow_nan=False))["conclusion"] == result.conclusion()


def test_no_winner_is_named_where_none_is_shown() -> None:
    result = summarised(numbered(), {"one": often, "other": lambda number: 3 - often(number)})
    assert result.winner is None
    [verdict] = result.verdicts
    assert verdict.startswith("no difference shown between one and other in RR@10, n = 40 (+0.000, p = 1.000)")
    assert "smallest difference that this many queries show reliably: 0.2" in verdict
    nearly = summarised(numbered(), {"one": often, "other": lambda number: 1 if number in (1, 3, 5) else often(number)})
    assert "queries would show this one" in nearly.verdicts[0]


@pytest.mark.parametrize("queries", [1, 2, 5])
def test_few_queries_can_show_nothing_and_the_verdict_says_so(queries: int) -> None:
    result = summarised(numbered(queries), {"good": good, "bad": lambda _: 0})
    [pair] = result.pairs
    assert result.winner is None
    assert pair.detectable is None
    assert (pair.low, pair.high) == (-1, 1)
    assert f"cannot be significant with {queries} quer" in pair.verdict()
    assert result.conclusion().startswith("No difference can be significant with")
    assert said(result, "no difference can be significant", "1 pair")
    json.dumps(result.to_json(), allow_nan=False)


def test_intervals_and_verdicts_of_a_family_agree() -> None:
    draw = np.random.default_rng(0)
    for _ in range(20):
        ranks = {name: draw.integers(1, 4 + place, 12).tolist() for place, name in enumerate("abcd")}
        result = summarised(numbered(12), {name: lambda n, at=at: at[n] for name, at in ranks.items()})
        for pair in result.pairs:
            assert (pair.low > 0 or pair.high < 0) == (pair.p < 0.05)
            assert (pair.family_low >= 0 or pair.family_high <= 0) == pair.significant
            assert pair.family_low <= pair.low <= pair.difference <= pair.high <= pair.family_high or pair.significant
            assert pair.smallest_p == 6 / 2**11


def test_pairs_of_one_measure_are_one_family() -> None:
    ranks: dict[str, Rank] = {name: lambda n, at=at: at + n % 3 for at, name in enumerate("abcd", 1)}
    result = summarised(numbered(30), ranks, "RR@10 R@5")
    assert len(result.main_pairs) == 6
    assert len(result.pairs) == 12
    assert len(summarised(numbered(30), ranks, baseline="a").pairs) == 3
    smallest = min(result.main_pairs, key=lambda pair: pair.p)
    assert smallest.p_holm == pytest.approx(6 * smallest.p)


def test_techniques_with_the_same_rankings_are_named_and_not_tested() -> None:
    result = summarised(numbered(), {"a": often, "good": good, "twin": good, "copy": good})
    assert {name: one.same_as for name, one in result.techniques.items()} == {
        "a": None,
        "good": None,
        "twin": "good",
        "copy": "good",
    }
    assert [(pair.a, pair.b) for pair in result.pairs] == [("a", "good")]
    assert result.pairs[0].p_holm == result.pairs[0].p
    assert said(result, "Same rankings as good on every query, so not tested: twin, copy.")
    assert result.conclusion() == (
        "good is significantly better than the other technique in RR@10; twin, copy return the same rankings."
    )
    against = summarised(numbered(), {"twin": good, "base": good}, baseline="base")
    assert against.techniques["twin"].same_as == "base"
    assert against.conclusion() == "All techniques return the same rankings on every query."


def test_queries_of_one_group_are_not_independent() -> None:
    alone = summarised(numbered(40), {"good": good, "often": often}).pairs[0]
    groups = {f"q{n:03}": f"page {n // 10}" for n in range(40)}
    result = summarised(numbered(40, groups=groups), {"good": good, "often": often})
    [pair] = result.pairs
    assert alone.p < 0.001
    assert (pair.clusters, pair.smallest_p, pair.p) == (4, 0.125, 0.125)
    assert "n = 40 in 4 groups" in pair.verdict()
    assert "cannot be significant with 4 groups of queries" in pair.verdict()
    assert said(result, "The 40 queries come from 4 groups (the largest has 10)")
    one = summarised(numbered(40, groups=dict.fromkeys(groups, "all")), {"good": good, "often": often})
    assert one.pairs[0].p == 1.0
    assert one.winner is None


def test_a_winner_that_is_no_better_than_a_control_is_warned_of() -> None:
    dataset = numbered(kinds={f"q{n:03}": "title" if n % 2 else "heading" for n in range(40)})
    runs = {
        name: {query: answer.ranking for query, answer in ranked(dataset, rank).items()}
        for name, rank in {"filename": good, "random": rare}.items()
    }
    result = summarised(dataset, {"good": good, "often": often, "weak": rare}, controls=runs)
    assert result.controls["filename"] == {"RR@10": 1.0}
    assert [(pair.a, pair.b) for pair in result.control_pairs] == [
        ("good", "filename (control)"),
        ("good", "random (control)"),
    ]
    assert said(result, "good is not significantly better than the words of file names alone", "filename: RR@10 1.000")
    assert said(result, "Not significantly better than chance alone", "weak")
    assert len(result.pairs) == 3, "controls are in no family"
    kinds = result.techniques["often"].by_kind
    assert kinds == {"heading": {"RR@10": 1.0, "queries": 20}, "title": {"RR@10": 0.5, "queries": 20}}


def test_the_best_variant_is_measured_where_it_was_not_chosen() -> None:
    draw = np.random.default_rng(5)
    drawn = draw.integers(1, 5, (20, 40)).tolist()
    ranks: dict[str, Rank] = {f"hybrid[k={k}]": lambda n, at=at: at[n] for k, at in enumerate(drawn)}
    variants = dict.fromkeys(ranks, "hybrid")
    plain = summarised(numbered(), ranks, baseline="hybrid[k=0]", variants=variants)
    assert said(plain, "20 variants of hybrid", "are not tested against each other", "--tune-on 0.5")
    tuned = summarised(numbered(), ranks, baseline="hybrid[k=0]", variants=variants, tune_on=0.5)
    assert tuned.selection is not None
    assert tuned.selection.gain_selected > tuned.selection.gain_held_out
    assert len(tuned.selection.variants) == 20
    assert not said(tuned, "variants of hybrid")
    assert tuned.to_json()["selection"]["chosen"] == tuned.selection.chosen
    with pytest.raises(EvaluationError, match="tune_on is 2"):
        summarised(numbered(), ranks, tune_on=2)


def test_judged_counts_only_what_the_judgements_say() -> None:
    positives = summarised(numbered(), {"good": good})
    assert positives.techniques["good"].judged is None
    assert said(positives, "name only relevant documents")
    dataset = numbered()
    graded = replace(dataset, qrels={query: {**grades, "d45": 0} for query, grades in dataset.qrels.items()})
    assert summarised(graded, {"good": good}).techniques["good"].judged == pytest.approx(1 / 10)


def test_passages_are_measured_where_answers_are_spans() -> None:
    spans = {f"q{n:03}": {f"d{n}": [(10, 20)]} for n in range(20)}
    dataset = numbered(40, spans=spans)
    small, large, none = (ranked(dataset, good) for _ in range(3))
    for number, query in enumerate(spans):
        small[query] = replace(small[query], passages=[(f"d{number}", 10, 20)], returned_tokens=3)
        large[query] = replace(large[query], passages=[(f"d{number}", 0, 50)], returned_tokens=12)
    result = summarised(
        dataset,
        {},
        "SP@5 SR@5 nDCG@10 RR@10",
        answers={"small": small, "large": large, "none": none},
        controls={"title_only": {"q000": [("d0", 1.0)]}},
    )
    means = {name: [round(one.mean, 9) for one in of.measures.values()] for name, of in result.techniques.items()}
    assert means == {"small": [1, 1, 1, 1], "large": [0.2, 1, 1, 1], "none": [0, 0, 0, 0]}
    assert result.winner == "small", "the same documents, but less beside the answer"
    assert result.techniques["small"].returned_tokens == pytest.approx(1.5)
    assert result.controls["title_only"]["SR@5"] == pytest.approx(1 / 20)
    assert said(result, "Results without `start` and `end`", "none")
    assert said(result, "20 queries have judgements but no spans")
    with pytest.raises(EvaluationError, match="the test set has none"):
        summarised(numbered(), {"a": good}, "SR@5")


def test_cpu_time_is_compared_pair_by_pair() -> None:
    dataset = numbered()
    fast, slow = ranked(dataset, good), ranked(dataset, often)
    slow = {query: replace(answer, cpu_ms=answer.cpu_ms + 0.5) for query, answer in slow.items()}
    cached = {query: replace(answer, embedding_cached=True) for query, answer in ranked(dataset, good).items()}
    machine = {"load": 3.5, "processors": 2}
    result = summarised(dataset, {}, answers={"slow": slow, "fast": fast}, machine=machine)
    [pair] = result.cpu_pairs
    assert (pair.a, pair.b, pair.difference) == ("slow", "fast", pytest.approx(0.5))
    assert pair.low == pytest.approx(0.5)
    assert said(result, "The machine was busy (load 3.5 on 2 processors)")
    assert said(summarised(dataset, {}, answers={"c": cached}), "Vectors of queries came from the cache", "c")
    [few] = summarised(numbered(2), {"a": good, "b": rare}).cpu_pairs
    assert (few.low, few.high) == (None, None)


def test_a_technique_that_returns_nothing_is_worth_nothing() -> None:
    dataset = numbered()
    nothing = {query: Answer(query, [], 1.0) for query in dataset.judged}
    result = summarised(dataset, {}, answers={"nothing": nothing, "good": ranked(dataset, good)})
    assert result.winner == "good"
    assert result.techniques["nothing"].measures["RR@10"].mean == 0
    assert 0 < result.techniques["nothing"].measures["RR@10"].high < 0.1, "not seen in 40 queries is not never"
    assert result.techniques["nothing"].found.never == 40


def test_no_technique_and_a_failed_baseline_are_said() -> None:
    assert summarised(numbered(), {}).conclusion() == "Every technique failed: nothing could be compared."
    from ragistry.evaluation.result import Failure

    failed = summarised(numbered(), {"a": good}, baseline="b", failures={"b": Failure("q1", "no")})
    assert failed.conclusion() == "The baseline b failed, so nothing can be tested against it."
    assert failed.winner is None


def test_the_order_of_the_files_decides_no_figure() -> None:
    straight, ranks = numbered(25), {"a": lambda n: 1 + n % 4, "b": lambda n: 1 + n % 3}
    one = summarised(straight, ranks)
    answers = {name: dict(reversed(ranked(straight, rank).items())) for name, rank in ranks.items()}
    turned = replace(straight, queries=dict(reversed(straight.queries.items())))
    other = summarised(turned, {}, answers=answers)
    assert one.pairs == other.pairs
    assert [r.measures for r in one.techniques.values()] == [r.measures for r in other.techniques.values()]


def test_twenty_techniques_do_not_make_a_sentence_of_twenty_names() -> None:
    drawn = np.random.default_rng(1).integers(1, 5, (20, 40)).tolist()
    ranks: dict[str, Rank] = {f"t{n}": lambda n, at=at: at[n] for n, at in enumerate(drawn)}
    said = summarised(numbered(), ranks, baseline="t0").conclusion()
    assert said.count(", t") <= 6
    assert " more" in said
