"""From answers to a comparison: measures, tests, cost and diagnosis."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from ragistry.errors import EvaluationError
from ragistry.evaluation.answers import Answer
from ragistry.evaluation.data.dataset import Dataset, Run
from ragistry.evaluation.diagnosis import diagnose, relevant_found
from ragistry.evaluation.measures import Measure, Passage, per_query, per_query_of_passages
from ragistry.evaluation.result import ALPHA, Comparison, CpuPair, Estimate, Failure, Latency, Outside, Pair
from ragistry.evaluation.result import TechniqueResult as Result
from ragistry.evaluation.selection import tune_on as selected
from ragistry.evaluation.statistics import (
    EXACT_GROUPS,
    ROUNDS,
    detectable_difference,
    effect_size,
    flip_tests,
    holm,
    mean_intervals,
    paired,
    smallest_p,
    wins_ties_losses,
)
from ragistry.evaluation.warnings import warnings

if TYPE_CHECKING:
    from ragistry.evaluation.systems.index import IndexCost

CUTOFF = 10
"""Results that count as shown when the main measure has no cutoff of its own."""

RANGE = (-1.0, 1.0)
"""Of the difference of two measures."""

Values = Mapping[str, Mapping[str, float]]
"""Name → query → value of one measure."""


def summarise(
    dataset: Dataset,
    answers: Mapping[str, Mapping[str, Answer]],
    measures: Sequence[Measure],
    *,
    configurations: Mapping[str, Mapping[str, Any]],
    provenance: Mapping[str, Any],
    depth: int,
    seed: int = 0,
    baseline: str | None = None,
    failures: Mapping[str, Failure] | None = None,
    indexes: Mapping[str, IndexCost] | None = None,
    collections: Mapping[str, Mapping[str, str]] | None = None,
    controls: Mapping[str, Run] | None = None,
    variants: Mapping[str, str] | None = None,
    tune_on: float | None = None,
) -> Comparison:
    """The comparison that the answers add up to.

    ``answers``: technique → query → answer, of every judged query, in the order of the report. ``collections``:
    technique → document → the collection that it is in, to tell what a route left out. ``controls``: name → run.
    ``variants``: name of a grid's column → the technique that it is a variant of. ``tune_on``: share of the queries on
    which the best variant is chosen. Raises `EvaluationError` for measures of spans without spans, and for a fraction
    that leaves no queries.
    """
    main, cutoff = str(measures[0]), measures[0].cutoff or CUTOFF
    runs = {name: {query: answer.ranking for query, answer in of.items()} for name, of in answers.items()}
    values = {name: _measured(measures, dataset, runs[name], _passages(of)) for name, of in answers.items()}
    queries = sorted(next(iter(values.values()))[main]) if values else []  # the order of files decides no figure
    groups = [dataset.groups.get(query, query) for query in queries]
    same = _same(answers, baseline, spans=bool(dataset.spans))
    names = _paired([name for name in answers if name not in same], baseline)
    by_measure = {str(one): {name: values[name][str(one)] for name in values} for one in measures}
    known = {document.id for document in dataset.corpus}
    estimates = _estimates(values, queries, groups, seed)
    control_values = _controls(measures, dataset, controls or {})
    statistics = {
        "test": "paired randomisation test by sign flips, two-sided",
        "rounds": None if len(set(groups)) <= EXACT_GROUPS else ROUNDS,
        "groups": len(set(groups)),
        "correction": "Holm",
        "family": "the pairs of one measure"
        + (f": each technique against the baseline {baseline!r}" if baseline else ": each against each"),
        "alpha": ALPHA,
        "interval": "95 %, by inversion of the test",
    }
    comparison = Comparison(
        name=dataset.name,
        measure=main,
        techniques={
            name: Result(
                configuration=configurations[name],
                measures=estimates[name],
                calls=sum(answer.calls for answer in of.values()),
                tokens=sum(answer.tokens for answer in of.values()),
                returned_tokens=float(np.mean([answer.returned_tokens for answer in of.values()])),
                latency_ms=_latency([answer.ms for answer in of.values()]),
                cpu_ms=_latency([answer.cpu_ms for answer in of.values()]),
                stages=_stages(list(of.values())),
                per_query={measure: dict(found) for measure, found in values[name].items()},
                by_kind=_by_kind(values[name], dataset.kinds),
                found=relevant_found(of, dataset, cutoff, depth, (collections or {}).get(name, {})),
                judged=_judged(dataset, runs[name], cutoff),
                degraded=_degraded(list(of.values())),
                outside=_outside(list(of.values()), known),
                same_as=same.get(name),
            )
            for name, of in answers.items()
        },
        pairs=[pair for measure, of in by_measure.items() for pair in pairs_of(names, measure, of, groups, seed=seed)],
        provenance={
            **provenance,
            "statistics": statistics,
            "rankings": {name: digest(run) for name, run in runs.items()},
        },
        baseline=baseline,
        failures=dict(failures or {}),
        controls={
            control: {measure: float(np.mean(list(found.values()))) for measure, found in of.items()}
            for control, of in control_values.items()
        },
        cpu_pairs=_cpu_pairs(answers, queries, groups, seed),
        diagnosis=diagnose(names, main, by_measure[main], answers, dataset),
        indexes=dict(indexes or {}),
        problems=dataset.problems,
        runs=runs,
    )
    return _completed(comparison, dataset, answers, control_values, groups, variants or {}, tune_on, seed)


def _completed(
    comparison: Comparison,
    dataset: Dataset,
    answers: Mapping[str, Mapping[str, Answer]],
    controls: Mapping[str, Values],
    groups: Sequence[str],
    variants: Mapping[str, str],
    tune_on: float | None,
    seed: int,
) -> Comparison:
    """Add what depends on the winner, then the warnings, which depend on everything."""
    main = comparison.measure
    values = {name: result.per_query[main] for name, result in comparison.techniques.items()}
    against = values | {f"{control} (control)": of[main] for control, of in controls.items()}
    keys = [(name, control) for control in controls for name in values]
    names = [(name, f"{control} (control)") for name, control in keys]
    tested = dict(zip(keys, pairs_of(names, main, against, groups, seed=seed, corrected=False), strict=True))
    best = comparison.winner or next(iter(comparison.by_quality), None)
    selection = None
    if tune_on is not None and values:
        candidates = {name: of for name, of in values.items() if not variants or name in variants}
        start = comparison.baseline if comparison.baseline in values else next(iter(candidates))
        selection = selected(tune_on, {start: values[start]} | candidates, start, main, dataset.groups, seed=seed)
    found = replace(
        comparison, control_pairs=[tested[best, control] for control in controls] if best else [], selection=selection
    )
    return replace(found, warnings=warnings(found, dataset, answers, tested, variants))


def pairs_of(
    names: Sequence[tuple[str, str]],
    measure: str,
    values: Values,
    groups: Sequence[str],
    *,
    seed: int = 0,
    corrected: bool = True,
) -> list[Pair]:
    """Test each pair on one measure. ``groups``: of the queries in sorted order. ``corrected``: as one family."""
    family = len(names) if corrected else 1
    columns = {name: [values[name][query] for query in sorted(values[name])] for pair in names for name in pair}
    rows = [paired(columns[a], columns[b]).tolist() for a, b in names]
    tested = [
        (test.p(), test.interval(ALPHA, RANGE), test.interval(ALPHA / family, RANGE))
        for test in flip_tests(rows, groups, seed=seed)
    ]
    ps = [p for p, _, _ in tested]
    clusters = len(set(groups))
    found = []
    for (a, b), row, (p, (low, high), wide), p_holm in zip(
        names, rows, tested, holm(ps) if corrected else ps, strict=True
    ):
        difference, significant = float(np.mean(row)), p_holm < ALPHA
        family_low, family_high = _one_side(wide, difference) if significant else wide
        wins, ties, losses = wins_ties_losses(columns[a], columns[b])
        found.append(
            Pair(
                a=a,
                b=b,
                measure=measure,
                difference=difference,
                low=low,
                high=high,
                family_low=family_low,
                family_high=family_high,
                p=p,
                p_holm=p_holm,
                wins=wins,
                ties=ties,
                losses=losses,
                significant=significant,
                effect_size=effect_size(columns[a], columns[b]),
                detectable=detectable_difference(row, groups, alpha=ALPHA / family),
                smallest_p=smallest_p(clusters, family),
                clusters=clusters,
            )
        )
    return found


def digest(run: Run) -> str:
    """By which to tell whether two comparisons ranked alike."""
    return sha256(json.dumps(run, sort_keys=True).encode()).hexdigest()


def _one_side(interval: tuple[float, float], difference: float) -> tuple[float, float]:
    """Holm rejects more than equal shares of alpha; the interval of what it rejects ends at 0 (Guilbaud 2008)."""
    low, high = interval
    return (max(low, 0.0), high) if difference > 0 else (low, min(high, 0.0))


def _measured(
    measures: Sequence[Measure], dataset: Dataset, run: Run, passages: Mapping[str, Sequence[Passage]]
) -> dict[str, dict[str, float]]:
    """Of passages where the test set has spans, else of documents."""
    if dataset.spans:
        return per_query_of_passages(measures, dataset.spans, passages)
    if any(measure.on_spans for measure in measures):
        raise EvaluationError("SR@k and SP@k measure spans, and the test set has none; add spans to queries.jsonl")
    return per_query(measures, dataset.qrels, run)


def _passages(answers: Mapping[str, Answer]) -> dict[str, Sequence[Passage]]:
    return {query: [(id, start, end) for id, start, end in answer.passages] for query, answer in answers.items()}


def _controls(
    measures: Sequence[Measure], dataset: Dataset, controls: Mapping[str, Run]
) -> dict[str, dict[str, dict[str, float]]]:
    """A control ranks documents; where passages are measured, each document is one."""
    lengths = {document.id: len(document.whole) for document in dataset.corpus}
    return {
        name: _measured(
            measures, dataset, run, {query: [(id, 0, lengths[id]) for id, _ in hits] for query, hits in run.items()}
        )
        for name, run in controls.items()
    }


def _same(answers: Mapping[str, Mapping[str, Answer]], baseline: str | None, *, spans: bool) -> dict[str, str]:
    """Technique → an earlier one with the same rankings on every query; the baseline counts as the first."""
    seen: dict[str, str] = {}
    same = {}
    for name in sorted(answers, key=lambda name: name != baseline):
        rankings = [
            [query, [id for id, _ in answer.ranking], list(answer.passages) if spans else []]
            for query, answer in sorted(answers[name].items())
        ]
        first = seen.setdefault(json.dumps(rankings), name)
        if first != name:
            same[name] = first
    return same


def _paired(names: Sequence[str], baseline: str | None) -> list[tuple[str, str]]:
    if baseline is None:
        return list(combinations(names, 2))
    return [(name, baseline) for name in names if name != baseline and baseline in names]


def _estimates(
    values: Mapping[str, Values], queries: Sequence[str], groups: Sequence[str], seed: int
) -> dict[str, dict[str, Estimate]]:
    cells = [(name, measure) for name, of in values.items() for measure in of]
    rows = [[values[name][measure][query] for query in queries] for name, measure in cells]
    found: dict[str, dict[str, Estimate]] = {name: {} for name in values}
    for (name, measure), row, ends in zip(cells, rows, mean_intervals(rows, groups, seed=seed), strict=True):
        found[name][measure] = Estimate(sum(row) / len(row), *ends)
    return found


def _cpu_pairs(
    answers: Mapping[str, Mapping[str, Answer]], queries: Sequence[str], groups: Sequence[str], seed: int
) -> list[CpuPair]:
    """Each technique against the one that takes the least CPU time."""
    if len(answers) < 2:
        return []
    times = {name: np.array([of[query].cpu_ms for query in queries]) for name, of in answers.items()}
    fastest = min(times, key=lambda name: float(times[name].mean()))
    others = [name for name in times if name != fastest]
    rows = [(times[name] - times[fastest]).tolist() for name in others]
    found = []
    for name, row, test in zip(others, rows, flip_tests(rows, groups, seed=seed), strict=True):
        low, high = test.interval()
        ends = (low, high) if np.isfinite([low, high]).all() else (None, None)
        found.append(CpuPair(name, fastest, float(np.mean(row)), *ends))
    return found


def _latency(ms: Sequence[float]) -> Latency:
    p50, p95 = np.percentile(ms, [50, 95])
    return Latency(float(p50), float(p95), float(np.mean(ms)))


def _stages(answers: Sequence[Answer]) -> dict[str, float]:
    """Mean milliseconds of each stage over all queries, in the order in which stages began."""
    names = dict.fromkeys(name for answer in answers for name in answer.stages)
    return {name: sum(answer.stages.get(name, 0.0) for answer in answers) / len(answers) for name in names}


def _by_kind(values: Values, kinds: Mapping[str, str]) -> dict[str, dict[str, float]]:
    """Kind → measure → mean, and the number of queries."""
    members: dict[str, list[str]] = {}
    for query in next(iter(values.values())):
        if query in kinds:
            members.setdefault(kinds[query], []).append(query)
    return {
        kind: {measure: sum(found[query] for query in queries) / len(queries) for measure, found in values.items()}
        | {"queries": len(queries)}
        for kind, queries in members.items()
    }


def _judged(dataset: Dataset, run: Run, cutoff: int) -> float | None:
    if dataset.positives_only:
        return None
    [judged] = per_query([Measure("Judged", cutoff)], dataset.qrels, run).values()
    return sum(judged.values()) / len(judged)


def _degraded(answers: Sequence[Answer]) -> dict[str, int]:
    """Message → number of queries."""
    return dict(Counter(message for answer in answers for message in dict.fromkeys(answer.degraded)))


def _outside(answers: Sequence[Answer], known: Container[str]) -> Outside | None:
    results = [document for answer in answers for document, _ in answer.ranking]
    strangers = [document for document in results if document not in known]
    return Outside(len(set(strangers)), len(strangers), len(results), min(strangers)) if strangers else None
