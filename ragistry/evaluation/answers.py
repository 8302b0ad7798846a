"""Ask every technique every query: rankings of documents, passages, and their cost.

Techniques take turns, so that other load on the machine affects all of them equally. They return opaque source names
(`systems.masking`), which are translated back here.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from random import Random
from statistics import median
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

from ragistry.errors import TechniqueError
from ragistry.evaluation.data.dataset import Dataset
from ragistry.evaluation.result import Failure
from ragistry.evaluation.systems.systems import System
from ragistry.evaluation.systems.vectors import CACHED, CHARGED, CHARGED_CPU, KeptVectors, charged
from ragistry.trace import collect
from ragistry.types import TOP_K_LIMIT, Document, Progress, Stage, StageScore
from ragistry.utils.wording import numbered

if TYPE_CHECKING:
    from ragistry.evaluation.outputs import AnswerFile

BATCH = 20
"""Number of queries after which answers are saved; a killed process loses at most these."""
CUTOFF = 10
"""Number of results whose scores and lengths are kept."""
WARM_UP = 5
"""Number of warm-up queries for each technique; their answers do not count."""
TIMED, TIMING_REPEATS, TIMING_MS = 50, 3, 20_000
"""Timed queries: how many, how often each is repeated, and the time limit in milliseconds for each technique."""
ITSELF = "itself"
"""Name for the time of a technique outside its stages."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One ranking of documents, best first, and its cost.

    ``ms`` and ``cpu_ms``: wall and CPU time; the median if the query was asked several times. ``calls`` and
    ``tokens``: of models. ``returned_tokens``: of the first `CUTOFF` texts. ``stages``: milliseconds of each stage
    without the stages inside it, in the order in which they began, so that their sum is about ``ms``. ``scores``: of
    the first and of the relevant documents, what each stage gave them. ``route``: details of the stages that chose
    where to search. ``passages``: (document, start, end) of each result that has offsets, best first.
    ``embedding_cached``: a vector was computed by an earlier comparison, and its time then is part of ``ms``.
    """

    query: str
    ranking: list[tuple[str, float]]
    ms: float
    cpu_ms: float = 0.0
    calls: int = 0
    tokens: int = 0
    returned_tokens: int = 0
    stages: dict[str, float] = field(default_factory=dict)
    scores: dict[str, dict[str, float]] = field(default_factory=dict)
    route: list[dict[str, Any]] = field(default_factory=list)
    degraded: list[str] = field(default_factory=list)
    passages: list[tuple[str, int, int]] = field(default_factory=list)
    embedding_cached: bool = False


@dataclass
class Asking:
    """The queries to ask, and the answers.

    Rankings have ``depth`` documents, without the one whose id is the query's if ``drop_query`` (ArguAna is measured
    so: there each query is a document, too); where answers are spans, ``depth`` passages. ``files``: technique → the
    file that keeps its answers. ``answers``: of the techniques that answered all queries; ``failures``: why the others
    did not. ``resumed``: how many answers were taken from files.
    """

    dataset: Dataset
    depth: int
    drop_query: bool = False
    seed: int = 0
    timing_repeats: int = TIMING_REPEATS
    embedder: KeptVectors | None = None
    files: Mapping[str, AnswerFile] = field(default_factory=dict)
    progress: Progress | None = None
    answers: dict[str, dict[str, Answer]] = field(default_factory=dict)
    failures: dict[str, Failure] = field(default_factory=dict)
    resumed: int = 0

    @cached_property
    def known(self) -> set[str]:
        """The ids of the corpus."""
        return {document.id for document in self.dataset.corpus}

    def run(self, systems: Sequence[System]) -> None:
        """Ask every system every judged query, each time in a new random order; some queries are asked repeatedly.

        A system that raises is not asked again; the others finish. Its kept answers are dropped, because they may be
        wrong for the same reason.
        """
        queries = list(self.dataset.judged)
        waiting = self.resume(systems)
        done, total = self.resumed, len(systems) * len(queries)
        for query in queries[:WARM_UP]:
            for system in waiting:
                self._try(system, query)
        spent: Counter[str] = Counter()
        for first in range(0, len(queries), BATCH):
            batch = queries[first : first + BATCH]
            new: dict[str, list[Answer]] = {one.name: [] for one in waiting}
            for number, query in enumerate(batch, first):
                taken: dict[str, list[Answer]] = {}
                for repeat in range(1 + (self.timing_repeats if number < TIMED else 0)):
                    for system in Random(f"{self.seed}/{query}/{repeat}").sample(waiting, len(waiting)):
                        if query in self.answers[system.name] or (repeat and spent[system.name] > TIMING_MS):
                            continue
                        if not repeat:
                            self.report(done, total)
                            done += 1
                        if answer := self._try(system, query):
                            taken.setdefault(system.name, []).append(answer)
                            spent[system.name] += round(answer.ms) if repeat else 0
                for name, times in taken.items():
                    self.answers[name][query] = answer = _median(times)
                    new[name].append(answer)
            for name, found in new.items():
                if found and name in self.files and name not in self.failures:
                    self.files[name].append(found)
        self.report(total, total)
        self.drop_failed()

    def resume(self, systems: Sequence[System]) -> list[System]:
        """Read the kept answers, and return the systems with unanswered queries."""
        queries = list(self.dataset.judged)
        for one in systems:
            kept = self.files[one.name].read() if one.name in self.files else {}
            self.answers[one.name] = {query: kept[query] for query in queries if query in kept}
        self.resumed = sum(map(len, self.answers.values()))
        return [one for one in systems if len(self.answers[one.name]) < len(queries)]

    def report(self, done: int, total: int) -> None:
        """Report progress."""
        if self.progress is not None:
            self.progress("asking", done, total)

    def _try(self, system: System, query: str) -> Answer | None:
        if system.name in self.failures:
            return None
        try:
            return self.ask(system, query)
        except Exception as error:  # noqa: BLE001, third-party code: the report shows its exceptions
            self.failures[system.name] = failure(error, query)
            return None

    def drop_failed(self) -> None:
        """Remove what cannot be compared: techniques that failed or returned nothing from the corpus."""
        for name, answers in self.answers.items():
            found = {id for answer in answers.values() for id, _ in answer.ranking}
            if found and self.known.isdisjoint(found) and name not in self.failures:
                error = TechniqueError(
                    f"nothing that it returned is in the corpus ({numbered(len(found), '[document|documents]')}, such "
                    f"as {min(found)!r}); the metadata `source_file` of a result, or its id, must be the document's id "
                    "in the test set"
                )
                self.failures[name] = failure(error)
        for name in self.failures.keys() & self.answers.keys():
            del self.answers[name]
            if name in self.files:
                self.files[name].remove()

    def ask(self, system: System, query: str) -> Answer:
        """The answer to one query; requests as many chunks as needed to reach the depth in documents.

        Time, calls and tokens are those of the retrieval that gave the ranking.
        """
        spans = bool(self.dataset.spans)
        documents = self.depth + self.drop_query  # one more for the document that is dropped
        wanted = min(TOP_K_LIMIT, math.ceil(documents * (1.0 if spans else system.chunks_per_document)))
        while True:
            if self.embedder is not None:
                self.embedder.file.charged.clear()
            with collect() as trace:
                start, cpu = perf_counter(), process_time()
                chunks = system.technique.retrieve(
                    self.dataset.queries[query], top_k=None if system.own_top_k else wanted
                )
                ms, cpu_ms = (perf_counter() - start) * 1000, (process_time() - cpu) * 1000
            best: dict[str, Document] = {}  # a document has the rank of its first chunk
            for chunk in chunks:
                best.setdefault(document_of(chunk, self.known, system), chunk)
            if self.drop_query:
                best.pop(query, None)
            enough = len(best) >= self.depth or len(chunks) < wanted or wanted == TOP_K_LIMIT
            if enough or system.own_top_k or spans:
                break
            wanted = min(TOP_K_LIMIT, wanted * 2)
        best = dict(list(best.items())[: self.depth])
        stages = trace.stages()
        relevant = [id for id, grade in self.dataset.qrels[query].items() if grade > 0 and id in best]
        return Answer(
            query=query,
            ranking=[(id, float(chunk.score)) for id, chunk in best.items()],
            ms=ms + charged(stages),
            cpu_ms=max(0.0, cpu_ms + charged(stages, CHARGED_CPU)),
            calls=sum(stage.model_calls for stage in stages),
            tokens=sum(stage.tokens for stage in stages),
            returned_tokens=sum(map(_tokens, chunks[:CUTOFF])),
            stages=stage_times(stages),
            scores={
                id: {stage_name(score): float(score.value) for score in best[id].scores if math.isfinite(score.value)}
                for id in dict.fromkeys([*list(best)[:CUTOFF], *relevant])
            },
            route=json.loads(
                json.dumps([dict(stage.detail) for stage in stages if "chosen" in stage.detail], default=str)
            ),
            degraded=[stage.degraded for stage in stages if stage.degraded],
            passages=list(self._passages(system, chunks[: self.depth])),
            embedding_cached=any(stage.detail.get(CACHED) for stage in stages),
        )

    def _passages(self, system: System, chunks: Iterable[Document]) -> Iterator[tuple[str, int, int]]:
        for chunk in chunks:
            start, end = chunk.metadata.get("start"), chunk.metadata.get("end")
            if type(start) is int and type(end) is int:
                document = document_of(chunk, self.known, system)
                before = self.dataset.starts.get(document, 0)
                yield document, start - before, end - before


def failure(error: Exception, query: str = "") -> Failure:
    """Why a technique cannot be compared, in one line."""
    said = " ".join(str(error).split())
    return Failure(query, f"{type(error).__name__}: {said}" if said else repr(error))


def _median(times: Sequence[Answer]) -> Answer:
    """The first answer, with the median of its times."""
    middle = sorted(times, key=lambda one: one.ms)[len(times) // 2]
    return replace(
        times[0],
        ms=median(one.ms for one in times),
        cpu_ms=median(one.cpu_ms for one in times),
        stages=middle.stages,
    )


def document_of(chunk: Document, known: Container[str], system: System) -> str:
    """The document of the test set to which a result belongs; ``known`` are their ids.

    Its ``collection`` and ``source_file`` name it (``notes/tea.md``), or ``source_file`` alone, or its own id; the
    first of these that is known. Over the index of a test set ``source_file`` goes first, since an id may begin with
    the name of a collection and a slash, too.
    """
    source = str(chunk.metadata.get("source_file", chunk.id))
    names = [f"{chunk.metadata.get('collection', '')}/{source}", source, chunk.id]
    if system.index is not None:
        source = system.index.store.real_name(source)
        qualified = f"{chunk.metadata.get('collection', '')}/{source}"
        names = [qualified, source, chunk.id] if system.index.contents else [source, qualified, chunk.id]
    return next((name for name in names if name in known), source)


def _tokens(chunk: Document) -> int:
    """The tokens counted at ingest if the text is unchanged, else a quarter of its characters."""
    get = chunk.metadata.get
    count, start, end = get("token_count"), get("start"), get("end")
    own = "chunk_indexes" not in chunk.metadata and (start is None or end is None or end - start == len(chunk.content))
    return count if type(count) is int and own else len(chunk.content) // 4


def stage_times(stages: Sequence[Stage]) -> dict[str, float]:
    """Milliseconds of each stage by its path below the technique, without its inner stages."""
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
    """What gave a score, with its kind: ``dense cosine``, ``bm25``."""
    return score.stage if score.stage == score.kind else f"{score.stage} {score.kind}"
