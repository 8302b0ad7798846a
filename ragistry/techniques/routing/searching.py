"""Search the chosen targets: those in one store together, others separately, fused by rank."""

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
"""Separator of target name and document id while rankings of several stores are fused."""


def search_targets(
    query: str, chosen: Sequence[Reachable], base: Technique, top_k: int, where: Where | None
) -> list[Document]:
    """The best documents of the chosen targets.

    Targets in the base's store are searched together, so that their scores are comparable. Others are searched by their
    own techniques in parallel, and the rankings are fused by rank. The trace names targets that cannot be reached; if
    none can, the first error is raised.
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
    """The condition for these targets of a store, limited to what the caller may see."""
    if any(item.target.where for item in shared):
        limit: Where = {"$or": [item.target.condition for item in shared]}
    else:  # the same condition, in a form that stores look up quickly
        names = [item.target.name for item in shared]
        limit = {"collection": {"$eq": names[0]} if len(names) == 1 else {"$in": names}}
    if where is not None:
        limit = {"$and": [where, limit]}
    return normalise(limit)


def _by_itself(query: str, item: Reachable, technique: Technique, top_k: int, where: Where | None) -> list[Document]:
    """The results of a target with its own technique, named on each document, limited to what the caller may see."""
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
