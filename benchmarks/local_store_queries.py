"""Searches and lists of `local_store`, on one size: unfiltered, filtered, counted."""

from __future__ import annotations

from contextlib import closing
from statistics import fmean, median
from typing import Any

import numpy as np
from chromadb.api.models.Collection import Collection
from numpy.typing import NDArray

from benchmarks.local_store_build import Built
from benchmarks.local_store_data import Truth
from benchmarks.local_store_row import Row, in_turn, milliseconds, ratio_row
from ragistry.stores.local import LocalStore

Queries = NDArray[np.float32]

TOP_K, QUERY = 10, 0.6
FILTERS = {"half": 1 / 20, "p5": 1 / 60, "p05": 1 / 60}
"""Collections, and what a repeated search of each may take of ChromaDB's time."""
ARBITRARY = {"page": {"$gte": 5}}, {"has_code": True}, {"start": {"$lt": 4000}}
"""Conditions on keys of single chunks, and what a repeated search may take."""
ARBITRARY_SHARE = 1 / 10
OTHER = "p1"
"""The collection that a store in use was searched in before."""
FILTER_ROUNDS = 15
REPEATED = 20
"""Searches of each round after the first: what is repeated is what it is in the long run."""
LIST_MS, LIST_SIZE = 5.0, 100_000
PAGE = 5_000


def ask(raw: Collection, query: Queries, where: Any = None) -> list[str]:
    """ChromaDB's answer to the same question, with all that a `Document` holds; its ids."""
    include: Any = ["documents", "metadatas", "distances"]
    return raw.query(query_embeddings=query.reshape(1, -1), n_results=TOP_K, where=where, include=include)["ids"][0]


def ids(store: LocalStore, query: Queries, where: Any = None) -> list[str]:
    return [document.id for document in store.search(query, TOP_K, where=where)]


def unfiltered_rows(built: Built, raw: Collection, queries: Queries, truth: Truth) -> list[Row]:
    """Without a condition, with recall."""
    theirs = fmean(truth.recall(query, ask(raw, query)) for query in queries)
    with closing(LocalStore(built.ours)) as store:
        times = in_turn(len(queries), lambda n: store.search(queries[n], TOP_K), lambda n: ask(raw, queries[n]))
        ours = fmean(truth.recall(query, ids(store, query)) for query in queries)
    row = ratio_row(f"{built.chunks:,}: query with documents", times[0], times[1], QUERY)
    return [row._replace(ours=f"{row.ours}, recall {ours:.4f}", raw=f"{row.raw}, recall {theirs:.4f}")]


def filtered_rows(built: Built, raw: Collection, queries: Queries, truth: Truth, name: str) -> list[Row]:
    """First: by a store in use that read nothing of the collection. Repeated: by one that has, open as long as raw."""
    where, other = {"collection": name}, {"collection": OTHER}
    opened, first, again, theirs, recalls = [], [], [], [], []
    with closing(LocalStore(built.ours)) as used:
        for number, query in enumerate(queries[:FILTER_ROUNDS]):
            with closing(LocalStore(built.ours)) as store:
                opened.append(milliseconds(store.search, query, TOP_K, where=where))
            with closing(LocalStore(built.ours)) as store:
                store.search(query, TOP_K, where=other)
                first.append(milliseconds(store.search, query, TOP_K, where=where))
                recalls.append(truth.recall(query, ids(store, query, where), name))
            again += [milliseconds(used.search, another, TOP_K, where=where) for another in queries[:REPEATED]]
            theirs.append(milliseconds(ask, raw, query, where))
            if number == 0:  # in vain: files that were not read for a while, and a matrix that was not kept
                for times in (opened, first, again, theirs):
                    times.clear()
    work = f"{built.chunks:,}: filtered by collection, {np.mean(truth.collections == name):.1%}"
    recall = fmean(recalls)
    row = ratio_row(f"{work}, repeated", again, theirs, FILTERS[name])
    return [
        ratio_row(f"{work}, first", first, theirs, None),
        ratio_row(f"{work}, first of a store that was just opened", opened, theirs, None),
        row._replace(ours=f"{row.ours}, recall {recall:.4f}", bar=f"{row.bar}, recall 1", met=row.met and recall == 1),
    ]


def arbitrary_rows(built: Built, raw: Collection, queries: Queries) -> list[Row]:
    """Under conditions on keys that differ from chunk to chunk."""
    rows = []
    with closing(LocalStore(built.ours)) as store:
        for where in ARBITRARY:
            first = milliseconds(store.search, queries[0], TOP_K, where=where)
            times = in_turn(
                7,
                lambda n, where=where: store.search(queries[n], TOP_K, where=where),
                lambda n, where=where: ask(raw, queries[n], where),
            )
            work = f"{built.chunks:,}: where {where}, repeated (first {first:.0f} ms)"
            rows.append(ratio_row(work, *times, ARBITRARY_SHARE))
    return rows


def list_rows(built: Built, raw: Collection, rounds: int) -> list[Row]:
    """Counting a collection, and the names of all sources."""
    where: Any = {"collection": "half"}

    def raw_sources() -> list[str]:
        names: set[Any] = set()
        for offset in range(0, built.chunks, PAGE):
            page = raw.get(limit=PAGE, offset=offset, include=["metadatas"])["metadatas"] or []
            names.update((metadata["collection"], metadata["source_file"]) for metadata in page)
        return sorted(names)

    with closing(LocalStore(built.ours)) as store:
        opened = milliseconds(store.sources)
        counted = in_turn(rounds, lambda _: store.count(where), lambda _: store.sources())
    theirs = [milliseconds(lambda: raw.get(where=where, include=[])) for _ in range(3)], [milliseconds(raw_sources)]
    bar = LIST_MS if built.chunks == LIST_SIZE else None
    names = ("count by collection", "list of sources")
    rows = [
        ratio_row(f"{built.chunks:,}: {name}", mine, other, None)._replace(
            bar=f"{bar:g} ms" if bar else "", met=median(mine) <= bar if bar else None
        )
        for name, mine, other in zip(names, counted, theirs, strict=True)
    ]
    return [*rows, Row(f"{built.chunks:,}: the same, first of a store that was just opened", f"{opened:.2f} ms")]
