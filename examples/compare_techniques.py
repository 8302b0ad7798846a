"""Techniques compared on the questions of fixtures/queries.jsonl, whose answers are known.

usage: python examples/compare_techniques.py [WORKSPACE], by default the one that `make demo` leaves.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from ragistry import Workspace, open_workspace
from ragistry.evaluation import Dataset, compare, markdown, read_library

QUERIES = Path(__file__).resolve().parents[1] / "fixtures" / "queries.jsonl"
TECHNIQUES = ("naive", "bm25", "hybrid", "routed")


def test_set(workspace: Workspace) -> Dataset:
    """The library's sources, and each question with the source that answers it, as a test set."""
    known = {entry.name for entry in workspace.library.collections.entries()}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "queries.jsonl"
        with path.open("w", encoding="utf-8") as file:
            for line in QUERIES.read_text(encoding="utf-8").splitlines():
                query = json.loads(line)
                if query["collection"] in known:  # the others ask for what is not there
                    source = f"{query['collection']}/{query['source_file']}"
                    file.write(json.dumps({"_id": query["_id"], "text": query["text"], "sources": [source]}) + "\n")
        return read_library(workspace, path)


def main() -> None:
    with open_workspace(sys.argv[1] if len(sys.argv) > 1 else "demo-workspace") as workspace:
        comparison = compare(
            TECHNIQUES,
            test_set(workspace),
            ["nDCG@10", "R@5", "RR@10"],
            baseline="naive",
            workspace=workspace,
            chunk_size="library",  # the chunks as they are, not cut anew
        )
    print(markdown(comparison))
    print("winner:", comparison.winner or "none that is shown; see `detectable` for what so few questions can show")


if __name__ == "__main__":
    main()
