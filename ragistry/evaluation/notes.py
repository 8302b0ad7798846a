"""What a reader must know of a comparison beside its figures: every report says it, in these words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ragistry.utils.wording import agreeing, numbered

if TYPE_CHECKING:
    from ragistry.evaluation.result import Comparison, TechniqueResult


MANY = 0.1
"""Share of the chunks that a model sees only the beginning of, from which a reader is told."""


def notes(comparison: Comparison) -> list[str]:
    """One line each: what was cut, replayed, resumed, degraded, or returned from outside of the corpus."""
    found = [*_cut(comparison), *_kept(comparison)]
    for name, result in comparison.techniques.items():
        found += _of(name, result, comparison.queries)
    return found


def _cut(comparison: Comparison) -> Iterator[str]:
    """What a model does not see of the corpus."""
    for cost in comparison.indexes.values():
        if cost.cut > MANY * cost.chunks:
            limit = comparison.provenance["embedder"]["max_tokens"]
            chunks = f"{numbered(cost.chunks, '[chunk|chunks]')} ({cost.chunking})"
            yield (
                f"ATTENTION: {cost.cut:,} of {chunks} {agreeing(cost.cut, '[is|are]')} longer than the {limit:,} "
                "tokens that the embedder takes in: what searches by meaning knows only the beginning, what matches "
                "words the whole. A library cuts to fit, and the order may be another there; give a smaller "
                "--chunk-size (in Python, chunk_size)."
            )


def _kept(comparison: Comparison) -> Iterator[str]:
    """What was not asked now."""
    asking = comparison.provenance["asking"]
    if asking["replayed"]:
        yield (
            f"Replayed: the models' answers come from {asking['replayed']}, and each call is charged the milliseconds "
            "that it took when it was recorded."
        )
    if asking["resumed_answers"]:
        total = comparison.queries * len(comparison.provenance["techniques"])
        yield (
            f"Resumed: {asking['resumed_answers']:,} of {numbered(total, '[answer comes|answers come]')} from an "
            "earlier run of the same code and configuration, with the times that they took then."
        )
    for name, reason in asking["never_resumed"].items():
        yield (
            f"{name} is never resumed: nothing tells whether it is the same as before ({reason}); keep what decides "
            "its rankings as plain values, such as a `config`, in a class of a module."
        )
    for name, what in asking["not_seen"].items():
        yield (
            f"{name} is resumed whether or not this has changed, which has no plain value: {what}; give a new folder "
            "for runs where it decides rankings."
        )


def _of(name: str, result: TechniqueResult, queries: int) -> Iterator[str]:
    for reason, count in result.degraded.items():
        yield f"{name} was degraded on {count:,} of {numbered(queries, '[query|queries]')}: {reason}."
    if result.outside is not None:
        one = result.outside
        yield (
            f"{name} returned {numbered(one.documents, '[document that is|documents that are]')} not in the corpus "
            f"({one.results:,} of {numbered(one.of, '[result|results]')}), such as {one.example!r}; "
            f"{agreeing(one.documents, '[it counts|they count]')} as not relevant."
        )
