"""Warnings and notes of a comparison, one or two sentences each.

Warnings are reasons why the verdict may be wrong; reports show them after the verdict. Notes help to read the figures;
reports show them below the tables.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ragistry.evaluation.data.testsets import AGREEMENT
from ragistry.evaluation.figures import ALPHA, names_text
from ragistry.evaluation.result import Comparison
from ragistry.utils.wording import agreeing, numbered

if TYPE_CHECKING:
    from ragistry.evaluation.asking import QueryRanking
    from ragistry.evaluation.data.dataset import Dataset

Rankings = Mapping[str, Mapping[str, "QueryRanking"]]
"""Technique → query → ranking."""
CONTROLS = {
    "filename": "the words of file names alone",
    "title_only": "the words of titles alone",
    "random": "chance alone",
}
"""Control → what it ranks by."""
CUT = 0.1
"""Share of chunks longer than the model's limit above which the report warns."""


def warnings(
    comparison: Comparison, dataset: Dataset, rankings: Rankings, variants: Mapping[str, str]
) -> Iterator[str]:
    """Yield reasons why the verdict may be wrong, the most serious first.

    Args:
        comparison: The comparison.
        dataset: The test set.
        rankings: Technique → query → ranking.
        variants: Column of a grid → the technique that it varies.
    """
    # What names alone or chance find is a property of the test set, whatever technique is the best.
    for control, means in comparison.controls.items():
        weak = [
            pair.a
            for pair in comparison.control_pairs  # with too few queries for significance, a higher mean suffices
            if pair.b == f"{control} (control)" and (pair.difference <= 0 or (pair.p >= ALPHA and pair.testable))
        ]
        if weak:
            what = f"{CONTROLS.get(control, control)} ({control}: {comparison.measure} {means[comparison.measure]:.3f})"
            text = f"Not significantly better than {what}: {names_text(weak)}."
            if control != "random":
                text += " Names may answer this test set, so its figures may say nothing about the retrieval of texts."
            yield text
    of_set = comparison.provenance["dataset"]
    if (made := of_set["synthetic"]) is not None:
        heading, judged = "Synthetic test set", of_set["judged_queries"]
        if made["queries"] < judged:
            heading = f"Partly synthetic test set ({made['queries']:,} of {judged:,} queries)"
        kinds = made["kinds"]
        shares = ", ".join(numbered(count, f"{kind}[|s]") for kind, count in kinds.items())
        by = ", ".join([f"model {name}" for name in made["models"]] + [f"seed {seed}" for seed in made["seeds"]])
        known = "It is not known how far such questions agree with people's."
        if (agreed := AGREEMENT.get(max(kinds, key=kinds.__getitem__, default=""))) is not None:
            pairs = "{} of {} decided pairs of techniques on {} test sets".format(*agreed)
            known = f"Such questions agreed with people's in {pairs}."
        yield f"{heading}: a program made the queries from the documents ({shares}{f'; {by}' if by else ''}). {known}"
    counts = Counter(variants[name] for name in comparison.techniques if name in variants)
    for technique, count in counts.items() if comparison.selection is None else ():
        tested = "" if comparison.baseline is None else " and are not tested against each other"
        if count > 1:
            yield (
                f"{count} variants of {technique} were measured on the same queries{tested}. The best of them looks "
                "better than it is: use --tune-on 0.5 (in Python, tune_on) to choose on one part of the queries and "
                "measure on the other."
            )
    without = [name for name, of in rankings.items() if any(one.documents and not one.passages for one in of.values())]
    if dataset.spans and without:
        yield (
            "Some results have no `start` and `end` in their metadata and count as not relevant, because answers are "
            f"spans: {names_text(without)}."
        )
    for cost in comparison.indexes.values():
        if cost.cut > CUT * cost.chunks:
            named = comparison.provenance.get("embedders", {})
            limit = (named.get(cost.embed_model) or comparison.provenance["embedder"])["max_tokens"]
            chunks = f"{numbered(cost.chunks, '[chunk|chunks]')} ({cost.name})"
            yield (
                f"{cost.cut:,} of {chunks} {agreeing(cost.cut, '[is|are]')} longer than the embedder's limit of "
                f"{limit:,} tokens: dense retrieval sees only the beginning, word matching sees all. A library cuts "
                "chunks to fit, so techniques may rank differently there; try a smaller --chunk-size (in Python, "
                "chunk_size)."
            )
    yield from _deep(comparison, [comparison.measure])
    reasons: dict[str, list[str]] = {}  # those that differ only in numbers are one
    degraded: dict[str, Counter[str]] = {}
    for name, result in comparison.techniques.items():
        for reason, count in result.degraded.items():
            kind = re.sub(r"\d[\d.,]*", "#", reason)
            reasons.setdefault(kind, []).append(reason)
            degraded.setdefault(kind, Counter())[name] += count
    for kind, by_name in degraded.items():
        example = "for example, " if len(set(reasons[kind])) > 1 else ""
        yield (
            f"{names_text(list(by_name))} {agreeing(len(by_name), '[was|were]')} degraded on "
            f"{agreeing(len(by_name), '[|up to ]')}{min(comparison.queries, max(by_name.values())):,} of "
            f"{numbered(comparison.queries, '[query|queries]')}: {example}{reasons[kind][0]}."
        )
    ids = {document.id for document in dataset.corpus}
    found = {}
    for name, of in rankings.items():
        results = [id for ranking in of.values() for id, _ in ranking.documents]
        if strange := [id for id in results if id not in ids]:
            found[name] = (len(set(strange)), len(strange), len(results), min(strange))
    if found:
        documents, count, results_in_all, example = max(found.values())
        yield (
            f"{names_text(list(found))} returned {agreeing(len(found), '[|up to ]')}"
            f"{numbered(documents, '[document that is|documents that are]')} not in the corpus "
            f"({count:,} of {numbered(results_in_all, '[result|results]')}), such as {example!r}; "
            f"{agreeing(documents, '[it counts|they count]')} as not relevant."
        )
    for name, of in rankings.items():
        empty = sum(not ranking.documents for ranking in of.values())
        if empty and not comparison.techniques[name].timed:
            yield (
                f"The run {name} has no ranking for {empty:,} of {numbered(len(of), '[query|queries]')}; "
                f"{agreeing(empty, '[it counts|they count]')} as 0."
            )


def notes(comparison: Comparison, dataset: Dataset, rankings: Rankings) -> Iterator[str]:
    """Yield what helps to read the figures."""
    same = {name: result.same_as for name, result in comparison.techniques.items() if result.same_as is not None}
    for first in dict.fromkeys(same.values()):
        twins = [name for name in same if same[name] == first]
        yield f"Not tested, because the rankings equal those of {first} on every query: {names_text(twins)}."
    yield from _deep(comparison, comparison.measures[1:])
    if dataset.spans and (left_out := len(dataset.judged.keys() - dataset.spans.keys())):
        yield f"{numbered(left_out, '[query has|queries have]')} judgements but no spans and are not measured."
    if dataset.positives_only:
        yield (
            "The judgements name only relevant documents, so the share of judged results is left out; a result "
            "without a judgement counts as not relevant."
        )
    machine = comparison.provenance["machine"]
    load, processors = machine.get("load"), machine.get("processors")
    if load is not None and processors and load / processors > 1:
        yield (
            f"The machine was busy (load {load:.1f} on {numbered(processors, '[processor|processors]')}): wall times "
            "are too long; compare CPU times."
        )
    kept = [name for name, of in rankings.items() if any(one.kept for one in of.values())]
    if kept:
        yield (
            "Answers of earlier comparisons were used, each with the time, calls and tokens of its first asking: "
            f"{names_text(kept)}. --no-answers (in Python, answers=False) asks anew."
        )


def _deep(comparison: Comparison, measures: list[str]) -> Iterator[str]:
    """Any ranking scores high on measures whose cutoff covers most of the corpus."""
    documents = comparison.provenance["dataset"]["documents"]
    for measure in measures:
        name, _, cutoff = measure.partition("@")
        if name in ("R", "Success") and cutoff.isdecimal() and 2 * int(cutoff) > documents > 1:
            yield (
                f"{measure} counts {min(int(cutoff), documents):,} of {documents:,} documents, so it hardly "
                "distinguishes techniques; use a smaller cutoff."
            )
