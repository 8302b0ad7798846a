"""The part of a page that says where the figures come from: all that one needs to get them again."""

from __future__ import annotations

import json

from ragistry.evaluation.html import Html, joined, tag
from ragistry.evaluation.result import Comparison


def origin(comparison: Comparison) -> Html:
    """The section."""
    record = comparison.provenance
    dataset, embedder = record["dataset"], record["embedder"]
    rows = {
        "test set": f"{dataset['name']}, sha256 {dataset['content_hash']}",
        "embedder": f"{embedder['provider']} {embedder['model']} {embedder['digest']}" if embedder else "",
        "ranking": f"{record['asking']['ranking']}; search is {record['asking']['search']}",
        "statistics": ", ".join(f"{key} {value}" for key, value in record["statistics"].items() if value is not None),
        "seed": str(record["seed"]),
        "versions": ", ".join(f"{name} {version}" for name, version in record["versions"].items()),
        "machine": f"{record['machine']['system']}, {record['machine']['processors']} processors"
        + (f", load {record['machine']['load']:.1f}" if record["machine"]["load"] is not None else ""),
    }
    notes = [tag("li", problem) for problem in comparison.problems]
    resolved = json.dumps(record["techniques"], ensure_ascii=False, indent=2)
    return joined(
        [
            tag("h2", "Where these figures come from"),
            tag("dl", [(tag("dt", name), tag("dd", text)) for name, text in rows.items() if text]),
            (tag("h3", "Notes on the test set"), tag("ul", notes, class_="note")) if notes else "",
            tag("details", tag("summary", "Configuration of each technique"), tag("pre", tag("code", resolved))),
        ]
    )
