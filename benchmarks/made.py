"""How often do made questions rank techniques as people's questions do? ``python -m benchmarks.made [--quick]``.

Ten techniques are compared on test sets with people's questions. The pairs whose difference is significant there,
after Holm's correction over all pairs, are compared with the differences on 200 questions that `ragistry testset
make` makes of the same documents: pairs with the same sign, and pairs that are significant the other way round. The
recipe was chosen on other sets than scifact, npl, hotpotqa, miracl-yo and xquad. Of a set with many documents, a
sample with all relevant ones is searched.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.fusion_data import LARGEST, SAMPLE, read_set
from benchmarks.quality import DATA
from ragistry import open_workspace
from ragistry.evaluation import Dataset, compare
from ragistry.evaluation.data.library import LibrarySource
from ragistry.evaluation.data.testsets import known_items, make_testset
from ragistry.evaluation.figures import Pair
from ragistry.evaluation.summary import pairs_of

SETS = ("xquad-en", "cranfield", "cisi", "cacm", "scifact", "npl", "hotpotqa-pooled500", "miracl-yo")
QUICK = ("xquad-en", "cranfield")
UNSEEN = ("scifact", "npl", "hotpotqa-pooled500", "miracl-yo", "xquad-en")
"""Sets that the recipe was not chosen on."""
TECHNIQUES: dict[str, Any] = {
    **dict.fromkeys(("naive", "bm25", "hybrid", "graph", "newest")),
    "hybrid by rrf": {"use": "hybrid", "bases": ["naive", "bm25"], "fusion": "rrf"},
}
COUNT = 200
ASKED = 200
"""Maximum number of people's questions of a set."""
MEASURE = "nDCG@10"
CACHE = Path(os.environ.get("RAGISTRY_BENCH_CACHE", Path.home() / ".cache" / "ragistry")) / "made"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"only {', '.join(QUICK)}")
    parser.add_argument("--cache", type=Path, default=CACHE, help=f"where vectors are kept [{CACHE}]")
    parser.add_argument("sets", nargs="*", help=f"of {', '.join(SETS)}; all by default")
    options = parser.parse_args()
    totals: dict[str, list[int]] = {}
    print(f"A set of more than {LARGEST:,} documents: {SAMPLE:,}, with all relevant ones; {MEASURE}\n")
    print("| test set | made | decided pairs | same sign | opposite and significant |")
    print("|---|--:|--:|--:|--:|")
    for name in options.sets or (QUICK if options.quick else SETS):
        if not (DATA / name).is_dir():
            print(f"skipped: {name} is not in {DATA}", file=sys.stderr)
            continue
        people = read_set(name)
        asked = dict(list(people.judged.items())[:ASKED])
        people = replace(people, queries=asked, qrels={query: people.qrels[query] for query in asked})
        decided = [pair for pair in tested(people, options.cache) if pair.significant]
        dataset = with_sentences(people)
        found = {(pair.a, pair.b): pair for pair in tested(dataset, options.cache)}
        same = sum(found[one.a, one.b].difference * one.difference > 0 for one in decided)
        opposite = sum(
            found[one.a, one.b].significant and found[one.a, one.b].difference * one.difference < 0 for one in decided
        )
        print(f"| {name} | {len(dataset.queries)} | {len(decided)} | {same} | {opposite} |", flush=True)
        for part in ("all", *(("unseen",) if name in UNSEEN else ())):
            total = totals.setdefault(f"{part} sets", [0, 0, 0])
            for place, count in enumerate((len(decided), same, opposite)):
                total[place] += count
    for part, (pairs, same, opposite) in totals.items():
        print(f"| **{part}** | | {pairs} | {same} ({same / max(1, pairs):.1%}) | {opposite} |")


def tested(dataset: Dataset, cache: Path) -> list[Pair]:
    """Test each pair of techniques, with Holm's correction over all pairs."""
    with TemporaryDirectory() as folder, open_workspace(folder) as workspace:
        result = compare(
            TECHNIQUES, dataset, MEASURE, workspace=workspace, cache=cache, depth=10, chunk_size="document",
            timing_repeats=0, progress=False,
        )  # fmt: skip
    for name, failed in result.failures.items():
        print(f"{dataset.name}: {name} failed: {failed.error}", file=sys.stderr)
    values = {name: one.per_query[MEASURE] for name, one in result.techniques.items()}
    queries = sorted(next(iter(values.values())))
    groups = [dataset.groups.get(query, query) for query in queries]
    return pairs_of(list(combinations(values, 2)), MEASURE, values, groups)


def with_sentences(people: Dataset) -> Dataset:
    """Return the test set with the default kinds of made questions."""
    sources = [LibrarySource(one.id, "", one.whole, [one.whole]) for one in people.corpus]
    return make_testset(people.name, sources, known_items(sources), limit=COUNT).dataset


if __name__ == "__main__":
    main()
