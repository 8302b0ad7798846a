"""Sentences common to all reports, besides those of the comparison itself."""

from __future__ import annotations

from ragistry.evaluation.result import Comparison
from ragistry.utils.wording import local_time, numbered

VERDICTS_SHOWN = 10
"""Number of pairs with a sentence; the others are in the table of differences."""


def failures(comparison: Comparison) -> list[str]:
    """A line for each technique that could not be compared."""
    return [
        f"{name} failed" + (f" on query {failure.query!r}" if failure.query else "") + f": {failure.error}"
        for name, failure in comparison.failures.items()
    ]


def verdicts(comparison: Comparison) -> list[str]:
    """A sentence for each pair on the main measure; of many pairs only some, significant ones first."""
    pairs = comparison.main_pairs
    if len(pairs) <= VERDICTS_SHOWN:
        return comparison.verdicts
    significant = [pair for pair in pairs if pair.significant]
    shown = sorted(significant, key=lambda pair: -abs(pair.difference))[:VERDICTS_SHOWN]
    more = f"{numbered(len(pairs) - len(shown), 'more [pair is|pairs are]')} in the table of differences"
    return [*(pair.verdict() for pair in shown), f"{more} ({len(significant) - len(shown):,} of them significant)"]


def about(comparison: Comparison) -> str:
    """What was compared, when, and by which version."""
    dataset, version = comparison.provenance["dataset"], comparison.provenance["versions"]["ragistry"]
    return (
        f"{numbered(dataset['documents'], '[document|documents]')}, "
        f"{numbered(comparison.queries, 'judged [query|queries]')}, "
        f"{numbered(dataset['relevant'], 'relevant [pair|pairs]')} · made "
        f"{local_time(comparison.provenance['made'])} by Ragistry {version}"
    )


def origin(comparison: Comparison) -> dict[str, str]:
    """The provenance as text: everything needed to reproduce the figures."""
    shown = {}
    for name, value in comparison.provenance.items():
        if isinstance(value, dict) and name != "techniques":
            parts = [f"{key.replace('_', ' ')} {part}" for key, part in value.items() if part not in (None, "", {}, [])]
            shown[name] = ", ".join(parts)
    return {**shown, "seed": str(comparison.provenance["seed"])}
