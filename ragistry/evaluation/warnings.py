"""What may make the verdict of a comparison wrong, one sentence each, the gravest first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ragistry.evaluation.result import ALPHA, Comparison, Pair, listed
from ragistry.utils.wording import numbered

if TYPE_CHECKING:
    from ragistry.evaluation.answers import Answer
    from ragistry.evaluation.data.dataset import Dataset

CONTROLS = {
    "filename": "the words of file names alone",
    "title_only": "the words of titles alone",
    "random": "chance alone",
}
"""Control → what it ranks by."""


def warnings(
    comparison: Comparison,
    dataset: Dataset,
    answers: Mapping[str, Mapping[str, Answer]],
    tested: Mapping[tuple[str, str], Pair],
    variants: Mapping[str, str],
) -> list[str]:
    """``tested``: each technique against each control. ``variants``: column of a grid → its technique."""
    return [
        *_controls(comparison, tested),
        *_few(comparison),
        *_groups(comparison, dataset),
        *_same(comparison),
        *_variants(comparison, variants),
        *_passages(dataset, answers),
        *_timing(comparison, answers),
        *_positives(dataset),
    ]


def _controls(comparison: Comparison, tested: Mapping[tuple[str, str], Pair]) -> Iterator[str]:
    for pair in comparison.control_pairs:
        control = pair.b.split()[0]
        mean = comparison.controls[control][comparison.measure]
        worse = [name for (name, other), one in tested.items() if other == control and _not_better(one)]
        if _not_better(pair):
            yield (
                f"{pair.a} is not significantly better than {CONTROLS.get(control, control)} ({control}: "
                f"{comparison.measure} {mean:.3f}, difference {pair.difference:+.3f}, p = {pair.p:.3f}), so "
                f"{_meaning(control)}."
            )
        elif control == "random" and worse:
            yield f"Not significantly better than {CONTROLS[control]} ({mean:.3f}): {listed(worse)}."


def _not_better(pair: Pair) -> bool:
    if not pair.testable:  # then nothing is significant, which has a sentence of its own
        return pair.difference <= 0
    return pair.p >= ALPHA or pair.difference <= 0


def _meaning(control: str) -> str:
    if control == "random":
        return "the figures show no retrieval at all"
    return "this test set may be answered from names, and its figures may say nothing about the texts"


def _few(comparison: Comparison) -> Iterator[str]:
    pairs = comparison.main_pairs
    if pairs and not pairs[0].testable:
        clusters = pairs[0].clusters
        unit = "[query|queries]" if clusters == pairs[0].queries else "[group|groups] of queries"
        yield (
            f"{numbered(clusters, unit)} and {numbered(len(pairs), '[pair|pairs]')}: no difference can be "
            f"significant, since the smallest possible p-value after Holm's correction is {pairs[0].smallest_p:.3f}."
        )


def _groups(comparison: Comparison, dataset: Dataset) -> Iterator[str]:
    """Queries of one group are not independent; the tests flip groups."""
    if not comparison.techniques:
        return
    values = next(iter(comparison.techniques.values())).per_query[comparison.measure]
    sizes = Counter(dataset.groups.get(query, query) for query in values)
    if len(sizes) < len(values):
        yield (
            f"The {len(values):,} queries come from {numbered(len(sizes), '[group|groups]')} (the largest has "
            f"{max(sizes.values()):,}), such as one document each: tests and intervals count groups, not queries."
        )


def _same(comparison: Comparison) -> Iterator[str]:
    twins: dict[str, list[str]] = {}
    for name, result in comparison.techniques.items():
        if result.same_as is not None:
            twins.setdefault(result.same_as, []).append(name)
    for name, others in twins.items():
        yield f"Same rankings as {name} on every query, so not tested: {listed(others)}."


def _variants(comparison: Comparison, variants: Mapping[str, str]) -> Iterator[str]:
    if comparison.selection is not None:
        return
    for technique, count in Counter(variants[name] for name in comparison.techniques if name in variants).items():
        if count < 2:
            continue
        tested = "" if comparison.baseline is None else " and are not tested against each other"
        yield (
            f"{count} variants of {technique} were measured on the same queries{tested}: the best of them looks "
            "better than it is. Choose on one part of the queries and report the other with --tune-on 0.5 (in Python, "
            "tune_on)."
        )


def _passages(dataset: Dataset, answers: Mapping[str, Mapping[str, Answer]]) -> Iterator[str]:
    if not dataset.spans:
        return
    without = [name for name, of in answers.items() if any(one.ranking and not one.passages for one in of.values())]
    if without:
        yield (
            f"Results without `start` and `end` in their metadata, which count as not relevant where answers are "
            f"spans: {listed(without)}."
        )
    left_out = len(dataset.judged.keys() - dataset.spans.keys())
    if left_out:
        yield f"{numbered(left_out, '[query has|queries have]')} judgements but no spans, and no measure counts them."


def _timing(comparison: Comparison, answers: Mapping[str, Mapping[str, Answer]]) -> Iterator[str]:
    machine = comparison.provenance.get("machine", {})
    load, processors = machine.get("load"), machine.get("processors")
    if load is not None and processors and load / processors > 1:
        yield (
            f"The machine was busy (load {load:.1f} on {numbered(processors, '[processor|processors]')}): wall times "
            "are too long; compare CPU times."
        )
    cached = [name for name, of in answers.items() if any(one.embedding_cached for one in of.values())]
    if cached:
        yield (
            "Vectors of queries came from the cache, and latency includes the time measured when they were computed: "
            f"{listed(cached)}."
        )


def _positives(dataset: Dataset) -> Iterator[str]:
    if dataset.positives_only:
        yield (
            "The judgements name only relevant documents, so the share of judged results is left out; a result "
            "without a judgement counts as not relevant."
        )
