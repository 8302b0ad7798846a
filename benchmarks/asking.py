"""What a comparison costs beside its model: ``python -m benchmarks.asking [--quick]``.

A library of documentation is compared by three techniques on made questions, with an embedder that looks vectors up in
a table. Printed are the CPU seconds of all questions: a search and a ranking by each technique, some of them repeated.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.quality import DATA
from ragistry import open_workspace
from ragistry.evaluation import compare
from ragistry.evaluation.data.library import library_sources
from ragistry.evaluation.data.testsets import known_items, make_testset
from ragistry.testing.hashed import HashingEmbedder, hashed_embedding
from ragistry.types import Role

FOLDERS = ("docs-etcd", "docs-hugo")
TECHNIQUES = ("naive", "bm25", "hybrid")
QUESTIONS, QUICK_QUESTIONS, PER_DOCUMENT = 585, 100, 4
MODEL = "benchmarks.asking:TableEmbedder"
DIMENSION = 384
COMMON = DIMENSION**-0.5


class TableEmbedder(HashingEmbedder):
    """Embeds each text once, so that a repeated text costs nothing."""

    def __init__(self) -> None:
        super().__init__(DIMENSION, model="table")
        self.table: dict[str, list[float]] = {}

    def embed(self, texts: Sequence[str], *, role: Role = "document") -> NDArray[np.float32]:  # noqa: ARG002
        for text in texts:
            if text not in self.table:
                vector = np.array(hashed_embedding(text, DIMENSION)) + COMMON  # cosines above 0, as those of a model
                self.table[text] = list(vector / np.linalg.norm(vector))
        return np.array([self.table[text] for text in texts], dtype=np.float32).reshape(-1, DIMENSION)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_QUESTIONS} questions in place of {QUESTIONS}")
    count = QUICK_QUESTIONS if parser.parse_args().quick else QUESTIONS
    folders = [DATA / name for name in FOLDERS if (DATA / name).is_dir()]
    if not folders:
        sys.exit(f"skipped: none of {', '.join(FOLDERS)} is in {DATA}")
    spent: dict[str, float] = {}

    def note(step: str, done: int, total: int) -> None:  # noqa: ARG001
        if step == "asking":
            spent.setdefault("begin", process_time())
            spent["end"] = process_time()

    with TemporaryDirectory() as root, open_workspace(root, embed_model=MODEL) as workspace:
        for folder in folders:
            workspace.library.create_collection(folder.name)
            workspace.library.ingest_paths([folder], folder.name)
        sources = library_sources(workspace)
        candidates = list(known_items(sources, ("description", "sentence"), per_document=PER_DOCUMENT))
        dataset = make_testset("made", sources, candidates, limit=count, per_document=PER_DOCUMENT).dataset
        workspace.embedder.embed(list(dataset.queries.values()), role="query")
        options: dict[str, Any] = {"workspace": workspace, "cache": Path(root) / "cache", "progress": note}
        result = compare(list(TECHNIQUES), dataset, **options)
        assert not result.failures, result.failures
        print("| documents | chunks | questions | techniques | CPU s of asking | CPU ms a question |")
        print("|--:|--:|--:|--:|--:|--:|")
        seconds, number = spent["end"] - spent["begin"], len(dataset.judged)
        print(
            f"| {len(sources)} | {workspace.library.count():,} | {number} | {len(TECHNIQUES)} | {seconds:.1f} "
            f"| {seconds * 1000 / number:.1f} |"
        )


if __name__ == "__main__":
    main()
