"""The capacity model beside what was measured, and the simulation beside what queueing theory says."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.capacity import POINTS, Cluster, Law, check, replicas_for, simulate

POINT_ROWS = check(json.loads(POINTS.read_text(encoding="utf-8")))


@pytest.mark.parametrize(("name", "measured", "told"), POINT_ROWS, ids=[row[0] for row in POINT_ROWS])
def test_the_model_says_what_was_measured_within_a_quarter(name: str, measured: float, told: float) -> None:
    assert told == pytest.approx(measured, rel=0.25), name


def test_a_law_is_never_below_zero_and_never_falls() -> None:
    law = Law([10_000, 100_000, 1_000_000], [3.0, 2.0, 40.0])
    values = [law(chunks) for chunks in (1e3, 1e4, 1e6, 1e9)]
    assert values[0] >= 0
    assert values == sorted(values)


def test_one_core_waits_as_long_as_pollaczek_and_khinchine_say() -> None:
    rate, service = 50, 10.0  # milliseconds, always the same: busy half of the time
    waits = simulate(Cluster(), rate, service, service, searches=100_000) - service
    busy = rate * service / 1_000
    assert waits.mean() == pytest.approx(busy * service / (2 * (1 - busy)), rel=0.05)


def test_a_search_of_every_shard_is_as_slow_as_the_slowest() -> None:
    one, many = (np.median(simulate(Cluster(shards), 1, 10, 20)) for shards in (1, 16))
    assert one == pytest.approx(10, rel=0.05)
    assert many > 18
    apart = simulate(Cluster(16), 1, 10, 20, everywhere=False)
    assert np.median(apart) == pytest.approx(10, rel=0.1)


def test_more_replicas_are_taken_until_the_limit_is_kept() -> None:
    def waits(replicas: int) -> NDArray[np.float64]:
        return simulate(Cluster(1, replicas), 350, 10, 12)

    enough = replicas_for(waits, p95=30)
    assert enough is not None
    assert np.percentile(waits(enough), 95) <= 30 < np.percentile(waits(enough - 1), 95)
    assert replicas_for(waits, p95=5, most=9) is None
