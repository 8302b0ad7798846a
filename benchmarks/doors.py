"""What a search costs at the doors, over its technique: ``python -m benchmarks.doors [--quick]``.

A library of documentation, with an embedder that looks vectors up in a table. Each query is searched in turn by the
technique itself, by `Workspace.search`, which folds identical texts and marks weak results, and as the JSON that
commands and the server write. Printed are medians of CPU time, and of their ratios to the technique.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time

from benchmarks.asking import FOLDERS, MODEL
from benchmarks.quality import DATA
from ragistry import Workspace, open_workspace
from ragistry.presentation.plain import as_mapping

TECHNIQUES = ("naive", "bm25", "hybrid")
QUERIES = (
    "how do I restore a backup", "configure tls certificates for peers", "list pages in a section template",
    "compaction of old revisions", "image processing filters", "lease keepalive stream", "deploy a site to a server",
    "shortcode with named parameters", "cluster membership reconfiguration", "front matter date formats",
)  # fmt: skip
ROUNDS, QUICK_ROUNDS = 40, 10
RESULTS = 5


def doors(workspace: Workspace, technique: str) -> dict[str, Callable[[str], object]]:
    """The same search, from the inside out."""
    inner = workspace.registry.get(technique)
    return {
        "technique": lambda query: inner.retrieve(query, top_k=RESULTS),
        "library": lambda query: workspace.search(query, technique, top_k=RESULTS),
        "JSON": lambda query: json.dumps(as_mapping(workspace.search(query, technique, top_k=RESULTS), "english")),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_ROUNDS} rounds in place of {ROUNDS}")
    rounds = QUICK_ROUNDS if parser.parse_args().quick else ROUNDS
    folders = [DATA / name for name in FOLDERS if (DATA / name).is_dir()]
    if not folders:
        sys.exit(f"skipped: none of {', '.join(FOLDERS)} is in {DATA}")
    chance = Random(0)
    with TemporaryDirectory() as root, open_workspace(root, embed_model=MODEL) as workspace:
        for folder in folders:
            workspace.library.create_collection(folder.name)
            workspace.library.ingest_paths([folder], folder.name)
        print(f"{workspace.library.count():,} chunks; CPU ms of a search for {RESULTS}, and ratio to the technique\n")
        print("| technique | technique | library | ratio | JSON | ratio |\n|---|--:|--:|--:|--:|--:|")
        for technique in TECHNIQUES:
            times: dict[str, list[float]] = {}
            for turn in range(rounds + 1):
                for query in QUERIES:
                    sides = list(doors(workspace, technique).items())
                    for door, search in chance.sample(sides, len(sides)):  # each finds what the last one left in caches
                        began = process_time()
                        search(query)
                        if turn:
                            times.setdefault(door, []).append((process_time() - began) * 1000)
            inner, *outer = (times[door] for door in ("technique", "library", "JSON"))
            cells = [f"{median(of):.2f} | {median(a / b for a, b in zip(of, inner, strict=True)):.2f}" for of in outer]
            print(f"| {technique} | {median(inner):.2f} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
