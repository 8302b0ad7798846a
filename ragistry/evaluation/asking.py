"""Ask every technique every query: rankings of documents, passages, and the cost of a search.

A ranking for the measures is much deeper than a search, and its cost means nothing to a user. So each query is asked
twice: as a search for the technique's own number of results, whose time, calls and tokens count, and for the ranking.

Techniques take turns, so that other load on the machine affects all of them equally. Over an index they return opaque
source names (`systems.index`), which are translated back here.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from random import Random
from statistics import median
from time import perf_counter, process_time
from typing import Any

from ragistry.errors import EvaluationError, TechniqueError
from ragistry.evaluation.data.dataset import Dataset, Run
from ragistry.evaluation.figures import IndexCost, TechniqueFailure
from ragistry.evaluation.systems.foreign import rankings_of
from ragistry.evaluation.systems.recorded_answers import CACHED, CHARGED, CHARGED_CPU, AnswerStore, charged
from ragistry.evaluation.systems.systems import System
from ragistry.trace import collect
from ragistry.types import TOP_K_LIMIT, Document, Progress, Ranking, Stage, StageScore, is_outside
from ragistry.utils.wording import numbered

CUTOFF = 10
"""Number of results whose scores are kept."""
WARM_UP = 5
"""Number of warm-up queries for each technique; their rankings do not count."""
TIMED, TIMING_REPEATS, TIMING_MS = 50, 3, 20_000
"""Timed queries: how many, how often each is repeated, and the time limit in milliseconds for each technique."""
ITSELF = "itself"
"""Name for the time of a technique outside its stages."""


@dataclass(frozen=True, slots=True)
class QueryRanking:
    """What a technique returned for one query, and the cost of a search for the technique's own number of results.

    Attributes:
        query: Id of the query.
        documents: Documents and scores, best first, to the depth of the comparison.
        ms: Wall time of a search; the median if it was repeated.
        cpu_ms: CPU time; the median likewise.
        calls: Number of calls of models.
        tokens: Number of tokens that models read.
        returned_tokens: Tokens of the texts that the search returned.
        shallow: Number of results → documents of a search for so many, of a technique whose first results depend on
            their number.
        stages: Milliseconds of each stage without the stages inside it, in the order in which they began. The sum is
            about ``ms``.
        scores: Scores that each stage gave to the first and to the relevant documents.
        route: Details of the stages that chose where to search.
        degraded: Reasons why the result is worse than usual.
        passages: (document, start, end) of each result that has offsets, best first.
        kept: An answer of an earlier comparison was used. Its time then is part of ``ms``.
    """

    query: str
    documents: list[tuple[str, float]]
    ms: float
    cpu_ms: float = 0.0
    calls: int = 0
    tokens: int = 0
    returned_tokens: int = 0
    stages: dict[str, float] = field(default_factory=dict)
    shallow: dict[str, list[tuple[str, float]]] = field(default_factory=dict)
    scores: dict[str, dict[str, float]] = field(default_factory=dict)
    route: list[dict[str, Any]] = field(default_factory=list)
    degraded: list[str] = field(default_factory=list)
    passages: list[tuple[str, int, int]] = field(default_factory=list)
    kept: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """What a technique found for one query.

    Attributes:
        best: Document → its first chunk, best first: a result, or its key in ``ranking``.
        chunks: All results that were read.
        ranking: The ranking of the keys.
        stages: The stages of the search.
    """

    best: dict[str, Any]
    chunks: Sequence[Document] = ()
    ranking: Ranking | None = None
    stages: Sequence[Stage] = ()

    @property
    def documents(self) -> list[tuple[str, float]]:
        """The documents and their scores."""
        scores = None if self.ranking is None else self.ranking.scores
        return [(id, float(one.score if scores is None else scores[one])) for id, one in self.best.items()]

    def stage_scores(self, id: str) -> Sequence[StageScore]:
        """Return the scores of all stages for a document."""
        one = self.best[id]
        scores: Sequence[StageScore] = one.scores if self.ranking is None else self.ranking.stage_scores(one)
        return scores


@dataclass
class Asking:
    """The queries to ask, and the rankings that came back.

    Attributes:
        dataset: The test set.
        depth: Number of documents of a ranking; of passages if answers are spans.
        seed: Seed of the order in which techniques take turns.
        timing_repeats: How often some queries are repeated to measure their time.
        cutoffs: Numbers of results below the depth at which measures end.
        answers: The answers of models, if any are kept.
        progress: Called before each query.
        rankings: Technique → query → ranking, of the techniques that answered all queries.
        failures: Why the other techniques did not.
        untimed: Techniques whose costs are unknown.
        indexes: Name of an index → its cost.
        collections: Technique → document → its collection, to find what a route left out.
    """

    dataset: Dataset
    depth: int
    seed: int = 0
    timing_repeats: int = TIMING_REPEATS
    cutoffs: Sequence[int] = ()
    answers: AnswerStore | None = None
    progress: Progress | None = None
    rankings: dict[str, dict[str, QueryRanking]] = field(default_factory=dict)
    failures: dict[str, TechniqueFailure] = field(default_factory=dict)
    untimed: set[str] = field(default_factory=set)
    indexes: dict[str, IndexCost] = field(default_factory=dict)
    collections: dict[str, Mapping[str, str]] = field(default_factory=dict)
    _units: dict[tuple[object, int], dict[int, str]] = field(default_factory=dict)

    @cached_property
    def known(self) -> set[str]:
        """The ids of the corpus."""
        return {document.id for document in self.dataset.corpus}

    @cached_property
    def documents(self) -> set[str]:
        """The queries that are documents, too, with their id and text, and not judged for themselves.

        These are dropped from their own rankings, as in the published results of ArguAna.
        """
        texts = {one.id: " ".join(one.whole.split()) for one in self.dataset.corpus if one.id in self.dataset.judged}
        return {
            query
            for query, text in self.dataset.judged.items()
            if " ".join(text.split()) in texts.get(query, "") and query not in self.dataset.qrels[query]
        }

    def run(self, systems: Sequence[System]) -> None:
        """Ask every system every judged query, each time in a new random order; repeat some queries.

        A system that raises is not asked again; the others finish.
        """
        queries, asked = list(self.dataset.judged), [one for one in systems if one.run is None]
        for one in systems:
            if one.run is not None:
                self.untimed.add(one.name)
                self._take_run(one.name, one.run)
            if one.index is not None:
                self.indexes[one.index.cost.name] = one.index.cost
                self.collections[one.name] = one.index.collection_of
        self.rankings |= {one.name: {} for one in asked}
        for query in queries[:WARM_UP]:
            for system in asked:
                self._try(system, query, search_only=True)
        spent: Counter[str] = Counter()
        done, total = 0, len(asked) * len(queries)
        for number, query in enumerate(queries):
            measured: dict[str, list[QueryRanking]] = {}
            for repeat in range(1 + (self.timing_repeats if number < TIMED else 0)):
                for system in Random(f"{self.seed}/{query}/{repeat}").sample(asked, len(asked)):
                    if repeat and spent[system.name] > TIMING_MS:
                        continue
                    if not repeat:
                        self.report(done, total)
                        done += 1
                    if ranking := self._try(system, query, search_only=repeat > 0):
                        measured.setdefault(system.name, []).append(ranking)
                        spent[system.name] += round(ranking.ms) if repeat else 0
            for name, times in measured.items():
                middle = sorted(times, key=lambda one: one.ms)[len(times) // 2]
                self.rankings[name][query] = replace(
                    times[0],
                    ms=median(one.ms for one in times),
                    cpu_ms=median(one.cpu_ms for one in times),
                    stages=middle.stages,
                )
        self.report(total, total)
        self.drop_failed()

    def _take_run(self, name: str, run: Run) -> None:
        """Take the rankings of a run, which cost nothing here."""
        try:
            if self.dataset.spans:
                raise EvaluationError("a run ranks documents, and the answers of the test set are passages")
            found = rankings_of(run, self.dataset)
        except (TechniqueError, EvaluationError) as error:
            self.failures[name] = failure(error)
            return
        self.rankings[name] = {
            query: QueryRanking(
                query,
                self.joined([hit for hit in hits if hit[0] != query or query not in self.documents])[: self.depth],
                0.0,
            )
            for query, hits in found.items()
        }

    def report(self, done: int, total: int) -> None:
        """Report progress."""
        if self.progress is not None:
            self.progress("asking", done, total)

    def _try(self, system: System, query: str, *, search_only: bool = False) -> QueryRanking | None:
        if system.name in self.failures:
            return None
        try:
            return self.search(system, query) if search_only else self.ask(system, query)
        except Exception as error:  # noqa: BLE001, third-party code: the report shows its exceptions
            self.failures[system.name] = failure(error, query)
            return None

    def drop_failed(self) -> None:
        """Remove techniques that failed, or whose results are all outside of the corpus."""
        for name, rankings in self.rankings.items():
            found = {id for ranking in rankings.values() for id, _ in ranking.documents}
            if found and self.known.isdisjoint(found) and name not in self.failures:
                error = TechniqueError(
                    f"none of its results is in the corpus ({numbered(len(found), '[document|documents]')}, such as "
                    f"{min(found)!r}); set the metadata `source_file` of a result, or its id, to the document's id "
                    "in the test set"
                )
                self.failures[name] = failure(error)
        for name in self.failures.keys() & self.rankings.keys():
            del self.rankings[name]

    def search(self, system: System, query: str) -> QueryRanking:
        """Search as a user does, for the technique's own number of results; return the cost, without documents."""
        if self.answers is not None:
            self.answers.charged.clear()
        with collect() as trace:
            start, cpu = perf_counter(), process_time()
            chunks = system.technique.retrieve(self.dataset.queries[query], top_k=system.search_top_k)
            ms, cpu_ms = (perf_counter() - start) * 1000, (process_time() - cpu) * 1000
        stages = trace.stages()
        return QueryRanking(
            query=query,
            documents=[],
            ms=ms + charged(stages),
            cpu_ms=max(0.0, cpu_ms + charged(stages, CHARGED_CPU)),
            calls=sum(stage.model_calls for stage in stages),
            tokens=sum(stage.tokens for stage in stages),
            returned_tokens=sum(map(_tokens, chunks)),
            stages=stage_times(stages),
            degraded=[stage.degraded for stage in stages if stage.degraded],
            kept=any(stage.detail.get(CACHED) for stage in stages),
        )

    def ask(self, system: System, query: str) -> QueryRanking:
        """Search for the cost, then ask for the ranking, once for each depth if that changes the first results."""
        searched = self.search(system, query)
        found = self._ranking(system, query, self.depth)
        shallow = {}
        if not (system.technique.stable_order or system.own_top_k):
            shallow = {str(depth): self._ranking(system, query, depth).documents for depth in self.cutoffs}
        relevant = [id for id, grade in self.dataset.qrels[query].items() if grade > 0 and id in found.best]
        return replace(
            searched,
            documents=found.documents,
            shallow=shallow,
            scores={
                id: {stage_name(score): float(score.value) for score in scores if math.isfinite(score.value)}
                for id in dict.fromkeys([*islice(found.best, CUTOFF), *relevant])
                for scores in [found.stage_scores(id)]
            },
            route=json.loads(
                json.dumps([dict(stage.detail) for stage in found.stages if "chosen" in stage.detail], default=str)
            ),
            degraded=list(dict.fromkeys([*searched.degraded, *(one.degraded for one in found.stages if one.degraded)])),
            passages=list(self._passages(system, found.chunks[: self.depth])) if self.dataset.spans else [],
        )

    def _ranking(self, system: System, query: str, depth: int) -> Asked:
        """Ask for results until they are of ``depth`` documents; a technique without a stable order is asked once.

        A technique that can rank is asked for keys and places of chunks, and reads no texts.
        """
        spans, stable = bool(self.dataset.spans), system.technique.stable_order
        is_document = query in self.documents
        documents = depth + is_document  # one more for the document that is dropped
        per_document = system.chunks_per_document if stable and not spans else 1.0
        wanted = min(TOP_K_LIMIT, math.ceil(documents * per_document))
        while True:
            if self.answers is not None:
                self.answers.charged.clear()
            with collect() as trace:
                found = None if spans or system.own_top_k else self._identified(system, query, wanted)
                if found is None:
                    top_k = None if system.own_top_k else wanted
                    chunks = system.technique.retrieve(self.dataset.queries[query], top_k=top_k)
                    best: dict[str, Any] = {}
                    for chunk in chunks:
                        best.setdefault(self._unit(document_of(chunk, self.known, system)), chunk)
                    found = Asked(best, chunks)
            number = len(found.chunks if found.ranking is None else found.ranking.scores)
            if is_document:
                found.best.pop(query, None)
            enough = len(found.best) >= depth or number < wanted or wanted == TOP_K_LIMIT
            if enough or system.own_top_k or spans or not stable:
                return replace(found, best=dict(islice(found.best.items(), depth)), stages=trace.stages())
            wanted = min(TOP_K_LIMIT, wanted * 2)

    def _identified(self, system: System, query: str, top_k: int) -> Asked | None:
        """Rank without reading texts; None if the technique cannot, or a chunk belongs to no source."""
        if system.index is None or not system.technique.can_rank:
            return None
        if (ranking := system.technique.rank(self.dataset.queries[query], top_k, None)) is None:
            return None
        units = self._units.setdefault(ranking.snapshot, {})
        new = [key for key in ranking.scores if key not in units]
        if (places := ranking.places(new)) is None:
            return None
        for key in new:
            place = places[key]
            if place.source_file is None:
                return None
            metadata = {"collection": place.collection or "", "source_file": place.source_file}
            units[key] = self._unit(document_of(Document("", metadata, 0.0, place.id), self.known, system))
        best: dict[str, Any] = {}
        for key in ranking.scores:
            best.setdefault(units[key], key)
        return Asked(best, ranking=ranking)

    def _unit(self, document: str) -> str:
        """Return the first document with the same text."""
        return self.dataset.first_copy.get(document, document)

    def joined(self, hits: Iterable[tuple[str, float]]) -> list[tuple[str, float]]:
        """Drop documents with the text of an earlier one."""
        found: dict[str, float] = {}
        for document, score in hits:
            found.setdefault(self._unit(document), score)
        return list(found.items())

    def _passages(self, system: System, chunks: Iterable[Document]) -> Iterator[tuple[str, int, int]]:
        for chunk in chunks:
            start, end = chunk.metadata.get("start"), chunk.metadata.get("end")
            if type(start) is int and type(end) is int:
                document = self._unit(document_of(chunk, self.known, system))
                before = self.dataset.starts.get(document, 0)
                yield document, start - before, end - before


def failure(error: Exception, query: str = "") -> TechniqueFailure:
    """Describe why a technique cannot be compared, in one line."""
    said = " ".join(str(error).split())
    return TechniqueFailure(query, f"{type(error).__name__}: {said}" if said else repr(error))


def document_of(chunk: Document, known: Container[str], system: System) -> str:
    """Return the id of the document to which a result belongs.

    It is the first of these that is in ``known``: ``collection`` and ``source_file`` (``notes/tea.md``),
    ``source_file`` alone, the id of the result. Over the index of a test set ``source_file`` comes first, because an
    id may begin with the name of a collection and a slash, too. A document from outside the library is none of these.
    """
    if is_outside(chunk):
        return f"outside: {chunk.id}"
    source = str(chunk.metadata.get("source_file", chunk.id))
    names = [f"{chunk.metadata.get('collection', '')}/{source}", source, chunk.id]
    if system.index is not None:
        source = system.index.names.get(source, source)
        qualified = f"{chunk.metadata.get('collection', '')}/{source}"
        names = [qualified, source, chunk.id] if system.index.contents else [source, qualified, chunk.id]
    return next((name for name in names if name in known), source)


def _tokens(chunk: Document) -> int:
    """Return the tokens counted at ingest if the text is unchanged, else a quarter of its characters."""
    get = chunk.metadata.get
    count, start, end = get("token_count"), get("start"), get("end")
    own = "chunk_indexes" not in chunk.metadata and (start is None or end is None or end - start == len(chunk.content))
    return count if type(count) is int and own else len(chunk.content) // 4


def stage_times(stages: Sequence[Stage]) -> dict[str, float]:
    """Return the milliseconds of each stage by its path below the technique, without its inner stages."""
    own: dict[str, float] = {}
    path: list[str] = []
    for stage in stages:
        del path[stage.depth :]
        inside = CHARGED in stage.detail
        if not inside:
            path.append(stage.name)
        name, parent = " > ".join(path[1:]) or ITSELF, " > ".join(path[1:-1]) or ITSELF
        own[name] = own.get(name, 0.0) + (stage.detail[CHARGED] if inside else stage.ms)
        if len(path) > 1 and not inside:
            own[parent] = own.get(parent, 0.0) - stage.ms
    return {name: max(0.0, ms) for name, ms in own.items()}


def stage_name(score: StageScore) -> str:
    """Name the stage that gave a score, and its kind: ``dense cosine``, ``bm25``."""
    return score.stage if score.stage == score.kind else f"{score.stage} {score.kind}"
