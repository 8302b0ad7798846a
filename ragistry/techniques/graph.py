"""Multi-hop retrieval: adds passages that mention the same names and phrases as the results of the base."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ragistry.config.numbers import Number, Whole
from ragistry.config.problems import Configuration, parse_config
from ragistry.protocols import LibraryStore, Technique
from ragistry.techniques.built_in import TechniqueConfig, continued, rescored
from ragistry.techniques.derived import DerivedRows, Table, documents_meeting
from ragistry.techniques.entities import ENTITY, STAMP, entities
from ragistry.techniques.fusion import scaled
from ragistry.trace import degraded, stage
from ragistry.types import TOP_K_LIMIT, Document, Where, ranked

Numbers = NDArray[np.int64]
Masses = NDArray[np.float64]

SHARPNESS = 8
"""A seed's share of the walk is its scaled score to this power: the first seeds count much more than the last."""
BEAM = 100
"""Number of chunks with the largest mass from which a hop continues. It bounds the time of a query."""
LOOKED_AT = 500
"""Number of reached chunks, best first, that are tested against the condition; few of them may meet it."""


class GraphTechnique:
    """Multi-hop retrieval: adds passages that mention the same names and phrases as the results of the base.

    Gutiérrez, Shu, Gu, Yasunaga and Su, "HippoRAG: Neurobiologically Inspired Long-Term Memory for Large Language
    Models", 2024. Passages and what they mention are a graph; personalised PageRank over it, from what the query is
    about, finds a passage that answers the second half of a question and shares no word with it.

    Deviations: no language model extracts entities, so there are no triples and no synonym edges: capitalised names,
    phrases of two words, titles, headings and tags are the entities (`techniques.entities`). A walk begins at the first
    ``seeds`` documents of the base; beginning at the entities of the query found less on HotpotQA. PageRank is the
    power series ``sum of (1 - restart)^hop W^hop seeds`` up to ``hops`` hops, each from the `BEAM` best chunks only. An
    entity counts by its inverse document frequency (the paper's node specificity), and one of more than ``max_chunks``
    chunks is left out, because it connects everything.

    The score is ``(base + weight * walk) / (1 + weight)``: the base's score scaled to [0, 1] within its results, and
    the mass that the walk brings to a chunk, 1 for the largest. Chunks that do not meet ``where`` are never returned.
    The graph follows the store (`techniques.derived`). The base should return chunks of ``store``; if it returns none
    of them, its order is kept and the trace says ``degraded``.
    """

    class Config(TechniqueConfig):
        fetch: Whole = Field(default=100, ge=1, le=TOP_K_LIMIT, description="number of candidates taken from the base")
        seeds: Whole = Field(
            default=20, ge=1, le=TOP_K_LIMIT, description="number of documents of the base where walks start"
        )
        hops: Whole = Field(default=2, ge=1, le=4, description="the longest walk, from chunk to chunk")
        restart: Number = Field(default=0.5, gt=0, lt=1, description="factor by which each further hop counts less")
        weight: Number = Field(
            default=0.4, ge=0, le=10, description="weight of the walk; the base's score has weight 1"
        )
        max_chunks: Whole = Field(default=20, ge=2, description="entities in more chunks than this are left out")

    def __init__(
        self, config: Configuration, *, base: Technique, store: LibraryStore, folder: Path | None = None
    ) -> None:
        self.config = parse_config(self.Config, config, type(self).__name__)
        self.base = base
        self.store = store
        self.rows = DerivedRows(
            store, entities, name="graph", stamp=STAMP, empty=np.zeros(0, dtype=ENTITY), folder=folder
        )
        self._graph: Graph | None = None

    def retrieve(self, query: str, *, top_k: int | None = None, where: Where | None = None) -> list[Document]:
        wanted = self.config.checked_limit(query, top_k)
        ranking = self.base.retrieve(query, top_k=max(wanted, self.config.fetch), where=where)
        found = ranking[: self.config.fetch]
        if not found:
            return found
        with stage("graph") as this:
            this.documents_in = len(found)
            graph = self._current()
            shares = scaled([one.score for one in found])
            seeds = [(one, share) for one, share in zip(found, shares, strict=True) if one.id in graph.chunk]
            seeds = seeds[: self.config.seeds]
            if not seeds:
                degraded("the documents of the base are not in the store; their order is kept")
            gain = self._gain(graph, seeds)
            gains = [float(gain[graph.chunk[one.id]]) if one.id in graph.chunk else 0.0 for one in found]
            total = self._score(np.array(shares), np.array(gains)).tolist()
            scores = {one.id: score for one, score in zip(found, total, strict=True)}
            best = sorted(found, key=lambda one: (-scores[one.id], one.id))[:wanted]
            best = [rescored(one, "graph", "pagerank", scores[one.id]) for one in best]
            worst = best[-1].score if len(best) == wanted else 0.0
            reached = self._reached(graph, gain, scores, worst, where)
            documents = continued(ranked([*best, *islice(reached, wanted)])[:wanted], ranking, "graph", wanted)
            this.documents_out = len(documents)
        return documents

    def _current(self) -> Graph:
        table = self.rows.table()
        graph = self._graph
        if graph is None or graph.table is not table:
            graph = self._graph = Graph(table, self.config.max_chunks)
        return graph

    def _gain(self, graph: Graph, seeds: Sequence[tuple[Document, float]]) -> Masses:
        """Compute the mass that the walk brings to each chunk of the store: ``(n,)``, 1 for the largest."""
        mass = np.array([share for _, share in seeds]) ** SHARPNESS
        rows = np.array([graph.chunk[one.id] for one, _ in seeds], dtype=np.int64)
        reached, arrived = graph.walk(rows, mass / max(mass.sum(), 1e-12), self.config.hops, 1 - self.config.restart)
        gain = np.zeros(len(graph.table.ids))
        gain[reached] = arrived / max(arrived.max(initial=0.0), 1e-12)
        return gain

    def _score(self, base: Masses, gain: Masses) -> Masses:
        return (base + self.config.weight * gain) / (1 + self.config.weight)

    def _reached(
        self, graph: Graph, gain: Masses, scores: Mapping[str, float], worst: float, where: Where | None
    ) -> Iterator[Document]:
        """Read the chunks that the base did not find and that score above ``worst``, best first."""
        own = self._score(np.zeros(len(gain)), gain)
        rows = np.flatnonzero(own > worst)
        reached = {graph.table.ids[row]: score for row, score in zip(rows.tolist(), own[rows].tolist(), strict=True)}
        ids = sorted(reached.keys() - scores.keys(), key=lambda id: (-reached[id], id))[:LOOKED_AT]
        return (
            rescored(one, "graph", "pagerank", reached[one.id]) for one in documents_meeting(self.store, ids, where)
        )


class Graph:
    """Chunks and the entities that they mention, as two sparse matrices that spread mass from one to the other."""

    def __init__(self, table: Table, max_chunks: int) -> None:
        self.table = table
        self.chunk = {id: row for row, id in enumerate(table.ids)}
        chunk = np.repeat(np.arange(len(table.ids)), np.diff(table.starts))
        keys, entity, counts = np.unique(table.rows["key"], return_inverse=True, return_counts=True)
        shared = (counts >= 2) & (counts <= max_chunks)
        kept = shared[entity]
        chunk, entity = chunk[kept], (np.cumsum(shared) - 1)[entity[kept]]
        self.keys = keys[shared]
        weight = table.rows["weight"][kept] * np.log1p(len(table.ids) / counts[shared])[entity]
        self.of_chunk = Links(chunk, entity, weight, len(table.ids))
        self.of_entity = Links(entity, chunk, weight, len(self.keys))

    def walk(self, rows: Numbers, mass: Masses, hops: int, damping: float) -> tuple[Numbers, Masses]:
        """Return the chunks reached from ``rows`` ``(n,)`` with ``mass`` ``(n,)``, and the mass that reaches each."""
        reached: list[tuple[Numbers, Masses]] = [(np.zeros(0, np.int64), np.zeros(0))]
        for _ in range(hops):
            strongest = np.argsort(-mass, kind="stable")[:BEAM]
            rows, mass = self.of_entity.spread(*self.of_chunk.spread(rows[strongest], damping * mass[strongest]))
            reached.append((rows, mass))
        return _summed(*(np.concatenate(parts) for parts in zip(*reached, strict=True)))


class Links:
    """A sparse matrix: from each of ``size`` sources its targets, with shares that sum to 1."""

    def __init__(self, sources: Numbers, targets: Numbers, weights: Masses, size: int) -> None:
        order = np.argsort(sources, kind="stable")
        sources, weights = sources[order], weights[order]
        self.targets = targets[order]
        self.shares = weights / np.maximum(np.bincount(sources, weights, size), 1e-12)[sources]
        self.starts = np.concatenate([[0], np.cumsum(np.bincount(sources, minlength=size))])

    def entries(self, rows: Numbers) -> tuple[Numbers, Numbers]:
        """Return the positions of all links from ``rows``, and for each the position of its row in ``rows``."""
        lengths = self.starts[rows + 1] - self.starts[rows]
        owner = np.repeat(np.arange(len(rows)), lengths)
        before = np.cumsum(lengths) - lengths
        return self.starts[rows][owner] + np.arange(len(owner)) - before[owner], owner

    def spread(self, rows: Numbers, mass: Masses) -> tuple[Numbers, Masses]:
        """Spread the mass at ``rows``: return its targets, each once and ascending, and the mass of each."""
        links, owner = self.entries(rows)
        return _summed(self.targets[links], self.shares[links] * mass[owner])


def _summed(rows: Numbers, mass: Masses) -> tuple[Numbers, Masses]:
    """Return each row once, ascending, with the sum of its masses."""
    found, position = np.unique(rows, return_inverse=True)
    return found, np.bincount(position, mass, len(found)).astype(np.float64)
