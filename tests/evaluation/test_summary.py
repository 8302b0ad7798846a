"""From answers to verdicts, warnings and notes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ragistry.errors import EvaluationError
from ragistry.evaluation import Comparison, Dataset, Text
from ragistry.evaluation.asking import Asking, QueryRanking
from ragistry.evaluation.figures import IndexCost, TechniqueFailure
from ragistry.evaluation.measures import parse_measures
from ragistry.evaluation.summary import Design, summarise
from tests.conftest import full_run
from tests.messages import check_message, refused

Rank = Callable[[int], int]


def numbered(queries: int = 40, **options: Any) -> Dataset:
    """Each query is answered by the document of its own number."""
    corpus = [Text(f"d{n}", "", f"document {n} " * 5) for n in range(queries + 10)]
    qrels = {f"q{n:03}": {f"d{n}": 1} for n in range(queries)}
    return Dataset("numbered", corpus, {f"q{n:03}": f"query {n}" for n in range(queries)}, qrels, **options)


def ranked(dataset: Dataset, rank: Rank, **options: Any) -> dict[str, QueryRanking]:
    """Answers with the right document at a rank that depends on the query's number; 0: nowhere."""
    found = {}
    for number, query in enumerate(dataset.judged):
        wrong = [text.id for text in dataset.corpus if text.id != f"d{number}"][:9]
        at = rank(number)
        ids = [*wrong[: at - 1], f"d{number}", *wrong[at - 1 :]] if at else wrong
        hits = [(id, 1 - place / 100) for place, id in enumerate(ids)]
        found[query] = QueryRanking(query, hits, **({"ms": 1.0, "cpu_ms": 1.0 + number % 3} | options))
    return found


def summarised(dataset: Dataset, ranks: dict[str, Rank], measures: str = "RR@10", **options: Any) -> Comparison:
    answers = options.pop("answers", {name: ranked(dataset, rank) for name, rank in ranks.items()})
    names = measures.split()
    provenance = {
        "dataset": {"judged_queries": len(dataset.judged), "documents": len(dataset.corpus), "synthetic": None},
        "measures": names,
        "asking": {},
        "techniques": dict.fromkeys(answers),
        "machine": {},
        "embedder": {"max_tokens": 256},
    } | options.pop("provenance", {})
    controls, indexes = options.pop("controls", {}), options.pop("indexes", {})
    asking = Asking(dataset, 10, rankings=answers, indexes=indexes, failures=options.pop("failures", {}))
    return summarise(asking, Design(parse_measures(names), **options), provenance, controls)


def good(_: int) -> int:
    return 1


def often(number: int) -> int:
    return 2 if number % 2 else 1


def rare(number: int) -> int:
    return 0 if number % 4 else 5


def random_ranks(count: int, name: str = "t{}") -> dict[str, Rank]:
    drawn = np.random.default_rng(5).integers(1, 5, (count, 40)).tolist()
    return {name.format(number): lambda n, at=at: at[n] for number, at in enumerate(drawn)}


def test_a_significantly_better_technique_is_to_be_used():
    result = summarised(numbered(), {"often": often, "good": good})
    [pair] = result.pairs
    assert (pair.a, pair.b, pair.wins, pair.ties, pair.losses) == ("good", "often", 20, 20, 0)
    assert pair.difference == pytest.approx(0.25)
    assert 0 < pair.low < 0.25 < pair.high < 0.5
    check_message(pair.verdict(), "0.250")
    check_message(str(result.verdict), "good", "often")
    told = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert (told["dataset"], told["verdict"]) == ("numbered", str(result.verdict))
    assert told["decision"] == {"kind": "use", "technique": "good", "candidate": False}
    assert not {"winner", "conclusion", "verdicts"} & told.keys()


def slower(dataset: Dataset, rank: Rank, ms: float) -> dict[str, QueryRanking]:
    return {query: replace(one, ms=one.ms + ms) for query, one in ranked(dataset, rank).items()}


def nearly(number: int) -> int:
    return 2 if number % 10 == 0 else 1


def rarely(number: int) -> int:
    return 2 if number < 6 else 1


def alike(number: int) -> int:
    return nearly(number + 5)


def made(count: int, documents: int | None = None) -> dict[str, Any]:
    how = {"queries": count, "kinds": {"sentence": count}, "models": [], "seeds": []}
    return {"dataset": {"judged_queries": count, "documents": documents or count, "synthetic": how}}


@pytest.mark.parametrize(
    ("ranks", "options", "decision", "technique"),
    [
        ({"base": often, "good": good}, {}, "use", "good"),
        ({"base": often, "good": good, "twin": good}, {"ms": {"good": 4.0}}, "use", "twin"),
        ({"base": often, "best": good, "nearly": nearly}, {"ms": {"best": 900.0}}, "use", "best"),
        ({"base": good, "often": often}, {}, "keep", "base"),
        ({"base": good, "twin": good}, {}, "keep", "base"),
        ({"base": good, "twin": good}, {"provenance": made(40)}, "keep", "base"),
        ({"base": good, "often": often, "rarely": rarely}, {}, "keep", "base"),
        ({"base": nearly, "same": alike}, {"margin": 0.3, "ms": {"same": 8.0}}, "keep", "base"),
        ({"base": nearly, "same": alike}, {"margin": 0.02}, "undecided", None),
        ({"base": often, "good": good}, {"provenance": made(40)}, "use", "good"),
        (
            {"base": nearly, "same": alike},
            {"margin": 0.02, "provenance": made(40)},
            "impossible",
            None,
        ),
        (
            {"base": nearly, "same": alike},
            {"margin": 0.02, "provenance": made(40, 9999)},
            "undecided",
            None,
        ),
        ({"base": rare, "other": lambda n: rare(n + 1)}, {"controls": {"random": rare}}, "impossible", None),
        ({"base": good}, {}, "impossible", None),
        ({}, {}, "impossible", None),
        ({"good": good}, {"baseline": "base", "failures": {"base": TechniqueFailure("q1", "no")}}, "impossible", None),
    ],
)
def test_the_verdict_is_one_sentence_that_says_what_to_do(ranks, options, decision, technique):
    dataset, ms = numbered(), options.pop("ms", {}) if "ms" in options else {}
    options = dict(options)
    if "controls" in options:
        options["controls"] = {
            name: {query: one.documents for query, one in ranked(dataset, rank).items()}
            for name, rank in options["controls"].items()
        }
    answers = {name: slower(dataset, rank, ms.get(name, 0.0)) for name, rank in ranks.items()}
    found = summarised(dataset, {}, answers=answers, **options).verdict
    assert (found.decision, found.technique) == (decision, technique)
    assert found.candidate == ("provenance" in options and found.technique is not None)
    assert "\n" not in found.sentence
    assert found.sentence.endswith(".")
    assert "-0.0" not in found.sentence
    check_message(found.sentence)


def test_a_margin_is_kept_from_the_upper_end_of_the_corrected_interval():
    ranks = {"base": nearly, "same": alike, "worse": often}
    high = max(pair.family_high for pair in summarised(numbered(), ranks).main_pairs)
    assert summarised(numbered(), ranks, margin=high).verdict.decision == "undecided"
    assert summarised(numbered(), ranks, margin=high + 1e-9).verdict.decision == "keep"


@pytest.mark.parametrize("queries", [1, 2, 5])
def test_few_queries_decide_nothing(queries):
    result = summarised(numbered(queries), {"bad": lambda _: 0, "good": good})
    [pair] = result.pairs
    assert (result.verdict.decision, pair.detectable, pair.low, pair.high) == ("undecided", None, -1, 1)
    check_message(pair.verdict(), f"{queries} quer")
    check_message(str(result.verdict))
    json.dumps(result.to_json(), allow_nan=False)


def test_intervals_and_verdicts_of_a_family_agree():
    draw = np.random.default_rng(0)
    for _ in range(20 if full_run() else 4):
        ranks = {name: draw.integers(1, 4 + place, 12).tolist() for place, name in enumerate("abcd")}
        result = summarised(numbered(12), {name: lambda n, at=at: at[n] for name, at in ranks.items()})
        for pair in result.pairs:
            assert (pair.low > 0 or pair.high < 0) == (pair.p < 0.05)
            assert (pair.family_low >= 0 or pair.family_high <= 0) == pair.significant
            assert pair.family_low <= pair.low <= pair.difference <= pair.high <= pair.family_high or pair.significant
            assert pair.smallest_p == 3 / 2**11


def test_pairs_of_one_measure_are_one_family():
    ranks: dict[str, Rank] = {name: lambda n, at=at: at + n % 3 for at, name in enumerate("abcd", 1)}
    result = summarised(numbered(30), ranks, "RR@10 R@5")
    assert (len(result.main_pairs), len(result.pairs)) == (3, 6)
    assert {pair.b for pair in summarised(numbered(30), ranks, baseline="c").pairs} == {"c"}
    smallest = min(result.main_pairs, key=lambda pair: pair.p)
    assert smallest.p_holm == pytest.approx(3 * smallest.p)


def test_techniques_with_equal_rankings_are_named_and_not_tested():
    result = summarised(numbered(), {"a": often, "good": good, "twin": good, "copy": good})
    same = {name: one.same_as for name, one in result.techniques.items()}
    assert same == {"a": None, "good": None, "twin": "good", "copy": "good"}
    assert [(pair.a, pair.b, pair.p_holm == pair.p) for pair in result.pairs] == [("good", "a", True)]
    for note in result.notes:
        check_message(note)
    against = summarised(numbered(), {"twin": good, "base": good}, baseline="base")
    assert against.techniques["twin"].same_as == "base"


def test_queries_of_one_group_count_once():
    groups = {f"q{n:03}": f"page {n // 10}" for n in range(40)}
    result = summarised(numbered(40, groups=groups), {"good": good, "often": often})
    [pair] = result.pairs
    assert summarised(numbered(40), {"good": good, "often": often}).pairs[0].p < 0.001
    assert (pair.clusters, pair.smallest_p, pair.p) == (4, 0.125, 0.125)
    check_message(pair.verdict(), "40 queries in 4 groups")
    assert result.warnings == []
    one = summarised(numbered(40, groups=dict.fromkeys(groups, "all")), {"good": good, "often": often})
    assert (one.pairs[0].p, one.verdict.technique) == (1.0, None)


def test_winner_that_does_not_beat_a_control_is_a_warning():
    dataset = numbered(kinds={f"q{n:03}": "title" if n % 2 else "heading" for n in range(40)})
    runs = {
        name: {query: ranking.documents for query, ranking in ranked(dataset, rank).items()}
        for name, rank in {"filename": good, "random": rare}.items()
    }
    result = summarised(dataset, {"good": good, "often": often, "weak": rare}, controls=runs)
    assert result.controls["filename"] == {"RR@10": 1.0}
    assert len(result.pairs) == 2, "controls are in no family"
    assert {(pair.a, pair.b) for pair in result.control_pairs} >= {("good", "filename (control)")}
    filename, random = result.warnings
    check_message(filename, "good", "filename: RR@10 1.000")
    check_message(random, "weak")
    kinds = result.techniques["often"].by_kind
    assert kinds == {"heading": {"RR@10": 1.0, "queries": 20}, "title": {"RR@10": 0.5, "queries": 20}}


def test_best_variant_is_measured_where_it_was_not_chosen():
    ranks = random_ranks(8, name="hybrid[k={}]")
    options: dict[str, Any] = {"baseline": "hybrid[k=0]", "variants": dict.fromkeys(ranks, "hybrid")}
    [warning] = summarised(numbered(), ranks, **options).warnings
    check_message(warning, "8 variants of hybrid")
    tuned = summarised(numbered(), ranks, **options, tune_on=0.5)
    assert tuned.selection is not None
    assert tuned.selection.gain_selected > tuned.selection.gain_held_out
    assert len(tuned.selection.variants) == 8
    assert tuned.warnings == []
    assert tuned.to_json()["selection"]["chosen"] == tuned.selection.chosen


def test_judged_is_a_share_only_where_some_judgements_are_negative():
    assert summarised(numbered(), {"good": good}).techniques["good"].judged is None
    dataset = numbered()
    graded = replace(dataset, qrels={query: {**grades, "d45": 0} for query, grades in dataset.qrels.items()})
    assert summarised(graded, {"good": good}).techniques["good"].judged == pytest.approx(1 / 10)


def test_passages_are_measured_where_answers_are_spans():
    spans = {f"q{n:03}": {f"d{n}": [(10, 20)]} for n in range(20)}
    dataset = numbered(40, spans=spans)
    small, large, none = (ranked(dataset, good) for _ in range(3))
    for number, query in enumerate(spans):
        small[query] = replace(small[query], passages=[(f"d{number}", 10, 20)], returned_tokens=3)
        large[query] = replace(large[query], passages=[(f"d{number}", 0, 50)], returned_tokens=12)
    answers = {"small": small, "large": large, "none": none}
    result = summarised(dataset, {}, "SP@5 SR@5 nDCG@10 RR@10", answers=answers)
    means = {name: [round(one.mean, 9) for one in of.measures.values()] for name, of in result.techniques.items()}
    assert means == {"small": [1, 1, 1, 1], "large": [0.2, 1, 1, 1], "none": [0, 0, 0, 0]}
    assert [(pair.a, pair.better) for pair in result.main_pairs] == [("large", "small"), ("none", "small")]
    assert result.techniques["small"].returned_tokens == pytest.approx(1.5)
    check_message(result.warnings[0], "none")
    check_message(result.notes[0], "20 queries")
    with refused(EvaluationError, "SR@k"):
        summarised(numbered(), {"a": good}, "SR@5")


def test_what_only_helps_to_read_the_figures_is_a_note():
    dataset = numbered()
    answers = {"a": ranked(dataset, good, kept=True)}
    result = summarised(dataset, {}, answers=answers, provenance={"machine": {"load": 3.5, "processors": 2}})
    for note in result.notes:
        check_message(note)
    assert any("first asking" in line for line in result.notes)
    assert (len(result.notes), result.warnings) == (3, [])


def test_what_may_make_the_verdict_wrong_is_one_warning_each():
    dataset = numbered()
    answers = {
        name: {
            query: replace(
                answer,
                documents=[*answer.documents, (f"x{number % 2}", 0.1)],
                degraded=[f"the query has {200 + number} tokens and was cut to 128"] if number else [],
            )
            for number, (query, answer) in enumerate(ranked(dataset, lambda n, at=at: 1 + n % at).items())
        }
        for at, name in enumerate("abcdef", 2)
    }
    cost = IndexCost("document", documents=9, chunks=9, cut=2)
    result = summarised(dataset, {}, "R@30 R@40", answers=answers | {"sound": ranked(dataset, good)})
    assert len(result.warnings) == 3
    for warning, value in zip(result.warnings, ("R@30", "39 of 40", "'x0'"), strict=True):
        check_message(warning, value)
    check_message(result.notes[-2], "R@40")
    [cut] = summarised(numbered(), {"a": good}, indexes={"document": cost}).warnings
    check_message(cut, "2 of 9", "256")


def test_order_of_the_files_changes_no_figure():
    straight, ranks = numbered(25), {"a": lambda n: 1 + n % 4, "b": lambda n: 1 + n % 3}
    one = summarised(straight, ranks)
    answers = {name: dict(reversed(ranked(straight, rank).items())) for name, rank in ranks.items()}
    turned = replace(straight, queries=dict(reversed(straight.queries.items())))
    other = summarised(turned, {}, answers=answers)
    assert one.pairs == other.pairs
    assert [r.measures for r in one.techniques.values()] == [r.measures for r in other.techniques.values()]
