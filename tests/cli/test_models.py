"""``ragistry config models``: what can be named, and what a folder has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.conftest import Run
from tests.models import folders


def test_models_are_listed_with_their_folder_and_figures(ragistry: Run) -> None:
    folders.table(Path("models") / "mdbr-leaf-ir")
    rows = {row["embed_model"]: row for row in ragistry("config", "models", "--json").json["models"]}
    assert rows["minilm"] | {"where": ""} == {
        "embed_model": "minilm", "where": "", "languages": "English", "dimension": 384, "licence": "Apache-2.0",
        "scifact": 0.645,
    }  # fmt: skip
    assert rows["folder:models/mdbr-leaf-ir"]["scifact"] == rows["mdbr-leaf-ir"]["scifact"] == 0.706
    listed = ragistry("config", "models").out
    assert "SciFact: nDCG@10, " in listed
    assert max(map(len, listed.splitlines())) <= 80


def cross(folder: Path) -> Path:
    config = folders.BERT | {"architectures": ["BertForSequenceClassification"]}
    return folders.words(folder, **{"model.onnx": folders.classifier(np.ones((10, 1))), "config.json": config})


def sparse(folder: Path) -> Path:
    config = folders.BERT | {"architectures": ["BertForMaskedLM"]}
    return folders.words(folder, **{"model.onnx": folders.look_up(np.eye(10), "logits"), "config.json": config})


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (folders.minilm, {"dimension": 384, "output": "last_hidden_state", "pooling": "mean", "layers": "none"}),
        (folders.table, {"dimension": 8, "tokens at most": "no limit"}),
        (cross, {"kind": "reranker: `rerankers: {NAME: {use: folder, path: …}}`"}),
        (sparse, {"terms of a passage": 3}),
    ],
)
def test_a_check_says_what_a_folder_has(ragistry: Run, make: Any, expected: dict[str, Any]) -> None:
    make(Path("mine"))
    found = ragistry("config", "models", "check", "mine", "--json").json
    assert {name: found[name] for name in expected} == expected
    assert "of 10" in found["questions whose answer is first"]


def test_a_check_measures_and_says_the_size_before_it_loads(ragistry: Run) -> None:
    folder = folders.minilm(Path("mine"))
    found = ragistry("config", "models", "check", "mine", "--measure").out
    assert "questions whose answer is first: 10 of 10" in found
    assert "CPU-ms a query: " in found
    (folder / "onnx" / "model.onnx").write_bytes(b"broken" * 1_000_000)
    done = ragistry("config", "models", "check", "mine")
    assert ("megabytes: 6.0" in done.out, done.code) == (True, 1)
    assert "mine" in done.err
