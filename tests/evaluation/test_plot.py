"""A comparison is plotted by one call."""

from __future__ import annotations

import sys

import pytest

from ragistry.errors import ConfigError, EvaluationError
from ragistry.evaluation import compare
from ragistry.evaluation.report.plot import sweep
from tests.evaluation.small_sets import Answers, first, hashed_workspace, numbered, topics
from tests.messages import refused


@pytest.fixture
def result():
    return compare(
        {"good": Answers(first), "bad": Answers(lambda _: 2)}, numbered(10), ["RR@10", "R@1"], progress=False
    )


@pytest.fixture
def agg():
    pytest.importorskip("matplotlib").use("Agg")


@pytest.mark.usefixtures("agg")
def test_means_and_intervals_are_drawn(result):
    axes = result.plot()
    assert [label.get_text() for label in axes.get_yticklabels()] == ["bad", "good"]
    assert axes.get_xlabel() == "RR@10, 95 % interval"
    again = result.plot("R@1", ax=axes)
    assert again is axes
    assert axes.get_xlabel().startswith("R@1")


@pytest.mark.usefixtures("agg")
def test_sweep_of_one_parameter_is_a_curve(tmp_path):
    with hashed_workspace(tmp_path) as workspace:
        grid = {"hybrid.fetch": [60, 1, 10], "hybrid.fusion": ["rrf"]}
        both = compare(["hybrid"], topics(), ["RR@10"], workspace=workspace, grid=grid, progress=False)
        assert sweep(list(both.techniques)) is None
        grid = {"hybrid.fetch": [60, 1, 10]}
        swept = compare(["hybrid", "bm25"], topics(), ["RR@10"], workspace=workspace, grid=grid, progress=False)
    axes = swept.plot()
    assert axes.get_xlabel() == "hybrid.fetch"
    assert axes.lines[0].get_xdata().tolist() == [1, 10, 60]
    assert [line.get_label() for line in axes.lines] == ["hybrid.fetch", "bm25"]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["a[k=10]", "a[k=9]"], ("a.k", ["9", "10"])),
        (["a[chunk_size=500/75]", "a[chunk_size=document]", "b"], ("a.chunk_size", ["500/75", "document"])),
        (["a[k=1]", "a[j=2]"], None),
        (["a[k=1]", "b[k=2]"], None),
        (["a[k=1]", "b"], None),
        (["a", "b"], None),
        (["a[k=1]", "a[k=2]", "b", "c"], None),
        (["a[k=1,j=2]", "a[k=2,j=2]"], None),
    ],
)
def test_sweep_is_found_in_the_names(names, expected):
    found = sweep(names)
    assert (None if found is None else (found[0], list(found[1].values()))) == expected


def test_unknown_measure_and_missing_library_are_named(result, monkeypatch):
    with refused(EvaluationError, "'RR@1'", "RR@10"):
        result.plot("RR@1")
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ConfigError, match=r"'matplotlib' is not installed; run: .*\[plot\]"):
        result.plot()
