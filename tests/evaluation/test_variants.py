"""Grids of parameters as the columns of a comparison, and one of these chosen on some queries."""

from __future__ import annotations

import numpy as np
import pytest

from ragistry.errors import EvaluationError
from ragistry.evaluation.statistics import tune_on
from ragistry.evaluation.systems.variants import Chunking, parse_chunking, parse_grid, variants
from tests.conftest import full_run
from tests.messages import refused


def test_values_are_json_or_text_and_brackets_keep_their_commas():
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
def test_malformed_grid_is_refused(lines):
    with refused(EvaluationError):
        parse_grid(lines)


def test_every_combination_comes_once_and_is_named_by_what_varies():
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
    "grid",
    [
        {"hybird.k": [1]}, {"k": [1]}, {"hybrid.k": []}, {"hybrid.k": [1, 1]},
        *({"chunk_size": [size]} for size in ("0", "-5", "500/500", "big", "5/x", 1.5)),
    ],
)  # fmt: skip
def test_grid_that_fits_nothing_is_refused(grid):
    with refused(EvaluationError):
        variants(["hybrid"], Chunking(), grid)


def test_chunk_sizes_are_read():
    assert parse_chunking("document") == parse_chunking(None) == Chunking()
    assert [str(parse_chunking(size)) for size in (1000, "1000/0", "library")] == ["1000/150", "1000/0", "library"]


# Selection


def drawn(seed: int, better: float = 0.0) -> dict[str, dict[str, float]]:
    """Twenty variants that differ by chance, and the last by ``better``, too."""
    draw = np.random.default_rng(seed)
    values = draw.uniform(0, 1 - better, (20, 60))
    values[19] += better
    return {f"v{n}": {f"q{q}": float(value) for q, value in enumerate(row)} for n, row in enumerate(values)}


def test_best_of_equal_variants_gains_where_it_was_chosen_but_not_elsewhere():
    found = [tune_on(0.5, drawn(seed), "v0", "RR@10", {}, seed=seed) for seed in range(60 if full_run() else 12)]
    assert np.mean([one.gain_selected for one in found]) > (0.08 if full_run() else 0.05)
    assert abs(np.mean([one.gain_held_out for one in found])) < (0.02 if full_run() else 0.05)
    assert np.mean([one.p < 0.05 for one in found]) <= 0.12
    assert all((one.low > 0 or one.high < 0) == (one.p < 0.05) for one in found)


def test_better_variant_is_found_and_the_baseline_is_chosen_among_equals():
    found = tune_on(0.5, drawn(3, better=0.4), "v0", "RR@10", {})
    assert (found.chosen, found.queries_selected, found.queries_held_out) == ("v19", 30, 30)
    assert found.low > 0.05
    same = {"v": {"a": 1.0, "b": 0.5}, "base": {"a": 1.0, "b": 0.5}}
    assert tune_on(0.5, same, "base", "RR@10", {}).chosen == "base"


def test_groups_are_never_divided():
    groups = {f"q{q}": f"document {q // 20}" for q in range(60)}
    found = tune_on(0.34, drawn(1), "v0", "RR@10", groups)
    assert (found.queries_selected, found.queries_held_out) == (20, 40)
    assert (found.low, found.high) == (-1.0, 1.0), "two groups can show nothing"


@pytest.mark.parametrize("fraction", [0, 1, True, "half", float("nan"), 0.001])
def test_fraction_that_leaves_one_side_empty_is_refused(fraction):
    with refused(EvaluationError, fraction):
        tune_on(fraction, drawn(0), "v0", "RR@10", {})
