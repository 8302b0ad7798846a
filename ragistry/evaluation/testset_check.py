"""What makes a test set say less than it seems to: queries that come twice, that nothing answers, that give away.

A query that shares no word with what it should find is none of these, only hard for techniques that match words.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from ragistry.evaluation.beir import lines_of
from ragistry.evaluation.dataset import Dataset
from ragistry.evaluation.questions import answers
from ragistry.evaluation.similar_queries import near_duplicates, stands_in
from ragistry.protocols import Generator
from ragistry.utils.analysis import analyse, query_terms

LONGEST = 6_000
"""Characters of a document that a generator is shown."""

GIVEN_AWAY = 4
"""Words from which a query that stands in its document, as it is, is no coincidence."""


class Finding(NamedTuple):
    """Something wrong with one query, or with two, or to be known of one."""

    kind: Literal["duplicate", "near-duplicate", "not judged", "unanswerable", "given away", "no shared word"]
    queries: tuple[str, ...]
    message: str


def check_testset(
    dataset: Dataset, generator: Generator | None = None, elsewhere: Collection[str] = ()
) -> list[Finding]:
    """Everything that is wrong with the queries, in their order.

    Unanswerable is a query that no document is relevant to, whose relevant documents are empty, or, with a
    ``generator``, that none of them answers in the generator's eyes. ``elsewhere``: queries that another split judges.
    """
    return [
        *_repeated(dataset),
        *_not_judged(dataset, elsewhere),
        *_unanswerable(dataset, generator),
        *_given_away(dataset),
    ]


def remarks(dataset: Dataset) -> list[Finding]:
    """The judged queries that share no word with what they should find: a paraphrase, another language, or an error."""
    found = []
    for query, text in dataset.judged.items():
        words = {word for document in _relevant(dataset, query) for word in analyse(document)}
        if words and words.isdisjoint(query_terms(text)):
            found.append(Finding("no shared word", (query,), f"{text!r} shares no word with what it should find"))
    return found


def judged_in_any_split(folder: str | Path) -> set[str]:
    """The queries that have a judgement in one of the splits of a folder in BEIR's layout."""
    files = sorted((Path(folder) / "qrels").glob("*.tsv*"))
    return {line.split("\t")[0] for file in files for _, line in lines_of(file)}


def _repeated(dataset: Dataset) -> Iterator[Finding]:
    ids, texts = list(dataset.judged), list(dataset.judged.values())
    for first, second, shared in near_duplicates(texts):
        pair = (ids[first], ids[second])
        same = " ".join(analyse(texts[first])) == " ".join(analyse(texts[second]))
        says = f"{texts[first]!r} and {texts[second]!r}"
        if same:
            yield Finding("duplicate", pair, f"{says} ask the same")
        else:
            yield Finding("near-duplicate", pair, f"{says} share {shared:.0%} of their words")


def _not_judged(dataset: Dataset, elsewhere: Collection[str]) -> Iterator[Finding]:
    for query, text in dataset.queries.items():
        if query not in dataset.judged and query not in elsewhere:
            message = f"{text!r} has no judgement; say in the qrels which documents answer it, or take it out"
            yield Finding("not judged", (query,), message)


def _unanswerable(dataset: Dataset, generator: Generator | None) -> Iterator[Finding]:
    for query, text in dataset.judged.items():
        reason = _no_answer(text, _relevant(dataset, query), generator)
        if reason:
            yield Finding("unanswerable", (query,), f"{text!r}: {reason}")


def _no_answer(text: str, relevant: list[str], generator: Generator | None) -> str:
    if not relevant:
        return "no document is relevant to it"
    if not any(document.strip() for document in relevant):
        return "its relevant documents are empty"
    if generator is not None:
        judged = any(answers(generator, text, document[:LONGEST]) for document in relevant)
        return "" if judged else "the generator finds no answer in its relevant documents"
    return ""


def _given_away(dataset: Dataset) -> Iterator[Finding]:
    for query, text in dataset.judged.items():
        if len(analyse(text)) >= GIVEN_AWAY and any(stands_in(text, doc) for doc in _relevant(dataset, query)):
            yield Finding("given away", (query,), f"{text!r} stands word for word in the document that it must find")


def _relevant(dataset: Dataset, query: str) -> list[str]:
    return [dataset.texts[document] for document, grade in dataset.qrels[query].items() if grade > 0]
