"""Asking every technique every query: in turn, so that whatever else the machine does falls on all of them alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from ragistry.errors import TechniqueError
from ragistry.evaluation.answer_file import AnswerFile
from ragistry.evaluation.answers import Answer
from ragistry.evaluation.asking import Asking, ask
from ragistry.evaluation.contenders import Contender
from ragistry.types import Progress
from ragistry.utils.wording import numbered

BATCH = 20
"""Queries after which answers are written down; a process that is killed loses no more."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A technique that raised: the query that it was asked, if it came so far, and the error on one line."""

    query: str
    error: str


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

    One that raises is asked no more, and the others finish. ``files``: where answers are kept, and taken from; those
    of a technique that fails are dropped, since what made it fail may have been wrong before.
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
            elif contender.name in files and contender.unmade is None:
                files[contender.name].remove()
        if number % BATCH == 0 or number == len(queries):
            _write(unwritten, files, outcome)
    if progress is not None:
        progress("asking", total, total)
    _drop_failed(outcome, asking.known, files)
    return outcome


def _resumed(contenders: Sequence[Contender], asking: Asking, files: Mapping[str, AnswerFile]) -> Outcome:
    kept = {one.name: files[one.name].read() for one in contenders if one.name in files and one.unmade is None}
    answers = {
        contender.name: {
            query: kept[contender.name][query]
            for query in asking.dataset.judged
            if query in kept.get(contender.name, {})
        }
        for contender in contenders
    }
    unmade = {one.name: Failure("", _said(one.unmade)) for one in contenders if one.unmade is not None}
    return Outcome(answers, unmade, resumed=sum(map(len, answers.values())))


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
        outcome.failures[contender.name] = Failure(query, _said(error))
        return None


def _said(error: Exception) -> str:
    said = " ".join(str(error).split())
    return f"{type(error).__name__}: {said}" if said else repr(error)


def _write(unwritten: dict[str, list[Answer]], files: Mapping[str, AnswerFile], outcome: Outcome) -> None:
    for name, answers in unwritten.items():
        if answers and name in files and name not in outcome.failures:
            files[name].append(answers)
        answers.clear()


def _drop_failed(outcome: Outcome, known: set[str], files: Mapping[str, AnswerFile]) -> None:
    """Take out what cannot be compared: techniques that failed, and those that returned nothing of the corpus."""
    for name, answers in outcome.answers.items():
        found = {id for answer in answers.values() for id, _ in answer.ranking}
        if found and known.isdisjoint(found) and name not in outcome.failures:
            error = TechniqueError(
                f"nothing that it returned is in the corpus ({numbered(len(found), '[document|documents]')}, such as "
                f"{min(found)!r}); the metadata `source_file` of a result, or its id, must be the document's id in the "
                "test set"
            )
            outcome.failures[name] = Failure("", f"TechniqueError: {error}")
            if name in files:
                files[name].remove()
    for name in outcome.failures:
        del outcome.answers[name]
