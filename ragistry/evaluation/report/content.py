"""What a report says. Terminal, Markdown and HTML only lay it out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime

from ragistry.evaluation.caveats import caveats, synthetic_caveats
from ragistry.evaluation.report import tables
from ragistry.evaluation.report.tables import Table
from ragistry.evaluation.result import Comparison
from ragistry.utils.wording import numbered

VERDICTS_SHOWN = 10
"""Pairs that get a sentence; the others are in the table of differences."""
TABLES = (
    tables.overview,
    tables.quality,
    tables.differences,
    tables.kinds,
    tables.controls,
    tables.selection,
    tables.cost,
    tables.relevant,
    tables.indexes,
    tables.explained,
)


@dataclass(frozen=True, slots=True)
class Report:
    """What every report says, in the order in which it says it."""

    title: str
    about: str
    conclusion: str
    warnings: list[str]
    failures: list[str]
    verdicts: list[str]
    synthetic: list[str]
    tables: dict[str, Table]
    problems: list[str]
    origin: dict[str, str]
    configuration: str


def report(comparison: Comparison) -> Report:
    """Everything that is said of a comparison."""
    return Report(
        title=f"Retrieval on {comparison.name}",
        about=_about(comparison),
        conclusion=comparison.conclusion(),
        warnings=[*comparison.warnings, *caveats(comparison)],
        failures=failures(comparison),
        verdicts=_verdicts(comparison),
        synthetic=synthetic_caveats(comparison.provenance),
        tables={table.key: table for table in (make(comparison) for make in TABLES) if table.rows},
        problems=comparison.problems,
        origin=_origin(comparison),
        configuration=json.dumps(comparison.provenance["techniques"], ensure_ascii=False, indent=2),
    )


def failures(comparison: Comparison) -> list[str]:
    """A line for each technique that could not be compared."""
    return [
        f"{name} failed" + (f" on query {failure.query!r}" if failure.query else "") + f": {failure.error}"
        for name, failure in comparison.failures.items()
    ]


def _verdicts(comparison: Comparison) -> list[str]:
    """A sentence for each pair on the main measure; of many pairs the significant ones first, and not all."""
    pairs = comparison.main_pairs
    if len(pairs) <= VERDICTS_SHOWN:
        return [pair.verdict() for pair in pairs]
    significant = [pair for pair in pairs if pair.significant]
    shown = sorted(significant, key=lambda pair: -abs(pair.difference))[:VERDICTS_SHOWN]
    left = len(pairs) - len(shown)
    more = f"{numbered(left, 'more [pair is|pairs are]')} in the table of differences"
    return [*(pair.verdict() for pair in shown), f"{more} ({len(significant) - len(shown):,} of them significant)"]


def _about(comparison: Comparison) -> str:
    dataset, versions = comparison.provenance["dataset"], comparison.provenance["versions"]
    made = datetime.fromisoformat(comparison.provenance["made"])
    return (
        f"{numbered(dataset['documents'], '[document|documents]')}, "
        f"{numbered(comparison.queries, 'judged [query|queries]')}, "
        f"{numbered(dataset['relevant'], 'relevant [pair|pairs]')} · made {made:%Y-%m-%d %H:%M} UTC by Ragistry "
        f"{versions['ragistry']}"
    )


def _origin(comparison: Comparison) -> dict[str, str]:
    """What one needs to get the figures again."""
    record = comparison.provenance
    dataset, embedder, machine = record["dataset"], record["embedder"], record["machine"]
    load = "" if machine["load"] is None else f", load {machine['load']:.1f}"
    rows = {
        "test set": f"{dataset['name']}, sha256 {dataset['content_hash']}",
        "embedder": f"{embedder['provider']} {embedder['model']} {embedder['digest']}" if embedder else "",
        "ranking": f"{record['asking']['ranking']}; search is {record['asking']['search']}",
        "statistics": ", ".join(f"{key} {value}" for key, value in record["statistics"].items() if value is not None),
        "seed": str(record["seed"]),
        "versions": ", ".join(f"{name} {version}" for name, version in record["versions"].items()),
        "machine": f"{machine['system']}, {machine['processors']} processors{load}",
    }
    return {name: text for name, text in rows.items() if text}
