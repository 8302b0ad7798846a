"""The technique `graph` over `hybrid`: ``python -m benchmarks.graph [--quick] [SET …]``.

Its constants were chosen on one random half of each set's queries (fixed seed); the other half is reported here. "All
in 5": the share of queries of which every relevant document is among the first five, which is what a question needs
that joins two paragraphs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.quality import CACHE, DATA, paired_p, read, shown
from ragistry import open_workspace
from ragistry.evaluation import compare

SETS = ("hotpotqa-pooled500", "cranfield", "claude-docs", "hugo-known-item")
QUICK = ("claude-docs",)
TECHNIQUES = ("hybrid", "graph")
MEASURES = ("nDCG@10", "RR@10", "R@5")
ALL_IN_5 = "all in 5"
SEED = 7


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", help=f"names of test sets [{', '.join(SETS)}]")
    parser.add_argument("--quick", action="store_true", help=f"only {', '.join(QUICK)}")
    parser.add_argument("--cache", type=Path, default=CACHE, help=f"where vectors are kept [{CACHE}]")
    options = parser.parse_args()
    print("| set | queries | measure | hybrid | graph | p |\n|---|--:|---|--:|--:|--:|")
    for name in options.sets or (QUICK if options.quick else SETS):
        if (DATA / name).is_dir():
            report(name, options.cache)
        else:
            print(f"skipped: {name} is not in {DATA}", file=sys.stderr)


def report(name: str, cache: Path) -> None:
    """Print the lines of one set."""
    with tempfile.TemporaryDirectory() as root, open_workspace(root) as opened:
        dataset = read(DATA / name, titles=True)
        result = compare(TECHNIQUES, dataset, MEASURES, workspace=opened, cache=cache, progress=shown)
    per_query = {technique: result.techniques[technique].per_query for technique in TECHNIQUES}
    queries = list(per_query["hybrid"]["RR@10"])
    half = np.random.default_rng(SEED).permutation(len(queries))[len(queries) // 2 :]
    for measure in ("nDCG@10", "RR@10", ALL_IN_5):
        source = "R@5" if measure == ALL_IN_5 else measure
        values = [np.array([per_query[one][source][queries[row]] for row in half]) for one in TECHNIQUES]
        if measure == ALL_IN_5:
            values = [np.floor(one) for one in values]
        before, after = values
        p = paired_p(before.tolist(), after.tolist())
        print(f"| {name} | {len(half)} | {measure} | {before.mean():.3f} | {after.mean():.3f} | {p:.4f} |", flush=True)


if __name__ == "__main__":
    main()
