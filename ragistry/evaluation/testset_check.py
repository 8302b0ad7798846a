"""What makes a test set say less than it seems to: queries that come twice, that nothing answers, that give away."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

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
    """Something wrong with one query, or with two."""

    kind: Literal["duplicate", "near-duplicate", "unanswerable", "given away"]
    queries: tuple[str, ...]
    message: str


def check_testset(dataset: Dataset, generator: Generator | None = None) -> list[Finding]:
    """Everything that was found in the judged queries, in their order.

    Unanswerable is a query that no document is relevant to, whose relevant documents are empty or share not one of its
    words, or, with a ``generator``, that none of them answers in the generator's eyes. A query in another language than
    its document shares no word with it either: for such a set a generator must judge.
    """
    return [*_repeated(dataset), *_unanswerable(dataset, generator), *_given_away(dataset)]


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
    terms = set(query_terms(text))
    return (
        "" if any(terms & set(analyse(document)) for document in relevant) else "its documents have none of its words"
    )


def _given_away(dataset: Dataset) -> Iterator[Finding]:
    for query, text in dataset.judged.items():
        if len(analyse(text)) >= GIVEN_AWAY and any(stands_in(text, doc) for doc in _relevant(dataset, query)):
            yield Finding("given away", (query,), f"{text!r} stands word for word in the document that it must find")


def _relevant(dataset: Dataset, query: str) -> list[str]:
    return [dataset.texts[document] for document, grade in dataset.qrels[query].items() if grade > 0]
