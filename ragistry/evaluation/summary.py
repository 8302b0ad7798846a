"""From answers to a comparison: measures, tests, cost and diagnosis."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from ragistry.errors import EvaluationError
from ragistry.evaluation import statistics
from ragistry.evaluation.answers import Answer
from ragistry.evaluation.data.dataset import Dataset, Run
from ragistry.evaluation.diagnosis import diagnose, relevant_found
from ragistry.evaluation.measures import Measure, Passage, per_query, per_query_of_passages
from ragistry.evaluation.result import ALPHA, Comparison, CpuPair, Estimate, Failure, Latency, Pair, TechniqueResult
from ragistry.evaluation.selection import tune_on as selected
from ragistry.evaluation.warnings import notes, warnings

if TYPE_CHECKING:
    from ragistry.evaluation.systems.index import IndexCost

CUTOFF = 10
"""Number of results that count as shown if the main measure has no cutoff."""

RANGE = (-1.0, 1.0)
"""Of the difference of two measures."""

Values = Mapping[str, Mapping[str, float]]
"""Name → query → value of one measure."""


def summarise(
    dataset: Dataset,
    answers: Mapping[str, Mapping[str, Answer]],
    measures: Sequence[Measure],
    *,
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
    """Compute the comparison from the answers.

    ``answers``: technique → query → answer, of every judged query, in the order of the report. ``collections``:
    technique → document → the collection that it is in, to tell what a route left out. ``controls``: name → run, of
    documents. ``variants``: name of a grid's column → the technique that it is a variant of. ``tune_on``: share of the
    queries on which the best variant is chosen. Raises `EvaluationError` for measures of spans without spans, and for a
    fraction that leaves no queries.
    """
    if not dataset.spans and any(measure.on_spans for measure in measures):
        raise EvaluationError("SR@k and SP@k measure spans, but the test set has no spans; add them to queries.jsonl")
    main, cutoff = str(measures[0]), measures[0].cutoff or CUTOFF
    runs = {name: {query: answer.ranking for query, answer in of.items()} for name, of in answers.items()}
    values = {name: _measured(measures, dataset, of) for name, of in answers.items()}
    main_values = {name: of[main] for name, of in values.items()}
    queries = sorted(next(iter(main_values.values()), {}))  # the order of files decides no figure
    groups = [dataset.groups.get(query, query) for query in queries]
    estimates = _estimates(values, queries, groups, seed)
    same = _same(answers, baseline, spans=bool(dataset.spans))
    names = [name for name in answers if name not in same]
    if baseline is None:
        pairs = list(combinations(names, 2))
    else:
        pairs = [(name, baseline) for name in names if name != baseline and baseline in names]
    control_values = {
        f"{control} (control)": per_query(measures, dataset.qrels, run) for control, run in (controls or {}).items()
    }
    selection = None
    if tune_on is not None and values:
        candidates = {name: of for name, of in main_values.items() if not variants or name in variants}
        start = baseline if baseline in main_values else next(iter(candidates))
        tried = {start: main_values[start]} | candidates
        selection = selected(tune_on, tried, start, main, dataset.groups, seed=seed)
    comparison = Comparison(
        name=dataset.name,
        measure=main,
        techniques={
            name: TechniqueResult(
                measures=estimates[name],
                latency_ms=_latency([answer.ms for answer in of.values()]),
                cpu_ms=_latency([answer.cpu_ms for answer in of.values()]),
                calls=sum(answer.calls for answer in of.values()),
                tokens=sum(answer.tokens for answer in of.values()),
                returned_tokens=float(np.mean([answer.returned_tokens for answer in of.values()])),
                stages=_stages(list(of.values())),
                per_query=values[name],
                by_kind=_by_kind(values[name], dataset.kinds),
                found=relevant_found(of, dataset, cutoff, depth, (collections or {}).get(name, {})),
                judged=None if dataset.positives_only else _judged(dataset, runs[name], cutoff),
                degraded=dict(Counter(message for answer in of.values() for message in {*answer.degraded})),
                same_as=same.get(name),
            )
            for name, of in answers.items()
        },
        pairs=[
            pair
            for measure in map(str, measures)
            for pair in pairs_of(pairs, measure, {name: values[name][measure] for name in values}, groups, seed=seed)
        ],
        provenance={
            **provenance,
            "statistics": {
                "test": "paired randomisation test by sign flips, two-sided",
                "rounds": None if len(set(groups)) <= statistics.EXACT_GROUPS else statistics.ROUNDS,
                "groups": len(set(groups)),
                "correction": "Holm",
                "family": "the pairs of one measure: "
                + (f"each technique against the baseline {baseline!r}" if baseline else "each against each"),
                "alpha": ALPHA,
                "interval": "95 %, by inversion of the test",
            },
            "rankings": {
                name: sha256(json.dumps(run, sort_keys=True).encode()).hexdigest() for name, run in runs.items()
            },
        },
        baseline=baseline,
        failures=dict(failures or {}),
        controls={
            control.removesuffix(" (control)"): {
                measure: float(np.mean(list(found.values()))) for measure, found in of.items()
            }
            for control, of in control_values.items()
        },
        control_pairs=pairs_of(
            [(name, control) for control in control_values for name in main_values],
            main,
            main_values | {control: of[main] for control, of in control_values.items()},
            groups,
            seed=seed,
            corrected=False,
        ),
        cpu_pairs=_cpu_pairs(answers, queries, groups, seed),
        diagnosis=diagnose(pairs, main, main_values, answers, dataset),
        indexes=dict(indexes or {}),
        problems=dataset.problems,
        selection=selection,
        runs=runs,
    )
    return replace(
        comparison,
        warnings=warnings(comparison, dataset, answers, variants or {}),
        notes=notes(comparison, dataset, answers),
    )


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
    family, clusters = len(names) if corrected else 1, len(set(groups))
    columns = {name: [values[name][query] for query in sorted(values[name])] for pair in names for name in pair}
    rows = [statistics.paired(columns[a], columns[b]).tolist() for a, b in names]
    tested = [
        (test.p(), test.interval(ALPHA, RANGE), test.interval(ALPHA / family, RANGE))
        for test in statistics.flip_tests(rows, groups, seed=seed)
    ]
    ps = [p for p, _, _ in tested]
    found = []
    for (a, b), row, (p, (low, high), (family_low, family_high)), p_holm in zip(
        names, rows, tested, statistics.holm(ps) if corrected else ps, strict=True
    ):
        difference = float(np.mean(row))
        if p_holm < ALPHA:
            # Holm rejects more than equal shares of alpha; the interval of what it rejects ends at 0 (Guilbaud 2008).
            family_low, family_high = (
                (max(family_low, 0.0), family_high) if difference > 0 else (family_low, min(family_high, 0.0))
            )
        wins, ties, losses = statistics.wins_ties_losses(columns[a], columns[b])
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
                significant=p_holm < ALPHA,
                effect_size=statistics.effect_size(columns[a], columns[b]),
                detectable=statistics.detectable_difference(row, groups, alpha=ALPHA / family),
                smallest_p=statistics.smallest_p(clusters, family),
                clusters=clusters,
            )
        )
    return found


def _measured(
    measures: Sequence[Measure], dataset: Dataset, answers: Mapping[str, Answer]
) -> dict[str, dict[str, float]]:
    """Measure → query → value; of passages where the test set has spans, else of documents."""
    if dataset.spans:
        passages: dict[str, Sequence[Passage]] = {query: answer.passages for query, answer in answers.items()}
        return per_query_of_passages(measures, dataset.spans, passages)
    return per_query(measures, dataset.qrels, {query: answer.ranking for query, answer in answers.items()})


def _same(answers: Mapping[str, Mapping[str, Answer]], baseline: str | None, *, spans: bool) -> dict[str, str]:
    """Technique → an earlier one with the same rankings on every query; the baseline counts as the first."""
    shown = {
        name: {
            query: ([id for id, _ in answer.ranking], answer.passages if spans else []) for query, answer in of.items()
        }
        for name, of in answers.items()
    }
    distinct: list[str] = []
    same = {}
    for name in sorted(answers, key=lambda name: name != baseline):
        first = next((other for other in distinct if shown[other] == shown[name]), None)
        if first is None:
            distinct.append(name)
        else:
            same[name] = first
    return same


def _estimates(
    values: Mapping[str, Values], queries: Sequence[str], groups: Sequence[str], seed: int
) -> dict[str, dict[str, Estimate]]:
    cells = [(name, measure) for name, of in values.items() for measure in of]
    rows = [[values[name][measure][query] for query in queries] for name, measure in cells]
    found: dict[str, dict[str, Estimate]] = {name: {} for name in values}
    for (name, measure), row, ends in zip(cells, rows, statistics.mean_intervals(rows, groups, seed=seed), strict=True):
        found[name][measure] = Estimate(sum(row) / len(row), *ends)
    return found


def _cpu_pairs(
    answers: Mapping[str, Mapping[str, Answer]], queries: Sequence[str], groups: Sequence[str], seed: int
) -> list[CpuPair]:
    """Each technique against the one that takes the least CPU time."""
    times = {name: np.array([of[query].cpu_ms for query in queries]) for name, of in answers.items()}
    fastest = min(times, key=lambda name: float(times[name].mean()), default="")
    others = [name for name in times if name != fastest]
    rows = [(times[name] - times[fastest]).tolist() for name in others]
    found = []
    for name, row, test in zip(others, rows, statistics.flip_tests(rows, groups, seed=seed), strict=True):
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


def _judged(dataset: Dataset, run: Run, cutoff: int) -> float:
    [judged] = per_query([Measure("Judged", cutoff)], dataset.qrels, run).values()
    return sum(judged.values()) / len(judged)
