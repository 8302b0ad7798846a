"""Asking a technique one query: its ranking of documents, and what that cost."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from time import perf_counter

from ragistry.evaluation.answers import EXPLAINED, Answer, is_finite, ranking_of, routes, stage_name, stage_times
from ragistry.evaluation.charges import charged
from ragistry.evaluation.contenders import Contender
from ragistry.evaluation.dataset import Dataset
from ragistry.evaluation.vectors import KeptVectors
from ragistry.trace import collect
from ragistry.types import TOP_K_LIMIT, Document, Stage

WARM_UP = 5
"""Queries that each technique is asked first, and whose answers do not count."""


@dataclass(frozen=True)
class Asking:
    """What is asked, and how: for ``depth`` documents, without the one whose id is the query's if ``drop_query``.

    ArguAna is measured so: there each query is a document, too.
    """

    dataset: Dataset
    depth: int
    vectors: KeptVectors | None = None
    drop_query: bool = False
    seed: int = 0
    warm_up: int = WARM_UP

    @cached_property
    def known(self) -> set[str]:
        """The ids of the corpus."""
        return {document.id for document in self.dataset.corpus}


def ask(contender: Contender, query: str, asking: Asking) -> Answer:
    """The answer to one query; as many chunks are asked for as it takes to fill the depth with documents.

    Time, calls and tokens are those of the retrieval that gave the ranking.
    """
    documents = asking.depth + asking.drop_query  # the one that is dropped comes on top
    wanted = min(TOP_K_LIMIT, math.ceil(documents * contender.chunks_per_document))
    while True:
        if asking.vectors is not None:
            asking.vectors.begin()
        with collect() as trace:
            start = perf_counter()
            chunks = contender.technique.retrieve(
                asking.dataset.queries[query], top_k=None if contender.own_top_k else wanted
            )
            elapsed = (perf_counter() - start) * 1000
        best = ranking_of(contender.name, chunks, asking.known, qualified=contender.qualified)
        if asking.drop_query:
            best.pop(query, None)
        if len(best) >= asking.depth or len(chunks) < wanted or wanted == TOP_K_LIMIT or contender.own_top_k:
            shown = dict(list(best.items())[: asking.depth])
            return _answer(query, shown, elapsed, trace.stages(), asking.dataset.qrels[query])
        wanted = min(TOP_K_LIMIT, wanted * 2)


def _answer(
    query: str, best: dict[str, Document], elapsed: float, stages: tuple[Stage, ...], grades: Mapping[str, int]
) -> Answer:
    explained = [*list(best)[:EXPLAINED], *(id for id, grade in grades.items() if grade > 0 and id in best)]
    return Answer(
        query=query,
        ranking=[(id, float(chunk.score)) for id, chunk in best.items()],
        ms=elapsed + charged(stages),
        calls=sum(stage.model_calls for stage in stages),
        tokens=sum(stage.tokens for stage in stages),
        stages=stage_times(stages),
        scores={
            id: {stage_name(score): float(score.value) for score in best[id].scores if is_finite(score.value)}
            for id in dict.fromkeys(explained)
        },
        route=routes(stages),
        degraded=[stage.degraded for stage in stages if stage.degraded],
    )
