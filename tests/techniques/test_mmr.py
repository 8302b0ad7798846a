"""Maximal marginal relevance: the greedy order of the paper, over what a base finds."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from ragistry import RetrievalResult, Workspace, open_workspace
from ragistry.techniques.mmr import choose


def reference(vectors: np.ndarray, relevance: np.ndarray, weight: float, count: int) -> list[int]:
    """The definition of Carbonell and Goldstein, one pair at a time."""
    chosen: list[int] = []
    while len(chosen) < min(count, len(vectors)):

        def value(row: int) -> float:
            nearest = max((max(0.0, float(vectors[row] @ vectors[other])) for other in chosen), default=0.0)
            return weight * max(0.0, float(relevance[row])) - (1 - weight) * nearest

        chosen.append(
            max((row for row in range(len(vectors)) if row not in chosen), key=lambda row: (value(row), -row))
        )
    return chosen


@pytest.mark.parametrize("seed", range(8))
def test_the_order_is_that_of_the_definition(seed: int) -> None:
    random = np.random.default_rng(seed)
    vectors = random.normal(size=(25, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    relevance = vectors @ vectors[0]
    for weight in (0.0, 0.3, 0.7, 1.0):
        rows, scores = zip(*choose(vectors, relevance, weight, 10), strict=True)
        assert list(rows) == reference(vectors, relevance, weight, 10)
        assert all(0 <= score <= 1 for score in scores)
        assert all(one >= other - 1e-6 for one, other in pairwise(scores))


def test_a_repetition_comes_after_what_is_new(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "techniques.yaml").write_text(
        "techniques:\n  naive: {use: naive}\n  diverse: {use: mmr, base: naive, lambda: 0.4}\n", encoding="utf-8"
    )
    with open_workspace(tmp_path) as workspace:
        fill(workspace)
        diverse = workspace.search("green tea", "diverse", top_k=2)
        assert sum(stage.model_calls for stage in diverse.trace) == 1, "the query is embedded once"
        assert names(diverse) == ["a.txt", "d.txt"]
        assert names(workspace.search("green tea", "naive", top_k=3)) == ["a.txt", "b.txt", "c.txt"]


def names(result: RetrievalResult) -> list[str]:
    return [document.metadata["source_file"] for document in result.documents]


def fill(workspace: Workspace) -> None:
    workspace.library.create_collection("notes")
    for name, text in [
        ("a", "Green tea is steeped in water of eighty degrees."),
        ("b", "Green tea is steeped in water of 80 degrees."),
        ("c", "Green teas are steeped in water of eighty degrees."),
        ("d", "Tea bushes grow in the hills and are picked by hand in spring."),
    ]:
        workspace.library.ingest_text(text, f"{name}.txt", "notes")
