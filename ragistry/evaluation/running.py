"""Asking every technique every query: in turn, so that whatever else the machine does falls on all of them alike."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from time import perf_counter

from ragistry.errors import TechniqueError
from ragistry.evaluation.answers import (
    EXPLAINED,
    Answer,
    AnswerFile,
    charged,
    ranking_of,
    routes,
    stage_name,
    stage_times,
)
from ragistry.evaluation.contenders import Contender
from ragistry.evaluation.dataset import Dataset
from ragistry.evaluation.indexing import Progress
from ragistry.evaluation.vectors import KeptVectors
from ragistry.trace import collect
from ragistry.types import TOP_K_LIMIT, Document, Stage

WARM_UP = 5
"""Queries that each technique is asked first, and whose answers do not count."""
BATCH = 20
"""Queries after which answers are written down; a process that is killed loses no more."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A technique that raised: the query that it was asked, and the error on one line."""

    query: str
    error: str


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


@dataclass(slots=True)
class Outcome:
    """Technique → query → answer, of those that answered all, and why the others did not."""

    answers: dict[str, dict[str, Answer]] = field(default_factory=dict)
    failures: dict[str, Failure] = field(default_factory=dict)
    resumed: int = 0


def run(
    contenders: Sequence[Contender],
    asking: Asking,
    files: Mapping[str, AnswerFile],
    progress: Progress | None = None,
) -> Outcome:
    """Ask every contender every judged query, in an order that is drawn anew for each query.

    One that raises is asked no more, and the others finish. ``files``: where answers are kept, and taken from.
    """
    queries = asking.dataset.judged
    outcome = _resumed(contenders, asking, files)
    _warm_up(contenders, asking, outcome)
    total, done = len(contenders) * len(queries), outcome.resumed
    unwritten: dict[str, list[Answer]] = {contender.name: [] for contender in contenders}
    for number, query in enumerate(queries, 1):
        for contender in Random(f"{asking.seed}/{query}").sample(contenders, len(contenders)):
            if query in outcome.answers[contender.name]:
                continue
            if progress is not None:
                progress("asking", done, total)
            done += 1
            answer = _try(contender, query, asking, outcome)
            if answer is not None:
                outcome.answers[contender.name][query] = answer
                unwritten[contender.name].append(answer)
        if number % BATCH == 0 or number == len(queries):
            _write(unwritten, files)
    if progress is not None:
        progress("asking", total, total)
    _drop_failed(outcome, asking.known)
    return outcome


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
        best = ranking_of(contender.name, chunks, asking.known)
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
            id: {stage_name(score): float(score.value) for score in best[id].scores if math.isfinite(score.value)}
            for id in dict.fromkeys(explained)
        },
        route=routes(stages),
        degraded=[stage.degraded for stage in stages if stage.degraded],
    )


def _resumed(contenders: Sequence[Contender], asking: Asking, files: Mapping[str, AnswerFile]) -> Outcome:
    kept = {contender.name: files[contender.name].read() for contender in contenders if contender.name in files}
    answers = {
        contender.name: {
            query: kept[contender.name][query]
            for query in asking.dataset.judged
            if query in kept.get(contender.name, {})
        }
        for contender in contenders
    }
    return Outcome(answers, resumed=sum(map(len, answers.values())))


def _warm_up(contenders: Sequence[Contender], asking: Asking, outcome: Outcome) -> None:
    queries = list(asking.dataset.judged)
    for query in queries[: asking.warm_up]:
        for contender in contenders:
            if len(outcome.answers[contender.name]) < len(queries):
                _try(contender, query, asking, outcome)


def _try(contender: Contender, query: str, asking: Asking, outcome: Outcome) -> Answer | None:
    if contender.name in outcome.failures:
        return None
    try:
        return ask(contender, query, asking)
    except Exception as error:  # noqa: BLE001, a technique may be anybody's: what it raises goes into the report
        said = " ".join(str(error).split())
        outcome.failures[contender.name] = Failure(query, f"{type(error).__name__}: {said}" if said else repr(error))
        return None


def _write(unwritten: dict[str, list[Answer]], files: Mapping[str, AnswerFile]) -> None:
    for name, answers in unwritten.items():
        if answers and name in files:
            files[name].append(answers)
        answers.clear()


def _drop_failed(outcome: Outcome, known: set[str]) -> None:
    """Take out what cannot be compared: techniques that failed, and those that returned nothing of the corpus."""
    for name, answers in outcome.answers.items():
        found = {id for answer in answers.values() for id, _ in answer.ranking}
        if found and known.isdisjoint(found) and name not in outcome.failures:
            error = TechniqueError(
                f"none of the {len(found)} documents that it returned is in the corpus, such as {min(found)!r}; the "
                "metadata `source_file` of a result, or its id, must be the document's id in the test set"
            )
            outcome.failures[name] = Failure("", f"TechniqueError: {error}")
    for name in outcome.failures:
        del outcome.answers[name]
