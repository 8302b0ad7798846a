"""Summarise rankings as a comparison: measures, tests, cost and diagnosis."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

import numpy as np

from ragistry.errors import EvaluationError
from ragistry.evaluation import statistics
from ragistry.evaluation.asking import Asking, QueryRanking
from ragistry.evaluation.data.checks import check_queries
from ragistry.evaluation.data.dataset import ASKED, Dataset, Run
from ragistry.evaluation.figures import (
    ALPHA,
    Estimate,
    Latency,
    Pair,
    RelevantFound,
    TechniqueResult,
)
from ragistry.evaluation.measures import Measure, Passage, per_query, per_query_of_passages
from ragistry.evaluation.result import MARGIN, Comparison
from ragistry.evaluation.warnings import notes, warnings

CUTOFF = 10
"""Number of results that count as shown if the main measure has no cutoff."""

RANGE = (-1.0, 1.0)
"""Range of the difference of two measures."""

Values = Mapping[str, Mapping[str, float]]
"""Name → query → value of one measure."""


@dataclass(frozen=True, slots=True)
class Design:
    """What a comparison decides and how, fixed before a query is asked.

    Attributes:
        measures: The measures; the first decides the verdict.
        baseline: The technique that each other one is tested against; None: the first one.
        margin: The baseline is kept if no other technique can be better by as much.
        tune_on: Share of the queries on which the best variant is chosen.
        variants: Name of a column of the grid → the technique that it varies.
        embedders: A technique with each embedder.
    """

    measures: Sequence[Measure]
    baseline: str | None = None
    margin: float = MARGIN
    tune_on: float | None = None
    variants: Mapping[str, str] = field(default_factory=dict)
    embedders: Sequence[str] = ()


def summarise(
    asking: Asking, design: Design, provenance: Mapping[str, Any], controls: Mapping[str, Run] | None = None
) -> Comparison:
    """Compute a comparison from rankings.

    Args:
        asking: The test set, the rankings of every judged query in the order of the report, and what failed.
        design: What is decided.
        provenance: What the report says about the origin of the figures.
        controls: Name → run of a control.

    Raises:
        EvaluationError: A measure needs spans and the test set has none, or the fraction leaves no queries.
    """
    dataset, rankings, seed = asking.dataset, asking.rankings, asking.seed
    if hidden := {query: query for query, kind in dataset.kinds.items() if kind == ASKED}:  # their ids for their texts
        dataset = replace(dataset, queries={**dataset.queries, **hidden})
    measures, baseline = design.measures, design.baseline
    if not dataset.spans and any(measure.on_spans for measure in measures):
        raise EvaluationError("SR@k and SP@k need spans, and the test set has none; add them to queries.jsonl")
    main, cutoff = str(measures[0]), measures[0].cutoff or CUTOFF
    runs = {name: {query: ranking.documents for query, ranking in of.items()} for name, of in rankings.items()}
    values: dict[str, dict[str, dict[str, float]]] = {}
    for name, of in rankings.items():  # of passages if the test set has spans, else of documents
        if dataset.spans:
            passages: dict[str, Sequence[Passage]] = {query: ranking.passages for query, ranking in of.items()}
            values[name] = per_query_of_passages(measures, dataset.spans, passages)
            continue
        values[name] = {}
        for measure in measures:
            shown = {query: one.shallow.get(str(measure.cutoff), one.documents) for query, one in of.items()}
            values[name] |= per_query([measure], dataset.qrels, shown)
    main_values = {name: of[main] for name, of in values.items()}
    queries = sorted(next(iter(main_values.values()), {}))  # The order of files must not change a figure.
    groups = [dataset.groups.get(query, query) for query in queries]
    cells = [(name, measure) for name, of in values.items() for measure in of]
    rows = [[values[name][measure][query] for query in queries] for name, measure in cells]
    estimates: dict[str, dict[str, Estimate]] = {name: {} for name in values}
    for (name, cell), row, ends in zip(cells, rows, statistics.mean_intervals(rows, groups, seed=seed), strict=True):
        estimates[name][cell] = Estimate(sum(row) / len(row), *ends)
    baseline = next(iter(rankings), None) if baseline is None else baseline
    same = _same(rankings, baseline, spans=bool(dataset.spans))
    names = [name for name in rankings if name not in same]
    pairs = [(name, baseline) for name in names if name != baseline and baseline in names]
    control_values = {
        f"{control} (control)": per_query(measures, dataset.qrels, run) for control, run in (controls or {}).items()
    }
    selection = None
    if design.tune_on is not None and values:
        candidates = {name: of for name, of in main_values.items() if not design.variants or name in design.variants}
        start = baseline if baseline in main_values else next(iter(candidates))
        tried = {start: main_values[start]} | candidates
        selection = statistics.tune_on(design.tune_on, tried, start, main, dataset.groups, seed=seed)
    tested = [
        pair
        for measure in map(str, measures)
        for pair in pairs_of(pairs, measure, {name: values[name][measure] for name in values}, groups, seed=seed)
    ]
    by_model = sorted((name for name in design.embedders if name in main_values), key=lambda name: name != baseline)
    between = [(name, by_model[0]) for name in by_model[1:]]
    embedder_pairs = [pair for pair in tested if pair.measure == main and (pair.a, pair.b) in between]
    comparison = Comparison(
        name=dataset.name,
        measure=main,
        techniques={
            name: TechniqueResult(
                measures=estimates[name],
                latency_ms=_latency([ranking.ms for ranking in of.values()]),
                cpu_ms=_latency([ranking.cpu_ms for ranking in of.values()]),
                calls=sum(ranking.calls for ranking in of.values()),
                tokens=sum(ranking.tokens for ranking in of.values()),
                returned_tokens=float(np.mean([ranking.returned_tokens for ranking in of.values()])),
                stages={
                    stage: sum(ranking.stages.get(stage, 0.0) for ranking in of.values()) / len(of)
                    for stage in dict.fromkeys(stage for ranking in of.values() for stage in ranking.stages)
                },
                per_query=values[name],
                by_kind=_by_kind(values[name], dataset.kinds),
                found=relevant_found(of, dataset, cutoff, asking.depth, asking.collections.get(name, {})),
                judged=None if dataset.positives_only else _judged(dataset, runs[name], cutoff),
                degraded=dict(Counter(message for ranking in of.values() for message in {*ranking.degraded})),
                same_as=same.get(name),
                timed=name not in asking.untimed,
            )
            for name, of in rankings.items()
        },
        pairs=tested,
        embedder_pairs=embedder_pairs or pairs_of(between, main, main_values, groups, seed=seed),
        provenance={
            **provenance,
            "statistics": {
                "test": "paired randomisation test by sign flips, two-sided",
                "rounds": None if len(set(groups)) <= statistics.EXACT_GROUPS else statistics.ROUNDS,
                "groups": len(set(groups)),
                "correction": "Holm",
                "family": f"the pairs of one measure: each technique against the baseline {baseline!r}",
                "alpha": ALPHA,
                "interval": "95 %, by inversion of the test",
            },
            "rankings": {
                name: sha256(json.dumps(run, sort_keys=True).encode()).hexdigest() for name, run in runs.items()
            },
        },
        baseline=baseline,
        margin=design.margin,
        failures=dict(asking.failures),
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
        diagnosis=diagnose(pairs, main, main_values, rankings, dataset),
        indexes=dict(asking.indexes),
        problems=[*dataset.problems, *check_queries(asking.dataset, dataset.queries)],
        selection=selection,
        runs=runs,
    )
    return replace(
        comparison,
        warnings=[*warnings(comparison, dataset, rankings, design.variants)],
        notes=[*notes(comparison, dataset, rankings)],
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
    """Test pairs on one measure.

    Args:
        names: The pairs.
        measure: The measure.
        values: Technique → query → value.
        groups: Groups of the queries in sorted order.
        seed: Seed of the tests.
        corrected: Correct the p-values over all pairs.
    """
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
                detectable=statistics.detectable_difference(row, groups, alpha=ALPHA / family),
                smallest_p=statistics.smallest_p(clusters, family),
                clusters=clusters,
            )
        )
    return found


def _same(rankings: Mapping[str, Mapping[str, QueryRanking]], baseline: str | None, *, spans: bool) -> dict[str, str]:
    """Return technique → an earlier one with the same rankings on every query; the baseline counts as the first."""
    shown = {
        name: {
            query: ([id for id, _ in ranking.documents], ranking.passages if spans else [])
            for query, ranking in of.items()
        }
        for name, of in rankings.items()
    }
    distinct: list[str] = []
    same = {}
    for name in sorted(rankings, key=lambda name: name != baseline):
        first = next((other for other in distinct if shown[other] == shown[name]), None)
        if first is None:
            distinct.append(name)
        else:
            same[name] = first
    return same


def _latency(ms: Sequence[float]) -> Latency:
    p50, p95 = np.percentile(ms, [50, 95])
    return Latency(float(p50), float(p95), float(np.mean(ms)))


def _by_kind(values: Values, kinds: Mapping[str, str]) -> dict[str, dict[str, float]]:
    """Return kind → measure → mean, and the number of queries."""
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


# --- The queries with the largest differences, and where relevant documents ended up, as plain values ---


SHOWN = 5
"""Number of documents shown of each ranking."""
EXAMPLES = 5
"""Number of queries shown for each side of a pair, and of examples of each kind of failure."""


def relevant_found(
    rankings: Mapping[str, QueryRanking], dataset: Dataset, cutoff: int, depth: int, collections: Mapping[str, str]
) -> RelevantFound:
    """Count where the relevant documents of all queries ended up.

    Args:
        rankings: Query → ranking of one technique.
        dataset: The test set.
        cutoff: Number of results that count as shown.
        depth: Number of documents of a ranking.
        collections: Document → the collection that contains it.
    """
    counts, examples = Counter[str](), dict[str, list[dict[str, Any]]]()
    for query in dataset.judged:
        ranking = rankings[query]
        ranks = {id: rank for rank, (id, _) in enumerate(ranking.documents, 1)}
        for document in (id for id, grade in dataset.qrels[query].items() if grade > 0):
            rank, collection = ranks.get(document), collections.get(document)
            if rank is not None:
                status = "shown" if rank <= cutoff else "low"
            else:
                left_out = any(collection not in names for names in _chosen(ranking.route))
                status = "routed_away" if collection is not None and left_out else "never"
            counts[status] += 1
            if status != "shown" and len(examples.setdefault(status, [])) < EXAMPLES:
                examples[status].append({"query": query, "document": document, "rank": rank})
    shown, low, never, routed_away = (counts[status] for status in ("shown", "low", "never", "routed_away"))
    return RelevantFound(cutoff, depth, shown, low, never, routed_away, examples)


def diagnose(
    pairs: Iterable[tuple[str, str]],
    measure: str,
    values: Mapping[str, Mapping[str, float]],
    rankings: Mapping[str, Mapping[str, QueryRanking]],
    dataset: Dataset,
) -> list[dict[str, Any]]:
    """Find the queries of each pair with the largest differences: first those for a, then those for b.

    Args:
        pairs: Pairs of techniques.
        measure: The measure.
        values: Technique → query → value of the measure.
        rankings: Technique → query → ranking.
        dataset: The test set.

    Returns:
        Pairs ``{a, b, measure, queries}``. A query is ``{query, text, difference, a, b, why}``, a side of it
        ``{technique, value, best, relevant, route}``, where ``best`` and ``relevant`` list ``{rank, document, title,
        grade, scores}``. A grade of None means not judged; ``scores`` are by stage.
    """
    titles = {document.id: document.title or document.text[:80] for document in dataset.corpus}

    def side(name: str, query: str) -> dict[str, Any]:
        ranking, grades = rankings[name][query], dataset.qrels[query]
        rows = [
            {"rank": rank, "document": id, "title": titles.get(id, ""), "grade": grades.get(id), "scores": scores}
            for rank, (id, _) in enumerate(ranking.documents, 1)
            for scores in [ranking.scores.get(id, {})]
        ]
        relevant = [row for row in rows if grades.get(str(row["document"]), 0) > 0]
        value = values[name][query]
        return {"technique": name, "value": value, "best": rows[:SHOWN], "relevant": relevant, "route": ranking.route}

    def differing(query: str, a: str, b: str) -> dict[str, Any]:
        one, other = side(a, query), side(b, query)
        row = {"query": query, "text": dataset.queries[query], "difference": one["value"] - other["value"]}
        return {**row, "a": one, "b": other, "why": f"{_why(one)}; {_why(other)}"}

    found = []
    for a, b in pairs:
        differences = {query: values[a][query] - values[b][query] for query in values[a]}
        ordered = sorted(differences, key=lambda query: (-abs(differences[query]), query))
        queries = [
            *[query for query in ordered if differences[query] > 0][:EXAMPLES],
            *[query for query in ordered if differences[query] < 0][:EXAMPLES],
        ]
        found.append({"a": a, "b": b, "measure": measure, "queries": [differing(query, a, b) for query in queries]})
    return found


def _why(side: Mapping[str, Any]) -> str:
    """Describe the ranks of the relevant documents, the stages that scored them, and the collections searched."""
    text = f"{side['technique']} did not retrieve any relevant document"
    if side["relevant"]:
        best, more = side["relevant"][0], len(side["relevant"]) - 1
        scores = ", ".join(f"{stage} {value:.3g}" for stage, value in best["scores"].items())
        text = f"{side['technique']} has {best['document']} at rank {best['rank']}"
        text += (f" ({scores})" if scores else "") + (f" and {more} more" if more else "")
    searched = ", ".join(name for chosen in _chosen(side["route"]) for name in chosen)
    return text + (f", searching {searched}" if searched else "")


def _chosen(route: Iterable[Mapping[str, Any]]) -> list[list[str]]:
    """Return the collections that each step of a route chose."""
    return [list(map(str, step["chosen"])) for step in route if isinstance(step.get("chosen"), list)]
