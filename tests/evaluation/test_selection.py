"""A variant chosen on some queries is measured on the others."""

from __future__ import annotations

import numpy as np
import pytest

from ragistry.errors import EvaluationError
from ragistry.evaluation.selection import tune_on


def variants(seed: int, better: float = 0.0) -> dict[str, dict[str, float]]:
    """Twenty variants that differ by chance, and the last by ``better``, too."""
    draw = np.random.default_rng(seed)
    values = draw.uniform(0, 1 - better, (20, 60))
    values[19] += better
    return {f"v{n}": {f"q{q}": float(value) for q, value in enumerate(row)} for n, row in enumerate(values)}


def test_best_of_equal_variants_gains_where_it_was_chosen_but_not_elsewhere() -> None:
    found = [tune_on(0.5, variants(seed), "v0", "RR@10", {}, seed=seed) for seed in range(60)]
    assert np.mean([one.gain_selected for one in found]) > 0.08
    assert abs(np.mean([one.gain_held_out for one in found])) < 0.02
    assert np.mean([one.p < 0.05 for one in found]) <= 0.12
    assert all((one.low > 0 or one.high < 0) == (one.p < 0.05) for one in found)


def test_a_better_variant_is_found_and_the_baseline_is_chosen_among_equals() -> None:
    found = tune_on(0.5, variants(3, better=0.4), "v0", "RR@10", {})
    assert (found.chosen, found.queries_selected, found.queries_held_out) == ("v19", 30, 30)
    assert found.low > 0.05
    same = {"v": {"a": 1.0, "b": 0.5}, "base": {"a": 1.0, "b": 0.5}}
    assert tune_on(0.5, same, "base", "RR@10", {}).chosen == "base"


def test_groups_are_never_divided() -> None:
    groups = {f"q{q}": f"document {q // 20}" for q in range(60)}
    found = tune_on(0.34, variants(1), "v0", "RR@10", groups)
    assert (found.queries_selected, found.queries_held_out) == (20, 40)
    assert (found.low, found.high) == (-1.0, 1.0), "two groups can show nothing"


@pytest.mark.parametrize("fraction", [0, 1, True, "half", float("nan"), 0.001])
def test_a_fraction_that_leaves_one_side_empty_is_refused(fraction: float) -> None:
    with pytest.raises(EvaluationError, match="tune_on"):
        tune_on(fraction, variants(0), "v0", "RR@10", {})
