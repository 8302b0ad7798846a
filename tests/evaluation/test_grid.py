"""Grids of parameters as the columns of a comparison."""

from __future__ import annotations

import pytest

from ragistry.errors import EvaluationError
from ragistry.evaluation.systems.entries import parse_chunking, parse_grid, variants
from ragistry.evaluation.systems.index import Chunking


def test_values_are_json_or_text_and_brackets_keep_their_commas() -> None:
    lines = ["hybrid.k=10,60", "hybrid.fusion=rrf, min_max", "r.margin=0.05,true", "chunk_size=document,500/75"]
    assert parse_grid([*lines, "hybrid.weights=[1, 0], [0,1],null", 'a.b={"x": [1,2], "y": 3},{}', "a.c=x],y"]) == {
        "hybrid.k": [10, 60],
        "hybrid.fusion": ["rrf", "min_max"],
        "r.margin": [0.05, True],
        "chunk_size": ["document", "500/75"],
        "hybrid.weights": [[1, 0], [0, 1], None],
        "a.b": [{"x": [1, 2], "y": 3}, {}],
        "a.c": ["x]", "y"],
    }


@pytest.mark.parametrize("lines", [["hybrid.k"], ["=1"], ["hybrid.k="], ["hybrid.k=1,,2"], ["a.k=1", "a.k=2"]])
def test_a_malformed_grid_is_refused(lines: list[str]) -> None:
    with pytest.raises(EvaluationError, match="TECHNIQUE.PARAMETER=VALUE,VALUE|names 'a.k' twice"):
        parse_grid(lines)


def test_every_combination_comes_once_and_is_named_by_what_varies() -> None:
    found = variants(["bm25", "hybrid"], Chunking(), {"hybrid.k": [10, 60], "chunk_size": ["document", 500]})
    assert [variant.name for variant in found] == [
        "bm25[chunk_size=document]",
        "bm25[chunk_size=500/75]",
        "hybrid[k=10,chunk_size=document]",
        "hybrid[k=60,chunk_size=document]",
        "hybrid[k=10,chunk_size=500/75]",
        "hybrid[k=60,chunk_size=500/75]",
    ]
    assert (found[-1].changes, found[-1].chunking) == ({"k": 60}, Chunking(500, 75))
    assert [variant.name for variant in variants(["a", "b"], Chunking(), {})] == ["a", "b"]


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"hybird.k": [1]}, "the grid names 'hybird.k'; did you mean 'hybrid'"),
        ({"k": [1]}, "it may name chunk_size, hybrid.PARAMETER"),
        ({"hybrid.k": []}, "no values for 'hybrid.k'"),
        ({"hybrid.k": [1, 1]}, r"would be compared twice"),
        *(({"chunk_size": [size]}, "a chunk size is 'document'") for size in ("0", "-5", "500/500", "big", "5/x", 1.5)),
    ],
)
def test_a_grid_that_fits_nothing_is_refused(grid: dict, message: str) -> None:
    with pytest.raises(EvaluationError, match=message):
        variants(["hybrid"], Chunking(), grid)


def test_chunk_sizes_are_read() -> None:
    assert parse_chunking("document") == parse_chunking(None) == Chunking()
    assert [str(parse_chunking(size)) for size in (1000, "1000/0", "library")] == ["1000/150", "1000/0", "library"]
