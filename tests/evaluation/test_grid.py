"""Grids of parameters as the columns of a comparison."""

from __future__ import annotations

import pytest

from ragistry.errors import EvaluationError
from ragistry.evaluation.systems.entries import parse_chunking, parse_grid, variants
from ragistry.evaluation.systems.index import Chunking


def test_values_are_numbers_booleans_or_text() -> None:
    lines = ["hybrid.k=10,60", "hybrid.fusion=rrf, min_max", "routed.margin=0.05,true", "chunk_size=document,500/75"]
    assert parse_grid(lines) == {
        "hybrid.k": [10, 60],
        "hybrid.fusion": ["rrf", "min_max"],
        "routed.margin": [0.05, True],
        "chunk_size": ["document", "500/75"],
    }


def test_a_comma_within_brackets_separates_no_values() -> None:
    assert parse_grid(["hybrid.weights=[1, 0], [0,1],null", 'a.b={"x": [1,2], "y": 3},{}']) == {
        "hybrid.weights": [[1, 0], [0, 1], None],
        "a.b": [{"x": [1, 2], "y": 3}, {}],
    }
    assert parse_grid(["a.b=x],y", "a.c=[x"]) == {"a.b": ["x]", "y"], "a.c": ["[x"]}, "what is no JSON is text"


@pytest.mark.parametrize("line", ["hybrid.k", "=1", "hybrid.k=", "hybrid.k=1,,2"])
def test_a_malformed_grid_is_refused(line: str) -> None:
    with pytest.raises(EvaluationError, match="TECHNIQUE.PARAMETER=VALUE,VALUE"):
        parse_grid([line])


def test_a_parameter_that_is_named_twice_is_refused() -> None:
    with pytest.raises(EvaluationError, match="names 'a.k' twice"):
        parse_grid(["a.k=1", "a.k=2"])


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
    assert found[-1].changes == {"k": 60}
    assert found[-1].chunking == Chunking(500, 75)


def test_without_a_grid_each_technique_keeps_its_name() -> None:
    assert [variant.name for variant in variants(["a", "b"], Chunking(), {})] == ["a", "b"]


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"hybird.k": [1]}, "the grid names 'hybird.k'; did you mean 'hybrid'"),
        ({"k": [1]}, "it may name chunk_size, hybrid.PARAMETER"),
        ({"hybrid.k": []}, "no values for 'hybrid.k'"),
        ({"hybrid.k": [1, 1]}, r"would be compared twice"),
    ],
)
def test_a_grid_that_fits_nothing_is_refused(grid: dict, message: str) -> None:
    with pytest.raises(EvaluationError, match=message):
        variants(["hybrid"], Chunking(), grid)


def test_chunk_sizes_are_read() -> None:
    assert parse_chunking("document") == parse_chunking(None) == Chunking()
    assert parse_chunking(1000) == Chunking(1000, 150)
    assert parse_chunking("1000/0") == Chunking(1000, 0)
    assert parse_chunking("library").library
    assert str(parse_chunking("500/75")) == "500/75"


@pytest.mark.parametrize("size", ["0", "-5", "500/500", "big", "500/x", 1.5])
def test_a_chunk_size_that_cannot_be_is_refused(size: object) -> None:
    with pytest.raises(EvaluationError, match="a chunk size is 'document'"):
        parse_chunking(size)
