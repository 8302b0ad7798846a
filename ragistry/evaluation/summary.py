"""From answers to a comparison: measures, pairs, cost and diagnosis put together."""

from __future__ import annotations

import json
from collections.abc import Container, Mapping, Sequence
from hashlib import sha256
from itertools import combinations
from typing import Any

from ragistry.evaluation.answers import Answer, run_of
from ragistry.evaluation.asking import Asking
from ragistry.evaluation.contenders import Contender
from ragistry.evaluation.dataset import Run
from ragistry.evaluation.diagnosis import diagnose, relevant_found
from ragistry.evaluation.figures import Test, latency, mean_stages, pairs_of
from ragistry.evaluation.measures import Measure, per_query
from ragistry.evaluation.result import Comparison, Estimate, Outside, TechniqueResult
from ragistry.evaluation.running import Outcome
from ragistry.evaluation.statistics import bootstrap_interval

CUTOFF = 10
"""Documents that count as shown, where the main measure has no cutoff of its own."""


def summarised(
    contenders: Sequence[Contender],
    asking: Asking,
    outcome: Outcome,
    measures: Sequence[Measure],
    baseline: str | None,
    test: Test,
    record: dict[str, Any],
) -> Comparison:
    """The comparison that the answers add up to. ``record``: its provenance."""
    dataset, main = asking.dataset, str(measures[0])
    runs = {name: run_of(answers.values()) for name, answers in outcome.answers.items()}
    values = {name: per_query(measures, dataset.qrels, run) for name, run in runs.items()}
    names = _paired(list(runs), baseline)
    indexes = {
        contender.configuration["chunking"]: contender.index.cost
        for contender in contenders
        if contender.index is not None
    }
    pairs = [
        pair
        for measure in map(str, measures)
        for pair in pairs_of(names, measure, {n: v[measure] for n, v in values.items()}, test=test, seed=asking.seed)
    ]
    return Comparison(
        name=dataset.name,
        measure=main,
        techniques={
            contender.name: _technique(
                contender, outcome.answers[contender.name], values[contender.name], asking, measures[0]
            )
            for contender in contenders
            if contender.name in runs
        },
        pairs=pairs,
        provenance={**record, "rankings": {name: digest(run) for name, run in runs.items()}},
        baseline=baseline,
        failures=outcome.failures,
        diagnosis=[
            diagnose(a, b, main, {name: v[main] for name, v in values.items()}, outcome.answers, dataset)
            for a, b in names
        ],
        indexes=indexes,
        problems=dataset.problems,
        runs=runs,
    )


def digest(run: Run) -> str:
    """By which to tell whether two comparisons ranked alike."""
    return sha256(json.dumps(run, sort_keys=True).encode()).hexdigest()


def _paired(names: Sequence[str], baseline: str | None) -> list[tuple[str, str]]:
    if baseline is None:
        return list(combinations(names, 2))
    return [(name, baseline) for name in names if name != baseline and baseline in names]


def _technique(
    contender: Contender,
    answers: Mapping[str, Answer],
    values: Mapping[str, Mapping[str, float]],
    asking: Asking,
    main: Measure,
) -> TechniqueResult:
    all_answers = list(answers.values())
    reasons = [reason for answer in all_answers for reason in dict.fromkeys(answer.degraded)]
    cutoff = main.cutoff or CUTOFF
    [judged] = per_query([Measure("Judged", cutoff)], asking.dataset.qrels, run_of(all_answers)).values()
    collections = contender.index.collection_of if contender.index else {}
    return TechniqueResult(
        configuration=contender.configuration,
        measures={measure: _estimate(found, asking.seed) for measure, found in values.items()},
        latency_ms=latency(all_answers),
        calls=sum(answer.calls for answer in all_answers),
        tokens=sum(answer.tokens for answer in all_answers),
        stages=mean_stages(all_answers),
        per_query={measure: dict(found) for measure, found in values.items()},
        found=relevant_found(answers, asking.dataset, cutoff, asking.depth, collections),
        judged=sum(judged.values()) / len(judged),
        degraded={reason: reasons.count(reason) for reason in dict.fromkeys(reasons)},
        outside=_outside(all_answers, asking.known),
    )


def _outside(answers: Sequence[Answer], known: Container[str]) -> Outside | None:
    results = [document for answer in answers for document, _ in answer.ranking]
    strangers = [document for document in results if document not in known]
    return Outside(len(set(strangers)), len(strangers), len(results), min(strangers)) if strangers else None


def _estimate(found: Mapping[str, float], seed: int) -> Estimate:
    values = [found[query] for query in sorted(found)]  # the order of the files must not decide what is drawn
    return Estimate(sum(values) / len(values), *bootstrap_interval(values, seed=seed))
