"""Compare techniques on questions with known answers.

usage: python examples/compare_techniques.py [WORKSPACE], by default the one that `ragistry demo` makes. Its file
questions.jsonl has the questions, each with the source that answers it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from ragistry import open_workspace
from ragistry.evaluation import compare, markdown, read_library

TECHNIQUES = ("naive", "bm25", "hybrid", "routed")


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "demo-workspace")
    with open_workspace(folder) as workspace:
        comparison = compare(
            TECHNIQUES,
            read_library(workspace, folder / "questions.jsonl"),
            ["nDCG@10", "R@5", "RR@10"],
            baseline="naive",
            workspace=workspace,
            chunk_size="library",  # the existing chunks
        )
    print(markdown(comparison))
    print(comparison.verdict)


if __name__ == "__main__":
    main()
