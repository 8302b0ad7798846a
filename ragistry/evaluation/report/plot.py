"""Plot a comparison with matplotlib: means with intervals, or a curve over the values of one parameter."""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ragistry.errors import ConfigError, EvaluationError
from ragistry.utils.installation import install_command
from ragistry.utils.wording import did_you_mean

if TYPE_CHECKING:
    from ragistry.evaluation.result import Comparison

VARIANT = re.compile(r"(?P<technique>.+)\[(?P<key>[\w.]+)=(?P<value>[^,\[\]]+)\]")
"""A column of a grid with one varied parameter, such as ``hybrid[fetch=10]``."""


def plot(comparison: Comparison, measure: str | None = None, ax: Any = None) -> Any:
    """Draw the mean of each technique with its 95 % interval.

    If all techniques but one are values of one parameter of a grid, the means are a curve over these values, and the
    other technique is a horizontal line.

    Args:
        comparison: The comparison.
        measure: The measure; None for the main one.
        ax: Axes of matplotlib to draw on; None for new ones.

    Returns:
        The axes.

    Raises:
        ConfigError: matplotlib is not installed.
        EvaluationError: The comparison has no such measure, or no technique.
    """
    measure = comparison.measure if measure is None else measure
    if measure not in comparison.measures:
        known = ", ".join(comparison.measures)
        raise EvaluationError(
            f"the comparison has no measure {measure!r}{did_you_mean(measure, comparison.measures)}; it has {known}"
        )
    if not comparison.techniques:
        raise EvaluationError("every technique failed, so there is nothing to plot")
    if ax is None:
        try:
            pyplot = import_module("matplotlib.pyplot")
        except ImportError as error:
            raise ConfigError(f"'matplotlib' is not installed; run: {install_command('plot')}") from error
        _, ax = pyplot.subplots()
    swept = sweep(list(comparison.techniques))
    if swept is None:
        _draw_means(comparison, measure, ax)
    else:
        _draw_sweep(comparison, measure, ax, *swept)
    ax.set_title(comparison.name)
    return ax


def sweep(names: list[str]) -> tuple[str, dict[str, str]] | None:
    """Return the varied parameter of a sweep and technique → value, in order; None if they are not a sweep."""
    found = {name: match for name in names if (match := VARIANT.fullmatch(name))}
    keys = {(match["technique"], match["key"]) for match in found.values()}
    if len(keys) != 1 or len(found) < 2 or len(names) - len(found) > 1:
        return None
    [(technique, key)] = keys
    values = {name: match["value"] for name, match in found.items()}
    if all(map(_is_number, values.values())):
        values = dict(sorted(values.items(), key=lambda item: float(item[1])))
    return f"{technique}.{key}", values


def _draw_means(comparison: Comparison, measure: str, ax: Any) -> None:
    estimates = {name: one.measures[measure] for name, one in comparison.techniques.items()}
    names = sorted(estimates, key=lambda name: estimates[name].mean)
    means = [estimates[name].mean for name in names]
    below = [estimates[name].mean - estimates[name].low for name in names]
    above = [estimates[name].high - estimates[name].mean for name in names]
    ax.errorbar(means, range(len(names)), xerr=[below, above], fmt="o", capsize=3)
    ax.set_yticks(range(len(names)), names)
    ax.set_xlabel(f"{measure}, 95 % interval")


def _draw_sweep(comparison: Comparison, measure: str, ax: Any, parameter: str, values: dict[str, str]) -> None:
    estimates = {name: comparison.techniques[name].measures[measure] for name in values}
    is_numeric = all(map(_is_number, values.values()))
    places = [float(value) for value in values.values()] if is_numeric else list(range(len(values)))
    ax.plot(places, [one.mean for one in estimates.values()], marker="o", label=parameter)
    ax.fill_between(
        places, [one.low for one in estimates.values()], [one.high for one in estimates.values()], alpha=0.2
    )
    if not is_numeric:
        ax.set_xticks(places, list(values.values()))
    for name, one in comparison.techniques.items():
        if name not in values:
            ax.axhline(one.measures[measure].mean, linestyle="--", color="gray", label=name)
    ax.set_xlabel(parameter)
    ax.set_ylabel(f"{measure}, 95 % interval")
    ax.legend()


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
