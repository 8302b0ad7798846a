"""What a reader must know of queries that no person asked: how they were made, and what their figures do not say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from ragistry.evaluation.dataset import Dataset

SOURCES = {
    "description": "descriptions in front matter",
    "title": "titles",
    "heading": "headings",
    "question": "questions that a model asked about one passage",
}
"""Kind → what the queries of it are."""


def origin(dataset: Dataset) -> dict[str, Any] | None:
    """How the synthetic ones of the judged queries were made, as plain values; None where people asked all of them."""
    made = [dataset.synthetic[query] for query in dataset.judged if query in dataset.synthetic]
    if not made:
        return None
    return {
        "queries": len(made),
        "kinds": dict(Counter(str(one.get("kind", "unknown")) for one in made)),
        "seeds": sorted({str(one["seed"]) for one in made if "seed" in one}),
        "models": sorted({str(one["model"]) for one in made if "model" in one}),
    }


def heading(provenance: Mapping[str, Any]) -> str:
    """``Synthetic test set``, or how much of it is; empty where nothing is."""
    made, judged = provenance["dataset"].get("synthetic"), provenance["dataset"]["judged_queries"]
    if made is None:
        return ""
    if made["queries"] == judged:
        return "Synthetic test set: no person asked these queries"
    return f"Partly synthetic test set: no person asked {made['queries']:,} of the {judged:,} queries"


def cautions(provenance: Mapping[str, Any]) -> list[str]:
    """How the queries were made, then what follows from it, a few sentences each; none where nothing is synthetic."""
    made = provenance["dataset"].get("synthetic")
    if made is None:
        return []
    kinds, found = made["kinds"], []
    shares = ", ".join(f"{SOURCES.get(kind, f'kind {kind}')} ({count:,})" for kind, count in kinds.items())
    found.append(
        f"A program made them from the documents themselves: {shares}{_by(made)}. The right document of each is the "
        "one that it was made from."
    )
    if kinds.keys() - {"question"}:
        found.append(
            "Known-item queries are in the words of the document's own author, so that they tend to favour techniques "
            "that match words (bm25, and hybrid with it) over those that match meaning. Headings and titles that "
            "became queries were taken out of the text that is searched, but the words around them remain."
        )
    if "question" in kinds:
        found.append(
            "A model asks in the words of the passage that it was shown, which tends to favour techniques that match "
            "words, and asks what a passage answers well; a passage that its own check rejected is not asked about."
        )
    found.append(
        "Another document that answers a query as well counts as wrong. The figures are good for comparing settings on "
        "these documents, not with those of other test sets; before a choice that matters, confirm it on queries that "
        "people asked."
    )
    return found


def _by(made: Mapping[str, Any]) -> str:
    by = [f"model {name}" for name in made["models"]] + [f"seed {seed}" for seed in made["seeds"]]
    return f"; {', '.join(by)}" if by else ""
