"""Searching the targets that were chosen: those of one store at once, every other by itself, fused by rank."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from functools import partial

from ragistry.errors import ModelError, StoreError
from ragistry.protocols import Technique
from ragistry.techniques.routing.target import Reachable
from ragistry.trace import degraded, stage
from ragistry.types import Document, Where, ranked
from ragistry.utils.fusion import Ranking, reciprocal_rank_fusion
from ragistry.utils.where import matches, normalise

BETWEEN = "\x1f"
"""Between the name of a target and the id of one of its documents, while rankings of several stores are fused."""


def search_targets(
    query: str, chosen: Sequence[Reachable], base: Technique, top_k: int, where: Where | None
) -> list[Document]:
    """The best documents of the chosen targets.

    Targets that share the base's store are one search of it, whose scores compare. Every other one is searched by its
    own technique, all at the same time, and the rankings are fused by rank. One that cannot be reached is named in
    the trace, and the others are served; where none is left, what the first of them raised is raised.
    """
    shared = [item for item in chosen if item.target.technique is None]
    calls: list[tuple[str, Callable[[], list[Document]]]] = []
    if shared:
        names = ", ".join(item.target.name for item in shared)
        calls.append((names, partial(base.retrieve, query, top_k=top_k, where=within(shared, where))))
    calls += [
        (item.target.name, partial(_by_itself, query, item, item.target.technique, top_k, where))
        for item in chosen
        if item.target.technique is not None
    ]
    if len(calls) == 1:
        return calls[0][1]()
    return _fused(calls, top_k)


def within(shared: Sequence[Reachable], where: Where | None) -> Where:
    """The condition that leaves just these targets of a store, and of them what the caller may see."""
    if any(item.target.where for item in shared):
        limit: Where = {"$or": [item.target.condition for item in shared]}
    else:  # the same, but a store can look it up at once
        names = [item.target.name for item in shared]
        limit = {"collection": {"$eq": names[0]} if len(names) == 1 else {"$in": names}}
    if where is not None:
        limit = {"$and": [where, limit]}
    return normalise(limit)


def _by_itself(query: str, item: Reachable, technique: Technique, top_k: int, where: Where | None) -> list[Document]:
    """What a target with a technique of its own finds, with its name on each document, as far as a caller may see."""
    parts = [part for part in (item.where, item.target.condition) if part is not None]
    condition = normalise({"$and": parts}) if parts else None
    found = technique.retrieve(query, top_k=top_k, where=condition)
    named = [replace(document, metadata=document.metadata | item.target.facts) for document in found]
    return [document for document in named if where is None or matches(where, document.metadata)]


def _fused(calls: Sequence[tuple[str, Callable[[], list[Document]]]], top_k: int) -> list[Document]:
    rankings: list[Ranking] = []
    failures: list[ModelError | StoreError] = []
    with ThreadPoolExecutor(len(calls), thread_name_prefix="route") as pool:
        pending = [(name, pool.submit(copy_context().run, call)) for name, call in calls]
    for name, future in pending:
        try:
            rankings.append([replace(found, id=f"{name}{BETWEEN}{found.id}") for found in future.result()])
        except (ModelError, StoreError) as error:
            failures.append(error)
            degraded(f"{name} was not searched: {error}")
    if failures and not rankings:
        raise failures[0]
    with stage("fuse", fusion="rrf") as this:
        this.documents_in = sum(map(len, rankings))
        best = reciprocal_rank_fusion(rankings, top_k=top_k, stage="collection_routed")
        this.documents_out = len(best)
    return ranked(replace(found, id=found.id.partition(BETWEEN)[2]) for found in best)
