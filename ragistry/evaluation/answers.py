"""Asking every technique every query: rankings of documents, passages, and what they cost.

Techniques take turns, so that whatever else the machine does falls on all of them alike. What they return names opaque
sources (`systems.masking`) and is translated back here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Real
from random import Random
from statistics import fmean, median
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
"""Queries after which answers are written down; a killed process loses at most these."""
CUTOFF = 10
"""Results whose scores and lengths are kept."""
WARM_UP = 5
"""Queries that each technique is asked first, and whose answers do not count."""
TIMED, TIMING_REPEATS, TIMING_SECONDS = 50, 3, 20.0
"""Queries that are asked again for their time, how often, and how long that may take for each technique."""
ITSELF = "itself"
"""The time of a technique outside of its stages."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One ranking of documents, best first, and its cost.

    ``ms`` and ``cpu_ms``: wall and CPU time, the median where the query was asked several times. ``calls`` and
    ``tokens``: of models. ``returned_tokens``: of the first `CUTOFF` texts. ``stages``: milliseconds of each stage
    without the stages inside it, in the order in which they began, so that their sum is about ``ms``. ``scores``: of
    the first and of the relevant documents, what each stage gave them. ``route``: details of the stages that chose
    where to search. ``passages``: (document, start, end) of each result that says so, best first.
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


@dataclass(frozen=True)
class Asking:
    """What is asked, and how: for ``depth`` documents, without the one whose id is the query's if ``drop_query``.

    ArguAna is measured so: there each query is a document, too. Where answers are spans, for ``depth`` passages.
    """

    dataset: Dataset
    depth: int
    vectors: KeptVectors | None = None
    drop_query: bool = False
    seed: int = 0
    warm_up: int = WARM_UP
    timing_repeats: int = TIMING_REPEATS

    @cached_property
    def known(self) -> set[str]:
        """The ids of the corpus."""
        return {document.id for document in self.dataset.corpus}


@dataclass(slots=True)
class Outcome:
    """Technique → query → answer, of those that answered all, and why the others did not."""

    answers: dict[str, dict[str, Answer]] = field(default_factory=dict)
    failures: dict[str, Failure] = field(default_factory=dict)
    resumed: int = 0


# One query


def ask(system: System, query: str, asking: Asking) -> Answer:
    """The answer to one query; as many chunks are asked for as it takes to fill the depth with documents.

    Time, calls and tokens are those of the retrieval that gave the ranking.
    """
    documents = asking.depth + asking.drop_query  # the one that is dropped comes on top
    per_document = 1.0 if asking.dataset.spans else system.chunks_per_document
    wanted = min(TOP_K_LIMIT, math.ceil(documents * per_document))
    while True:
        if asking.vectors is not None:
            asking.vectors.begin()
        with collect() as trace:
            start, cpu = perf_counter(), process_time()
            chunks = system.technique.retrieve(
                asking.dataset.queries[query], top_k=None if system.own_top_k else wanted
            )
            ms, cpu_ms = (perf_counter() - start) * 1000, (process_time() - cpu) * 1000
        best = ranking_of(system, chunks, asking.known)
        if asking.drop_query:
            best.pop(query, None)
        enough = len(best) >= asking.depth or len(chunks) < wanted or wanted == TOP_K_LIMIT
        if enough or system.own_top_k or asking.dataset.spans:
            break
        wanted = min(TOP_K_LIMIT, wanted * 2)
    best = dict(list(best.items())[: asking.depth])
    stages = trace.stages()
    relevant = [id for id, grade in asking.dataset.qrels[query].items() if grade > 0 and id in best]
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
            id: {stage_name(score): float(score.value) for score in best[id].scores if is_finite(score.value)}
            for id in dict.fromkeys([*list(best)[:CUTOFF], *relevant])
        },
        route=_routes(stages),
        degraded=[stage.degraded for stage in stages if stage.degraded],
        passages=list(_passages(system, chunks[: asking.depth], asking)),
        embedding_cached=any(stage.detail.get(CACHED) for stage in stages),
    )


def document_of(chunk: Document, known: Container[str], system: System | None = None) -> str:
    """The document of the test set that a result belongs to, whose ids are ``known``.

    Its ``collection`` and ``source_file`` name it (``notes/tea.md``), or ``source_file`` alone, or its own id; the
    first of these that is known. Over the index of a test set ``source_file`` goes first, since an id may begin with
    the name of a collection and a slash, too.
    """
    index = None if system is None else system.index
    source = str(chunk.metadata.get("source_file", chunk.id))
    source = source if index is None else index.store.real_name(source)
    names = [f"{chunk.metadata.get('collection', '')}/{source}", source, chunk.id]
    if index is not None and not index.qualified:
        names.insert(0, source)
    return next((name for name in names if name in known), source)


def ranking_of(system: System, chunks: Iterable[Document], known: Container[str]) -> dict[str, Document]:
    """Documents in the order of their best chunk: each stands where the first of its chunks stands.

    Raises `TechniqueError` for a score that is not a finite number.
    """
    best: dict[str, Document] = {}
    for chunk in chunks:
        document = document_of(chunk, known, system)
        if not is_finite(chunk.score):
            raise TechniqueError(
                f"technique {system.name!r} gave {document!r} the score {chunk.score!r}; it must be a finite number"
            )
        best.setdefault(document, chunk)
    return best


def is_finite(value: Any) -> bool:
    """Whether a score is a number that can be compared."""
    return isinstance(value, Real) and math.isfinite(value)


def _tokens(chunk: Document) -> int:
    """As counted when it was ingested, if the text is still the chunk's own; else a quarter of its characters."""
    get = chunk.metadata.get
    count, start, end = get("token_count"), get("start"), get("end")
    own = "chunk_indexes" not in chunk.metadata and (start is None or end is None or end - start == len(chunk.content))
    return count if type(count) is int and own else len(chunk.content) // 4


def _passages(system: System, chunks: Iterable[Document], asking: Asking) -> Iterator[tuple[str, int, int]]:
    for chunk in chunks:
        start, end = chunk.metadata.get("start"), chunk.metadata.get("end")
        if type(start) is int and type(end) is int:
            document = document_of(chunk, asking.known, system)
            before = asking.dataset.starts.get(document, 0)
            yield document, start - before, end - before


def stage_times(stages: Sequence[Stage]) -> dict[str, float]:
    """Milliseconds of each stage by its path below the technique, without those of the stages inside it."""
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


def _routes(stages: Sequence[Stage]) -> list[dict[str, Any]]:
    """The details of the stages that chose between targets, as plain values."""
    details = [dict(stage.detail) for stage in stages if "chosen" in stage.detail]
    plain: list[dict[str, Any]] = json.loads(json.dumps(details, default=str))
    return plain


# All queries


def run(
    systems: Sequence[System], asking: Asking, files: Mapping[str, AnswerFile], progress: Progress | None = None
) -> Outcome:
    """Ask every system every judged query, in an order that is drawn anew for each query; then time some again.

    One that raises is not asked again, and the others finish. ``files``: where answers are kept, and taken from; those
    of a technique that fails are dropped, since what made it fail may have been wrong before.
    """
    outcome = _resumed(systems, asking, files)
    asked = [one for one in systems if len(outcome.answers[one.name]) < len(asking.dataset.judged)]
    for query in list(asking.dataset.judged)[: asking.warm_up]:
        for system in asked:
            _try(system, query, asking, outcome)
    _ask_all(systems, asking, files, outcome, progress)
    _time_again(asked, asking, files, outcome, progress)
    _drop_failed(outcome, asking.known, files)
    return outcome


def _resumed(systems: Sequence[System], asking: Asking, files: Mapping[str, AnswerFile]) -> Outcome:
    outcome = Outcome()
    for one in systems:
        kept = files[one.name].read() if one.name in files and one.unmade is None else {}
        outcome.answers[one.name] = {query: kept[query] for query in asking.dataset.judged if query in kept}
        if one.unmade is not None:
            outcome.failures[one.name] = Failure("", _said(one.unmade))
    outcome.resumed = sum(map(len, outcome.answers.values()))
    return outcome


def _in_turn(systems: Sequence[System], asking: Asking, query: str) -> list[System]:
    return Random(f"{asking.seed}/{query}").sample(systems, len(systems))


def _ask_all(
    systems: Sequence[System],
    asking: Asking,
    files: Mapping[str, AnswerFile],
    outcome: Outcome,
    progress: Progress | None,
) -> None:
    queries = asking.dataset.judged
    total, done = len(systems) * len(queries), outcome.resumed
    unwritten: dict[str, list[Answer]] = {system.name: [] for system in systems}
    for number, query in enumerate(queries, 1):
        for system in _in_turn(systems, asking, query):
            if query in outcome.answers[system.name]:
                continue
            if progress is not None:
                progress("asking", done, total)
            done += 1
            answer = _try(system, query, asking, outcome)
            if answer is not None:
                outcome.answers[system.name][query] = answer
                unwritten[system.name].append(answer)
            elif system.name in files and system.unmade is None:
                files[system.name].remove()
        if number % BATCH == 0 or number == len(queries):
            for name, answers in unwritten.items():
                if answers and name in files and name not in outcome.failures:
                    files[name].append(answers)
                answers.clear()
    if progress is not None:
        progress("asking", total, total)


def _time_again(
    systems: Sequence[System],
    asking: Asking,
    files: Mapping[str, AnswerFile],
    outcome: Outcome,
    progress: Progress | None,
) -> None:
    """Ask some queries again, all systems in turn, and keep the median of their times; the rankings stay."""
    queries = list(asking.dataset.judged)[:TIMED]
    timed = [one for one in systems if one.name not in outcome.failures and _is_fast(one, queries, asking, outcome)]
    taken = {(system.name, query): [outcome.answers[system.name][query]] for system in timed for query in queries}
    total = asking.timing_repeats * len(queries) if timed else 0
    for number in range(total):
        query = queries[number % len(queries)]
        for system in _in_turn(timed, asking, f"{query}/{number}"):
            if progress is not None:
                progress("timing", number, total)
            if system.name not in outcome.failures and (again := _try(system, query, asking, outcome)):
                taken[system.name, query].append(again)
    for system in timed:
        answers = outcome.answers[system.name]
        for query in queries:
            times = taken[system.name, query]
            middle = sorted(times, key=lambda one: one.ms)[len(times) // 2]
            answers[query] = replace(
                answers[query],
                ms=median(one.ms for one in times),
                cpu_ms=median(one.cpu_ms for one in times),
                stages=middle.stages,
            )
        if system.name in files and system.name not in outcome.failures and total:
            files[system.name].append([answers[query] for query in queries])  # the later line of a query counts


def _is_fast(system: System, queries: Sequence[str], asking: Asking, outcome: Outcome) -> bool:
    """Whether asking again fits into its share of time."""
    mean = fmean(outcome.answers[system.name][query].ms for query in queries)
    return mean * len(queries) * asking.timing_repeats <= TIMING_SECONDS * 1000


def _try(system: System, query: str, asking: Asking, outcome: Outcome) -> Answer | None:
    if system.name in outcome.failures:
        return None
    try:
        return ask(system, query, asking)
    except Exception as error:  # noqa: BLE001, third-party code: what it raises goes into the report
        outcome.failures[system.name] = Failure(query, _said(error))
        return None


def _said(error: Exception) -> str:
    said = " ".join(str(error).split())
    return f"{type(error).__name__}: {said}" if said else repr(error)


def _drop_failed(outcome: Outcome, known: set[str], files: Mapping[str, AnswerFile]) -> None:
    """Take out what cannot be compared: techniques that failed, and those that returned nothing of the corpus."""
    for name, answers in outcome.answers.items():
        found = {id for answer in answers.values() for id, _ in answer.ranking}
        if found and known.isdisjoint(found) and name not in outcome.failures:
            error = (
                f"nothing that it returned is in the corpus ({numbered(len(found), '[document|documents]')}, such as "
                f"{min(found)!r}); the metadata `source_file` of a result, or its id, must be the document's id in the "
                "test set"
            )
            outcome.failures[name] = Failure("", f"TechniqueError: {error}")
    for name in outcome.failures:
        del outcome.answers[name]
        if name in files:
            files[name].remove()
