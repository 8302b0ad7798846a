"""What a reader must know before trusting the figures. Every report shows these sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ragistry.utils.wording import agreeing, numbered

if TYPE_CHECKING:
    from ragistry.evaluation.result import Comparison

CUT = 0.1
"""Share of chunks longer than the model's limit from which the reader is warned."""
NAMES = 3
"""Techniques named in one sentence; the others are counted."""
SOURCES = {
    "description": "descriptions in front matter",
    "title": "titles",
    "heading": "headings",
    "question": "questions that a model asked about one passage",
}
"""Kind of a synthetic query → where it comes from."""


def caveats(comparison: Comparison) -> list[str]:
    """One sentence each: synthetic queries, truncated chunks, deep cutoffs, degraded results, resumed answers."""
    checks = (_synthetic, _cut, _cutoffs, _degraded, _outside, _kept)
    return [sentence for check in checks for sentence in check(comparison)]


def synthetic_caveats(provenance: Mapping[str, Any]) -> list[str]:
    """What follows from synthetic queries; empty if people asked all of them."""
    made = provenance["dataset"].get("synthetic")
    if made is None:
        return []
    found = []
    if made["kinds"].keys() - {"question"}:
        found.append(
            "Titles and headings use the author's own words, so they tend to favour techniques that match words (bm25, "
            "and hybrid with it) over those that match meaning. They were removed from the searched text, but the "
            "words around them remain."
        )
    if "question" in made["kinds"]:
        found.append(
            "A model asks in the words of the passage it was shown, which tends to favour techniques that match words. "
            "It asks only what a passage answers well; passages that failed its own check have no question."
        )
    return [
        *found,
        "Only the document that a query was made from counts as right; others that answer it count as wrong. Use these "
        "figures to compare settings on these documents, not with other test sets; before a choice that matters, "
        "confirm it on queries that people asked.",
    ]


def _synthetic(comparison: Comparison) -> Iterator[str]:
    dataset = comparison.provenance["dataset"]
    if (made := dataset.get("synthetic")) is None:
        return
    heading, judged = "Synthetic test set: no person asked these queries", dataset["judged_queries"]
    if made["queries"] < judged:
        heading = f"Partly synthetic test set: no person asked {made['queries']:,} of the {judged:,} queries"
    kinds = made["kinds"].items()
    shares = ", ".join(f"{SOURCES.get(kind, f'kind {kind}')} ({count:,})" for kind, count in kinds)
    by = ", ".join([f"model {name}" for name in made["models"]] + [f"seed {seed}" for seed in made["seeds"]])
    yield (
        f"{heading}. A program made them from the documents: {shares}{f'; {by}' if by else ''}. They tend to favour "
        "techniques that match words."
    )


def _cut(comparison: Comparison) -> Iterator[str]:
    for cost in comparison.indexes.values():
        if cost.cut > CUT * cost.chunks:
            limit = comparison.provenance["embedder"]["max_tokens"]
            chunks = f"{numbered(cost.chunks, '[chunk|chunks]')} ({cost.chunking})"
            yield (
                f"{cost.cut:,} of {chunks} {agreeing(cost.cut, '[is|are]')} longer than the embedder's limit of "
                f"{limit:,} tokens: dense retrieval sees only the beginning, word matching sees all. In a library, "
                "which cuts to fit, the order may differ; try a smaller --chunk-size (in Python, chunk_size)."
            )


def _cutoffs(comparison: Comparison) -> Iterator[str]:
    """Measures that look at most of the corpus: any ranking does well on them."""
    documents = comparison.provenance["dataset"]["documents"]
    for measure in comparison.measures:
        name, _, cutoff = measure.partition("@")
        if name in ("R", "Success") and cutoff.isdecimal() and 2 * int(cutoff) > documents > 1:
            yield (
                f"{measure} looks at {min(int(cutoff), documents):,} of {documents:,} documents, so it hardly tells "
                "techniques apart; use a smaller cutoff."
            )


def _degraded(comparison: Comparison) -> Iterator[str]:
    """One sentence for each reason; reasons that differ only in numbers are one."""
    found: dict[str, tuple[str, dict[str, int]]] = {}
    for name, result in comparison.techniques.items():
        for reason, count in result.degraded.items():
            _, counts = found.setdefault(_shape(reason), (reason, {}))
            counts[name] = min(comparison.queries, counts.get(name, 0) + count)
    for kind, (reason, counts) in found.items():
        names = list(counts)
        similar = sum(_shape(one) == kind for one in comparison.techniques[names[0]].degraded)
        yield (
            f"{_named(names)} {'was' if len(names) == 1 else 'were'} degraded on "
            f"{'' if len(names) == 1 else 'up to '}{max(counts.values()):,} of "
            f"{numbered(comparison.queries, '[query|queries]')}: {'for example, ' if similar > 1 else ''}{reason}."
        )


def _shape(reason: str) -> str:
    """A reason without its numbers."""
    return re.sub(r"\d[\d.,]*", "#", reason)


def _outside(comparison: Comparison) -> Iterator[str]:
    found = {name: one for name, result in comparison.techniques.items() if (one := result.outside) is not None}
    if found:
        one = max(found.values(), key=lambda outside: outside.documents)
        yield (
            f"{_named(list(found))} returned {'' if len(found) == 1 else 'up to '}"
            f"{numbered(one.documents, '[document that is|documents that are]')} not in the corpus "
            f"({one.results:,} of {numbered(one.of, '[result|results]')}), such as {one.example!r}; "
            f"{agreeing(one.documents, '[it counts|they count]')} as not relevant."
        )


def _named(names: list[str]) -> str:
    more = f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
    return f"{', '.join(names[:NAMES])}{more}"


def _kept(comparison: Comparison) -> Iterator[str]:
    """Answers that were not computed now."""
    asking = comparison.provenance["asking"]
    if asking.get("replayed"):
        yield (
            f"Replayed: the models' answers come from {asking['replayed']}, and each call is charged the milliseconds "
            "that it took when it was recorded."
        )
    if asking.get("resumed_answers"):
        total = comparison.queries * len(comparison.provenance["techniques"])
        yield (
            f"Resumed: {asking['resumed_answers']:,} of {numbered(total, '[answer comes|answers come]')} from an "
            "earlier run of the same code and configuration, with the times measured then."
        )
    for name, reason in asking.get("never_resumed", {}).items():
        yield f"{name} is never resumed: {reason}."
